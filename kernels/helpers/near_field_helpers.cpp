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
        // with Options::reproducible results would depend on who has computed them
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
        connection.part = std::make_unique<NearFieldPart<Real>>(connection.device);
        haveRoom_       = false;
    }
    const ShareState first = firstShares(count);
    state_.upload(&first, 1, read_);
    bounds_.upload(first.bounds, c_maxHelperDevices + 2, read_);
    used_ = count;
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
    for (const auto& connection : connections_)
    {
        if (connection->part)
        {
            connection->part->synchronize();
        }
    }
}

template<class Real>
void NearFieldHelpers<Real>::reserve(const HelperRoom& room)
{
    if (haveRoom_ && room == room_)
    {
        return;
    }
    check(cudaDeviceSynchronize(), "waiting for the GPU"); // helpers write to its memory
    synchronize();
    haveRoom_ = false;
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->forces.resize(room.particles);
        connections_[h]->part->resize(room);
    }
    room_     = room;
    haveRoom_ = true;
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
DeviceNearTask<Real> NearFieldHelpers<Real>::part(const DeviceNearTask<Real>& all, int share) const
{
    DeviceNearTask<Real> task = all;
    // the part of the solver's GPU is small where other work fills it
    constexpr int c_ownParts = 4;
    task.occupied.share      = { bounds_.data() + share, share == 0 ? c_ownParts * used_ : used_ };
    return task;
}

template<class Real>
void NearFieldHelpers<Real>::start(const DeviceNearTask<Real>& all,
                                   const EvaluationStreams& streams)
{
    measured_ = !reproducible_ && all.results.wanted == NearSums::None;
    if (measured_)
    {
        streams.awaitIn(watch_, Point::Placed);
        beginShares(state_.data(), bounds_.data(), watch_);
        begun_.record(watch_);
    }
    for (int h = 0; h < used_; h++)
    {
        NearFieldPart<Real>& helper = *connections_[h]->part;
        streams.awaitIn(helper.stream(), Point::Listed);
        if (measured_)
        {
            begun_.holdBack(helper.stream());
        }
        helper.fetch(part(all, h + 1));
    }
}

template<class Real>
DeviceNearTask<Real> NearFieldHelpers<Real>::compute(const DeviceNearTask<Real>& all,
                                                     const EvaluationStreams& streams)
{
    for (int h = 0; h < used_; h++)
    {
        Connection& connection      = *connections_[h];
        NearFieldPart<Real>& helper = *connection.part;
        streams.awaitIn(helper.stream(), Point::ExcludedDone);
        helper.compute(part(all, h + 1), connection.output());
        if (measured_)
        {
            helper.done().holdBack(connection.arrival);
            stamp(state_.data()->arrived + h, connection.arrival);
            connection.arrived.record(connection.arrival);
        }
    }
    if (measured_)
    {
        begun_.holdBack(streams.near());
    }
    return part(all, 0);
}

template<class Real>
void NearFieldHelpers<Real>::combine(const DeviceNearTask<Real>& all,
                                     const ForceArrays<Real>& out,
                                     const EvaluationStreams& streams)
{
    const cudaStream_t far = streams.far();
    if (measured_)
    {
        farReady_.record(far);
        farReady_.holdBack(idle_);
        streams.awaitIn(idle_, Point::NearDone);
        stamp(&state_.data()->ready, idle_);
        for (int h = 0; h < used_; h++)
        {
            connections_[h]->arrived.holdBack(idle_);
        }
        adjustShares(state_.data(), used_, idle_);
        adjusted_.record(idle_);
    }
    streams.awaitIn(far, Point::NearDone);
    HelperOutputs<Real> outputs = {};
    for (int h = 0; h < used_; h++)
    {
        connections_[h]->part->done().holdBack(far);
        outputs.of[h]     = connections_[h]->output();
        outputs.shares[h] = part(all, h + 1).occupied;
    }
    outputs.count = used_;
    combineForces(all, outputs, out, far);
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
