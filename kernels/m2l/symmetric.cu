/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L with products shared by the displacements that symmetry relates.
 *
 *  symmetric_tables.h has the mathematics. Lanes are the families of a stretch of 32; a thread
 *  holds the local expansions of four octants of its family in registers, as many rows as a tile
 *  has, and a warp has one tile. Blocks walk through units, a group of columns with a chunk of
 *  orbits each: the warps together transform the sources into W, in shared memory, beside the
 *  operators; then every warp multiplies. Two buffers take turns. Where there are too few families
 *  to fill the GPU, units are split over more blocks, whose sums are added in a fixed order.
 */
#include <algorithm>
#include <limits>

#include "m2l/engines.h"
#include "m2l/symmetric_kernels.cuh"

namespace farfield
{
namespace
{

using namespace symmetricDetail;

//! Shared memory that a block aims at: two blocks per multiprocessor, and a near cache for sources.
constexpr size_t c_sharedTarget = 72 * 1024;
//! What the runtime takes of the shared memory of a block.
constexpr size_t c_sharedReserved = 1024;
template<class Real>
using SymmetricKernel =
        void (*)(const PlanView<Real>, const Families, const Packet<Real>*, int, int, Real*);

template<class Real>
SymmetricKernel<Real> kernelFor(int rows)
{
    switch (rows)
    {
        case 3:
            return multiplySymmetric<3, Real>;
        case 6:
            return multiplySymmetric<6, Real>;
        case 7:
            return multiplySymmetric<7, Real>;
        case 8:
            return multiplySymmetric<8, Real>;
        case 10:
            return multiplySymmetric<10, Real>;
        default:
            return multiplySymmetric<11, Real>;
    }
}

template<class Real>
class SymmetricM2l final : public DeviceM2l<Real>
{
public:
    void setOperators(const ListM2lOperators<Real>& operators, cudaStream_t stream) override
    {
        const bool reflections = operators.reflections();
        if (!plan_ || order_ != operators.order() || ws_ != operators.ws()
            || reflections_ != reflections)
        {
            order_       = operators.order();
            ws_          = operators.ws();
            reflections_ = reflections;
            makePlan(stream);
        }
        const std::vector<Real> packed = plan_->pack(operators);
        operators_.upload(reinterpret_cast<const Packet<Real>*>(packed.data()),
                          packed.size() / Packet<Real>::c_size,
                          stream);
    }

    void apply(const LevelView<Real>& level, const Families& families, cudaStream_t stream) override
    {
        const int stretches = families.capacity / c_warp;
        if (stretches == 0)
        {
            return;
        }
        const int padded = families.capacity + c_familyPadding;
        const int splits = chooseSplits(stretches, level.stride);
        const int n      = plan_->coefficients;
        reserve(&multipoles_, static_cast<size_t>(plan_->columnGroups()) * 8 * padded);
        const dim3 packBlocks(blocksFor(8LL * padded, c_packThreads), plan_->columnGroups());
        packMultipoles<<<packBlocks, c_packThreads, 0, stream>>>(
                columns_.data(), level, families, multipoles_.data());
        checkLaunch("packMultipoles");
        if (splits > 1)
        {
            reserve(&sums_, static_cast<size_t>(splits) * n * level.stride);
        }
        kernel_<<<stretches * 2 * plan_->tileGroups * splits,
                  plan_->tilesPerBlock * c_warp,
                  plan_->sharedBytes(),
                  stream>>>(view(),
                            families,
                            multipoles_.data(),
                            splits,
                            level.stride,
                            splits > 1 ? sums_.data() : level.L);
        checkLaunch("multiplySymmetric");
        if (splits > 1)
        {
            const dim3 addBlocks(blocksFor(8LL * families.capacity, c_packThreads), n);
            addSplits<<<addBlocks, c_packThreads, 0, stream>>>(
                    sums_.data(), splits, n, level, families);
            checkLaunch("addSplits");
        }
    }

private:
    //! Makes room that lasts: levels take turns.
    template<class T>
    static void reserve(DeviceBuffer<T>* buffer, size_t size)
    {
        if (buffer->size() < size)
        {
            buffer->resize(size);
        }
    }

    void makePlan(cudaStream_t stream)
    {
        const size_t perProcessor = deviceAttribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
        const size_t perBlock     = deviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
        const SymmetryTables tables(order_, ws_, reflections_);
        const size_t most =
                std::min({ c_sharedTarget, perProcessor / 2 - c_sharedReserved, perBlock });
        plan_   = std::make_unique<SymmetricPlan<Real>>(tables, most);
        kernel_ = kernelFor<Real>(plan_->rowsPerTile);
        // the same for every plan: another solver may have launches of this kernel, too
        check(cudaFuncSetAttribute(kernel_,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(perBlock)),
              "reserving shared memory");
        processors_ = deviceAttribute(cudaDevAttrMultiProcessorCount);
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                      &resident_, kernel_, plan_->tilesPerBlock * c_warp, plan_->sharedBytes()),
              "finding the occupancy");
        resident_         = std::max(resident_, 1);
        const auto upload = [&](DeviceBuffer<int>* buffer, const std::vector<int>& values)
        { buffer->upload(values.data(), values.size(), stream); };
        upload(&tileClass_, plan_->tileClass);
        upload(&tileRows_, plan_->tileRows);
        upload(&columnClass_, plan_->columnClass);
        upload(&columnCount_, plan_->columnCount);
        upload(&columns_, plan_->columns);
        upload(&chunkStart_, plan_->chunkStart);
        upload(&records_, plan_->records);
        sources_.upload(reinterpret_cast<const int4*>(plan_->sources.data()),
                        plan_->sources.size() / 4,
                        stream);
    }

    PlanView<Real> view() const
    {
        return { plan_->coefficients,   plan_->neighbours,    plan_->frameBits,
                 plan_->orbits,         plan_->tilesPerBlock, plan_->tileGroups,
                 plan_->columnGroups(), plan_->chunks(),      plan_->maxValues,
                 plan_->maxOrbits,      tileClass_.data(),    tileRows_.data(),
                 columnClass_.data(),   columnCount_.data(),  columns_.data(),
                 chunkStart_.data(),    records_.data(),      sources_.data(),
                 operators_.data() };
    }

    /*! \brief Over how many blocks to split the units of the same sums.
     *
     *  Compares the longest work of a multiprocessor with the cost of adding up, in instructions of
     *  one: a multiprocessor with a single block runs at two thirds of its speed, and the cache
     *  moves about 16 bytes per cycle and multiprocessor. */
    int chooseSplits(int stretches, int stride) const
    {
        const int units  = plan_->columnGroups() * plan_->chunks();
        const int blocks = stretches * 2 * plan_->tileGroups;
        const double perUnit =
                0.25 * plan_->tilesPerBlock * plan_->orbits / plan_->chunks()
                * (c_octantsPerBlock * plan_->rowsPerTile * Packet<Real>::c_size + 40);
        const double perSplit =
                2.0 * sizeof(Real) * plan_->coefficients * stride / (16.0 * processors_);
        constexpr double c_launch = 3000;
        int best                  = 1;
        double least              = std::numeric_limits<double>::max();
        for (int splits = 1; splits <= std::min(units, 256); splits++)
        {
            const int perProcessor =
                    blocksFor(static_cast<long long>(blocks) * splits, processors_);
            const int last    = perProcessor % resident_;
            const double time = perProcessor - last + (last == 1 ? 1.5 : last);
            const double cost = (resident_ == 1 ? 1.5 * perProcessor : time)
                                        * ((units + splits - 1) / splits + 0.5) * perUnit
                                + (splits > 1 ? c_launch + splits * perSplit : 0.0);
            if (cost < least)
            {
                least = cost;
                best  = splits;
            }
        }
        return best;
    }

    int order_ = 0, ws_ = 0;
    bool reflections_ = false;
    std::unique_ptr<SymmetricPlan<Real>> plan_;
    SymmetricKernel<Real> kernel_ = nullptr;
    int processors_ = 0, resident_ = 0;
    DeviceBuffer<int> tileClass_, tileRows_, columnClass_, columnCount_, columns_, chunkStart_,
            records_;
    DeviceBuffer<int4> sources_;
    DeviceBuffer<Packet<Real>> operators_, multipoles_;
    DeviceBuffer<Real> sums_;
};

} // namespace

template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeSymmetricM2l(double /*rounding*/)
{
    return std::make_unique<SymmetricM2l<Real>>();
}

template std::unique_ptr<DeviceM2l<float>> makeSymmetricM2l<float>(double);
template std::unique_ptr<DeviceM2l<double>> makeSymmetricM2l<double>(double);

} // namespace farfield
