/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The ranks of a system: what they send each other, by element instead of byte, and counted.
 */
#ifndef FARFIELD_PARALLEL_RANKS_H
#define FARFIELD_PARALLEL_RANKS_H

#include <algorithm>
#include <exception>
#include <numeric>
#include <type_traits>
#include <vector>

#include "farfield/farfield_parallel.h"

namespace farfield
{

//! Elements for, or from, every rank: those of rank r from offsets[r] on.
template<class T>
struct ByRank
{
    std::vector<T> values;
    std::vector<size_t> offsets; //!< [ranks + 1]

    const T* begin(int rank) const { return values.data() + offsets[rank]; }
    T* begin(int rank) { return values.data() + offsets[rank]; }
    const T* end(int rank) const { return values.data() + offsets[rank + 1]; }
    size_t count(int rank) const { return offsets[rank + 1] - offsets[rank]; }

    //! Room for so many elements for each rank. \param[in] countOf  (rank)
    template<class Count>
    void resize(int ranks, const Count& countOf)
    {
        offsets.assign(ranks + 1, 0);
        for (int r = 0; r < ranks; r++)
        {
            offsets[r + 1] = offsets[r] + countOf(r);
        }
        values.resize(offsets[ranks]);
    }
};

//! Lists for each rank, one behind the other.
template<class T>
ByRank<T> joined(const std::vector<std::vector<T>>& lists)
{
    ByRank<T> all;
    all.resize(static_cast<int>(lists.size()), [&](int r) { return lists[r].size(); });
    for (size_t r = 0; r < lists.size(); r++)
    {
        std::copy(lists[r].begin(), lists[r].end(), all.begin(static_cast<int>(r)));
    }
    return all;
}

//! Another rank has failed, in work that all of them do together.
struct OtherRankFailed : std::exception
{
    explicit OtherRankFailed(int which) : rank(which) {}
    int rank; //!< the first of them
};

/*! \brief A Communicator and what went through it. Functions that send are called by all ranks together.
 *
 *  While failures are watched for, every exchange begins with one of a byte each, in which ranks say
 *  that they have come so far. One that has failed says so in its place: the others wait for nothing
 *  that does not come, wherever they are. Neither these bytes nor their messages are counted. */
class Ranks
{
public:
    explicit Ranks(Communicator* communicator) :
        communicator_(communicator), one_(offsetsOfOne()), said_(size()), heard_(size())
    {
        sendBytes_.resize(one_.size());
        receiveBytes_.resize(one_.size());
    }
    int rank() const { return communicator_->rank(); }
    int size() const { return communicator_->size(); }

    //! Every rank gets what there is for it; room for what comes is there.
    template<class T>
    void exchange(const ByRank<T>& send, ByRank<T>* receive)
    {
        exchange(send.values.data(), send.offsets, receive->values.data(), receive->offsets);
    }
    //! The same to and from arrays. \param[in] sendOffsets, receiveOffsets  as of ByRank
    template<class T>
    void exchange(const T* send,
                  const std::vector<size_t>& sendOffsets,
                  T* receive,
                  const std::vector<size_t>& receiveOffsets)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        confirm();
        inBytes(sendOffsets, sizeof(T), &sendBytes_);
        inBytes(receiveOffsets, sizeof(T), &receiveBytes_);
        for (int r = 0; r < size(); r++)
        {
            const size_t bytes = r == rank() ? 0 : sendBytes_[r + 1] - sendBytes_[r];
            messages_ += bytes > 0 ? 1 : 0;
            bytes_ += static_cast<long long>(bytes);
        }
        communicator_->exchange(reinterpret_cast<const char*>(send),
                                sendBytes_.data(),
                                reinterpret_cast<char*>(receive),
                                receiveBytes_.data());
    }
    //! The same where the receiver does not know how much comes.
    template<class T>
    ByRank<T> exchangeAny(const ByRank<T>& send)
    {
        std::vector<size_t> counts(size()), incoming(size());
        for (int r = 0; r < size(); r++)
        {
            counts[r] = send.count(r);
        }
        exchange(counts.data(), one_, incoming.data(), one_);
        ByRank<T> receive;
        receive.resize(size(), [&](int r) { return incoming[r]; });
        exchange(send, &receive);
        return receive;
    }
    //! What each rank has, for all.
    template<class T>
    ByRank<T> gather(const std::vector<T>& own)
    {
        ByRank<T> send;
        send.resize(size(), [&](int /*rank*/) { return own.size(); });
        for (int r = 0; r < size(); r++)
        {
            std::copy(own.begin(), own.end(), send.begin(r));
        }
        return exchangeAny(send);
    }
    //! The same for one element each: [ranks].
    template<class T>
    std::vector<T> gatherOne(const T& own)
    {
        std::vector<T> send(size()), receive(size());
        gatherOne(own, &send, &receive);
        return receive;
    }
    //! The same in memory that is there. \param[in,out] send, receive  [ranks]
    template<class T>
    void gatherOne(const T& own, std::vector<T>* send, std::vector<T>* receive)
    {
        std::fill(send->begin(), send->end(), own);
        exchange(send->data(), one_, receive->data(), one_);
    }
    //! The sum over ranks, the same on each of them.
    template<class T>
    T sum(const T& own)
    {
        const std::vector<T> all = gatherOne(own);
        return std::accumulate(all.begin(), all.end(), T(0));
    }

    //! \name Failures of single ranks; see together()
    //!@{
    //! Whether they are watched for. All ranks together.
    bool isWatched() const { return isWatched_; }
    void setWatched(bool isWatched)
    {
        isWatched_ = isWatched;
        isSilent_  = isSilent_ && !isWatched;
    }
    //! This rank fails without a word, as others may never come to where they would hear it.
    void failSilently() { isSilent_ = true; }
    //! Whether it did so since failures are, or were, watched for.
    bool isSilent() const { return isSilent_; }
    //! This rank has come so far. \throws OtherRankFailed  another has not, and never will
    void confirm()
    {
        if (isWatched_)
        {
            meet();
        }
    }
    //! Waits for all ranks, be they watched or not. \throws OtherRankFailed  as confirm()
    void meet()
    {
        if (const int failed = failedAfter(false); failed >= 0)
        {
            throw OtherRankFailed(failed);
        }
    }
    /*! \brief Tells the others, which are in confirm(), that this one has failed, or that it has not.
     *  \returns the first that has failed, -1 if none has */
    int failedAfter(bool hasFailed)
    {
        sayToAll(hasFailed ? 1 : 0);
        const auto first = std::find(heard_.begin(), heard_.end(), 1);
        return first != heard_.end() ? static_cast<int>(first - heard_.begin()) : -1;
    }
    //! What one rank has comes to all, byte by byte: without any memory.
    template<class T>
    void tellFrom(int rank, T* message)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        char* const bytes = reinterpret_cast<char*>(message);
        for (size_t k = 0; k < sizeof(T); k++)
        {
            sayToAll(bytes[k]);
            bytes[k] = heard_[rank];
        }
    }
    //!@}

    //! Messages to other ranks, and bytes in them.
    long long messages() const { return messages_; }
    long long bytes() const { return bytes_; }

private:
    //! What others say is in heard_ then.
    void sayToAll(char byte)
    {
        std::fill(said_.begin(), said_.end(), byte);
        communicator_->exchange(said_.data(), one_.data(), heard_.data(), one_.data());
    }
    std::vector<size_t> offsetsOfOne() const
    {
        std::vector<size_t> offsets(size() + 1);
        std::iota(offsets.begin(), offsets.end(), size_t(0));
        return offsets;
    }
    static void inBytes(const std::vector<size_t>& offsets,
                        size_t element,
                        std::vector<size_t>* bytes)
    {
        bytes->resize(offsets.size());
        for (size_t r = 0; r < offsets.size(); r++)
        {
            (*bytes)[r] = element * offsets[r];
        }
    }

    Communicator* communicator_;
    long long messages_ = 0, bytes_ = 0;
    bool isWatched_ = false, isSilent_ = false;
    // with room from the start: who has failed may have no memory
    std::vector<size_t> one_;
    std::vector<char> said_, heard_;
    std::vector<size_t> sendBytes_, receiveBytes_;
};

} // namespace farfield

#endif
