/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief One system on several ranks: processes, or threads, that send each other messages.
 */
#ifndef FARFIELD_FARFIELD_PARALLEL_H
#define FARFIELD_FARFIELD_PARALLEL_H

#include <cstddef>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "farfield/farfield.h"

namespace farfield
{

/*! \brief How the ranks that share a system talk to each other; MpiCommunicator does over MPI.
 *
 *  A function that throws on one rank leaves the others waiting for it: a caller ends them, as
 *  MPI_Abort() does. */
class Communicator
{
public:
    virtual ~Communicator() = default;
    //! This rank, from 0 to size() - 1.
    virtual int rank() const = 0;
    //! Number of ranks.
    virtual int size() const = 0;
    /*! \brief Sends a part of a buffer to every rank, and receives one from each; all ranks call it.
     *
     *  Sizes agree between sender and receiver; where they are zero there need be no message.
     *  \param[in]  send            bytes
     *  \param[in]  sendOffsets     [size() + 1]: rank r gets those from sendOffsets[r] on, up to
     *                              sendOffsets[r + 1]
     *  \param[out] receive         bytes
     *  \param[in]  receiveOffsets  [size() + 1], likewise */
    virtual void exchange(const char* send,
                          const size_t* sendOffsets,
                          char* receive,
                          const size_t* receiveOffsets) = 0;
};

/*! \brief What all ranks have, one behind the other. All ranks together.
 *  \param[in] ranks  those that take part
 *  \param[in] mine   bytes, of the same number on all */
inline std::vector<char> fromAll(Communicator* ranks, const std::vector<char>& mine)
{
    std::vector<char> send;
    std::vector<size_t> offsets = { 0 };
    for (int r = 0; r < ranks->size(); r++)
    {
        send.insert(send.end(), mine.begin(), mine.end());
        offsets.push_back(send.size());
    }
    std::vector<char> all(send.size());
    ranks->exchange(send.data(), offsets.data(), all.data(), offsets.data());
    return all;
}

/*! \brief Whether something is true on all ranks. All ranks together.
 *  \param[in] ranks       those that take part
 *  \param[in] isTrueHere  what this rank says */
inline bool isTrueOnAll(Communicator* ranks, bool isTrueHere)
{
    const std::vector<char> all = fromAll(ranks, { static_cast<char>(isTrueHere ? 1 : 0) });
    return std::find(all.begin(), all.end(), 0) == all.end();
}

//! A part of a buffer.
struct Stretch
{
    size_t begin = 0; //!< bytes
    size_t size  = 0; //!< bytes; 0: there is no message
};

//! What messages of an exchange cost, one after another.
struct MessageCost
{
    double message = 1e4;   //!< ns for each, whatever is in it
    double byte    = 0.004; //!< ns for each byte in it
};

/*! \brief How GPUs of the ranks talk to each other; NcclCommunicator does over NCCL.
 *
 *  Ranks are those of a Communicator, one GPU each. */
class DeviceCommunicator
{
public:
    virtual ~DeviceCommunicator() = default;
    /*! \brief Puts into a stream what sends a part of a buffer to every other rank, and receives one
     *         from each; all ranks call it in the same order.
     *
     *  Sizes agree between sender and receiver.
     *  \param[in]  send      device memory
     *  \param[in]  sent      [ranks]; the one for this rank has no meaning; they may overlap
     *  \param[out] receive   device memory
     *  \param[in]  received  [ranks], likewise, apart from each other
     *  \param[in]  stream    cudaStream_t of the current device */
    virtual void exchange(const void* send,
                          const Stretch* sent,
                          void* receive,
                          const Stretch* received,
                          void* stream) = 0;
    //! Whether exchange() may be captured into a CUDA graph.
    virtual bool mayBeCaptured() const = 0;
    /*! \brief Makes room for what is to come; all ranks call it together, when nothing is under way.
     *  \param[in] bytes  of the largest message that this rank will receive */
    virtual void reserve(size_t bytes) { (void)bytes; }
    //! What messages cost, for the choice of cells; the same on all ranks.
    virtual MessageCost cost() const { return {}; }
};

//! All particles of a system, by their indices; the same on all ranks.
template<class Real>
struct SystemOfRanks
{
    int count           = 0;
    const Real* charges = nullptr; //!< e, [count]
    //! [count + 1], ascending from 0: where the excluded partners of a particle begin; null: none has any
    const int* exclusionOffsets = nullptr;
    //! Each pair is listed at both of its particles
    const int* exclusionPartners = nullptr;
};

//! What this rank has sent to others.
struct Traffic
{
    long long evaluations = 0;
    long long messages =
            0; //!< in evaluations, without the byte before each that says that all goes well
    long long bytes = 0; //!< in evaluations
    /*! \brief What the cost model expects of one evaluation, for the cells in use: domains as even as
     *         the number of ranks allows, and filled evenly; 0 before there are cells. */
    double expectedMessages = 0, expectedBytes = 0;
    long long plans = 0; //!< how often particles had moved so far that exchanges were planned anew
    long long planBytes = 0; //!< in plans
};

/*! \brief Solver of a system whose particles are divided among ranks, on their CPUs or GPUs.
 *
 *  Every rank has some particles, and gets their forces. Divisions in space, one domain for each
 *  rank, are what it is made for; with any other results are the same and messages more. A rank may
 *  have no particles at all.
 *
 *  The near field takes positions of the particles of others that are near ours; none of them gets
 *  a force back. A cell that holds particles of several ranks has a part of its multipoles on each:
 *  M2L takes their sum, M2M, L2L and all else are of the particles of the rank alone. The coarsest
 *  level is closed by a transform of which each rank has a part of the coefficients, then of the
 *  wave vectors, if it holds the leaves, and by all ranks alike above a tree. On GPUs there is no
 *  tree, and all close the one level alike, after one exchange of messages.
 *
 *  The cost model that chooses order and cells counts the ranks and their messages. With the same cells
 *  results are those of Solver to rounding, and bitwise reproducible for the same ranks and threads.
 *
 *  All functions but those that are const are called by all ranks together, with the same options but
 *  for threads and deviceId, and the same system, box, request and state. Where that is not so, or what
 *  one rank is given is wrong, the same Error is thrown on all ranks, before anything is computed.
 *  Whatever one rank lacks in the course of a call, memory above all, is an Error on all ranks, too, and
 *  the next call goes on. So it is with evaluations on device arrays where messages pass through the
 *  hosts, and with the first one of a plan. In later ones only the rank that failed throws at once. It
 *  sends the messages that the others wait for, and wait() throws on them if they call it before they
 *  enqueue another evaluation. Where operators that are built for another box find no memory all ranks
 *  throw. The others may wait for ever in cases that enqueue() names.
 *
 *  Positions and forces are those of the particles of this rank, and evaluate() returns the part of
 *  this rank: the sums over ranks are the totals of the system. Request::lambda has no meaning. Where
 *  particles have moved by a third of a cell since the exchanges were planned, or setLocal() was
 *  called, evaluate() plans the exchanges anew. Order and cells are chosen by the first rank, with all
 *  particles, for all ranks, and anew where a Solver does so. state() is the same on all ranks, and
 *  exchangeable with that of a Solver.
 *
 *  \tparam Real  as of Solver */
template<class Real>
class FARFIELD_EXPORT DistributedSolver : public CoulombSolver<Real>
{
public:
    /*! \brief Checks the options.
     *  \param[in] options       periodic boundaries; the device Auto is the GPU if every rank can use one
     *  \param[in] communicator  outlives the solver
     *  \param[in] onDevice      between the GPUs, likewise; null: messages pass through the hosts
     *  \throws Error  as Solver; Unsupported: boundaries without images, or trees of cells on GPUs */
    DistributedSolver(const Options& options,
                      Communicator* communicator,
                      DeviceCommunicator* onDevice = nullptr);

    /*! \brief Sets what the particles are; to be called before setLocal(), and when charges or exclusions
     *         change. Copied by every rank, onto its GPU, too.
     *  \param[in] system  all particles, the same on all ranks
     *  \throws Error  InvalidArgument: ranks have other systems, a charge is not finite, offsets do not
     *                 ascend, a partner does not exist, or a pair is listed at one of its particles only.
     *                 The old system holds then */
    void setSystem(const SystemOfRanks<Real>& system);
    /*! \brief Sets the particles of this rank; to be called when they change, and may be called when
     *         they have moved.
     *  \param[in] index  of each in the system, [count]; every particle is on one rank, which the next
     *                    evaluation checks
     *  \param[in] count  of these
     *  \throws Error  InvalidArgument: there is no such particle */
    void setLocal(const int* index, int count);

    //! What this rank has sent to others since construction.
    Traffic traffic() const;

private:
    class Impl;
    Impl& impl() const;
};

extern template class DistributedSolver<float>;
extern template class DistributedSolver<double>;

} // namespace farfield

#endif
