/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Where fields lie in buffers of messages. For host and device.
 */
#ifndef FARFIELD_KERNELS_RANKS_FIELD_BLOCKS_H
#define FARFIELD_KERNELS_RANKS_FIELD_BLOCKS_H

#include <algorithm>
#include <vector>

#include "base/host_device.h"
#include "farfield/farfield_parallel.h"
#include "parallel/share.h"

namespace farfield
{

//! Some fields at some places: a message.
struct FieldBlock
{
    int first;      //!< field
    int fields;     //!< how many
    int firstPlace; //!< where its places begin in FieldBlocks::places
    int places;     //!< of each field
    size_t begin;   //!< in the buffer, elements

    //! Where in the buffer an element is, of the fields and places of this block.
    FARFIELD_HD size_t at(int field, int place) const
    {
        return begin + static_cast<size_t>(field) * places + place;
    }
    //! Where the fields end, and what goes along begins.
    FARFIELD_HD size_t end() const { return at(fields, 0); }
};

//! The blocks of a buffer, which begin where 16 bytes can be loaded at once.
class FieldBlocks
{
public:
    /*! \param[in] elementSize  bytes
     *  \param[in] behind       elements that go along behind the fields of each block */
    FieldBlocks(int ranks, size_t elementSize, size_t behind = 0) :
        elementSize_(elementSize), behind_(behind), stretches_(ranks)
    {
    }
    //! Adds a list of places in a field. \returns where it begins
    int addPlaces(const std::vector<int>& list)
    {
        places_.insert(places_.end(), list.begin(), list.end());
        return static_cast<int>(places_.size() - list.size());
    }
    //! Adds a block of the fields [first, last). \param[in] firstPlace, places  of addPlaces()
    void add(int first, int last, int firstPlace, size_t places)
    {
        const size_t unit = std::max<size_t>(1, 16 / elementSize_);
        size_             = (size_ + unit - 1) / unit * unit;
        blocks_.push_back({ first, last - first, firstPlace, static_cast<int>(places), size_ });
        size_       = blocks_.back().end() + behind_;
        mostFields_ = std::max(mostFields_, last - first);
        mostPlaces_ = std::max(mostPlaces_, static_cast<int>(places));
    }
    //! The last block is for a rank, or from it.
    void passes(int rank)
    {
        const FieldBlock& block = blocks_.back();
        stretches_[rank]        = { block.begin * elementSize_,
                                    (block.end() + behind_ - block.begin) * elementSize_ };
    }

    const std::vector<FieldBlock>& blocks() const { return blocks_; }
    const std::vector<int>& places() const { return places_; }
    //! Elements of the buffer.
    size_t size() const { return size_; }
    int mostFields() const { return mostFields_; }
    int mostPlaces() const { return mostPlaces_; }
    //! [ranks] The messages in the buffer.
    const std::vector<Stretch>& stretches() const { return stretches_; }

private:
    size_t elementSize_, behind_, size_ = 0;
    std::vector<FieldBlock> blocks_;
    std::vector<int> places_;
    std::vector<Stretch> stretches_;
    int mostFields_ = 0, mostPlaces_ = 0;
};

/*! \name What passes between this rank and others, where fields are dealt out
 *
 *  Each to each: places that one has of fields that another has. In one direction fieldsOfOthers() is
 *  sent and placesOfOthers() received, in the other one the reverse.
 *  \param[in] own     share of the fields that this rank has: one of as many as there are ranks, or the
 *                     whole on all ranks, which then send the same to each
 *  \param[in] me      this rank
 *  \param[in] count   of all fields
 *  \param[in] places  [ranks] those that each has
 *  \param[in] elementSize, behind  of FieldBlocks */
//!@{
//! Of fields of others the places of ours.
FieldBlocks fieldsOfOthers(const Share& own,
                           int me,
                           int count,
                           const std::vector<std::vector<int>>& places,
                           size_t elementSize,
                           size_t behind = 0);
//! Of our fields the places of others.
FieldBlocks placesOfOthers(const Share& own,
                           int me,
                           int count,
                           const std::vector<std::vector<int>>& places,
                           size_t elementSize,
                           size_t behind = 0);
//!@}

} // namespace farfield

#endif
