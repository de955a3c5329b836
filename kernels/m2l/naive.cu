/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L as its loops stand: a block per target cell, a thread per coefficient.
 *
 *  Approach 1 of Kohnke et al., Int. J. High Perform. Comput. Appl. 35, 97 (2021),
 *  doi:10.1177/1094342020964857, without its Unified Memory: what the other engines are compared
 *  with.
 */
#include <vector>

#include "m2l/engines.h"

namespace farfield
{
namespace
{

//! One entry of the interaction list of an octant.
struct DenseSource
{
    int operation; //!< position of the operator
    int neighbour; //!< as in neighbourIndex(): displacement of the parents
    int octant;    //!< of the source
};

//! Operators and interaction lists, in device memory.
template<class Real>
struct DenseView
{
    int n;                    //!< coefficients
    int sources;              //!< per octant of the target
    const DenseSource* lists; //!< [octant][sources]
    const Real* operators;    //!< [operator][n][n], columns first: neighbouring threads have
                              //!< neighbouring rows
};

//! Room for the coefficients of an expansion in whole Real4: that is how shared memory is read.
constexpr int c_sharedCoefficients = (coefficientCount(c_maxOrder) + 3) / 4 * 4;

//! Threads of a block with one for each coefficient.
int coefficientThreads(int n)
{
    return (n + c_warp - 1) / c_warp * c_warp;
}

//! Slot of a source, -1 if its parent is empty.
__device__ __forceinline__ int sourceSlot(const DenseSource& source,
                                          const Families& families,
                                          int family)
{
    const int other = families.neighbours[source.neighbour * families.capacity + family];
    return other < 0 ? -1 : source.octant * families.capacity + other;
}

/*! \brief The element of T M that belongs to this thread; all threads of a block take part.
 *  \param[in] shared  [c_sharedCoefficients] shared memory */
template<class Real>
__device__ __forceinline__ Real denseProduct(const DenseView<Real>& dense,
                                             int operation,
                                             const LevelView<Real>& level,
                                             int slot,
                                             Real* shared)
{
    const int i = threadIdx.x;
    __syncthreads(); // the last product is done
    if (i < dense.n)
    {
        shared[i] = level.M[static_cast<size_t>(i) * level.stride + slot];
    }
    __syncthreads();
    Real sum = Real(0);
    if (i < dense.n)
    {
        const Real* T = dense.operators + static_cast<size_t>(operation) * dense.n * dense.n + i;
#pragma unroll 4
        for (int j = 0; j < dense.n; j++)
        {
            sum += T[static_cast<size_t>(j) * dense.n] * shared[j];
        }
    }
    return sum;
}

template<class Real>
__global__ void multiplyNaively(DenseView<Real> dense, LevelView<Real> level, Families families)
{
    __shared__ alignas(16) Real shared[c_sharedCoefficients];
    const int octant = blockIdx.x / families.capacity;
    const int family = blockIdx.x - octant * families.capacity;
    if (family >= *families.count)
    {
        return;
    }
    Real sum = Real(0);
    for (int k = 0; k < dense.sources; k++)
    {
        const DenseSource source = dense.lists[octant * dense.sources + k];
        const int slot           = sourceSlot(source, families, family);
        if (slot >= 0)
        {
            sum += denseProduct(dense, source.operation, level, slot, shared);
        }
    }
    if (threadIdx.x < dense.n)
    {
        level.L[static_cast<size_t>(threadIdx.x) * level.stride + blockIdx.x] += sum;
    }
}

template<class Real>
class NaiveM2l final : public DeviceM2l<Real>
{
public:
    void setOperators(const ListM2lOperators<Real>& operators, cudaStream_t stream) override
    {
        const int ws    = operators.ws();
        n_              = coefficientCount(operators.order());
        const auto& all = operators.operators();
        std::vector<Real> transposed(all.size() * n_ * n_);
        std::vector<DenseSource> lists;
        for (size_t k = 0; k < all.size(); k++)
        {
            Real* to = transposed.data() + k * n_ * n_;
            for (int i = 0; i < n_; i++)
            {
                for (int j = 0; j < n_; j++)
                {
                    to[static_cast<size_t>(j) * n_ + i] = all[k].T[static_cast<size_t>(i) * n_ + j];
                }
            }
        }
        for (int octant = 0; octant < 8; octant++)
        {
            for (size_t k = 0; k < all.size(); k++)
            {
                if (all[k].from[octant])
                {
                    int parent[3], child = 0;
                    for (int axis = 0; axis < 3; axis++)
                    {
                        const int s  = ((octant >> axis) & 1) - all[k].D[axis];
                        parent[axis] = -floorDivide(s, 2);
                        child |= (s & 1) << axis;
                    }
                    lists.push_back({ static_cast<int>(k),
                                      neighbourIndex(ws, parent[0], parent[1], parent[2]),
                                      child });
                }
            }
        }
        sources_ = static_cast<int>(lists.size() / 8); // every octant has as many
        operators_.upload(transposed.data(), transposed.size(), stream);
        lists_.upload(lists.data(), lists.size(), stream);
    }
    void apply(const LevelView<Real>& level, const Families& families, cudaStream_t stream) override
    {
        if (families.capacity == 0)
        {
            return;
        }
        const DenseView<Real> dense = { n_, sources_, lists_.data(), operators_.data() };
        multiplyNaively<<<8 * families.capacity, coefficientThreads(dense.n), 0, stream>>>(
                dense, level, families);
        checkLaunch("multiplyNaively");
    }

private:
    int n_ = 0, sources_ = 0;
    DeviceBuffer<Real> operators_;
    DeviceBuffer<DenseSource> lists_;
};

} // namespace

template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeNaiveM2l(double /*rounding*/)
{
    return std::make_unique<NaiveM2l<Real>>();
}

template std::unique_ptr<DeviceM2l<float>> makeNaiveM2l<float>(double);
template std::unique_ptr<DeviceM2l<double>> makeNaiveM2l<double>(double);

} // namespace farfield
