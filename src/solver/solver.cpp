/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>

#include <omp.h>

#include "backend/backend.h"
#include "backend/device_entry.h"
#include "backend/gpu_backend.h"
#include "cells/excluded_pairs.h"
#include "plan/discretisation.h"
#include "solver/force_spread.h"
#include "solver/saved_state.h"

namespace farfield
{

const char* version()
{
    return FARFIELD_VERSION;
}

namespace
{

template<class T>
std::string text(const T& value)
{
    return std::to_string(value);
}
std::string text(double value)
{
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%g", value);
    return buffer;
}

template<class T>
void requireRange(const char* name,
                  T value,
                  T low,
                  T high,
                  const char* unit,
                  const char* parameter = "")
{
    // written so that NaN fails
    if (!(value >= low && value <= high))
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::string(name) + " = " + text(value) + unit + " is outside its range, "
                            + text(low) + " to " + text(high) + unit + ".",
                    parameter);
    }
}

template<class Real>
void checkOptions(const Options& o)
{
    const double most = std::numeric_limits<double>::max();
    requireRange("The Coulomb constant",
                 o.coulombConstant,
                 std::numeric_limits<double>::min(),
                 most,
                 " kJ nm/(mol e^2)",
                 "coulombConstant");
    requireRange("The accuracy", o.accuracy, c_bestAccuracy<Real>, c_worstAccuracy, "", "accuracy");
    requireRange("The order", o.order, -1, c_maxOrder, "", "order");
    requireRange("The direct range", o.directRange, 0, c_maxDirectRange, "", "directRange");
    requireRange("The cell size", o.cellSize, 0.0, 1e6, " nm", "cellSize");
    requireRange("The number of threads", o.threads, 0, 4096, "", "threads");
    requireRange("The number of the CUDA device", o.deviceId, -1, 1 << 16, "", "deviceId");
}

//! Smallest and largest edges of a box, nm: cells can be counted, and forces fit into a float.
constexpr double c_smallestBox = 1e-6;
constexpr double c_largestBox  = 1e8;

Mat3 checkedBox(const double box[3][3])
{
    Mat3 B;
    std::string all;
    bool valid = true;
    for (int i = 0; i < 3; i++)
    {
        all += (i ? "; " : "");
        for (int j = 0; j < 3; j++)
        {
            B(i, j) = box[i][j];
            // written so that NaN fails
            valid = valid && std::abs(box[i][j]) <= c_largestBox && (j <= i || box[i][j] == 0)
                    && (j != i || box[i][j] >= c_smallestBox);
            all += (j ? " " : "") + text(box[i][j]);
        }
    }
    if (!valid)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The box vectors (" + all
                            + ") nm must be finite and lower triangular with a positive diagonal, "
                            + text(c_smallestBox) + " to " + text(c_largestBox) + " nm.");
    }
    return B;
}

bool isForGpuOnly(M2lEngine engine)
{
    return engine != M2lEngine::Auto && engine != M2lEngine::Hierarchy && engine != M2lEngine::Fft;
}

//! Cells are chosen anew when the number of particles has changed by more than this factor.
constexpr double c_otherNumber = 1.5;

//! Settings that were timed differ if their times differ by more than this.
constexpr double c_timingNoise = 0.03;
//! Excluded pairs at any distance, nm, as far as they are surely near.
constexpr double c_allExclusions = 1e9;

//! No further setting is timed after so many seconds.
constexpr double c_longestTuning = 20;

//! Made while there is memory: its text is shared by copies.
const Error
        c_outOfMemory(ErrorCode::OutOfMemory,
                      "The memory of the host is exhausted; larger cells, a lower order or fewer "
                      "threads need less.");

//! Returns work(), with memory that is missing reported as an Error.
template<class Work>
auto withMemoryErrors(const Work& work) -> decltype(work())
{
    try
    {
        return work();
    }
    catch (const std::bad_alloc&)
    {
        throw Error(c_outOfMemory);
    }
    catch (const std::length_error&) // more than an array can ever hold
    {
        throw Error(c_outOfMemory);
    }
}

} // namespace

template<class Real>
class Solver<Real>::Impl
{
public:
    explicit Impl(const Options& options) : options_(options)
    {
        checkOptions<Real>(options_);
        threads_ = options_.threads > 0 ? options_.threads : omp_get_max_threads();
        if (options_.device == Device::Gpu
            || (options_.device == Device::Auto && gpuIsUsable(options_.deviceId)))
        {
            auto backend = makeGpuBackend<Real>(
                    options_.coulombConstant, threads_, options_.reproducible, options_.deviceId);
            gpu_     = backend.get();
            backend_ = std::move(backend);
            device_  = Device::Gpu;
        }
        else
        {
            if (isForGpuOnly(options_.m2l))
            {
                throw Error(ErrorCode::Unsupported,
                            "The M2L engine asked for exists on the device 'gpu' only: use 'auto', "
                            "'hierarchy' or 'fft' on the CPU.",
                            "m2l");
            }
            backend_ = makeCpuBackend<Real>(options_.coulombConstant, threads_);
            device_  = Device::Cpu;
        }
        resetTimings();
    }

    void setCharges(const Real* q, int n)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        if (n < 0)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The number of particles, " + text(n) + ", must not be negative.");
        }
        for (int i = 0; i < n; i++)
        {
            if (!std::isfinite(q[i]))
            {
                throw Error(ErrorCode::InvalidArgument,
                            "The charge of particle " + text(i) + ", "
                                    + text(static_cast<double>(q[i])) + " e, must be finite.");
            }
        }
        std::vector<char> isCharged(n);
        std::transform(q, q + n, isCharged.begin(), [](Real charge) { return charge != 0; });
        ExcludedPairs pairs;
        pairs.offsets.assign(static_cast<size_t>(n) + 1, 0);
        if (n == count_)
        {
            pairs = excluded_;
        }
        backend_->setCharges(q, n);
        // nothing fails any more
        pairsStand_ = pairsStand_ && n == count_ && isCharged == isCharged_;
        count_      = n;
        isCharged_.swap(isCharged);
        charged_        = std::count(isCharged_.begin(), isCharged_.end(), char(1));
        squaredCharges_ = 0;
        for (int i = 0; i < n; i++)
        {
            squaredCharges_ += static_cast<double>(q[i]) * static_cast<double>(q[i]);
        }
        std::swap(excluded_, pairs);
        // the charges are set: what fails here is tried again when it is needed
        try
        {
            setPairs();
        }
        catch (const std::bad_alloc&)
        {
        }
        catch (const Error& error)
        {
            if (error.code() != ErrorCode::OutOfMemory)
            {
                throw;
            }
        }
    }

    void setExclusions(const int* offsets, const int* partners, int n)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        if (n != count_)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The exclusions are for " + text(n) + " particles, the charges for "
                                + text(count_) + ": set the charges first.");
        }
        if (offsets[0] != 0)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The first offset of the exclusions, " + text(offsets[0]) + ", must be 0.");
        }
        for (int i = 0; i < n; i++)
        {
            if (offsets[i + 1] < offsets[i])
            {
                throw Error(ErrorCode::InvalidArgument,
                            "The offsets of the exclusions must ascend; those of particle "
                                    + text(i) + " are " + text(offsets[i]) + " and "
                                    + text(offsets[i + 1]) + ".");
            }
            for (int k = offsets[i]; k < offsets[i + 1]; k++)
            {
                if (partners[k] < 0 || partners[k] >= n)
                {
                    throw Error(ErrorCode::InvalidArgument,
                                "The excluded partner " + text(partners[k]) + " of particle "
                                        + text(i) + " is outside the range 0 to " + text(n - 1)
                                        + ".");
                }
            }
        }
        ExcludedPairs all = { { offsets, offsets + n + 1 }, { partners, partners + offsets[n] } };
        const ExcludedPairs charged = chargedPairs(all, isCharged_);
        backend_->setExclusions(charged.offsets.data(), charged.partners.data(), n);
        std::swap(excluded_, all);
        pairsStand_ = true;
    }

    void prepare(const Real* x, const double boxVectors[3][3])
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        const Mat3 box = checkedBox(boxVectors);
        checkPositions(x, box);
        timed(Stage::SetUp, [&] { follow(box, [x] { return x; }); });
        if (gpu_ != nullptr && count_ > 0)
        {
            notCounted([&] { rehearse(x); });
        }
    }

    Totals
    evaluate(const Real* x, const double boxVectors[3][3], Real* forces, const Request& request)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        const Mat3 box = checkedBox(boxVectors);
        if (count_ == 0)
        {
            return {};
        }
        timed(Stage::SetUp,
              [&]
              {
                  follow(box,
                         [&]
                         {
                             checkPositions(x, box);
                             return x;
                         });
              });
        double before[static_cast<int>(Stage::Count)];
        std::copy(std::begin(seconds_), std::end(seconds_), std::begin(before));
        const Totals totals = runToEnd(x, forces, request);
        double measured[static_cast<int>(Stage::Count)];
        if (backend_->measured(measured))
        {
            // what the host saw is how long it took to launch
            for (int stage = static_cast<int>(Stage::Sort); stage < static_cast<int>(Stage::Count);
                 stage++)
            {
                seconds_[stage] = before[stage] + measured[stage];
            }
        }
        evaluations_++;
        return totals;
    }

    void enqueue(const Real* x,
                 const double boxVectors[3][3],
                 Real* forces,
                 const Request& request,
                 void* stream)
    {
        const Mat3 box = checkedBox(boxVectors);
        requireGpu();
        const DeviceScope<Real> scope(gpu_);
        if (count_ == 0)
        {
            return;
        }
        gpu_->await(stream);
        std::vector<Real> onHost;
        follow(box,
               [&]
               {
                   onHost = gpu_->positions(x, count_, stream);
                   checkPositions(onHost.data(), box);
                   return static_cast<const Real*>(onHost.data());
               });
        runOnDevice(x, forces, request, stream);
    }

    Totals wait()
    {
        requireGpu();
        const DeviceScope<Real> scope(gpu_);
        return count_ == 0 ? Totals{} : gpu_->wait();
    }

    bool mustRecordAgain() const
    {
        requireGpu();
        return gpu_->mustRecordAgain();
    }

    std::vector<StageTime> measureStages(const Real* x,
                                         const double boxVectors[3][3],
                                         Real* forces,
                                         const Request& request,
                                         int repeats)
    {
        const DeviceScope<Real> scope(gpu_);
        // the first evaluation sets up what must not happen while recording
        enqueue(x, boxVectors, forces, request, nullptr);
        wait();
        const auto evaluation = [&] { runOnDevice(x, forces, request, nullptr); };
        const std::vector<double> seconds =
                gpu_->measure(GpuBackend<Real>::Measure::Stages, repeats, evaluation);
        std::vector<StageTime> times;
        for (size_t stage = 0; stage < seconds.size(); stage++)
        {
            if (seconds[stage] > 0)
            {
                times.push_back({ c_stageNames[stage], 1, seconds[stage] });
            }
        }
        return times;
    }

    Setup setup() const
    {
        Setup s;
        s.device     = device_;
        s.threads    = threads_;
        s.timed      = timed_;
        s.deviceName = gpu_ != nullptr ? gpu_->deviceName() : cpuTargetName();
        if (discretisation_)
        {
            const Discretisation& d = *discretisation_;
            const Grid leaf         = d.leafGrid(box_);
            s.order                 = d.order;
            s.directRange           = d.ws;
            s.m2l                   = d.levels == 1 ? M2lEngine::Fft : d.engine;
            s.leastSquares          = d.leastSquares;
            s.cells                 = d.leafCells;
            s.levels                = d.levels;
            s.leafCells             = leaf.count();
            s.cellSize              = leaf.unit();
            s.estimatedError        = error(leaf);
            s.chosenFor             = chosenFor_;
        }
        return s;
    }

    std::vector<double> state() const
    {
        return discretisation_
                       ? encodeState({ *discretisation_, chosenFor_, chosenCount_, strain_ },
                                     options_,
                                     sizeof(Real))
                       : std::vector<double>();
    }

    void restore(const std::vector<double>& array)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        const SavedState saved = decodeState(array, options_, sizeof(Real));
        changeOperators(
                [&]
                {
                    build(saved.discretisation);
                    setBox(saved.discretisation.referenceBox, saved.strain, Mat3::Identity());
                    chosenFor_   = saved.chosenFor;
                    chosenCount_ = saved.particles;
                });
        timed_.clear();
    }

    std::vector<StageTime> timings() const
    {
        std::vector<StageTime> all;
        for (int stage = 0; stage < static_cast<int>(Stage::Count); stage++)
        {
            if (seconds_[stage] > 0)
            {
                all.push_back({ c_stageNames[stage], evaluations_, seconds_[stage] });
            }
        }
        return all;
    }

    void resetTimings()
    {
        std::fill(std::begin(seconds_), std::end(seconds_), 0.0);
        evaluations_ = 0;
    }

private:
    static constexpr const char* c_stageNames[] = {
        "Set-up", "Sort", "Exclusions", "P2P", "P2M", "M2M", "M2L", "L2L", "L2P", "Collect"
    };

    //! The pipeline.
    Totals run(const Real* x, Real* forces, const Request& request)
    {
        try
        {
            return runStages(x, forces, request);
        }
        catch (const Error& error)
        {
            operatorsStand_ = operatorsStand_ && error.code() == ErrorCode::InvalidArgument;
            throw;
        }
        catch (...)
        {
            operatorsStand_ = false; // lists of cells and tables may be half made
            throw;
        }
    }

    //! The pipeline on host arrays, again where lists had too little room.
    Totals runToEnd(const Real* x, Real* forces, const Request& request)
    {
        Totals totals = run(x, forces, request);
        while (backend_->mustRepeat())
        {
            totals = run(x, forces, request);
        }
        return totals;
    }

    //! Its stages. The near field comes first so that a GPU has it beside the far field.
    Totals runStages(const Real* x, Real* forces, Request request)
    {
        for (int k = 0; k < 3; k++)
        {
            requireRange("The grid offset", request.gridOffset[k], 0.0, 1.0, " cells");
            if (request.step >= 0)
            {
                const double product  = c_offsetSteps[k] * static_cast<double>(request.step);
                request.gridOffset[k] = product - std::floor(product);
            }
        }
        backend_->setRequest(request);
        const int leaf = discretisation_->levels - 1;

        timed(Stage::Sort, [&] { backend_->sort(x); });
        timed(Stage::Exclusions, [&] { backend_->exclusions(x); });
        timed(Stage::P2p, [&] { backend_->p2p(); });
        timed(Stage::P2m, [&] { backend_->p2m(); });
        for (int level = leaf; level > 0; level--)
        {
            timed(Stage::M2m, [&] { backend_->m2m(level); });
        }
        timed(Stage::M2l, [&] { backend_->m2l(0); });
        for (int level = 0; level < leaf; level++)
        {
            timed(Stage::L2l, [&] { backend_->l2l(level); });
            timed(Stage::M2l, [&] { backend_->m2l(level + 1); });
        }
        timed(Stage::L2p, [&] { backend_->l2p(forces); });
        Totals totals;
        timed(Stage::Collect, [&] { totals = backend_->collect(forces); });
        return totals;
    }

    //! The pipeline on arrays in device memory.
    void runOnDevice(const Real* x, Real* forces, const Request& request, void* stream)
    {
        gpu_->enter(stream);
        try
        {
            run(x, forces, request);
        }
        catch (...)
        {
            gpu_->leave();
            throw;
        }
    }

    //! Waits for what the caller has put into streams of his own.
    void settle()
    {
        if (gpu_ != nullptr)
        {
            gpu_->settle();
        }
    }

    void requireGpu() const
    {
        if (gpu_ == nullptr)
        {
            throw Error(ErrorCode::Unsupported,
                        "Arrays in device memory need a solver with the device 'gpu'; this one "
                        "has 'cpu'.",
                        "device");
        }
    }

    template<class Work>
    void timed(Stage stage, const Work& work)
    {
        backend_->beginStage(stage);
        const auto begin = std::chrono::steady_clock::now();
        work();
        backend_->endStage(stage);
        seconds_[static_cast<int>(stage)] +=
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    //! Of the operators in use: measured, or as predicted for water.
    double error(const Grid& leaf) const
    {
        const double measured = discretisation_->measuredError;
        return measured > 0
                       ? measured
                       : std::max(estimatedError(*discretisation_, leaf), c_bestAccuracy<Real>);
    }

    //! Refuses positions that are not finite, or so far away that no cell can be told.
    void checkPositions(const Real* x, const Mat3& box) const
    {
        constexpr double c_farthest = 1e9; // boxes; sort() has the same limit in cells
        const Mat3 inverse          = box.inverse();
        for (int i = 0; i < count_; i++)
        {
            const Real* r              = x + 3 * static_cast<size_t>(i);
            const Eigen::RowVector3d f = Eigen::RowVector3d(static_cast<double>(r[0]),
                                                            static_cast<double>(r[1]),
                                                            static_cast<double>(r[2]))
                                         * inverse;
            // written so that NaN fails
            if (!(f.cwiseAbs().maxCoeff() < c_farthest) || f.hasNaN())
            {
                throw Error(ErrorCode::InvalidArgument,
                            "The position of particle " + text(i) + " ("
                                    + text(static_cast<double>(r[0])) + ", "
                                    + text(static_cast<double>(r[1])) + ", "
                                    + text(static_cast<double>(r[2]))
                                    + ") is not finite or lies more than a billion cells outside "
                                      "the box.");
            }
        }
    }

    //! Error of the forces, relative to what Options::accuracy says.
    struct MeasuredError
    {
        double usual; //!< mean over positions of the grid
        double worst; //!< of the position with the largest, and of those that were not measured
    };

    /*! \brief Chooses and builds operators that meet the accuracy, in these very positions.
     *
     *  The error model is that of water. What it predicts is compared with what is measured, and
     *  the ratio of the two, a property of the system, goes into the next choice. */
    void buildSufficient(const Mat3& box, const Real* x)
    {
        constexpr int c_mostAttempts = 10;
        //! What must be left for positions of the grid that were not measured.
        constexpr double c_margin = 0.95;
        //! Errors below this part of the request are worth another, cheaper choice.
        constexpr double c_idle = 0.15;
        //! A ratio that was measured at one setting is off by so much at another.
        constexpr double c_doubt = 1.1;
        //! Beyond this no setting is left.
        constexpr double c_largestFactor = 1e12;
        const Occupancy occupied(x, count_, box);
        const double request   = c_margin * options_.accuracy;
        const bool orderIsOpen = options_.order < 0;
        double factor          = 1;
        double least = 0, leastPredicted = 0; // errors of the best attempt
        std::optional<Discretisation> sufficient, last;
        int attempt = 0;
        while (attempt < c_mostAttempts && factor < c_largestFactor)
        {
            Options ofWater  = options_;
            ofWater.accuracy = options_.accuracy / factor;
            Discretisation d = chooseDiscretisation(
                    ofWater, device_, box, count_, occupied, sizeof(Real), largestCell());
            if (last)
            {
                d.exclusionRange = discretisation_->exclusionRange;
            }
            if (last && d.hasSettingOf(*last))
            {
                if (sufficient)
                {
                    break;
                }
                factor *= 2;
                continue;
            }
            last = d;
            build(d);
            const double predicted = estimatedError(d, d.leafGrid(box));
            MeasuredError measured = measureError(x, box);
            if (measured.worst > request && !excluded_.partners.empty())
            {
                // what is left of subtracting excluded pairs may be all that is wrong
                const double range = discretisation_->exclusionRange;
                setExclusionRange(c_allExclusions);
                const MeasuredError withoutThem = measureError(x, box);
                if (withoutThem.worst < 0.8 * measured.worst)
                {
                    measured = withoutThem;
                }
                else
                {
                    setExclusionRange(range);
                }
            }
            discretisation_->measuredError = measured.usual;
            discretisation_->systemFactor  = measured.worst / predicted;
            const double ratio             = c_doubt * measured.worst / predicted;
            if (measured.worst <= request || !orderIsOpen)
            {
                // an explicit order stands even if it misses the accuracy
                const bool isIdle = orderIsOpen && !sufficient && measured.worst > 0
                                    && measured.worst < c_idle * request && ratio < factor;
                sufficient = discretisation_;
                if (!isIdle)
                {
                    break;
                }
                factor = ratio;
                attempt++;
                continue;
            }
            if (sufficient)
            {
                build(*sufficient); // the cheaper one does not do
                break;
            }
            // what should have become much better and has not is rounding
            const bool isStuck = attempt > 0 && predicted < 1e-2 * leastPredicted
                                 && measured.worst > 0.7 * least;
            if (attempt++ == 0 || measured.worst < least)
            {
                least          = measured.worst;
                leastPredicted = predicted;
            }
            if (isStuck)
            {
                break; // rounding
            }
            factor = std::max(ratio, 1.5 * factor);
        }
        if (!sufficient)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The accuracy, " + text(options_.accuracy)
                                + ", cannot be met for these particles in this box in "
                                + (sizeof(Real) == 4 ? "single" : "double")
                                + " precision: the best that was measured is "
                                + text(1.1 * least / c_margin) + ". Ask for no less than that.",
                        "accuracy");
        }
    }

    //! Builds the operators for the first time.
    void buildFirst(const Mat3& box, const Real* x)
    {
        notCounted([&] { buildSufficient(box, x); });
        if (gpu_ == nullptr || !options_.tune)
        {
            return;
        }
        Options ofWater  = options_;
        const double f   = std::max(discretisation_->systemFactor, 1e-3);
        ofWater.accuracy = options_.accuracy / f;
        const std::vector<Discretisation> settings =
                discretisationsToTime(ofWater,
                                      device_,
                                      box,
                                      count_,
                                      Occupancy(x, count_, box),
                                      sizeof(Real),
                                      largestCell());
        if (settings.size() > 1)
        {
            notCounted([&] { tune(settings, x, box); });
        }
    }

    /*! \brief Edge of the largest cell, nm, in which rounding leaves the accuracy.
     *
     *  Positions are relative to the centre of a cell: half a unit in the last place of half an
     *  edge, at both ends of a distance of 0.15 nm, may cost half of the accuracy. */
    double largestCell() const
    {
        constexpr double c_distance = 0.15, c_part = 0.5;
        const double rounding = 0.25 * std::numeric_limits<Real>::epsilon();
        return c_part * options_.accuracy * c_distance / (4 * rounding);
    }

    //! Pairs nearer than this are left out of the near field instead of being subtracted.
    void setExclusionRange(double range)
    {
        discretisation_->exclusionRange = range;
        backend_->setExclusionRange(range);
    }

    /*! \brief Forces at several positions of the grid: a number that are spread evenly, and some
     *         that put a particle into the corner of its cell, where errors are largest. */
    ForceSpread measureSpread(const Real* x, const Mat3& box, int positions, int corners)
    {
        const Mat3 toCells = discretisation_->leafGrid(box).inverseEdges();
        std::vector<std::vector<Real>> forces(
                positions + corners, std::vector<Real>(3 * static_cast<size_t>(count_), Real(0)));
        for (int k = 0; k < positions + corners; k++)
        {
            Request request;
            request.energy = request.virial = false;
            request.replaceForces           = true;
            request.step                    = k < positions ? k : -1;
            for (int axis = 0; k >= positions && axis < 3; axis++)
            {
                const Real* r = x + 3 * static_cast<size_t>(k - positions);
                double cell   = 0;
                for (int j = 0; j < 3; j++)
                {
                    cell += static_cast<double>(r[j]) * toCells(j, axis);
                }
                request.gridOffset[axis] = cell - std::floor(cell);
            }
            runToEnd(x, forces[k].data(), request);
        }
        return ForceSpread(forces, positions);
    }

    //! Error of the operators in use, from evaluations at several positions of the grid.
    MeasuredError measureError(const Real* x, const Mat3& box)
    {
        // few particles meet few of the places in a cell at one position of the grid, and those of
        // a crystal meet the same ones
        constexpr int c_samples = 12000, c_least = 6, c_most = 24;
        constexpr int c_fewParticles = 20000, c_corners = 8, c_fewCorners = 2;
        //! Boxes of no more cells show an error that is the same at all positions.
        constexpr long long c_fewCells = 27;
        constexpr int c_lowOrder = 10, c_higher = 4; //!< the same of their orders
        if (charged_ == 0)
        {
            return { 0, 0 };
        }
        const int positions = std::clamp(c_samples / count_ + 1, c_least, c_most);
        const int corners   = std::min(count_, count_ <= c_fewParticles ? c_corners : c_fewCorners);
        ForceSpread spread  = measureSpread(x, box, positions, corners);
        if (discretisation_->leafGrid(box).count() <= c_fewCells
            && discretisation_->order <= c_lowOrder)
        {
            const Discretisation d = *discretisation_;
            Discretisation better  = d;
            better.order           = d.order + c_higher;
            build(better);
            spread.addBias(measureSpread(x, box, positions, 0), positions, positions);
            build(d);
        }
        const double distance = std::cbrt(box.determinant() / charged_);
        const double pair     = options_.coulombConstant * squaredCharges_
                            / (static_cast<double>(charged_) * distance * distance);
        // all are sums over particles
        const double scale = std::max(spread.square, charged_ * std::pow(0.01 * pair, 2));
        const double usual = std::sqrt(spread.usual / scale);
        const double worst = std::sqrt(spread.worst / scale);
        // other positions may be worse than the worst of these: half as far again from the usual
        return { usual, worst + 0.5 * (worst - usual) };
    }

    //! Times the settings and builds the operators of the fastest.
    void tune(const std::vector<Discretisation>& settings, const Real* x, const Mat3& box)
    {
        const Discretisation sufficient = *discretisation_;
        const auto arrays               = gpu_->place(x);
        const auto begin                = std::chrono::steady_clock::now();
        const auto spent                = [&]
        { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
        timed_.clear();
        size_t best = 0, built = 0;
        for (size_t k = 0; k < settings.size() && (k == 0 || spent() < c_longestTuning); k++)
        {
            built = k;
            try
            {
                Discretisation d = settings[k];
                d.exclusionRange = sufficient.exclusionRange;
                build(d);
                const Setup s        = setup();
                const double seconds = secondsOf(arrays);
                timed_.push_back({ s.order,
                                   s.directRange,
                                   s.levels,
                                   s.m2l,
                                   s.leafCells,
                                   s.cellSize,
                                   seconds });
            }
            catch (const Error& error)
            {
                if (k == 0 || error.code() != ErrorCode::OutOfMemory)
                {
                    throw;
                }
                break; // the first one fitted
            }
            if (timed_[k].seconds < (1 - c_timingNoise) * timed_[best].seconds)
            {
                best = k;
            }
        }
        if (built != best)
        {
            Discretisation d = settings[best];
            d.exclusionRange = sufficient.exclusionRange;
            build(d);
        }
        const double predicted       = estimatedError(settings[best], settings[best].leafGrid(box));
        const MeasuredError measured = measureError(x, box);
        discretisation_->measuredError = measured.usual;
        discretisation_->systemFactor  = measured.worst / predicted;
        if (measured.worst > options_.accuracy && options_.order < 0)
        {
            // what was measured before is known to do
            build(sufficient);
            best = 0;
        }
        timed_[best].isInUse = true;
    }

    //! Does what is no evaluation of the caller's.
    template<class Work>
    void notCounted(const Work& work)
    {
        double before[static_cast<int>(Stage::Count)];
        std::copy(std::begin(seconds_), std::end(seconds_), std::begin(before));
        work();
        std::copy(std::begin(before), std::end(before), std::begin(seconds_));
    }

    /*! \brief Evaluates on the GPU once with totals and once without: what is missing, memory above
     *         all, is missed now, and all kernels are loaded when the first is recorded. */
    void rehearse(const Real* x)
    {
        const auto arrays = gpu_->place(x);
        Request request;
        for (const bool totals : { true, false })
        {
            request.energy = request.virial = totals;
            runOnDevice(arrays.x, arrays.forces, request, nullptr);
            gpu_->wait();
        }
    }

    //! Time of an evaluation of forces with the operators that are built.
    double secondsOf(const typename GpuBackend<Real>::DeviceArrays& arrays)
    {
        constexpr int c_repeats = 15;
        Request request;
        request.energy        = false;
        request.virial        = false;
        request.replaceForces = true;
        request.step          = 0; // the grid moves as it does later
        const auto evaluation = [&] { runOnDevice(arrays.x, arrays.forces, request, nullptr); };
        evaluation();
        gpu_->wait();
        return gpu_->measure(GpuBackend<Real>::Measure::Whole, c_repeats, evaluation).front();
    }

    //! Builds the operators, with a clear error if they do not fit into memory.
    void build(const Discretisation& d)
    {
        operatorsStand_ = false;
        try
        {
            backend_->build(d);
        }
        catch (const std::bad_alloc&)
        {
            throw Error(ErrorCode::OutOfMemory,
                        "The operators of order " + text(d.order) + " for "
                                + text(d.leafGrid(d.referenceBox).count())
                                + " cells do not fit into memory; larger cells or a lower order "
                                  "need less.",
                        "cellSize");
        }
        backend_->setExclusionRange(d.exclusionRange);
        discretisation_ = d;
        strain_         = Mat3::Zero();
        rotation_       = Mat3::Identity();
        box_            = d.referenceBox;
    }

    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation)
    {
        operatorsStand_ = false;
        backend_->setBox(box, strain, rotation);
        box_      = box;
        strain_   = strain;
        rotation_ = rotation;
    }

    /*! \brief Does what builds or changes the operators; if it fails, what was in use is in use.
     *
     *  The old operators make room for the new ones, as memory may not suffice for both. So all
     *  that can be kept is what they were, and rebuild() builds them again when they are needed. */
    template<class Work>
    void changeOperators(const Work& work)
    {
        const auto discretisation = discretisation_;
        const Mat3 box = box_, strain = strain_, rotation = rotation_;
        try
        {
            work();
            operatorsStand_ = true;
        }
        catch (...)
        {
            discretisation_ = discretisation;
            box_            = box;
            strain_         = strain;
            rotation_       = rotation;
            throw;
        }
    }

    //! Builds the operators in use again if a failure has cost them.
    void rebuild()
    {
        if (!operatorsStand_)
        {
            changeOperators(
                    [&]
                    {
                        const Mat3 box = box_, strain = strain_, rotation = rotation_;
                        build(Discretisation(*discretisation_));
                        setBox(box, strain, rotation);
                    });
        }
    }

    //! Whether cells were chosen for so many particles, more or less.
    bool areChosenForCount() const
    {
        const double now  = count_;
        const double then = static_cast<double>(chosenCount_);
        return now <= c_otherNumber * then && then <= c_otherNumber * now;
    }

    //! How the cells of a box differ from those of the reference box.
    struct Deformation
    {
        Mat3 rotation, strain; //!< strain: traceless
        double tolerance;      //!< error of the operators
        bool sheared, resized; //!< too much for the operators
    };
    Deformation deformation(const Mat3& box) const
    {
        const Discretisation& d = *discretisation_;
        const Grid then         = d.leafGrid(d.referenceBox);
        const Grid now          = d.leafGrid(box);
        // Edges of cells transform as r -> r (1 + strain) rotation; isotropic scaling is divided
        // out.
        const Mat3 F = then.scaledEdges().inverse() * now.scaledEdges();
        Eigen::JacobiSVD<Mat3> svd(F, Eigen::ComputeFullU | Eigen::ComputeFullV);
        Deformation result;
        result.rotation = svd.matrixU() * svd.matrixV().transpose();
        result.strain =
                svd.matrixU() * svd.singularValues().asDiagonal() * svd.matrixU().transpose()
                - Mat3::Identity();
        result.strain -= result.strain.trace() / 3 * Mat3::Identity();
        result.tolerance = error(then);
        // second-order terms are about the square of the strain; operators of rectangular cells
        // rely on reflections, which a shear breaks
        const double shear = std::max({ std::abs(result.strain(0, 1)),
                                        std::abs(result.strain(0, 2)),
                                        std::abs(result.strain(1, 2)) });
        result.sheared     = result.strain.cwiseAbs().maxCoeff() > std::sqrt(0.1 * result.tolerance)
                         || (then.edges().isDiagonal(1e-10) && shear > 2e-3 * result.tolerance);
        result.resized = std::abs(std::log(now.unit() / then.unit())) > 0.15;
        return result;
    }

    //! Gives the excluded pairs to the backend if charges have changed what counts of them.
    void setPairs()
    {
        if (!pairsStand_)
        {
            const ExcludedPairs charged = chargedPairs(excluded_, isCharged_);
            backend_->setExclusions(charged.offsets.data(), charged.partners.data(), count_);
            pairsStand_ = true;
        }
    }

    /*! \brief Makes the operators those of a box: as they are, corrected to first order, or anew.
     *  \param[in] positions  returns those in host memory; called if something has to be built */
    template<class Positions>
    void follow(const Mat3& box, const Positions& positions)
    {
        setPairs();
        const auto chooseAnew = [&](const auto& choice)
        {
            const Real* x = positions();
            changeOperators([&] { choice(x); });
            chosenFor_   = device_;
            chosenCount_ = count_;
        };
        if (!discretisation_ || !areChosenForCount())
        {
            chooseAnew([&](const Real* x) { buildFirst(box, x); });
            return;
        }
        if (box == box_)
        {
            rebuild();
            return;
        }
        const Discretisation& d  = *discretisation_;
        const Deformation change = deformation(box);
        if (change.sheared || change.resized)
        {
            const Grid then     = d.leafGrid(d.referenceBox);
            const Grid now      = d.leafGrid(box);
            Discretisation next = d;
            const double best   = shapeRatio(
                    Grid(chooseCells(box, then.unit(), d.ws, 1 << (d.levels - 1)), box).edges(),
                    d.ws);
            if (change.resized || shapeRatio(now.edges(), d.ws) > 1.05 * best)
            {
                chooseAnew([&](const Real* x) { notCounted([&] { buildSufficient(box, x); }); });
                return;
            }
            next.referenceBox = box;
            changeOperators([&] { build(next); });
            return;
        }
        rebuild();
        // rounding of the box vectors alone is no reason for new operators
        const bool changed =
                (change.strain - strain_).cwiseAbs().maxCoeff() > 2e-3 * change.tolerance;
        const bool unrotated = (change.rotation - Mat3::Identity()).cwiseAbs().maxCoeff() < 1e-12;
        changeOperators(
                [&]
                {
                    setBox(box,
                           changed ? change.strain : strain_,
                           unrotated ? Mat3::Identity() : change.rotation);
                });
    }

    Options options_;
    int threads_   = 1;
    Device device_ = Device::Cpu;
    int count_     = 0;
    std::vector<char> isCharged_;            //!< [count_]
    ExcludedPairs excluded_ = { { 0 }, {} }; //!< all of them; the backend has the charged ones
    bool pairsStand_        = true;          //!< whether it has, see setPairs()
    double squaredCharges_  = 0;             //!< sum, e^2
    long long charged_      = 0;             //!< particles with a charge
    std::unique_ptr<Backend<Real>> backend_;
    GpuBackend<Real>* gpu_ = nullptr; //!< the same, if it is one
    std::optional<Discretisation> discretisation_;
    std::vector<TimedSetting> timed_;
    Mat3 box_      = Mat3::Zero();
    Mat3 strain_   = Mat3::Zero();
    Mat3 rotation_ = Mat3::Identity(); //!< of box_, see Backend::setBox()
    //! Whether the backend has the operators of discretisation_, box_, strain_ and rotation_; see
    //! changeOperators().
    bool operatorsStand_   = false;
    Device chosenFor_      = Device::Auto; //!< the device whose costs decided on discretisation_
    long long chosenCount_ = 0;            //!< the number of particles that it was chosen for
    double seconds_[static_cast<int>(Stage::Count)];
    long long evaluations_ = 0;
};

template<class Real>
Solver<Real>::Solver(const Options& options) :
    impl_(withMemoryErrors([&] { return std::make_unique<Impl>(options); }))
{
}
template<class Real>
Solver<Real>::~Solver() = default;
template<class Real>
Solver<Real>::Solver(Solver&&) noexcept = default;
template<class Real>
Solver<Real>& Solver<Real>::operator=(Solver&&) noexcept = default;

template<class Real>
void Solver<Real>::setCharges(const Real* q, int n)
{
    withMemoryErrors([&] { impl_->setCharges(q, n); });
}
template<class Real>
void Solver<Real>::setExclusions(const int* offsets, const int* partners, int n)
{
    withMemoryErrors([&] { impl_->setExclusions(offsets, partners, n); });
}
template<class Real>
Totals
Solver<Real>::evaluate(const Real* x, const double box[3][3], Real* forces, const Request& request)
{
    return withMemoryErrors([&] { return impl_->evaluate(x, box, forces, request); });
}
template<class Real>
void Solver<Real>::prepare(const Real* x, const double box[3][3])
{
    withMemoryErrors([&] { impl_->prepare(x, box); });
}
template<class Real>
Setup Solver<Real>::setup() const
{
    return withMemoryErrors([&] { return impl_->setup(); });
}
template<class Real>
std::vector<double> Solver<Real>::state() const
{
    return withMemoryErrors([&] { return impl_->state(); });
}
template<class Real>
void Solver<Real>::restore(const std::vector<double>& state)
{
    withMemoryErrors([&] { impl_->restore(state); });
}
template<class Real>
std::vector<StageTime> Solver<Real>::timings() const
{
    return withMemoryErrors([&] { return impl_->timings(); });
}
template<class Real>
void Solver<Real>::resetTimings()
{
    impl_->resetTimings();
}

template<class Real>
void DeviceEntry<Real>::enqueue(Solver<Real>& solver,
                                const Real* x,
                                const double box[3][3],
                                Real* forces,
                                const Request& request,
                                void* stream)
{
    withMemoryErrors([&] { solver.impl_->enqueue(x, box, forces, request, stream); });
}
template<class Real>
Totals DeviceEntry<Real>::wait(Solver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->wait(); });
}
template<class Real>
bool DeviceEntry<Real>::mustRecordAgain(const Solver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->mustRecordAgain(); });
}
template<class Real>
std::vector<StageTime> DeviceEntry<Real>::measureStages(Solver<Real>& solver,
                                                        const Real* x,
                                                        const double box[3][3],
                                                        Real* forces,
                                                        const Request& request,
                                                        int repeats)
{
    return withMemoryErrors(
            [&] { return solver.impl_->measureStages(x, box, forces, request, repeats); });
}

template class Solver<float>;
template class Solver<double>;
template struct DeviceEntry<float>;
template struct DeviceEntry<double>;

} // namespace farfield
