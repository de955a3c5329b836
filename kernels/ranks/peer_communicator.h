/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Messages between GPUs of one process, by kernels that write into each other's memory.
 */
#ifndef FARFIELD_KERNELS_RANKS_PEER_COMMUNICATOR_H
#define FARFIELD_KERNELS_RANKS_PEER_COMMUNICATOR_H

#include <vector>

#include "farfield/farfield_parallel.h"
#include "parallel/ranks.h"
#include "runtime/device.h"

namespace farfield
{

/*! \brief Every rank has a mailbox with two slots for each other one, into which that one writes.
 *
 *  Neither hosts nor copy engines take part, so that an exchange takes little longer than its bytes
 *  need, and may be captured. In every exchange each rank sends to all and then waits for all. So one
 *  that sends its next message but one has received the last one of the other, who sent it after
 *  having emptied the slot that is now written to. */
class PeerCommunicator final : public DeviceCommunicator
{
public:
    /*! \brief Lets the GPUs that are current on the ranks reach each other's memory. All ranks together.
     *  \returns whether all do: ranks are threads of one process, with a GPU each */
    static bool connect(Communicator* host);
    //! For the current device, after connect(). All ranks together.
    explicit PeerCommunicator(Communicator* host);

    void reserve(size_t bytes) override;
    void exchange(const void* send,
                  const Stretch* sent,
                  void* receive,
                  const Stretch* received,
                  void* stream) override;
    bool mayBeCaptured() const override { return true; }

    //! More ranks than have GPUs in one host.
    static constexpr int c_mostRanks = 16;

private:
    //! What a rank tells the others.
    struct Mailbox
    {
        char* slots;       //!< [ranks][2][room] bytes
        unsigned* arrived; //!< [ranks] messages that have arrived from each
    };

    //! Has every rank do its part. \throws Error  on all ranks, where one has failed, with its code
    template<class Work>
    void onAll(const Work& work);

    Ranks ranks_;
    size_t room_ = 0; //!< bytes of a slot
    DeviceBuffer<char> slots_;
    DeviceBuffer<unsigned> arrived_;
    DeviceBuffer<unsigned> number_; //!< [1] of exchanges that have ended
    //! [ranks + 1] Blocks of those that send to each, then of the one that receives.
    DeviceBuffer<unsigned> blocksDone_;
    std::vector<Mailbox> mailboxes_, ownMailbox_; //!< [ranks] of each; ours, for each
    std::vector<size_t> bytes_, ownBytes_;        //!< likewise, what reserve() is to reserve
};

} // namespace farfield

#endif
