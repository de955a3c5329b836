/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Where cells of a level stand, on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_CELL_HASH_ON_DEVICE_H
#define FARFIELD_KERNELS_PAIR_KERNELS_CELL_HASH_ON_DEVICE_H

#include <cstdint>

#include "base/host_device.h"
#include "runtime/device.h"

namespace farfield
{

//! Cells of a level of a box.
struct CellsOfBox
{
    int counts[3];
    bool isPeriodic;
};

//! A table from keys to numbers, by open addressing. Plain data.
struct CellHashView
{
    static constexpr std::uint64_t c_free = ~std::uint64_t(0);

    unsigned long long* keys;
    int* places;
    unsigned int mask; //!< size - 1

    //! Multiplicative hashing: Knuth, The Art of Computer Programming, vol. 3, 6.4.
    FARFIELD_HD unsigned int begin(std::uint64_t key) const
    {
        return static_cast<unsigned int>((key * 0x9e3779b97f4a7c15ULL) >> 32) & mask;
    }
#if defined(__CUDACC__)
    //! The number of a key, -1 if it has none.
    __device__ int find(std::uint64_t key) const
    {
        for (unsigned int at = begin(key);; at = (at + 1) & mask)
        {
            const unsigned long long found = keys[at];
            if (found == key || found == c_free)
            {
                return found == key ? places[at] : -1;
            }
        }
    }
#endif
};

class CellHashOnDevice
{
public:
    //! Takes keys, of which no two are the same, with their places.
    void set(const std::uint64_t* keys, int count, cudaStream_t stream);
    CellHashView view() { return { keys_.data(), places_.data(), mask_ }; }

private:
    DeviceBuffer<unsigned long long> keys_;
    DeviceBuffer<int> places_;
    unsigned int mask_ = 0;
};

} // namespace farfield

#endif
