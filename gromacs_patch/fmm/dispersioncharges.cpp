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
/*! \internal \file
 * \brief Implements what atom types bring into the dispersion of an FMM.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "dispersioncharges.h"

#include <cmath>

#include <algorithm>
#include <numeric>
#include <vector>

#include "gromacs/math/nrjac.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/topology/topology.h"

namespace gmx
{

namespace
{

//! The largest difference where as many sets are taken as it needs
constexpr double c_wantedDifference = 1e-3;

//! Square matrix of doubles, by rows
class Matrix
{
public:
    explicit Matrix(int size) : elements_(size * size), rows_(size)
    {
        for (int i = 0; i < size; i++)
        {
            rows_[i] = elements_.data() + i * size;
        }
    }
    double*  operator[](int i) { return rows_[i]; }
    double** rows() { return rows_.data(); }

private:
    std::vector<double>  elements_;
    std::vector<double*> rows_;
};

//! Number of atoms of each type
std::vector<double> countTypes(const gmx_mtop_t& mtop)
{
    std::vector<double> count(mtop.ffparams.atnr, 0);
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const t_atoms& atoms = mtop.moltype[molblock.type].atoms;
        for (int i = 0; i < atoms.nr; i++)
        {
            count[atoms.atom[i].type] += molblock.nmol;
        }
    }
    return count;
}

} // namespace

DispersionCharges::DispersionCharges(const gmx_mtop_t& mtop, LongRangeVdW rule) : mtop_(mtop)
{
    const int                 numTypes = mtop.ffparams.atnr;
    const std::vector<double> count    = countTypes(mtop);

    // Types of atoms that are there, and that have dispersion; of each what all atoms have with it
    std::vector<int>    types;
    std::vector<double> total;
    for (int i = 0; i < numTypes; i++)
    {
        double sum = 0;
        for (int j = 0; j < numTypes; j++)
        {
            sum += count[j] * std::abs(c6OfTopology(i, j));
        }
        if (count[i] > 0 && sum > 0)
        {
            types.push_back(i);
            total.push_back(sum);
        }
    }
    const int size = static_cast<int>(types.size());
    // Of an atom, on average: atoms that have hardly any dispersion are not to decide
    double products = 0, atoms = 0;
    for (int i = 0; i < size; i++)
    {
        products += count[types[i]] * total[i];
        atoms += count[types[i]];
    }
    const double average = products / std::max(atoms, 1.0);

    const auto difference = [&]
    {
        double largest = 0;
        for (int i = 0; i < size; i++)
        {
            double sum = 0;
            for (int j = 0; j < size; j++)
            {
                sum += count[types[j]] * std::abs(c6Left(types[i], types[j]));
            }
            largest = std::max(largest, sum / std::max(total[i], average));
        }
        return largest;
    };

    if (size > 0 && rule == LongRangeVdW::Geom)
    {
        signs_.push_back(1);
        for (int i = 0; i < numTypes; i++)
        {
            charges_.push_back(std::sqrt(std::max(c6OfTopology(i, i), 0.0)));
        }
    }
    else if (size > 0)
    {
        Matrix     scaled(size), vectors(size);
        const auto weight = [&](int i) { return std::sqrt(count[types[i]] / total[i]); };
        for (int i = 0; i < size; i++)
        {
            for (int j = 0; j < size; j++)
            {
                scaled[i][j] = weight(i) * weight(j) * c6OfTopology(types[i], types[j]);
            }
        }
        std::vector<double> eigenvalues(size);
        jacobi(scaled.rows(), size, eigenvalues.data(), vectors.rows(), nullptr);
        std::vector<int> order(size);
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(),
                  order.end(),
                  [&](int a, int b) { return std::abs(eigenvalues[a]) > std::abs(eigenvalues[b]); });
        do
        {
            signs_.push_back(eigenvalues[order[numSets()]] < 0 ? -1 : 1);
            charges_.assign(numTypes * numSets(), 0);
            for (int i = 0; i < size; i++)
            {
                for (int set = 0; set < numSets(); set++)
                {
                    const int k = order[set];
                    charges_[types[i] * numSets() + set] =
                            std::sqrt(std::abs(eigenvalues[k])) * vectors[i][k] / weight(i);
                }
            }
        } while (numSets() < size && difference() > c_wantedDifference);
    }
    largestDifference_ = difference();
}

bool DispersionCharges::isCharged(int type) const
{
    const auto begin = charges_.begin() + type * numSets();
    return std::any_of(begin, begin + numSets(), [](real charge) { return charge != 0; });
}

double DispersionCharges::c6(int i, int j) const
{
    double sum = 0;
    for (int set = 0; set < numSets(); set++)
    {
        sum += signs_[set] * charge(i, set) * charge(j, set);
    }
    return sum;
}

double DispersionCharges::c6OfTopology(int i, int j) const
{
    return mtop_.ffparams.iparams[i * mtop_.ffparams.atnr + j].lj.c6;
}

double DispersionCharges::c6Left(int i, int j) const
{
    // Charges and parameters of pair kernels are in single precision
    constexpr double c_rounding = 1e-6;
    const double     all        = c6OfTopology(i, j);
    const double     left       = all - c6(i, j);
    return std::abs(left) < c_rounding * std::abs(all) ? 0 : left;
}

} // namespace gmx
