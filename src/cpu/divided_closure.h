/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The periodic M2L of level 0 where it holds the leaves, divided among ranks.
 *
 *  Coefficients are dealt out over ranks for the transforms, and wave vectors for the products of
 *  operators; between them everybody sends a part of his part to everybody. Local expansions come
 *  back for the cells of the particles.
 */
#ifndef FARFIELD_CPU_DIVIDED_CLOSURE_H
#define FARFIELD_CPU_DIVIDED_CLOSURE_H

#include <array>
#include <vector>

#include "cpu/m2l_periodic.h"
#include "cpu/places.h"
#include "cpu/tree.h"
#include "parallel/ranks.h"

namespace farfield
{

template<class Real>
class DividedClosure
{
public:
    /*! \param[in] slots        of the cells of each rank, in the order of Grid::slot(); outlive this
     *  \param[in] fieldStride  all cells, padded */
    void plan(const std::vector<Places>* slots, size_t fieldStride, int coefficients);
    //! As SharedMultipoles::close().
    void close(Level<Real>* own,
               PeriodicM2l<Real>* m2l,
               std::array<double, StrainCount>* virial,
               Ranks* ranks);

private:
    //! The coefficients of a rank.
    int first(int rank) const { return Share{ rank, ranks_->size() }.begin(coefficients_); }
    size_t number(int rank) const
    {
        return static_cast<size_t>(Share{ rank, ranks_->size() }.end(coefficients_) - first(rank));
    }
    /*! \brief Passes numbers between every two ranks.
     *  \param[in] sent, received  how many, (rank)
     *  \param[in] pack            writes those for a rank, (rank, to)
     *  \param[in] unpack          reads those of a rank, (rank, from) */
    template<class Sent, class Received, class Pack, class Unpack>
    void pass(const Sent& sent, const Received& received, const Pack& pack, const Unpack& unpack);
    //! Multipoles of cells to those who have the coefficients, where they are added.
    void passMultipoles(const Level<Real>& own);
    //! Spectra of coefficients to those who have the wave vectors, or the products back.
    void passSpectra(PeriodicM2l<Real>* m2l, bool areProducts);
    //! Local expansions to those who have the cells.
    void passLocals(Level<Real>* own);

    const std::vector<Places>* slots_ = nullptr;
    size_t fieldStride_               = 0;
    int coefficients_                 = 0;
    Ranks* ranks_                     = nullptr; //!< of close()
    std::vector<Places> waves_; //!< wave vectors of each rank, once they are needed
    ByRank<Real> out_, in_;
    AlignedVector<Real> fields_; //!< [coefficients of ours][fieldStride_]
};

} // namespace farfield

#endif
