/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over displacements as a transform leaves them.
 */
#ifndef FARFIELD_OPERATORS_WAVE_SUMS_H
#define FARFIELD_OPERATORS_WAVE_SUMS_H

#include "base/aligned_vector.h"

namespace farfield
{

/*! \brief Sums w of harmonics of one degree, from the transform of their terms.
 *
 *  W = i^l w: the real part for even l, the imaginary part for odd l. */
class WaveSums
{
public:
    WaveSums(int l, const AlignedVector<double>& transformed) :
        sign_((l / 2) % 2 ? -1 : 1), part_(l % 2), transformed_(transformed)
    {
    }
    double of(int wave) const
    {
        return sign_ * transformed_[2 * static_cast<size_t>(wave) + part_];
    }

private:
    double sign_;
    int part_;
    const AlignedVector<double>& transformed_;
};

} // namespace farfield

#endif
