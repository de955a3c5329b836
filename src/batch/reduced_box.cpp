/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/reduced_box.h"

#include <cmath>

namespace farfield
{
namespace
{

//! Shortens row i by what brings it nearest to zero. \returns whether it did
bool shorten(Mat3* box, int i, const Eigen::RowVector3d& by)
{
    constexpr double c_rounding  = 1e-12;
    const Eigen::RowVector3d row = box->row(i);
    const double multiple        = std::round(row.dot(by) / by.squaredNorm());
    const Eigen::RowVector3d now = row - multiple * by;
    if (multiple == 0 || !(now.squaredNorm() < (1 - c_rounding) * row.squaredNorm()))
    {
        return false;
    }
    box->row(i) = now;
    return true;
}

bool shortenAny(Mat3* box)
{
    bool isShorter = false;
    for (int i = 0; i < 3; i++)
    {
        const int j = (i + 1) % 3;
        const int k = (i + 2) % 3;
        for (const Eigen::RowVector3d& by : { Eigen::RowVector3d(box->row(j)),
                                              Eigen::RowVector3d(box->row(k)),
                                              Eigen::RowVector3d(box->row(j) + box->row(k)),
                                              Eigen::RowVector3d(box->row(j) - box->row(k)) })
        {
            isShorter = shorten(box, i, by) || isShorter;
        }
    }
    return isShorter;
}

} // namespace

ReducedBox::ReducedBox(const Mat3& box) : vectors(box)
{
    // each round shortens a vector; rounds are few, as in Euclid's algorithm
    constexpr int c_mostRounds = 1000;
    for (int round = 0; round < c_mostRounds && shortenAny(&vectors); round++)
    {
    }
    inverse       = vectors.inverse();
    heights       = inverse.colwise().norm().cwiseInverse();
    volume        = std::abs(vectors.determinant());
    isRectangular = true;
    for (int i = 0; i < 3; i++)
    {
        const int j       = (i + 1) % 3;
        const double both = vectors.row(i).norm() * vectors.row(j).norm();
        isRectangular = isRectangular && std::abs(vectors.row(i).dot(vectors.row(j))) < 1e-9 * both;
    }
}

} // namespace farfield
