/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/pipeline.h"

#include <cmath>

#include "cells/grid.h"

namespace farfield
{
namespace
{

//! The request with the position of the grid that its step stands for.
Request withOffset(Request request)
{
    for (int k = 0; k < 3 && request.step >= 0; k++)
    {
        const double product  = c_offsetSteps[k] * static_cast<double>(request.step);
        request.gridOffset[k] = product - std::floor(product);
    }
    return request;
}

} // namespace

template<class Real>
Totals Pipeline<Real>::run(const Task<Real>& task)
{
    Totals totals = attempt(task);
    while (backend_->mustRepeat())
    {
        totals = attempt(task);
    }
    return totals;
}

template<class Real>
void Pipeline<Real>::enqueue(const Task<Real>& task)
{
    const auto evaluate = [&]
    {
        gpu_->enter(task.stream);
        try
        {
            attempt(task);
        }
        catch (...)
        {
            gpu_->leave();
            throw;
        }
    };
    gpu_->repeat(task, evaluate);
}

template<class Real>
Totals Pipeline<Real>::attempt(Task<Real> task)
{
    task.request = withOffset(task.request);
    try
    {
        return runStages(task);
    }
    catch (const Error& error)
    {
        if (error.code() != ErrorCode::InvalidArgument)
        {
            operators_->giveUp();
        }
        throw;
    }
    catch (...)
    {
        operators_->giveUp(); // lists of cells and tables may be half made
        throw;
    }
}

template<class Real>
Totals Pipeline<Real>::runStages(const Task<Real>& task)
{
    backend_->setTask(task);
    const int leaf   = operators_->discretisation().levels - 1;
    const auto stage = [&](Stage which, const auto& work)
    {
        times_->add(which,
                    [&]
                    {
                        backend_->beginStage(which);
                        work();
                        backend_->endStage(which);
                    });
    };
    Totals totals;
    const auto stages = [&]
    {
        // the near field comes first so that a GPU has it beside the far field
        stage(Stage::Sort, [&] { backend_->sort(); });
        stage(Stage::Exclusions, [&] { backend_->exclusions(); });
        if (backend_->hasNearFunction())
        {
            stage(Stage::NearFunction, [&] { backend_->nearFunction(); });
        }
        stage(Stage::P2p, [&] { backend_->p2p(); });
        stage(Stage::P2m, [&] { backend_->p2m(); });
        for (int level = leaf; level > 0; level--)
        {
            stage(Stage::M2m, [&] { backend_->m2m(level); });
        }
        stage(Stage::M2l, [&] { backend_->m2l(0); });
        for (int level = 0; level < leaf; level++)
        {
            stage(Stage::L2l, [&] { backend_->l2l(level); });
            stage(Stage::M2l, [&] { backend_->m2l(level + 1); });
        }
        stage(Stage::L2p, [&] { backend_->l2p(); });
        stage(Stage::Collect, [&] { totals = backend_->collect(); });
    };
    backend_->together(stages);
    return totals;
}

template class Pipeline<float>;
template class Pipeline<double>;

} // namespace farfield
