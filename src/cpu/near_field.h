/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The near field on the CPU: P2P by all threads, excluded pairs.
 */
#ifndef FARFIELD_CPU_NEAR_FIELD_H
#define FARFIELD_CPU_NEAR_FIELD_H

#include <utility>
#include <vector>

#include "backend/backend.h"
#include "cpu/cell_list.h"
#include "cpu/cpu_kernels.h"
#include "cpu/exclusions.h"

namespace farfield
{

//! Forces of near cells and of excluded pairs, kept apart until they are collected.
template<class Real>
class NearField
{
public:
    //! \param[in] team  does the work
    explicit NearField(Team* team) : team_(*team) {}

    //! Makes room for the forces on n particles.
    void reserve(int n) { excludedForces_.reserve(3 * static_cast<size_t>(n)); }
    //! The number of particles; nothing fails after reserve().
    void resize(int n) { excludedForces_.assign(3 * static_cast<size_t>(n), Real(0)); }
    /*! \brief As Backend::setExclusions().
     *  \param[in] n    particles, ghosts of other ranks among them
     *  \param[in] own  those that are none, the first */
    void setExclusions(const int* offsets, const int* partners, int n, int own)
    {
        exclusions_.set(offsets, partners, n, own, team_.threads());
    }

    /*! \brief Subtracts excluded pairs, by the next run of the team.
     *  \param[in] x, q  [n][3] and [n], before sorting, with ghosts
     *  \param[in] closeDistance  nm: nearer pairs are left out by P2P
     *  \param[in] potentials     whether theirs are wanted */
    void addSubtraction(const Mat3& box,
                        const Real* x,
                        const Real* q,
                        double closeDistance,
                        bool potentials);
    /*! \brief Pairs of particles in near cells, by the next run of the team.
     *  \param[in] ghosts  of other ranks, or null: they act on ours, and get nothing
     *  \param[in] grid    outlives the run
     *  \param[in] closeDistance  nm, within which pairs that are left out are: those of
     *                            addSubtraction(), which has been done, and further ones
     *  \param[in] further        not excluded, i < j, before sorting; at most surelyNear() apart */
    void addP2p(const CellList<Real>& list,
                const CellList<Real>* ghosts,
                const Grid& grid,
                int ws,
                double closeDistance,
                const std::vector<std::pair<int, int>>& further,
                const Request& request,
                bool potentials);
    const Exclusions<Real>& exclusions() const { return exclusions_; }
    //! Adds what both have summed up, after their runs.
    void addSums(StageSums* sums) const;

    //! [n][3], before sorting.
    const std::vector<Real>& excludedForces() const { return excludedForces_; }
    //! [n], before sorting; where potentials are wanted.
    const std::vector<Real>& excludedPotentials() const { return excludedPotentials_; }
    //! Parts of the forces on sorted particles; what is not touched counts as zero.
    const std::vector<NearForces<Real>>& parts() const { return near_; }

private:
    //! Close pairs as compressed rows of sorted particles.
    struct ClosePairs
    {
        std::vector<int> offsets, partners;
        ClosePartners view() const { return { offsets.data(), partners.data() }; }
    };
    //! Lists close pairs: of two of ours at both, of one and a ghost at ours.
    void sortClosePairs(const std::vector<std::pair<int, int>>& pairs,
                        const CellList<Real>& list,
                        const CellList<Real>* ghosts);

    //! Parts of cells in ranges with about equal numbers of particles.
    struct Division
    {
        int ranges = 0;
        std::vector<NearItem> items;
        std::vector<int> reached; //!< [items + 1] particles in those before

        //! The first item of a range.
        int boundary(int range) const;
    };
    void divide(const CellList<Real>& list);
    //! The forces of a range.
    void addRange(int range, const CellList<Real>& list, const CellList<Real>* ghosts);

    Team& team_;
    Division division_;
    NearTask<Real> task_, taskOfGhosts_;
    Exclusions<Real> exclusions_;
    std::vector<Real> excludedForces_, excludedPotentials_;
    std::vector<NearForces<Real>> near_; //!< of ranges of cells
    //! Position of each particle with a charge among the sorted ones, for close pairs.
    std::vector<int> rank_, ghostRank_;
    ClosePairs close_, closeGhosts_; //!< see sortClosePairs()
};

} // namespace farfield

#endif
