/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Order and cells for several ranks, which the first of them chooses, and what a network of
 *         them is expected to carry.
 */
#include <algorithm>
#include <numeric>

#include "choice/force_scale.h"
#include "evaluation/input_check.h"
#include "parallel/measured_network.h"
#include "solver/agreement.h"
#include "solver/distributed_impl.h"
#include "solver/single_state.h"

namespace farfield
{
namespace
{

//! Positions of the particles of all ranks, [n][3], by their indices; each is on one rank.
template<class Real>
std::vector<Real> gatherPositions(const std::vector<int>& own, const Real* x, int n, Ranks* ranks)
{
    const auto positions = ranks->gather(std::vector<Real>(x, x + 3 * own.size())).values;
    const auto index     = ranks->gather(own).values;
    std::vector<Real> all(3 * static_cast<size_t>(n));
    for (size_t i = 0; i < index.size(); i++)
    {
        std::copy_n(positions.begin() + 3 * i, 3, all.begin() + 3 * static_cast<size_t>(index[i]));
    }
    return all;
}

} // namespace

template<class Real>
Work DistributedSolver<Real>::Impl::evenWork() const
{
    const Discretisation& d = evaluator_->operators().discretisation();
    return { d, Occupancy(d.referenceBox.determinant()), static_cast<double>(numbers_.takingPart) };
}

template<class Real>
bool DistributedSolver<Real>::Impl::hostsPassMessages() const
{
    return evaluator_->gpu() == nullptr || deviceRanks_.communicator == nullptr;
}

template<class Real>
Network DistributedSolver<Real>::Impl::untimedNetwork(const Mat3& box) const
{
    Network network = hostsPassMessages()
                              ? usualNetwork(sizeof(Real))
                              : networkOfGpus(deviceRanks_.communicator->cost(), sizeof(Real));
    network.parts   = evenDomains(ranks_.size(), box);
    network.threads = evaluator_->threads();
    return network;
}

template<class Real>
Network DistributedSolver<Real>::Impl::networkFor(const Mat3& box)
{
    Network network = untimedNetwork(box);
    if (mayTime_ && hostsPassMessages())
    {
        const Network measured = measuredNetwork(&ranks_, sizeof(Real));
        network.message        = measured.message;
        network.number         = measured.number;
    }
    return network;
}

template<class Real>
void DistributedSolver<Real>::Impl::chooseAndLocate(const Real* x,
                                                    const Positions& positions,
                                                    const Mat3& box,
                                                    Why why)
{
    StageTimes& times = evaluator_->times();
    times.add(Stage::SetUp, [&] { choose(positions(), box, why); });
    times.add(Stage::Sort, [&] { agree(&ranks_, [&] { locate(x, box); }); });
}

template<class Real>
void DistributedSolver<Real>::Impl::choose(const Real* x, const Mat3& box, Why why)
{
    const Network network       = networkFor(box);
    const std::vector<Real> all = gatherPositions(own_.index, x, system_.count(), &ranks_);
    std::vector<double> state;
    agree(&ranks_,
          [&]
          {
              if (ranks_.rank() == 0)
              {
                  state = choiceOfFirst(all, box, network, why);
              }
          });
    restore(ranks_.gather(state).values);
    const auto refuse = []
    {
        throw Error(
                ErrorCode::InvalidArgument,
                "No cells fit the box that they were chosen for, which is a mistake in farfield: "
                "please report it. Another value of cellSize may avoid it.",
                "cellSize");
    };
    // a box that is rotated from the one that the operators are for, or strained
    agree(&ranks_, [&] { chosen_.followBox(box, refuse); });
}

template<class Real>
std::vector<double> DistributedSolver<Real>::Impl::choiceOfFirst(const std::vector<Real>& x,
                                                                 const Mat3& box,
                                                                 const Network& network,
                                                                 Why why)
{
    double rows[3][3];
    for (int i = 0; i < 9; i++)
    {
        rows[i / 3][i % 3] = box(i / 3, i % 3);
    }
    const bool hasBegun = evaluator_->operators().exist();
    Options ofOne       = evaluator_->optionsInUse(options_);
    ofOne.tune          = mayTime_ && !hasBegun; // not in the midst of a run
    SingleState<Real> all(ofOne);
    all.choice().setNetwork(network);
    if (hasBegun)
    {
        all.choice().takeBest();
    }
    all.charges().setCharges(system_.charges.data(), system_.count());
    all.charges().setExclusions(system_.excluded.offsets.data(), system_.excluded.partners.data());
    if (why == Why::OtherError)
    {
        all.choice().restore(all.choice().checked(state()));
        all.look(x.data(), rows);
    }
    else
    {
        all.prepare(x.data(), rows);
    }
    return all.choice().state();
}

template<class Real>
bool DistributedSolver<Real>::Impl::areFieldsAsMeasured(
        const std::vector<double>& cappedFields) const
{
    const OperatorsInUse<Real>& operators = evaluator_->operators();
    if (!operators.exist()
        || std::any_of(cappedFields.begin(), cappedFields.end(), [](double f) { return f < 0; }))
    {
        return true;
    }
    return chosen_.areFieldsAsMeasured(
            std::accumulate(cappedFields.begin(), cappedFields.end(), 0.0),
            sums_,
            leastForce(options_, sizeof(Real), sums_, operators.box().determinant()));
}

template<class Real>
Traffic DistributedSolver<Real>::Impl::traffic() const
{
    Traffic result = traffic_;
    if (evaluator_->operators().exist())
    {
        const Network network =
                untimedNetwork(evaluator_->operators().discretisation().referenceBox);
        const PredictedTraffic expected = predictedTraffic(options_.device, evenWork(), network);
        result.expectedMessages         = expected.messages;
        result.expectedBytes            = expected.numbers * sizeof(Real);
    }
    return result;
}

template class DistributedSolver<float>::Impl;
template class DistributedSolver<double>::Impl;

} // namespace farfield
