/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over all threads of a launch that are the same in every run.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_ORDERED_SUMS_H
#define FARFIELD_KERNELS_RUNTIME_ORDERED_SUMS_H

#include "runtime/device.h"

namespace farfield
{

//! Scratch of launches that add up energies; may be used by one launch at a time.
class OrderedSums
{
public:
    //! Launches that use it have at most so many blocks.
    static constexpr int c_maxBlocks = 2048;
    //! Sums per launch.
    static constexpr int c_maxValues = 8;

    //! Makes room; not while a graph is captured.
    void resize(cudaStream_t stream)
    {
        partial_.resize(static_cast<size_t>(c_maxBlocks) * c_maxValues);
        done_.resize(1);
        done_.clear(stream);
    }
    struct View
    {
        double* partial;    //!< [values][blocks]
        unsigned int* done; //!< [1] blocks that have finished; zero between launches
    };
    View view() { return { partial_.data(), done_.data() }; }

private:
    DeviceBuffer<double> partial_;
    DeviceBuffer<unsigned int> done_;
};

#if defined(__CUDACC__)

//! Sum over a block in a fixed order; the result is valid in thread 0. All threads take part.
__device__ __forceinline__ double blockSum(double value)
{
    __shared__ double ofWarp[32];
    for (int offset = 16; offset > 0; offset /= 2)
    {
        value += __shfl_xor_sync(0xffffffffU, value, offset);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
    {
        ofWarp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = 0;
    for (unsigned int warp = 0; threadIdx.x == 0 && warp < blockDim.x / 32; warp++)
    {
        value += ofWarp[warp];
    }
    return value;
}

//! True in all threads of the block that is the last of so many to come here; what the others have
//! written before is visible to it. \param[in,out] done  zero before the first and after the last
__device__ __forceinline__ bool lastBlock(unsigned int* done, unsigned int blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
    {
        __threadfence(); // the count comes after what all threads of the block wrote
        last = atomicInc(done, blocks - 1) == blocks - 1;
    }
    __syncthreads();
    __threadfence();
    return last;
}

/*! \brief Adds the sums over all threads of the launch to *to[0..Values).
 *
 *  Blocks are multiples of a warp; all threads of all blocks take part, once. */
template<int Values>
__device__ void addInOrder(const double* own, const OrderedSums::View& sums, double* const* to)
{
    for (int k = 0; k < Values; k++)
    {
        const double total = blockSum(own[k]);
        if (threadIdx.x == 0)
        {
            sums.partial[k * gridDim.x + blockIdx.x] = total;
        }
    }
    if (!lastBlock(sums.done, gridDim.x))
    {
        return;
    }
    for (int k = 0; k < Values; k++)
    {
        double part = 0;
        for (unsigned int block = threadIdx.x; block < gridDim.x; block += blockDim.x)
        {
            part += __ldcg(sums.partial + k * gridDim.x + block);
        }
        part = blockSum(part);
        if (threadIdx.x == 0)
        {
            *to[k] += part;
        }
    }
}

#endif

} // namespace farfield

#endif
