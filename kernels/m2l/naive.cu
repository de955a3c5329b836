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
#include "m2l/dense.h"
#include "m2l/engines.h"

namespace farfield
{
namespace
{

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
        dense_.set(operators, stream);
    }
    void apply(const LevelView<Real>& level, const Families& families, cudaStream_t stream) override
    {
        if (families.capacity == 0)
        {
            return;
        }
        const DenseView<Real> dense = dense_.view();
        multiplyNaively<<<8 * families.capacity, coefficientThreads(dense.n), 0, stream>>>(
                dense, level, families);
        checkLaunch("multiplyNaively");
    }

private:
    DenseOperators<Real> dense_;
};

} // namespace

template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeNaiveM2l(const EngineDemands& /*demands*/)
{
    return std::make_unique<NaiveM2l<Real>>();
}

template std::unique_ptr<DeviceM2l<float>> makeNaiveM2l<float>(const EngineDemands&);
template std::unique_ptr<DeviceM2l<double>> makeNaiveM2l<double>(const EngineDemands&);

} // namespace farfield
