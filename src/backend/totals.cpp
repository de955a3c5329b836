/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "backend/backend.h"

namespace farfield
{
namespace
{

//! Symmetric tensor from xx yy zz xy xz yz.
Mat3 tensor(const double* v)
{
    Mat3 t;
    t << v[0], v[3], v[4], v[3], v[1], v[5], v[4], v[5], v[2];
    return t;
}

} // namespace

Totals StageSums::totals(const Request& request, const Mat3& rotation) const
{
    Totals result;
    if (request.energy)
    {
        result.energy = energy + energyOfFunctions;
    }
    if (request.virial)
    {
        const double ofCells[6] = {
            deviatoric[StrainXXminusZZ], deviatoric[StrainYYminusZZ], 0,
            deviatoric[StrainXY],        deviatoric[StrainXZ],        deviatoric[StrainYZ]
        };
        const Mat3 inFrame = tensor(virial) + tensor(ofCells);
        Mat3 all           = rotation.transpose() * inFrame * rotation + tensor(excludedVirial);
        all += (-0.5 * (energy + 2 * energyTimesDegree) - all.trace()) / 3 * Mat3::Identity();
        all += rotation.transpose() * tensor(virialOfFunctions) * rotation;
        for (int i = 0; i < 9; i++)
        {
            result.virial[i / 3][i % 3] = 0.5 * (all(i / 3, i % 3) + all(i % 3, i / 3));
        }
    }
    return result;
}

} // namespace farfield
