/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The public interface: checks what comes in, makes the operators fit the box and the
 *         particles, and evaluates.
 */
#include "farfield/farfield.h"

#include <cmath>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/device_entry.h"
#include "backend/gpu_backend.h"
#include "plan/open_box.h"
#include "solver/accuracy_control.h"
#include "solver/box_follower.h"
#include "solver/charge_set.h"
#include "solver/chosen_backend.h"
#include "solver/chosen_for.h"
#include "solver/force_scale.h"
#include "solver/group_energies.h"
#include "solver/input_check.h"
#include "solver/memory_errors.h"
#include "solver/narrowed_slab.h"
#include "solver/open_virial.h"
#include "solver/perturbed_charges.h"
#include "solver/pipeline.h"
#include "solver/point_fields.h"
#include "solver/saved_state.h"
#include "solver/solver_access.h"
#include "solver/tuner.h"

namespace farfield
{

const char* version()
{
    return FARFIELD_VERSION;
}

const Error
        c_outOfMemory(ErrorCode::OutOfMemory,
                      "The memory of the host is exhausted; larger cells, a lower order or fewer "
                      "threads need less.");

namespace
{

//! Slabs without empty layers are worth it when they are so many times lower.
constexpr double c_worthNarrowing = 2;

} // namespace

template<class Real>
class Solver<Real>::Impl
{
public:
    explicit Impl(const Options& options) :
        options_(options), threads_(options.threads > 0 ? options.threads : usableThreads()),
        chosen_(options, threads_), backend_(*chosen_.backend), gpu_(chosen_.gpu),
        device_(gpu_ != nullptr ? Device::Gpu : Device::Cpu), charges_(&backend_),
        operators_(&backend_), pipeline_(&backend_, gpu_, &operators_, &times_),
        accuracy_(options, device_, &charges_, &operators_, &pipeline_),
        perturbed_(options, &charges_, gpu_, &times_), pointFields_(optionsInUse())
    {
    }

    void serveProbes()
    {
        servesProbes_ = true;
        accuracy_.countAllPlaces();
    }
    void setNetwork(const Network& network) { accuracy_.setNetwork(network); }
    void setLeastForce(double force) { accuracy_.setLeastForce(force); }
    void takeBest() { whereMissed_ = WhereMissed::TakeBest; }
    void lookAt(const Real* x, const double boxVectors[3][3])
    {
        const DeviceScope<Real> scope(gpu_);
        const Place place = placeOf(x, boxVectors);
        followOnHost(place.of(x), place);
        lookAtForces(place, place.of(x));
    }

    void setCharges(const Real* q, int n)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        checkCharges(q, n);
        charges_.setCharges(q, n);
        perturbed_.clear();
        pointFields_.forget();
    }

    void setPerturbedCharges(const Real* chargesA, const Real* chargesB, int n)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        checkCharges(chargesA, n);
        checkCharges(chargesB, n);
        perturbed_.set(chargesA, chargesB, n);
        pointFields_.forget();
    }

    void setExclusions(const int* offsets, const int* partners, int n)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        checkExclusions(offsets, partners, n, charges_.count());
        charges_.setExclusions(offsets, partners);
        perturbed_.forgetExclusions();
        pointFields_.forget();
    }

    void evaluateAt(const Real* x,
                    const double boxVectors[3][3],
                    const Real* at,
                    int points,
                    Real* potentials,
                    Real* fields,
                    const Request& request)
    {
        const DeviceScope<Real> scope(gpu_); // of the solver that is made here
        checkPoints(points, charges_.count(), perturbed_.any());
        checkRequest(request);
        checkPlaces(at, points, boxVectors);
        if (charges_.charged() == 0 || points == 0)
        {
            const auto clear = [points](Real* values, int each)
            { std::fill_n(values, values != nullptr ? each * points : 0, Real(0)); };
            clear(potentials, 1);
            clear(fields, 3);
            return;
        }
        pointFields_.evaluate(charges_, x, boxVectors, at, points, request, potentials, fields);
    }

    void evaluateAtOnDevice(const Real* x,
                            const double boxVectors[3][3],
                            const Real* at,
                            int points,
                            Real* potentials,
                            Real* fields,
                            const Request& request,
                            void* stream)
    {
        checkOnGpu(gpu_ != nullptr);
        const DeviceScope<Real> scope(gpu_);
        checkPoints(points, charges_.count(), perturbed_.any());
        checkRequest(request);
        try
        {
            pointFields_.evaluateOnDevice(charges_,
                                          *gpu_,
                                          x,
                                          boxVectors,
                                          at,
                                          points,
                                          request,
                                          potentials,
                                          fields,
                                          stream);
        }
        catch (const Error& error)
        {
            if (error.code() == ErrorCode::InvalidArgument)
            {
                // the solver of all takes points for particles
                checkPlaces(gpu_->onHost(at, points, stream).data(), points, boxVectors);
            }
            throw;
        }
    }

    void prepare(const Real* x, const double boxVectors[3][3])
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        const Place place = placeOf(x, boxVectors);
        checkPositions(place.of(x), charges_.takesPart(), place.box);
        times_.add(Stage::SetUp, [&] { follow(place, [&] { return place.of(x); }); });
        if (perturbed_.any())
        {
            perturbed_.prepare(x, boxVectors);
        }
        if (gpu_ != nullptr && charges_.count() > 0)
        {
            times_.notCounted([&] { rehearse(place.of(x)); });
        }
    }

    Totals evaluate(const Real* x,
                    const double boxVectors[3][3],
                    Real* forces,
                    const Request& request,
                    Real* potentials)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        checkRequest(request);
        if (potentials != nullptr)
        {
            letAllTakePart();
        }
        const Place place = placeOf(x, boxVectors);
        if (charges_.count() == 0)
        {
            return {};
        }
        followOnHost(place.of(x), place);
        const auto evaluation = [&](Real* to)
        {
            Totals totals;
            times_.evaluation(backend_, [&] { totals = run(place.of(x), forces, request, to); });
            if (!isFieldAsMeasured())
            {
                lookAndRunAgain(place.of(x), place, forces, request, to, &totals);
            }
            if (place.narrowed.any())
            {
                const auto correction = correctionOf(place);
                correction.addTo(forces, to);
                correction.addTo(&totals, wantsEnergy(request, to), request.virial);
            }
            return totals;
        };
        return perturbed_.any()
                       ? perturbed_.evaluate(x, boxVectors, forces, request, potentials, evaluation)
                       : evaluation(potentials);
    }

    std::vector<double> groupEnergies(const Real* x,
                                      const double boxVectors[3][3],
                                      const int* group,
                                      int groups,
                                      const Request& request)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        const Place place = placeOf(x, boxVectors);
        checkRequest(request);
        checkGroups(group, charges_.count(), groups);
        if (charges_.count() == 0)
        {
            return std::vector<double>(static_cast<size_t>(groups) * groups, 0.0);
        }
        followOnHost(place.of(x), place);
        Request own       = request;
        own.energy        = true;
        own.virial        = false;
        own.replaceForces = true;
        std::vector<Real> forces(3 * static_cast<size_t>(charges_.count()));
        std::vector<WeightedCharges<Real>> states;
        if (perturbed_.any())
        {
            states = perturbed_.states(request.lambda);
        }
        const auto potentials = [&](Real* to)
        {
            pipeline_.run(place.of(x), forces.data(), own, to);
            if (place.narrowed.any())
            {
                correctionOf(place).addTo(forces.data(), to);
            }
        };
        std::vector<double> energies;
        const auto all = [&]
        { energies = farfield::groupEnergies<Real>(&charges_, states, group, groups, potentials); };
        times_.add(Stage::Groups, [&] { times_.notCounted(all); });
        return energies;
    }

    void enqueue(const Real* x,
                 const double boxVectors[3][3],
                 Real* forces,
                 const Request& request,
                 void* stream,
                 Real* potentials)
    {
        checkRequest(request);
        checkOnGpu(gpu_ != nullptr);
        const DeviceScope<Real> scope(gpu_);
        if (charges_.count() == 0)
        {
            return;
        }
        enqueuedVirial_.reset();
        enqueuedCorrection_ = {};
        if (potentials != nullptr)
        {
            if (!servesProbes_ && charges_.wouldTakePart())
            {
                gpu_->settle();
            }
            letAllTakePart();
        }
        const Place place = placeOnDevice(x, boxVectors, request, stream);
        gpu_->await(stream);
        std::vector<Real> onHost;
        const auto positions = [&]
        {
            if (!place.narrowed.any())
            {
                onHost = gpu_->onHost(x, charges_.count(), stream);
            }
            const Real* const own = place.of(onHost.data());
            checkPositions(own, charges_.takesPart(), place.box);
            return own;
        };
        follow(place, positions);
        if (mustLookAtForces_ && !gpu_->isRecording(stream))
        {
            lookAtForces(place, positions());
        }
        const Request staged  = ofStages(request);
        const auto evaluation = [&](Real* to)
        {
            if (!place.narrowed.any())
            {
                pipeline_.runOnDevice(x, forces, staged, stream, to);
                return;
            }
            pipeline_.runOnDevice(gpu_->place(place.narrowed.x()).x, forces, staged, stream, to);
            const auto correction = correctionOf(place);
            gpu_->add(correction.forces, forces, stream);
            if (to != nullptr)
            {
                gpu_->add(correction.potentials, to, stream);
            }
            correction.addTo(&enqueuedCorrection_, wantsEnergy(request, to), request.virial);
        };
        if (perturbed_.any())
        {
            perturbed_.enqueue(x, boxVectors, forces, staged, stream, potentials, evaluation);
        }
        else
        {
            evaluation(potentials);
        }
        if (needsOpenVirial(request))
        {
            const int n     = charges_.count();
            enqueuedVirial_ = openVirial(gpu_->onHost(x, n, stream).data(),
                                         gpu_->onHost(forces, n, stream),
                                         charges_.isCharged());
        }
    }

    Totals wait()
    {
        checkOnGpu(gpu_ != nullptr);
        const DeviceScope<Real> scope(gpu_);
        if (charges_.count() == 0)
        {
            return {};
        }
        Totals totals     = gpu_->wait();
        mustLookAtForces_ = !isFieldAsMeasured();
        totals.energy += enqueuedCorrection_.energy;
        for (int i = 0; i < 9; i++)
        {
            totals.virial[i / 3][i % 3] += enqueuedCorrection_.virial[i / 3][i % 3];
        }
        if (perturbed_.any())
        {
            totals = perturbed_.wait(totals);
        }
        if (enqueuedVirial_)
        {
            setOpenVirial(*enqueuedVirial_, &totals);
        }
        return totals;
    }

    bool mustRecordAgain() const
    {
        checkOnGpu(gpu_ != nullptr);
        return mustLookAtForces_ || gpu_->mustRecordAgain()
               || (perturbed_.any() && perturbed_.mustRecordAgain());
    }

    bool mayUpdateGraphs() const
    {
        checkOnGpu(gpu_ != nullptr);
        return gpu_->mayUpdateGraphs() && (!perturbed_.any() || perturbed_.mayUpdateGraphs());
    }

    std::vector<StageTime> measureStages(const Real* x,
                                         const double boxVectors[3][3],
                                         Real* forces,
                                         const Request& request,
                                         int repeats)
    {
        const DeviceScope<Real> scope(gpu_);
        // the first evaluation sets up what must not happen while recording
        enqueue(x, boxVectors, forces, request, nullptr, nullptr);
        wait();
        const Request staged  = ofStages(request);
        const auto evaluation = [&] { pipeline_.runOnDevice(x, forces, staged, nullptr); };
        std::vector<double> seconds =
                gpu_->measure(GpuBackend<Real>::Measure::Stages, repeats, evaluation);
        if (perturbed_.any())
        {
            seconds[static_cast<int>(Stage::Perturbation)] =
                    perturbed_.measure(boxVectors, repeats);
        }
        std::vector<StageTime> times;
        for (size_t stage = 0; stage < seconds.size(); stage++)
        {
            if (seconds[stage] > 0)
            {
                times.push_back({ stageName(static_cast<Stage>(stage)), 1, seconds[stage] });
            }
        }
        return times;
    }

    Setup setup() const
    {
        Setup s;
        if (operators_.exist())
        {
            s           = operators_.setup();
            s.chosenFor = chosenFor_.device();
        }
        s.device     = device_;
        s.threads    = threads_;
        s.timed      = timed_;
        s.deviceName = gpu_ != nullptr ? gpu_->deviceName() : cpuTargetName();
        s.deviceId   = gpu_ != nullptr ? gpu_->deviceId() : -1;
        return s;
    }

    std::vector<double> state() const
    {
        if (!operators_.exist())
        {
            return {};
        }
        std::vector<double> array              = encodeState({ operators_.discretisation(),
                                                               chosenFor_.device(),
                                                               chosenFor_.takingPart(),
                                                               operators_.strain() },
                                                options_,
                                                sizeof(Real));
        const std::vector<double> ofDifference = perturbed_.state();
        array.insert(array.end(), ofDifference.begin(), ofDifference.end());
        return array;
    }

    //! \param[in] array  of the solver, and of the one of differences behind it where there is one
    void restore(std::vector<double> array)
    {
        const DeviceScope<Real> scope(gpu_);
        settle();
        std::vector<double> ofDifference;
        if (array.size() == 2 * stateSize())
        {
            ofDifference.assign(array.begin() + stateSize(), array.end());
            array.resize(stateSize());
            decodeState(ofDifference, options_, device_, sizeof(Real));
        }
        const SavedState saved = decodeState(array, options_, device_, sizeof(Real));
        operators_.change([&] { operators_.build(saved.discretisation, saved.strain); });
        chosenFor_.restore(saved.chosenFor, saved.particles, saved.discretisation.field.cap > 0);
        measuredSpread_ = 0;
        timed_.clear();
        perturbed_.restore(ofDifference);
    }

    std::vector<StageTime> timings() const { return times_.all(); }
    void resetTimings() { times_.reset(); }

private:
    //! Waits for what the caller has put into streams of his own.
    void settle()
    {
        if (gpu_ != nullptr)
        {
            gpu_->settle();
            enqueuedVirial_.reset();
            enqueuedCorrection_ = {};
        }
    }

    //! A box, and how far particles without images are apart in each dimension, nm, see extentInBox().
    struct Place
    {
        Mat3 box;
        Vec3 extent;
        NarrowedSlab<Real> narrowed; //!< without wide empty layers, if anything is

        //! Positions as the stages get them.
        const Real* of(const Real* x) const { return narrowed.any() ? narrowed.x() : x; }
    };

    //! Whether cells were chosen for particles without images that are about as far apart.
    bool areChosenFor(const Place& place) const
    {
        const Discretisation& d = operators_.discretisation();
        return options_.boundary == Boundary::Periodic
               || (isLikeExtent(place.extent, d.extent)
                   && OpenCells::of(d.coarseCells(), d.ws, d.boundary)
                              .hold(place.box, place.extent));
    }

    //! Whether the error is that of particles without images that are about as far apart.
    bool isMeasuredFor(const Place& place) const
    {
        return options_.boundary == Boundary::Periodic
               || isLikeExtent(place.extent, operators_.discretisation().measuredExtent);
    }

    /*! \brief Whether the particles as a whole are about as far apart as when the error was measured.
     *
     *  A few that evaporate go far, and hardly change the forces that the error is relative to. */
    bool isSpreadAsMeasured(const Real* x) const
    {
        return isLikeExtent(Vec3::Constant(charges_.spread(x, options_.boundary)),
                            Vec3::Constant(measuredSpread_));
    }

    //! The error has been measured for these.
    void setMeasuredFor(const Place& place, const Real* x)
    {
        operators_.setMeasuredExtent(place.extent);
        measuredSpread_ = charges_.spread(x, options_.boundary);
        isFieldOfMix_   = false;
        perturbed_.setLeastForce(accuracy_.typicalForce());
    }

    //! With what the options have left to the machine.
    Options optionsInUse() const
    {
        Options own = options_;
        own.device  = device_;
        own.threads = threads_;
        return own;
    }

    /*! \brief Makes the operators those of a box, the extent and the number of particles.
     *  \param[in] positions  returns those in host memory; called if cells have to be chosen */
    template<class Positions>
    void follow(const Place& place, const Positions& positions)
    {
        const Mat3& box = place.box;
        charges_.completePairs();
        const auto chooseInRun = [&](bool mayTune, const Vec3& extent)
        { choose(place, positions(), extent, mayTune, WhereMissed::TakeBest); };
        if (!operators_.exist() || !chosenFor_.isStillFor(charges_.numbers()))
        {
            choose(place, positions(), place.extent, options_.tune, whereMissed_);
        }
        else if (!areChosenFor(place))
        {
            const Growth growth =
                    growthFor(options_.boundary, place.extent, operators_.discretisation().extent);
            if (!growth.any())
            {
                chooseInRun(options_.tune, place.extent);
            }
            else if (const auto more = accuracy_.moreCells(box, positions(), growth))
            {
                operators_.change([&] { operators_.build(*more); });
                timed_.clear();
            }
            else
            {
                chooseInRun(options_.tune, growth.extent);
            }
        }
        else
        {
            followBox(box, device_, &operators_, [&] { chooseInRun(false, place.extent); });
        }
        if (!isMeasuredFor(place))
        {
            bool suffices = false;
            operators_.change(
                    [&]
                    {
                        const Real* x = positions();
                        suffices      = isSpreadAsMeasured(x);
                        if (suffices)
                        {
                            operators_.setMeasuredExtent(place.extent);
                            return;
                        }
                        times_.notCounted(
                                [&] { suffices = accuracy_.stillSuffices(x, operators_.box()); });
                        setMeasuredFor(place, x);
                    });
            if (!suffices)
            {
                chooseInRun(options_.tune, operators_.discretisation().extent);
            }
        }
        chosenFor_.complete(charges_.numbers());
    }

    //! Chooses and builds operators that meet the accuracy. \param[in] extent  for particles so far
    //! apart, nm
    void choose(const Place& place,
                const Real* x,
                const Vec3& extent,
                bool mayTune,
                WhereMissed whereMissed)
    {
        operators_.change(
                [&]
                {
                    times_.notCounted([&] { build(place.box, x, extent, mayTune, whereMissed); });
                    setMeasuredFor(place, x);
                });
        chosenFor_.set(device_, charges_.numbers());
    }

    //! Whether the fields of the last evaluation are about as strong as when the error was measured.
    bool isFieldAsMeasured()
    {
        MeasuredField then = operators_.discretisation().field;
        if (perturbed_.any() && then.level > 0 && backend_.cappedFields() >= 0 && !isFieldOfMix_)
        {
            // measured with the larger charges, whatever lambda
            const double perCharge =
                    backend_.cappedFields() / static_cast<double>(charges_.acting());
            then.level    = then.cap * std::sqrt(perCharge);
            isFieldOfMix_ = true;
            operators_.change([&] { operators_.setMeasuredField(then); });
        }
        return isLikeField(
                backend_.cappedFields(), then, accuracy_.leastField(), charges_.acting());
    }

    /*! \brief Measures the error anew, as forces have changed much, and chooses anew where the
     *         operators do not do any more, or do far more than is asked for.
     *  \returns whether there are others now */
    bool lookAtForces(const Place& place, const Real* x)
    {
        bool suit         = false;
        mustLookAtForces_ = false;
        const auto look   = [&]
        {
            mixForChoice();
            operators_.change(
                    [&]
                    {
                        times_.notCounted([&]
                                          { suit = accuracy_.stillSuits(x, operators_.box()); });
                        setMeasuredFor(place, x);
                    });
            if (!suit)
            {
                choose(place, x, operators_.discretisation().extent, false, WhereMissed::TakeBest);
            }
        };
        times_.add(Stage::SetUp, look);
        return !suit;
    }

    /*! \brief Looks at forces after run(), and runs again where there are other operators now.
     *  \param[in,out] forces, totals  what run() has left */
    void lookAndRunAgain(const Real* x,
                         const Place& place,
                         Real* forces,
                         const Request& request,
                         Real* potentials,
                         Totals* totals)
    {
        Request own       = request;
        own.replaceForces = true;
        std::vector<Real> added(3 * static_cast<size_t>(charges_.count()));
        std::vector<Real> better(added.size());
        if (!request.replaceForces)
        {
            times_.notCounted([&] { run(x, added.data(), own, potentials); });
        }
        const bool areOthers = lookAtForces(place, x);
        if (perturbed_.any())
        {
            perturbed_.mix(request.lambda);
        }
        if (areOthers)
        {
            times_.evaluation(backend_, [&] { *totals = run(x, better.data(), own, potentials); });
            for (size_t k = 0; k < added.size(); k++)
            {
                forces[k] = request.replaceForces ? better[k] : forces[k] + (better[k] - added[k]);
            }
        }
    }

    //! That points, [points][3] in host memory, are somewhere.
    void checkPlaces(const Real* at, int points, const double boxVectors[3][3]) const
    {
        const std::vector<char> all(points, 1);
        if (options_.boundary != Boundary::Periodic)
        {
            checkedExtent(at, all, "point");
        }
        if (options_.boundary != Boundary::Open)
        {
            checkPositions(at, all, checkedBox(boxVectors, options_.boundary), "point");
        }
    }

    //! Where particles are on the caller's terms; the box of those without images is ours.
    Place placeOf(const Real* x, const double boxVectors[3][3]) const
    {
        const Mat3 box = checkedBox(boxVectors, options_.boundary);
        if (options_.boundary == Boundary::Periodic)
        {
            return { box, Vec3::Zero(), {} };
        }
        const Vec3 extent = charges_.count() > 0 ? charges_.extent(x) : Vec3::Zero();
        return openPlace(box, extent, [x] { return x; });
    }

    //! The same of positions in device memory.
    Place placeOnDevice(const Real* x,
                        const double boxVectors[3][3],
                        const Request& request,
                        void* stream) const
    {
        const Mat3 box = checkedBox(boxVectors, options_.boundary);
        if (options_.boundary == Boundary::Periodic)
        {
            return { box, Vec3::Zero(), {} };
        }
        if (options_.boundary == Boundary::Open)
        {
            checkOpenVirialOnDevice(request);
        }
        const Vec3 extent = gpu_->extent(x, stream);
        if (!extent.allFinite())
        {
            // says which of them is not finite
            charges_.extent(gpu_->onHost(x, charges_.count(), stream).data());
        }
        checkExtent(extent);
        std::vector<Real> onHost;
        const auto positions = [&]
        {
            onHost = gpu_->onHost(x, charges_.count(), stream);
            return static_cast<const Real*>(onHost.data());
        };
        return openPlace(box, extent, positions);
    }

    /*! \param[in] box        whose vectors along periodic axes count
     *  \param[in] positions  returns those in host memory; called if something may be narrowed */
    template<class Positions>
    Place openPlace(const Mat3& box, const Vec3& extent, const Positions& positions) const
    {
        const Mat3 ours = operators_.exist() ? openBoxLike(
                                  options_.boundary, box, operators_.discretisation().referenceBox)
                                             : box;
        Place place     = { ours, extentInBox(options_.boundary, box, extent), {} };
        if (mayBeNarrowed(box, extent))
        {
            NarrowedSlab<Real> narrowed(
                    positions(), charges_.areChosenFor(), keptWidth(box, options_));
            if (narrowed.any() && c_worthNarrowing * narrowed.height() <= extent[2])
            {
                place.extent[2] = narrowed.height();
                place.narrowed  = std::move(narrowed);
            }
        }
        return place;
    }

    //! Whether particles are so far apart along z that cells should not follow them.
    bool mayBeNarrowed(const Mat3& box, const Vec3& extent) const
    {
        // what cells were chosen for is held by them
        return options_.boundary == Boundary::Slab
               && !(operators_.exist()
                    && extent[2] <= largestLike(operators_.discretisation().extent)[2])
               && extent[2] > c_worthNarrowing * keptWidth(box, options_);
    }

    //! What narrowing has changed of a result.
    SlabCorrection<Real> correctionOf(const Place& place) const
    {
        return place.narrowed.correction(charges_, place.box, options_.coulombConstant);
    }
    static bool wantsEnergy(const Request& request, const Real* potentials)
    {
        return request.energy || request.virial || potentials != nullptr;
    }

    //! Whether a virial is that of forces, see setOpenVirial(); the stages have none.
    bool needsOpenVirial(const Request& request) const
    {
        return options_.boundary == Boundary::Open && request.virial;
    }

    //! Potentials of all particles are wanted: those without a charge take part from here on, and
    //! cells are chosen for errors where they are, too.
    void letAllTakePart()
    {
        if (servesProbes_)
        {
            return; // potentials of the probes alone are
        }
        charges_.letAllTakePart();
        if (charges_.hasIdle())
        {
            accuracy_.countAllPlaces();
        }
    }

    //! What the stages are asked for.
    Request ofStages(const Request& request) const
    {
        Request own = request;
        if (needsOpenVirial(request))
        {
            own.virial = false;
            own.energy = true;
        }
        return own;
    }

    //! The stages, and the virial where they have none. Particles without a charge get no force.
    Totals run(const Real* x, Real* forces, const Request& request, Real* potentials)
    {
        if (!needsOpenVirial(request) && !charges_.hasIdle())
        {
            return pipeline_.run(x, forces, request, potentials);
        }
        std::vector<Real> own(3 * static_cast<size_t>(charges_.count()));
        Request staged       = ofStages(request);
        staged.replaceForces = true;
        Totals totals        = pipeline_.run(x, own.data(), staged, potentials);
        if (needsOpenVirial(request))
        {
            setOpenVirial(openVirial(x, own, charges_.isCharged()), &totals);
        }
        for (size_t k = 0; k < own.size(); k++)
        {
            own[k]    = charges_.isCharged()[k / 3] ? own[k] : Real(0);
            forces[k] = request.replaceForces ? own[k] : forces[k] + own[k];
        }
        return totals;
    }

    //! Does so for positions in host memory, [n][3], which are checked if cells have to be chosen.
    void followOnHost(const Real* x, const Place& place)
    {
        const auto positions = [&]
        {
            checkPositions(x, charges_.takesPart(), place.box);
            return x;
        };
        times_.add(Stage::SetUp, [&] { follow(place, positions); });
    }

    //! Cells are chosen and errors measured with the larger charges, whatever lambda.
    void mixForChoice()
    {
        if (perturbed_.any())
        {
            perturbed_.mixForChoice();
        }
    }

    //! See choose().
    void
    build(const Mat3& box, const Real* x, const Vec3& extent, bool mayTune, WhereMissed whereMissed)
    {
        mixForChoice();
        accuracy_.buildSufficient(box, x, extent, whereMissed);
        if (gpu_ != nullptr && mayTune)
        {
            const Mat3 inUse = options_.boundary == Boundary::Periodic ? box : operators_.box();
            timed_ = tune(options_, charges_, inUse, x, gpu_, &pipeline_, &operators_, &accuracy_);
        }
    }

    /*! \brief Evaluates on the GPU once with totals and once without: what is missing, memory above
     *         all, is missed now, and all kernels are loaded when the first is recorded. */
    void rehearse(const Real* x)
    {
        const auto arrays = gpu_->place(x);
        Request request;
        for (const bool totals : { true, false })
        {
            request.energy = totals;
            request.virial = totals && options_.boundary != Boundary::Open;
            pipeline_.runOnDevice(arrays.x,
                                  arrays.forces,
                                  request,
                                  nullptr,
                                  totals ? arrays.potentials : nullptr);
            gpu_->wait();
        }
    }

    Options options_;
    int threads_;
    ChosenBackend<Real> chosen_;
    Backend<Real>& backend_;
    GpuBackend<Real>* gpu_;
    Device device_;
    StageTimes times_;
    ChargeSet<Real> charges_;
    OperatorsInUse<Real> operators_;
    Pipeline<Real> pipeline_;
    AccuracyControl<Real> accuracy_;
    PerturbedCharges<Real> perturbed_;
    PointFields<Real> pointFields_;
    WhereMissed whereMissed_ = WhereMissed::Refuse; //!< at the first choice
    bool mustLookAtForces_ = false; //!< before the next evaluation in a stream, see lookAtForces()
    bool isFieldOfMix_     = false; //!< measured with the charges in use, of those of two states
    std::vector<TimedSetting> timed_;
    bool servesProbes_ = false; //!< potentials of probes are wanted, not of uncharged particles
    std::optional<Mat3> enqueuedVirial_; //!< of what was enqueued last, if the stages have none
    Totals enqueuedCorrection_;          //!< of what was enqueued last, see NarrowedSlab
    ChosenFor chosenFor_;
    double measuredSpread_ = 0; //!< nm, see isSpreadAsMeasured(); 0: not known
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
void Solver<Real>::setPerturbedCharges(const Real* qA, const Real* qB, int n)
{
    withMemoryErrors([&] { impl_->setPerturbedCharges(qA, qB, n); });
}
template<class Real>
void Solver<Real>::setExclusions(const int* offsets, const int* partners, int n)
{
    withMemoryErrors([&] { impl_->setExclusions(offsets, partners, n); });
}
template<class Real>
Totals Solver<Real>::evaluate(const Real* x,
                              const double box[3][3],
                              Real* forces,
                              const Request& request,
                              Real* potentials)
{
    return withMemoryErrors([&] { return impl_->evaluate(x, box, forces, request, potentials); });
}
template<class Real>
std::vector<double> Solver<Real>::groupEnergies(const Real* x,
                                                const double box[3][3],
                                                const int* group,
                                                int groups,
                                                const Request& request)
{
    return withMemoryErrors([&] { return impl_->groupEnergies(x, box, group, groups, request); });
}
template<class Real>
void Solver<Real>::evaluateAt(const Real* x,
                              const double box[3][3],
                              const Real* at,
                              int points,
                              Real* potentials,
                              Real* fields,
                              const Request& request)
{
    withMemoryErrors([&] { impl_->evaluateAt(x, box, at, points, potentials, fields, request); });
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
                                void* stream,
                                Real* potentials)
{
    withMemoryErrors([&] { solver.impl_->enqueue(x, box, forces, request, stream, potentials); });
}
template<class Real>
Totals DeviceEntry<Real>::wait(Solver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->wait(); });
}
template<class Real>
void DeviceEntry<Real>::evaluateAt(Solver<Real>& solver,
                                   const Real* x,
                                   const double box[3][3],
                                   const Real* at,
                                   int points,
                                   Real* potentials,
                                   Real* fields,
                                   const Request& request,
                                   void* stream)
{
    withMemoryErrors(
            [&] {
                solver.impl_->evaluateAtOnDevice(
                        x, box, at, points, potentials, fields, request, stream);
            });
}
template<class Real>
bool DeviceEntry<Real>::mustRecordAgain(const Solver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->mustRecordAgain(); });
}
template<class Real>
bool DeviceEntry<Real>::mayUpdateGraphs(const Solver<Real>& solver)
{
    return withMemoryErrors([&] { return solver.impl_->mayUpdateGraphs(); });
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

template<class Real>
void SolverAccess<Real>::serveProbes(Solver<Real>& solver)
{
    solver.impl_->serveProbes();
}
template<class Real>
void SolverAccess<Real>::setLeastForce(Solver<Real>& solver, double force)
{
    solver.impl_->setLeastForce(force);
}
template<class Real>
void SolverAccess<Real>::lookAtForces(Solver<Real>& solver, const Real* x, const double box[3][3])
{
    withMemoryErrors([&] { solver.impl_->lookAt(x, box); });
}
template<class Real>
void SolverAccess<Real>::takeBest(Solver<Real>& solver)
{
    solver.impl_->takeBest();
}
template<class Real>
void SolverAccess<Real>::setNetwork(Solver<Real>& solver, const Network& network)
{
    solver.impl_->setNetwork(network);
}
template struct SolverAccess<float>;
template struct SolverAccess<double>;

} // namespace farfield
