/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "device_totals.h"

#include <algorithm>
#include <climits>
#include <iterator>
#include <utility>

#include "cells/position_error.h"

namespace farfield
{

template<class Real>
DeviceTotals<Real>::DeviceTotals(cudaStream_t stream)
{
    sums_.resize(1);
    sums_.clear(stream);
    fields_.resize(1);
    fields_.clear(stream);
    status_.resize(1);
    nearScratch_.resize(stream);
    farScratch_.resize(stream);
}

template<class Real>
void DeviceTotals<Real>::read(const DeviceCells<Real>& particles, const Stream& stream)
{
    Status* status = status_.data();
    const auto get = [&](void* to, const void* from, size_t bytes)
    {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream),
              "copying from the GPU");
    };
    get(&status->sums, sums_.data(), sizeof(DeviceSums));
    get(&status->fields, fields_.data(), sizeof(FieldSums));
    get(&status->evaluation, particles.evaluation(), sizeof(status->evaluation));
    stream.synchronize();
    const auto& evaluation = status->evaluation;
    if (evaluation.number > 0 && evaluation.invalid != INT_MAX)
    {
        throw positionError<Real>("particle", evaluation.invalid, nullptr);
    }
}

template<class Real>
std::optional<double> DeviceTotals<Real>::newCappedFields()
{
    const FieldSums& now   = status_.data()->fields;
    const FieldSums before = std::exchange(fieldsRead_, now);
    const auto evaluations = now.evaluations - before.evaluations;
    const double capped    = static_cast<double>(now.capped - before.capped);
    return evaluations > 0
                   ? std::optional(capped / FieldSums::c_one / static_cast<double>(evaluations))
                   : std::nullopt;
}

template<class Real>
Totals DeviceTotals<Real>::totals() const
{
    const Sums& wanted = status_.data()->evaluation.sums;
    if (!wanted.energy)
    {
        return {};
    }
    const DeviceSums& s = status_.data()->sums;
    StageSums sums;
    sums.energy            = s.near.energy + s.energy;
    sums.energyTimesDegree = s.timesDegree;
    for (int c = 0; c < 6; c++)
    {
        sums.virial[c]         = s.near.virial[c] + s.virial[c];
        sums.excludedVirial[c] = s.near.excludedVirial[c];
    }
    for (int c = 0; c < 3; c++)
    {
        // of near functions, whose other components are among those above
        sums.virialOfFunctions[c] = s.near.excess / 3;
    }
    std::copy(std::begin(s.deviatoric), std::end(s.deviatoric), sums.deviatoric.begin());
    Mat3 rotation;
    for (int i = 0; i < 9; i++)
    {
        rotation(i / 3, i % 3) = wanted.rotation[i / 3][i % 3];
    }
    Request request;
    request.energy = wanted.energy;
    request.virial = wanted.virial;
    return sums.totals(request, rotation);
}

template class DeviceTotals<float>;
template class DeviceTotals<double>;

} // namespace farfield
