/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The shortest image of a displacement; for host and device.
 */
#ifndef FARFIELD_CELLS_MINIMUM_IMAGE_H
#define FARFIELD_CELLS_MINIMUM_IMAGE_H

#include <cmath>

#include "base/host_device.h"

namespace farfield
{

//! A box of any shape, with what the search for shortest images needs. Plain data.
struct MinimumImage
{
    double box[3][3]; //!< rows, lower triangular, nm
    double half[3];   //!< half of the diagonal
    double safe2;     //!< nm^2: below this squared length no other image can be shorter
    bool rectangular;
    double inverse[2]; //!< of the first two elements of the diagonal
    int reach[2];      //!< multiples of the last two vectors that lead to shorter images, at most

    //! \param[in] vectors  rows, lower triangular: anything with vectors(i, j)
    template<class BoxVectors>
    static MinimumImage of(const BoxVectors& vectors)
    {
        MinimumImage image;
        image.rectangular = true;
        // the shortest lattice vector is at least the smallest diagonal element
        double shortest = vectors(0, 0) * vectors(0, 0);
        for (int i = 0; i < 3; i++)
        {
            for (int j = 0; j < 3; j++)
            {
                image.box[i][j]   = vectors(i, j);
                image.rectangular = image.rectangular && (i == j || vectors(i, j) == 0);
            }
            image.half[i]       = 0.5 * vectors(i, i);
            const double square = vectors(i, i) * vectors(i, i);
            shortest            = square < shortest ? square : shortest;
        }
        image.safe2 = 0.25 * shortest;
        // no component of a rounded image is longer than half of the diagonal's
        const double longest =
                std::sqrt(image.half[0] * image.half[0] + image.half[1] * image.half[1]
                          + image.half[2] * image.half[2]);
        for (int k = 0; k < 2; k++)
        {
            image.inverse[k] = 1 / vectors(k, k);
            // flatter than by this no cells suit a box
            constexpr double c_most = 1e6;
            const double multiples  = longest / vectors(k + 1, k + 1) + 0.5;
            image.reach[k]          = static_cast<int>(multiples < c_most ? multiples : c_most);
        }
        return image;
    }

    /*! \brief The shortest of the displacements from b to a.
     *  \param[in]  a, b  nm, [3], any image
     *  \param[out] dx    nm
     *  \returns its square */
    template<class Real>
    double between(const Real* a, const Real* b, double* dx) const
    {
        for (int k = 0; k < 3; k++)
        {
            dx[k] = static_cast<double>(a[k]) - static_cast<double>(b[k]);
        }
        // most pairs are bonded neighbours in one image
        const double r2 = dx[0] * dx[0] + dx[1] * dx[1] + dx[2] * dx[2];
        if (r2 <= safe2)
        {
            return r2;
        }
        search(dx);
        return dx[0] * dx[0] + dx[1] * dx[1] + dx[2] * dx[2];
    }

    //! Replaces dx by its shortest image; not needed below safe2.
    FARFIELD_HD void search(double* dx) const
    {
        for (int k = 2; k >= 0; k--)
        {
            if (fabs(dx[k]) > half[k])
            {
                const double shift = rint(dx[k] / box[k][k]);
                for (int j = 0; j <= k; j++)
                {
                    dx[j] -= shift * box[k][j];
                }
            }
        }
        double best2 = dx[0] * dx[0] + dx[1] * dx[1] + dx[2] * dx[2];
        if (rectangular || best2 <= safe2)
        {
            return;
        }
        // A skewed box: the rounded image is near the shortest one, but need not be it, and in a
        // flat one many box vectors may lie between the two. The vectors are triangular, so the
        // last component of an image bounds c, and the second then b.
        const double from[3] = { dx[0], dx[1], dx[2] };
        FARFIELD_ROLLED
        for (int m = -reach[1]; m <= reach[1]; m++)
        {
            const double c      = m;
            const double middle = -rint((from[1] + c * box[2][1]) * inverse[1]);
            FARFIELD_ROLLED
            for (int k = -reach[0]; k <= reach[0]; k++)
            {
                const double b = middle + k;
                const double a = -rint((from[0] + b * box[1][0] + c * box[2][0]) * inverse[0]);
                double trial[3];
                for (int j = 0; j < 3; j++)
                {
                    trial[j] = from[j] + a * box[0][j] + b * box[1][j] + c * box[2][j];
                }
                const double r2 = trial[0] * trial[0] + trial[1] * trial[1] + trial[2] * trial[2];
                if (r2 < best2)
                {
                    best2 = r2;
                    dx[0] = trial[0];
                    dx[1] = trial[1];
                    dx[2] = trial[2];
                }
            }
        }
    }
};

} // namespace farfield

#endif
