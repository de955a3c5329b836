/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/torques.h"

#include "base/vectors.h"

namespace farfield
{
namespace
{

//! \param[in] m  xx yy zz xy xz yz
template<class Real>
Mat3 symmetric(const Real* m)
{
    Eigen::Matrix<Real, 3, 3> rows;
    rows << m[0], m[3], m[4], m[3], m[1], m[5], m[4], m[5], m[2];
    return rows.template cast<double>();
}

template<class Real>
Vec3 vectorOf(const Real* v)
{
    return Eigen::Matrix<Real, 3, 1>(v[0], v[1], v[2]).template cast<double>();
}

} // namespace

template<class Real>
std::vector<Real>
torquesOf(const Moments<Real>& moments, size_t n, const Real* gradients, const Real* hessians)
{
    std::vector<Real> torques(3 * n);
    for (size_t i = 0; i < n; i++)
    {
        Vec3 torque = Vec3::Zero();
        if (moments.dipoles != nullptr)
        {
            torque -= vectorOf(moments.dipoles + 3 * i).cross(vectorOf(gradients + 3 * i));
        }
        if (moments.quadrupoles != nullptr)
        {
            const Mat3 A = symmetric(moments.quadrupoles + 6 * i) * symmetric(hessians + 6 * i);
            torque -= 2.0 / 3 * Vec3(A(1, 2) - A(2, 1), A(2, 0) - A(0, 2), A(0, 1) - A(1, 0));
        }
        for (int k = 0; k < 3; k++)
        {
            torques[3 * i + k] = static_cast<Real>(torque[k]);
        }
    }
    return torques;
}

template std::vector<float> torquesOf(const Moments<float>&, size_t, const float*, const float*);
template std::vector<double>
torquesOf(const Moments<double>&, size_t, const double*, const double*);

} // namespace farfield
