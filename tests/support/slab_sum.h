/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Slabs, periodic along the first two box vectors and open along z, and sums over them.
 */
#ifndef FARFIELD_TESTS_SLAB_SUM_H
#define FARFIELD_TESTS_SLAB_SUM_H

#include <vector>

#include "reference.h"

namespace farfield
{
namespace test
{

/*! \brief The Ewald sum in two dimensions, over every pair, every image and every wave vector.
 *
 *  Parry, Surf. Sci. 49, 433 (1975), doi:10.1016/0039-6028(75)90362-3, in the form of de Leeuw and
 *  Perram, Mol. Phys. 37, 1313 (1979), doi:10.1080/00268977900100951: with F(z) = exp(G z) erfc(G/2a
 *  + a z) and the area A, a pair has, beyond what is screened in real space,
 *
 *      pi/A sum_G cos(G.r) (F(z) + F(-z)) / G - 2 sqrt(pi)/A (exp(-a^2 z^2)/a + sqrt(pi) z erf(a z)).
 *
 *  No cut-off along z, no vacuum, no correction. The third box vector is not read, and the virial is
 *  not set; see virialOfSlab().
 *  \param[in] splitting  Ewald parameter, 1/nm; the result does not depend on it */
Evaluation slabSum(const System& system, double splitting);

/*! \brief The virial from differences of energies of slabs that are strained.
 *
 *  A strain moves all coordinates and the first two box vectors; there is nothing else. */
Matrix virialOfSlab(const System& system, double splitting);

/*! \brief The Ewald sum over slabs that are stacked with vacuum between them, with the correction of
 *         Yeh and Berkowitz, J. Chem. Phys. 111, 3155 (1999), doi:10.1063/1.479595, for net charges
 *         as well: Ballenegger, Arnold and Cerda, J. Chem. Phys. 131, 094107 (2009),
 *         doi:10.1063/1.3216473.
 *
 *  For thousands of charges; the error decays as exp(-2 pi vacuum / longer box edge).
 *  \param[in]  vacuum      nm
 *  \param[out] magnitudes  as of fastEwald() */
Evaluation stackedSlabs(const System& system,
                        double vacuum,
                        std::vector<double>* magnitudes = nullptr);

} // namespace test
} // namespace farfield

#endif
