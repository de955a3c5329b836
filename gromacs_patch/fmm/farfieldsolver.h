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

/*! \libinternal \file
 * \brief The solver of libfarfield in a run of GROMACS.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDSOLVER_H
#define GMX_FMM_FARFIELDSOLVER_H

#include <cstdint>

#include <memory>
#include <string>

#include <farfield/farfield.h>

#include "gromacs/math/matrix.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"
#include "gromacs/utility/vectypes.h"

#include "farfieldranks.h"
#include "farfieldrun.h"
#include "farfieldtopology.h"

struct gmx_mtop_t;

namespace gmx
{

class MDLogger;
struct MDModulesAtomsRedistributedSignal;
class ForceWithVirial;
class StepWorkload;

//! The box as the library takes it.
struct BoxRows
{
    template<typename Box>
    explicit BoxRows(const Box& element)
    {
        for (int i = 0; i < DIM; i++)
        {
            for (int j = 0; j < DIM; j++)
            {
                rows[i][j] = element(i, j);
            }
        }
    }
    static BoxRows fromMatrix(const matrix box)
    {
        return BoxRows([box](const int i, const int j) { return box[i][j]; });
    }
    double rows[DIM][DIM];
};

//! Adds the virial to that of a step.
void addVirial(const farfield::Totals& totals, ForceWithVirial* forceWithVirial);

/*! \brief The solver of a run with its particles.
 *
 * Sets it up for the topology, the checkpoint and the local order of the atoms, logs what it has
 * chosen, and translates its errors.
 */
class FarfieldSolver
{
public:
    //! Creates the solver; parameters as for FarfieldForceProvider, throws what rethrow() throws.
    FarfieldSolver(const FarfieldOptions& options,
                   const gmx_mtop_t&      mtop,
                   const MDLogger&        logger,
                   const FarfieldRun&     run);
    ~FarfieldSolver();

    /*! \brief Adds the forces on the particles, as farfield::Solver::evaluate().
     *
     * \returns the totals, or the part of them of this rank; throws farfield::Error
     */
    farfield::Totals evaluate(const RVec* x, const BoxRows& box, RVec* f, const farfield::Request& request);
    //! What evaluates
    farfield::CoulombSolver<real>& solver() const { return ranks_->solver(); }
    //! What depends on the number of ranks
    FarfieldRanks&     ranks() const { return *ranks_; }
    FarfieldParticles& particles() { return particles_; }

    //! Whether the operators have been set up
    bool isPrepared() const { return isPrepared_; }

    /*! \brief Sets up the solver for the local atoms; the first call also for box and checkpoint.
     *
     * Logs the discretisation when it has changed.
     *
     * \param[in] signal    the local atoms
     * \param[in] dataPath  how coordinates and forces get to the device and back, for the log
     * \throws what rethrowFor() throws, if the library cannot be used for this system
     */
    void follow(const MDModulesAtomsRedistributedSignal& signal, const std::string& dataPath);

    /*! \brief Writes the discretisation to the log when it, or its error, has changed.
     *
     * \param[in] dataPath  as follow()
     */
    void logSetup(const std::string& dataPath);

    //! What to ask of the solver at \p step; \p lambda mixes perturbed charges.
    farfield::Request request(int64_t step, const StepWorkload& stepWork, real lambda);

    //! Throws as rethrowFarfieldError(); \p when is what could not be done.
    [[noreturn]] void rethrow(const farfield::Error& error, const std::string& when) const;
    //! The same for positions \p x of the home atoms, of which a bad one is named first.
    [[noreturn]] void rethrowFor(const farfield::Error& error,
                                 ArrayRef<const RVec>   x,
                                 const std::string&     when) const;

private:
    //! Chooses the discretisation, or takes it over from the checkpoint; throws farfield::Error.
    void            prepare(ArrayRef<const RVec> x, const Matrix3x3& box);
    const MDLogger& logger_;
    FarfieldRun     run_;

    FarfieldParticles particles_;

    std::unique_ptr<FarfieldRanks> ranks_;

    bool isPrepared_ = false;
    //! The last step that was not a trial configuration
    int64_t step_ = 0;
    //! What was last reported
    farfield::Setup loggedSetup_;
};

} // namespace gmx

#endif
