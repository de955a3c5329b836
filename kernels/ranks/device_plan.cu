/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks/device_plan.h"

#include <climits>
#include <cstring>

#include <algorithm>
#include <memory>

#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "near/exclusion_rows.h"
#include "parallel/neighbourhood.h"
#include "ranks/device_plan_kernels.cuh"

namespace farfield
{

template<class Real>
void DevicePlan<Real>::setSystem(const WholeSystem<Real>& system,
                                 double rootCoulomb,
                                 cudaStream_t stream)
{
    checkExcludedPairs(static_cast<long long>(system.excluded.partners.size()) / 2);
    std::vector<Real> q(system.charges.size());
    std::transform(system.charges.begin(),
                   system.charges.end(),
                   q.begin(),
                   [&](Real charge)
                   { return static_cast<Real>(rootCoulomb * static_cast<double>(charge)); });
    system_ = system.count();
    systemQ_.upload(q.data(), q.size(), stream);
    systemOffsets_.upload(system.excluded.offsets.data(), system.excluded.offsets.size(), stream);
    systemPartners_.upload(
            system.excluded.partners.data(), system.excluded.partners.size(), stream);
    localOf_.resize(system_);
    wanted_.resize(system_);
    numbers_.resize(NumberCount);
    check(cudaStreamSynchronize(stream), "copying the system to the GPU");
}

template<class Real>
int DevicePlan<Real>::locate(const std::vector<int>& index,
                             const Real* x,
                             const Discretisation& d,
                             const Mat3& box,
                             const Partition<Real>& partition,
                             cudaStream_t stream)
{
    d_   = d;
    box_ = box;
    own_ = static_cast<int>(index.size());
    index_.upload(index.data(), index.size(), stream);
    x_.resize(3 * index.size());
    copyAsync(x_.data(), x, x_.size(), stream, "copying positions on the GPU");
    const Grid leaf = d.leafGrid(box);
    const int parts = Reach::partsFor(partition.drift());
    located_.resize(x_.size());
    place_.resize(own_);
    isHeld_.resize(parts * leaf.count());
    isHeld_.clear(stream);
    check(cudaMemsetAsync(localOf_.data(), 0xff, system_ * sizeof(int), stream), "clearing memory");
    const int nobody = INT_MAX;
    copyAsync(numbers_.data() + Lost, &nobody, 1, stream, "copying to the GPU");
    check(cudaMemsetAsync(numbers_.data() + Farthest, 0, sizeof(int), stream), "clearing memory");

    PlaceTask<Real> task = {};
    task.own             = own_;
    task.index           = index_.data();
    task.x               = x_.data();
    task.systemQ         = systemQ_.data();
    for (int i = 0; i < 9; i++)
    {
        task.toCells[i / 3][i % 3] = leaf.inverseEdges()(i / 3, i % 3);
    }
    task.grid     = leaf.plain();
    task.parts    = parts;
    task.localOf  = localOf_.data();
    task.planned  = where_.size() == located_.size() ? where_.data() : nullptr;
    task.where    = located_.data();
    task.place    = place_.data();
    task.isHeld   = isHeld_.data();
    task.lost     = numbers_.data() + Lost;
    task.farthest = numbers_.data() + Farthest;
    launch(locateOwn<Real>, own_, stream, task);
    const int farthest = numberAt(Farthest, stream);
    std::memcpy(&farthest_, &farthest, sizeof(float));
    const int lost = numberAt(Lost, stream);
    return lost < own_ ? lost : -1;
}

template<class Real>
void DevicePlan<Real>::make(Partition<Real>* partition, cudaStream_t stream)
{
    Ranks& ranks = partition->ranks();
    const Neighbourhood neighbourhood(d_, box_, partition->drift(), partition->threads());
    std::vector<char> isHeld(isHeld_.size());
    isHeld_.download(isHeld.data(), isHeld.size(), stream);
    Regions regions = neighbourhood.regions(isHeld, &ranks);

    const std::vector<int> wanted = partnersElsewhere(stream);
    const ByRank<int> wantedBy    = ranks.gather(wanted);
    wantedBy_.upload(wantedBy.values.data(), wantedBy.values.size(), stream);
    check(cudaMemsetAsync(numbers_.data() + Found, 0, sizeof(int), stream), "clearing memory");
    sentTo_.resize(ranks.size());
    sentOffsets_.assign(1, 0);
    for (int r = 0; r < ranks.size(); r++)
    {
        size_t count = 0;
        if (r != ranks.rank())
        {
            count = listSent(neighbourhood.placesNear(regions, r),
                             wantedBy_.data() + wantedBy.offsets[r],
                             wantedBy.count(r),
                             &sentTo_[r],
                             stream);
        }
        sentOffsets_.push_back(sentOffsets_.back() + count);
    }
    // each rank has told how many it wants, and each of them is on one of the others
    const long long found = ranks.sum(static_cast<long long>(numberAt(Found, stream)));
    if (found != static_cast<long long>(wantedBy.values.size()))
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::to_string(wantedBy.values.size())
                            + " excluded partners have to be on other ranks, but "
                            + std::to_string(found)
                            + " were found there. Put every particle on exactly one rank.");
    }
    introduceGhosts(&ranks, stream);
    orderParticles(stream);
    listExcluded(stream);
    std::swap(where_, located_);
    partition->adopt(std::move(regions), d_);
}

template<class Real>
std::vector<int> DevicePlan<Real>::partnersElsewhere(cudaStream_t stream)
{
    wanted_.clear(stream);
    launch(markElsewhere<Real>, own_, stream, systemRows(), index_.data(), own_, wanted_.data());
    list_.resize(system_);
    std::vector<int> wanted(select(wanted_.data(), system_, list_.data(), stream));
    list_.download(wanted.data(), wanted.size(), stream);
    return wanted;
}

template<class Real>
int DevicePlan<Real>::listSent(const std::vector<char>& placesNear,
                               const int* wanted,
                               size_t wantedCount,
                               DeviceBuffer<int>* sentTo,
                               cudaStream_t stream)
{
    if (placesNear.empty() && wantedCount == 0)
    {
        return 0;
    }
    isNear_.upload(placesNear.data(), placesNear.size(), stream);
    flags_.resize(own_);
    launch(flagNear,
           own_,
           stream,
           place_.data(),
           own_,
           placesNear.empty() ? nullptr : isNear_.data(),
           flags_.data());
    launch(flagWanted,
           static_cast<long long>(wantedCount),
           stream,
           wanted,
           static_cast<int>(wantedCount),
           localOf_.data(),
           flags_.data(),
           numbers_.data() + Found);
    sentTo->resize(own_);
    return select(flags_.data(), own_, sentTo->data(), stream);
}

template<class Real>
void DevicePlan<Real>::introduceGhosts(Ranks* ranks, cudaStream_t stream)
{
    sent_.resize(sentOffsets_.back());
    for (int r = 0; r < ranks->size(); r++)
    {
        copyAsync(sent_.data() + sentOffsets_[r],
                  sentTo_[r].data(),
                  sentOffsets_[r + 1] - sentOffsets_[r],
                  stream,
                  "copying on the GPU");
    }
    ByRank<int> told;
    told.offsets = sentOffsets_;
    told.values.resize(sentOffsets_.back());
    list_.resize(told.values.size());
    launch(gatherIndices,
           static_cast<long long>(told.values.size()),
           stream,
           sent_.data(),
           static_cast<int>(told.values.size()),
           index_.data(),
           list_.data());
    list_.download(told.values.data(), told.values.size(), stream);
    const ByRank<int> ghosts = ranks->exchangeAny(told);
    ghostOffsets_            = ghosts.offsets;

    all_.resize(count());
    q_.resize(count());
    copyAsync(all_.data(), index_.data(), own_, stream, "copying on the GPU");
    copyAsync(all_.data() + own_,
              ghosts.values.data(),
              ghosts.values.size(),
              stream,
              "copying to the GPU");
    launch(introduce<Real>,
           count(),
           stream,
           all_.data(),
           own_,
           count(),
           systemQ_.data(),
           localOf_.data(),
           q_.data());
    check(cudaStreamSynchronize(stream), "copying to the GPU");
}

template<class Real>
void DevicePlan<Real>::orderParticles(cudaStream_t stream)
{
    flags_.resize(count());
    order_.resize(count());
    const auto selectThose = [&](bool areCharged, int* to)
    {
        launch(flagCharged<Real>, count(), stream, q_.data(), count(), areCharged, flags_.data());
        return select(flags_.data(), count(), to, stream);
    };
    takingPart_ = selectThose(true, order_.data());
    if (takingPart_ < count())
    {
        selectThose(false, order_.data() + takingPart_);
    }
}

template<class Real>
void DevicePlan<Real>::listExcluded(cudaStream_t stream)
{
    const size_t rows = static_cast<size_t>(count()) + 1;
    rowLengths_.resize(rows);
    rowLengths_.clear(stream);
    rowEnds_.resize(rows);
    check(cudaMemsetAsync(numbers_.data() + Longest, 0, sizeof(int), stream), "clearing memory");
    launch(countExcluded<Real>,
           count(),
           stream,
           systemRows(),
           all_.data(),
           own_,
           count(),
           rowLengths_.data(),
           numbers_.data() + Longest);
    withScratch(
            [&](void* space, size_t& bytes)
            {
                check(cub::DeviceScan::ExclusiveSum(space,
                                                    bytes,
                                                    rowLengths_.data(),
                                                    rowEnds_.data(),
                                                    static_cast<int>(rows),
                                                    stream),
                      "adding up excluded pairs");
            });
    longestRow_ = numberAt(Longest, stream);
    copyAsync(&pairs_, rowEnds_.data() + count(), 1, stream, "copying from the GPU");
    check(cudaStreamSynchronize(stream), "copying from the GPU");
    partners_.resize(pairs_);
    launch(listRows<Real>,
           count(),
           stream,
           systemRows(),
           all_.data(),
           own_,
           count(),
           rowEnds_.data(),
           partners_.data());
}

template<class Real>
int DevicePlan<Real>::select(const char* flags, int count, int* list, cudaStream_t stream)
{
    if (count == 0)
    {
        return 0;
    }
    withScratch(
            [&](void* space, size_t& bytes)
            {
                check(cub::DeviceSelect::Flagged(space,
                                                 bytes,
                                                 thrust::counting_iterator<int>(0),
                                                 flags,
                                                 list,
                                                 numbers_.data() + Selected,
                                                 count,
                                                 stream),
                      "listing particles");
            });
    return numberAt(Selected, stream);
}

template<class Real>
int DevicePlan<Real>::numberAt(int which, cudaStream_t stream) const
{
    int number = 0;
    copyAsync(&number, numbers_.data() + which, 1, stream, "copying from the GPU");
    check(cudaStreamSynchronize(stream), "planning what GPUs exchange");
    return number;
}

template class DevicePlan<float>;
template class DevicePlan<double>;

} // namespace farfield
