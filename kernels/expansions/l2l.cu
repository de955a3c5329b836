/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Local expansions of children from those of their parents, and the sums over children that virial
// and energy need.
#include <algorithm>

#include "expansions/translations.cuh"
#include "operators/background.h"

namespace farfield
{
namespace
{

constexpr int c_tile       = DeviceTranslations<float>::c_tile;
constexpr int c_sumThreads = 128;

//! Shifts of the octants, by value.
struct Shifts
{
    double s[8][3];
};

//! What the kernel of L2L needs besides operators and local expansions; device memory.
template<class Real>
struct DownTask
{
    int n;                  //!< coefficients
    int tiles;              //!< of rows
    int evenColumns;        //!< columns of even degree; they come first
    const int* columnOf;    //!< [n] coefficient of each column
    const int* firstColumn; //!< [tiles][2] columns of each parity before these are zero
    int parentStride;
    const int* parentSlot;
    int capacity; //!< of the families, as Families
    const int* count;
    Shifts shifts;
    double background; //!< backgroundStrength() of the children
    Real* L;           //!< of the children
    int stride;
};

//! The children that are added up.
struct Children
{
    int n; //!< coefficients
    int stride, capacity;
    const int* count;
    Shifts shifts;
};

//! What their virial needs.
struct VirialTask
{
    int3 gradientEnd; //!< those of an axis end here
    double background, scale;
    double* virial;
    OrderedSums::View sums;
};

template<class Real>
__device__ __forceinline__ DipoleMoments dipoleOf(const Real* M, size_t row, size_t slot)
{
    return { static_cast<double>(M[row + slot]),
             static_cast<double>(M[2 * row + slot]),
             static_cast<double>(M[3 * row + slot]) };
}

/*! \brief L2L: a warp computes Rows coefficients for both octants of a pair.
 *
 *  What the loop reads is not in the task: parameters are known to be constant.
 *  \param[in] operators  [4 octants][tiles][n][c_tile]
 *  \param[in] parentL    of the parents */
template<class Shape, class Real>
__global__ void __launch_bounds__(Shape::c_downWarps* c_warp)
        shiftToChildren(const DownTask<Real> task,
                        const Real* __restrict__ operators,
                        const Real* __restrict__ parentL)
{
    constexpr int c_rows    = Shape::c_rows;
    constexpr int c_columns = Shape::c_columns;
    constexpr int c_threads = Shape::c_downWarps * c_warp;
    __shared__ int coefficient[(c_maxOrder + 1) * (c_maxOrder + 1)];
    const int n        = task.n;
    const int capacity = task.capacity;
    const int families = min(__ldg(task.count), capacity);
    const int first    = blockIdx.x * c_warp * c_columns;
    if (first >= families)
    {
        return;
    }
    for (int j = threadIdx.x; j < n; j += c_threads)
    {
        coefficient[j] = __ldg(task.columnOf + j);
    }
    __syncthreads();
    const int lane   = threadIdx.x % c_warp;
    const int groups = c_tile / c_rows * task.tiles; // of rows, per pair of octants
    const int group  = blockIdx.y * Shape::c_downWarps + threadIdx.x / c_warp;
    const int pair   = group / groups;
    const int row    = (group % groups) * c_rows;
    const int tile   = row / c_tile;
    if (pair >= 4)
    {
        return;
    }
    const Real* source[c_columns];
#pragma unroll
    for (int k = 0; k < c_columns; k++)
    {
        // a slot to read from even where there is none
        const int family = min(first + k * c_warp + lane, families - 1);
        source[k]        = parentL + max(__ldg(task.parentSlot + family), 0);
    }
    // contributions of even and of odd degrees
    Real sum[2][c_rows][c_columns] = {};
    const Real* T =
            operators + (static_cast<size_t>(pair) * task.tiles + tile) * n * c_tile + row % c_tile;
#pragma unroll
    for (int parity = 0; parity < 2; parity++)
    {
        const int end = (parity == 0) ? task.evenColumns : n;
#pragma unroll Shape::c_unroll
        for (int j = __ldg(task.firstColumn + 2 * tile + parity); j < end; j++)
        {
            Real t[c_rows];
            loadRows(T + static_cast<size_t>(j) * c_tile, t);
            const size_t at = static_cast<size_t>(coefficient[j]) * task.parentStride;
#pragma unroll
            for (int k = 0; k < c_columns; k++)
            {
                const Real x = source[k][at];
#pragma unroll
                for (int r = 0; r < c_rows; r++)
                {
                    sum[parity][r][k] += t[r] * x;
                }
            }
        }
    }
    int degree = 0;
    while ((degree + 1) * (degree + 1) <= row)
    {
        degree++;
    }
#pragma unroll
    for (int r = 0; r < c_rows; r++)
    {
        const int i = row + r;
        if (i >= n)
        {
            break;
        }
        degree += (i == (degree + 1) * (degree + 1)) ? 1 : 0;
        const Real sign = (degree % 2) ? Real(-1) : Real(1);
        Real near = 0, far = 0; // of the background, octants o and 7 - o
        if (i < c_shiftTerms)
        {
            near = static_cast<Real>(backgroundOfShift(i, task.shifts.s[pair], task.background));
            far = static_cast<Real>(backgroundOfShift(i, task.shifts.s[7 - pair], task.background));
        }
        Real* to = task.L + static_cast<size_t>(i) * task.stride + first + lane;
#pragma unroll
        for (int k = 0; k < c_columns; k++)
        {
            if (first + k * c_warp + lane < families)
            {
                const Real even                                       = sum[0][r][k];
                const Real odd                                        = sum[1][r][k];
                to[static_cast<size_t>(pair) * capacity + k * c_warp] = even + odd + near;
                to[static_cast<size_t>(7 - pair) * capacity + k * c_warp] =
                        sign * (even - odd) + far;
            }
        }
    }
}

//! Parts of the families that the blocks of the sums below take, for each octant.
FARFIELD_HD int blocksOfFamilies(int capacity)
{
    return (capacity + c_sumThreads - 1) / c_sumThreads;
}

//! Calls f(octant, slot) for each child that a thread of the sums below takes.
template<class F>
__device__ void forChildren(int capacity, const int* count, F f)
{
    const int families = min(*count, capacity);
    const int parts    = 8 * blocksOfFamilies(capacity);
    for (int part = blockIdx.x; part < parts; part += gridDim.x)
    {
        const int octant = part % 8;
        const int family = part / 8 * c_sumThreads + threadIdx.x;
        if (family < families)
        {
            f(octant, static_cast<size_t>(octant) * capacity + family);
        }
    }
}

//! -1/2 s (x) F of the children, F from what L2L has just written.
template<class Real>
__global__ void __launch_bounds__(c_sumThreads)
        sumVirial(const Children children,
                  const VirialTask task,
                  const TranslationGradient* __restrict__ gradient,
                  const Real* __restrict__ M,
                  const Real* __restrict__ L)
{
    const int stride = children.stride;
    double own[6]    = {};
    const auto add   = [&](int octant, size_t slot)
    {
        const int limits[4] = { 0, task.gradientEnd.x, task.gradientEnd.y, task.gradientEnd.z };
        double force[3]     = { 0, 0, 0 };
#pragma unroll
        for (int axis = 0; axis < 3; axis++)
        {
            for (int t = limits[axis]; t < limits[axis + 1]; t++)
            {
                const TranslationGradient term = gradient[t];
                const Real product             = static_cast<Real>(term.value)
                                     * L[static_cast<size_t>(term.from) * stride + slot]
                                     * M[static_cast<size_t>(term.to) * stride + slot];
                force[axis] -= static_cast<double>(product);
            }
        }
        if (children.n > 1)
        {
            addBackgroundForce(task.background, dipoleOf(M, children.stride, slot), force);
        }
        const double* s = children.shifts.s[octant];
        own[0] -= 0.5 * task.scale * s[0] * force[0];
        own[1] -= 0.5 * task.scale * s[1] * force[1];
        own[2] -= 0.5 * task.scale * s[2] * force[2];
        own[3] -= 0.25 * task.scale * (s[0] * force[1] + s[1] * force[0]);
        own[4] -= 0.25 * task.scale * (s[0] * force[2] + s[2] * force[0]);
        own[5] -= 0.25 * task.scale * (s[1] * force[2] + s[2] * force[1]);
    };
    forChildren(children.capacity, children.count, add);
    double* to[6];
    for (int k = 0; k < 6; k++)
    {
        to[k] = task.virial + k;
    }
    addInOrder<6>(own, task.sums, to);
}

//! 2 s.dipole + s^2 q of all children.
template<class Real>
__global__ void __launch_bounds__(c_sumThreads) sumTraceShift(const Children children,
                                                              const Real* __restrict__ M,
                                                              double scale,
                                                              double* sum,
                                                              OrderedSums::View sums)
{
    double own     = 0;
    const auto add = [&](int octant, size_t slot)
    {
        const double* s = children.shifts.s[octant];
        double value    = squaredShift(s) * static_cast<double>(M[slot]);
        if (children.n > 1)
        {
            value += shiftOfDipole(s, dipoleOf(M, children.stride, slot));
        }
        own += scale * value;
    };
    forChildren(children.capacity, children.count, add);
    addInOrder<1>(&own, sums, &sum);
}

//! Blocks of the sums above.
int blocksOfSum(const Families& families)
{
    return std::min(8 * blocksOfFamilies(families.capacity), OrderedSums::c_maxBlocks);
}

Shifts byValue(const double shifts[8][3])
{
    Shifts result;
    for (int o = 0; o < 8; o++)
    {
        std::copy_n(shifts[o], 3, result.s[o]);
    }
    return result;
}

Children childrenOf(int n, int stride, const Families& families, const Shifts& shifts)
{
    return { n, stride, families.capacity, families.count, shifts };
}

} // namespace

template<class Real>
void DeviceTranslations<Real>::l2l(const LevelView<Real>& parent,
                                   const LevelView<Real>& child,
                                   const Families& families,
                                   double background,
                                   double virialScale,
                                   const FarSums& sums,
                                   cudaStream_t stream) const
{
    if (families.capacity == 0)
    {
        return;
    }
    const int n               = (order_ + 1) * (order_ + 1);
    const Shifts shifts       = byValue(shifts_);
    const DownTask<Real> task = { n,
                                  downTiles_,
                                  downEvenColumns_,
                                  downColumns_.data(),
                                  downFirst_.data(),
                                  parent.stride,
                                  families.parentSlot,
                                  families.capacity,
                                  families.count,
                                  shifts,
                                  background,
                                  child.L,
                                  child.stride };
    launchFor<Real>(families.capacity,
                    [&](auto shape)
                    {
                        using Shape = decltype(shape);
                        const dim3 blocks(blocksFor(families.capacity, Shape::c_columns * c_warp),
                                          blocksFor(4 * downTiles_ * (c_tile / Shape::c_rows),
                                                    Shape::c_downWarps));
                        shiftToChildren<Shape, Real>
                                <<<blocks, Shape::c_downWarps * c_warp, 0, stream>>>(
                                        task, down_.data(), parent.L);
                    });
    checkLaunch("L2L");
    if (sums.virial != nullptr)
    {
        const VirialTask virial = { make_int3(gradientEnd_[0], gradientEnd_[1], gradientEnd_[2]),
                                    background,
                                    virialScale,
                                    sums.virial,
                                    sums.scratch->view() };
        sumVirial<Real><<<blocksOfSum(families), c_sumThreads, 0, stream>>>(
                childrenOf(n, child.stride, families, shifts),
                virial,
                gradient_.data(),
                child.M,
                child.L);
        checkLaunch("virial of L2L");
    }
}

template<class Real>
void DeviceTranslations<Real>::traceShift(const LevelView<Real>& child,
                                          const Families& families,
                                          double scale,
                                          double* sum,
                                          OrderedSums* scratch,
                                          cudaStream_t stream) const
{
    if (families.capacity == 0)
    {
        return;
    }
    const int n = (order_ + 1) * (order_ + 1);
    sumTraceShift<Real><<<blocksOfSum(families), c_sumThreads, 0, stream>>>(
            childrenOf(n, child.stride, families, byValue(shifts_)),
            child.M,
            scale,
            sum,
            scratch->view());
    checkLaunch("squared distances of children");
}

#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template void DeviceTranslations<Real>::l2l(const LevelView<Real>&,                            \
                                                const LevelView<Real>&,                            \
                                                const Families&,                                   \
                                                double,                                            \
                                                double,                                            \
                                                const FarSums&,                                    \
                                                cudaStream_t) const;                               \
    template void DeviceTranslations<Real>::traceShift(                                            \
            const LevelView<Real>&, const Families&, double, double*, OrderedSums*, cudaStream_t)  \
            const
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE

} // namespace farfield
