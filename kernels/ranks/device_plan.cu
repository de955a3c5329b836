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

#include "cells/cell_index.h"
#include "near/exclusion_rows.h"
#include "parallel/neighbourhood.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 128;

//! The number of this thread; those beyond the last do nothing.
__device__ int threadNumber()
{
    return static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
}

//! Launches a kernel with a thread for each of so many.
template<class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...),
            long long count,
            cudaStream_t stream,
            Arguments... arguments)
{
    if (const int blocks = blocksFor(count, c_threads); blocks > 0)
    {
        kernel<<<blocks, c_threads, 0, stream>>>(arguments...);
        checkLaunch("planning what GPUs exchange");
    }
}

//! Copies between arrays on the device.
template<class T>
void copyOnDevice(T* to, const T* from, size_t count, cudaStream_t stream)
{
    if (count > 0)
    {
        check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream),
              "copying on the GPU");
    }
}

//! Calls f(number, index) for the partners of a particle that have a charge, if it has one.
template<class Real, class F>
__device__ void forCharged(const SystemRows<Real>& rows, int particle, const F& f)
{
    if (rows.q[particle] == 0)
    {
        return;
    }
    for (int k = rows.offsets[particle]; k < rows.offsets[particle + 1]; k++)
    {
        if (const int partner = rows.partners[k]; rows.q[partner] != 0 && partner != particle)
        {
            f(rows.localOf[partner], partner);
        }
    }
}

template<class Real>
struct PlaceTask
{
    int own;
    const int* index;
    const Real* x;
    const Real* systemQ;
    double toCells[3][3];
    CellGrid grid;
    int parts; //!< see Reach
    int* localOf;
    const Real* planned; //!< where they were at the time of the plan, or null
    Real* where;
    int* place;
    char* isHeld;
    int* lost;
    int* farthest; //!< bits of a float
};

//! As Partition::locate() and Reach::place().
template<class Real>
__global__ void __launch_bounds__(c_threads) locateOwn(const PlaceTask<Real> task)
{
    const int i = threadNumber();
    if (i >= task.own)
    {
        return;
    }
    const int index     = task.index[i];
    task.localOf[index] = i;
    const Real* r       = task.x + 3 * static_cast<size_t>(i);
    Real* where         = task.where + 3 * static_cast<size_t>(i);
    task.place[i]       = -1;
    if (task.systemQ[index] == 0)
    {
        // as bits: the compiler may take numbers for finite
        where[0] = where[1] = where[2] = static_cast<Real>(__int_as_float(0x7fffffff));
        return;
    }
    int c[3];
    int part    = 0;
    bool valid  = true;
    float moved = 0;
    for (int k = 0; k < 3; k++)
    {
        const double u = static_cast<double>(r[0]) * task.toCells[0][k]
                         + static_cast<double>(r[1]) * task.toCells[1][k]
                         + static_cast<double>(r[2]) * task.toCells[2][k];
        valid    = valid && u < 1e9 - 3 && u > 3 - 1e9;
        where[k] = static_cast<Real>(u);
        if (task.planned != nullptr)
        {
            const Real before = task.planned[3 * static_cast<size_t>(i) + k];
            moved             = fmaxf(moved, static_cast<float>(abs(where[k] - before)));
        }
        const double f = valid ? floor(u) : 0;
        c[k]           = static_cast<int>(f);
        part += u - f >= 0.5 ? 1 << k : 0;
    }
    if (!valid)
    {
        atomicMin(task.lost, i);
        return;
    }
    if (moved > __int_as_float(*static_cast<volatile int*>(task.farthest)))
    {
        // few are ahead of the others; numbers that are not negative are in the order of their bits
        atomicMax(task.farthest, __float_as_int(moved));
    }
    task.grid.reduceDistant(c);
    const int place    = task.parts * task.grid.index(c) + part % task.parts;
    task.place[i]      = place;
    task.isHeld[place] = 1;
}

//! Marks partners of ours that are not here.
template<class Real>
__global__ void __launch_bounds__(c_threads)
        markElsewhere(const SystemRows<Real> rows, const int* index, int own, char* wanted)
{
    const int i = threadNumber();
    if (i < own)
    {
        forCharged(rows,
                   index[i],
                   [&](int local, int partner)
                   {
                       if (local < 0)
                       {
                           wanted[partner] = 1;
                       }
                   });
    }
}

//! Flags our particles that may come near cells of a rank.
__global__ void __launch_bounds__(c_threads)
        flagNear(const int* place, int own, const char* isNear, char* flags)
{
    if (const int i = threadNumber(); i < own)
    {
        flags[i] = isNear != nullptr && place[i] >= 0 && isNear[place[i]] ? 1 : 0;
    }
}

//! Flags those that a rank wants wherever they are.
__global__ void __launch_bounds__(c_threads)
        flagWanted(const int* wanted, int count, const int* localOf, char* flags, int* found)
{
    if (const int k = threadNumber(); k < count)
    {
        if (const int i = localOf[wanted[k]]; i >= 0)
        {
            flags[i] = 1;
            atomicAdd(found, 1);
        }
    }
}

__global__ void __launch_bounds__(c_threads)
        gatherIndices(const int* which, int count, const int* index, int* to)
{
    if (const int k = threadNumber(); k < count)
    {
        to[k] = index[which[k]];
    }
}

//! Numbers ghosts, and looks the charges of all up.
template<class Real>
__global__ void __launch_bounds__(c_threads)
        introduce(const int* all, int own, int count, const Real* systemQ, int* localOf, Real* q)
{
    if (const int i = threadNumber(); i < count)
    {
        q[i] = systemQ[all[i]];
        if (i >= own)
        {
            localOf[all[i]] = i;
        }
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        flagCharged(const Real* q, int count, bool isCharged, char* flags)
{
    if (const int i = threadNumber(); i < count)
    {
        flags[i] = (q[i] != 0) == isCharged ? 1 : 0;
    }
}

//! Of pairs of two ghosts nothing is computed.
__device__ bool isListed(int i, int local, int own)
{
    return local >= 0 && (i < own || local < own);
}

//! Lengths of the rows of excluded pairs, of ours and of ghosts.
template<class Real>
__global__ void __launch_bounds__(c_threads) countExcluded(const SystemRows<Real> rows,
                                                           const int* all,
                                                           int own,
                                                           int count,
                                                           int* lengths,
                                                           int* longest)
{
    if (const int i = threadNumber(); i < count)
    {
        int length = 0;
        forCharged(rows,
                   all[i],
                   [&](int local, int /*partner*/) { length += isListed(i, local, own) ? 1 : 0; });
        lengths[i] = length;
        if (length > *static_cast<volatile int*>(longest))
        {
            atomicMax(longest, length);
        }
    }
}

//! The rows, each ascending, as the near field searches for partners.
template<class Real>
__global__ void __launch_bounds__(c_threads) listRows(const SystemRows<Real> rows,
                                                      const int* all,
                                                      int own,
                                                      int count,
                                                      const int* ends,
                                                      int* partners)
{
    if (const int i = threadNumber(); i < count)
    {
        int* row   = partners + ends[i];
        int length = 0;
        forCharged(rows,
                   all[i],
                   [&](int local, int /*partner*/)
                   {
                       if (!isListed(i, local, own))
                       {
                           return;
                       }
                       int at = length++;
                       for (; at > 0 && row[at - 1] > local; at--)
                       {
                           row[at] = row[at - 1];
                       }
                       row[at] = local;
                   });
    }
}

} // namespace

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
    check(cudaMemcpyAsync(x_.data(), x, x_.size() * sizeof(Real), cudaMemcpyDefault, stream),
          "copying positions on the GPU");
    const Grid leaf = d.leafGrid(box);
    const int parts = Reach::partsFor(partition.drift());
    located_.resize(x_.size());
    place_.resize(own_);
    isHeld_.resize(parts * leaf.count());
    isHeld_.clear(stream);
    check(cudaMemsetAsync(localOf_.data(), 0xff, system_ * sizeof(int), stream), "clearing memory");
    const int nobody = INT_MAX;
    check(cudaMemcpyAsync(
                  numbers_.data() + Lost, &nobody, sizeof(int), cudaMemcpyHostToDevice, stream),
          "copying to the GPU");
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
    launch(markElsewhere<Real>,
           own_,
           stream,
           systemRows(),
           static_cast<const int*>(index_.data()),
           own_,
           wanted_.data());
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
           static_cast<const int*>(place_.data()),
           own_,
           static_cast<const char*>(placesNear.empty() ? nullptr : isNear_.data()),
           flags_.data());
    launch(flagWanted,
           static_cast<long long>(wantedCount),
           stream,
           wanted,
           static_cast<int>(wantedCount),
           static_cast<const int*>(localOf_.data()),
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
        copyOnDevice(sent_.data() + sentOffsets_[r],
                     sentTo_[r].data(),
                     sentOffsets_[r + 1] - sentOffsets_[r],
                     stream);
    }
    ByRank<int> told;
    told.offsets = sentOffsets_;
    told.values.resize(sentOffsets_.back());
    list_.resize(told.values.size());
    launch(gatherIndices,
           static_cast<long long>(told.values.size()),
           stream,
           static_cast<const int*>(sent_.data()),
           static_cast<int>(told.values.size()),
           static_cast<const int*>(index_.data()),
           list_.data());
    list_.download(told.values.data(), told.values.size(), stream);
    const ByRank<int> ghosts = ranks->exchangeAny(told);
    ghostOffsets_            = ghosts.offsets;

    all_.resize(count());
    q_.resize(count());
    copyOnDevice(all_.data(), index_.data(), own_, stream);
    if (!ghosts.values.empty())
    {
        check(cudaMemcpyAsync(all_.data() + own_,
                              ghosts.values.data(),
                              ghosts.values.size() * sizeof(int),
                              cudaMemcpyHostToDevice,
                              stream),
              "copying to the GPU");
    }
    launch(introduce<Real>,
           count(),
           stream,
           static_cast<const int*>(all_.data()),
           own_,
           count(),
           static_cast<const Real*>(systemQ_.data()),
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
        launch(flagCharged<Real>,
               count(),
               stream,
               static_cast<const Real*>(q_.data()),
               count(),
               areCharged,
               flags_.data());
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
           static_cast<const int*>(all_.data()),
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
    check(cudaMemcpyAsync(
                  &pairs_, rowEnds_.data() + count(), sizeof(int), cudaMemcpyDeviceToHost, stream),
          "copying from the GPU");
    check(cudaStreamSynchronize(stream), "copying from the GPU");
    partners_.resize(pairs_);
    launch(listRows<Real>,
           count(),
           stream,
           systemRows(),
           static_cast<const int*>(all_.data()),
           own_,
           count(),
           static_cast<const int*>(rowEnds_.data()),
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
    check(cudaMemcpyAsync(
                  &number, numbers_.data() + which, sizeof(int), cudaMemcpyDeviceToHost, stream),
          "copying from the GPU");
    check(cudaStreamSynchronize(stream), "planning what GPUs exchange");
    return number;
}

template class DevicePlan<float>;
template class DevicePlan<double>;

} // namespace farfield
