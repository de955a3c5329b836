/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_cuda.h"
#include "ranks/peer_communicator.h"

#include <algorithm>
#include <cstdint>

#include <cuda/atomic>
#include <unistd.h>

namespace farfield
{
namespace
{

constexpr int c_threads = 256;
//! Blocks that send to or receive from a rank: they fill a link, and leave room for other kernels.
constexpr int c_mostBlocks = 16;

//! Copies from one place to another, all threads of some blocks together.
__device__ void copyTogether(char* to, const char* from, size_t bytes)
{
    const size_t first  = static_cast<size_t>(blockIdx.x) * c_threads + threadIdx.x;
    const size_t stride = static_cast<size_t>(gridDim.x) * c_threads;
    size_t done         = 0;
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % sizeof(uint4) == 0)
    {
        const size_t count = bytes / sizeof(uint4);
        for (size_t i = first; i < count; i += stride)
        {
            reinterpret_cast<uint4*>(to)[i] = __ldcg(reinterpret_cast<const uint4*>(from) + i);
        }
        done = count * sizeof(uint4);
    }
    for (size_t i = done / sizeof(unsigned) + first; i < bytes / sizeof(unsigned); i += stride)
    {
        reinterpret_cast<unsigned*>(to)[i] = __ldcg(reinterpret_cast<const unsigned*>(from) + i);
    }
}

//! Whether this block is the last of so many; all its threads call it, and all see what others wrote.
__device__ bool isLastBlock(int* done, int blocks)
{
    __shared__ bool isLast;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
    {
        isLast = atomicAdd(done, 1) == blocks - 1;
        if (isLast)
        {
            *done = 0;
        }
    }
    __syncthreads();
    return isLast;
}

using Arrived = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

//! One message of an exchange.
struct Message
{
    Stretch stretch;
    char* slots;       //!< [2][room]
    unsigned* arrived; //!< how many have
};

//! Messages to or from all other ranks.
struct Messages
{
    Message message[PeerCommunicator::c_mostRanks];
    size_t room;      //!< bytes of a slot
    unsigned* number; //!< of exchanges that have ended
    int* blocksDone;  //!< [messages] or [1]
};

//! Writes messages into mailboxes, a row of blocks each.
__global__ void __launch_bounds__(c_threads)
        send(const __grid_constant__ Messages messages, const char* buffer)
{
    const Message& m      = messages.message[blockIdx.y];
    const unsigned number = *messages.number;
    copyTogether(m.slots + number % 2 * messages.room, buffer + m.stretch.begin, m.stretch.size);
    if (isLastBlock(messages.blocksDone + blockIdx.y, gridDim.x) && threadIdx.x == 0)
    {
        __threadfence_system();
        Arrived(*m.arrived).store(number + 1, cuda::memory_order_release);
    }
}

//! Waits for messages and takes them out of the mailbox, a row of blocks each.
__global__ void __launch_bounds__(c_threads)
        receive(const __grid_constant__ Messages messages, char* buffer)
{
    const Message& m      = messages.message[blockIdx.y];
    const unsigned number = *messages.number;
    if (threadIdx.x == 0)
    {
        // numbers go round
        while (static_cast<int>(Arrived(*m.arrived).load(cuda::memory_order_acquire) - number) <= 0)
        {
            __nanosleep(50);
        }
    }
    __syncthreads();
    copyTogether(buffer + m.stretch.begin, m.slots + number % 2 * messages.room, m.stretch.size);
    if (isLastBlock(messages.blocksDone, gridDim.x * gridDim.y) && threadIdx.x == 0)
    {
        *messages.number = number + 1;
    }
}

int blocksOf(const Stretch* stretches, int ranks, int me)
{
    size_t largest = 0;
    for (int r = 0; r < ranks; r++)
    {
        largest = std::max(largest, r == me ? 0 : stretches[r].size);
    }
    return std::clamp(
            blocksFor(static_cast<long long>(largest / sizeof(uint4)), c_threads), 1, c_mostBlocks);
}

} // namespace

bool PeerCommunicator::isPossible(Communicator* host)
{
    //! Where a rank is.
    struct Place
    {
        char node[256];
        long process;
        int device;
    };
    Place mine = {};
    Ranks ranks(host);
    bool isPossible = ranks.size() <= c_mostRanks
                      && gethostname(mine.node, sizeof(mine.node) - 1) == 0
                      && cudaGetDevice(&mine.device) == cudaSuccess;
    mine.process                    = getpid();
    const std::vector<Place> places = ranks.gatherOne(mine);
    for (int r = 0; r < ranks.size(); r++)
    {
        const Place& other = places[r];
        int reaches        = 0;
        isPossible         = isPossible
                     && std::equal(other.node, other.node + sizeof(other.node), mine.node)
                     && other.process == mine.process
                     && (r == ranks.rank()
                         || (other.device != mine.device
                             && cudaDeviceCanAccessPeer(&reaches, mine.device, other.device)
                                        == cudaSuccess
                             && reaches != 0));
    }
    return ranks.sum(isPossible ? 1 : 0) == ranks.size();
}

PeerCommunicator::PeerCommunicator(Communicator* host) : ranks_(host)
{
    int mine = 0;
    check(cudaGetDevice(&mine), "finding the device");
    for (const int device : ranks_.gatherOne(mine))
    {
        const cudaError_t status =
                device == mine ? cudaSuccess : cudaDeviceEnablePeerAccess(device, 0);
        if (status == cudaErrorPeerAccessAlreadyEnabled)
        {
            (void)cudaGetLastError();
            continue;
        }
        check(status, "reaching the memory of another GPU");
    }
    const Stream stream;
    arrived_.resize(ranks_.size());
    arrived_.clear(stream);
    number_.resize(1);
    number_.clear(stream);
    blocksDone_.resize(ranks_.size() + 1);
    blocksDone_.clear(stream);
    stream.synchronize();
    reserve(1);
}

void PeerCommunicator::reserve(size_t bytes)
{
    constexpr size_t c_unit       = 256;
    const std::vector<size_t> all = ranks_.gatherOne(bytes);
    const size_t wanted =
            (*std::max_element(all.begin(), all.end()) + c_unit - 1) / c_unit * c_unit;
    if (wanted <= room_)
    {
        return;
    }
    room_ = wanted;
    slots_.resize(2 * room_ * ranks_.size());
    mailboxes_ = ranks_.gatherOne(Mailbox{ slots_.data(), arrived_.data() });
}

void PeerCommunicator::exchange(const void* sendBuffer,
                                const Stretch* sent,
                                void* receiveBuffer,
                                const Stretch* received,
                                void* stream)
{
    const int me     = ranks_.rank();
    const int others = ranks_.size() - 1;
    if (others == 0)
    {
        return;
    }
    Messages outgoing   = {};
    outgoing.room       = room_;
    outgoing.number     = number_.data();
    outgoing.blocksDone = blocksDone_.data();
    Messages incoming   = outgoing;
    incoming.blocksDone = blocksDone_.data() + ranks_.size();
    for (int k = 1; k <= others; k++)
    {
        // the next neighbours first, so that not all send to one
        const int to = (me + k) % ranks_.size(), from = (me + ranks_.size() - k) % ranks_.size();
        outgoing.message[k - 1] = { sent[to],
                                    mailboxes_[to].slots + 2 * room_ * me,
                                    mailboxes_[to].arrived + me };
        incoming.message[k - 1] = { received[from],
                                    mailboxes_[me].slots + 2 * room_ * from,
                                    mailboxes_[me].arrived + from };
    }
    const auto s = static_cast<cudaStream_t>(stream);
    send<<<dim3(blocksOf(sent, ranks_.size(), me), others), c_threads, 0, s>>>(
            outgoing, static_cast<const char*>(sendBuffer));
    checkLaunch("sending to other GPUs");
    receive<<<dim3(blocksOf(received, ranks_.size(), me), others), c_threads, 0, s>>>(
            incoming, static_cast<char*>(receiveBuffer));
    checkLaunch("receiving from other GPUs");
}

std::unique_ptr<DeviceCommunicator> makePeerCommunicator(Communicator* host)
{
    return PeerCommunicator::isPossible(host) ? std::make_unique<PeerCommunicator>(host) : nullptr;
}

} // namespace farfield
