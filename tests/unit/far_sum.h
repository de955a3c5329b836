/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over all far cells of a periodic box, image by image: what lattice sums and the
 *         periodic M2L are compared with.
 *
 *  No Ewald split: displacements D are weighted with chi(r) = 1/2 erfc((r - R) / w), which is 1
 *  nearby and 0 far away. By Poisson's formula sum_D f(D) chi(D) exp(-i k.D) is the sum over
 *  q = k + reciprocal lattice of the transform of f chi at q. For a harmonic f it is that of f but
 *  for a term of the order of exp(-q^2 w^2 / 4), as 1 - chi is smooth and vanishes at the origin;
 *  at q = 0 it is 0, as the average of f over directions is, except for f = 1/r, where it is the
 *  integral of the uniform background: 4 pi int r chi dr = 2 pi (R^2 + w^2 / 2). So the wanted sum
 *  follows with an error that falls like exp(-x^2) where w = 2 x / |q|; with R = 3/2 x w the rest
 *  of 1 - chi at the origin is far below that. Near cells are not in the sum: they have the weight
 *  chi - 1.
 */
#ifndef FARFIELD_TESTS_UNIT_FAR_SUM_H
#define FARFIELD_TESTS_UNIT_FAR_SUM_H

#include <cmath>

#include <algorithm>
#include <limits>

#include "cells/grid.h"

namespace farfield
{
namespace test
{

class FarSum
{
public:
    FarSum(const Grid& grid, int ws) : edges_(grid.scaledEdges()), ws_(ws)
    {
        const Mat3 dual = edges_.inverse();
        double smallest = std::numeric_limits<double>::max();
        for (int wave = 0; wave < grid.waveVectors(); ++wave)
        {
            for (int n = 0; n < 125; ++n)
            {
                const Vec3 turns(n / 25 - 2, n / 5 % 5 - 2, n % 5 - 2);
                const double q = (dual * (grid.phases(wave) + 2 * M_PI * turns)).norm();
                smallest       = q > 1e-6 ? std::min(smallest, q) : smallest;
            }
        }
        width_  = 2 * c_digits / smallest;
        radius_ = 1.5 * c_digits * width_;
        for (int k = 0; k < 3; ++k)
        {
            const double reach = (radius_ + c_digits * width_) * dual.col(k).norm();
            reach_[k]          = static_cast<int>(std::ceil(reach));
        }
    }

    //! Neglected, relative to the sum of magnitudes.
    static double remainder()
    {
        return std::exp(-c_digits * c_digits) + 16 * std::numeric_limits<double>::epsilon();
    }

    //! Sum of the weights over distances of a uniform density of 1 per cell.
    double background() const { return 2 * M_PI * (radius_ * radius_ + 0.5 * width_ * width_); }

    //! Calls visit(D, vector in units of Grid::unit(), weight) for half of the cells but 0: of D
    //! and -D one.
    template<class Visit>
    void forHalf(const Visit& visit) const
    {
        const double outer = radius_ + c_digits * width_;
        for (int x = 0; x <= reach_[0]; ++x)
        {
            for (int y = (x == 0 ? 0 : -reach_[1]); y <= reach_[1]; ++y)
            {
                for (int z = (x == 0 && y == 0 ? 1 : -reach_[2]); z <= reach_[2]; ++z)
                {
                    const Vec3 r      = edges_.transpose() * Vec3(x, y, z);
                    const bool isNear = std::max({ x, std::abs(y), std::abs(z) }) <= ws_;
                    const double at   = (r.norm() - radius_) / width_;
                    if (r.squaredNorm() <= outer * outer)
                    {
                        visit(Int3{ x, y, z },
                              r,
                              isNear ? -0.5 * std::erfc(-at) : 0.5 * std::erfc(at));
                    }
                }
            }
        }
    }

private:
    static constexpr double c_digits = 5; //!< x: exp(-25) = 1e-11
    Mat3 edges_;
    int ws_;
    double width_, radius_;
    Int3 reach_;
};

} // namespace test
} // namespace farfield

#endif
