/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which columns of waves are within a cut-off. For host and device.
 */
#ifndef FARFIELD_BATCH_WAVE_BALL_H
#define FARFIELD_BATCH_WAVE_BALL_H

#include <algorithm>
#include <cmath>

#include "base/host_device.h"
#include "batch/compact_box.h"

namespace farfield
{

//! A number of waves that is refused: memory and time.
constexpr double c_mostWaves = 1 << 27;

//! Waves within a cut-off.
struct WaveBall
{
    double products[5]; //!< of reciprocal vectors: 00 11 01 02 12, 1/nm^2
    double perStep;     //!< over the square of the third one, nm^2
    double square;      //!< of the cut-off, 1/nm^2
    int most[2];        //!< no column is beyond these h and k
    double waves;       //!< no more waves than this, of one sign of h, k and l

    //! \param[in] waves  rows are reciprocal vectors, 1/nm \param[in] cutoff  1/nm
    FARFIELD_HD WaveBall(const double* waves, double cutoff);
    //! The largest l of a column; -1: there is no such column.
    FARFIELD_HD int lastOf(int h, int k) const;
};

FARFIELD_HD WaveBall::WaveBall(const double* rows, double cutoff) :
    products{ dotFromLeft(rows, rows),
              dotFromLeft(rows + 3, rows + 3),
              dotFromLeft(rows, rows + 3),
              dotFromLeft(rows, rows + 6),
              dotFromLeft(rows + 3, rows + 6) },
    perStep(1 / dotFromLeft(rows + 6, rows + 6)), square(cutoff * cutoff), waves(1)
{
    double inverse[9];
    invert(rows, inverse);
    for (int axis = 0; axis < 3; axis++)
    {
        const double vector[] = { 2 * M_PI * inverse[axis],
                                  2 * M_PI * inverse[3 + axis],
                                  2 * M_PI * inverse[6 + axis] };
        // more than an integer can have are too many waves, too
        const double along =
                std::min(cutoff / (2 * M_PI) * std::sqrt(dotFromLeft(vector, vector)), 1e9);
        const int last = static_cast<int>(along);
        waves *= 1.0 + last;
        if (axis < 2)
        {
            most[axis] = last;
        }
    }
}

FARFIELD_HD int WaveBall::lastOf(int h, int k) const
{
    int last = -1;
    for (int sign = -1; sign <= 1; sign += 2)
    {
        // along the third axis these are a ball's centre and its squared half chord
        const double own = h, other = sign * k;
        const double across = own * own * products[0] + other * other * products[1]
                              + 2 * own * other * products[2];
        const double nearest = (own * products[3] + other * products[4]) * perStep;
        const double left    = (square - across) * perStep + nearest * nearest;
        if (left >= 0)
        {
            last = std::max(last, static_cast<int>(std::abs(nearest) + std::sqrt(left)));
        }
    }
    return last;
}

} // namespace farfield

#endif
