/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A Communicator over MPI, in a header so that the library itself needs none.
 *
 *  Include mpi.h before, or a library that has MPI's names, as thread-MPI.
 */
#ifndef FARFIELD_FARFIELD_MPI_H
#define FARFIELD_FARFIELD_MPI_H

#include <algorithm>
#include <limits>
#include <vector>

#include "farfield/farfield_parallel.h"

namespace farfield
{

/*! \brief Ranks of an MPI communicator.
 *
 *  Messages are point to point, with a tag of their own: that of a communicator that nobody else
 *  uses at the same time. Errors are those of MPI's error handler, which ends the program unless
 *  another one is set. */
class MpiCommunicator final : public Communicator
{
public:
    //! \param[in] comm  stays the caller's
    explicit MpiCommunicator(MPI_Comm comm) : comm_(comm)
    {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
    }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    void exchange(const char* send,
                  const size_t* sendOffsets,
                  char* receive,
                  const size_t* receiveOffsets) override
    {
        setStretches(sendOffsets, &sent_);
        setStretches(receiveOffsets, &received_);
        exchangeWithOthers(send, sent_.data(), receive, received_.data());
        std::copy(send + sendOffsets[rank_],
                  send + sendOffsets[rank_ + 1],
                  receive + receiveOffsets[rank_]);
    }

    /*! \brief Sends a part of a buffer to every other rank, and receives one from each.
     *
     *  \param[in] send, receive   in any memory that the MPI library takes
     *  \param[in] sent, received  as of DeviceCommunicator::exchange() */
    void exchangeWithOthers(const char* send,
                            const Stretch* sent,
                            char* receive,
                            const Stretch* received)
    {
        requests_.clear();
        // the next neighbours first, so that not all send to one
        for (int k = 1; k < size_; k++)
        {
            const int from = (rank_ + size_ - k) % size_;
            forPieces(received[from],
                      [&](size_t begin, int count)
                      {
                          requests_.emplace_back();
                          MPI_Irecv(receive + begin,
                                    count,
                                    MPI_BYTE,
                                    from,
                                    c_tag,
                                    comm_,
                                    &requests_.back());
                      });
        }
        for (int k = 1; k < size_; k++)
        {
            const int to = (rank_ + k) % size_;
            forPieces(sent[to],
                      [&](size_t begin, int count)
                      {
                          requests_.emplace_back();
                          // without const in MPI 2, which thread-MPI follows
                          char* bytes = const_cast<char*>(send)
                                        + begin; // NOLINT(cppcoreguidelines-pro-type-const-cast)
                          MPI_Isend(bytes, count, MPI_BYTE, to, c_tag, comm_, &requests_.back());
                      });
        }
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }

private:
    static constexpr int c_tag = 4321;

    void setStretches(const size_t* offsets, std::vector<Stretch>* stretches) const
    {
        stretches->clear();
        for (int r = 0; r < size_; r++)
        {
            stretches->push_back({ offsets[r], offsets[r + 1] - offsets[r] });
        }
    }
    //! Calls f(begin, count) for what goes to or comes from a rank, in pieces that an int can count.
    template<class Function>
    static void forPieces(const Stretch& all, const Function& f)
    {
        constexpr size_t c_most = std::numeric_limits<int>::max();
        const size_t end        = all.begin + all.size;
        for (size_t begin = all.begin; begin < end; begin += c_most)
        {
            f(begin, static_cast<int>(std::min(c_most, end - begin)));
        }
    }

    MPI_Comm comm_;
    int rank_ = 0, size_ = 1;
    std::vector<MPI_Request> requests_;
    std::vector<Stretch> sent_, received_;
};

} // namespace farfield

#endif
