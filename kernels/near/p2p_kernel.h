/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The near-field kernel.
 *
 *  A warp takes the particles of a cell as targets, in groups that fit into registers; its lanes
 * are sources. All sources of the cell, from several cells, are one sequence that is cut into
 * batches of a warp, so that lanes are idle in the last batch only. With the third law the force on
 * a source is added to memory by one vector reduction per batch, that on targets by one per group.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_KERNEL_H
#define FARFIELD_KERNELS_NEAR_P2P_KERNEL_H

#include <climits>
#include <type_traits>

#include "near/near.h"
#include "near/near_pieces.h"

namespace farfield
{

/*! \brief Parameters of the kernel at compile time.
 *
 *  There is one loop for all numbers of targets, so that it stays in the instruction cache: parts
 * of it are skipped.
 *
 *  \tparam Targets_ targets of a lane: their forces lie in registers
 *  \tparam Least_   at least so many targets are computed, zeros if there are fewer
 *  \tparam Step_    targets beyond those are computed in portions of this
 *  \tparam Parts_   parts of a warp that hold different targets and share the sources
 *  \tparam Held_    positions of so many targets lie in registers, the others in shared memory
 *  \tparam Ahead_   sources are loaded one batch ahead
 *  \tparam Spread_  forces on targets are summed through shared memory instead of shuffles
 *  \tparam Shares_  several warps may share a cell
 *  \tparam Blocks_  blocks per multiprocessor for which registers are allotted */
template<class Real_,
         int Ws_,
         bool ThirdLaw_,
         NearSums Sums_,
         int Targets_,
         int Least_,
         int Step_,
         int Parts_,
         int Held_,
         bool Ahead_,
         bool Spread_,
         bool Shares_,
         int Warps_,
         int Blocks_>
struct P2pShape
{
    using Real                        = Real_;
    static constexpr int c_ws         = Ws_;
    static constexpr bool c_thirdLaw  = ThirdLaw_;
    static constexpr bool c_energy    = Sums_ != NearSums::None;
    static constexpr bool c_virial    = Sums_ == NearSums::EnergyAndVirial;
    static constexpr int c_targets    = Targets_;
    static constexpr int c_least      = Least_;
    static constexpr int c_step       = Step_;
    static constexpr int c_parts      = Parts_;
    static constexpr int c_held       = Held_;
    static constexpr bool c_ahead     = Ahead_;
    static constexpr bool c_spread    = Spread_;
    static constexpr bool c_shares    = Shares_;
    static constexpr int c_warps      = Warps_;
    static constexpr int c_blocks     = Blocks_;
    static constexpr int c_batch      = c_warp / Parts_; //!< sources at a time
    static constexpr int c_capacity   = Targets_ * Parts_;
    static constexpr int c_pieces     = NearPieces<Ws_, ThirdLaw_>::c_count;
    static constexpr int c_perLane    = (c_pieces + c_warp - 1) / c_warp;
    static constexpr bool c_reactions = ThirdLaw_ || c_virial;
    static_assert((Targets_ - Least_) % Step_ == 0 && Least_ > 0, "sizes end at the largest");
    static_assert(Targets_ <= 31 && Targets_ <= c_batch,
                  "targets are bits of a word, and reduced to lanes");
    static_assert(Held_ >= 0 && Held_ <= Targets_, "targets are held or not");
    static_assert(Targets_ * Parts_ <= c_warp, "each lane stores a target");
    static_assert(!Spread_ || (Parts_ == 1 && Targets_ % 4 == 0 && Targets_ > 4),
                  "four targets at a time");
};

//! Arguments of the kernel.
template<class Real>
struct P2pTask
{
    SortedParticles<Real> particles;
    NeighbourFinder grid;
    Real edges[3][3];
    OccupiedCells occupied;
    int logShares; //!< binary logarithm of the number of warps that share a cell
    typename DeviceExclusions<Real>::View exclusions;
    Real close2; //!< squared distance below which pairs may be left out, nm^2
    Real4<Real>* forces;
    NearTotals* totals;
    OrderedSums::View sums;
};

namespace p2pDetail
{

constexpr unsigned int c_all = 0xffffffffU;

//! A neighbouring cell that holds particles.
template<class Real>
struct alignas(4 * sizeof(Real)) Piece
{
    Real x, y, z; //!< displacement of its centre, nm
    int shift;    //!< from positions in the sequence of sources to sorted particles
};

//! A source as it was loaded.
template<class Real>
struct Source
{
    Real4<Real> xq;
    Real x, y, z; //!< displacement of its cell
    int index;    //!< sorted
};

__device__ __forceinline__ Real4<float> load(const Real4<float>* from)
{
    const float4 v = __ldg(reinterpret_cast<const float4*>(from));
    return { v.x, v.y, v.z, v.w };
}
__device__ __forceinline__ Real4<double> load(const Real4<double>* from)
{
    const double2 a = __ldg(reinterpret_cast<const double2*>(from));
    const double2 b = __ldg(reinterpret_cast<const double2*>(from) + 1);
    return { a.x, a.y, b.x, b.y };
}

//! Adds a force if that is wanted; predicated, so that the warp does not diverge.
__device__ __forceinline__ void add(bool wanted, Real4<float>* to, float x, float y, float z)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n\t.reg .pred wanted;\n\t"
                 "setp.ne.u32 wanted, %5, 0;\n\t"
                 "@wanted red.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(
                         __cvta_generic_to_global(to)),
                 "f"(x),
                 "f"(y),
                 "f"(z),
                 "f"(0.0F),
                 "r"(static_cast<unsigned int>(wanted)));
#else
    if (wanted)
    {
        atomicAdd(&to->x, x);
        atomicAdd(&to->y, y);
        atomicAdd(&to->z, z);
    }
#endif
}
__device__ __forceinline__ void add(bool wanted, float* to, float x)
{
    asm volatile("{\n\t.reg .pred wanted;\n\t"
                 "setp.ne.u32 wanted, %2, 0;\n\t"
                 "@wanted red.global.add.f32 [%0], %1;\n\t}" ::"l"(__cvta_generic_to_global(to)),
                 "f"(x),
                 "r"(static_cast<unsigned int>(wanted)));
}
__device__ __forceinline__ void add(bool wanted, double* to, double x)
{
    if (wanted)
    {
        atomicAdd(to, x);
    }
}
__device__ __forceinline__ void add(bool wanted, Real4<double>* to, double x, double y, double z)
{
    if (wanted)
    {
        atomicAdd(&to->x, x);
        atomicAdd(&to->y, y);
        atomicAdd(&to->z, z);
    }
}

__device__ __forceinline__ float inverseRoot(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double inverseRoot(double x)
{
    return rsqrt(x);
}
//! To the last digit: errors of the approximation do not average out where distances are
//! constrained.
__device__ __forceinline__ float refined(float y, float x)
{
    return fmaf(0.5F * y, fmaf(-x * y, y, 1.0F), y);
}
__device__ __forceinline__ double refined(double y, double /*x*/)
{
    return y;
}

//! A bit, none for numbers outside a word.
__device__ __forceinline__ unsigned int bit(int number)
{
    unsigned int bits;
    asm("shl.b32 %0, 1, %1;" : "=r"(bits) : "r"(number));
    return bits;
}

__device__ __forceinline__ unsigned int reduceOr(unsigned int bits)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(c_all, bits);
#else
    for (int offset = 16; offset > 0; offset /= 2)
    {
        bits |= __shfl_xor_sync(c_all, bits, offset);
    }
    return bits;
#endif
}

//! The number of a lane in all of them; the compiler knows then that the warp does not diverge.
__device__ __forceinline__ int uniform(int value, int lane)
{
#if __CUDA_ARCH__ >= 800
    return static_cast<int>(__reduce_or_sync(c_all,
                                             (static_cast<int>(threadIdx.x) % c_warp == lane)
                                                     ? static_cast<unsigned int>(value)
                                                     : 0U));
#else
    return __shfl_sync(c_all, value, lane);
#endif
}

//! Pieces of a warp in shared memory.
template<class Real>
class PieceList
{
public:
    __device__ __forceinline__ explicit PieceList(const Piece<Real>* pieces) :
        address_(uniform(static_cast<int>(__cvta_generic_to_shared(pieces)), 0))
    {
    }
    __device__ __forceinline__ Piece<Real> operator[](int k) const
    {
        const int at = address_ + k * static_cast<int>(sizeof(Piece<Real>));
        Piece<Real> p;
        read(at, &p);
        return p;
    }

private:
    __device__ __forceinline__ static void read(int at, Piece<float>* p)
    {
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(p->x), "=f"(p->y), "=f"(p->z), "=r"(p->shift)
                     : "r"(at)
                     : "memory");
    }
    __device__ __forceinline__ static void read(int at, Piece<double>* p)
    {
        asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];"
                     : "=d"(p->x), "=d"(p->y)
                     : "r"(at)
                     : "memory");
        asm volatile("ld.shared.f64 %0, [%1 + 16];" : "=d"(p->z) : "r"(at) : "memory");
        asm volatile("ld.shared.b32 %0, [%1 + 24];" : "=r"(p->shift) : "r"(at) : "memory");
    }
    int address_; //!< kept by the compiler
};

//! The same; the compiler does not know that, and keeps the value instead of computing it anew.
template<class T>
__device__ __forceinline__ T kept(T value)
{
    return __shfl_sync(c_all, value, static_cast<int>(threadIdx.x) % c_warp);
}

//! Calls step(k) for k < Count, at least for the first 'size'; the others are skipped in portions.
template<int Least, int Portion, int Count, int From = 0, class Step>
__device__ __forceinline__ void forFirst(int size, const Step& step)
{
#pragma unroll
    for (int k = From; k < Least; k++)
    {
        step(k);
    }
    if constexpr (Least < Count)
    {
        if (size > Least)
        {
            constexpr int c_next = Least + Portion < Count ? Least + Portion : Count;
            forFirst<c_next, Portion, Count, Least>(size, step);
        }
    }
}

/*! \brief Sums of the first 'size' of Count vectors over 2 Offset lanes, one vector per lane.
 *
 *  In every step lanes exchange the half of the vectors that the other one keeps, so the cost is
 * that of summing about one vector per step and target, not five. \returns the vector whose sum is
 * in element 0, at least Count for none */
template<int Count, int Offset, int Size, class Real>
__device__ __forceinline__ int
transposedSum(Real (&x)[Size], Real (&y)[Size], Real (&z)[Size], int size, int lane)
{
    constexpr int c_none = 1024;
    if constexpr (Offset == 0)
    {
        static_assert(Count == 1, "more vectors than lanes");
        return 0;
    }
    else
    {
        const bool upper      = (lane & Offset) != 0;
        constexpr int c_of    = (Count + 1) / 2;
        constexpr int c_whole = c_of > 4 ? 2 : c_of; // skipping fewer does not pay
        forFirst<c_whole, c_whole, c_of>((size + 1) / 2,
                                         [&](int k)
                                         {
                                             const bool pair = 2 * k + 1 < Count;
                                             const auto step = [&](Real* v)
                                             {
                                                 const Real other = v[pair ? 2 * k + 1 : 2 * k];
                                                 const Real sent  = upper ? v[2 * k] : other;
                                                 const Real kept  = upper ? other : v[2 * k];
                                                 v[k] = kept + __shfl_xor_sync(c_all, sent, Offset);
                                             };
                                             step(x);
                                             step(y);
                                             step(z);
                                         });
        const int inner = 2 * transposedSum<c_of, Offset / 2>(x, y, z, (size + 1) / 2, lane)
                          + (upper ? 1 : 0);
        return inner < Count ? inner : c_none;
    }
}

/*! \brief Sums of vectors over a warp through shared memory.
 *
 *  Fewer instructions than transposedSum(), but much shared memory. Four numbers are moved at a
 * time: a component of four vectors. Rows have an odd number of such quadruples, so that no access
 * meets a bank twice. */
template<int Count, class Real>
struct SpreadSum
{
    static constexpr int c_fours  = Count / 4;
    static constexpr int c_values = 3 * c_fours;  //!< quadruples
    static constexpr int c_row    = c_values | 1; //!< their number with padding
    static constexpr int c_length = c_row * c_warp;
    static constexpr int c_lanes =
            (c_warp / c_values < 4) ? c_warp / c_values : 4; //!< per quadruple

    //! Components of vectors 4 (lane % c_fours) and following; valid in lanes below c_values.
    static __device__ __forceinline__ Real4<Real>
    sum(Real4<Real>* rows, const Real* x, const Real* y, const Real* z, int size, int lane)
    {
        __syncwarp();
        Real4<Real>* own = rows + lane * c_row;
        forFirst<1, 1, c_fours>(
                (size + 3) / 4,
                [&](int k)
                {
                    const auto store = [&](int at, const Real* v) {
                        own[at] = { v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3] };
                    };
                    store(k, x);
                    store(c_fours + k, y);
                    store(2 * c_fours + k, z);
                });
        __syncwarp();
        const int value = lane % c_values;
        const int from  = lane / c_values;
        Real4<Real> all = { 0, 0, 0, 0 };
#pragma unroll
        for (int row = 0; row < c_warp; row += c_lanes)
        {
            // lanes beyond the last group read in vain, but not behind the end
            if (row + c_warp / c_values < c_warp || row + from < c_warp)
            {
                const Real4<Real> v = rows[(row + from) * c_row + value];
                all.x += v.x;
                all.y += v.y;
                all.z += v.z;
                all.w += v.w;
            }
        }
        Real4<Real> total = all;
#pragma unroll
        for (int other = 1; other < c_lanes; other++)
        {
            total.x += __shfl_down_sync(c_all, all.x, other * c_values);
            total.y += __shfl_down_sync(c_all, all.y, other * c_values);
            total.z += __shfl_down_sync(c_all, all.z, other * c_values);
            total.w += __shfl_down_sync(c_all, all.w, other * c_values);
        }
        return total;
    }
};

//! Whether the near field has to leave out a pair of atoms that are close to each other.
template<class Real>
__device__ bool leftOut(const typename DeviceExclusions<Real>::View& exclusions,
                        int atom,
                        int partner)
{
    int begin = exclusions.offsets[atom];
    int end   = exclusions.offsets[atom + 1];
    while (begin < end)
    {
        const int middle = begin + (end - begin) / 2;
        const int found  = exclusions.partners[middle];
        if (found == partner)
        {
            return exclusions.close[middle] != 0;
        }
        if (found < partner)
        {
            begin = middle + 1;
        }
        else
        {
            end = middle;
        }
    }
    return false;
}

} // namespace p2pDetail

//! Forces between particles of near cells, added to task.forces.
template<class Shape>
__global__ void __launch_bounds__(c_warp* Shape::c_warps, Shape::c_blocks)
        p2pKernel(const P2pTask<typename Shape::Real> task)
{
    using namespace p2pDetail;
    using Real              = typename Shape::Real;
    constexpr int c_batch   = Shape::c_batch;
    constexpr int c_parts   = Shape::c_parts;
    constexpr int c_targets = Shape::c_targets;
    constexpr int c_lookUps = Shape::c_pieces <= 16 ? 16 : c_warp; // lanes that look up pieces
    // keeps coinciding sites finite, with zero force
    const Real c_tiny = Real(1e-20);

    __shared__ Piece<Real> allPieces[Shape::c_warps][c_warp * Shape::c_perLane];
    __shared__ Real4<Real> allRows[Shape::c_spread ? Shape::c_warps : 1]
                                  [Shape::c_spread ? SpreadSum<c_targets, Real>::c_length : 1];
    __shared__ Real4<Real> allTargets[Shape::c_warps][Shape::c_capacity];

    const int lane        = kept(static_cast<int>(threadIdx.x % c_warp));
    const int warp        = uniform(static_cast<int>(threadIdx.x) / c_warp, 0);
    const int column      = (c_parts == 1) ? lane : lane % c_batch;
    const int part        = (c_parts == 1) ? 0 : lane / c_batch;
    Piece<Real>* pieces   = allPieces[warp];
    Real4<Real>* targets  = allTargets[warp];
    const Real4<Real>* xq = task.particles.xq;
    const bool careful    = task.exclusions.anyClose != nullptr && *task.exclusions.anyClose != 0;
    const PieceList<Real> list(pieces);

    const unsigned int upTo = kept((2U << column) - 1U);

    double energy    = 0;
    double virial[6] = { 0, 0, 0, 0, 0, 0 };

    const int warps     = static_cast<int>(gridDim.x) * Shape::c_warps;
    const int logShares = Shape::c_shares ? task.logShares : 0;
    const bool listed   = task.occupied.cells != nullptr;
    const int entries   = listed ? *task.occupied.count : task.occupied.all;
    const int items     = entries << logShares;
    for (int item = static_cast<int>(blockIdx.x) * Shape::c_warps + warp; item < items;
         item += warps)
    {
        int cell = item >> logShares;
        if (listed)
        {
            cell = uniform(task.occupied.cells[cell], 0);
        }

        // Every lane looks up a piece; those that hold particles are listed in shared memory.
        int offset[Shape::c_perLane]; // position of the lane's piece in the sequence of sources
        int total = 0, listed = 0;
        int first = 0, own = 0;
        int c[3];
        task.grid.cell(cell, c);
#pragma unroll
        for (int r = 0; r < Shape::c_perLane; r++)
        {
            const int piece = r * c_warp + lane;
            int begin = 0, length = 0;
            int D[3] = { 0, 0, 0 };
            if (piece < Shape::c_pieces)
            {
                NearPieces<Shape::c_ws, Shape::c_thirdLaw>::displacement(piece, D);
                const int* start = task.particles.start + task.grid.neighbour(c, D);
                begin            = __ldg(start);
                length           = __ldg(start + 1) - begin;
            }
            int reached = length;
#pragma unroll
            for (int step = 1; step < c_lookUps; step *= 2)
            {
                const int before = __shfl_up_sync(c_all, reached, step);
                reached += (lane >= step) ? before : 0;
            }
            const unsigned int occupied = __ballot_sync(c_all, length > 0);
            offset[r]                   = total + reached - length;
            if (length > 0)
            {
                const Real dx = static_cast<Real>(D[0]), dy = static_cast<Real>(D[1]),
                           dz = static_cast<Real>(D[2]);
                Piece<Real> p;
                p.x     = dx * task.edges[0][0] + dy * task.edges[1][0] + dz * task.edges[2][0];
                p.y     = dx * task.edges[0][1] + dy * task.edges[1][1] + dz * task.edges[2][1];
                p.z     = dx * task.edges[0][2] + dy * task.edges[1][2] + dz * task.edges[2][2];
                p.shift = begin - offset[r];
                pieces[listed + __popc(occupied & ((1U << lane) - 1U))] = p;
            }
            else
            {
                offset[r] = INT_MAX; // in no batch
            }
            total += uniform(reached, c_lookUps - 1);
            listed += __popc(occupied);
            if (r == 0)
            {
                first = uniform(begin, 0);
                own   = uniform(length, 0);
            }
        }
        if (own == 0)
        {
            __syncwarp();
            continue;
        }
        __syncwarp();

        // The source of this lane in the batch that starts at a position of the sequence; behind
        // its end, one without charge.
        const auto fetch = [&](Source<Real>& s, int base)
        {
            unsigned int starts = 0;
            int before          = -1;
#pragma unroll
            for (int r = 0; r < Shape::c_perLane; r++)
            {
                const int at = offset[r] - base;
                before += __popc(__ballot_sync(c_all, at < 0));
                starts |= bit(at);
            }
            starts                  = reduceOr(starts);
            const Piece<Real> piece = list[before + __popc(starts & upTo)];
            s.x                     = piece.x;
            s.y                     = piece.y;
            s.z                     = piece.z;
            const int source        = base + column;
            s.index                 = source + piece.shift;
            if (source < total)
            {
                s.xq = load(xq + s.index);
            }
            else
            {
                s.xq.w = 0;
            }
        };

        const TargetGroups<Shape::c_capacity> groups(own);
        const int groupSize = uniform(groups.size, 0);
        int firstGroup = 0, groupStride = groupSize, firstBatch = 0, stride = c_batch;
        if (Shape::c_shares)
        {
            const WarpShare share(item & ((1 << logShares) - 1), logShares, groups.groups);
            firstGroup  = uniform(share.firstGroup * groups.size, 0);
            groupStride = uniform(share.groupStep * groups.size, 0);
            firstBatch  = uniform(share.firstBatch * c_batch, 0);
            stride      = uniform(share.batchStep * c_batch, 0);
        }
        for (int g0 = firstGroup; g0 < own; g0 += groupStride)
        {
            const int count = min(groupSize, own - g0);
            // with the third law, own particles before these have met them as targets
            const int base0 = Shape::c_thirdLaw ? g0 : 0;
            const int base1 = base0 + firstBatch;
            if (base1 >= total)
            {
                continue;
            }
            const int size = (count + c_parts - 1) / c_parts; // targets of a lane

            Source<Real> s = {};
            if (Shape::c_ahead)
            {
                fetch(s, base1);
            }
            __syncwarp();
            if (lane < Shape::c_capacity)
            {
                targets[lane] =
                        (lane < count) ? load(xq + first + g0 + lane) : Real4<Real>{ 0, 0, 0, 0 };
            }
            __syncwarp();
            Real4<Real> held[Shape::c_held > 0 ? Shape::c_held : 1];
            Real fx[c_targets], fy[c_targets], fz[c_targets];
#pragma unroll
            for (int k = 0; k < c_targets; k++)
            {
                if (k < Shape::c_held)
                {
                    held[k] = targets[k * c_parts + part];
                }
                fx[k] = fy[k] = fz[k] = Real(0);
            }
            const auto targetOf = [&](int k)
            { return (k < Shape::c_held) ? held[k] : targets[k * c_parts + part]; };
            Real v[6] = { 0, 0, 0, 0, 0, 0 };

            // Pairs of a batch; 'keep' has a bit for every target that the source meets.
            const auto pairs = [&](Real sx,
                                   Real sy,
                                   Real sz,
                                   Real sq,
                                   int index,
                                   bool reacts,
                                   auto masked,
                                   unsigned int keep)
            {
                Real gx = 0, gy = 0, gz = 0, phi = 0;
                if (Shape::c_held < c_targets)
                {
                    asm volatile("" ::: "memory"); // loaded anew, not kept in registers
                }
                const auto pair = [&](int k)
                {
                    const Real4<Real> target = targetOf(k);
                    const Real dx = target.x - sx, dy = target.y - sy, dz = target.z - sz;
                    const Real r2 = fma(dx, dx, fma(dy, dy, fma(dz, dz, c_tiny)));
                    const Real y  = inverseRoot(r2);
                    // q q / r^3
                    Real f = (target.w * sq * y) * (y * y);
                    if (decltype(masked)::value)
                    {
                        f = (keep >> k & 1U) != 0 ? f : Real(0);
                    }
                    fx[k] = fma(f, dx, fx[k]);
                    fy[k] = fma(f, dy, fy[k]);
                    fz[k] = fma(f, dz, fz[k]);
                    if (Shape::c_reactions)
                    {
                        gx = fma(-f, dx, gx);
                        gy = fma(-f, dy, gy);
                        gz = fma(-f, dz, gz);
                    }
                    if (Shape::c_energy)
                    {
                        Real potential = refined(y, r2);
                        if (decltype(masked)::value)
                        {
                            potential = (keep >> k & 1U) != 0 ? potential : Real(0);
                        }
                        phi = fma(target.w, potential, phi);
                    }
                };
                forFirst<Shape::c_least, Shape::c_step, c_targets>(size, pair);
                if (Shape::c_energy)
                {
                    energy += static_cast<double>(sq) * static_cast<double>(phi);
                }
                if (Shape::c_virial)
                {
                    v[0] = fma(sx, gx, v[0]);
                    v[1] = fma(sy, gy, v[1]);
                    v[2] = fma(sz, gz, v[2]);
                    v[3] = fma(sx, gy, v[3]);
                    v[4] = fma(sx, gz, v[4]);
                    v[5] = fma(sy, gz, v[5]);
                }
                if (Shape::c_thirdLaw)
                {
#pragma unroll
                    for (int step = c_batch; step < c_warp; step *= 2)
                    {
                        gx += __shfl_xor_sync(c_all, gx, step);
                        gy += __shfl_xor_sync(c_all, gy, step);
                        gz += __shfl_xor_sync(c_all, gz, step);
                    }
                    add(part == 0 && reacts, task.forces + index, gx, gy, gz);
                }
            };

            // With the third law, the targets are also the first sources. Forces are the same
            // whether such pairs are met twice, without a reaction, or are left out once; the
            // former needs no masks, but counts energies twice. A particle and itself have no
            // force.
            const int oneSided   = (Shape::c_energy || careful) ? base0 : base0 + count;
            const int sinceSided = kept(column - oneSided);
            const int afterSided = uniform(total - oneSided, 0);
            // Batches up to here have pairs that are left out.
            int maskedEnd = base0;
            if (Shape::c_energy)
            {
                maskedEnd = Shape::c_thirdLaw ? base0 + count : own;
            }
            if (careful)
            {
                maskedEnd = total;
            }

            const auto next = [&](int base, auto masked)
            {
                if (!Shape::c_ahead)
                {
                    fetch(s, base);
                }
                const Real sx = s.xq.x + s.x, sy = s.xq.y + s.y, sz = s.xq.z + s.z;
                const Real sq   = s.xq.w;
                const int index = s.index;
                // after the one-sided ones and before the end
                const bool reacts = static_cast<unsigned int>(base + sinceSided)
                                    < static_cast<unsigned int>(afterSided);
                if (Shape::c_ahead)
                {
                    fetch(s, base + stride);
                }
                unsigned int keep = c_all;
                if (decltype(masked)::value)
                {
                    if (Shape::c_thirdLaw)
                    {
                        keep = targetsBefore<c_parts>(base - base0 + column, part);
                    }
                    else if (Shape::c_energy)
                    {
                        // a particle has no energy with itself
                        const int self = base + column - g0;
                        if (self >= 0 && self < count && self % c_parts == part)
                        {
                            keep = ~(1U << self / c_parts);
                        }
                    }
                    for (int k = part; careful && k < count && base + column < total; k += c_parts)
                    {
                        const int target    = first + g0 + k;
                        const Real4<Real> p = load(xq + target);
                        const Real dx = p.x - sx, dy = p.y - sy, dz = p.z - sz;
                        if (dx * dx + dy * dy + dz * dz < task.close2
                            && leftOut<Real>(task.exclusions,
                                             task.particles.atom[target],
                                             task.particles.atom[index]))
                        {
                            keep &= ~(1U << k / c_parts);
                        }
                    }
                    __syncwarp();
                }
                pairs(sx, sy, sz, sq, index, reacts, masked, keep);
            };
            int base = base1;
#pragma unroll 1
            for (; base < maskedEnd; base += stride)
            {
                next(base, std::true_type());
            }
#pragma unroll 1
            for (; base < total; base += stride)
            {
                next(base, std::false_type());
            }

            if (Shape::c_virial)
            {
                // lanes hold parts of the sums over sources: so does this product
#pragma unroll
                for (int k = 0; k < c_targets; k++)
                {
                    const Real4<Real> target = targetOf(k);
                    v[0]                     = fma(target.x, fx[k], v[0]);
                    v[1]                     = fma(target.y, fy[k], v[1]);
                    v[2]                     = fma(target.z, fz[k], v[2]);
                    v[3]                     = fma(target.x, fy[k], v[3]);
                    v[4]                     = fma(target.x, fz[k], v[4]);
                    v[5]                     = fma(target.y, fz[k], v[5]);
                }
                for (int k = 0; k < 6; k++)
                {
                    virial[k] += static_cast<double>(v[k]);
                }
            }
            if constexpr (Shape::c_spread)
            {
                using Sum               = SpreadSum<c_targets, Real>;
                const Real4<Real> force = Sum::sum(allRows[warp], fx, fy, fz, size, lane);
                const int target        = 4 * (lane % Sum::c_fours);
                Real* to                = &task.forces[first + g0 + target].x + lane / Sum::c_fours;
                const Real of[4]        = { force.x, force.y, force.z, force.w };
#pragma unroll
                for (int k = 0; k < 4; k++)
                {
                    const bool wanted = lane < Sum::c_values && target + k < count;
                    if (Shape::c_thirdLaw)
                    {
                        add(wanted, to + 4 * k, of[k]);
                    }
                    else if (wanted)
                    {
                        to[4 * k] += of[k];
                    }
                }
            }
            else
            {
                const int k      = transposedSum<c_targets, c_batch / 2>(fx, fy, fz, size, lane);
                const int target = k * c_parts + part;
                if (k < c_targets && target < count)
                {
                    Real4<Real>* to = task.forces + first + g0 + target;
                    if (Shape::c_thirdLaw)
                    {
                        add(true, to, fx[0], fy[0], fz[0]);
                    }
                    else
                    {
                        to->x += fx[0];
                        to->y += fy[0];
                        to->z += fz[0];
                    }
                }
            }
        }
        __syncwarp(); // before the pieces of the next cell overwrite these
    }

    if (Shape::c_energy)
    {
        // without the third law both directions of a pair were counted
        const double pair = Shape::c_thirdLaw ? 1 : 0.5;
        double own[7]     = { pair * energy };
        double* to[7]     = { &task.totals->energy };
        for (int k = 0; k < 6; k++)
        {
            own[1 + k] = -0.5 * pair * virial[k];
            to[1 + k]  = &task.totals->virial[k];
        }
        addInOrder<Shape::c_virial ? 7 : 1>(own, task.sums, to);
    }
}

} // namespace farfield

#endif
