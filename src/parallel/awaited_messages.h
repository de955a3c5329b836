/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Messages between devices, and how many of an evaluation are still to come.
 */
#ifndef FARFIELD_PARALLEL_AWAITED_MESSAGES_H
#define FARFIELD_PARALLEL_AWAITED_MESSAGES_H

#include <algorithm>

#include "farfield/farfield_parallel.h"

namespace farfield
{

/*! \brief Passes exchanges on, and counts those that devices of other ranks wait for.
 *
 *  An exchange that throws counts as not begun: it may be repeated. */
class AwaitedMessages final : public DeviceCommunicator
{
public:
    explicit AwaitedMessages(DeviceCommunicator* passOn) : passOn_(*passOn) {}

    //! From here on others wait for so many exchanges of this rank.
    void expect(int exchanges) { awaited_ = exchanges; }
    //! How many of them are missing.
    int awaited() const { return awaited_; }

    void exchange(const void* send,
                  const Stretch* sent,
                  void* receive,
                  const Stretch* received,
                  void* stream) override
    {
        passOn_.exchange(send, sent, receive, received, stream);
        awaited_ = std::max(awaited_ - 1, 0);
    }
    bool mayBeCaptured() const override { return passOn_.mayBeCaptured(); }
    void reserve(size_t bytes) override { passOn_.reserve(bytes); }
    MessageCost cost() const override { return passOn_.cost(); }

private:
    DeviceCommunicator& passOn_;
    int awaited_ = 0;
};

} // namespace farfield

#endif
