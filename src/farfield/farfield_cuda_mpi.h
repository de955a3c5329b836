/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A DeviceCommunicator over an MPI library that takes device memory, in a header so that the
 *         library itself needs none.
 *
 *  Include mpi.h before.
 */
#ifndef FARFIELD_FARFIELD_CUDA_MPI_H
#define FARFIELD_FARFIELD_CUDA_MPI_H

#include <string>

#include <cuda_runtime_api.h>

#include "farfield/farfield_mpi.h"

namespace farfield
{

/*! \brief GPUs of ranks over GPU-aware MPI.
 *
 *  Where ranks share a GPU, too. MPI knows no streams: the host waits in every exchange, first for what
 *  is sent, then for the messages. NcclCommunicator does not wait. */
class GpuAwareMpiCommunicator final : public DeviceCommunicator
{
public:
    //! \param[in] host  outlives this
    explicit GpuAwareMpiCommunicator(MpiCommunicator* host) : host_(*host) {}

    void exchange(const void* send,
                  const Stretch* sent,
                  void* receive,
                  const Stretch* received,
                  void* stream) override
    {
        const cudaError_t status = cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
        if (status != cudaSuccess)
        {
            throw Error(ErrorCode::DeviceFailure,
                        std::string("CUDA reports '") + cudaGetErrorString(status)
                                + "' while waiting for what is sent to other ranks.");
        }
        host_.exchangeWithOthers(
                static_cast<const char*>(send), sent, static_cast<char*>(receive), received);
    }
    bool mayBeCaptured() const override { return false; }

private:
    MpiCommunicator& host_;
};

} // namespace farfield

#endif
