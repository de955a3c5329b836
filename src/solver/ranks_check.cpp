/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/ranks_check.h"

#include <cmath>

#include <algorithm>

#include "backend/gpu_backend.h"
#include "evaluation/input_check.h"

namespace farfield
{
namespace
{

//! A box that others are compared with to rounding in single precision.
struct RoundedBox
{
    const GivenToRank& given;

    bool operator==(const RoundedBox& other) const
    {
        constexpr double c_rounding = 1e-6;
        for (int i = 0; i < 3; i++)
        {
            for (int j = 0; j < 3; j++)
            {
                if (std::abs(given.box[i][j] - other.given.box[i][j])
                    > c_rounding * given.box[i][i])
                {
                    return false;
                }
            }
        }
        return true;
    }
};

//! What is wrong where ranks do not have every particle once. All ranks together.
Error notOnOneRankEach(const std::vector<int>& own, int count, Ranks* ranks)
{
    const std::vector<int> index = ranks->gather(own).values;
    std::vector<int> times(count, 0);
    for (const int i : index)
    {
        times[i]++;
    }
    const auto wrong = std::find_if(times.begin(), times.end(), [](int on) { return on != 1; });
    return Error(ErrorCode::InvalidArgument,
                 "Particle " + std::to_string(wrong - times.begin()) + " is on "
                         + (wrong != times.end() && *wrong == 0 ? "no rank."
                                                                : "several ranks, or twice on one.")
                         + " Put every particle on exactly one rank: the ranks have "
                         + std::to_string(index.size()) + " particles, the system "
                         + std::to_string(count) + ".");
}

} // namespace

template<class Real>
Options checkedForRanks(const Options& given, bool hasCommunicator, Ranks* ranks)
{
    struct Told
    {
        std::array<double, c_options<Real>.size()> values;
        bool hasCommunicator, canUseGpu;
    };
    const std::vector<Told> told = answersOf(ranks,
                                             [&]
                                             {
                                                 checkOptions<Real>(given);
                                                 Told own = {};
                                                 std::transform(c_options<Real>.begin(),
                                                                c_options<Real>.end(),
                                                                own.values.begin(),
                                                                [&](const OptionDescription& option)
                                                                { return valueOf(option, given); });
                                                 own.hasCommunicator = hasCommunicator;
                                                 own.canUseGpu       = given.device == Device::Auto
                                                                 && gpuIsUsable(given.deviceId);
                                                 return own;
                                             });
    for (size_t k = 0; k < c_options<Real>.size(); k++)
    {
        const std::string name = c_options<Real>[k].name;
        if (name != "threads" && name != "deviceId")
        {
            checkSame(
                    told,
                    [k](const Told& of) { return of.values[k]; },
                    "option " + name,
                    c_options<Real>[k].name);
        }
    }
    Options options = given;
    if (options.device == Device::Auto)
    {
        const bool canAll =
                std::all_of(told.begin(), told.end(), [](const Told& of) { return of.canUseGpu; });
        options.device = canAll ? Device::Gpu : Device::Cpu;
    }
    if (options.boundary != Boundary::Periodic)
    {
        throw Error(ErrorCode::Unsupported,
                    std::string("The boundary '") + nameOf(options.boundary)
                            + "' needs one rank. Several ranks need the boundary 'periodic'.",
                    "boundary");
    }
    if (options.device == Device::Gpu)
    {
        checkSame(
                told,
                [](const Told& of) { return of.hasCommunicator; },
                "number of DeviceCommunicators");
        if (options.m2l != M2lEngine::Auto && options.m2l != M2lEngine::Fft)
        {
            throw Error(
                    ErrorCode::Unsupported,
                    std::string("The GPUs of several ranks cannot use a tree of cells: set m2l = "
                                "fft or auto instead of ")
                            + nameOf(options.m2l) + ", device = cpu, or use one rank.",
                    "m2l");
        }
        options.m2l = M2lEngine::Fft;
    }
    else
    {
        checkEngine(options.m2l, Device::Cpu);
    }
    return options;
}

template<class Real>
GivenToRank::GivenToRank(const double boxVectors[3][3],
                         const Request& request,
                         const OwnParticles<Real>& own) :
    gridOffset(request.gridOffset),
    step(request.step), energy(request.energy), virial(request.virial), particles(own.count()),
    hash(own.hash())
{
    for (int i = 0; i < 3; i++)
    {
        std::copy_n(boxVectors[i], 3, box[i].begin());
    }
}

void checkGiven(const std::vector<GivenToRank>& given,
                const std::vector<int>& own,
                int count,
                std::uint64_t hash,
                Ranks* ranks)
{
    long long particles = 0;
    std::uint64_t sum   = 0;
    for (const GivenToRank& of : given)
    {
        particles += of.particles;
        sum += of.hash;
    }
    const auto of = [&](const auto& part, const char* what) { checkSame(given, part, what); };
    of([](const GivenToRank& g) { return RoundedBox{ g }; }, "box");
    of([](const GivenToRank& g) { return g.step; }, "Request::step");
    of([](const GivenToRank& g) { return g.gridOffset; }, "Request::gridOffset");
    of([](const GivenToRank& g) { return g.energy; }, "Request::energy");
    of([](const GivenToRank& g) { return g.virial; }, "Request::virial");
    if (particles != count || sum != hash)
    {
        throw notOnOneRankEach(own, count, ranks);
    }
}

template Options checkedForRanks<float>(const Options&, bool, Ranks*);
template Options checkedForRanks<double>(const Options&, bool, Ranks*);
template GivenToRank::GivenToRank(const double[3][3], const Request&, const OwnParticles<float>&);
template GivenToRank::GivenToRank(const double[3][3], const Request&, const OwnParticles<double>&);

} // namespace farfield
