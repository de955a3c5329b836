/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Buffers of fields that pass between ranks, on the device.
 */
#ifndef FARFIELD_KERNELS_RANKS_PACKED_FIELDS_H
#define FARFIELD_KERNELS_RANKS_PACKED_FIELDS_H

#include <vector>

#include "farfield/farfield_parallel.h"
#include "ranks/field_blocks.h"
#include "runtime/device.h"

namespace farfield
{

template<class T>
class PackedFields
{
public:
    //! Makes room, at the same address until the next call; waits.
    void plan(const FieldBlocks& blocks, cudaStream_t stream);

    /*! \brief Takes all blocks out of fields.
     *  \param[in]     fields  [all fields][stride]
     *  \param[in,out] number  if not null, [1] device memory: goes behind the fields of every block,
     *                         and is cleared; T is real then */
    void pack(const T* fields, int stride, float* number, cudaStream_t stream);
    //! Puts all blocks into fields; the other elements of these stay.
    void unpack(T* fields, int stride, cudaStream_t stream) const;
    //! All ranks together: the blocks for others go to these, whose blocks come.
    void exchange(PackedFields* received, DeviceCommunicator* communicator, cudaStream_t stream)
    {
        communicator->exchange(buffer_.data(),
                               stretches_.data(),
                               received->buffer_.data(),
                               received->stretches_.data(),
                               stream);
    }

    const T* data() const { return buffer_.data(); }
    //! [blocks] device memory
    const FieldBlock* blocks() const { return blocks_.data(); }
    int count() const { return static_cast<int>(blocks_.size()); }
    //! What exchange() sends to others, if nothing is in the stretch for this rank.
    long long messages() const;
    long long bytes() const;
    //! Bytes of the largest block for or from a rank.
    size_t largest() const;

private:
    DeviceBuffer<FieldBlock> blocks_;
    DeviceBuffer<int> places_;
    DeviceBuffer<T> buffer_;
    std::vector<Stretch> stretches_; //!< [ranks]
    int mostFields_ = 0, mostPlaces_ = 0;
};

} // namespace farfield

#endif
