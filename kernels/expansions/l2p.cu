/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// A thread per sorted particle. The expansions of the cells of a block's particles, of which there
// are few, are brought to shared memory first, where neighbouring coefficients lie side by side.
#include "expansions/force_output.cuh"
#include "expansions/harmonics.h"
#include "runtime/load.cuh"
#include "runtime/order_dispatch.h"

namespace farfield
{
namespace
{

constexpr unsigned c_allLanes = 0xffffffffu;
//! Threads of a block; smaller blocks help small systems to reach all multiprocessors.
constexpr int c_threads = 128, c_fewThreads = 64;
//! Registers are to suffice for so many blocks on a multiprocessor.
template<int P, class Real>
constexpr int c_blocksPerSm = (P <= 9    ? 12
                               : P <= 12 ? 8
                                         : 4)
                              * sizeof(float) / (2 * sizeof(Real));
//! Fewer particles than this are few.
constexpr int c_fewParticles = 100000;

//! How expansions lie in shared memory.
template<int P, class Real>
struct Staging
{
    static constexpr int c_coefficients = (P + 1) * (P + 1);
    //! Coefficients that are loaded at once.
    static constexpr int c_vector = 16 / sizeof(Real);
    //! Distance of expansions: an odd number of vectors, so that cells do not share banks.
    static constexpr int c_pitch = ((c_coefficients + c_vector - 1) / c_vector | 1) * c_vector;
    //! Coefficients that a thread asks for before it waits for the first.
    static constexpr int c_batch = (c_coefficients < 88) ? (c_coefficients + 7) / 8 : 11;
    //! Logarithm of the number of expansions: double precision of high orders takes fewer.
    static constexpr int c_bits = (16 * c_pitch * sizeof(Real) <= 40960) ? 4 : 3;
};

//! The coefficients of a cell in shared memory.
template<class Real>
struct Expansion
{
    const Real* L;
    FARFIELD_HD Real operator()(int i) const { return L[i]; }
};

//! What the kernel needs besides local expansions and where forces go.
template<class Real>
struct LocalTask
{
    SortedParticles<Real> particles;
    const int* slotOf; //!< of the leaves
    int stride;        //!< of the leaves
    Real inverseUnit;
    Real pull; //!< as l2p()
    int bits;  //!< so many expansions are brought to shared memory at a time, logarithm
};

//! \param[in] L  of the leaves; a parameter, so that it is known to be constant
template<int P, class Real>
__global__ void __launch_bounds__(c_threads, c_blocksPerSm<P, Real>)
        farForces(const __grid_constant__ LocalTask<Real> task,
                  const Real* __restrict__ L,
                  const __grid_constant__ GradientWeights<Real, P> weights,
                  const __grid_constant__ ForceArrays<Real> out)
{
    using Shape = Staging<P, Real>;
    __shared__ alignas(16) Real staged[(1 << Shape::c_bits) * Shape::c_pitch];
    __shared__ int slots[c_threads];
    __shared__ int cellsOfWarp[c_threads / c_warp];
    const int thread = threadIdx.x;
    const int lane   = thread % c_warp;
    const int i      = blockIdx.x * blockDim.x + thread;

    // cells by rank among those of the block
    int own       = -1;
    int left      = -1;
    Real4<Real> a = { 0, 0, 0, 0 };
    ForceOutput<Real> output;
    if (i < task.particles.n)
    {
        own            = __ldg(task.particles.cell + i);
        left           = (thread > 0) ? __ldg(task.particles.cell + i - 1) : -1;
        const int atom = __ldg(task.particles.atom + i);
        a              = load(task.particles.xq + i);
        if (out.all != nullptr)
        {
            output.begin(out, atom, out.near[out.nearPlace != nullptr ? out.nearPlace[atom] : i]);
        }
    }
    const bool first      = own != left;
    const int slot        = first ? __ldg(task.slotOf + own) : -1;
    const unsigned firsts = __ballot_sync(c_allLanes, first);
    if (lane == 0)
    {
        cellsOfWarp[thread / c_warp] = __popc(firsts);
    }
    __syncthreads();
    int rank     = __popc(firsts & (c_allLanes >> (c_warp - 1 - lane))) - 1;
    int distinct = 0;
    for (int warp = 0; warp < static_cast<int>(blockDim.x) / c_warp; warp++)
    {
        rank += (warp < thread / c_warp) ? cellsOfWarp[warp] : 0;
        distinct += cellsOfWarp[warp];
    }
    if (first)
    {
        slots[rank] = slot;
    }
    __syncthreads();

    const int room    = 1 << task.bits;
    Real4<Real> force = { 0, 0, 0, 0 };
    for (int begin = 0; begin < distinct; begin += room)
    {
        if (begin > 0)
        {
            __syncthreads(); // before what is staged is overwritten
        }
        const int column = thread & (room - 1);
        if (begin + column < distinct)
        {
            const int from        = slots[begin + column];
            Real* stage           = staged + column * Shape::c_pitch;
            constexpr int c_batch = Shape::c_batch;
            const int step        = static_cast<int>(blockDim.x) >> task.bits;
            for (int k = thread >> task.bits; from >= 0 && k < Shape::c_coefficients;
                 k += c_batch * step)
            {
                Real values[c_batch];
#pragma unroll
                for (int b = 0; b < c_batch; b++)
                {
                    const int row = k + b * step;
                    values[b]     = (row < Shape::c_coefficients)
                                            ? L[static_cast<size_t>(row) * task.stride + from]
                                            : Real(0);
                }
#pragma unroll
                for (int b = 0; b < c_batch; b++)
                {
                    const int row = k + b * step;
                    if (row < Shape::c_coefficients)
                    {
                        stage[row] = weights.w[row] * values[b];
                    }
                }
            }
        }
        __syncthreads();
        if (i < task.particles.n && rank >= begin && rank < begin + room && slots[rank] >= 0)
        {
            Real g[3];
            localGradient<P>(Expansion<Real>{ staged + (rank - begin) * Shape::c_pitch },
                             a.x * task.inverseUnit,
                             a.y * task.inverseUnit,
                             a.z * task.inverseUnit,
                             g);
            // phi = sum_i L_i u_i(b / unit) / unit
            const Real scale = task.inverseUnit * task.inverseUnit;
            force.x          = a.w * (task.pull * a.x - scale * g[0]);
            force.y          = a.w * (task.pull * a.y - scale * g[1]);
            force.z          = a.w * (task.pull * a.z - scale * g[2]);
        }
    }
    Real square = 0; // of the field, in units of the cap
    if (i < task.particles.n)
    {
        if (out.all != nullptr)
        {
            square = output.finish(out, a.w, force);
        }
        if (out.far != nullptr)
        {
            out.far[i] = force;
        }
    }
    if (out.fields != nullptr)
    {
        addField(square, i == 0, out.fields);
    }
}

template<class Real>
__global__ void __launch_bounds__(c_threads)
        clearForcesOf(const int* __restrict__ particles, int count, Real* __restrict__ forces)
{
    const int i = blockIdx.x * c_threads + threadIdx.x;
    if (i < count)
    {
        Real* own = forces + 3 * static_cast<size_t>(particles[i]);
        own[0] = own[1] = own[2] = 0;
    }
}

} // namespace

template<class Real>
void clearForces(const int* particles, int count, Real* forces, cudaStream_t stream)
{
    if (count > 0)
    {
        clearForcesOf<<<blocksFor(count, c_threads), c_threads, 0, stream>>>(
                particles, count, forces);
        checkLaunch("clearing forces of particles without a charge");
    }
}

template void clearForces<float>(const int*, int, float*, cudaStream_t);
template void clearForces<double>(const int*, int, double*, cudaStream_t);

template<class Real>
void l2p(const DeviceExpansionTables<Real>& tables,
         const SortedParticles<Real>& particles,
         const LevelView<Real>& leaves,
         Real pull,
         const ForceArrays<Real>& forces,
         cudaStream_t stream)
{
    const bool few    = particles.n < c_fewParticles;
    const int threads = few ? c_fewThreads : c_threads;
    const int blocks  = blocksFor(particles.n, threads);
    if (blocks == 0)
    {
        return;
    }
    dispatchOrder(
            tables.order(),
            [&](auto order)
            {
                constexpr int P                               = decltype(order)::value;
                static const GradientWeights<Real, P> weights = gradientWeights<Real, P>();
                const LocalTask<Real> task                    = { particles,     leaves.slotOf,
                                                                  leaves.stride, tables.inverseUnit(),
                                                                  pull,          few ? 3 : Staging<P, Real>::c_bits };
                farForces<P, Real><<<blocks, threads, 0, stream>>>(task, leaves.L, weights, forces);
            });
    checkLaunch("far-field forces");
}

template decltype(l2p<float>) l2p<float>;
template decltype(l2p<double>) l2p<double>;

} // namespace farfield
