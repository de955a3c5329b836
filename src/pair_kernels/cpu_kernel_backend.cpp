/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <cmath>

#include "pair_kernels/cell_counts.h"
#include "pair_kernels/cpu_kernel_evaluation.h"
#include "pair_kernels/direct_sums.h"

namespace farfield
{
namespace
{

//! In multiply-adds of a lane.
constexpr KernelUnitCosts c_costs = { { 34, 21, 60 }, 1.1, 12, 60, 2.5, 5, 2200, c_slotPadding, 0 };

template<class Real>
class CpuKernelBackend final : public KernelBackend<Real>
{
public:
    CpuKernelBackend(const PairKernel& kernel, Team* team) : kernel_(kernel), team_(*team) {}

    void setLeftOut(const ExcludedPairs& pairs) override { leftOut_ = pairs; }
    Extent take(const KernelInput<Real>& input) override
    {
        const bool isLeftOut  = input.points < 0 && !leftOut_.partners.empty();
        PointSystem<Real>& to = points_.system;
        to.n                  = input.n;
        to.sets               = input.sets;
        to.points             = input.points;
        to.x                  = input.x;
        to.q                  = input.q;
        to.at                 = input.at;
        to.leftOut            = isLeftOut ? &leftOut_ : nullptr;
        checkCharges(input);
        // in a box places do not matter; the sort finds those that are not finite
        return input.box == nullptr ? Extent::of(input) : Extent();
    }
    const PointNumbers& numbers() const override { return points_.system; }
    const PointSystem<Real>& onHost() override { return points_.system; }

    KernelUnitCosts costs(double /*accuracy*/) const override { return c_costs; }
    std::vector<LevelCount> countLevels(const Region& region, const KernelPlan& plan) override
    {
        return farfield::countLevels(region, plan, points_.system.x, points_.system.n, &team_);
    }

    std::unique_ptr<KernelEvaluation<Real>> evaluation(const KernelPlan& plan,
                                                       const Region& region,
                                                       double accuracy) override
    {
        return std::make_unique<CpuKernelEvaluation<Real>>(
                kernel_, plan, region, accuracy, &points_, &team_);
    }
    std::vector<double> directSums(const Region& region, const std::vector<int>& some) override
    {
        return farfield::directSums(kernel_, points_.system, region, some, &team_);
    }
    std::vector<double> results(const std::vector<int>& some) override
    {
        std::vector<double> results;
        for (int c = 0; c < 4 * points_.system.sets; c++)
        {
            for (const int i : some)
            {
                results.push_back(
                        points_.sums[static_cast<size_t>(c) * points_.system.results() + i]);
            }
        }
        return results;
    }
    ResultRange range() override
    {
        ResultRange range;
        for (size_t i = 0; i < points_.sums.size(); i++)
        {
            const double value = points_.sums[i];
            if (!std::isfinite(value))
            {
                return { static_cast<int>(i % points_.system.results()), 0 };
            }
            range.largest = std::max(range.largest, std::abs(value));
        }
        return range;
    }
    void write(const KernelOutput<Real>& output) override
    {
        const size_t n  = points_.system.results();
        const int sets  = points_.system.sets;
        const auto& all = points_.sums;
        for (int s = 0; s < sets; s++)
        {
            for (size_t i = 0; i < n; i++)
            {
                const size_t to  = i * sets + s;
                const auto value = [&](int k)
                { return static_cast<Real>(all[(static_cast<size_t>(s) * 4 + k) * n + i]); };
                if (output.potentials != nullptr)
                {
                    output.potentials[to] = value(0);
                }
                for (int k = 0; output.fields != nullptr && k < 3; k++)
                {
                    output.fields[3 * to + k] = value(1 + k);
                }
            }
        }
    }
    const std::vector<double>& virials() const override { return points_.virials; }

private:
    const PairKernel& kernel_;
    Team& team_;
    ExcludedPairs leftOut_;
    PointsOnCpu<Real> points_;
};

} // namespace

template<class Real>
std::unique_ptr<KernelBackend<Real>> makeCpuKernelBackend(const PairKernel& kernel, Team* team)
{
    return std::make_unique<CpuKernelBackend<Real>>(kernel, team);
}

template std::unique_ptr<KernelBackend<float>> makeCpuKernelBackend(const PairKernel&, Team*);
template std::unique_ptr<KernelBackend<double>> makeCpuKernelBackend(const PairKernel&, Team*);

} // namespace farfield
