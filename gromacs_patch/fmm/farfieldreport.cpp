/*
 * This file is part of the GROMACS molecular simulation package.
 *
 * Copyright 2026- The GROMACS Authors
 * and the project initiators Erik Lindahl, Berk Hess and David van der Spoel.
 * Consult the AUTHORS/COPYING files and https://www.gromacs.org for details.
 *
 * GROMACS is free software; you can redistribute it and/or
 * modify it under the terms of the GNU Lesser General Public License
 * as published by the Free Software Foundation; either version 2.1
 * of the License, or (at your option) any later version.
 *
 * GROMACS is distributed in the hope that it will be useful,
 * but WITHOUT ANY WARRANTY; without even the implied warranty of
 * MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
 * Lesser General Public License for more details.
 *
 * You should have received a copy of the GNU Lesser General Public
 * License along with GROMACS; if not, see
 * https://www.gnu.org/licenses, or write to the Free Software Foundation,
 * Inc., 51 Franklin Street, Fifth Floor, Boston, MA  02110-1301  USA.
 *
 * If you want to redistribute modifications to GROMACS, please
 * consider that scientific software is very special. Version
 * control is crucial - bugs must be traceable. We will be happy to
 * consider code for inclusion in the official distribution, but
 * derived work must not be called official GROMACS. Details are found
 * in the README & COPYING files - if they are missing, get the
 * official version at https://www.gromacs.org.
 *
 * To help us fund GROMACS development, we humbly ask that you cite
 * the research papers on the package. Check out https://www.gromacs.org.
 */

/*! \internal \file
 * \brief Implements what the log says about the FMM.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldreport.h"

#include "config.h"

#ifdef __linux__
#    include <sched.h>
#endif

#include <algorithm>

#include <farfield/farfield_parallel.h>

#include "gromacs/utility/mpicomm.h"
#include "gromacs/utility/stringutil.h"

#include "farfieldrun.h"

namespace gmx
{

namespace
{

//! What the log calls a device that is in use.
const char* deviceTitle(const farfield::Device device)
{
    return device == farfield::Device::Gpu ? "GPU" : "CPU";
}

//! The log says so if threads wait for more of the time than this.
constexpr double c_muchWaiting = 0.4;

//! The log says so if the GPU waits for bonded interactions for more of a step than this.
constexpr double c_muchOfAStep = 0.1;

//! Whether the system may move this thread from core to core: mdrun pins a thread to a single one.
bool mayMoveThreads()
{
#ifdef __linux__
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 && CPU_COUNT(&cores) > 1;
#else
    return false;
#endif
}

//! Lists the settings that were timed, if any.
std::string timedSettings(const farfield::Setup& setup)
{
    std::string text;
    if (!setup.timed.empty())
    {
        text += formatString("  settings that were timed (%s), forces alone:\n", farfieldSetting("tune"));
    }
    for (const farfield::TimedSetting& timed : setup.timed)
    {
        text += formatString(
                "    order %2d, direct range %d, cell size %.3f nm, levels %d, %-9s %10.1f "
                "us%s%s\n",
                timed.order,
                timed.directRange,
                timed.cellSize,
                timed.levels,
                farfield::nameOf(timed.m2l),
                1e6 * timed.seconds,
                timed.helpers == 0 ? "" : formatString(", helpers %d", timed.helpers).c_str(),
                timed.isInUse ? ", in use" : "");
    }
    const bool isOneInUse = std::any_of(
            setup.timed.begin(), setup.timed.end(), [](const auto& timed) { return timed.isInUse; });
    if (!setup.timed.empty() && !isOneInUse)
    {
        text += "    in use are the settings above: the fastest of these misses the accuracy\n";
    }
    return text;
}

//! Why these helpers are in use, or none.
std::string reasonForHelpers(const farfield::Setup& setup, const FarfieldHelpers& helpers)
{
    double alone = 0, helped = 0;
    bool   wereFaster = false;
    for (const farfield::TimedSetting& timed : setup.timed)
    {
        double& fastest = timed.helpers == 0 ? alone : helped;
        fastest         = fastest == 0 ? timed.seconds : std::min(fastest, timed.seconds);
        wereFaster      = wereFaster || (timed.isInUse && timed.helpers > 0);
    }
    const bool areLost = wereFaster && setup.helpers.empty();
    if (helpers.ids.empty() || alone == 0 || helped == 0 || areLost)
    {
        return setup.helpersLost.empty() ? helpers.reason : setup.helpersLost;
    }
    const std::string lost = setup.helpersLost.empty() ? "" : setup.helpersLost + " ";
    return lost
           + formatString("an evaluation takes %.0f us with helpers and %.0f us on one GPU%s",
                          1e6 * helped,
                          1e6 * alone,
                          setup.helpers.empty() ? ", and helpers have to gain 5 %" : "");
}

} // namespace

std::string sharesOfNearField(const farfield::Setup& setup)
{
    std::string all;
    for (const farfield::HelperDevice& helper : setup.helpers)
    {
        all += formatString(
                "%sGPU %d (%.0f %%)", all.empty() ? "" : ", ", helper.deviceId, 100 * helper.share);
    }
    return all;
}

std::string describeSetup(const farfield::Setup& setup,
                          const int              numExclusions,
                          const std::string&     dataPath,
                          const FarfieldRun&     run)
{
    const FarfieldDeviceChoice& deviceChoice = run.device;

    const auto& h = setup.cells;

    std::string text = formatString("FMM electrostatics with farfield %s\n", farfield::version());
    text += formatString("  multipole order          %d\n", setup.order);
    text += formatString("  direct range (ws)        %d\n", setup.directRange);
    text += formatString(
            "  leaf cells               %lld, H = (%d 0 0 / %d %d 0 / %d %d %d), cell size %.3f "
            "nm\n",
            setup.leafCells,
            h[0][0],
            h[1][0],
            h[1][1],
            h[2][0],
            h[2][1],
            h[2][2],
            setup.cellSize);
    if (run.boundary != farfield::Boundary::Periodic)
    {
        text += formatString("  boundaries               %s; half of the cells or more are empty\n",
                             run.boundary == farfield::Boundary::Open ? "open (pbc = no)"
                                                                      : "open along z (pbc = xy)");
    }
    text += formatString("  levels                   %d\n", setup.levels);
    text += formatString("  M2L engine               %s, %s operators\n",
                         farfield::nameOf(setup.m2l),
                         setup.leastSquares ? "least-squares" : "truncated");
    text += formatString("  estimated error          %.1e (relative RMS force error)\n",
                         setup.estimatedError);
    const bool areMoved = setup.device == farfield::Device::Cpu && setup.threads > 1 && mayMoveThreads();
    text += formatString("  device                   %s (%s), %d OpenMP thread%s%s\n",
                         deviceTitle(setup.device),
                         setup.deviceName.c_str(),
                         setup.threads,
                         setup.threads == 1 ? "" : "s",
                         areMoved ? ", not pinned: slow if other programs use the cores, see -pin" : "");
    text += formatString("  device chosen by         %s%s\n",
                         deviceChoice.reason.c_str(),
                         deviceChoice.id >= 0 && setup.device == farfield::Device::Cpu
                                 ? ", which farfield cannot use"
                                 : "");
    if (setup.device == farfield::Device::Gpu)
    {
        text += formatString("  coordinates and forces   %s\n", dataPath.c_str());
        const std::string shares = sharesOfNearField(setup);
        text += formatString("  near field shared with   %s: %s\n",
                             shares.empty() ? "no other GPU" : shares.c_str(),
                             reasonForHelpers(setup, run.helpers).c_str());
    }
    if (run.ranks != nullptr)
    {
        text += formatString("  ranks                    %d, each with its atoms%s%s\n",
                             run.ranks->size(),
                             run.deviceMessages.way.empty() ? "" : "; messages between GPUs ",
                             run.deviceMessages.way.c_str());
        if (GMX_THREAD_MPI && setup.device == farfield::Device::Gpu)
        {
            text += "    one rank with GPUs as helpers may be faster: -ntmpi 1, -gpu_id\n";
        }
    }
    text += formatString("  excluded pairs           %d\n", numExclusions);
    if (run.perturbedChargeWidth > 0)
    {
        text += formatString(
                "  perturbed charges        Gaussian of %g nm; pair kernels add the soft core\n",
                run.perturbedChargeWidth);
    }
    return text + timedSettings(setup);
}

std::string noteOnOtherDevice(const farfield::Setup& setup)
{
    if (setup.chosenFor == setup.device)
    {
        return {};
    }
    return formatString(
            "The checkpoint has FMM cells that were chosen for a %s, and this run continues on a "
            "%s with them. The forces are as accurate. A run that starts from gmx grompp -t "
            "chooses cells for the %s.",
            deviceTitle(setup.chosenFor),
            deviceTitle(setup.device),
            deviceTitle(setup.device));
}

std::string accuracyMessage(const farfield::Setup& setup)
{
    if (!setup.isBestEffort)
    {
        return {};
    }
    return formatString(
            "The requested FMM accuracy is not reached at these positions: the error is up to "
            "%.1e, "
            "and no setting has less. Charges may nearly coincide, which mixed precision does not "
            "resolve. The run continues, and the error is measured again when forces have changed.",
            setup.largestError);
}

std::string stageTable(const std::string& title, const std::vector<farfield::StageTime>& times)
{
    double    total    = 0;
    long long maxCalls = 0;
    for (const auto& stage : times)
    {
        total += stage.seconds;
        maxCalls = std::max(maxCalls, stage.calls);
    }
    const auto row = [total](const std::string& name, const long long calls, const double seconds)
    {
        return formatString("  %-24s %10lld %12.3f %12.4f %8.1f\n",
                            name.c_str(),
                            calls,
                            seconds,
                            calls > 0 ? 1000 * seconds / static_cast<double>(calls) : 0.0,
                            total > 0 ? 100 * seconds / total : 0.0);
    };
    std::string text = title + "\n";
    text += formatString(
            "  %-24s %10s %12s %12s %8s\n", "Stage", "Calls", "Seconds", "ms/call", "Share %");
    for (const auto& stage : times)
    {
        text += row(stage.name, stage.calls, stage.seconds);
    }
    text += row("Total", maxCalls, total);
    const auto waiting = std::find_if(
            times.begin(), times.end(), [](const auto& stage) { return stage.name == "Waiting"; });
    if (waiting != times.end() && waiting->seconds > c_muchWaiting * total)
    {
        text += formatString(
                "  Threads waited for each other for %.0f %% of this time: see 'Slow' in "
                "docs/trouble.md of farfield.\n",
                100 * waiting->seconds / total);
    }
    return stripString(text);
}

std::string noteOnBondedInteractions(const double bonded, const double fmm, const double step)
{
    const double idle = bonded - fmm;
    if (!(idle > c_muchOfAStep * step))
    {
        return {};
    }
    return formatString(
            "NOTE: Bonded interactions ran on the CPU (-bonded cpu), and the GPU waited for them "
            "up to %.0f %% of the time. Without the option -bonded, mdrun puts them on the GPU.",
            100 * idle / step);
}

std::string describeTraffic(const farfield::Traffic& traffic)
{
    const auto per = [](const long long total, const long long number)
    { return static_cast<double>(total) / static_cast<double>(std::max(number, 1LL)); };
    return formatString(
            "  sent per evaluation      %.1f messages, %.1f kB\n"
            "  expected by cost model   %.1f messages, %.1f kB\n"
            "  exchanges planned        %lld times, with %.1f kB each",
            per(traffic.messages, traffic.evaluations),
            per(traffic.bytes, traffic.evaluations) / 1000,
            traffic.expectedMessages,
            traffic.expectedBytes / 1000,
            traffic.plans,
            per(traffic.planBytes, traffic.plans) / 1000);
}

} // namespace gmx
