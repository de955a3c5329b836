/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/stage_times.h"

namespace farfield
{

const char* stageName(Stage stage)
{
    switch (stage)
    {
        case Stage::SetUp:
            return "Set-up";
        case Stage::Sort:
            return "Sort";
        case Stage::Exclusions:
            return "Exclusions";
        case Stage::NearFunction:
            return "Near function";
        case Stage::P2p:
            return "P2P";
        case Stage::P2m:
            return "P2M";
        case Stage::M2m:
            return "M2M";
        case Stage::M2l:
            return "M2L";
        case Stage::L2l:
            return "L2L";
        case Stage::L2p:
            return "L2P";
        case Stage::Collect:
            return "Collect";
        case Stage::Waiting:
            return "Waiting";
        case Stage::Perturbation:
            return "Perturbation";
        case Stage::Groups:
            return "Groups";
        case Stage::Count:
            break;
    }
    return "";
}

std::vector<StageTime> StageTimes::all() const
{
    std::vector<StageTime> times;
    for (int stage = 0; stage < static_cast<int>(Stage::Count); stage++)
    {
        if (seconds_[stage] > 0)
        {
            times.push_back(
                    { stageName(static_cast<Stage>(stage)), evaluations_, seconds_[stage] });
        }
    }
    return times;
}

} // namespace farfield
