/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks/packed_fields.h"

#include <algorithm>
#include <type_traits>

#include "m2l_periodic/index.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;

//! Copies elements of fields into blocks; a row of thread blocks for each field of each of them.
template<class T>
__global__ void __launch_bounds__(c_threads) packFields(const FieldBlock* __restrict__ blocks,
                                                        const int* __restrict__ places,
                                                        const T* __restrict__ fields,
                                                        int stride,
                                                        float* number,
                                                        T* __restrict__ buffer)
{
    const FieldBlock block = blocks[blockIdx.z];
    const int place        = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const int field        = static_cast<int>(blockIdx.y);
    if (field < block.fields && place < block.places)
    {
        buffer[block.at(field, place)] = fields[static_cast<size_t>(block.first + field) * stride
                                                + places[block.firstPlace + place]];
    }
    if constexpr (std::is_floating_point_v<T>)
    {
        if (number != nullptr && place == 0 && field == 0 && blockIdx.z == 0)
        {
            for (unsigned int k = 0; k < gridDim.z; k++)
            {
                buffer[blocks[k].end()] = static_cast<T>(*number);
            }
            *number = 0;
        }
    }
}

//! Copies them back.
template<class T>
__global__ void __launch_bounds__(c_threads) unpackFields(const FieldBlock* __restrict__ blocks,
                                                          const int* __restrict__ places,
                                                          const T* __restrict__ buffer,
                                                          T* __restrict__ fields,
                                                          int stride)
{
    const FieldBlock block = blocks[blockIdx.z];
    const int place        = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    const int field        = static_cast<int>(blockIdx.y);
    if (field < block.fields && place < block.places)
    {
        fields[static_cast<size_t>(block.first + field) * stride
               + places[block.firstPlace + place]] = buffer[block.at(field, place)];
    }
}

dim3 gridOf(int places, int fields, int blocks)
{
    return { static_cast<unsigned>(std::max(1, blocksFor(places, c_threads))),
             static_cast<unsigned>(std::max(1, fields)),
             static_cast<unsigned>(blocks) };
}

} // namespace

template<class T>
void PackedFields<T>::plan(const FieldBlocks& blocks, cudaStream_t stream)
{
    blocks_.upload(blocks.blocks().data(), blocks.blocks().size(), stream);
    places_.upload(blocks.places().data(), blocks.places().size(), stream);
    buffer_.resize(blocks.size());
    stretches_  = blocks.stretches();
    mostFields_ = blocks.mostFields();
    mostPlaces_ = blocks.mostPlaces();
}

template<class T>
void PackedFields<T>::pack(const T* fields, int stride, float* number, cudaStream_t stream)
{
    if (count() > 0)
    {
        packFields<T><<<gridOf(mostPlaces_, mostFields_, count()), c_threads, 0, stream>>>(
                blocks_.data(), places_.data(), fields, stride, number, buffer_.data());
        checkLaunch("packing fields");
    }
}

template<class T>
void PackedFields<T>::unpack(T* fields, int stride, cudaStream_t stream) const
{
    if (count() > 0)
    {
        unpackFields<T><<<gridOf(mostPlaces_, mostFields_, count()), c_threads, 0, stream>>>(
                blocks_.data(), places_.data(), buffer_.data(), fields, stride);
        checkLaunch("unpacking fields");
    }
}

template<class T>
long long PackedFields<T>::messages() const
{
    return std::count_if(stretches_.begin(),
                         stretches_.end(),
                         [](const Stretch& stretch) { return stretch.size > 0; });
}

template<class T>
long long PackedFields<T>::bytes() const
{
    long long sum = 0;
    for (const Stretch& stretch : stretches_)
    {
        sum += static_cast<long long>(stretch.size);
    }
    return sum;
}

template<class T>
size_t PackedFields<T>::largest() const
{
    size_t most = 0;
    for (const Stretch& stretch : stretches_)
    {
        most = std::max(most, stretch.size);
    }
    return most;
}

template class PackedFields<float>;
template class PackedFields<double>;
template class PackedFields<Complex<float>>;
template class PackedFields<Complex<double>>;

} // namespace farfield
