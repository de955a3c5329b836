/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Where wave vectors, their phases and their operators lie on the device. For host and
 *         device.
 */
#ifndef FARFIELD_KERNELS_M2L_PERIODIC_INDEX_H
#define FARFIELD_KERNELS_M2L_PERIODIC_INDEX_H

#include <cmath>

#include "base/vectors.h"
#include "runtime/layout.h"

namespace farfield
{

//! A complex number that is loaded at once.
template<class Real>
struct alignas(2 * sizeof(Real)) Complex
{
    Real re, im;
};

//! A row of numbers in shared memory that a thread reads as vectors.
template<class Real, int Columns>
struct alignas((Columns * sizeof(Real) < 16) ? Columns * sizeof(Real) : 16) Row
{
    Real value[Columns];
};

//! Elements of a packed symmetric operator before row i: rows of the lower triangle.
FARFIELD_HD int triangle(int i)
{
    return i * (i + 1) / 2;
}

/*! \brief The wave vectors of a grid as stored by a transform of real fields.
 *
 *  The last dimension longer than 1 is halved. Representatives and copies as in
 *  PeriodicM2lOperators; copies that the halving makes redundant are left out too. */
struct WaveGrid
{
    int lengths[3]; //!< Grid::lengths()
    int ranges[3];  //!< of the representatives
    int copies;     //!< 4 or 1
    int halved;     //!< dimension that is halved
    int stored[3];  //!< extent of the spectrum of a field
    int stride;     //!< distance of coefficients in the spectrum

    //! Where a copy of the representative (z, y, x) is stored, -1 if it is not.
    FARFIELD_HD int wave(int z, int y, int x, int copy) const
    {
        const int cz = (copy & 1) ? (z == 0 ? 0 : lengths[0] - z) : z;
        const int cy = (copy & 2) ? (y == 0 ? 0 : lengths[1] - y) : y;
        // a wave vector on a mirror plane is its own image
        const bool repeated = ((copy & 1) && cz == z) || ((copy & 2) && cy == y);
        if (repeated || cz >= stored[0] || cy >= stored[1])
        {
            return -1;
        }
        return (cz * stored[1] + cy) * stored[2] + x;
    }
    //! How often a stored copy of the representative (z, y, x) counts in a sum over all wave
    //! vectors.
    FARFIELD_HD int multiplicity(int z, int y, int x) const
    {
        const int last   = (halved == 2) ? x : (halved == 1) ? y : z;
        const int length = (halved == 2) ? lengths[2] : (halved == 1) ? lengths[1] : lengths[0];
        return (last == 0 || 2 * last == length) ? 1 : 2;
    }
};

//! The wave vectors of a grid, with spectra a few lines apart.
inline WaveGrid waveGrid(const Int3& lengths, const Int3& ranges, int copies)
{
    WaveGrid w = {};
    w.copies   = copies;
    w.halved   = (lengths[2] > 1) ? 2 : (lengths[1] > 1) ? 1 : (lengths[0] > 1) ? 0 : 2;
    for (int k = 0; k < 3; k++)
    {
        w.lengths[k] = lengths[k];
        w.ranges[k]  = ranges[k];
        w.stored[k]  = (k == w.halved) ? lengths[k] / 2 + 1 : lengths[k];
    }
    const int waves = w.stored[0] * w.stored[1] * w.stored[2];
    // an odd number of lines: neighbouring coefficients are not in the same part of the memory
    w.stride = ((waves + 15) / 16 | 1) * 16;
    return w;
}

//! The neighbouring representatives that a block of threads works on.
class BlockOfWaves
{
public:
    FARFIELD_HD BlockOfWaves(const WaveGrid& waves, int width, int block) : waves_(waves)
    {
        const int perRow = (waves.ranges[2] + width - 1) / width;
        row_             = block / perRow;
        x0_              = (block - row_ * perRow) * width;
        z_               = row_ / waves.ranges[1];
        y_               = row_ - z_ * waves.ranges[1];
    }
    //! Whether there is one; the last block of a row may have fewer than the others.
    FARFIELD_HD bool has(int member) const { return x0_ + member < waves_.ranges[2]; }
    //! Its number among all representatives.
    FARFIELD_HD int representative(int member) const
    {
        return row_ * waves_.ranges[2] + x0_ + member;
    }
    //! Where a copy of it is stored, -1 if it is not.
    FARFIELD_HD int wave(int member, int copy) const
    {
        return has(member) ? waves_.wave(z_, y_, x0_ + member, copy) : -1;
    }

private:
    const WaveGrid& waves_;
    int row_, z_, y_, x0_;
};

/*! \brief Phase and sign of a coefficient: M (-i)^l and L i^l, times the signs of the reflections.
 */
struct Phase
{
    bool swap;     //!< real and imaginary part change places
    bool negateRe; //!< of X = (-i)^l M
    bool negateIm;

    FARFIELD_HD Phase(int coefficient, int copy)
    {
        const int l     = degree(coefficient);
        const int k     = coefficient - l * l; // l + m
        const bool sign = (((copy & 1) != 0) && (k & 1)) != (((copy & 2) != 0) && k < l);
        swap            = (l & 1) != 0;
        negateRe        = sign != ((l & 2) != 0);
        negateIm        = sign != (((l + 1) & 2) != 0);
    }
    //! Takes up what code() gave.
    FARFIELD_HD explicit Phase(unsigned int code) :
        swap((code & 1U) != 0), negateRe((code & 2U) != 0), negateIm((code & 4U) != 0)
    {
    }
    FARFIELD_HD unsigned int code() const
    {
        return (swap ? 1U : 0U) | (negateRe ? 2U : 0U) | (negateIm ? 4U : 0U);
    }
    template<class Real>
    FARFIELD_HD Complex<Real> forward(Complex<Real> v) const
    {
        const Real re = swap ? v.im : v.re;
        const Real im = swap ? v.re : v.im;
        return { negateRe ? -re : re, negateIm ? -im : im };
    }
    template<class Real>
    FARFIELD_HD Complex<Real> backward(Complex<Real> v) const
    {
        const Real re = negateRe ? -v.re : v.re;
        const Real im = negateIm ? -v.im : v.im;
        return { swap ? im : re, swap ? re : im };
    }

private:
    //! l of a coefficient; half a unit keeps the roots far from whole numbers.
    FARFIELD_HD static int degree(int coefficient)
    {
        const float square = static_cast<float>(coefficient) + 0.5F;
#if defined(__CUDA_ARCH__)
        float root;
        asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square));
        return static_cast<int>(root);
#else
        return static_cast<int>(sqrtf(square));
#endif
    }
};

} // namespace farfield

#endif
