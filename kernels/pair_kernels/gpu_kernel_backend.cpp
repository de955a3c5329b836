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
#include "runtime/devices.h"

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

//! The points of a call and what evaluations share.
template<class Real>
struct PointsOnGpu : PointNumbers
{
    Stream stream;
    BothMemories<double> x, at;
    BothMemories<Real> q;
    PointsInLeaves<Real> sources, others;
    //! \name Excluded pairs
    //!@{
    ExcludedPairs leftOut;
    DeviceBuffer<int> offsets, partners, sortedOf, away;
    //!@}
    DeviceBuffer<double> sums, strains; //!< [sets][4 or 6][results] sorted
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
    void sort(const LeafFrame& frame);
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
};

template<class Real>
void GpuKernelEvaluation<Real>::setRegion(const Region& region)
{
    const LeafFrame frame = region.leaves(this->plan());
    unit_                 = frame.unit();
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
    const auto sortAll =
            [&](PointsInLeaves<Real>* points, BothMemories<double>* x, int n, const char* what)
    {
        const int invalid =
                points->sort(x->device(), n, frame, this->plan().levels, points_.stream);
        if (invalid < n)
        {
            throw positionError(
                    what, invalid, x->host(points_.stream) + 3 * static_cast<size_t>(invalid));
        }
    };
    sortAll(&points_.sources, &points_.x, points_.n, "particle");
    if (!points_.areOwn())
    {
        sortAll(&points_.others, &points_.at, points_.points, "point");
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
    invertOrder(points_.sources.view().order, n, points_.sortedOf.data(), points_.stream);
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
    sumNearPairs(launch, points_.stream);
}

template<class Real>
void GpuKernelEvaluation<Real>::evaluate(const Region& region, bool wantsVirials)
{
    const OnDevice device(device_);
    const LeafFrame frame     = region.leaves(this->plan());
    const cudaStream_t stream = points_.stream;
    const int sets            = points_.sets;
    const size_t results      = points_.results();
    sort(frame);
    points_.sums.resize(4 * sets * results);
    points_.sums.clear(stream);
    points_.strains.resize(wantsVirials ? 6 * sets * results : 0);
    points_.strains.clear(stream);
    points_.virials.assign(wantsVirials ? 6 * static_cast<size_t>(sets) : 0, 0);
    if (sets == 1)
    {
        points_.sources.setCharges(points_.q.device(), 1, 0, stream);
    }
    sumNear(region);
    if (wantsVirials)
    {
        DeviceBuffer<double> rows;
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
        far_.addFields(&points_.targets(), unit_, points_.sums.data() + 4 * s * results);
    }
}

template<class Real>
class GpuKernelBackend final : public KernelBackend<Real>
{
public:
    GpuKernelBackend(const PairKernel& kernel, int device, Team* team) :
        device_(device), kernel_(kernel), team_(*team)
    {
    }

    void setLeftOut(const ExcludedPairs& pairs) override
    {
        const OnDevice device(device_);
        points_.leftOut = {}; // until all is there
        points_.offsets.upload(pairs.offsets.data(), pairs.offsets.size(), points_.stream);
        points_.partners.upload(pairs.partners.data(), pairs.partners.size(), points_.stream);
        points_.leftOut = pairs;
    }
    Extent take(const KernelInput<Real>& input) override;
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
    int device_;
    const PairKernel& kernel_;
    Team& team_;
    PointsOnGpu<Real> points_;
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
    points_.n                 = input.n;
    points_.sets              = input.sets;
    points_.points            = input.points;
    const int others          = std::max(input.points, 0);
    points_.x.take(input.x, 3 * static_cast<size_t>(input.n), stream);
    points_.q.take(input.q, static_cast<size_t>(input.n) * input.sets, stream);
    points_.at.take(input.at, 3 * static_cast<size_t>(others), stream);
    look_.begin(stream);
    look_.atPositions(points_.x.device(), input.n, true, stream);
    look_.atPositions(points_.at.device(), others, false, stream);
    look_.atCharges(points_.q.device(), input.n, input.sets, stream);
    const PointsSeen seen = look_.end(stream);
    if (seen.charge != INT_MAX)
    {
        throw notFiniteCharge(seen.charge);
    }
    // in a box the sort finds them
    const bool isOpen = input.box == nullptr;
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
    for (int k = 0; k < 3 && input.n + others > 0; k++)
    {
        extent.low[k]  = seen.low[k];
        extent.high[k] = seen.high[k];
    }
    return extent;
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
