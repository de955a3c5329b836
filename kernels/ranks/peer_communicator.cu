/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield_cuda.h"
#include "ranks/peer_communicator.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <random>
#include <string>

#include <cuda/atomic>

#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;
//! Blocks that send to or receive from a rank: they leave room for other kernels.
constexpr int c_mostBlocks = 64;
//! Loads of a thread under way at a time: with all threads' enough to fill a link.
constexpr int c_underway = 8;

//! Copies so many parts from one place to another, all threads of some blocks together.
template<class Part>
__device__ void copyParts(Part* to, const Part* from, size_t count)
{
    const size_t stride = static_cast<size_t>(gridDim.x) * c_threads;
    size_t i            = static_cast<size_t>(blockIdx.x) * c_threads + threadIdx.x;
    for (; i + (c_underway - 1) * stride < count; i += c_underway * stride)
    {
        Part parts[c_underway];
#pragma unroll
        for (int k = 0; k < c_underway; k++)
        {
            parts[k] = __ldcg(from + i + k * stride);
        }
#pragma unroll
        for (int k = 0; k < c_underway; k++)
        {
            to[i + k * stride] = parts[k];
        }
    }
    for (; i < count; i += stride)
    {
        to[i] = __ldcg(from + i);
    }
}

//! The same for bytes, a multiple of four.
__device__ void copyTogether(char* to, const char* from, size_t bytes)
{
    size_t done = 0;
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % sizeof(uint4) == 0)
    {
        const size_t count = bytes / sizeof(uint4);
        copyParts(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), count);
        done = count * sizeof(uint4);
    }
    copyParts(reinterpret_cast<unsigned*>(to + done),
              reinterpret_cast<const unsigned*>(from + done),
              (bytes - done) / sizeof(unsigned));
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
    size_t room;          //!< bytes of a slot
    unsigned* number;     //!< of exchanges that have ended
    unsigned* blocksDone; //!< [messages] or [1]
};

//! Writes messages into mailboxes, a row of blocks each.
__global__ void __launch_bounds__(c_threads)
        send(const __grid_constant__ Messages messages, const char* buffer)
{
    const Message& m      = messages.message[blockIdx.y];
    const unsigned number = *messages.number;
    copyTogether(m.slots + number % 2 * messages.room, buffer + m.stretch.begin, m.stretch.size);
    __threadfence_system();
    if (lastBlock(messages.blocksDone + blockIdx.y, gridDim.x) && threadIdx.x == 0)
    {
        // what other threads wrote, before their blocks were counted, comes before the number, too
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
    if (lastBlock(messages.blocksDone, gridDim.x * gridDim.y) && threadIdx.x == 0)
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

bool PeerCommunicator::connect(Communicator* host)
{
    //! Where a rank is.
    struct Place
    {
        std::array<unsigned, 4> process; //!< the same for threads, and for nobody else
        int device;
    };
    static const std::array<unsigned, 4> process = []
    {
        std::random_device random;
        return std::array<unsigned, 4>{ random(), random(), random(), random() };
    }();
    Place mine = { process, -1 };
    Ranks ranks(host);
    const bool hasDevice            = cudaGetDevice(&mine.device) == cudaSuccess;
    const std::vector<Place> places = ranks.gatherOne(mine);
    const auto onAll                = [&](const auto& isTrueFor)
    {
        bool isTrue = hasDevice && ranks.size() <= c_mostRanks;
        for (int r = 0; r < ranks.size(); r++)
        {
            isTrue = isTrue && (r == ranks.rank() || isTrueFor(places[r]));
        }
        (void)cudaGetLastError(); // one that has been seen to
        return isTrueOnAll(host, isTrue);
    };
    const auto reaches = [&](const Place& other)
    {
        int canAccess = 0;
        return other.process == mine.process && other.device != mine.device
               && cudaDeviceCanAccessPeer(&canAccess, mine.device, other.device) == cudaSuccess
               && canAccess != 0;
    };
    const auto enables = [](const Place& other)
    {
        const cudaError_t status = cudaDeviceEnablePeerAccess(other.device, 0);
        return status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
    };
    return onAll(reaches) && onAll(enables);
}

PeerCommunicator::PeerCommunicator(Communicator* host) : ranks_(host)
{
    const auto begin = [&]
    {
        const Stream stream;
        arrived_.resize(ranks_.size());
        arrived_.clear(stream);
        number_.resize(1);
        number_.clear(stream);
        blocksDone_.resize(ranks_.size() + 1);
        blocksDone_.clear(stream);
        stream.synchronize();
        // Brings the kernels to the GPU: who gives an evaluation up sends messages nonetheless.
        // On a GPU that has none of ours the solver says so, or takes the CPU.
        cudaFuncAttributes attributes;
        (void)cudaFuncGetAttributes(&attributes, send);
        (void)cudaFuncGetAttributes(&attributes, receive);
        (void)cudaGetLastError();
        // what exchanges between hosts need, as they have to come to them
        mailboxes_.resize(ranks_.size());
        ownMailbox_.resize(ranks_.size());
        bytes_.resize(ranks_.size());
        ownBytes_.resize(ranks_.size());
    };
    onAll(begin);
    reserve(1);
}

template<class Work>
void PeerCommunicator::onAll(const Work& work)
{
    std::exception_ptr failure;
    ErrorCode code = ErrorCode::OutOfMemory; // of the host, where it is no Error
    try
    {
        work();
    }
    catch (const Error& error)
    {
        failure = std::current_exception();
        code    = error.code();
    }
    catch (...)
    {
        failure = std::current_exception();
    }
    const int failed = ranks_.failedAfter(failure != nullptr);
    if (failed < 0)
    {
        return;
    }
    ranks_.tellFrom(failed, &code);
    if (failure)
    {
        std::rethrow_exception(failure);
    }
    if (code == ErrorCode::OutOfMemory)
    {
        throw Error(code,
                    "The GPU of rank " + std::to_string(failed) + " has no memory for messages.");
    }
    throw Error(code,
                "The rank " + std::to_string(failed)
                        + " could not connect its GPU, and its message says why.");
}

void PeerCommunicator::reserve(size_t bytes)
{
    constexpr size_t c_unit = 256;
    ranks_.gatherOne(bytes, &ownBytes_, &bytes_);
    const size_t largest = *std::max_element(bytes_.begin(), bytes_.end());
    if (largest <= room_)
    {
        return;
    }
    // what grows by a little will again
    const size_t room = (std::max(largest, room_ + room_ / 16) + c_unit - 1) / c_unit * c_unit;
    room_             = 0; // until all have it
    onAll([&] { slots_.resize(2 * room * ranks_.size()); });
    ranks_.gatherOne(Mailbox{ slots_.data(), arrived_.data() }, &ownMailbox_, &mailboxes_);
    room_ = room;
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
    for (int r = 0; r < ranks_.size(); r++)
    {
        if (r != me && std::max(sent[r].size, received[r].size) > room_)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "A message between GPUs has more bytes than reserve() has reserved.");
        }
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
    return PeerCommunicator::connect(host) ? std::make_unique<PeerCommunicator>(host) : nullptr;
}

} // namespace farfield
