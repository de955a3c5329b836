/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief About how strong forces are, from the neighbours of a few particles. For host and device.
 */
#ifndef FARFIELD_BATCH_NEAR_FORCES_H
#define FARFIELD_BATCH_NEAR_FORCES_H

#include <cmath>

#include "base/host_device.h"

namespace farfield
{

//! So many particles are looked at, at most.
constexpr int c_samples = 16;
//! The RMS force is at least about this part of the middle one of near forces, but where forces cancel.
constexpr double c_partOfNearForces = 0.8;

FARFIELD_HD int samplesOf(int n)
{
    return n < c_samples ? n : c_samples;
}
//! The particle of a sample: spread evenly, in no step with the particles of molecules.
FARFIELD_HD int particleOfSample(int sample, int n)
{
    const double turns = 0.6180339887498949 * (sample + 0.5);
    return n <= c_samples ? sample : static_cast<int>(n * (turns - std::floor(turns)));
}

//! Forces that decay within the distance of typical neighbours.
struct NearForces
{
    float vectors[9]; //!< rows of the box, nm
    float perSquare;  //!< 1/nm^2
    float softness;   //!< nm^2, of Gaussian charges

    /*! \param[in] rows      of a compact box, nm
     *  \param[in] volume    that particles are in, nm^3
     *  \param[in] smearing  see BatchOptions */
    FARFIELD_HD NearForces(const double* rows, double volume, int n, double smearing)
    {
        for (int k = 0; k < 9; k++)
        {
            vectors[k] = static_cast<float>(rows[k]);
        }
        perSquare = static_cast<float>(std::pow(n / volume, 2.0 / 3));
        softness  = static_cast<float>(2 * smearing * smearing);
    }

    /*! \brief Adds the force on a target, in units of charges over squared distances.
     *  \param[in] target, source  fractional coordinates; at the same place there is no force
     *  \param[in] charges         their product */
    FARFIELD_HD void
    add(const double* target, const double* source, float charges, float* force) const
    {
        float d[3];
        for (int k = 0; k < 3; k++)
        {
            const double apart = target[k] - source[k];
            d[k]               = static_cast<float>(apart - std::rint(apart));
        }
        float r[3], square = 0;
        for (int k = 0; k < 3; k++)
        {
            r[k] = d[0] * vectors[k] + d[1] * vectors[3 + k] + d[2] * vectors[6 + k];
            square += r[k] * r[k];
        }
        const float soft = square + softness;
        const float factor =
                square > 0 ? charges * std::exp(-perSquare * square) / (soft * std::sqrt(soft)) : 0;
        for (int k = 0; k < 3; k++)
        {
            force[k] += factor * r[k];
        }
    }
};

//! The middle one of numbers, of which one that is negative is left out; 0 if there are none. Sorts them.
FARFIELD_HD double middleOf(float* values, int count)
{
    int left = 0;
    for (int k = 0; k < count; k++)
    {
        const float own = values[k];
        int at          = left;
        for (; own >= 0 && at > 0 && values[at - 1] > own; at--)
        {
            values[at] = values[at - 1];
        }
        if (own >= 0)
        {
            values[at] = own;
            left++;
        }
    }
    return left > 0 ? static_cast<double>(values[left / 2]) : 0;
}

} // namespace farfield

#endif
