/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/even_places.h"

#include <cmath>

namespace farfield
{

template<class Real>
std::vector<Real> evenPlaces(int n, const Mat3& box)
{
    constexpr double c_root = 1.2207440846057596;
    const Vec3 steps(1 / c_root, 1 / (c_root * c_root), 1 / (c_root * c_root * c_root));
    std::vector<Real> x(3 * static_cast<size_t>(n));
    for (int i = 0; i < n; i++)
    {
        Vec3 inBox = (i + 0.5) * steps;
        inBox -= inBox.array().floor().matrix();
        const Vec3 at = box.transpose() * inBox;
        for (int k = 0; k < 3; k++)
        {
            x[3 * static_cast<size_t>(i) + k] = static_cast<Real>(at[k]);
        }
    }
    return x;
}

template std::vector<float> evenPlaces(int, const Mat3&);
template std::vector<double> evenPlaces(int, const Mat3&);

} // namespace farfield
