/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Calls of a batch that the GPU may not have done yet.
 */
#ifndef FARFIELD_KERNELS_BATCHES_BATCH_RECORDS_H
#define FARFIELD_KERNELS_BATCHES_BATCH_RECORDS_H

#include <array>
#include <optional>

#include "batches/device_plan.h"
#include "runtime/device.h"

namespace farfield
{

//! What is kept of a call until it is done.
struct BatchRecord
{
    PinnedBuffer<BatchStatus> status;
    PinnedBuffer<int> offsets; //!< that are copied to the GPU
    double tightening = 1;
    bool isTangent    = false;
    bool isPending    = false;
    std::optional<Event> done; //!< of the device of its first call
};

//! Records of the last calls. The host waits for a call only where it is that many calls ahead.
class BatchRecords
{
public:
    //! The record of a new call. Waits if that of an old one is pending: see settle().
    template<class Settle>
    BatchRecord* next(const Settle& settle)
    {
        last_               = (last_ + 1) % records_.size();
        BatchRecord& record = records_[last_];
        if (record.isPending)
        {
            record.done->synchronize();
            settleOne(&record, settle);
        }
        return &record;
    }
    /*! \brief Calls settle(record) for calls that are done, from the oldest one on.
     *  \param[in] waits  whether for all calls, which are waited for */
    template<class Settle>
    void settle(bool waits, const Settle& settle)
    {
        for (size_t k = 1; k <= records_.size(); k++)
        {
            BatchRecord& record = records_[(last_ + k) % records_.size()];
            if (!record.isPending)
            {
                continue;
            }
            if (!waits && !record.done->isReached())
            {
                return;
            }
            record.done->synchronize();
            settleOne(&record, settle);
        }
    }

private:
    template<class Settle>
    static void settleOne(BatchRecord* record, const Settle& settle)
    {
        record->isPending = false; // whatever is thrown
        settle(*record);
    }

    std::array<BatchRecord, 4> records_;
    size_t last_ = 0;
};

//! \throws Error  InvalidArgument: a call that has not waited is refused
void throwRefusal(const BatchStatus& status);

} // namespace farfield

#endif
