/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Messages between GPUs that pass through the hosts: what works with any Communicator.
 */
#ifndef FARFIELD_KERNELS_RANKS_STAGED_COMMUNICATOR_H
#define FARFIELD_KERNELS_RANKS_STAGED_COMMUNICATOR_H

#include <vector>

#include "farfield/farfield_parallel.h"
#include "parallel/ranks.h"
#include "runtime/device.h"

namespace farfield
{

//! Every exchange waits for its stream, and for all ranks where failures are watched for.
class StagedCommunicator final : public DeviceCommunicator
{
public:
    //! \param[in] ranks  those of the host
    StagedCommunicator(Communicator* host, Ranks* ranks) : host_(*host), ranks_(*ranks) {}
    void exchange(const void* send,
                  const Stretch* sent,
                  void* receive,
                  const Stretch* received,
                  void* stream) override
    {
        const cudaStream_t s = static_cast<cudaStream_t>(stream);
        setOffsets(sent, &sendOffsets_);
        setOffsets(received, &receiveOffsets_);
        out_.resize(sendOffsets_.back());
        in_.resize(receiveOffsets_.back());
        for (int r = 0; r < host_.size(); r++)
        {
            copy(out_.data() + sendOffsets_[r],
                 static_cast<const char*>(send) + sent[r].begin,
                 sendOffsets_[r + 1] - sendOffsets_[r],
                 s);
        }
        check(cudaStreamSynchronize(s), "waiting for what is sent");
        ranks_.confirm();
        host_.exchange(out_.data(), sendOffsets_.data(), in_.data(), receiveOffsets_.data());
        for (int r = 0; r < host_.size(); r++)
        {
            copy(static_cast<char*>(receive) + received[r].begin,
                 in_.data() + receiveOffsets_[r],
                 receiveOffsets_[r + 1] - receiveOffsets_[r],
                 s);
        }
        check(cudaStreamSynchronize(s), "copying what was received");
    }
    bool mayBeCaptured() const override { return false; }

private:
    static void copy(char* to, const char* from, size_t bytes, cudaStream_t stream)
    {
        if (bytes > 0)
        {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
                  "copying between GPU and host");
        }
    }
    void setOffsets(const Stretch* stretches, std::vector<size_t>* offsets) const
    {
        offsets->assign(static_cast<size_t>(host_.size()) + 1, 0);
        for (int r = 0; r < host_.size(); r++)
        {
            (*offsets)[r + 1] = (*offsets)[r] + (r == host_.rank() ? 0 : stretches[r].size);
        }
    }

    Communicator& host_;
    Ranks& ranks_;
    std::vector<size_t> sendOffsets_, receiveOffsets_;
    PinnedBuffer<char> out_, in_;
};

} // namespace farfield

#endif
