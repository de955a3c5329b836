/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Device time of repeated work: medians and quartiles of many samples.
 */
#ifndef FARFIELD_BENCH_TIMING_H
#define FARFIELD_BENCH_TIMING_H

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <nlohmann/json.hpp>

namespace farfield
{
namespace bench
{

//! Throws if a call of the CUDA runtime failed.
inline void check(cudaError_t status, const char* action)
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
    explicit DeviceArray(size_t size)
    {
        void* memory = nullptr;
        check(cudaMalloc(&memory, std::max<size_t>(size, 1) * sizeof(T)), "allocating memory");
        data_ = static_cast<T*>(memory);
    }
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size())
    {
        check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
              "copying to the GPU");
    }
    ~DeviceArray() { cudaFree(data_); }
    DeviceArray(const DeviceArray&)            = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    T* data() { return data_; }

private:
    T* data_ = nullptr;
};

//! A stream and two events in it.
class Clock
{
public:
    Clock()
    {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
        check(cudaEventCreate(&begin_), "creating an event");
        check(cudaEventCreate(&end_), "creating an event");
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
        check(cudaEventRecord(begin_, stream_), "recording an event");
        work();
        check(cudaEventRecord(end_, stream_), "recording an event");
        check(cudaEventSynchronize(end_), "waiting for the GPU");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading an event");
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
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
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
        check(cudaStreamEndCapture(stream, &graph), "ending a capture");
        const cudaError_t status = cudaGraphInstantiateWithFlags(&executable_, graph, 0);
        cudaGraphDestroy(graph);
        check(status, "instantiating a graph");
    }
    ~Graph() { cudaGraphExecDestroy(executable_); }
    Graph(const Graph&)            = delete;
    Graph& operator=(const Graph&) = delete;
    void launch(cudaStream_t stream) const
    {
        check(cudaGraphLaunch(executable_, stream), "launching a graph");
    }

private:
    cudaGraphExec_t executable_ = nullptr;
};

//! Median and quartiles.
inline nlohmann::json statistics(std::vector<double> samples)
{
    std::sort(samples.begin(), samples.end());
    const auto at = [&](double fraction)
    {
        const double place = fraction * static_cast<double>(samples.size() - 1);
        const size_t k     = static_cast<size_t>(place);
        const size_t next  = std::min(k + 1, samples.size() - 1);
        return samples[k] + (place - static_cast<double>(k)) * (samples[next] - samples[k]);
    };
    if (samples.empty())
    {
        return nullptr;
    }
    return { { "median", at(0.5) },
             { "lower_quartile", at(0.25) },
             { "upper_quartile", at(0.75) },
             { "minimum", samples.front() },
             { "samples", samples.size() } };
}

/*! \brief Seconds of one piece of work on the device, from several samples.
 *
 *  After a warm-up every sample repeats the work until it takes about a millisecond, so that
 *  neither the resolution of events nor the first launch counts. */
template<class Work>
nlohmann::json measure(Clock* clock, int samples, const Work& work)
{
    for (int i = 0; i < 3; i++)
    {
        work();
    }
    const double once = clock->seconds(work);
    const int repeats =
            static_cast<int>(std::clamp(std::ceil(1e-3 / std::max(once, 1e-7)), 1.0, 100.0));
    std::vector<double> seconds;
    for (int i = 0; i < samples; i++)
    {
        seconds.push_back(clock->seconds(
                                  [&]
                                  {
                                      for (int k = 0; k < repeats; k++)
                                      {
                                          work();
                                      }
                                  })
                          / repeats);
    }
    return statistics(seconds);
}

} // namespace bench
} // namespace farfield

#endif
