/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tree/families.h"

#include <algorithm>

#include <cub/device/device_scan.cuh>

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

//! Families of all levels for which there is room.
int allFamilies(const FamilyTree& tree)
{
    int sum = 0;
    for (int level = 1; level < tree.levels; level++)
    {
        sum += tree.capacity[level];
    }
    return sum;
}

//! Level of a family in a row of all levels; the family becomes one of its level.
__device__ int levelOf(const FamilyTree& tree, int* family)
{
    int level = 1;
    while (*family >= tree.capacity[level])
    {
        *family -= tree.capacity[level];
        level++;
    }
    return level;
}

//! Forgets the last step and marks what is occupied now: different lists.
__global__ void __launch_bounds__(c_threads)
        markOccupied(FamilyTree tree, int n, const int* __restrict__ cell, int families)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < families)
    {
        int family      = i;
        const int level = levelOf(tree, &family);
        tree.forget(level, family);
    }
    // the first particle of each cell stands for all
    if (i < n && (i == 0 || cell[i] != cell[i - 1]))
    {
        tree.markAncestors(cell[i]);
    }
}

__global__ void __launch_bounds__(c_threads) placeFamilies(FamilyTree tree)
{
    const int at = blockIdx.x * c_threads + threadIdx.x;
    if (at < tree.marks)
    {
        tree.place(at);
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        linkFamilies(FamilyTree tree, int families, Real* poison)
{
    int family = blockIdx.x * c_threads + threadIdx.x;
    if (family == 0 && blockIdx.y == 0)
    {
        const bool overflow = tree.hasOverflow();
        // as bits: the compiler may take numbers for finite
        *poison = overflow ? static_cast<Real>(__int_as_float(0x7fffffff)) : Real(0);
        if (overflow)
        {
            *tree.overflow = 1;
            __threadfence_system();
        }
    }
    if (family < families)
    {
        const int level = levelOf(tree, &family);
        tree.link(level, blockIdx.y, family);
    }
}

} // namespace

template<class Real>
void FamilyLists<Real>::resize(const std::vector<CellGrid>& grids,
                               int ws,
                               const std::vector<int>& capacities,
                               const int* slotOf0,
                               cudaStream_t stream)
{
    tree_         = {};
    tree_.levels  = static_cast<int>(grids.size());
    tree_.ws      = ws;
    tree_.slotOf0 = slotOf0;
    for (int level = 0; level < tree_.levels; level++)
    {
        tree_.grid[level]     = grids[level];
        tree_.capacity[level] = (level > 0) ? capacities[level] : 0;
        tree_.first[level]    = tree_.marks;
        tree_.marks += (level + 1 < tree_.levels) ? grids[level].cells : 0;
    }
    const size_t marks = static_cast<size_t>(tree_.marks) + 1;
    ranks_.resize(marks);
    marks_.resize(marks + 2 * static_cast<size_t>(tree_.levels));
    tree_.rank   = ranks_.data();
    tree_.mark   = marks_.data();
    tree_.count  = tree_.mark + marks;
    tree_.needed = tree_.count + tree_.levels;
    poison_.resize(1);
    poison_.clear(stream);
    overflow_.resize(1);
    overflow_.data()[0] = 0;
    tree_.overflow      = overflow_.data();

    // first the sizes, then the places
    for (int pass = 0; pass < 2; pass++)
    {
        size_t used      = 0;
        const auto carve = [&](size_t size)
        {
            int* begin = (pass == 0) ? nullptr : lists_.data() + used;
            used += (size + c_warp - 1) / c_warp * c_warp;
            return begin;
        };
        for (int level = 1; level < tree_.levels; level++)
        {
            const size_t capacity   = tree_.capacity[level];
            tree_.parent[level]     = carve(capacity);
            tree_.parentSlot[level] = carve(capacity);
            tree_.neighbours[level] = carve(tree_.neighbourCount() * capacity);
            tree_.cellOf[level]     = carve(8 * capacity);
            tree_.slotOf[level]     = carve(tree_.grid[level].cells);
        }
        if (pass == 0)
        {
            lists_.resize(used);
        }
    }
    size_t space = 0;
    check(cub::DeviceScan::ExclusiveSum(nullptr, space, tree_.mark, tree_.rank, tree_.marks + 1),
          "sizing a prefix sum");
    scanSpace_.resize(space);
    marks_.clear(stream);
    if (lists_.size() > 0)
    {
        check(cudaMemsetAsync(lists_.data(), 0xff, lists_.size() * sizeof(int), stream),
              "clearing memory");
    }
}

template<class Real>
void FamilyLists<Real>::build(const SortedParticles<Real>& particles, cudaStream_t stream)
{
    const int families = allFamilies(tree_);
    if (tree_.levels < 2)
    {
        return;
    }
    const int blocks = std::max(1, blocksFor(std::max(particles.n, families), c_threads));
    markOccupied<<<blocks, c_threads, 0, stream>>>(tree_, particles.n, particles.cell, families);
    checkLaunch("marking occupied cells");
    size_t space = scanSpace_.size();
    check(cub::DeviceScan::ExclusiveSum(
                  scanSpace_.data(), space, tree_.mark, tree_.rank, tree_.marks + 1, stream),
          "numbering occupied cells");
    placeFamilies<<<blocksFor(tree_.marks, c_threads), c_threads, 0, stream>>>(tree_);
    checkLaunch("listing occupied cells");
    if (families > 0)
    {
        const dim3 links(blocksFor(families, c_threads), tree_.neighbourCount());
        linkFamilies<Real><<<links, c_threads, 0, stream>>>(tree_, families, poison_.data());
        checkLaunch("finding neighbours of occupied cells");
    }
}

template<class Real>
Families FamilyLists<Real>::families(int level) const
{
    return { tree_.capacity[level],
             tree_.ws,
             tree_.count + level,
             tree_.parentSlot[level],
             tree_.neighbours[level] };
}

template<class Real>
const int* FamilyLists<Real>::cellOf(int level) const
{
    return tree_.cellOf[level];
}

template<class Real>
const int* FamilyLists<Real>::slotOf(int level) const
{
    return tree_.slotOf[level];
}

template<class Real>
bool FamilyLists<Real>::hasOverflow() const
{
    return *static_cast<const volatile int*>(overflow_.data()) != 0;
}

template<class Real>
bool FamilyLists<Real>::overflow()
{
    const bool any = hasOverflow();
    if (any)
    {
        *static_cast<volatile int*>(overflow_.data()) = 0;
    }
    return any;
}

template class FamilyLists<float>;
template class FamilyLists<double>;

} // namespace farfield
