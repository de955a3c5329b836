/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What pairs have in place of 1/r, on the CPU.
 *
 *  P2P and the far field contain 1/r of every pair. This stage adds f(r) - 1/r, and tells P2P which
 *  pairs to leave out because they are so close that 1/r would cancel f: of these it adds f. It walks
 *  the leaf cells that hold particles within the range, which may be farther than those of P2P.
 */
#ifndef FARFIELD_CPU_NEAR_FUNCTIONS_H
#define FARFIELD_CPU_NEAR_FUNCTIONS_H

#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/team.h"
#include "cpu/cell_list.h"
#include "cpu/cpu_kernels.h"
#include "cpu/exclusions.h"

namespace farfield
{

//! Near functions and their forces.
template<class Real>
class NearFunctions
{
public:
    using Pairs = std::vector<std::pair<int, int>>;

    //! \param[in] team  does the work
    explicit NearFunctions(Team* team) : team_(*team) {}

    //! As Backend::setNearPairs(). Nothing has changed if memory is missing.
    void set(const NearPairs<Real>& pairs);
    bool any() const { return pairs_.any(); }
    const NearPairs<Real>& pairs() const { return pairs_; }

    /*! \brief What sites need of them; any() must be true.
     *  \param[in] list, grid, boundary, ws  as for compute()
     *  Then task() has it, without excluded pairs. */
    void prepare(const CellList<Real>& list, const Grid& grid, Boundary boundary, int ws);
    const NearFunctionTask<Real>& task() const { return task_; }
    /*! \brief Computes forces and sums; any() must be true.
     *  \param[in] list  has been placed; without ghosts
     *  \param[in] grid  the leaves
     *  \param[in] ws    of P2P */
    void compute(const CellList<Real>& list,
                 const Grid& grid,
                 Boundary boundary,
                 int ws,
                 const Exclusions<Real>& exclusions,
                 const Request& request,
                 bool potentials);
    //! Adds energy and virial.
    void addSums(StageSums* sums) const;
    //! Distance, nm, that wholePairs() are within, at most surelyNear(); 0 if there are none.
    double wholeWithin() const;
    //! Pairs that P2P has to leave out, before sorting, i < j.
    const Pairs& wholePairs() const { return wholePairs_; }
    //! Parts of the forces on sorted particles, as NearField::parts(); none without near functions.
    const std::vector<NearForces<Real>>& parts() const { return parts_; }

private:
    //! Which cells hold particles within the range of those of a cell.
    void findDisplacements(const Grid& grid, Boundary boundary);
    //! The widths in the order of the sorted particles, and how many of a cell are not 0.
    void sortWidths(const CellList<Real>& list);
    void findExcluded(const Exclusions<Real>& exclusions, int particles);
    //! Adds what pairs have that P2P leaves out.
    void addWhole(const Particles<Real>& p,
                  const std::vector<WholePair>& pairs,
                  NearForces<Real>* forces) const;

    Team& team_;
    NearPairs<Real> pairs_;
    NearFunctionTask<Real> task_;
    std::vector<Int3> displacements_;
    AlignedVector<Real> width_;           //!< [sorted], see NearFunctionTask
    std::vector<int> wide_;               //!< [cells]
    double surelyNear_ = 0;               //!< nm
    std::vector<NearForces<Real>> parts_; //!< of ranges of cells
    std::vector<NearFunctionRoom<Real>> rooms_;
    Pairs wholePairs_;
};

} // namespace farfield

#endif
