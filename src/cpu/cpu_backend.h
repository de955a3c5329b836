/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The stages of an evaluation on the CPU.
 *
 *  One team of threads does all of them. Stages that do not depend on each other run together: places
 *  of particles and excluded pairs, P2P and P2M.
 */
#ifndef FARFIELD_CPU_CPU_BACKEND_H
#define FARFIELD_CPU_CPU_BACKEND_H

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/team.h"
#include "cpu/cell_list.h"
#include "cpu/cpu_kernels.h"
#include "cpu/host_exchange.h"
#include "cpu/leaf_ranges.h"
#include "cpu/m2l_periodic.h"
#include "cpu/near_field.h"
#include "cpu/near_functions.h"
#include "cpu/shared_multipoles.h"
#include "cpu/site_fields.h"
#include "cpu/tree.h"
#include "operators/scaled_charges.h"
#include "parallel/partition.h"

namespace farfield
{

template<class Real>
class CpuBackend final : public Backend<Real>
{
public:
    CpuBackend(double coulombConstant, int threads, Partition<Real>* partition);

    Exchange<Real>* exchange() override { return partition_ != nullptr ? &exchange_ : nullptr; }
    void setCharges(const Real* q, int n) override;
    void setExclusions(const int* offsets, const int* partners, int n) override
    {
        near_.setExclusions(offsets, partners, n, static_cast<int>(charges_.q.size()));
    }
    void setMoments(const Moments<Real>& moments, const Real* strengths) override
    {
        sites_.setMoments(moments, strengths, static_cast<int>(charges_.q.size()), rootCoulomb_);
    }
    void setNearPairs(const NearPairs<Real>& pairs) override { functions_.set(pairs); }
    bool hasNearFunction() const override { return functions_.any(); }
    void setGhosts(const Real* q, int n, double net) override;
    void build(const Discretisation& d) override;
    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) override;
    void setVirialStrain(const Mat3& strain) override { periodicM2l_->setVirialStrain(strain); }

    void together(const std::function<void()>& stages) override;
    void sort() override;
    void exclusions() override;
    void nearFunction() override;
    void p2p() override;
    void p2m() override;
    void m2m(int level) override { tree_->m2m(levels_[level], &levels_[level - 1]); }
    void m2l(int level) override;
    void l2l(int level) override;
    void l2p() override;
    Totals collect() override;

    void beginStage(Stage stage) override;
    void endStage(Stage stage) override;
    bool measured(double* seconds) override;

    std::vector<double> multipoles(int level) const override
    {
        return byCell(levels_[level], levels_[level].M);
    }
    std::vector<double> locals(int level) const override
    {
        return byCell(levels_[level], levels_[level].L);
    }

private:
    Level<Real>& leaves() { return levels_.back(); }
    //! Level 0 holds cells, whether there are particles in them or not, in the order of the
    //! transform. \param[in] cells  indices, ascending
    void setLevel0(const std::vector<int>& cells);
    //! The wave vectors of level 0 that this rank multiplies.
    Share ownShare(const Discretisation& d) const;
    //! The periodic M2L.
    void closeLevel0(std::array<double, StrainCount>* virial);
    //! Excluded pairs nearer than this are left out, nm.
    double closeDistance();
    bool wantsPotentials() const { return this->task_.potentials != nullptr; }
    //! Whether SiteFields has the stages that particles take part in.
    bool areSites() const { return sites_.anyMoments() || this->task_.wantsDerivatives(); }
    //! Of the background that neutralises a charge.
    double background(const Level<Real>& level, double charge) const
    {
        return discretisation_.background(charge, level.grid.count());
    }
    double background(const Level<Real>& level) const { return background(level, charges_.net); }
    void setGrids(const Mat3& box);
    //! Cells of levels above 0 that hold particles.
    void findOccupied();

    //! \name Of forces, energies and potentials, in collect.cpp
    //!@{
    //! 1/2 sum q phi of the far field.
    double farEnergy();
    //! Potentials of the far field at the sorted particles, by the next run of the team.
    void addFarPotentials();
    //! Adds the near field and what is excluded, and writes to the caller's arrays.
    //! \returns the sum of Backend::cappedFields() over the sorted particles [begin, end)
    double collectChunk(int begin, int end, double ofBackground);
    //! The potential that the background adds everywhere.
    double potentialOfBackground();
    //! Sums of q |b|^2, b from the centres of cells, nm^2.
    struct SquaredDistances
    {
        double leaves, level0;
    };
    SquaredDistances squaredDistances();
    //! collect() of sites.
    Totals collectSites();
    //!@}

    //! [cells in storage order][coefficients] of a coefficient-major array.
    std::vector<double> byCell(const Level<Real>& level, const AlignedVector<Real>& values) const;

    double rootCoulomb_;
    Team team_;
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
    NearFunctions<Real> functions_;
    SiteFields<Real> sites_;

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

    //! \name Times of the last evaluation, s
    //!@{
    using Clock = std::chrono::steady_clock;
    std::array<double, static_cast<int>(Stage::Count)>
            byOne_ = {}; //!< of the caller's thread alone
    Clock::time_point stageBegin_;
    double runningBefore_ = 0; //!< the stage: Team::secondsRunning()
    double evaluation_    = 0; //!< all of it
    //!@}
};

} // namespace farfield

#endif
