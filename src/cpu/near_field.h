/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The near field on the CPU: P2P by all threads, excluded pairs.
 */
#ifndef FARFIELD_CPU_NEAR_FIELD_H
#define FARFIELD_CPU_NEAR_FIELD_H

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
    //! \param[in] threads  OpenMP threads
    explicit NearField(int threads) : threads_(threads), near_(threads) {}

    //! Makes room for the forces on n particles.
    void reserve(int n) { excludedForces_.reserve(3 * static_cast<size_t>(n)); }
    //! The number of particles; nothing fails after reserve().
    void resize(int n) { excludedForces_.resize(3 * static_cast<size_t>(n)); }
    /*! \brief As Backend::setExclusions().
     *  \param[in] n    particles, ghosts of other ranks among them
     *  \param[in] own  those that are none, the first */
    void setExclusions(const int* offsets, const int* partners, int n, int own)
    {
        exclusions_.set(offsets, partners, n, own);
    }

    /*! \brief Subtracts excluded pairs.
     *  \param[in] x, q  [n][3] and [n], before sorting, with ghosts
     *  \param[in] closeDistance  nm: nearer pairs are left out by p2p()
     *  \param[in] potentials     whether theirs are wanted */
    void subtract(const Mat3& box,
                  const Real* x,
                  const Real* q,
                  double closeDistance,
                  bool potentials,
                  StageSums* sums);
    /*! \brief Pairs of particles in near cells.
     *  \param[in] ghosts  of other ranks, or null: they act on ours, and get nothing
     *  \param[in] closeDistance  that of subtract() */
    void p2p(const CellList<Real>& list,
             const CellList<Real>* ghosts,
             const Grid& grid,
             int ws,
             double closeDistance,
             const Request& request,
             bool potentials,
             StageSums* sums);

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
    //! Lists the close pairs: of two of ours at both, of one and a ghost at ours.
    void sortClosePairs(const CellList<Real>& list, const CellList<Real>* ghosts);

    //! Cells that are divided among the threads one by one, and those whose particles are.
    struct Division
    {
        std::vector<int> cells;   //!< occupied ones
        std::vector<int> reached; //!< [cells] particles in those before
        int particles = 0;        //!< in all of them
        std::vector<int> full;    //!< the others
    };
    void divide(const CellList<Real>& list);

    int threads_;
    Division division_;
    Exclusions<Real> exclusions_;
    std::vector<Real> excludedForces_, excludedPotentials_;
    std::vector<NearForces<Real>> near_; //!< of ranges of cells, one for each thread
    //! Position of each particle with a charge among the sorted ones, for close pairs.
    std::vector<int> rank_, ghostRank_;
    ClosePairs close_, closeGhosts_; //!< see sortClosePairs()
};

} // namespace farfield

#endif
