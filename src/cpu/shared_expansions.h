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
 *  - it holds the leaves: coefficients are dealt out over ranks for the transforms, and wave vectors
 *    for the products of operators; between them everybody sends a part of his part to everybody. Local
 *    expansions come back for the cells of the particles.
 */
#ifndef FARFIELD_CPU_SHARED_EXPANSIONS_H
#define FARFIELD_CPU_SHARED_EXPANSIONS_H

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cpu/m2l_periodic.h"
#include "cpu/tree.h"
#include "parallel/regions.h"

namespace farfield
{

//! Places in an array, as stretches of neighbours that are copied at once, ascending.
class Places
{
public:
    explicit Places(std::vector<int> indices);
    size_t count() const { return count_; } //!< places

    //! Copies elements of so many numbers from their places. \returns the end of the copies
    template<class Real>
    Real* pack(const Real* from, int numbers, Real* to) const
    {
        for (const auto& [first, length] : runs_)
        {
            to = std::copy_n(from + static_cast<size_t>(numbers) * first, numbers * length, to);
        }
        return to;
    }
    //! Copies them to their places. \returns the end of what was read
    template<class Real>
    const Real* unpack(const Real* from, int numbers, Real* to) const
    {
        for (const auto& [first, length] : runs_)
        {
            std::copy_n(from, numbers * length, to + static_cast<size_t>(numbers) * first);
            from += numbers * length;
        }
        return from;
    }
    //! Adds single numbers to those at their places. \returns the end of what was read
    template<class Real>
    const Real* add(const Real* from, Real* to) const
    {
        for (const auto& [first, length] : runs_)
        {
            for (int i = 0; i < length; i++)
            {
                to[first + i] += *from++;
            }
        }
        return from;
    }

private:
    std::vector<std::pair<int, int>> runs_; //!< first place and length
    size_t count_;
};

//! The exchanges of expansions between ranks.
template<class Real>
class SharedExpansions
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
    //! Copies the beginnings of rows, one behind the other. \returns the end of the copies
    static Real* packRows(const Real* rows, size_t stride, size_t count, size_t length, Real* to);
    //! Adds rows of a rank's cells to the first fields.
    void addToFields(const Real* rows, size_t stride, size_t count, const Places& cells);
    void closeInShares(Level<Real>* own,
                       PeriodicM2l<Real>* m2l,
                       std::array<double, StrainCount>* virial,
                       Ranks* ranks);

    const Regions* regions_ = nullptr;
    int coefficients_       = 0;
    std::vector<Passed> passed_; //!< by level
    std::vector<Places>
            slots_; //!< of the cells of level 0 of each rank, in the order of Grid::slot()
    std::vector<Places> waves_; //!< wave vectors of each rank, once they are needed
    ByRank<Real> out_, in_;
    size_t fieldStride_ = 0;              //!< all cells of level 0, padded
    AlignedVector<Real> fields_, locals_; //!< [coefficients][fieldStride_]
};

} // namespace farfield

#endif
