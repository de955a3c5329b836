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

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/team.h"
#include "cpu/cell_list.h"

namespace farfield
{

//! Near functions and their forces.
template<class Real>
class NearFunctions
{
public:
    //! Whether two particles, before sorting, are an excluded pair.
    using IsExcluded = std::function<bool(int, int)>;
    using Pairs      = std::vector<std::pair<int, int>>;

    //! \param[in] team  does the work
    explicit NearFunctions(Team* team) : team_(*team) {}

    //! As Backend::setNearPairs(). Nothing has changed if memory is missing.
    void set(const NearPairs<Real>& pairs);
    bool any() const { return pairs_.any(); }

    /*! \brief Computes forces and sums; any() must be true.
     *
     *  Each particle sums its own pairs, in the order of cells: the forces do not depend on the number
     *  of threads.
     *  \param[in] list  has been placed; without ghosts
     *  \param[in] grid  the leaves
     *  \param[in] ws    of P2P */
    void compute(const CellList<Real>& list,
                 const Grid& grid,
                 Boundary boundary,
                 int ws,
                 const IsExcluded& isExcluded,
                 bool potentials);
    //! Adds energy and virial.
    void addSums(StageSums* sums) const;
    //! Distance, nm, that wholePairs() are within, at most surelyNear(); 0 if there are none.
    double wholeWithin() const;
    //! Pairs that P2P has to leave out, before sorting, i < j.
    const Pairs& wholePairs() const { return wholePairs_; }
    //! Adds forces and potentials of sorted particles in [begin, end). \param[in,out] potential  or null
    void addTo(int begin, int end, Real* fx, Real* fy, Real* fz, Real* potential) const;

private:
    //! What a range of cells leaves behind.
    struct Sums
    {
        double energy                = 0;
        std::array<double, 6> virial = {}; //!< -1/2 sum r (x) f: xx yy zz xy xz yz
        Pairs whole;
    };
    //! Cells that may hold a particle in range, in terms of the cell that looks, and how far they are.
    struct Neighbour
    {
        Int3 displacement;
        Vec3 shift; //!< nm, of its centre
    };
    struct Stretch
    {
        int begin, end;
    };
    //! The particles of a cell that may be in range.
    struct Sources
    {
        Stretch all;  //!< of the sorted particles
        Stretch wide; //!< of wide_
        Vec3 centre;  //!< nm, of their cell from that of the cell that looks
        Vec3 shift;   //!< nm, what is added to their positions
        bool areOwn;  //!< of the cell itself
    };
    //! Those of them that are in range, and whose pair may have a width.
    struct Found
    {
        int count = 0;
        std::vector<int> inRange;
        std::vector<double> square; //!< nm^2, scratch
    };
    //! Of the pairs of a particle.
    struct PairSum
    {
        Vec3 force       = Vec3::Zero();
        double potential = 0;
    };
    void findNeighbours(const Grid& grid, Boundary boundary);
    //! The widths in the order of the sorted particles, and which are not 0.
    void sortWidths(const CellList<Real>& list);
    //! Forces on the particles of some occupied cells.
    void addCells(const CellList<Real>& list,
                  const Grid& grid,
                  int begin,
                  int end,
                  const IsExcluded& isExcluded,
                  Sums* sums);
    void find(const Particles<Real>& p, int i, const Sources& from, Found* found) const;
    void addPair(const Particles<Real>& p,
                 int i,
                 int j,
                 const Vec3& shift,
                 PairSum* sum,
                 Sums* sums) const;

    Team& team_;
    NearPairs<Real> pairs_;
    std::vector<Neighbour> neighbours_;
    std::vector<double> width_;   //!< [sorted], nm
    std::vector<int> wide_;       //!< sorted particles whose width is not 0
    std::vector<Stretch> wideOf_; //!< [cells], of those that are occupied
    std::vector<Real> x_, y_, z_; //!< [sorted] forces, in the frame of the operators
    std::vector<Real> potential_; //!< [sorted]
    double surelyNear_ = 0;       //!< nm
    double reach2_ = 0; //!< nm^2: cells whose centres are farther away hold no particle in range
    std::vector<Sums> sums_; //!< of ranges of cells
    Pairs wholePairs_;
};

} // namespace farfield

#endif
