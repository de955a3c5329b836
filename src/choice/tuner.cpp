/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/tuner.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <numeric>

#include "plan/cost_model.h"

namespace farfield
{
namespace
{

//! Settings that were timed differ if their times differ by more than this.
constexpr double c_timingNoise = 0.03;
//! Helpers are used from this gain on: a run has other work, and launches for helpers cost time.
constexpr double c_leastGainOfHelpers = 0.05;
//! Settings that are timed for a number of helpers, beside those without.
constexpr size_t c_mostWithHelpers = 3;
//! No further setting is timed after so many seconds.
constexpr double c_longestTuning = 20;
constexpr double c_nsPerSecond   = 1e9;

//! Numbers of helpers that are timed.
std::vector<int> helpersToTime(const Options& options, int available)
{
    if (!options.helpersIfFaster || available == 0)
    {
        return { options.helpersIfFaster ? 0 : available };
    }
    return available == 1 ? std::vector<int>{ 0, 1 } : std::vector<int>{ 0, 1, available };
}

//! Settings whose errors suffice, the cheapest first; for several ranks those that one would take
//! follow, with helpers those that other numbers of them would take.
template<class Real>
std::vector<Discretisation> settingsToTime(const Options& options,
                                           const Mat3& box,
                                           const Occupancy& occupied,
                                           const Setting& sufficient,
                                           const AccuracyControl<Real>& accuracy,
                                           const std::vector<int>& helpers)
{
    Options ofWater  = options;
    ofWater.accuracy = options.accuracy / std::max(sufficient.chosenFor.systemFactor, 1e-3);
    PlanTask task    = accuracy.taskOf(ofWater, box, sufficient.chosenFor.extent);
    task.occupancy   = occupied;
    task.network     = accuracy.network();
    auto settings    = discretisationsToTime(task);
    const auto also  = [&](const Network& network, size_t most)
    {
        task.network       = network;
        const auto further = discretisationsToTime(task);
        for (size_t k = 0; k < std::min(most, further.size()); k++)
        {
            const Discretisation& d = further[k];
            if (std::none_of(settings.begin(),
                             settings.end(),
                             [&](const Discretisation& other) { return d.hasSettingOf(other); }))
            {
                settings.push_back(d);
            }
        }
    };
    if (task.network.ranks() > 1)
    {
        // between these and those for one rank are all that may be the fastest
        also({}, std::numeric_limits<size_t>::max());
    }
    for (size_t k = 1; k < helpers.size(); k++)
    {
        Network network;
        network.helpers = helpers[k];
        also(network, c_mostWithHelpers);
    }
    for (Discretisation& d : settings)
    {
        d.exclusionRange = sufficient.discretisation.exclusionRange;
    }
    return settings;
}

//! Time of an evaluation of forces with the operators that are built, by the ranks of a network.
template<class Real>
double secondsOf(const typename GpuBackend<Real>::DeviceArrays& arrays,
                 const Work& work,
                 const Network& network,
                 Evaluator<Real>* evaluator)
{
    constexpr int c_repeats = 15;
    Request request;
    request.energy              = false;
    request.virial              = false;
    request.replaceForces       = true;
    request.step                = 0; // the grid moves as it does later
    GpuBackend<Real>* const gpu = evaluator->gpu();
    const auto evaluation       = [&] {
        evaluator->pipeline().enqueue({ arrays.x, nullptr, arrays.forces, nullptr, request });
    };
    evaluation();
    gpu->wait();
    const double whole =
            gpu->measure(GpuBackend<Real>::Measure::Whole, c_repeats, evaluation).front();
    const int ranks = network.ranks();
    if (ranks == 1)
    {
        return whole;
    }
    const double messages = network.cost(predictedTraffic(Device::Gpu, work, network));
    const std::vector<double> stages =
            gpu->measure(GpuBackend<Real>::Measure::Stages, c_repeats, evaluation);
    const double all   = std::accumulate(stages.begin(), stages.end(), 0.0);
    const double alike = stages[static_cast<int>(Stage::M2l)] / all; // part that all ranks do
    return whole * (alike + (1 - alike) / ranks) + messages / c_nsPerSecond;
}

//! Times settings one by one, with every number of helpers.
template<class Real>
class Timing
{
public:
    Timing(const ChargeSet<Real>& charges,
           const Occupancy& occupied,
           const Real* x,
           const std::vector<int>& helpers,
           bool mayLoseHelpers,
           const Network& network,
           Evaluator<Real>* evaluator) :
        charges_(charges),
        occupied_(occupied), arrays_(evaluator->gpu()->place(x)), helpers_(helpers),
        mayLoseHelpers_(mayLoseHelpers), network_(network), evaluator_(evaluator)
    {
    }
    //! Times the operators in use. \param[in] setting  its number, of those that are timed
    void add(size_t setting, const Discretisation& d, const Mat3& box)
    {
        GpuBackend<Real>* const gpu = evaluator_->gpu();
        const Grid leaf             = d.leafGrid(box);
        const Work work(d, occupied_, charges_.takingPart());
        for (const int helpers : helpers_)
        {
            if (helpers > gpu->helperCount())
            {
                continue; // they have been lost
            }
            double seconds = 0;
            try
            {
                gpu->useHelpers(helpers);
                seconds = secondsOf(arrays_, work, network_, evaluator_);
            }
            catch (const Error& error)
            {
                if (helpers == 0 || !mayLoseHelpers_)
                {
                    throw;
                }
                gpu->loseHelpers(error.what());
                evaluator_->operators().rebuild(); // if an evaluation is half made
            }
            if (helpers > gpu->helperCount())
            {
                continue;
            }
            timed_.push_back({ d.order,
                               d.ws,
                               d.levels,
                               d.engineInUse(),
                               leaf.count(),
                               leaf.unit(),
                               helpers,
                               seconds });
            settings_.push_back(setting);
        }
    }
    //! The one to take of those whose settings may be; beyond the last if none was timed.
    template<class MayBe>
    size_t fastest(const MayBe& mayBe) const
    {
        size_t best = timed_.size();
        for (const int helpers : helpers_)
        {
            if (helpers > evaluator_->gpu()->helperCount())
            {
                continue; // they have been lost
            }
            size_t own = timed_.size();
            for (size_t k = 0; k < timed_.size(); k++)
            {
                if (timed_[k].helpers == helpers && mayBe(settings_[k])
                    && (own == timed_.size()
                        || timed_[k].seconds < (1 - c_timingNoise) * timed_[own].seconds))
                {
                    own = k;
                }
            }
            if (own < timed_.size()
                && (best == timed_.size()
                    || timed_[own].seconds < (1 - c_leastGainOfHelpers) * timed_[best].seconds))
            {
                best = own;
            }
        }
        return best;
    }
    size_t settingOf(size_t timed) const { return settings_[timed]; }
    //! Uses the helpers of what was timed. \param[in] k  of these; beyond the last: nothing is in use
    void use(size_t k, AccuracyControl<Real>* accuracy)
    {
        if (k < timed_.size())
        {
            timed_[k].isInUse = true;
            useHelpers(timed_[k].helpers, accuracy);
        }
    }
    //! Uses so many, and has later choices be for them.
    void useHelpers(int helpers, AccuracyControl<Real>* accuracy)
    {
        const int count = std::min(helpers, evaluator_->gpu()->helperCount());
        evaluator_->gpu()->useHelpers(count);
        accuracy->setHelpers(std::min(count, evaluator_->gpu()->helperCount()));
    }
    const std::vector<TimedSetting>& timed() const { return timed_; }

private:
    const ChargeSet<Real>& charges_;
    const Occupancy& occupied_;
    typename GpuBackend<Real>::DeviceArrays arrays_;
    std::vector<int> helpers_;
    bool mayLoseHelpers_;
    Network network_;
    Evaluator<Real>* evaluator_;
    std::vector<TimedSetting> timed_;
    std::vector<size_t> settings_; //!< of timed_
};

} // namespace

template<class Real>
std::vector<TimedSetting> tune(const Options& options,
                               const ChargeSet<Real>& charges,
                               const Mat3& box,
                               const Real* x,
                               Evaluator<Real>* evaluator,
                               Chosen<Real>* chosen,
                               AccuracyControl<Real>* accuracy)
{
    const Setting sufficient       = chosen->inUse();
    const Occupancy occupied       = charges.occupancy(x, box);
    const std::vector<int> helpers = helpersToTime(options, evaluator->gpu()->helperCount());
    const auto build               = [&](const Discretisation& d) {
        chosen->build({ d, { sufficient.chosenFor.extent } });
    };
    auto settings = settingsToTime(options, box, occupied, sufficient, *accuracy, helpers);
    if (settings.size() < 2 && helpers.size() < 2)
    {
        return {};
    }
    Timing<Real> timing(
            charges, occupied, x, helpers, options.helpersIfFaster, accuracy->network(), evaluator);
    const auto begin = std::chrono::steady_clock::now();
    const auto spent = [&]
    { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    size_t built = 0;
    for (size_t k = 0; k < settings.size() && (k == 0 || spent() < c_longestTuning); k++)
    {
        built = k;
        try
        {
            build(settings[k]);
            timing.add(k, settings[k], box);
        }
        catch (const Error& error)
        {
            if (k == 0 || error.code() != ErrorCode::OutOfMemory)
            {
                throw;
            }
            built = settings.size(); // none stands for sure
            break;                   // the first one fitted
        }
    }
    size_t taken      = timing.fastest([](size_t /*setting*/) { return true; });
    const size_t best = timing.settingOf(taken);
    if (built != best)
    {
        build(settings[best]);
    }
    timing.useHelpers(timing.timed()[taken].helpers, accuracy);
    if (!accuracy->stillSuffices(x, box))
    {
        // what was measured before is known to do; it need not be one of those that were timed
        chosen->build(sufficient);
        const auto isSufficient = [&](size_t setting)
        { return settings[setting].hasSettingOf(sufficient.discretisation); };
        taken = timing.fastest(isSufficient);
        if (taken == timing.timed().size() && helpers.size() > 1)
        {
            // helpers were timed with other cells
            settings.push_back(sufficient.discretisation);
            timing.add(settings.size() - 1, settings.back(), box);
            taken = timing.fastest(isSufficient);
        }
    }
    timing.use(taken, accuracy);
    return timing.timed();
}

template<class Real>
std::vector<TimedSetting> timeHelpers(const Options& options,
                                      const ChargeSet<Real>& charges,
                                      const Real* x,
                                      Evaluator<Real>* evaluator,
                                      AccuracyControl<Real>* accuracy)
{
    const OperatorsInUse<Real>& operators = evaluator->operators();
    const Mat3 box                        = operators.box();
    const Occupancy occupied              = charges.occupancy(x, box);
    Timing<Real> timing(charges,
                        occupied,
                        x,
                        helpersToTime(options, evaluator->gpu()->helperCount()),
                        options.helpersIfFaster,
                        accuracy->network(),
                        evaluator);
    timing.add(0, operators.discretisation(), box);
    timing.use(timing.fastest([](size_t /*setting*/) { return true; }), accuracy);
    return timing.timed();
}

template decltype(timeHelpers<float>) timeHelpers<float>;
template decltype(timeHelpers<double>) timeHelpers<double>;
template decltype(tune<float>) tune<float>;
template decltype(tune<double>) tune<double>;

} // namespace farfield
