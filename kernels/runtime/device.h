/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory, streams and events of the CUDA runtime as objects; its errors as Error.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_DEVICE_H
#define FARFIELD_KERNELS_RUNTIME_DEVICE_H

#include <cstddef>

#include <algorithm>
#include <string>
#include <utility>

#include <cuda_runtime.h>

#include "farfield/farfield.h"

namespace farfield
{

//! Throws Error if a call of the CUDA runtime failed; action says what was attempted.
inline void check(cudaError_t status, const char* action)
{
    if (status == cudaSuccess)
    {
        return;
    }
    (void)cudaGetLastError(); // an error of one call is not one of the next
    const std::string text =
            std::string(action) + " failed on the GPU: " + cudaGetErrorString(status);
    if (status == cudaErrorMemoryAllocation)
    {
        throw Error(ErrorCode::OutOfMemory,
                    text
                            + ". Larger cells or a lower order need less memory; the device 'cpu' "
                              "needs none.");
    }
    if (status == cudaErrorNoKernelImageForDevice)
    {
        throw Error(
                ErrorCode::DeviceFailure,
                text
                        + ". libfarfield was not compiled for the architecture of this GPU: set "
                          "CMAKE_CUDA_ARCHITECTURES, or use the device 'cpu'.");
    }
    throw Error(ErrorCode::DeviceFailure, text + ".");
}

//! Throws Error if the last kernel could not be launched.
inline void checkLaunch(const char* kernel)
{
    check(cudaGetLastError(), kernel);
}

//! Puts a copy into a stream, between any two of host and device memory.
template<class T>
void copyAsync(T* to, const T* from, size_t count, cudaStream_t stream, const char* action)
{
    if (count > 0)
    {
        check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream), action);
    }
}

//! Whether an array is in the memory of a device, or of any.
inline bool isOnDevice(const void* array, int device = -1)
{
    cudaPointerAttributes attributes = {};
    check(cudaPointerGetAttributes(&attributes, array), "looking at an array");
    return (attributes.type == cudaMemoryTypeDevice && (device < 0 || attributes.device == device))
           || attributes.type == cudaMemoryTypeManaged;
}

//! Whether a stream is being recorded into a graph, where nothing may wait.
inline bool isCapturing(cudaStream_t stream)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &capture), "looking at a stream");
    return capture != cudaStreamCaptureStatusNone;
}

//! A property of the current device.
inline int deviceAttribute(cudaDeviceAttr attribute)
{
    int device = 0, value = 0;
    check(cudaGetDevice(&device), "finding the device");
    check(cudaDeviceGetAttribute(&value, attribute, device), "reading a property of the device");
    return value;
}

//! Blocks of a launch that covers count items.
inline int blocksFor(long long count, int perBlock)
{
    return static_cast<int>((count + perBlock - 1) / perBlock);
}

/*! \brief Elements in device memory; the size is what was last asked for, the room only grows.
 *
 *  What has become too small is kept until the room grows once more: a graph that was recorded
 *  before may still be launched. */
template<class T>
class DeviceBuffer
{
public:
    DeviceBuffer() = default;
    ~DeviceBuffer()
    {
        cudaFree(data_);
        cudaFree(outgrown_);
    }
    DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
    DeviceBuffer(const DeviceBuffer&)            = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept
    {
        swap(other);
        return *this;
    }
    //! Makes room; the contents are lost if the room has to grow. Where there is no memory for it,
    //! the buffer is what it was.
    void resize(size_t size)
    {
        if (size > room_)
        {
            check(cudaFree(std::exchange(outgrown_, nullptr)), "freeing memory");
            T* larger = nullptr;
            check(cudaMalloc(&larger, size * sizeof(T)), "allocating memory");
            outgrown_ = std::exchange(data_, larger);
            room_     = size;
        }
        size_ = size;
    }
    //! Resizes and copies from host or device memory; returns when that may be reused.
    void upload(const T* from, size_t size, cudaStream_t stream)
    {
        resize(size);
        copyAsync(data_, from, size, stream, "copying to the GPU");
        check(cudaStreamSynchronize(stream), "copying to the GPU");
    }
    //! Copies to the host and waits.
    void download(T* to, size_t size, cudaStream_t stream) const
    {
        copyAsync(to, data_, size, stream, "copying from the GPU");
        check(cudaStreamSynchronize(stream), "copying from the GPU");
    }
    //! Sets all bytes to zero.
    void clear(cudaStream_t stream)
    {
        if (size_ > 0)
        {
            check(cudaMemsetAsync(data_, 0, size_ * sizeof(T), stream), "clearing memory");
        }
    }
    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    //! The size up to which resize() keeps what is there.
    size_t room() const { return room_; }

private:
    void swap(DeviceBuffer& other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(outgrown_, other.outgrown_);
        std::swap(size_, other.size_);
        std::swap(room_, other.room_);
    }
    T* data_     = nullptr;
    T* outgrown_ = nullptr; //!< the memory before the room last grew
    size_t size_ = 0;
    size_t room_ = 0;
};

//! Page-locked host memory, for copies that overlap.
template<class T>
class PinnedBuffer
{
public:
    PinnedBuffer() = default;
    ~PinnedBuffer() { cudaFreeHost(data_); }
    PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept
    {
        swap(other);
        return *this;
    }
    //! Makes room; the contents are lost if it has to grow.
    void resize(size_t size)
    {
        if (size > size_)
        {
            // what grows once by a little will again, and page-locked memory takes milliseconds
            size      = std::max(size, size_ + size_ / 16);
            T* larger = nullptr;
            check(cudaMallocHost(&larger, size * sizeof(T)), "allocating page-locked memory");
            (void)cudaFreeHost(std::exchange(data_, larger));
            size_ = size;
        }
    }
    T* data() { return data_; }
    const T* data() const { return data_; }

private:
    void swap(PinnedBuffer& other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    T* data_     = nullptr;
    size_t size_ = 0;
};

//! Which kernels are scheduled first where several are ready.
enum class Priority
{
    Lowest,
    Third, //!< before the middle, which GROMACS gives short-range forces
    Second,
    Highest
};

//! A stream that does not wait for the default stream.
class Stream
{
public:
    explicit Stream(Priority priority = Priority::Lowest)
    {
        int lowest = 0, highest = 0; // numbers fall
        check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "reading stream priorities");
        const int below = static_cast<int>(Priority::Highest) - static_cast<int>(priority);
        const int number =
                priority == Priority::Lowest ? lowest : std::min(highest + below, lowest);
        check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, number),
              "creating a stream");
    }
    ~Stream() { cudaStreamDestroy(stream_); }
    Stream(const Stream&)            = delete;
    Stream& operator=(const Stream&) = delete;
    operator cudaStream_t() const { return stream_; }
    void synchronize() const { check(cudaStreamSynchronize(stream_), "waiting for the kernels"); }

private:
    cudaStream_t stream_ = nullptr;
};

//! A point in a stream.
class Event
{
public:
    explicit Event(bool timing = false)
    {
        check(cudaEventCreateWithFlags(&event_, timing ? cudaEventDefault : cudaEventDisableTiming),
              "creating an event");
    }
    ~Event() { cudaEventDestroy(event_); }
    Event(const Event&)            = delete;
    Event& operator=(const Event&) = delete;
    void record(cudaStream_t stream)
    {
        check(cudaEventRecord(event_, stream), "recording an event");
    }
    //! What is put into the stream from now on waits for the recorded point.
    void holdBack(cudaStream_t stream) const
    {
        check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
    }
    //! The host waits for the recorded point.
    void synchronize() const { check(cudaEventSynchronize(event_), "waiting for an event"); }
    bool isReached() const
    {
        const cudaError_t state = cudaEventQuery(event_);
        check(state == cudaErrorNotReady ? cudaSuccess : state, "looking at an event");
        return state == cudaSuccess;
    }
    //! Time to a later event, both recorded with timing; waits for it.
    double secondsUntil(const Event& later) const
    {
        float milliseconds = 0;
        check(cudaEventSynchronize(later), "waiting for an event");
        check(cudaEventElapsedTime(&milliseconds, event_, later), "reading a time");
        return 1e-3 * static_cast<double>(milliseconds);
    }
    operator cudaEvent_t() const { return event_; }

private:
    cudaEvent_t event_ = nullptr;
};

} // namespace farfield

#endif
