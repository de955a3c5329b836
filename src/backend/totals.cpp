/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "backend/backend.h"
#include "base/packed.h"

namespace farfield
{
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
        const Mat3 inFrame = symmetricAt(virial, 0) + symmetricAt(ofCells, 0);
        Mat3 all = rotation.transpose() * inFrame * rotation + symmetricAt(excludedVirial, 0);
        all += (-0.5 * (energy + 2 * energyTimesDegree) - all.trace()) / 3 * Mat3::Identity();
        all += rotation.transpose() * symmetricAt(virialOfFunctions, 0) * rotation;
        for (int i = 0; i < 9; i++)
        {
            result.virial[i / 3][i % 3] = 0.5 * (all(i / 3, i % 3) + all(i % 3, i / 3));
        }
    }
    return result;
}

} // namespace farfield
