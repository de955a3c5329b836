/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A basis for the expansions of a family in which operators related by symmetry share
 *         their products.
 *
 *  The eight children of a parent, n coefficients each, are one column X of a matrix. The family
 *  whose parent is displaced by E acts on it with a matrix T_E of 8 x 8 blocks T(2E + o - s), o and
 *  s the octants of target and source. For a symmetry g of the cell (a product of reflections)
 *
 *      T_gE = Q_g T_E Q_g,    (Q_g X)_(o,i) = sign_i(g) X_(o xor g, i).
 *
 *  The Q_g commute, and the Walsh-Hadamard transform over octants, X^_(c,i) = sum_o (-1)^(c.o)
 *  X_(o,i), makes all of them diagonal: with b_i the bits for which sign_i(g) = (-1)^(b_i.g), and
 *  a = c xor b_i, Q_g multiplies X^_(a,i) with the character (-1)^(a.g). So the sum over an orbit
 *
 *      L^_a = sum_gE T^_gE X^(gE) = sum_a' (T^_E)_aa' Y_(psi,a'),
 *      Y_(psi,a') = sum_g (-1)^(psi.g) X^_a'(gE),    psi = a xor a',
 *
 *  takes one product per block of T^_E instead of one per block and member: an eighth of the work
 *  in a rectangular box (all reflections), half in any box (inversion). Blocks whose psi is not 1
 *  on the g that leave E as it is vanish.
 *
 *  Rows are sorted into classes of equal character: a itself, or the parity of a where inversion
 *  is the only symmetry. Serre, Linear Representations of Finite Groups (1977), section 2.6,
 *  doi:10.1007/978-1-4684-9458-7.
 */
#ifndef FARFIELD_KERNELS_M2L_FAMILY_BASIS_H
#define FARFIELD_KERNELS_M2L_FAMILY_BASIS_H

#include <algorithm>
#include <vector>

#include "operators/m2l_list_operators.h"
#include "runtime/layout.h"

namespace farfield
{

//! Displacements of parents that are related by symmetry.
struct FamilyOrbit
{
    int E[3];         //!< the first of them
    int bits;         //!< there are 2^bits of them
    int neighbour[8]; //!< neighbourIndex() of each
    int shift[8];     //!< the psi: exclusive or of the classes of target and source
    int unit;         //!< first unit (stretch of the inner dimension of the product)
};

//! How rows are sorted; plain data for kernels.
struct FamilyBasis
{
    int n;           //!< coefficients
    int classes;     //!< 8 with all reflections, 2 with inversion only
    int rows;        //!< of a class: 8 n / classes
    int padded;      //!< the same, a multiple of 4
    int units;       //!< stretches of the inner dimension: all E of a class
    int paddedUnits; //!< the same with a few more divisors
    int orbits;

    FARFIELD_HD int width() const { return classes * padded; }
    FARFIELD_HD static int parity(int a) { return (a ^ (a >> 1) ^ (a >> 2)) & 1; }
    FARFIELD_HD int classOf(int a) const { return classes == 8 ? a : parity(a); }
    //! Which of the characters of its class a is.
    FARFIELD_HD int memberOf(int a) const { return classes == 8 ? 0 : a >> 1; }
    FARFIELD_HD int position(int a, int i) const
    {
        return classOf(a) * padded + memberOf(a) * n + i;
    }
    //! Rows of a character with the padding that follows the last of its class.
    FARFIELD_HD int paddedMember() const { return classes == 8 ? padded : n; }
};

template<class Real>
FARFIELD_HD Real4<Real> operator+(const Real4<Real>& a, const Real4<Real>& b)
{
    return { a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w };
}
template<class Real>
FARFIELD_HD Real4<Real> operator-(const Real4<Real>& a, const Real4<Real>& b)
{
    return { a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w };
}

//! v[c] = sum_o (-1)^(c.o) v[o].
template<int bits, class Real>
FARFIELD_HD void walsh(Real* v)
{
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int b = 0; b < bits; b++)
    {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (int o = 0; o < (1 << bits); o++)
        {
            if (!(o & (1 << b)))
            {
                const Real sum        = v[o] + v[o | (1 << b)];
                const Real difference = v[o] - v[o | (1 << b)];
                v[o]                  = sum;
                v[o | (1 << b)]       = difference;
            }
        }
    }
}

/*! \brief A block of T^_E at coefficients (i, j), from T(2E + d)_ij.
 *
 *  (1/64) sum over octants o, s with o - s = d of (-1)^(c.o + c'.s) T(2E + d): 1/64 makes the
 *  transform of the result the sum over octants, without a factor.
 *  \param[in] T  [27], d_x fastest; zero where d leads to a near cell */
template<class Real>
FARFIELD_HD Real basisElement(const Real* T, int c, int cSource)
{
    Real z = 0;
    for (int dz = 0; dz < 3; dz++)
    {
        Real y = 0;
        for (int dy = 0; dy < 3; dy++)
        {
            const Real* v = T + 9 * dz + 3 * dy;
            const Real x  = (cSource & 1 ? -v[0] : v[0]) + (c & 1 ? -v[2] : v[2])
                           + ((c ^ cSource) & 1 ? Real(0) : 2 * v[1]);
            const Real w = (dy == 0)   ? (cSource & 2 ? Real(-1) : Real(1))
                           : (dy == 2) ? (c & 2 ? Real(-1) : Real(1))
                                       : ((c ^ cSource) & 2 ? Real(0) : Real(2));
            y += w * x;
        }
        const Real w = (dz == 0)   ? (cSource & 4 ? Real(-1) : Real(1))
                       : (dz == 2) ? (c & 4 ? Real(-1) : Real(1))
                                   : ((c ^ cSource) & 4 ? Real(0) : Real(2));
        z += w * y;
    }
    return z / 64;
}

//! The bits b_i of each coefficient.
inline std::vector<unsigned char> reflectionBits(int order)
{
    std::vector<unsigned char> bits(coefficientCount(order), 0);
    for (int axis = 0; axis < 3; axis++)
    {
        const std::vector<int> signs = reflectionSigns(order, 1 << axis);
        for (size_t i = 0; i < bits.size(); i++)
        {
            bits[i] |= static_cast<unsigned char>(signs[i] < 0 ? 1 << axis : 0);
        }
    }
    return bits;
}

//! Sorts the displacements of parents into orbits.
inline FamilyBasis
makeFamilyBasis(int order, int ws, bool reflections, std::vector<FamilyOrbit>* orbits)
{
    FamilyBasis basis;
    basis.n       = coefficientCount(order);
    basis.classes = reflections ? 8 : 2;
    basis.rows    = 8 * basis.n / basis.classes;
    basis.padded  = (basis.rows + 3) / 4 * 4;
    basis.units   = 0;
    orbits->clear();
    for (int z = reflections ? 0 : -ws; z <= ws; z++)
    {
        for (int y = reflections ? 0 : -ws; y <= ws; y++)
        {
            for (int x = reflections ? 0 : -ws; x <= ws; x++)
            {
                const bool first = z > 0 || (z == 0 && (y > 0 || (y == 0 && x > 0)));
                if (!first)
                {
                    continue;
                }
                FamilyOrbit orbit = {};
                orbit.E[0]        = x;
                orbit.E[1]        = y;
                orbit.E[2]        = z;
                orbit.unit        = basis.units;
                // generators: reflections of axes that change E, or the inversion
                int generators[3] = { 7, 0, 0 };
                orbit.bits        = reflections ? 0 : 1;
                for (int axis = 0; axis < 3 && reflections; axis++)
                {
                    if (orbit.E[axis] != 0)
                    {
                        generators[orbit.bits++] = 1 << axis;
                    }
                }
                for (int g = 0; g < (1 << orbit.bits); g++)
                {
                    int axes = 0;
                    for (int bit = 0; bit < orbit.bits; bit++)
                    {
                        axes |= (g >> bit) & 1 ? generators[bit] : 0;
                    }
                    orbit.neighbour[g] = neighbourIndex(
                            ws, axes & 1 ? -x : x, axes & 2 ? -y : y, axes & 4 ? -z : z);
                    orbit.shift[g] = reflections ? axes : g;
                }
                basis.units += 1 << orbit.bits;
                orbits->push_back(orbit);
            }
        }
    }
    const int divisor = basis.units > 32 ? 16 : 4;
    basis.paddedUnits = (basis.units + divisor - 1) / divisor * divisor;
    basis.orbits      = static_cast<int>(orbits->size());
    return basis;
}

//! The operators of the children of two parents displaced by E: [27][n][n], zero for near cells.
template<class Real>
void childOperators(const ListM2lOperators<Real>& operators, const int* E, std::vector<Real>* T)
{
    const size_t size = static_cast<size_t>(coefficientCount(operators.order()))
                        * coefficientCount(operators.order());
    T->assign(27 * size, Real(0));
    for (int d = 0; d < 27; d++)
    {
        const int k = operators.find(
                { 2 * E[0] + d % 3 - 1, 2 * E[1] + d / 3 % 3 - 1, 2 * E[2] + d / 9 - 1 });
        if (k >= 0)
        {
            const auto& from = operators.operators()[k].T;
            std::copy(from.begin(), from.end(), T->begin() + d * size);
        }
    }
}

} // namespace farfield

#endif
