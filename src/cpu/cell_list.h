/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles binned into leaf cells, every step.
 */
#ifndef FARFIELD_CPU_CELL_LIST_H
#define FARFIELD_CPU_CELL_LIST_H

#include <vector>

#include "base/aligned_vector.h"
#include "base/team.h"
#include "cells/binning.h"
#include "cells/grid.h"
#include "cpu/cpu_kernels.h"
#include "operators/scaled_charges.h"

namespace farfield
{

/*! \brief Particles with a charge sorted by cell, with positions relative to the centre of their
 *         cell.
 *
 *  Within a cell the original order is kept, so the result does not depend on the number of
 *  threads. */
template<class Real>
class CellList
{
public:
    /*! \brief Wraps and bins: finds start() and occupied().
     *  \param[in] grid      the cells in the frame of the operators
     *  \param[in] offset    origin of the cells, in cells
     *  \param[in] rotation  from that frame to the one of x (row vectors)
     *  \param[in] x       [n][3], any image
     *  \param[in] charges  of the n particles; those without one are left out
     *  \throws Error  InvalidArgument: a position is not finite */
    void bin(const Grid& grid,
             const std::array<double, 3>& offset,
             const Mat3& rotation,
             const Real* x,
             const ScaledCharges<Real>& charges,
             Team* team);
    //! Whether given() is wanted.
    void keepGiven(bool wanted) { keepsGiven_ = wanted; }
    bool keepsGiven() const { return keepsGiven_; }
    //! Copies particles to their places, by the next run of the team, after bin() of these x and charges.
    void addPlacing(const Real* x, const ScaledCharges<Real>& charges, Team* team);
    //! All of it.
    void sort(const Grid& grid,
              const std::array<double, 3>& offset,
              const Mat3& rotation,
              const Real* x,
              const ScaledCharges<Real>& charges,
              Team* team)
    {
        bin(grid, offset, rotation, x, charges, team);
        addPlacing(x, charges, team);
        team->run();
    }

    Particles<Real> particles() const
    {
        return { x_.data(), y_.data(), z_.data(), q_.data(), start_.data(), atom_.data() };
    }
    //! The same with positions as they were given: their differences are not rounded in any cell.
    Particles<Real> given() const
    {
        return { givenX_.data(), givenY_.data(), givenZ_.data(),
                 q_.data(),      start_.data(),  atom_.data() };
    }
    //! Cells that hold particles, ascending.
    const std::vector<int>& occupied() const { return occupied_; }
    //! [cells + 1] first particle of each cell.
    const std::vector<int>& start() const { return start_; }
    //! [particles with a charge] index before sorting.
    const std::vector<int>& atom() const { return atom_; }
    //! Particles that were given, those without a charge among them.
    int particlesGiven() const { return numParticles_; }

private:
    //! First particle that a histogram counts.
    int beginOf(int histogram) const;
    int beginOfStretch(int stretch) const;
    //! Finds the cell of every particle, and counts.
    void count(const CellGrid& cells,
               const BinFrame& frame,
               const std::array<double, 3>& offset,
               const Real* x,
               const ScaledCharges<Real>& charges,
               Team* team);
    //! Counts become the first position of each histogram's share of a cell.
    void countToStart(Team* team);

    bool keepsGiven_  = false;
    int numParticles_ = 0;
    AlignedVector<Real> x_, y_, z_, q_;
    AlignedVector<Real> givenX_, givenY_, givenZ_;
    std::vector<int> start_, atom_, occupied_;
    std::vector<int> cell_;                //!< cell of each particle with a charge, before sorting
    std::vector<Real> relative_;           //!< [as many][3] before sorting
    std::vector<std::vector<int>> counts_; //!< histograms
    //! Stretches of cells: what each histogram has counted in them, and those that are occupied.
    std::vector<std::vector<int>> countsOfStretch_, occupiedOfStretch_;
};

} // namespace farfield

#endif
