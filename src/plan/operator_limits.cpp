/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/operator_limits.h"

#include <unistd.h>

#include "plan/cost_model.h"

namespace farfield
{
namespace
{

constexpr double c_minute = 6e10; //!< ns
//! What takes longer are convolutions over millions of cells, which trees serve as well.
constexpr double c_longestSetUp = 5 * c_minute;

//! Half of the physical memory, bytes.
double mostMemory()
{
    static const double half =
            0.5 * static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    return half;
}

} // namespace

Excess::Excess(Device device, double memory, double setUp) :
    memory_(memory), setUp_(setUp), ofMemory_(device == Device::Cpu ? memory / mostMemory() : 0),
    ofSetUp_(setUp / c_longestSetUp)
{
}

std::string Excess::text(int order, double cells) const
{
    const auto rounded = [](double value)
    { return std::to_string(static_cast<long long>(value) + 1); };
    return "operators of order " + std::to_string(order) + " for "
           + std::to_string(static_cast<long long>(cells)) + " cells would take about "
           + (isOfMemory()
                      ? rounded(memory_ / 1e9) + " GB, more than half of the memory of this machine"
                      : rounded(setUp_ / c_minute) + " minutes of one core to set up, more than "
                                + std::to_string(static_cast<int>(c_longestSetUp / c_minute)));
}

Excess excessOf(const Discretisation& d, Device device, int realSize)
{
    const Work work(d, Occupancy(0.0), 0);
    const OperatorKind kind(d.order, d.leastSquares, d.referenceBox);
    return Excess(device, predictedMemory(work, kind, 1, realSize), predictedSetUp(work, kind));
}

void refuseOperators(const Options& options, const Excess& excess, int order, double cells)
{
    const char* parameter = options.cellSize > 0 ? "cellSize"
                            : options.order >= 0 ? "order"
                                                 : "accuracy";
    throw Error(excess.isOfMemory() ? ErrorCode::OutOfMemory : ErrorCode::InvalidArgument,
                "The " + excess.text(order, cells)
                        + "; larger cells, a lower order, a larger value of accuracy or another "
                          "M2L engine need less.",
                parameter);
}

std::string whyTooLarge(const Discretisation& d, Device device, int realSize)
{
    const Excess excess = excessOf(d, device, realSize);
    return excess.any()
                   ? excess.text(d.order, static_cast<double>(d.leafGrid(d.referenceBox).count()))
                   : "";
}

double partOfLongestSetUp(const Discretisation& d)
{
    return excessOf(d, Device::Cpu, sizeof(double)).ofSetUp();
}

} // namespace farfield
