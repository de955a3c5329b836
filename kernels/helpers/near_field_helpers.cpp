/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "helpers/near_field_helpers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backend/gpu_backend.h"

namespace farfield
{
namespace
{

//! See letDevicesHelpThemselves().
bool mayHelpThemselves = false;

//! What decides on the results of the same kernels.
struct Kind
{
    int major = 0, minor = 0;

    explicit Kind(int device)
    {
        check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "reading a property of the device");
        check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
              "reading a property of the device");
    }
    bool operator==(const Kind& other) const
    {
        return major == other.major && minor == other.minor;
    }
};

/*! \brief Whether one of several devices can help.
 *  \param[in] device  of devices */
void checkDevice(const DeviceList& devices, const int* device, int home)
{
    const auto sayUnfit = [&](ErrorCode code, const std::string& why) {
        throw Error(
                code, "The helper device " + std::to_string(*device) + " " + why, "helperDevices");
    };
    if (*device == home && !mayHelpThemselves)
    {
        sayUnfit(ErrorCode::InvalidArgument, "is the device of the solver itself.");
    }
    if (std::find(device + 1, devices.end(), *device) != devices.end() && !mayHelpThemselves)
    {
        sayUnfit(ErrorCode::InvalidArgument, "is given twice.");
    }
    int existing = 0;
    check(cudaGetDeviceCount(&existing), "counting devices");
    if (*device < 0 || *device >= existing)
    {
        sayUnfit(ErrorCode::InvalidArgument,
                 "does not exist: devices are numbered from 0 to " + std::to_string(existing - 1)
                         + ".");
    }
    if (!(Kind(*device) == Kind(home)))
    {
        // particles at the border of two cells have to be in the same one everywhere
        sayUnfit(ErrorCode::Unsupported,
                 "(" + gpuName(*device) + ") is another kind of GPU than that of the solver ("
                         + gpuName(home) + ").");
    }
}

} // namespace

bool letDevicesHelpThemselves(bool may)
{
    return std::exchange(mayHelpThemselves, may);
}

template<class Real>
NearFieldHelpers<Real>::NearFieldHelpers(const DeviceList& devices,
                                         int home,
                                         bool reproducible,
                                         std::string* lost) :
    reproducible_(reproducible)
{
    for (const int* device = devices.begin(); device != devices.end(); ++device)
    {
        try
        {
            checkDevice(devices, device, home);
            connectDevices(home, *device);
            auto connection = std::make_unique<Connection>();
            connection->totals.resize(1);
            connection->device = *device;
            connections_.push_back(std::move(connection));
        }
        catch (const Error& error)
        {
            if (lost == nullptr)
            {
                throw;
            }
            *lost += (lost->empty() ? "" : " ") + std::string(error.what());
        }
    }
    available_ = static_cast<int>(connections_.size());
    use(lost == nullptr ? available_ : 0);
}

template<class Real>
NearFieldHelpers<Real>::~NearFieldHelpers() = default;

template<class Real>
void NearFieldHelpers<Real>::use(int count)
{
    for (int h = used_; h < count; h++)
    {
        Connection& connection = *connections_[h];
        const OnDevice scope(connection.device);
        connection.part = std::make_unique<NearFieldPart<Real>>(connection.device, reproducible_);
        haveRoom_ = haveParticles_ = haveExclusions_ = false;
    }
    const ShareState first = firstShares(count);
    state_.upload(&first, 1, send_);
    used_ = count;
}

template<class Real>
void NearFieldHelpers<Real>::releaseOthers()
{
    for (int h = used_; h < static_cast<int>(connections_.size()); h++)
    {
        connections_[h]->part.reset();
        connections_[h]->forces = DeviceBuffer<Real4<Real>>();
    }
}

template<class Real>
void NearFieldHelpers<Real>::dismiss()
{
    use(0);
    available_ = 0;
}

template<class Real>
void NearFieldHelpers<Real>::synchronize() const
{
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->synchronize();
    }
}

template<class Real>
void NearFieldHelpers<Real>::reserve(const ParticleCounts& counts, int cells)
{
    // what runs here may write to memory of helpers
    check(cudaDeviceSynchronize(), "waiting for the GPU");
    haveRoom_ = haveParticles_ = false;
    releaseOthers();
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->forces.resize(counts.all);
        connections_[h]->part->resize(counts, cells);
    }
    counts_   = counts;
    cells_    = cells;
    haveRoom_ = true;
}

template<class Real>
void NearFieldHelpers<Real>::setParticles(const ParticleArrays<Real>& home,
                                          const DeviceCells<Real>& sorted,
                                          int cells)
{
    if (!haveRoom_ || !(home.counts() == counts_) || cells != cells_)
    {
        reserve(home.counts(), cells);
    }
    haveParticles_ = false;
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->setParticles(home);
    }
    adoptEvaluation(sorted);
    haveParticles_ = true;
}

template<class Real>
void NearFieldHelpers<Real>::adoptEvaluation(const DeviceCells<Real>& home)
{
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->adoptEvaluation(home);
    }
}

template<class Real>
void NearFieldHelpers<Real>::reserveExclusions(int n, size_t partners)
{
    haveExclusions_ = false;
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->reserveExclusions(n, partners);
    }
}

template<class Real>
void NearFieldHelpers<Real>::setExclusions(const DeviceExclusions<Real>& home, int n)
{
    haveExclusions_ = false;
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->setExclusions(home, n);
    }
    haveExclusions_ = true;
}

template<class Real>
void NearFieldHelpers<Real>::catchUp(const ParticleArrays<Real>& particles,
                                     const DeviceCells<Real>& sorted,
                                     const DeviceNearField<Real>& home,
                                     int cells)
{
    if (!haveParticles_)
    {
        setParticles(particles, sorted, cells);
    }
    if (!haveExclusions_)
    {
        setExclusions(home.exclusions(), particles.size());
    }
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->makeReady(home);
    }
}

template<class Real>
void NearFieldHelpers<Real>::start(const NearEvaluation& evaluation, const Real* x)
{
    evaluation_       = evaluation;
    evaluation_.parts = used_;
    measured_         = !reproducible_ && evaluation.wanted == NearSums::None;
    if (measured_)
    {
        placed_.record(send_);
        placed_.holdBack(watch_);
        stamp(&state_.data()->begin, watch_);
    }
    HelperInputs<Real> inputs = {};
    for (int h = 0; h < used_; h++)
    {
        inputs.of[inputs.count++] = connections_[h]->part->input();
    }
    sendToHelpers(x, 3 * static_cast<size_t>(counts_.all), state_.data()->bounds, inputs, send_);
    sent_.record(send_);
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->evaluate(evaluation_, sent_, connections_[h]->output());
    }
}

template<class Real>
void NearFieldHelpers<Real>::add(const DeviceCells<Real>& cells,
                                 const NearResults& results,
                                 DeviceNearField<Real>* home,
                                 cudaStream_t near)
{
    nearOwn_.record(near);
    HelperOutputs<Real> outputs = {};
    for (int h = 0; h < used_; h++)
    {
        Connection& connection = *connections_[h];
        const Event& done      = connection.part->done();
        done.holdBack(near);
        if (measured_)
        {
            done.holdBack(connection.arrival);
            stamp(state_.data()->arrived + h, connection.arrival);
            connection.arrived.record(connection.arrival);
        }
        outputs.shares[h] = home->visited(
                cells, evaluation_.where.grid, { state_.data()->bounds + h + 1, used_ });
        outputs.of[h] = connection.output();
    }
    outputs.count = used_;
    addDelivered(cells.particles(),
                 evaluation_.where.grid,
                 evaluation_.where.ws,
                 outputs,
                 home->forces(),
                 results.wanted != NearSums::None ? results.totals : nullptr,
                 near);
    nearAll_.record(near);
}

template<class Real>
void NearFieldHelpers<Real>::adjust(cudaStream_t far)
{
    if (!measured_)
    {
        return;
    }
    farReady_.record(far);
    farReady_.holdBack(watch_);
    nearOwn_.holdBack(watch_);
    stamp(&state_.data()->ready, watch_);
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->arrived.holdBack(watch_);
    }
    nearAll_.holdBack(watch_); // shares are read until then
    adjustShares(state_.data(), used_, watch_);
    adjusted_.record(watch_);
}

template<class Real>
void NearFieldHelpers<Real>::finish(cudaStream_t far)
{
    if (measured_)
    {
        adjusted_.holdBack(far);
    }
}

template<class Real>
ShareState NearFieldHelpers<Real>::shares() const
{
    ShareState now = {};
    state_.download(&now, 1, read_);
    return now;
}

template<class Real>
bool NearFieldHelpers<Real>::areLate() const
{
    return !reproducible_ && areAllLate(shares(), used_);
}

template<class Real>
std::vector<HelperDevice> NearFieldHelpers<Real>::describe() const
{
    const ShareState now = shares();
    std::vector<HelperDevice> all;
    for (int h = 0; h < used_; h++)
    {
        HelperDevice helper;
        helper.deviceId = connections_[h]->device;
        helper.share    = now.share[h];
        all.push_back(helper);
    }
    return all;
}

template class NearFieldHelpers<float>;
template class NearFieldHelpers<double>;

} // namespace farfield
