/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Steps that are timed with the FMM on either GPU, for test_move_trial.py.
 *
 *  Arguments: seconds of a step without and with the move, steps between searches, the first step, and
 *  the numbers of intervals that take ten times as long. Prints where the FMM is in each interval until
 *  that is decided, 1 for the other GPU, and then the result. */
#include <cstdio>
#include <cstdlib>

#include <set>

#include "farfieldmove.h"

int main(int argc, char** argv)
{
    if (argc < 5)
    {
        return 1;
    }
    const double seconds[2] = { std::atof(argv[1]), std::atof(argv[2]) };
    const int interval      = std::atoi(argv[3]);
    long long step          = std::atoll(argv[4]);
    std::set<int> slow;
    for (int k = 5; k < argc; k++)
    {
        slow.insert(std::atoi(argv[k]));
    }
    double time = 1000;
    gmx::FarfieldMoveTrial trial;
    for (int k = 0; !trial.isDone(); k++)
    {
        trial.noteSearch(step, time);
        std::printf("%d ", trial.isMoved() ? 1 : 0);
        step += interval;
        time += interval * seconds[trial.isMoved() ? 1 : 0] * (slow.count(k) > 0 ? 10 : 1);
    }
    std::printf("\n%s\n", trial.result().c_str());
    return 0;
}
