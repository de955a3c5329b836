/*
 * This file is part of the GROMACS molecular simulation package.
 *
 * Copyright 2026- The GROMACS Authors
 * and the project initiators Erik Lindahl, Berk Hess and David van der Spoel.
 * Consult the AUTHORS/COPYING files and https://www.gromacs.org for details.
 *
 * GROMACS is free software; you can redistribute it and/or
 * modify it under the terms of the GNU Lesser General Public License
 * as published by the Free Software Foundation; either version 2.1
 * of the License, or (at your option) any later version.
 *
 * GROMACS is distributed in the hope that it will be useful,
 * but WITHOUT ANY WARRANTY; without even the implied warranty of
 * MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
 * Lesser General Public License for more details.
 *
 * You should have received a copy of the GNU Lesser General Public
 * License along with GROMACS; if not, see
 * https://www.gnu.org/licenses, or write to the Free Software Foundation,
 * Inc., 51 Franklin Street, Fifth Floor, Boston, MA  02110-1301  USA.
 *
 * If you want to redistribute modifications to GROMACS, please
 * consider that scientific software is very special. Version
 * control is crucial - bugs must be traceable. We will be happy to
 * consider code for inclusion in the official distribution, but
 * derived work must not be called official GROMACS. Details are found
 * in the README & COPYING files - if they are missing, get the
 * official version at https://www.gromacs.org.
 *
 * To help us fund GROMACS development, we humbly ask that you cite
 * the research papers on the package. Check out https://www.gromacs.org.
 */


/*! \internal \file
 * \brief Implements reference forces.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldreference.h"

#include <cmath>
#include <cstdlib>

#include <algorithm>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "farfieldrun.h"
#include "farfieldsolver.h"

namespace gmx
{

namespace
{

//! Environment variable that asks for reference forces
constexpr const char* c_referenceVariable = "GMX_FMM_REFERENCE";

//! Error that the cells of the reference are chosen for, relative
constexpr double c_referenceAccuracy = 1e-10;

//! The highest order, in double precision on the CPU
farfield::Options referenceOptions(const FarfieldRun& run)
{
    farfield::Options options;
    options.coulombConstant = run.coulombConstant;
    options.boundary        = run.boundary;
    options.threads         = gmx_omp_nthreads_get(ModuleMultiThread::Default);
    options.device          = farfield::Device::Cpu;
    options.order           = farfield::c_maxOrder;
    options.accuracy        = c_referenceAccuracy;
    return options;
}

//! \p values in double precision
std::vector<double> inDouble(ArrayRef<const real> values)
{
    return { values.begin(), values.end() };
}

} // namespace

bool farfieldReferenceIsWanted()
{
    return std::getenv(c_referenceVariable) != nullptr;
}

FarfieldReference::FarfieldReference(const FarfieldRun& run, const MDLogger& logger) :
    logger_(logger), solver_(referenceOptions(run))
{
    GMX_LOG(logger.info)
            .asParagraph()
            .appendText(formatString(
                    "The environment variable %s is set: Coulomb forces, energy and virial of this "
                    "run are evaluated in double precision at order %d on the CPU, and not by the "
                    "settings of the run input file. This is slow.",
                    c_referenceVariable,
                    farfield::c_maxOrder));
}

void FarfieldReference::setParticles(const FarfieldParticles& particles)
{
    const std::vector<double> charges = inDouble(particles.charges());
    number_                           = static_cast<int>(charges.size());
    if (particles.arePerturbed())
    {
        solver_.setPerturbedCharges(charges.data(), inDouble(particles.chargesB()).data(), number_);
    }
    else
    {
        solver_.setCharges(charges.data(), number_);
    }
    const FarfieldExclusions& exclusions = particles.exclusions();
    solver_.setExclusions(exclusions.offsets.data(), exclusions.partners.data(), number_);
    if (const std::vector<double> widths = inDouble(particles.widths()); !widths.empty())
    {
        solver_.setNearFunction(c_perturbedPairs, widths.data(), number_);
    }
}

farfield::Totals FarfieldReference::evaluate(const RVec*              x,
                                             const BoxRows&           box,
                                             RVec*                    f,
                                             const farfield::Request& request,
                                             const int64_t            step)
{
    x_.assign(x->as_vec(), x->as_vec() + DIM * number_);
    f_.assign(DIM * number_, 0.0);
    const farfield::Totals totals = solver_.evaluate(x_.data(), box.rows, f_.data(), request);

    double sumOfSquares = 0;
    for (int i = 0; i < number_; i++)
    {
        RVec sum = request.replaceForces ? RVec(0, 0, 0) : f[i];
        for (int d = 0; d < DIM; d++)
        {
            sum[d] += f_[DIM * i + d];
            sumOfSquares += f_[DIM * i + d] * f_[DIM * i + d];
        }
        f[i] = sum;
    }
    GMX_LOG(logger_.info)
            .asParagraph()
            .appendText(
                    formatString("FMM reference at step %lld: RMS Coulomb force %.9g kJ/mol/nm, "
                                 "estimated error %.1e",
                                 static_cast<long long>(step),
                                 std::sqrt(sumOfSquares / std::max(number_, 1)),
                                 solver_.setup().estimatedError));
    return totals;
}

} // namespace gmx
