/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cells/excluded_pairs.h"
#include "operators/background.h"
#include "operators/reduction.h"
#include "plan/open_box.h"

namespace farfield
{

template<class Real>
CpuBackend<Real>::CpuBackend(double coulombConstant, int threads, Partition<Real>* partition) :
    rootCoulomb_(std::sqrt(coulombConstant)), team_(threads), partition_(partition),
    exchange_(partition, this), near_(&team_), functions_(&team_), sites_(&team_)
{
    static_assert(static_cast<int>(Stage::Count) <= Team::c_accounts);
}

template<class Real>
void CpuBackend<Real>::setCharges(const Real* q, int n)
{
    ScaledCharges<Real> scaled(q, n, rootCoulomb_, partition_ == nullptr);
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

template<class Real>
void CpuBackend<Real>::setGhosts(const Real* q, int n, double net)
{
    ghostCharges_ = ScaledCharges<Real>(q, n, rootCoulomb_, false);
    charges_.net  = rootCoulomb_ * net;
    allCharges_   = charges_.q;
    allCharges_.insert(allCharges_.end(), ghostCharges_.q.begin(), ghostCharges_.q.end());
    shared_.plan(&partition_->regions(),
                 discretisation_.ws,
                 coefficientCount(discretisation_.order),
                 partition_->ranks());
    setLevel0(partition_->regions().cells(0, partition_->ranks().rank()));
}

template<class Real>
void CpuBackend<Real>::build(const Discretisation& d)
{
    periodicM2l_.reset();
    tree_.reset();
    discretisation_ = d;
    isAllNear_      = d.isAllNear();
    list_.keepGiven(!roundsInCells(d.boundary)); // which ranks never do
    const Grid coarse(d.coarseCells(), d.referenceBox);
    const Mat3 edges = coarse.scaledEdges();
    const Reduction reduction(d.order, d.leastSquares, edges);
    periodicM2l_ = std::make_unique<PeriodicM2l<Real>>(
            coarse, d.boundary, d.ws, reduction, &team_, partition_ ? ownShare(d) : Share{});
    if (d.levels > 1)
    {
        tree_ = std::make_unique<Tree<Real>>(edges, d.ws, reduction, &team_);
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

template<class Real>
void CpuBackend<Real>::setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation)
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

template<class Real>
void CpuBackend<Real>::together(const std::function<void()>& stages)
{
    byOne_.fill(0);
    team_.clearTimes();
    const auto begin = Clock::now();
    team_.together(stages);
    evaluation_ = std::chrono::duration<double>(Clock::now() - begin).count();
}

template<class Real>
void CpuBackend<Real>::beginStage(Stage stage)
{
    team_.setAccount(static_cast<int>(stage));
    runningBefore_ = team_.secondsRunning();
    stageBegin_    = Clock::now();
}

template<class Real>
void CpuBackend<Real>::endStage(Stage stage)
{
    const double spent = std::chrono::duration<double>(Clock::now() - stageBegin_).count();
    byOne_[static_cast<int>(stage)] += spent - (team_.secondsRunning() - runningBefore_);
}

template<class Real>
bool CpuBackend<Real>::measured(double* seconds)
{
    double atWork = 0;
    for (int stage = 0; stage < static_cast<int>(Stage::Count); stage++)
    {
        seconds[stage] = byOne_[stage] + team_.secondsAtWork(stage) / team_.came();
        atWork += seconds[stage];
    }
    seconds[static_cast<int>(Stage::Waiting)] =
            team_.came() > 1 ? std::max(0.0, evaluation_ - atWork) : 0;
    return true;
}

template<class Real>
void CpuBackend<Real>::sort()
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
        ghosts_.sort(leaf, offset, rotation_, x_ + 3 * own, ghostCharges_, &team_);
    }
    list_.bin(leaf, offset, rotation_, x_, charges_, &team_);
    if (levels_.size() > 1)
    {
        findOccupied();
    }
    // done beside the excluded pairs
    list_.addPlacing(x_, charges_, &team_);
    slots_.addSet(leaves(), list_.start(), &team_);
}

template<class Real>
void CpuBackend<Real>::exclusions()
{
    sums_ = {};
    if (areSites())
    {
        team_.run();
        tables_.addCurvature();
        sites_.begin(list_,
                     near_.exclusions(),
                     box_,
                     rotation_,
                     x_,
                     charges_.q,
                     functions_.pairs(),
                     closeDistance(),
                     this->task_.hessians != nullptr
                             || (sites_.anyMoments()
                                 && (this->task_.wantsForces || this->task_.torques != nullptr
                                     || this->task_.sumsEnergy())),
                     this->task_.request.virial);
        return;
    }
    near_.addSubtraction(box_,
                         x_,
                         partition_ ? allCharges_.data() : charges_.q.data(),
                         closeDistance(),
                         wantsPotentials());
    team_.run();
}

template<class Real>
void CpuBackend<Real>::nearFunction()
{
    if (areSites())
    {
        functions_.prepare(list_, leaves().grid, discretisation_.boundary, discretisation_.ws);
        return;
    }
    functions_.compute(list_,
                       leaves().grid,
                       discretisation_.boundary,
                       discretisation_.ws,
                       near_.exclusions(),
                       this->task_.request,
                       wantsPotentials());
    functions_.addSums(&sums_);
}

template<class Real>
void CpuBackend<Real>::p2p()
{
    // done beside P2M
    if (areSites())
    {
        sites_.addP2p(list_,
                      leaves().grid,
                      discretisation_.ws,
                      closeDistance(),
                      functions_.any() ? &functions_.task() : nullptr);
        return;
    }
    near_.addP2p(list_,
                 partition_ ? &ghosts_ : nullptr,
                 leaves().grid,
                 discretisation_.ws,
                 std::max(closeDistance(), functions_.wholeWithin()),
                 functions_.wholePairs(),
                 this->task_.request,
                 wantsPotentials());
}

template<class Real>
void CpuBackend<Real>::p2m()
{
    if (!isAllNear_)
    {
        slots_.addRanges(
                &team_,
                [this](int begin, int end, int /*range*/)
                {
                    if (areSites())
                    {
                        sites_.p2m(list_, slots_.view(), tables_, begin, end, leaves().M.data());
                        return;
                    }
                    cpuKernels<Real>().p2m(list_.particles(),
                                           slots_.view(),
                                           tables_,
                                           begin,
                                           end,
                                           leaves().M.data());
                });
    }
    team_.run();
    if (areSites())
    {
        sites_.addVirials(&sums_);
    }
    else
    {
        near_.addSums(&sums_);
    }
}

template<class Real>
void CpuBackend<Real>::m2l(int level)
{
    if (isAllNear_)
    {
        return;
    }
    std::array<double, StrainCount> deviatoric = {};
    auto* virial                               = this->task_.request.virial ? &deviatoric : nullptr;
    Level<Real>& l                             = levels_[level];
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

template<class Real>
void CpuBackend<Real>::l2l(int level)
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

template<class Real>
void CpuBackend<Real>::l2p()
{
    if (isAllNear_)
    {
        if (areSites())
        {
            return;
        }
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
    Level<Real>& level     = leaves();
    const double unit      = level.grid.unit();
    const Real pull        = static_cast<Real>(backgroundPull(background(level), unit));
    const double curvature = backgroundCurvature(background(level), unit);
    std::vector<std::array<double, 6>> virials(slots_.ranges(team_));
    slots_.addRanges(&team_,
                     [&](int begin, int end, int range)
                     {
                         double* virial =
                                 this->task_.request.virial ? virials[range].data() : nullptr;
                         if (areSites())
                         {
                             sites_.l2p(list_,
                                        slots_.view(),
                                        tables_,
                                        begin,
                                        end,
                                        level.L.data(),
                                        curvature,
                                        virial);
                             return;
                         }
                         cpuKernels<Real>().l2p(list_.particles(),
                                                slots_.view(),
                                                tables_,
                                                begin,
                                                end,
                                                level.L.data(),
                                                pull,
                                                fx_.data(),
                                                fy_.data(),
                                                fz_.data(),
                                                virial);
                     });
    if (wantsPotentials() && !areSites())
    {
        addFarPotentials();
    }
    team_.run();
    for (const auto& own : virials)
    {
        for (int c = 0; c < 6; c++)
        {
            sums_.virial[c] += own[c];
        }
    }
    if (this->task_.request.energy && !areSites())
    {
        sums_.energy += farEnergy();
    }
}

template<class Real>
void CpuBackend<Real>::setLevel0(const std::vector<int>& cells)
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

template<class Real>
Share CpuBackend<Real>::ownShare(const Discretisation& d) const
{
    const Ranks& ranks = partition_->ranks();
    return SharedMultipoles<Real>::shareOf(ranks.rank(), ranks.size(), d.levels);
}

template<class Real>
void CpuBackend<Real>::closeLevel0(std::array<double, StrainCount>* virial)
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

template<class Real>
double CpuBackend<Real>::closeDistance()
{
    return std::min(this->exclusionRange_, surelyNear(leaves().grid, discretisation_.ws));
}

template<class Real>
void CpuBackend<Real>::setGrids(const Mat3& box)
{
    Grid grid(discretisation_.coarseCells(), box);
    for (auto& level : levels_)
    {
        level.grid = grid;
        grid       = grid.refined();
    }
    tables_ = ExpansionTables<Real>(discretisation_.order, leaves().grid.unit());
}

template<class Real>
void CpuBackend<Real>::findOccupied()
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

template<class Real>
std::vector<double> CpuBackend<Real>::byCell(const Level<Real>& level,
                                             const AlignedVector<Real>& values) const
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
