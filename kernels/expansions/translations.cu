/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// M2M and L2L as products of small dense operators with many columns, the families. A warp computes
// Rows coefficients of 32 Columns families: lanes are neighbouring families, operators are the same
// for all lanes. Shifts of opposite octants o and 7 - o are opposite, so that their operators
// differ in signs (-1)^(l_i + l_j) alone: sums and differences of the two octants do for both,
// which halves the work. What couples degrees the wrong way round is zero and left out.
#include <algorithm>

#include "expansions/expansions.h"

namespace farfield
{
namespace
{

constexpr int c_tile = DeviceTranslations<float>::c_tile;
//! From this many families on throughput counts, below it the time of a single block.
constexpr int c_manyFamilies = 8192;
constexpr int c_sumThreads   = 128;
constexpr int c_clearThreads = 256;

//! Shapes of the launches for few and for many families.
struct FewFamilies
{
    static constexpr int c_rows = 4, c_columns = 1, c_upGroups = 2, c_downWarps = 4, c_unroll = 8;
};
template<class Real>
struct ManyFamilies
{
    // bounded by shared memory in double precision
    static constexpr int c_rows = 8, c_columns = 2, c_upGroups = 16 / sizeof(Real), c_downWarps = 8,
                         c_unroll = 4;
};

//! Shifts of the octants, by value.
struct Shifts
{
    double s[8][3];
};

//! Reads neighbouring elements of an operator.
template<int Rows, class Real>
__device__ void loadRows(const Real* from, Real (&to)[Rows])
{
    constexpr int c_pack = 16 / sizeof(Real);
    struct alignas(16) Pack
    {
        Real v[c_pack];
    };
#pragma unroll
    for (int k = 0; k < Rows / c_pack; k++)
    {
        const Pack pack = reinterpret_cast<const Pack*>(from)[k];
#pragma unroll
        for (int e = 0; e < c_pack; e++)
        {
            to[k * c_pack + e] = pack.v[e];
        }
    }
}

/*! \brief Clears multipoles: those of cells without particles stay zero.
 *
 *  A kernel, as cudaMemsetAsync() has no priority in a graph: it would wait for the near field. */
template<class Real>
__global__ void __launch_bounds__(c_clearThreads) clearMultipoles(Real4<Real>* values, size_t count)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * c_clearThreads + threadIdx.x;
    if (at < count)
    {
        values[at] = { 0, 0, 0, 0 };
    }
}

/*! \brief M2M: four warps, one for each pair of octants, share Rows coefficients.
 *
 *  \param[in] evenTiles  tiles of rows of even degree; those of odd degree follow */
template<class Shape, class Real>
__global__ void __launch_bounds__(4 * Shape::c_upGroups * c_warp)
        sumChildren(int n,
                    int tiles,
                    int evenTiles,
                    const Real* __restrict__ operators,
                    const int* __restrict__ rowOf,
                    const int* __restrict__ terms,
                    const Real* __restrict__ M,
                    int stride,
                    int capacity,
                    const int* __restrict__ count,
                    const int* __restrict__ parentSlot,
                    Real* __restrict__ parentM,
                    int parentStride)
{
    constexpr int c_rows    = Shape::c_rows;
    constexpr int c_columns = Shape::c_columns;
    constexpr int c_values  = c_rows * c_columns;
    __shared__ Real part[Shape::c_upGroups][4][c_values][c_warp];
    const int families = min(*count, capacity);
    const int first    = blockIdx.x * c_warp * c_columns;
    if (first >= families)
    {
        return;
    }
    const int lane  = threadIdx.x % c_warp;
    const int pair  = threadIdx.x / c_warp % 4;
    const int local = threadIdx.x / c_warp / 4;
    const int row   = (blockIdx.y * Shape::c_upGroups + local) * c_rows;
    const int tile  = row / c_tile;
    int family[c_columns];
    int column[c_columns]; // one to read from even where there is no family
#pragma unroll
    for (int k = 0; k < c_columns; k++)
    {
        family[k] = first + k * c_warp + lane;
        column[k] = min(family[k], families - 1);
    }
    if (tile < tiles)
    {
        Real sum[c_rows][c_columns] = {};
        const Real* T =
                operators + (static_cast<size_t>(tile) * 4 + pair) * n * c_tile + row % c_tile;
        const Real* a    = M + static_cast<size_t>(pair) * capacity;
        const Real* b    = M + static_cast<size_t>(7 - pair) * capacity;
        const int length = terms[tile];
        Real sign        = (tile < evenTiles) ? Real(1) : Real(-1);
        int degree       = 0;
#pragma unroll Shape::c_unroll
        for (int j = 0; j < length; j++)
        {
            if (j == (degree + 1) * (degree + 1))
            {
                degree++;
                sign = -sign;
            }
            Real t[c_rows];
            loadRows(T + static_cast<size_t>(j) * c_tile, t);
            const size_t at = static_cast<size_t>(j) * stride;
#pragma unroll
            for (int k = 0; k < c_columns; k++)
            {
                const Real x = a[at + column[k]] + sign * b[at + column[k]];
#pragma unroll
                for (int r = 0; r < c_rows; r++)
                {
                    sum[r][k] += t[r] * x;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < c_rows; r++)
        {
#pragma unroll
            for (int k = 0; k < c_columns; k++)
            {
                part[local][pair][r * c_columns + k][lane] = sum[r][k];
            }
        }
    }
    __syncthreads();
    if (tile >= tiles)
    {
        return;
    }
#pragma unroll
    for (int v = 0; v < c_values / 4; v++)
    {
        // the columns of a row go to the same warp where they can
        const int value = pair * (c_values / 4) + v;
        const int i     = rowOf[row + value / c_columns];
        const int f     = first + (value % c_columns) * c_warp + lane;
        const int slot  = (f < families) ? parentSlot[f] : -1;
        if (i >= 0 && slot >= 0)
        {
            parentM[static_cast<size_t>(i) * parentStride + slot] =
                    (part[local][0][value][lane] + part[local][1][value][lane])
                    + (part[local][2][value][lane] + part[local][3][value][lane]);
        }
    }
}

//! Background potential about the centre of a child, coefficient i; see Hierarchy::l2l().
__device__ double backgroundTerm(int i, const double* s, double background)
{
    switch (i)
    {
        case 0:
            return background * (s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
        case 1:
            return -2 * background * s[1];
        case 2:
            return 2 * background * s[2];
        case 3:
            return -2 * background * s[0];
        default:
            return 0;
    }
}

//! L2L: a warp computes Rows coefficients for both octants of a pair.
template<class Shape, class Real>
__global__ void __launch_bounds__(Shape::c_downWarps* c_warp)
        shiftToChildren(int n,
                        int tiles,
                        int evenColumns,
                        const Real* __restrict__ operators,
                        const int* __restrict__ columnOf,
                        const int* __restrict__ firstColumn,
                        const Real* __restrict__ parentL,
                        int parentStride,
                        const int* __restrict__ parentSlot,
                        int capacity,
                        const int* __restrict__ count,
                        Shifts shifts,
                        double background,
                        Real* __restrict__ L,
                        int stride)
{
    constexpr int c_rows    = Shape::c_rows;
    constexpr int c_columns = Shape::c_columns;
    constexpr int c_threads = Shape::c_downWarps * c_warp;
    __shared__ int coefficient[(c_maxOrder + 1) * (c_maxOrder + 1)];
    const int families = min(*count, capacity);
    const int first    = blockIdx.x * c_warp * c_columns;
    if (first >= families)
    {
        return;
    }
    for (int j = threadIdx.x; j < n; j += c_threads)
    {
        coefficient[j] = columnOf[j];
    }
    __syncthreads();
    const int lane   = threadIdx.x % c_warp;
    const int groups = c_tile / c_rows * tiles; // of rows, per pair of octants
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
        source[k] = parentL + max(parentSlot[min(first + k * c_warp + lane, families - 1)], 0);
    }
    // contributions of even and of odd degrees
    Real sum[2][c_rows][c_columns] = {};
    const Real* T =
            operators + (static_cast<size_t>(pair) * tiles + tile) * n * c_tile + row % c_tile;
#pragma unroll
    for (int parity = 0; parity < 2; parity++)
    {
        const int end = (parity == 0) ? evenColumns : n;
#pragma unroll Shape::c_unroll
        for (int j = firstColumn[2 * tile + parity]; j < end; j++)
        {
            Real t[c_rows];
            loadRows(T + static_cast<size_t>(j) * c_tile, t);
            const size_t at = static_cast<size_t>(coefficient[j]) * parentStride;
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
        if (i < 4)
        {
            near = static_cast<Real>(backgroundTerm(i, shifts.s[pair], background));
            far  = static_cast<Real>(backgroundTerm(i, shifts.s[7 - pair], background));
        }
        Real* to = L + static_cast<size_t>(i) * stride + first + lane;
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
        sumVirial(int n,
                  const TranslationGradient* __restrict__ gradient,
                  int3 end,
                  const Real* __restrict__ M,
                  const Real* __restrict__ L,
                  int stride,
                  int capacity,
                  const int* __restrict__ count,
                  Shifts shifts,
                  double background,
                  double scale,
                  double* virial,
                  OrderedSums::View sums)
{
    double own[6]  = {};
    const auto add = [&](int octant, size_t slot)
    {
        const int limits[4] = { 0, end.x, end.y, end.z };
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
        if (n > 1)
        {
            // what is left of the background, |b|^2, pulls at the dipole
            const size_t row = stride;
            force[0] += 2 * background * static_cast<double>(M[3 * row + slot]);
            force[1] += 2 * background * static_cast<double>(M[row + slot]);
            force[2] -= 2 * background * static_cast<double>(M[2 * row + slot]);
        }
        const double* s = shifts.s[octant];
        own[0] -= 0.5 * scale * s[0] * force[0];
        own[1] -= 0.5 * scale * s[1] * force[1];
        own[2] -= 0.5 * scale * s[2] * force[2];
        own[3] -= 0.25 * scale * (s[0] * force[1] + s[1] * force[0]);
        own[4] -= 0.25 * scale * (s[0] * force[2] + s[2] * force[0]);
        own[5] -= 0.25 * scale * (s[1] * force[2] + s[2] * force[1]);
    };
    forChildren(capacity, count, add);
    double* to[6];
    for (int k = 0; k < 6; k++)
    {
        to[k] = virial + k;
    }
    addInOrder<6>(own, sums, to);
}

//! 2 s.dipole + s^2 q of all children.
template<class Real>
__global__ void __launch_bounds__(c_sumThreads) sumTraceShift(int n,
                                                              const Real* __restrict__ M,
                                                              int stride,
                                                              int capacity,
                                                              const int* __restrict__ count,
                                                              Shifts shifts,
                                                              double scale,
                                                              double* energy,
                                                              OrderedSums::View sums)
{
    double own     = 0;
    const auto add = [&](int octant, size_t slot)
    {
        const size_t row = stride;
        const double* s  = shifts.s[octant];
        double value     = (s[0] * s[0] + s[1] * s[1] + s[2] * s[2]) * static_cast<double>(M[slot]);
        if (n > 1)
        {
            // u_1,1 = -x, u_1,-1 = -y, u_1,0 = z
            value += 2
                     * (s[2] * static_cast<double>(M[2 * row + slot])
                        - s[0] * static_cast<double>(M[3 * row + slot])
                        - s[1] * static_cast<double>(M[row + slot]));
        }
        own += scale * value;
    };
    forChildren(capacity, count, add);
    addInOrder<1>(&own, sums, &energy);
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

} // namespace

template<class Real>
void DeviceTranslations<Real>::m2m(const LevelView<Real>& child,
                                   const Families& families,
                                   const LevelView<Real>& parent,
                                   cudaStream_t stream) const
{
    const int n = (order_ + 1) * (order_ + 1);
    // the stride is a multiple of four
    const size_t values = static_cast<size_t>(n) * parent.stride / 4;
    clearMultipoles<<<blocksFor(values, c_clearThreads), c_clearThreads, 0, stream>>>(
            reinterpret_cast<Real4<Real>*>(parent.M), values);
    checkLaunch("clearing multipoles");
    if (families.capacity == 0)
    {
        return;
    }
    const auto launch = [&](auto shape)
    {
        using Shape = decltype(shape);
        const dim3 blocks(blocksFor(families.capacity, Shape::c_columns * c_warp),
                          blocksFor(upTiles_ * (c_tile / Shape::c_rows), Shape::c_upGroups));
        sumChildren<Shape, Real>
                <<<blocks, 4 * Shape::c_upGroups * c_warp, 0, stream>>>(n,
                                                                        upTiles_,
                                                                        upEvenTiles_,
                                                                        up_.data(),
                                                                        upRows_.data(),
                                                                        upTerms_.data(),
                                                                        child.M,
                                                                        child.stride,
                                                                        families.capacity,
                                                                        families.count,
                                                                        families.parentSlot,
                                                                        parent.M,
                                                                        parent.stride);
    };
    if (families.capacity < c_manyFamilies)
    {
        launch(FewFamilies());
    }
    else
    {
        launch(ManyFamilies<Real>());
    }
    checkLaunch("M2M");
}

template<class Real>
void DeviceTranslations<Real>::l2l(const LevelView<Real>& parent,
                                   const LevelView<Real>& child,
                                   const Families& families,
                                   double background,
                                   double virialScale,
                                   double* virial,
                                   OrderedSums* scratch,
                                   cudaStream_t stream) const
{
    if (families.capacity == 0)
    {
        return;
    }
    const int n         = (order_ + 1) * (order_ + 1);
    const Shifts shifts = byValue(shifts_);
    const auto launch   = [&](auto shape)
    {
        using Shape = decltype(shape);
        const dim3 blocks(blocksFor(families.capacity, Shape::c_columns * c_warp),
                          blocksFor(4 * downTiles_ * (c_tile / Shape::c_rows), Shape::c_downWarps));
        shiftToChildren<Shape, Real>
                <<<blocks, Shape::c_downWarps * c_warp, 0, stream>>>(n,
                                                                     downTiles_,
                                                                     downEvenColumns_,
                                                                     down_.data(),
                                                                     downColumns_.data(),
                                                                     downFirst_.data(),
                                                                     parent.L,
                                                                     parent.stride,
                                                                     families.parentSlot,
                                                                     families.capacity,
                                                                     families.count,
                                                                     shifts,
                                                                     background,
                                                                     child.L,
                                                                     child.stride);
    };
    if (families.capacity < c_manyFamilies)
    {
        launch(FewFamilies());
    }
    else
    {
        launch(ManyFamilies<Real>());
    }
    checkLaunch("L2L");
    if (virial != nullptr)
    {
        const int blocks =
                std::min(8 * blocksOfFamilies(families.capacity), OrderedSums::c_maxBlocks);
        sumVirial<Real><<<blocks, c_sumThreads, 0, stream>>>(
                n,
                gradient_.data(),
                make_int3(gradientEnd_[0], gradientEnd_[1], gradientEnd_[2]),
                child.M,
                child.L,
                child.stride,
                families.capacity,
                families.count,
                shifts,
                background,
                virialScale,
                virial,
                scratch->view());
        checkLaunch("virial of L2L");
    }
}

template<class Real>
void DeviceTranslations<Real>::traceShift(const LevelView<Real>& child,
                                          const Families& families,
                                          double scale,
                                          double* energy,
                                          OrderedSums* scratch,
                                          cudaStream_t stream) const
{
    if (families.capacity == 0)
    {
        return;
    }
    const int blocks = std::min(8 * blocksOfFamilies(families.capacity), OrderedSums::c_maxBlocks);
    sumTraceShift<Real><<<blocks, c_sumThreads, 0, stream>>>((order_ + 1) * (order_ + 1),
                                                             child.M,
                                                             child.stride,
                                                             families.capacity,
                                                             families.count,
                                                             byValue(shifts_),
                                                             scale,
                                                             energy,
                                                             scratch->view());
    checkLaunch("energy of children in the background");
}

// set() is compiled with the host's tables
template void DeviceTranslations<float>::m2m(const LevelView<float>&,
                                             const Families&,
                                             const LevelView<float>&,
                                             cudaStream_t) const;
template void DeviceTranslations<double>::m2m(const LevelView<double>&,
                                              const Families&,
                                              const LevelView<double>&,
                                              cudaStream_t) const;
template void DeviceTranslations<float>::l2l(const LevelView<float>&,
                                             const LevelView<float>&,
                                             const Families&,
                                             double,
                                             double,
                                             double*,
                                             OrderedSums*,
                                             cudaStream_t) const;
template void DeviceTranslations<double>::l2l(const LevelView<double>&,
                                              const LevelView<double>&,
                                              const Families&,
                                              double,
                                              double,
                                              double*,
                                              OrderedSums*,
                                              cudaStream_t) const;
template void DeviceTranslations<float>::traceShift(const LevelView<float>&,
                                                    const Families&,
                                                    double,
                                                    double*,
                                                    OrderedSums*,
                                                    cudaStream_t) const;
template void DeviceTranslations<double>::traceShift(const LevelView<double>&,
                                                     const Families&,
                                                     double,
                                                     double*,
                                                     OrderedSums*,
                                                     cudaStream_t) const;

} // namespace farfield
