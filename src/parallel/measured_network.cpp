/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/measured_network.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace farfield
{
namespace
{

//! A network, by ns per message and per byte.
Network networkOf(double message, double byte, int realSize)
{
    Network network;
    network.message = message;
    network.number  = byte * realSize;
    return network;
}

//! Time in which each rank gets so many bytes from each other one, ns: the least of several.
double timeOfExchange(size_t bytes, int repeats, Ranks* ranks)
{
    ByRank<char> sent;
    sent.resize(ranks->size(), [&](int r) { return r == ranks->rank() ? 0 : bytes; });
    ByRank<char> received = sent;
    double least          = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats; i++)
    {
        const auto begin = std::chrono::steady_clock::now();
        ranks->exchange(sent, &received);
        const std::chrono::duration<double, std::nano> spent =
                std::chrono::steady_clock::now() - begin;
        least = std::min(least, spent.count());
    }
    return least;
}

} // namespace

Network measuredNetwork(Ranks* ranks, int realSize)
{
    // slower than any network is a machine with more ranks than processors
    constexpr double c_slowestMessage = 5e4, c_slowestByte = 10;
    constexpr size_t c_bytes = 1 << 20; // that a rank sends

    const int others = ranks->size() - 1;
    if (others == 0)
    {
        return {};
    }
    const size_t bytes  = std::max<size_t>(c_bytes / others, 1024);
    const double ofFew  = timeOfExchange(1, 20, ranks);
    const double ofMany = timeOfExchange(bytes, 5, ranks);
    const auto message  = ranks->gatherOne(ofFew / others);
    const auto byte = ranks->gatherOne((ofMany - ofFew) / (static_cast<double>(bytes) * others));
    const auto slowestOf = [](const std::vector<double>& times, double bound)
    { return std::clamp(*std::max_element(times.begin(), times.end()), 0.0, bound); };
    return networkOf(
            slowestOf(message, c_slowestMessage), slowestOf(byte, c_slowestByte), realSize);
}

Network usualNetwork(int realSize)
{
    return networkOf(2e3, 0.2, realSize);
}

Network networkOfGpus(const MessageCost& cost, int realSize)
{
    return networkOf(cost.message, cost.byte, realSize);
}

} // namespace farfield
