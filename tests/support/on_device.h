/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Arrays, a stream and graphs on a device, for callers of farfield_cuda.h.
 */
#ifndef FARFIELD_TESTS_ON_DEVICE_H
#define FARFIELD_TESTS_ON_DEVICE_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

namespace farfield
{

//! Throws if a call of the CUDA runtime failed.
inline void checkCuda(cudaError_t status, const char* action)
{
    if (status != cudaSuccess)
    {
        (void)cudaGetLastError();
        throw std::runtime_error(std::string(action) + " failed: " + cudaGetErrorString(status));
    }
}

//! An array in device memory.
template<class T>
class DeviceArray
{
public:
    explicit DeviceArray(size_t size) : size_(size)
    {
        void* memory = nullptr;
        checkCuda(cudaMalloc(&memory, std::max<size_t>(size, 1) * sizeof(T)), "allocating memory");
        data_ = static_cast<T*>(memory);
    }
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { put(values); }
    ~DeviceArray() { cudaFree(data_); }
    DeviceArray(const DeviceArray&)            = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    /*! \brief Copies from the host, as many values as there are.
     *
     *  cudaMemcpy() returns as soon as it has read pageable memory: whoever reads the copy in
     *  another stream would meet a part of it. */
    void put(const std::vector<T>& values)
    {
        checkCuda(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
                  "copying to the GPU");
        checkCuda(cudaStreamSynchronize(nullptr), "copying to the GPU");
    }
    std::vector<T> get() const
    {
        std::vector<T> values(size_);
        checkCuda(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
                  "copying from the GPU");
        return values;
    }
    T* data() { return data_; }

private:
    T* data_ = nullptr;
    size_t size_;
};

//! Holds back what a stream is given from here on until it is opened, or for twenty seconds.
class Gate
{
public:
    explicit Gate(cudaStream_t stream) : stream_(stream)
    {
        checkCuda(cudaLaunchHostFunc(stream, &Gate::hold, this), "holding back a stream");
    }
    ~Gate()
    {
        open();
        cudaStreamSynchronize(stream_);
    }
    Gate(const Gate&)            = delete;
    Gate& operator=(const Gate&) = delete;
    //! \returns whether the stream was held back until now
    bool open() { return !isOpen_.exchange(true); }

private:
    static void CUDART_CB hold(void* gate)
    {
        std::atomic<bool>& isOpen = static_cast<Gate*>(gate)->isOpen_;
        for (int k = 0; k < 20000 && !isOpen; ++k)
        {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        isOpen = true;
    }

    cudaStream_t stream_;
    std::atomic<bool> isOpen_{ false };
};

//! A stream and two events in it.
class Clock
{
public:
    Clock()
    {
        checkCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
        checkCuda(cudaEventCreate(&begin_), "creating an event");
        checkCuda(cudaEventCreate(&end_), "creating an event");
    }
    ~Clock()
    {
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
        cudaStreamDestroy(stream_);
    }
    Clock(const Clock&)            = delete;
    Clock& operator=(const Clock&) = delete;
    cudaStream_t stream() const { return stream_; }
    //! Seconds on the device for what work puts into the stream.
    template<class Work>
    double seconds(const Work& work)
    {
        checkCuda(cudaEventRecord(begin_, stream_), "recording an event");
        work();
        checkCuda(cudaEventRecord(end_, stream_), "recording an event");
        checkCuda(cudaEventSynchronize(end_), "waiting for the GPU");
        float milliseconds = 0;
        checkCuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading an event");
        return 1e-3 * milliseconds;
    }

private:
    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

//! What a stream was given to do, captured, to be replayed with one launch.
class Graph
{
public:
    template<class Work>
    Graph(cudaStream_t stream, const Work& work)
    {
        checkCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                  "beginning a capture");
        cudaGraph_t graph = nullptr;
        try
        {
            work();
        }
        catch (...)
        {
            cudaStreamEndCapture(stream, &graph);
            cudaGraphDestroy(graph);
            (void)cudaGetLastError();
            throw;
        }
        checkCuda(cudaStreamEndCapture(stream, &graph), "ending a capture");
        // kernels keep the priorities of their streams, as in a graph of GROMACS
        const cudaError_t status = cudaGraphInstantiateWithFlags(
                &executable_, graph, cudaGraphInstantiateFlagUseNodePriority);
        cudaGraphDestroy(graph);
        checkCuda(status, "instantiating a graph");
    }
    ~Graph() { cudaGraphExecDestroy(executable_); }
    Graph(const Graph&)            = delete;
    Graph& operator=(const Graph&) = delete;
    void launch(cudaStream_t stream) const
    {
        checkCuda(cudaGraphLaunch(executable_, stream), "launching a graph");
    }

private:
    cudaGraphExec_t executable_ = nullptr;
};

} // namespace farfield

#endif
