/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Multipoles of cells whose particles are on several ranks, summed where M2L needs them.
 *
 *  A rank has the multipoles of its own particles, in cells that others may hold particles of, too.
 *  As multipoles are linear in the charges, and so is M2M, only M2L has to see sums. On levels above
 *  0 each rank gets what others have in the cells near its own. Level 0 is closed in one of two ways:
 *
 *  - below it is a tree, and it is small: every rank gets all of it, and closes it by itself.
 *  - it holds the leaves: ranks divide the work, see DividedClosure.
 */
#ifndef FARFIELD_CPU_SHARED_MULTIPOLES_H
#define FARFIELD_CPU_SHARED_MULTIPOLES_H

#include <array>
#include <vector>

#include "cpu/divided_closure.h"
#include "parallel/regions.h"

namespace farfield
{

//! The exchanges of multipoles between ranks, and level 0.
template<class Real>
class SharedMultipoles
{
public:
    //! Plans them for the regions, which outlive this.
    void plan(const Regions* regions, int ws, int coefficients, const Ranks& ranks);

    /*! \brief Multipoles of all particles in the cells near ours; on a level above 0.
     *  \param[in]  own      those of our particles
     *  \param[out] sources  the same cells, and those of others that are near, with the sums */
    void complete(int level, const Level<Real>& own, Level<Real>* sources, Ranks* ranks);

    /*! \brief Local expansions of our cells of level 0.
     *  \param[in,out] own     cells of our region in the order of Grid::slot(), M of our particles;
     *                         gets L
     *  \param         m2l     made for this rank's share of wave vectors, or for all of them where
     *                         there is a tree below
     *  \param[out]    virial  if not null, our part of PeriodicM2l::apply()'s is added */
    void close(Level<Real>* own,
               PeriodicM2l<Real>* m2l,
               std::array<double, StrainCount>* virial,
               Ranks* ranks);

    //! The share of wave vectors of a rank.
    static Share shareOf(int rank, int ranks, int levels)
    {
        return levels > 1 ? Share{} : Share{ rank, ranks };
    }

private:
    //! Cells of one level that pass from rank to rank.
    struct Passed
    {
        ByRank<int> sent, received;
        std::vector<Int3> sources; //!< cells of others that are near ours
    };
    void closeAlike(Level<Real>* own,
                    PeriodicM2l<Real>* m2l,
                    std::array<double, StrainCount>* virial,
                    Ranks* ranks);

    const Regions* regions_ = nullptr;
    int coefficients_       = 0;
    std::vector<Passed> passed_; //!< by level
    std::vector<Places>
            slots_; //!< of the cells of level 0 of each rank, in the order of Grid::slot()
    DividedClosure<Real> divided_;
    ByRank<Real> out_, in_;
    size_t fieldStride_ = 0;              //!< all cells of level 0, padded
    AlignedVector<Real> fields_, locals_; //!< [coefficients][fieldStride_]
};

} // namespace farfield

#endif
