/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Particles binned into leaf cells and sorted by cell, on the device, every step.
 */
#ifndef FARFIELD_KERNELS_SORT_CELL_LIST_H
#define FARFIELD_KERNELS_SORT_CELL_LIST_H

#include <array>

#include "cells/binning.h"
#include "runtime/device.h"
#include "runtime/layout.h"

namespace farfield
{

//! Where the grid lies in an evaluation; plain data for kernels.
struct GridPosition
{
    double offset[3];     //!< origin of the cells, in cells
    double step;          //!< the number of the step that decided on it; negative: none did
    bool advance;         //!< the step after the last one decides instead
    double increments[3]; //!< offset of a step: the fractions of step * increments
};

/*! \brief The grid of a request.
 *
 *  While the stream is captured into a graph and a step is given, the position advances: each
 *  replay then has the next one. See Request::step. */
GridPosition gridPosition(const std::array<double, 3>& offset, long long step, cudaStream_t stream);

//! What an evaluation adds up, and in which frame: a replay of a graph has that of its recording.
struct Sums
{
    bool energy, virial;
    double rotation[3][3]; //!< from the frame of the operators to the caller's
};

template<class Real>
class DeviceCells
{
public:
    /*! \brief Makes room; where there is no memory for it, all stays as it was.
     *  \param[in] n      particles to sort
     *  \param[in] all    particles of the caller
     *  \param[in] own    those from here on are ghosts
     *  \param[in] cells  leaf cells
     *  \param[in] hasGhosts  cells have bins for ghosts, whether there are any or not */
    void resize(int n, int all, int own, int cells, bool hasGhosts);
    /*! \brief Says which particles are sorted; waits.
     *  \param[in] particles  [n] ascending, device memory that is read in every sort() */
    void setParticles(const int* particles, cudaStream_t stream);
    //! Whether pairs take positions as they are given, from the next resize() on.
    void keepGiven(bool wanted) { keepsGiven_ = wanted; }
    bool keepsGiven() const { return keepsGiven_; }
    /*! \brief Wraps, bins and sorts; nothing waits for the host.
     *  \param[in] x       [...][3] of all particles, device memory, any image
     *  \param[in] q       of all particles, device memory
     *  \param[in] sums    kept with the evaluation
     *  \param[out] cleared  [n] set to zero on the way, device memory: room for forces; may be null
     *  \param[in] reproducible  keep the original order within cells */
    void sort(const CellGrid& grid,
              const BinFrame& frame,
              const GridPosition& where,
              const Sums& sums,
              const Real* x,
              const Real* q,
              Real4<Real>* cleared,
              bool reproducible,
              cudaStream_t stream);
    SortedParticles<Real> particles() const;
    //! What pairs take: with keepGiven() positions as given, whose differences no cell rounds.
    SortedParticles<Real> ofPairs() const;

    //! How particles are spread over the cells.
    struct Occupancy
    {
        int cells; //!< that hold particles
        int usual; //!< mean over all particles of the number that share the cell
    };
    //! That of the last sort(); the host waits.
    Occupancy occupancy(cudaStream_t stream) const;
    //! Makes room for listOccupied().
    void makeRoomForList();
    /*! \brief Lists the cells that hold particles after a sort(), in storage order.
     *
     *  With ghosts, those alone where a pair of a particle of ours is met, see NearPieces: in the
     *  cell, or in the half of its neighbours that follows it. */
    void listOccupied(const CellGrid& grid, int ws, cudaStream_t stream);
    //! [cells] device memory, and [1] how many of these listOccupied() has set.
    const int* occupied() const { return occupied_.data(); }
    const int* occupiedCount() const { return occupiedCount_.data(); }

    //! What the device knows of the last sort() that has run, replays included; device memory.
    struct Evaluation
    {
        double step;      //!< see GridPosition
        double origin[3]; //!< offset of the grid, in cells
        int number;       //!< sorts since resize()
        int invalid;      //!< see evaluation()
        Sums sums;        //!< as given to sort()
    };
    /*! \brief [1] device memory.
     *
     *  Evaluation::invalid is the lowest index of a particle whose position is not finite or beyond
     *  a billion cells, INT_MAX if there is none. Such particles are put into cell 0 at its centre
     *  with no charge. */
    const Evaluation* evaluation() const { return evaluation_.data(); }

    //! What the kernels share; plain pointers into the buffers below.
    struct View
    {
        int n, bins, logBins, own; //!< as SortedParticles
        bool reproducible;
        const int* particles;   //!< [n] ascending
        int* walk;              //!< [n] particles in the order in which they are binned
        Real4<Real>* binned;    //!< [n] as SortedParticles::xq, in the order of the walk
        int2* place;            //!< [n] bin and rank within it, in the order of the walk
        int* counts;            //!< [bins + 1] particles per bin; all zero between steps
        int* state;             //!< see CellState
        Evaluation* evaluation; //!< [1]
        int* unordered;         //!< [n] places in the walk by bin, in any order within bins
        Real4<Real>* xq;
        int *start, *atom, *cell, *position;
        const Real* x;      //!< [...][3] of all particles, as they were given
        Real4<Real>* given; //!< [n] the same sorted, and the charge; may be null
    };

private:
    View view(const Real* x, bool reproducible);
    //! Lists the cells that are marked, or finds out how much space that takes if there is none.
    void selectMarked(void* space, size_t* bytes, cudaStream_t stream);

    int n_ = 0, cells_ = 0, bins_ = 0, logBins_ = 0, own_ = 0;
    const int* particles_ = nullptr;
    bool keepsGiven_      = false;
    DeviceBuffer<Real4<Real>> binned_, xq_, given_;
    DeviceBuffer<int2> place_;
    DeviceBuffer<int> walk_, counts_, state_, unordered_, start_, atom_, cell_, position_;
    DeviceBuffer<Evaluation> evaluation_;
    DeviceBuffer<unsigned char> scanSpace_;
    DeviceBuffer<int> occupied_, occupiedCount_;
    DeviceBuffer<unsigned char> marks_, selectSpace_;
};

} // namespace farfield

#endif
