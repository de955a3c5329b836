/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The most compact box of a lattice, and what follows from it. For host and device.
 */
#ifndef FARFIELD_BATCH_COMPACT_BOX_H
#define FARFIELD_BATCH_COMPACT_BOX_H

#include <algorithm>
#include <cmath>

#include "base/host_device.h"

namespace farfield
{

FARFIELD_HD double dotOf(const double* a, const double* b)
{
    return a[0] * b[0] + (a[1] * b[1] + a[2] * b[2]);
}
//! The same, added up in another order.
FARFIELD_HD double dotFromLeft(const double* a, const double* b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
//! Of rows, with sign.
FARFIELD_HD double determinantOf(const double* m)
{
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6])
           + m[2] * (m[3] * m[7] - m[4] * m[6]);
}
//! Of rows. \param[out] to  rows
FARFIELD_HD void invert(const double* m, double* to)
{
    const double column[] = { m[4] * m[8] - m[5] * m[7],
                              m[7] * m[2] - m[8] * m[1],
                              m[1] * m[5] - m[2] * m[4] };
    const double first[]  = { m[0], m[3], m[6] };
    const double inverse  = 1 / dotFromLeft(column, first);
    to[0]                 = column[0] * inverse;
    to[1]                 = column[1] * inverse;
    to[2]                 = column[2] * inverse;
    to[3]                 = (m[5] * m[6] - m[3] * m[8]) * inverse;
    to[4]                 = (m[8] * m[0] - m[6] * m[2]) * inverse;
    to[5]                 = (m[2] * m[3] - m[0] * m[5]) * inverse;
    to[6]                 = (m[3] * m[7] - m[4] * m[6]) * inverse;
    to[7]                 = (m[6] * m[1] - m[7] * m[0]) * inverse;
    to[8]                 = (m[0] * m[4] - m[1] * m[3]) * inverse;
}

//! Shortens a row by the multiple of another vector that brings it nearest to zero. \returns whether it did
FARFIELD_HD bool shorten(double* row, const double* by)
{
    constexpr double c_rounding = 1e-12;
    const double multiple       = std::round(dotOf(row, by) / dotOf(by, by));
    const double now[]          = { row[0] - multiple * by[0],
                                    row[1] - multiple * by[1],
                                    row[2] - multiple * by[2] };
    if (multiple == 0 || !(dotOf(now, now) < (1 - c_rounding) * dotOf(row, row)))
    {
        return false;
    }
    for (int d = 0; d < 3; d++)
    {
        row[d] = now[d];
    }
    return true;
}

//! Shortens each row by the others, their sum and their difference. \returns whether it did
FARFIELD_HD bool shortenAny(double* box)
{
    bool isShorter = false;
    FARFIELD_ROLLED for (int i = 0; i < 3; i++)
    {
        const double* const one   = box + 3 * ((i + 1) % 3);
        const double* const other = box + 3 * ((i + 2) % 3);
        FARFIELD_ROLLED for (int k = 0; k < 4; k++)
        {
            double by[3];
            for (int d = 0; d < 3; d++)
            {
                by[d] = k == 0   ? one[d]
                        : k == 1 ? other[d]
                        : k == 2 ? one[d] + other[d]
                                 : one[d] - other[d];
            }
            isShorter = shorten(box + 3 * i, by) || isShorter;
        }
    }
    return isShorter;
}

/*! \brief Short vectors of a lattice, so that a cut-off reaches few images.
 *
 *  Each is no longer than with multiples of the others added (Minkowski's conditions with
 *  coefficients up to 1). */
struct CompactBox
{
    double vectors[9];  //!< rows, nm
    double inverse[9];  //!< rows; columns are reciprocal vectors, 1/nm
    double heights[3];  //!< distances of opposite faces, nm
    double volume;      //!< nm^3
    bool isRectangular; //!< vectors are at right angles
};

//! \param[in] box  rows, nm, with a volume
FARFIELD_HD CompactBox compactBox(const double* box)
{
    // each round shortens a vector; rounds are few, as in Euclid's algorithm
    constexpr int c_mostRounds = 1000;
    CompactBox compact;
    double* const v = compact.vectors;
    for (int k = 0; k < 9; k++)
    {
        v[k] = box[k];
    }
    FARFIELD_ROLLED for (int round = 0; round < c_mostRounds && shortenAny(v); round++) {}
    invert(v, compact.inverse);
    compact.volume        = std::abs(determinantOf(v));
    compact.isRectangular = true;
    for (int i = 0; i < 3; i++)
    {
        const double column[] = { compact.inverse[i],
                                  compact.inverse[3 + i],
                                  compact.inverse[6 + i] };
        compact.heights[i]    = 1 / std::sqrt(dotFromLeft(column, column));
        const double* const a = v + 3 * i;
        const double* const b = v + 3 * ((i + 1) % 3);
        const double both     = std::sqrt(dotOf(a, a)) * std::sqrt(dotOf(b, b));
        compact.isRectangular = compact.isRectangular && std::abs(dotOf(a, b)) < 1e-9 * both;
    }
    return compact;
}

//! A number of images that is refused: memory and time of a box that is far too flat or too long.
constexpr double c_mostImages = 1 << 27;

//! Images of so many particles that are within a cut-off around the box.
FARFIELD_HD double imagesWithin(const CompactBox& box, double cutoff, int n)
{
    double images = n;
    for (int k = 0; k < 3; k++)
    {
        images *= 1 + 2 * cutoff / box.heights[k];
    }
    return images;
}

/*! \brief The largest component of what is so many box vectors and cut-offs long, nm.
 *  \param[in] boxes, cutoffs  a coordinate along a vector is up to boxes + cutoffs cutoff / height */
FARFIELD_HD double extentOf(const CompactBox& box, double cutoff, double boxes, double cutoffs)
{
    double extent = 0;
    for (int d = 0; d < 3; d++)
    {
        double component = 0;
        for (int k = 0; k < 3; k++)
        {
            component +=
                    (boxes + cutoffs * cutoff / box.heights[k]) * std::abs(box.vectors[3 * k + d]);
        }
        extent = std::max(extent, component);
    }
    return extent;
}

/*! \brief Distances below this are rounding of coordinates within the cut-off around the box, nm.
 *  \param[in] epsilon  of the caller's coordinates */
FARFIELD_HD double placesRounding(const CompactBox& box, double cutoff, double epsilon)
{
    // coordinates are about the centre of the box; of the caller's coordinates, too
    return 2 * epsilon * extentOf(box, cutoff, 0.5, 1);
}

} // namespace farfield

#endif
