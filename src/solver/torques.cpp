/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/torques.h"

#include "base/packed.h"

namespace farfield
{
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
            torque -= vectorAt(moments.dipoles, i).cross(vectorAt(gradients, i));
        }
        if (moments.quadrupoles != nullptr)
        {
            const Mat3 A = symmetricAt(moments.quadrupoles, i) * symmetricAt(hessians, i);
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
