/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A cube that is evenly filled, in domains whose borders are anywhere, and what ranks send of it.
 */
#ifndef FARFIELD_TESTS_TRAFFIC_OF_RANKS_H
#define FARFIELD_TESTS_TRAFFIC_OF_RANKS_H

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "in_process_ranks.h"
#include "reference.h"

namespace farfield
{
namespace test
{

//! The cube and its domains.
struct EvenTraffic
{
    static constexpr int c_cells   = 16; //!< leaf cells along an edge
    static constexpr double c_edge = 6.4;
    //! Of the borders of domains, within a cell of the coarsest level: their places in a cell would count
    //! for up to a cell.
    static constexpr int c_shifts = 8;

    std::array<int, 3> parts; //!< domains along each axis
    int coarsest;             //!< cells of the coarsest level along an edge
    System system = filled();

    int ranks() const { return parts[0] * parts[1] * parts[2]; }

    using MakeMessages = std::function<std::unique_ptr<DeviceCommunicator>(Communicator&)>;
    /*! \brief Sums over all ranks and shifts.
     *  \param[in]  makeMessages  between GPUs
     *  \param[out] setup         cells that are in use */
    Traffic sent(const Options& options, const MakeMessages& makeMessages, Setup* setup) const
    {
        Request request;
        request.energy = request.virial = false;
        Traffic all;
        std::mutex mutex;
        onRanks(ranks(),
                [&](Communicator& communicator)
                {
                    const auto messages = makeMessages(communicator);
                    DistributedSolver<float> solver(options, &communicator, messages.get());
                    for (int shift = 0; shift < c_shifts; shift++)
                    {
                        const Portion<float> portion(system, domains(shift), communicator.rank());
                        portion.giveTo(&solver);
                        const std::vector<float> x = portion.positions(system);
                        std::vector<float> f(x.size());
                        solver.evaluate(x.data(), Box(system.box).rows, f.data(), request);
                    }
                    const Traffic sent = solver.traffic();
                    const std::lock_guard<std::mutex> lock(mutex);
                    all.evaluations += sent.evaluations;
                    all.messages += sent.messages;
                    all.bytes += sent.bytes;
                    all.expectedMessages = sent.expectedMessages;
                    all.expectedBytes    = sent.expectedBytes;
                    *setup               = solver.setup();
                });
        return all;
    }
    /*! \brief What a rank may send more than is expected, relative to it: half a cell in the width of what
     *         a domain reaches along an axis, at most on the coarsest level.
     *  \param[in] reach  of domains beyond their share, cells */
    double tolerance(double reach) const
    {
        double wider = 1;
        for (const int divided : parts)
        {
            const double width = static_cast<double>(coarsest) / divided + reach;
            wider *= divided > 1 ? 1 + 0.5 / width : 1;
        }
        return wider - 1;
    }

private:
    //! Four charges a cell, anywhere.
    static System filled()
    {
        std::mt19937 random(31);
        std::uniform_real_distribution<double> inBox(0, c_edge);
        System system;
        system.box = namedBox("cube", c_edge * c_edge * c_edge);
        for (int i = 0; i < 4 * c_cells * c_cells * c_cells; i++)
        {
            system.positions.push_back({ inBox(random), inBox(random), inBox(random) });
            system.charges.push_back(i % 2 == 0 ? 1 : -1);
        }
        return system;
    }
    //! Domains whose borders are shifted, along each axis by another part of a cell.
    Division domains(int shift) const
    {
        System shifted = system;
        for (Vector& x : shifted.positions)
        {
            for (int k = 0; k < 3; k++)
            {
                x[k] += c_edge / coarsest / c_shifts * ((2 * k + 1) * shift % c_shifts);
            }
        }
        return bricks(shifted, parts);
    }
};

//! Options that lead to the cells of EvenTraffic.
inline Options optionsOfEvenTraffic(Device device, M2lEngine engine)
{
    Options options;
    options.device      = device;
    options.threads     = 1;
    options.m2l         = engine;
    options.order       = 4;
    options.directRange = 1;
    options.cellSize    = EvenTraffic::c_edge / EvenTraffic::c_cells;
    options.tune        = false;
    return options;
}

} // namespace test
} // namespace farfield

#endif
