/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a wave vector gives, from sums over products of phases. For host and device.
 */
#ifndef FARFIELD_BATCH_WAVE_TERMS_H
#define FARFIELD_BATCH_WAVE_TERMS_H

#include <cmath>

#include "base/host_device.h"

namespace farfield
{

//! Waves (h, k, l) with h, k >= 0 and 0 <= l <= last, whatever the signs of k and l.
struct WaveColumn
{
    int h, k, last;
    int first; //!< number of (h, k, l) in the columns before
};

/*! \brief Products of phases along the three axes, each a cosine or a sine.
 *
 *  A group of waves (+-h, +-k, +-l) needs these eight: first axis, second, third; the last varies
 *  slowest. */
enum WaveProduct
{
    CCC,
    SCC,
    CSC,
    SSC,
    CCS,
    SCS,
    CSS,
    SSS,
    WaveProducts
};

/*! \brief What is taken off a fractional coordinate before its phase is computed.
 *
 *  Small coordinates have small rounding. Those of a slab along its normal are near 1/2. */
FARFIELD_HD double originOfPhases(double f, int axis, bool isSlab)
{
    return isSlab && axis == 2 ? 0.5 : std::rint(f);
}

//! Structure factors of tangents: of q, q', and q times the three components of v.
constexpr int c_tangentSets = 5;

//! A structure factor S(k).
struct StructureFactor
{
    double re, im;
};

//! A wave vector.
struct WaveVector
{
    double k[3];   //!< 1/nm
    double square; //!< k^2, 1/nm^2
    double weight; //!< w, kJ/mol/e^2
};

//! The first sign of k of a column: of opposite waves one, and each once.
FARFIELD_HD int firstSignK(const WaveColumn& column)
{
    return column.k > 0 && column.h > 0 ? -1 : 1;
}
//! The first sign of l.
FARFIELD_HD int firstSignL(const WaveColumn& column)
{
    return column.h == 0 && column.k == 0 ? 1 : -1;
}
//! Whether a wave counts with this sign of l: there is no wave 0, and l = 0 has one sign.
FARFIELD_HD bool countsWith(const WaveColumn& column, int signL, int l)
{
    return l != 0 || (signL > 0 && (column.h != 0 || column.k != 0));
}

//! S(k) from its products.
template<class Real>
FARFIELD_HD StructureFactor structureFactor(const Real* s, int signK, int signL)
{
    return { static_cast<double>(s[CCC] - signK * s[SSC] - signL * (s[SCS] + signK * s[CSS])),
             static_cast<double>(s[SCC] + signK * s[CSC] + signL * (s[CCS] - signK * s[SSS])) };
}

//! Adds factor Re(S* exp(i k r)) to the weights of the products.
FARFIELD_HD void addWave(double factor, StructureFactor s, int signK, int signL, double* weights)
{
    const double a = factor * s.re, b = factor * s.im;
    weights[CCC] += a;
    weights[SSC] -= signK * a;
    weights[SCC] += b;
    weights[CSC] += signK * b;
    weights[CCS] += signL * b;
    weights[SSS] -= signL * signK * b;
    weights[SCS] -= signL * a;
    weights[CSS] -= signL * signK * a;
}

//! The energy of a wave, kJ/mol.
FARFIELD_HD double energyOf(const WaveVector& wave, StructureFactor s)
{
    return wave.weight * (s.re * s.re + s.im * s.im);
}

//! Adds factor a (x) b + b (x) a, halved, to a symmetric tensor: xx yy zz xy xz yz.
FARFIELD_HD void addProduct(double factor, const double* a, const double* b, double* tensor)
{
    tensor[0] += factor * a[0] * b[0];
    tensor[1] += factor * a[1] * b[1];
    tensor[2] += factor * a[2] * b[2];
    tensor[3] += 0.5 * factor * (a[0] * b[1] + a[1] * b[0]);
    tensor[4] += 0.5 * factor * (a[0] * b[2] + a[2] * b[0]);
    tensor[5] += 0.5 * factor * (a[1] * b[2] + a[2] * b[1]);
}
//! Adds a multiple of the unit tensor.
FARFIELD_HD void addUnit(double factor, double* tensor)
{
    tensor[0] += factor;
    tensor[1] += factor;
    tensor[2] += factor;
}

/*! \brief Adds the virial of a wave of this energy.
 *  \param[in]     inverse  1 / 4a^2, nm^2
 *  \param[in,out] virial   kJ/mol, xx yy zz xy xz yz */
FARFIELD_HD void
addWaveVirial(const WaveVector& wave, double energy, double inverse, double* virial)
{
    addProduct(energy * (1 / wave.square + inverse), wave.k, wave.k, virial);
    addUnit(-0.5 * energy, virial);
}

//! What a strain does to a wave.
struct StrainedWave
{
    double turned[3]; //!< strain k
    double along;     //!< k strain k
    double rho;       //!< w' = rho w
};

//! \param[in] strain  rows, B' = B strain
FARFIELD_HD StrainedWave strainedWave(const WaveVector& wave, const double* strain, double inverse)
{
    StrainedWave result = {};
    for (int a = 0; a < 3; a++)
    {
        for (int b = 0; b < 3; b++)
        {
            result.turned[a] += strain[3 * a + b] * wave.k[b];
        }
        result.along += wave.k[a] * result.turned[a];
    }
    result.rho =
            2 * (1 / wave.square + inverse) * result.along - (strain[0] + strain[4] + strain[8]);
    return result;
}

/*! \brief S' of a wave, from structure factors of all sets.
 *  \param[in] numbers  h, k, l with their signs */
FARFIELD_HD StructureFactor movedFactor(const StructureFactor* s, const int* numbers)
{
    StructureFactor turn = { 0, 0 };
    for (int axis = 0; axis < 3; axis++)
    {
        turn.re += numbers[axis] * s[2 + axis].re;
        turn.im += numbers[axis] * s[2 + axis].im;
    }
    return { s[1].re - turn.im, s[1].im + turn.re };
}

//! Adds the derivative of the virial of a wave. \param[in] s, moved  S and S'
FARFIELD_HD void addVirialTangent(const WaveVector& wave,
                                  const StrainedWave& strained,
                                  StructureFactor s,
                                  StructureFactor moved,
                                  double inverse,
                                  double* virial)
{
    const double both   = 1 / wave.square + inverse;
    const double energy = energyOf(wave, s);
    const double change =
            strained.rho * energy + 2 * wave.weight * (s.re * moved.re + s.im * moved.im);
    addProduct(change * both + 2 * energy * strained.along / (wave.square * wave.square),
               wave.k,
               wave.k,
               virial);
    addProduct(-2 * energy * both, strained.turned, wave.k, virial);
    addUnit(-0.5 * change, virial);
}

} // namespace farfield

#endif
