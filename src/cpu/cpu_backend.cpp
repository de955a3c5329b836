/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "backend/backend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/threads.h"
#include "cells/excluded_pairs.h"
#include "cpu/cell_list.h"
#include "cpu/cpu_kernels.h"
#include "cpu/host_exchange.h"
#include "cpu/leaf_ranges.h"
#include "cpu/m2l_periodic.h"
#include "cpu/near_field.h"
#include "cpu/shared_multipoles.h"
#include "cpu/tree.h"
#include "operators/background.h"
#include "operators/reduction.h"
#include "operators/scaled_charges.h"
#include "parallel/partition.h"

namespace farfield
{
namespace
{

template<class Real>
class CpuBackend final : public Backend<Real>
{
public:
    CpuBackend(double coulombConstant, int threads, Partition<Real>* partition) :
        rootCoulomb_(std::sqrt(coulombConstant)), threads_(threads), partition_(partition),
        exchange_(partition, this), near_(threads)
    {
    }

    Exchange<Real>* exchange() override { return partition_ != nullptr ? &exchange_ : nullptr; }

    void setCharges(const Real* q, int n) override
    {
        ScaledCharges<Real> scaled(q, n, rootCoulomb_);
        near_.reserve(n);
        fx_.reserve(n);
        fy_.reserve(n);
        fz_.reserve(n);
        // nothing fails any more
        near_.resize(n);
        fx_.resize(n);
        fy_.resize(n);
        fz_.resize(n);
        std::swap(charges_, scaled);
    }

    void setExclusions(const int* offsets, const int* partners, int n) override
    {
        near_.setExclusions(offsets, partners, n, static_cast<int>(charges_.q.size()));
    }

    void setGhosts(const Real* q, int n, double net) override
    {
        ghostCharges_ = ScaledCharges<Real>(q, n, rootCoulomb_);
        charges_.net  = rootCoulomb_ * net;
        allCharges_   = charges_.q;
        allCharges_.insert(allCharges_.end(), ghostCharges_.q.begin(), ghostCharges_.q.end());
        shared_.plan(&partition_->regions(),
                     discretisation_.ws,
                     coefficientCount(discretisation_.order),
                     partition_->ranks());
        setLevel0(partition_->regions().cells(0, partition_->ranks().rank()));
    }

    void build(const Discretisation& d) override
    {
        periodicM2l_.reset();
        tree_.reset();
        discretisation_ = d;
        isAllNear_      = d.isAllNear();
        const Grid coarse(d.coarseCells(), d.referenceBox);
        const Mat3 edges = coarse.scaledEdges();
        const Reduction reduction(d.order, d.leastSquares, edges);
        periodicM2l_ = std::make_unique<PeriodicM2l<Real>>(
                coarse, d.boundary, d.ws, reduction, threads_, partition_ ? ownShare(d) : Share{});
        if (d.levels > 1)
        {
            tree_ = std::make_unique<Tree<Real>>(edges, d.ws, reduction, threads_);
        }
        levels_.clear();
        levels_.resize(d.levels);
        sources_.clear();
        sources_.resize(d.levels);
        box_      = d.referenceBox;
        rotation_ = Mat3::Identity();
        setGrids(box_);
        if (partition_ == nullptr)
        {
            std::vector<int> all(coarse.count());
            std::iota(all.begin(), all.end(), 0);
            setLevel0(all);
        }
        strain_ = Mat3::Zero();
    }

    void setVirialStrain(const Mat3& strain) override { periodicM2l_->setVirialStrain(strain); }

    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) override
    {
        if (box != box_)
        {
            box_      = box;
            rotation_ = rotation;
            setGrids(box * rotation.transpose());
        }
        if (strain != strain_)
        {
            periodicM2l_->setStrain(strain);
            if (tree_)
            {
                tree_->setStrain(strain);
            }
            strain_ = strain;
        }
    }

    void sort() override
    {
        const Grid& leaf   = leaves().grid;
        const auto& offset = this->task_.request.gridOffset;
        x_                 = this->task_.x;
        if (partition_ != nullptr)
        {
            const auto own = charges_.q.size();
            partition_->ghosts().exchange(
                    x_, static_cast<int>(own), &withGhosts_, &partition_->ranks());
            x_ = withGhosts_.data();
            ghosts_.sort(leaf, offset, rotation_, x_ + 3 * own, ghostCharges_, threads_);
        }
        list_.sort(leaf, offset, rotation_, x_, charges_, threads_);
        if (levels_.size() > 1)
        {
            findOccupied();
        }
        slots_.set(leaves(), list_.start(), threads_);
    }

    void exclusions() override
    {
        sums_ = {};
        near_.subtract(box_,
                       x_,
                       partition_ ? allCharges_.data() : charges_.q.data(),
                       closeDistance(),
                       wantsPotentials(),
                       &sums_);
    }

    void p2m() override
    {
        if (isAllNear_)
        {
            return;
        }
        Level<Real>& level = leaves();
        slots_.forRanges(
                threads_,
                [&](int begin, int end, int /*range*/) {
                    cpuKernels<Real>().p2m(
                            list_.particles(), slots_.view(), tables_, begin, end, level.M.data());
                });
    }

    void m2m(int level) override { tree_->m2m(levels_[level], &levels_[level - 1]); }

    void m2l(int level) override
    {
        if (isAllNear_)
        {
            return;
        }
        std::array<double, StrainCount> deviatoric = {};
        auto* virial   = this->task_.request.virial ? &deviatoric : nullptr;
        Level<Real>& l = levels_[level];
        if (level == 0)
        {
            closeLevel0(virial);
        }
        else if (partition_ != nullptr)
        {
            Level<Real>& sources = sources_[level];
            shared_.complete(level, l, &sources, &partition_->ranks());
            tree_->m2l(sources, &l, virial);
        }
        else
        {
            tree_->m2l(l, &l, virial);
        }
        for (int c = 0; c < StrainCount; c++)
        {
            sums_.deviatoric[c] += deviatoric[c] / l.grid.unit();
        }
    }

    void l2l(int level) override
    {
        double virial[6] = { 0, 0, 0, 0, 0, 0 };
        tree_->l2l(levels_[level],
                   &levels_[level + 1],
                   background(levels_[level + 1]),
                   this->task_.request.virial ? virial : nullptr);
        for (int c = 0; c < 6; c++)
        {
            sums_.virial[c] += virial[c] / levels_[level + 1].grid.unit();
        }
    }

    void l2p() override
    {
        if (isAllNear_)
        {
            for (std::vector<Real>* values : { &fx_, &fy_, &fz_ })
            {
                std::fill(values->begin(), values->end(), Real(0));
            }
            if (wantsPotentials())
            {
                potentials_.assign(fx_.size(), Real(0));
            }
            return;
        }
        Level<Real>& level = leaves();
        const double unit  = level.grid.unit();
        const Real pull    = static_cast<Real>(backgroundPull(background(level), unit));
        std::vector<std::array<double, 6>> virials(threads_);
        slots_.forRanges(threads_,
                         [&](int begin, int end, int range)
                         {
                             cpuKernels<Real>().l2p(
                                     list_.particles(),
                                     slots_.view(),
                                     tables_,
                                     begin,
                                     end,
                                     level.L.data(),
                                     pull,
                                     fx_.data(),
                                     fy_.data(),
                                     fz_.data(),
                                     this->task_.request.virial ? virials[range].data() : nullptr);
                         });
        for (const auto& own : virials)
        {
            for (int c = 0; c < 6; c++)
            {
                sums_.virial[c] += own[c];
            }
        }
        if (this->task_.request.energy)
        {
            sums_.energy += farEnergy();
        }
        if (wantsPotentials())
        {
            farPotentials();
        }
    }

    void p2p() override
    {
        near_.p2p(list_,
                  partition_ ? &ghosts_ : nullptr,
                  leaves().grid,
                  discretisation_.ws,
                  closeDistance(),
                  this->task_.request,
                  wantsPotentials(),
                  &sums_);
    }

    Totals collect() override
    {
        Real* forces                      = this->task_.forces;
        const int n                       = charges_.count();
        constexpr int c_chunk             = NearForces<Real>::c_chunk;
        const Eigen::Matrix<Real, 3, 3> R = rotation_.cast<Real>();
        const bool replace                = this->task_.request.replaceForces;
        const std::vector<Real>& excluded = near_.excludedForces();
        cappedOfChunk_.assign(n / c_chunk + 1, 0.0);
        if (partition_)
        {
            partition_->ranks().confirm(); // forces change on all ranks, or on none
        }
        if (replace && !charges_.allTakePart())
        {
            std::fill_n(forces, 3 * charges_.q.size(), Real(0));
        }
        if (wantsPotentials())
        {
            collectPotentials();
        }
        const Real* q   = list_.particles().q;
        const Real idle = static_cast<Real>(largestIdle(rootCoulomb_));
        const Real perUnit =
                this->fieldCap_ > 0 ? static_cast<Real>(rootCoulomb_ / this->fieldCap_) : Real(0);
#pragma omp parallel for schedule(static) num_threads(threads_)
        for (int chunk = 0; chunk <= n / c_chunk; chunk++)
        {
            const int begin = chunk * c_chunk;
            const int end   = std::min(n, begin + c_chunk);
            double capped   = 0;
            for (const auto& own : near_.parts())
            {
                if (own.touched[chunk])
                {
                    for (int i = begin; i < end; i++)
                    {
                        fx_[i] += own.x[i];
                        fy_[i] += own.y[i];
                        fz_[i] += own.z[i];
                    }
                }
            }
            for (int i = begin; i < end; i++)
            {
                const size_t to = 3 * static_cast<size_t>(list_.atom()[i]);
                Real square     = 0;
                for (int k = 0; k < 3; k++)
                {
                    const Real sum = excluded[to + k]
                                     + (fx_[i] * R(0, k) + fy_[i] * R(1, k) + fz_[i] * R(2, k));
                    forces[to + k]    = replace ? sum : forces[to + k] + sum;
                    const Real inCaps = sum * (perUnit / q[i]);
                    square += inCaps * inCaps;
                }
                capped += std::abs(q[i]) > idle ? std::min<double>(1, square) : 0;
            }
            cappedOfChunk_[chunk] = capped;
        }
        if (this->fieldCap_ > 0)
        {
            this->cappedFields_ =
                    std::accumulate(cappedOfChunk_.begin(), cappedOfChunk_.end(), 0.0);
        }
        return sums_.totals(this->task_.request, rotation_);
    }

    std::vector<double> multipoles(int level) const override
    {
        return byCell(levels_[level], levels_[level].M);
    }
    std::vector<double> locals(int level) const override
    {
        return byCell(levels_[level], levels_[level].L);
    }

private:
    Level<Real>& leaves()
    {
        return levels_.back();
    }

    //! Level 0 holds cells, whether there are particles in them or not, in the order of the
    //! transform. \param[in] cells  indices, ascending
    void setLevel0(const std::vector<int>& cells)
    {
        Level<Real>& level = levels_[0];
        std::vector<std::pair<int, Int3>> bySlot;
        for (const int index : cells)
        {
            const Int3 c = level.grid.cell(index);
            bySlot.emplace_back(level.grid.slot(c), c);
        }
        std::sort(bySlot.begin(), bySlot.end());
        std::vector<Int3> ordered;
        for (const auto& [slot, c] : bySlot)
        {
            ordered.push_back(c);
        }
        level.setCells(std::move(ordered), coefficientCount(discretisation_.order));
    }

    //! The wave vectors of level 0 that this rank multiplies.
    Share ownShare(const Discretisation& d) const
    {
        const Ranks& ranks = partition_->ranks();
        return SharedMultipoles<Real>::shareOf(ranks.rank(), ranks.size(), d.levels);
    }

    //! The periodic M2L.
    void closeLevel0(std::array<double, StrainCount>* virial)
    {
        Level<Real>& l = levels_[0];
        if (partition_ != nullptr)
        {
            shared_.close(&l, periodicM2l_.get(), virial, &partition_->ranks());
        }
        else
        {
            periodicM2l_->apply(l.M.data(), l.L.data(), l.padded, virial);
        }
    }

    //! Excluded pairs nearer than this are left out, nm.
    double closeDistance()
    {
        return std::min(this->exclusionRange_, surelyNear(leaves().grid, discretisation_.ws));
    }

    bool wantsPotentials() const
    {
        return this->task_.potentials != nullptr;
    }

    //! Of the background that neutralises a charge.
    double background(const Level<Real>& level, double charge) const
    {
        return discretisation_.background(charge, level.grid.count());
    }
    double background(const Level<Real>& level) const
    {
        return background(level, charges_.net);
    }

    void setGrids(const Mat3& box)
    {
        Grid grid(discretisation_.coarseCells(), box);
        for (auto& level : levels_)
        {
            level.grid = grid;
            grid       = grid.refined();
        }
        tables_ = ExpansionTables<Real>(discretisation_.order, leaves().grid.unit());
    }

    //! Cells of levels above 0 that hold particles.
    void findOccupied()
    {
        const int n = coefficientCount(discretisation_.order);
        std::vector<Int3> cells;
        for (int cell : list_.occupied())
        {
            cells.push_back(leaves().grid.cell(cell));
        }
        for (int l = static_cast<int>(levels_.size()) - 1; l > 0; l--)
        {
            levels_[l].setCells(cells, n);
            if (l > 1)
            {
                const Grid& coarser = levels_[l - 1].grid;
                std::vector<int> parents;
                for (const Int3& c : cells)
                {
                    parents.push_back(coarser.index(parentOf(c)));
                }
                std::sort(parents.begin(), parents.end());
                parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
                cells.clear();
                for (int parent : parents)
                {
                    cells.push_back(coarser.cell(parent));
                }
            }
        }
    }

    //! 1/2 sum q phi of the far field.
    double farEnergy()
    {
        const Level<Real>& level = leaves();
        const int n              = coefficientCount(discretisation_.order);
        std::vector<double> partial(n, 0.0);
#pragma omp parallel for schedule(static) num_threads(threads_)
        for (int i = 0; i < n; i++)
        {
            const Real* M = level.M.data() + static_cast<size_t>(i) * level.padded;
            const Real* L = level.L.data() + static_cast<size_t>(i) * level.padded;
            // cells that are padding have no multipoles
            partial[i] = cpuKernels<Real>().exactDot(M, L, level.padded);
        }
        double energy = 0;
        for (double part : partial)
        {
            energy += 0.5 * part / level.grid.unit();
        }
        if (charges_.net != 0)
        {
            const SquaredDistances sums = squaredDistances();
            energy += backgroundEnergy(background(level), level.grid.unit())
                      * (sums.leaves + sums.level0);
        }
        return energy;
    }

    //! Potentials of the far field at the sorted particles.
    void farPotentials()
    {
        const Level<Real>& level = leaves();
        const double unit        = level.grid.unit();
        potentials_.resize(fx_.size());
        slots_.forRanges(threads_,
                         [&](int begin, int end, int /*range*/)
                         {
                             cpuKernels<Real>().potentials(list_.particles(),
                                                           slots_.view(),
                                                           tables_,
                                                           begin,
                                                           end,
                                                           level.L.data(),
                                                           static_cast<Real>(backgroundCurvature(
                                                                   background(level), unit)),
                                                           potentials_.data());
                         });
    }

    //! Writes the potentials to the caller's array.
    void collectPotentials()
    {
        const Level<Real>& level = leaves();
        const double constant    = backgroundCurvature(background(level, 1), level.grid.unit())
                                * squaredDistances().level0;
        const int n = charges_.count();
        for (const auto& own : near_.parts())
        {
            for (int i = 0; i < n; i++)
            {
                if (own.touched[i / NearForces<Real>::c_chunk])
                {
                    potentials_[i] += own.potential[i];
                }
            }
        }
        std::fill_n(this->task_.potentials, charges_.q.size(), Real(0));
        for (int i = 0; i < n; i++)
        {
            const int atom = list_.atom()[i];
            const double sum =
                    static_cast<double>(potentials_[i]) + near_.excludedPotentials()[atom];
            this->task_.potentials[atom] = static_cast<Real>(rootCoulomb_ * (sum + constant));
        }
    }

    //! Sums of q |b|^2, b from the centres of cells, nm^2.
    struct SquaredDistances
    {
        double leaves, level0;
    };
    SquaredDistances squaredDistances()
    {
        const Particles<Real> p = list_.particles();
        double trace            = 0;
        for (int i = 0; i < charges_.count(); i++)
        {
            const double x = p.x[i], y = p.y[i], z = p.z[i];
            trace += static_cast<double>(p.q[i]) * (x * x + y * y + z * z);
        }
        double coarse = trace;
        for (size_t l = 1; l < levels_.size(); l++)
        {
            const double unit = levels_[l].grid.unit();
            coarse += unit * unit * tree_->traceShift(levels_[l]);
        }
        return { trace, coarse };
    }

    //! [cells in storage order][coefficients] of a coefficient-major array.
    std::vector<double> byCell(const Level<Real>& level, const AlignedVector<Real>& values) const
    {
        const int n = coefficientCount(discretisation_.order);
        std::vector<double> result(level.grid.count() * n, 0.0);
        for (size_t slot = 0; slot < level.cells.size(); slot++)
        {
            const size_t cell = level.grid.index(level.cells[slot]);
            for (int i = 0; i < n; i++)
            {
                result[cell * n + i] = values[static_cast<size_t>(i) * level.padded + slot];
            }
        }
        return result;
    }

    double rootCoulomb_;
    int threads_;
    Partition<Real>* partition_; //!< null if all particles are here
    HostExchange<Real> exchange_;
    ScaledCharges<Real> charges_;
    std::vector<double> cappedOfChunk_; //!< of particles, see cappedFields()
    const Real* x_ = nullptr;           //!< positions at hand, with those of ghosts

    Discretisation discretisation_;
    bool isAllNear_ = false; //!< there is no far field
    Mat3 box_       = Mat3::Zero();
    Mat3 strain_    = Mat3::Zero();
    //! From the frame of the operators, in which near and far field are computed, to the caller's.
    Mat3 rotation_ = Mat3::Identity();
    std::vector<Level<Real>> levels_;
    std::unique_ptr<PeriodicM2l<Real>> periodicM2l_;
    std::unique_ptr<Tree<Real>> tree_;
    ExpansionTables<Real> tables_;

    CellList<Real> list_;
    LeafRanges slots_;
    std::vector<Real> fx_, fy_, fz_; //!< sorted
    std::vector<Real> potentials_;   //!< of the far field, sorted; where they are wanted
    NearField<Real> near_;

    //! \name Of a partition
    //!@{
    ScaledCharges<Real> ghostCharges_;
    std::vector<Real> allCharges_; //!< scaled, of our particles and of the ghosts
    std::vector<Real> withGhosts_; //!< positions of both, [n][3]
    CellList<Real> ghosts_;
    SharedMultipoles<Real> shared_;
    std::vector<Level<Real>> sources_; //!< of M2L, by level
    //!@}

    StageSums sums_;
};

} // namespace

template<class Real>
std::unique_ptr<Backend<Real>> makeCpuBackend(double coulombConstant,
                                              int threads,
                                              Partition<Real>* partition)
{
    return std::make_unique<CpuBackend<Real>>(coulombConstant, threads, partition);
}

template std::unique_ptr<Backend<float>> makeCpuBackend<float>(double, int, Partition<float>*);
template std::unique_ptr<Backend<double>> makeCpuBackend<double>(double, int, Partition<double>*);

} // namespace farfield
