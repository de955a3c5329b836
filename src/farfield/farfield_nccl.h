/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A DeviceCommunicator over NCCL, in a header so that the library itself needs none.
 */
#ifndef FARFIELD_FARFIELD_NCCL_H
#define FARFIELD_FARFIELD_NCCL_H

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <nccl.h>
#include <unistd.h>

#include "farfield/farfield_parallel.h"

namespace farfield
{

/*! \brief GPUs of ranks, which are processes or threads, over NCCL.
 *
 *  Every rank has a GPU of its own, the current one of its thread when this is made. */
class NcclCommunicator final : public DeviceCommunicator
{
public:
    /*! \brief All ranks together.
     *  \param[in] host  tells them how to meet
     *  \throws Error  DeviceFailure: NCCL reports an error, as where two ranks have the same GPU. Others
     *                 may wait in NCCL for the rank that throws */
    explicit NcclCommunicator(Communicator* host) : rank_(host->rank()), size_(host->size())
    {
        ncclUniqueId id     = {};
        ncclResult_t status = ncclSuccess;
        if (rank_ == 0)
        {
            status = ncclGetUniqueId(&id);
        }
        // the first rank sends its own to all, itself included
        std::vector<char> send, receive(sizeof(id));
        std::vector<size_t> sendOffsets(size_ + 1, 0), receiveOffsets(size_ + 1, sizeof(id));
        receiveOffsets[0] = 0;
        for (int r = 0; rank_ == 0 && r < size_; r++)
        {
            send.insert(send.end(), id.internal, id.internal + sizeof(id));
            sendOffsets[r + 1] = send.size();
        }
        host->exchange(send.data(), sendOffsets.data(), receive.data(), receiveOffsets.data());
        std::copy(receive.begin(), receive.end(), id.internal);
        if (!isTrueOnAll(host, status == ncclSuccess))
        {
            // of the first rank, and all know
            check(status != ncclSuccess ? status : ncclSystemError, "making an identifier");
        }
        check(ncclCommInitRank(&comm_, size_, id, rank_), "meeting the other ranks");
    }
    ~NcclCommunicator() override
    {
        if (comm_ != nullptr)
        {
            ncclCommDestroy(comm_);
        }
    }
    NcclCommunicator(const NcclCommunicator&)            = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;

    void exchange(const void* send,
                  const Stretch* sent,
                  void* receive,
                  const Stretch* received,
                  void* stream) override
    {
        const auto s = static_cast<cudaStream_t>(stream);
        check(ncclGroupStart(), "beginning an exchange");
        // a group that has been begun is ended, whatever fails in it
        ncclResult_t first = ncclSuccess;
        const auto note    = [&](ncclResult_t status)
        { first = first == ncclSuccess ? status : first; };
        for (int k = 1; k < size_; k++)
        {
            const int to = (rank_ + k) % size_, from = (rank_ + size_ - k) % size_;
            if (sent[to].size > 0)
            {
                note(ncclSend(static_cast<const char*>(send) + sent[to].begin,
                              sent[to].size,
                              ncclChar,
                              to,
                              comm_,
                              s));
            }
            if (received[from].size > 0)
            {
                note(ncclRecv(static_cast<char*>(receive) + received[from].begin,
                              received[from].size,
                              ncclChar,
                              from,
                              comm_,
                              s));
            }
        }
        note(ncclGroupEnd());
        check(first, "exchanging messages");
    }
    bool mayBeCaptured() const override { return true; }

    //! Whether all ranks have GPUs of their own: the current ones of their threads. All ranks together.
    static bool haveOwnGpus(Communicator* host)
    {
        constexpr size_t c_room = 320;
        std::vector<char> name(c_room, 0);
        int device = 0;
        if (cudaGetDevice(&device) != cudaSuccess
            || cudaDeviceGetPCIBusId(name.data(), 64, device) != cudaSuccess
            || gethostname(name.data() + 64, c_room - 65) != 0)
        {
            name.assign(c_room, 0); // as any other that does not know
        }
        const std::vector<char> all = fromAll(host, name);
        std::set<std::string> names;
        for (size_t begin = 0; begin < all.size(); begin += c_room)
        {
            names.emplace(all.data() + begin, c_room);
        }
        return names.size() == static_cast<size_t>(host->size());
    }

private:
    void check(ncclResult_t status, const char* action) const
    {
        if (status != ncclSuccess)
        {
            throw Error(ErrorCode::DeviceFailure,
                        std::string("NCCL reports '") + ncclGetErrorString(status) + "' while "
                                + action + ": " + ncclGetLastError(comm_)
                                + ". Every rank needs a GPU of its own.");
        }
    }

    int rank_, size_;
    ncclComm_t comm_ = nullptr;
};

} // namespace farfield

#endif
