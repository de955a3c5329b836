/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/point_polynomials.h"

#include <cmath>
#include <vector>

#include "runtime/load.cuh"
#include "runtime/search.h"

namespace farfield
{
namespace
{

//! Threads that have a leaf, and points at a time.
constexpr int c_threads = 64, c_points = 32;
//! Threads that have a point each.
constexpr int c_pointThreads = 128;
//! Threads that share the polynomials of a point: they write the potential and the three fields.
constexpr int c_ofPoint = 4;

//! Twice a coordinate in the cell.
template<class Real>
__device__ __forceinline__ Real argument(const PolynomialsView<Real>& polynomials,
                                         const Real4<Real>& at,
                                         int axis)
{
    const auto& toCell = polynomials.cells.toCell;
    return 2 * (at.x * toCell[0][axis] + at.y * toCell[1][axis] + at.z * toCell[2][axis]);
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        multipoleKernel(const __grid_constant__ PolynomialsView<Real> polynomials,
                        LeavesView<Real> points,
                        const int* __restrict__ slots,
                        Real* __restrict__ M,
                        int stride)
{
    // one place more: neighbouring degrees are in different banks
    __shared__ Real values[3][c_mostDegree + 1][c_points + 1];
    const int thread = threadIdx.x;
    const int leaf   = blockIdx.x;
    const int end    = points.start[leaf + 1];
    Real* to         = M + static_cast<size_t>(slots == nullptr ? leaf : slots[leaf]) * stride;
    for (int a = thread; a < polynomials.coefficients && points.start[leaf] == end; a += c_threads)
    {
        to[a] = 0;
    }
    for (int first = points.start[leaf], begin = first; first < end; first += c_points)
    {
        const int count = min(c_points, end - first);
        __syncthreads();
        for (int k = thread; k < 3 * c_points; k += c_threads)
        {
            const int axis = k / c_points, point = k % c_points;
            if (point >= count)
            {
                continue;
            }
            const Real4<Real> at = load(points.at + first + point);
            const Real t         = argument(polynomials, at, axis);
            Real before = 0, last = axis == 0 ? at.w : Real(1);
            for (int n = 0; n <= polynomials.cells.degree; n++)
            {
                values[axis][n][point] = last;
                const Real next =
                        polynomials.ofLast[n] * t * last - polynomials.ofBefore[n] * before;
                before = last;
                last   = next;
            }
        }
        __syncthreads();
        for (int a = thread; a < polynomials.coefficients; a += c_threads)
        {
            const int powers = polynomials.powers[a];
            const Real* x    = values[0][powers & 255];
            const Real* y    = values[1][powers >> 8 & 255];
            const Real* z    = values[2][powers >> 16];
            Real sum         = 0;
            for (int point = 0; point < count; point++)
            {
                sum += x[point] * y[point] * z[point];
            }
            sum *= polynomials.factors[a];
            to[a] = first == begin ? sum : to[a] + sum;
        }
    }
}

template<class Real>
__global__ void __launch_bounds__(c_pointThreads)
        fieldKernel(const __grid_constant__ PolynomialsView<Real> polynomials,
                    LeavesView<Real> points,
                    const int* __restrict__ slots,
                    const Real* __restrict__ L,
                    int stride,
                    double factor,
                    double fieldFactor,
                    double* __restrict__ sums)
{
    const long long thread = static_cast<long long>(blockIdx.x) * c_pointThreads + threadIdx.x;
    const int own          = static_cast<int>(thread % c_ofPoint);
    // all threads of a warp have a point: they exchange results
    const int i    = static_cast<int>(min(thread / c_ofPoint, points.n - 1LL));
    const int leaf = partitionPoint(points.leaves, [&](int k) { return points.start[k] <= i; }) - 1;
    const Real* local    = L + static_cast<size_t>(slots == nullptr ? leaf : slots[leaf]) * stride;
    const Real* norm     = polynomials.factors;
    const Real4<Real> at = load(points.at + i);
    const Real tx = argument(polynomials, at, 0), ty = argument(polynomials, at, 1),
               tz    = argument(polynomials, at, 2);
    const int degree = polynomials.cells.degree;
    // values and slopes by recurrences: P'_k+1 = (4 k + 2) P_k + P'_k-1
    struct Recurrence
    {
        Real value = 1, slope = 0, valueBefore = 0, slopeBefore = 0;

        __device__ __forceinline__ void next(const PolynomialsView<Real>& p, Real t, int k)
        {
            const Real valueNext = p.ofLast[k] * t * value - p.ofBefore[k] * valueBefore;
            const Real slopeNext = static_cast<Real>(4 * k + 2) * value + slopeBefore;
            valueBefore          = value;
            slopeBefore          = slope;
            value                = valueNext;
            slope                = slopeNext;
        }
    };
    Real phi = 0, slopes[3] = { 0, 0, 0 };
    Recurrence x;
    for (int a = 0; a <= degree; a++)
    {
        if (a % c_ofPoint != own)
        {
            const int skipped = (degree - a + 1) * (degree - a + 2) / 2;
            local += skipped;
            norm += skipped;
            x.next(polynomials, tx, a);
            continue;
        }
        Real value = 0, alongY = 0, alongZ = 0;
        Recurrence y;
        for (int b = 0; b <= degree - a; b++)
        {
            Real inner = 0, innerSlope = 0;
            Recurrence z;
            for (int c = 0; c <= degree - a - b; c++, local++, norm++)
            {
                const Real l = *local * *norm;
                inner += l * z.value;
                innerSlope += l * z.slope;
                z.next(polynomials, tz, c);
            }
            value += y.value * inner;
            alongY += y.slope * inner;
            alongZ += y.value * innerSlope;
            y.next(polynomials, ty, b);
        }
        phi += x.value * value;
        slopes[0] += x.slope * value;
        slopes[1] += x.value * alongY;
        slopes[2] += x.value * alongZ;
        x.next(polynomials, tx, a);
    }
    for (int other = 1; other < c_ofPoint; other *= 2)
    {
        phi += __shfl_xor_sync(0xffffffffU, phi, other);
#pragma unroll
        for (Real& slope : slopes)
        {
            slope += __shfl_xor_sync(0xffffffffU, slope, other);
        }
    }
    if (thread >= static_cast<long long>(c_ofPoint) * points.n)
    {
        return;
    }
    double result = factor * static_cast<double>(phi);
#pragma unroll
    for (int k = 0; k < 3; k++)
    {
        const auto& row     = polynomials.cells.toCell[k];
        const Real gradient = row[0] * slopes[0] + row[1] * slopes[1] + row[2] * slopes[2];
        result              = own == 1 + k ? -fieldFactor * static_cast<double>(gradient) : result;
    }
    sums[static_cast<size_t>(own) * points.n + i] += result;
}

} // namespace

template<class Real>
void PolynomialsOnDevice<Real>::set(const LegendreBasis& basis, cudaStream_t stream)
{
    std::vector<int> powers;
    std::vector<Real> factors;
    for (const Int3& a : basis.powers())
    {
        powers.push_back(a[0] | a[1] << 8 | a[2] << 16);
        factors.push_back(static_cast<Real>(
                std::sqrt((2.0 * a[0] + 1) * (2.0 * a[1] + 1) * (2.0 * a[2] + 1))));
    }
    powers_.upload(powers.data(), powers.size(), stream);
    factors_.upload(factors.data(), factors.size(), stream);
}

template<class Real>
PolynomialsView<Real> PolynomialsOnDevice<Real>::view(const CellPolynomials<Real>& cells) const
{
    PolynomialsView<Real> view{
        cells, static_cast<int>(powers_.size()), powers_.data(), factors_.data(), {}, {}
    };
    for (int k = 0; k <= c_mostDegree; k++)
    {
        view.ofLast[k]   = static_cast<Real>((2 * k + 1) / (k + 1.0));
        view.ofBefore[k] = static_cast<Real>(k / (k + 1.0));
    }
    return view;
}

template<class Real>
void pointsToMultipoles(const PolynomialsView<Real>& polynomials,
                        const LeavesView<Real>& points,
                        const int* slots,
                        Real* M,
                        int stride,
                        cudaStream_t stream)
{
    if (points.leaves > 0)
    {
        multipoleKernel<<<points.leaves, c_threads, 0, stream>>>(
                polynomials, points, slots, M, stride);
        checkLaunch("P2M");
    }
}

template<class Real>
void localsToPoints(const PolynomialsView<Real>& polynomials,
                    const LeavesView<Real>& points,
                    const int* slots,
                    const Real* L,
                    int stride,
                    double factor,
                    double unit,
                    double* sums,
                    cudaStream_t stream)
{
    if (points.n > 0)
    {
        fieldKernel<<<blocksFor(static_cast<long long>(c_ofPoint) * points.n, c_pointThreads),
                      c_pointThreads,
                      0,
                      stream>>>(polynomials, points, slots, L, stride, factor, factor / unit, sums);
        checkLaunch("L2P");
    }
}

template class PolynomialsOnDevice<float>;
template class PolynomialsOnDevice<double>;
template void pointsToMultipoles(const PolynomialsView<float>&,
                                 const LeavesView<float>&,
                                 const int*,
                                 float*,
                                 int,
                                 cudaStream_t);
template void pointsToMultipoles(const PolynomialsView<double>&,
                                 const LeavesView<double>&,
                                 const int*,
                                 double*,
                                 int,
                                 cudaStream_t);
template void localsToPoints(const PolynomialsView<float>&,
                             const LeavesView<float>&,
                             const int*,
                             const float*,
                             int,
                             double,
                             double,
                             double*,
                             cudaStream_t);
template void localsToPoints(const PolynomialsView<double>&,
                             const LeavesView<double>&,
                             const int*,
                             const double*,
                             int,
                             double,
                             double,
                             double*,
                             cudaStream_t);

} // namespace farfield
