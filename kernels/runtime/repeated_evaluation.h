/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Evaluations that differ from the one before in their step alone.
 *
 *  A caller that does not record graphs himself waits for the launch of every kernel, two
 *  microseconds each, at every step. From the second of them on such evaluations are a graph.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_REPEATED_EVALUATION_H
#define FARFIELD_KERNELS_RUNTIME_REPEATED_EVALUATION_H

#include <memory>
#include <optional>

#include "runtime/graph_recording.h"

namespace farfield
{

//! What the launches of an evaluation with forces alone depend on, but for its step.
struct EvaluationArguments
{
    const void* x;
    const void* forces;
    bool replaceForces;
    double exclusionRange;
    long long generation; //!< EvaluationHistory::generation()

    bool operator==(const EvaluationArguments& other) const
    {
        return x == other.x && forces == other.forces && replaceForces == other.replaceForces
               && exclusionRange == other.exclusionRange && generation == other.generation;
    }
};

class RepeatedEvaluation
{
public:
    //! The box or its operators are others.
    void forget()
    {
        last_.reset();
        stands_ = false;
    }
    //! All that was recorded is of other operators.
    void clear()
    {
        forget();
        graph_.reset();
    }
    //! The arguments of an evaluation that was put into a stream kernel by kernel.
    void add(const EvaluationArguments& arguments)
    {
        stands_ = stands_ && isLikeLast(arguments);
        last_   = arguments;
    }
    bool isLikeLast(const EvaluationArguments& arguments) const { return last_ == arguments; }

    /*! \brief Puts an evaluation like the last one into a stream, if there is memory for its graph.
     *  \param[in] recorded   stream that record() puts it into
     *  \param[in] mayUpdate  whether a graph that no longer stands may be changed to the new one
     *  \param[in] record     called if there is no graph of it yet
     *  \returns whether it is there; else it has to be put there kernel by kernel */
    template<class Record>
    bool launch(cudaStream_t stream, cudaStream_t recorded, bool mayUpdate, const Record& record)
    {
        if (!stands_)
        {
            auto graph = std::make_unique<GraphRecording>(recorded);
            record();
            if (!hasMemory([&] { graph->finish(mayUpdate ? graph_.get() : nullptr); }))
            {
                return false;
            }
            graph_  = std::move(graph);
            stands_ = true;
        }
        return hasMemory([&] { graph_->launch(stream); });
    }

private:
    //! Does work() of a graph. \returns whether there was memory; else the graph does not stand
    template<class Work>
    bool hasMemory(const Work& work)
    {
        try
        {
            work();
            return true;
        }
        catch (const Error& error)
        {
            stands_ = false;
            if (error.code() != ErrorCode::OutOfMemory)
            {
                throw;
            }
            return false;
        }
    }

    std::optional<EvaluationArguments> last_;
    std::unique_ptr<GraphRecording> graph_;
    bool stands_ = false; //!< the graph is that of the last arguments
};

} // namespace farfield

#endif
