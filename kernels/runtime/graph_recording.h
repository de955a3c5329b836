/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Work of a stream, recorded once and launched as often as wanted.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_GRAPH_RECORDING_H
#define FARFIELD_KERNELS_RUNTIME_GRAPH_RECORDING_H

#include <utility>

#include "runtime/device.h"

namespace farfield
{

//! A CUDA graph of what is put into a stream between construction and finish().
class GraphRecording
{
public:
    explicit GraphRecording(cudaStream_t stream) : stream_(stream)
    {
        check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "recording a graph");
    }
    ~GraphRecording()
    {
        if (graph_ == nullptr)
        {
            // something was thrown while recording; nothing is to be said of it here
            (void)cudaStreamEndCapture(stream_, &graph_);
            (void)cudaGetLastError();
        }
        if (run_ != nullptr)
        {
            cudaGraphExecDestroy(run_);
        }
        if (graph_ != nullptr)
        {
            cudaGraphDestroy(graph_);
        }
    }
    GraphRecording(const GraphRecording&)            = delete;
    GraphRecording& operator=(const GraphRecording&) = delete;

    /*! \brief Ends the recording.
     *  \param[in] former  an earlier one, or null: if it has the same nodes it is changed and taken
     *                     over, which takes less time than a new one. Not for kernels in clusters:
     *                     an update keeps the sizes of those before, and kernels that wait for
     *                     others in their cluster may then never end */
    void finish(GraphRecording* former = nullptr)
    {
        check(cudaStreamEndCapture(stream_, &graph_), "recording a graph");
        if (former != nullptr && former->mayBecome(graph_))
        {
            run_ = std::exchange(former->run_, nullptr);
            return;
        }
        // kernels keep the priorities of their streams, as in a graph of GROMACS
        check(cudaGraphInstantiate(&run_, graph_, cudaGraphInstantiateFlagUseNodePriority),
              "instantiating a graph");
    }
    void launch() { launch(stream_); }
    void launch(cudaStream_t stream) { check(cudaGraphLaunch(run_, stream), "launching a graph"); }
    //! Device time of a launch, s, from a few of them.
    double secondsPerLaunch()
    {
        constexpr int c_launches = 4;
        begin_.record(stream_);
        for (int k = 0; k < c_launches; k++)
        {
            launch();
        }
        end_.record(stream_);
        return begin_.secondsUntil(end_) / c_launches;
    }

private:
    //! Changes what is launched to a graph that was recorded later, if only arguments are others.
    bool mayBecome(cudaGraph_t graph)
    {
        cudaGraphExecUpdateResultInfo info = {};
        if (run_ != nullptr && cudaGraphExecUpdate(run_, graph, &info) == cudaSuccess)
        {
            return true;
        }
        (void)cudaGetLastError(); // it is no error
        return false;
    }

    cudaStream_t stream_;
    cudaGraph_t graph_   = nullptr;
    cudaGraphExec_t run_ = nullptr;
    Event begin_{ true }, end_{ true };
};

} // namespace farfield

#endif
