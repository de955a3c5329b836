/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Messages between GPUs as callers may pass them, and at any price.
 */
#ifndef FARFIELD_TESTS_DEVICE_MESSAGES_H
#define FARFIELD_TESTS_DEVICE_MESSAGES_H

#include "farfield/farfield_cuda.h"

#include <memory>
#include <utility>
#include <vector>

#ifdef FARFIELD_TESTS_WITH_NCCL
#include "farfield/farfield_nccl.h"
#endif

#include "on_device.h"

namespace farfield
{
namespace test
{

//! How messages pass between GPUs.
enum class Way
{
    Hosts,
    Nccl,
    Peers
};

inline int gpus()
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/*! \brief Connects GPUs, of which each rank gets the one with its number. All ranks together.
 *  \returns null: through the hosts, or there is no such way */
inline std::unique_ptr<DeviceCommunicator> connected(Way way, Communicator* host)
{
    if (way != Way::Hosts)
    {
        checkCuda(cudaSetDevice(host->rank()), "choosing a GPU");
    }
    if (way == Way::Peers)
    {
        return makePeerCommunicator(host);
    }
#ifdef FARFIELD_TESTS_WITH_NCCL
    if (way == Way::Nccl)
    {
        return std::make_unique<NcclCommunicator>(host);
    }
#endif
    return nullptr;
}

//! Through the hosts, where ranks share a GPU, too.
class ThroughHosts final : public DeviceCommunicator
{
public:
    explicit ThroughHosts(Communicator* host) : host_(*host) {}

    void exchange(const void* send,
                  const Stretch* sent,
                  void* receive,
                  const Stretch* received,
                  void* stream) override
    {
        const std::vector<size_t> to = offsets(sent), from = offsets(received);
        std::vector<char> out(to.back()), in(from.back());
        checkCuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "waiting for the GPU");
        for (int r = 0; r < host_.size(); r++)
        {
            copy(out.data() + to[r],
                 static_cast<const char*>(send) + sent[r].begin,
                 to[r + 1] - to[r],
                 stream);
        }
        host_.exchange(out.data(), to.data(), in.data(), from.data());
        for (int r = 0; r < host_.size(); r++)
        {
            copy(static_cast<char*>(receive) + received[r].begin,
                 in.data() + from[r],
                 from[r + 1] - from[r],
                 stream);
        }
    }
    bool mayBeCaptured() const override { return false; }

private:
    static void copy(char* to, const char* from, size_t bytes, void* stream)
    {
        const auto s = static_cast<cudaStream_t>(stream);
        checkCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s), "copying a message");
        checkCuda(cudaStreamSynchronize(s), "copying a message");
    }
    std::vector<size_t> offsets(const Stretch* stretches) const
    {
        std::vector<size_t> result = { 0 };
        for (int r = 0; r < host_.size(); r++)
        {
            result.push_back(result.back() + (r == host_.rank() ? 0 : stretches[r].size));
        }
        return result;
    }

    Communicator& host_;
};

} // namespace test
} // namespace farfield

#endif
