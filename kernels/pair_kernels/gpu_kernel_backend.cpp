/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <climits>

#include <algorithm>
#include <cstring>

#include "cells/position_error.h"
#include "pair_kernels/counted_levels.h"
#include "pair_kernels/far_field_on_device.h"
#include "pair_kernels/kernel_backend.h"
#include "pair_kernels/left_out_pairs.h"
#include "pair_kernels/point_arrays.h"
#include "pair_kernels/point_pairs.h"
#include "pair_kernels/site_forces.h"
#include "runtime/devices.h"
#include "runtime/repeated_evaluation.h"

namespace farfield
{
namespace
{

/*! \brief In instructions of a lane, of which an H200 has 3e13 a second; measured there with 1e5 and 1e6 points.
 *
 *  A level takes as long as its launches. */
template<class Real>
KernelUnitCosts unitCosts(double accuracy)
{
    constexpr double c_perLevel = 1e9;
    constexpr int c_together    = 64;
    if constexpr (sizeof(Real) == 8)
    {
        return { { 120, 100, 120 }, 12, 6, 20, 16, 200, 600, c_together, c_perLevel };
    }
    const double perExchange = mayRoundExpansions(1e-3 * accuracy) ? 1.5 : 3;
    return { { 28, 24, 45 }, perExchange, 6, 20, 8, 78, 600, c_together, c_perLevel };
}

//! An array of the caller, in both memories where it is needed there.
template<class T>
class BothMemories
{
public:
    //! Copies it to the device.
    void take(const T* from, size_t size, cudaStream_t stream)
    {
        given_ = from;
        onHost_.clear();
        device_.resize(size);
        copyAsync(device_.data(), from, size, stream, "copying to the GPU");
    }
    //! Room on the device, for a kernel to fill.
    T* room(size_t size)
    {
        onHost_.clear();
        device_.resize(size);
        given_ = device_.data();
        return device_.data();
    }
    const T* device() const { return device_.data(); }
    const T* host(cudaStream_t stream)
    {
        if (device_.size() == 0 || !isOnDevice(given_))
        {
            return given_;
        }
        if (onHost_.empty())
        {
            onHost_.resize(device_.size());
            device_.download(onHost_.data(), onHost_.size(), stream);
        }
        return onHost_.data();
    }

private:
    const T* given_ = nullptr;
    DeviceBuffer<T> device_;
    std::vector<T> onHost_;
};

//! Charges that are atoms among others.
template<class Real>
struct SitesOnGpu
{
    int n = 0, sets = 0;
    DeviceBuffer<int> atoms;
    DeviceBuffer<Real> q;
    DeviceBuffer<double> factors;
};

//! The points of a call and what evaluations share.
template<class Real>
struct PointsOnGpu : PointNumbers
{
    //! Of far cells, whose chain of kernels is the longer one, and of near ones.
    Stream stream{ Priority::Second }, near{ Priority::Third };
    Event sorted, summed; //!< near ones are between them
    //! Others where an evaluation launches other work.
    long long generation = 0;
    SitesOnGpu<Real> sites;
    BothMemories<double> x, at;
    BothMemories<Real> q;
    PointsInLeaves<Real> sources, others;
    //! \name Excluded pairs
    //!@{
    ExcludedPairs leftOut;
    DeviceBuffer<int> offsets, partners, sortedOf, away;
    //!@}
    DeviceBuffer<double> sums, strains; //!< [sets][4 or 6][results] sorted
    DeviceBuffer<double> rows;          //!< sums of strains
    std::vector<double> virials;

    PointsInLeaves<Real>& targets() { return areOwn() ? sources : others; }
    bool hasLeftOut() const { return !leftOut.partners.empty() && areOwn(); }
};

template<class Real>
class GpuKernelEvaluation final : public KernelEvaluation<Real>
{
public:
    GpuKernelEvaluation(const PairKernel& kernel,
                        const KernelPlan& plan,
                        const Region& region,
                        double accuracy,
                        int device,
                        PointsOnGpu<Real>* points,
                        Team* team) :
        KernelEvaluation<Real>(plan, region),
        device_(device), points_(*points), kernel_(kernel),
        far_(kernel, plan, region, accuracy, team, points->stream),
        displacements_(nearDisplacements(plan.ws))
    {
        exactLaw_.set(lawOf<double>(kernel, 1), points_.stream);
        setRegion(region);
    }

    void evaluate(const Region& region, bool wantsVirials) override;
    bool mayEnqueue(const Region& region) const override
    {
        return takesAll(region.leaves(this->plan()));
    }
    void enqueue(const Region& region, const Real* x) override;
    bool hasDerivatives() const override { return far_.hasDerivatives(); }
    void makeDerivatives() override
    {
        const OnDevice device(device_);
        far_.makeDerivatives();
    }

private:
    bool adoptBox(const Region& region) override
    {
        const OnDevice device(device_);
        if (!far_.adopt(region))
        {
            return false;
        }
        setRegion(region);
        return true;
    }
    //! What depends on the box beside far cells.
    void setRegion(const Region& region);
    //! Whether all cells of the box are leaves: empty ones cost less than to wait for the number of the others.
    bool takesAll(const LeafFrame& frame) const
    {
        const Int3& counts = frame.counts;
        const double cells = 1.0 * counts[0] * counts[1] * counts[2];
        // of one level all are transformed; one block counts the points of all
        const double perPoint   = this->plan().levels > 1 ? 0.25 : 4;
        constexpr double c_most = 1 << 15;
        return frame.isPeriodic && points_.areOwn()
               && cells <= std::min(c_most, perPoint * points_.n);
    }
    void sort(const LeafFrame& frame);
    //! Refuses positions that are in no cell. The host waits.
    void checkPositions();
    //! All after the sort.
    void sum(const Region& region, const LeafFrame& frame, bool wantsVirials);
    void sumNear(const Region& region);
    LeftOutOnDevice leftOut(const Region& region);

    int device_;
    PointsOnGpu<Real>& points_;
    const PairKernel& kernel_;
    FarFieldOnDevice<Real> far_;
    PairLawOnDevice<Real> law_;
    PairLawOnDevice<double> exactLaw_; //!< in units of length
    double unit_ = 1;                  //!< cube root of the volume of a leaf
    std::vector<Int3> displacements_;
    NearCells<Real> near_ = {};
    RepeatedEvaluation repeated_; //!< of enqueue()
};

template<class Real>
void GpuKernelEvaluation<Real>::setRegion(const Region& region)
{
    const LeafFrame frame = region.leaves(this->plan());
    points_.generation++;
    unit_ = frame.unit();
    law_.set(lawOf<Real>(kernel_, unit_), points_.stream);
    const Mat3 edges = frame.edges / unit_;
    near_.count      = static_cast<int>(displacements_.size());
    near_.box        = { { frame.counts[0], frame.counts[1], frame.counts[2] }, frame.isPeriodic };
    for (int i = 0; i < near_.count; i++)
    {
        const Int3& D    = displacements_[i];
        const Vec3 shift = edges.transpose() * Vec3(D[0], D[1], D[2]);
        for (int k = 0; k < 3; k++)
        {
            near_.displacement[i][k] = D[k];
            near_.shift[i][k]        = static_cast<Real>(shift[k]);
        }
    }
}

template<class Real>
void GpuKernelEvaluation<Real>::sort(const LeafFrame& frame)
{
    const int levels = this->plan().levels;
    points_.sources.sort(points_.x.device(),
                         points_.sets == 1 ? points_.q.device() : nullptr,
                         points_.n,
                         frame,
                         levels,
                         takesAll(frame),
                         points_.stream);
    if (!points_.areOwn())
    {
        points_.others.sort(
                points_.at.device(), nullptr, points_.points, frame, levels, false, points_.stream);
    }
}

template<class Real>
void GpuKernelEvaluation<Real>::checkPositions()
{
    const auto checkAll =
            [&](PointsInLeaves<Real>* points, BothMemories<double>* x, int n, const char* what)
    {
        const int invalid = points->firstInvalid(points_.stream);
        if (invalid < n)
        {
            throw positionError(
                    what, invalid, x->host(points_.stream) + 3 * static_cast<size_t>(invalid));
        }
    };
    checkAll(&points_.sources, &points_.x, points_.n, "particle");
    if (!points_.areOwn())
    {
        checkAll(&points_.others, &points_.at, points_.points, "point");
    }
}

template<class Real>
LeftOutOnDevice GpuKernelEvaluation<Real>::leftOut(const Region& region)
{
    LeftOutOnDevice pairs = {};
    if (!points_.hasLeftOut())
    {
        return pairs;
    }
    const int n = points_.n;
    points_.sortedOf.resize(n);
    points_.away.resize(points_.partners.size() + n);
    invertOrder(points_.sources.view().order, n, points_.sortedOf.data(), points_.near);
    pairs.offsets    = points_.offsets.data();
    pairs.partners   = points_.partners.data();
    pairs.sortedOf   = points_.sortedOf.data();
    pairs.away       = points_.away.data();
    pairs.x          = points_.x.device();
    pairs.isPeriodic = region.isPeriodic;
    if (region.isPeriodic)
    {
        const ShortestImages shortest(region.box, true);
        pairs.image = shortest.image();
        for (int i = 0; i < 9; i++)
        {
            pairs.turn[i / 3][i % 3] = shortest.turn()(i / 3, i % 3);
        }
    }
    return pairs;
}

template<class Real>
void GpuKernelEvaluation<Real>::sumNear(const Region& region)
{
    PairLaunch<Real> launch;
    launch.targets     = points_.targets().view();
    launch.sources     = points_.sources.view();
    launch.areOwn      = points_.areOwn();
    launch.near        = near_;
    launch.q           = points_.q.device();
    launch.sets        = points_.sets;
    launch.law         = law_.numbers();
    launch.exactLaw    = exactLaw_.numbers();
    launch.factor      = law_.factor();
    launch.exactFactor = exactLaw_.factor();
    launch.unit        = unit_;
    launch.leftOut     = leftOut(region);
    launch.sums        = points_.sums.data();
    launch.strains     = points_.strains.size() > 0 ? points_.strains.data() : nullptr;
    sumNearPairs(launch, points_.near);
}

template<class Real>
void GpuKernelEvaluation<Real>::evaluate(const Region& region, bool wantsVirials)
{
    const OnDevice device(device_);
    const LeafFrame frame = region.leaves(this->plan());
    sort(frame);
    checkPositions();
    sum(region, frame, wantsVirials);
}

template<class Real>
void GpuKernelEvaluation<Real>::sum(const Region& region, const LeafFrame& frame, bool wantsVirials)
{
    const cudaStream_t stream = points_.stream;
    const int sets            = points_.sets;
    const size_t results      = points_.results();
    points_.sums.resize(4 * sets * results);
    points_.strains.resize(wantsVirials ? 6 * sets * results : 0);
    points_.virials.assign(wantsVirials ? 6 * static_cast<size_t>(sets) : 0, 0);
    // far cells take longer: near ones are beside them
    points_.sorted.record(stream);
    points_.sorted.holdBack(points_.near);
    points_.sums.clear(points_.near);
    points_.strains.clear(points_.near);
    sumNear(region);
    points_.summed.record(points_.near);
    if (wantsVirials || !far_.isAnything())
    {
        points_.summed.holdBack(stream);
    }
    if (wantsVirials)
    {
        DeviceBuffer<double>& rows = points_.rows;
        rows.resize(points_.virials.size());
        sumRows(points_.strains.data(),
                static_cast<int>(rows.size()),
                static_cast<int>(results),
                rows.data(),
                stream);
        rows.download(points_.virials.data(), points_.virials.size(), stream);
        for (double& virial : points_.virials)
        {
            virial *= -0.25;
        }
    }
    if (!far_.isAnything())
    {
        return;
    }
    far_.setCells(&points_.sources, points_.areOwn() ? nullptr : &points_.others, frame);
    for (int s = 0; s < sets; s++)
    {
        if (sets > 1)
        {
            points_.sources.setCharges(points_.q.device(), sets, s, stream);
        }
        far_.upwards(&points_.sources);
        if (wantsVirials)
        {
            far_.addVirial(points_.virials.data() + 6 * static_cast<size_t>(s));
        }
        far_.downwards();
        if (s == 0)
        {
            points_.summed.holdBack(stream);
        }
        far_.addFields(&points_.targets(), unit_, points_.sums.data() + 4 * s * results);
    }
}

template<class Real>
void GpuKernelEvaluation<Real>::enqueue(const Region& region, const Real* x)
{
    const OnDevice device(device_);
    const auto work = [&]
    {
        const SitesOnGpu<Real>& sites = points_.sites;
        gatherPositions(x,
                        sites.atoms.data(),
                        sites.n,
                        points_.x.room(3 * static_cast<size_t>(sites.n)),
                        points_.stream);
        const LeafFrame frame = region.leaves(this->plan());
        sort(frame);
        sum(region, frame, false);
    };
    if (isCapturing(points_.stream))
    {
        work();
        return;
    }
    const EvaluationArguments arguments = { x, nullptr, false, 0, points_.generation };
    if (!repeated_.isLikeLast(arguments)
        || !repeated_.launch(points_.stream, points_.stream, true, work))
    {
        work();
        repeated_.add(arguments);
    }
}

template<class Real>
class GpuKernelBackend final : public KernelBackend<Real>, private DeviceSites<Real>
{
public:
    GpuKernelBackend(const PairKernel& kernel, int device, Team* team) :
        device_(device), kernel_(kernel), team_(*team)
    {
    }

    void setLeftOut(const ExcludedPairs& pairs) override
    {
        const OnDevice device(device_);
        points_.generation++;
        points_.leftOut = {}; // until all is there
        points_.offsets.upload(pairs.offsets.data(), pairs.offsets.size(), points_.stream);
        points_.partners.upload(pairs.partners.data(), pairs.partners.size(), points_.stream);
        points_.leftOut = pairs;
    }
    Extent take(const KernelInput<Real>& input) override;
    DeviceSites<Real>* deviceSites() override { return this; }
    const PointNumbers& numbers() const override { return points_; }
    const PointSystem<Real>& onHost() override
    {
        const OnDevice device(device_);
        const cudaStream_t stream           = points_.stream;
        static_cast<PointNumbers&>(system_) = points_;
        system_.x                           = points_.x.host(stream);
        system_.q                           = points_.q.host(stream);
        system_.at                          = points_.at.host(stream);
        system_.leftOut                     = points_.hasLeftOut() ? &points_.leftOut : nullptr;
        return system_;
    }

    std::unique_ptr<KernelEvaluation<Real>> evaluation(const KernelPlan& plan,
                                                       const Region& region,
                                                       double accuracy) override
    {
        const OnDevice device(device_);
        return std::make_unique<GpuKernelEvaluation<Real>>(
                kernel_, plan, region, accuracy, device_, &points_, &team_);
    }
    std::vector<double> directSums(const Region& region, const std::vector<int>& some) override;

    KernelUnitCosts costs(double accuracy) const override { return unitCosts<Real>(accuracy); }
    // some ten milliseconds of the host are to be a percent of the time
    int mostCallsBetween() const override { return 16 * 1024; }
    std::vector<LevelCount> countLevels(const Region& region, const KernelPlan& plan) override
    {
        const OnDevice device(device_);
        // its memory is needed for nothing else
        CountedLevels counted;
        return counted.count(region, plan, points_.x.device(), points_.n, points_.stream);
    }

    std::vector<double> results(const std::vector<int>& some) override;
    ResultRange range() override;
    void write(const KernelOutput<Real>& output) override;
    const std::vector<double>& virials() const override { return points_.virials; }

private:
    void set(const KernelSites<Real>& sites) override;
    void begin(void* stream) override;
    Extent take(const Real* x, bool isOpen) override;
    void addForces(Real* forces, void* stream) override;
    bool isCapturing(void* stream) const override
    {
        return farfield::isCapturing(static_cast<cudaStream_t>(stream));
    }
    //! Refuses what is not finite. \returns where the points are
    Extent look(bool isOpen);
    void setNumbers(const PointNumbers& numbers)
    {
        if (numbers.n != points_.n || numbers.sets != points_.sets
            || numbers.points != points_.points)
        {
            points_.generation++;
        }
        static_cast<PointNumbers&>(points_) = numbers;
    }

    int device_;
    const PairKernel& kernel_;
    Team& team_;
    PointsOnGpu<Real> points_;
    Event begun_, done_; //!< in the stream of a caller, and in that of the points
    PointSystem<Real> system_;
    LookAtPoints look_;
    DeviceBuffer<ResultsSeen> seen_;
    DeviceBuffer<int> some_, sortedOf_;
    DeviceBuffer<double> taken_;
    DeviceBuffer<Real> potentials_, fields_; //!< on their way to host memory
};

template<class Real>
Extent GpuKernelBackend<Real>::take(const KernelInput<Real>& input)
{
    const OnDevice device(device_);
    const cudaStream_t stream = points_.stream;
    setNumbers({ input.n, input.sets, input.points });
    points_.x.take(input.x, 3 * static_cast<size_t>(input.n), stream);
    points_.q.take(input.q, static_cast<size_t>(input.n) * input.sets, stream);
    points_.at.take(input.at, 3 * static_cast<size_t>(std::max(input.points, 0)), stream);
    return look(input.box == nullptr);
}

template<class Real>
Extent GpuKernelBackend<Real>::look(bool isOpen)
{
    const cudaStream_t stream = points_.stream;
    const int others          = std::max(points_.points, 0);
    look_.begin(stream);
    look_.atPositions(points_.x.device(), points_.n, true, stream);
    look_.atPositions(points_.at.device(), others, false, stream);
    look_.atCharges(points_.q.device(), points_.n, points_.sets, stream);
    const PointsSeen seen = look_.end(stream);
    if (seen.charge != INT_MAX)
    {
        throw notFiniteCharge(seen.charge);
    }
    // in a box the sort finds them
    if (isOpen && seen.particle != INT_MAX)
    {
        throw notFinitePosition("particle",
                                seen.particle,
                                points_.x.host(stream) + 3 * static_cast<size_t>(seen.particle));
    }
    if (isOpen && seen.point != INT_MAX)
    {
        throw notFinitePosition(
                "point", seen.point, points_.at.host(stream) + 3 * static_cast<size_t>(seen.point));
    }
    Extent extent;
    for (int k = 0; k < 3 && points_.n + others > 0; k++)
    {
        extent.low[k]  = seen.low[k];
        extent.high[k] = seen.high[k];
    }
    return extent;
}

template<class Real>
void GpuKernelBackend<Real>::set(const KernelSites<Real>& sites)
{
    const OnDevice device(device_);
    points_.generation++;
    points_.sites.n    = 0; // until all is there
    points_.sites.sets = sites.sets;
    points_.sites.atoms.upload(sites.atoms, sites.n, points_.stream);
    points_.sites.q.upload(sites.q, static_cast<size_t>(sites.n) * sites.sets, points_.stream);
    points_.sites.factors.upload(sites.factors, sites.sets, points_.stream);
    points_.sites.n = sites.n;
}

template<class Real>
void GpuKernelBackend<Real>::begin(void* stream)
{
    const OnDevice device(device_);
    begun_.record(static_cast<cudaStream_t>(stream));
    begun_.holdBack(points_.stream);
}

template<class Real>
Extent GpuKernelBackend<Real>::take(const Real* x, bool isOpen)
{
    const OnDevice device(device_);
    const SitesOnGpu<Real>& sites = points_.sites;
    setNumbers({ sites.n, sites.sets, -1 });
    gatherPositions(x,
                    sites.atoms.data(),
                    sites.n,
                    points_.x.room(3 * static_cast<size_t>(sites.n)),
                    points_.stream);
    points_.q.take(sites.q.data(), sites.q.size(), points_.stream);
    points_.at.take(nullptr, 0, points_.stream);
    return look(isOpen);
}

template<class Real>
void GpuKernelBackend<Real>::addForces(Real* forces, void* stream)
{
    const OnDevice device(device_);
    const auto of = static_cast<cudaStream_t>(stream);
    done_.record(points_.stream);
    done_.holdBack(of);
    addSiteForces<Real>({ points_.sums.data(),
                          points_.sources.view().order,
                          points_.sources.invalid(),
                          points_.sites.n,
                          points_.sites.sets,
                          points_.sites.q.data(),
                          points_.sites.factors.data(),
                          points_.sites.atoms.data(),
                          forces },
                        of);
}

template<class Real>
std::vector<double> GpuKernelBackend<Real>::directSums(const Region& region,
                                                       const std::vector<int>& some)
{
    const OnDevice device(device_);
    const cudaStream_t stream = points_.stream;
    DirectLaunch<Real> launch = {};
    PairLawOnDevice<double> law;
    launch.unit = region.box(0, 0);
    law.set(lawOf<double>(kernel_, launch.unit), stream);
    some_.upload(some.data(), some.size(), stream);
    launch.x      = points_.x.device();
    launch.at     = points_.at.device();
    launch.q      = points_.q.device();
    launch.n      = points_.n;
    launch.sets   = points_.sets;
    launch.some   = some_.data();
    launch.count  = static_cast<int>(some.size());
    launch.areOwn = points_.areOwn();
    for (int k = 0; k < 3; k++)
    {
        launch.origin[k] = region.origin[k];
    }
    launch.law = law.numbers();
    if (points_.hasLeftOut())
    {
        launch.offsets  = points_.offsets.data();
        launch.partners = points_.partners.data();
    }
    constexpr int c_mostStripes = 64, c_ofStripe = 4096;
    launch.stripes    = std::clamp(points_.n / c_ofStripe, 1, c_mostStripes);
    const size_t rows = 4 * static_cast<size_t>(points_.sets);
    taken_.resize(launch.stripes * rows * some.size());
    launch.partial = taken_.data();
    sumAllPairs(launch, stream);
    std::vector<double> partial(taken_.size()), sums(rows * some.size(), 0);
    taken_.download(partial.data(), partial.size(), stream);
    for (size_t i = 0; i < partial.size(); i++)
    {
        sums[i % sums.size()] += partial[i];
    }
    for (size_t i = 0; i < sums.size(); i++)
    {
        sums[i] *= i / some.size() % 4 == 0 ? law.factor() : law.factor() / launch.unit;
    }
    return sums;
}

template<class Real>
std::vector<double> GpuKernelBackend<Real>::results(const std::vector<int>& some)
{
    const OnDevice device(device_);
    const cudaStream_t stream = points_.stream;
    const int n               = points_.results();
    some_.upload(some.data(), some.size(), stream);
    sortedOf_.resize(n);
    invertOrder(points_.targets().view().order, n, sortedOf_.data(), stream);
    taken_.resize(4 * points_.sets * some.size());
    takeResults(points_.sums.data(),
                sortedOf_.data(),
                n,
                points_.sets,
                some_.data(),
                static_cast<int>(some.size()),
                taken_.data(),
                stream);
    std::vector<double> taken(taken_.size());
    taken_.download(taken.data(), taken.size(), stream);
    return taken;
}

template<class Real>
ResultRange GpuKernelBackend<Real>::range()
{
    const OnDevice device(device_);
    seen_.resize(1);
    lookAtResults(points_.sums.data(),
                  points_.targets().view().order,
                  points_.results(),
                  points_.sets,
                  seen_.data(),
                  points_.stream);
    ResultsSeen seen;
    seen_.download(&seen, 1, points_.stream);
    ResultRange range;
    range.invalid = seen.invalid == INT_MAX ? -1 : seen.invalid;
    std::memcpy(&range.largest, &seen.largest, sizeof(range.largest));
    return range;
}

template<class Real>
void GpuKernelBackend<Real>::write(const KernelOutput<Real>& output)
{
    const OnDevice device(device_);
    const cudaStream_t stream = points_.stream;
    const size_t count        = static_cast<size_t>(points_.results()) * points_.sets;
    // straight into device memory, else by way of a buffer
    const auto target = [&](Real* array, size_t size, DeviceBuffer<Real>* buffer)
    {
        if (array == nullptr || isOnDevice(array, device_))
        {
            return array;
        }
        buffer->resize(size);
        return buffer->data();
    };
    Real* potentials = target(output.potentials, count, &potentials_);
    Real* fields     = target(output.fields, 3 * count, &fields_);
    writeResults(points_.sums.data(),
                 points_.targets().view().order,
                 points_.results(),
                 points_.sets,
                 potentials,
                 fields,
                 stream);
    if (potentials != output.potentials)
    {
        copyAsync(output.potentials, potentials, count, stream, "copying from the GPU");
    }
    if (fields != output.fields)
    {
        copyAsync(output.fields, fields, 3 * count, stream, "copying from the GPU");
    }
    points_.stream.synchronize();
}

} // namespace

template<class Real>
std::unique_ptr<KernelBackend<Real>> makeGpuKernelBackend(const PairKernel& kernel,
                                                          int deviceId,
                                                          Team* team)
{
    const int device = requireUsableGpu(deviceId);
    const OnDevice current(device);
    return std::make_unique<GpuKernelBackend<Real>>(kernel, device, team);
}

template std::unique_ptr<KernelBackend<float>> makeGpuKernelBackend(const PairKernel&, int, Team*);
template std::unique_ptr<KernelBackend<double>> makeGpuKernelBackend(const PairKernel&, int, Team*);

} // namespace farfield
