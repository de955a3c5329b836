/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The virial of particles without images, from their forces.
 */
#ifndef FARFIELD_SOLVER_OPEN_VIRIAL_H
#define FARFIELD_SOLVER_OPEN_VIRIAL_H

#include <vector>

#include "farfield/farfield.h"

#include "base/vectors.h"

namespace farfield
{

/*! \brief -1/2 sum r (x) f, symmetric, kJ/mol; without images there is nothing else in a virial.
 *  \param[in] x          [n][3], nm
 *  \param[in] forces     [n][3], kJ/mol/nm
 *  \param[in] isCharged  [n]; others have no forces */
template<class Real>
Mat3 openVirial(const Real* x, const std::vector<Real>& forces, const std::vector<char>& isCharged)
{
    const auto row = [](const Real* values, size_t i)
    { return Vec3(values[3 * i], values[3 * i + 1], values[3 * i + 2]); };
    Mat3 sum = Mat3::Zero();
    Vec3 centre;
    bool isFirst = true;
    for (size_t i = 0; i < isCharged.size(); i++)
    {
        if (isCharged[i])
        {
            // the sum of all forces is an error: about a particle it has a short lever
            centre  = isFirst ? row(x, i) : centre;
            isFirst = false;
            sum += (row(x, i) - centre) * row(forces.data(), i).transpose();
        }
    }
    return -0.25 * (sum + sum.transpose());
}

/*! \brief Sets that virial.
 *  \param[in]     isCoulomb  all pairs have 1/r: the trace follows from the energy
 *  \param[in,out] totals     energy; gets the virial */
inline void setOpenVirial(Mat3 virial, bool isCoulomb, Totals* totals)
{
    if (isCoulomb)
    {
        virial += (-0.5 * totals->energy - virial.trace()) / 3 * Mat3::Identity();
    }
    for (int k = 0; k < 9; k++)
    {
        totals->virial[k / 3][k % 3] = virial(k / 3, k % 3);
    }
}

} // namespace farfield

#endif
