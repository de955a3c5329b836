/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The sources of a cell in the near-field kernel: several cells as one sequence.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_SOURCES_H
#define FARFIELD_KERNELS_NEAR_P2P_SOURCES_H

#include "near/p2p_shape.h"
#include "near/p2p_warp.h"

namespace farfield
{
namespace p2pDetail
{

//! A source as it was loaded.
template<class Shape>
struct Source
{
    using Real = typename Shape::Real;

    Real4<Real> xq;
    Real x, y, z; //!< displacement of its cell
    int index;    //!< sorted
    typename Shape::Law::OfSource law;
};

//! A source relative to the targets.
template<class Real>
struct PlacedSource
{
    Real x, y, z, q;
    int index; //!< sorted
};

//! A lane, and what is the same for all cells of its warp.
template<class Shape>
struct Worker
{
    using Real = typename Shape::Real;

    int lane;
    Piece<Real>* pieces;  //!< of the warp, shared memory
    PieceList<Real> list; //!< the same
    Real4<Real>* targets; //!< [Shape::c_targets] of the warp, shared memory
    bool careful;         //!< some excluded pairs are so close that they are left out
    unsigned int upTo;    //!< bits of the lanes up to this one
    typename Shape::Law law;
};

//! Energy and virial of a lane.
struct OwnSums
{
    double energy    = 0;
    double virial[6] = { 0, 0, 0, 0, 0, 0 };
    double excess    = 0; //!< twice that of NearTotals
};

//! The sources of a cell as one sequence, its own particles first.
template<class Shape>
class SourceSequence
{
public:
    using Real = typename Shape::Real;

    //! Every lane looks up pieces; those that hold particles are listed in shared memory.
    __device__ __forceinline__ SourceSequence(const P2pArguments<Real>& task,
                                              const Worker<Shape>& self,
                                              int cell)
    {
        constexpr int c_lookUps = Shape::c_pieces <= 16 ? 16 : c_warp; // lanes that do
        const int lane          = self.lane;
        const int binsPerCell   = 1 << task.particles.logBins;
        int listed = 0, targets = 0;
        int c[3];
        task.grid.cell(cell, c);
#pragma unroll
        for (int r = 0; r < Shape::c_perLane; r++)
        {
            const int piece = r * c_warp + lane;
            int begin = 0, length = 0;
            int D[3] = { 0, 0, 0 };
            if (piece < Shape::c_pieces)
            {
                Shape::Pieces::displacement(piece, D);
                const int* bins = task.particles.bins(task.grid.neighbour(c, D));
                begin           = __ldg(bins);
                length          = __ldg(bins + binsPerCell) - begin;
                if (!Shape::c_thirdLaw && piece == 0)
                {
                    targets = __ldg(bins + 1) - begin; // ours: ghosts get no forces
                }
            }
            int reached = length;
#pragma unroll
            for (int step = 1; step < c_lookUps; step *= 2)
            {
                const int before = __shfl_up_sync(c_all, reached, step);
                reached += (lane >= step) ? before : 0;
            }
            const unsigned int occupied = __ballot_sync(c_all, length > 0);
            offset_[r]                  = total_ + reached - length;
            if (length > 0)
            {
                self.pieces[listed + __popc(occupied & ((1U << lane) - 1U))] =
                        pieceAt(D, task.edges, begin - offset_[r]);
            }
            else
            {
                offset_[r] = INT_MAX; // in no batch
            }
            total_ += uniform(reached, c_lookUps - 1);
            listed += __popc(occupied);
            if (r == 0)
            {
                first_ = uniform(begin, 0);
                own_   = uniform(Shape::c_thirdLaw ? length : targets, 0);
            }
        }
    }

    __device__ __forceinline__ int total() const
    {
        return total_;
    }
    __device__ __forceinline__ int first() const
    {
        return first_;
    } //!< own particle, sorted
    __device__ __forceinline__ int own() const
    {
        return own_;
    } //!< particles of the cell that are targets: with the third law all of them

    //! The source of this lane in the batch that starts at a position of the sequence; behind its
    //! end, one without charge.
    __device__ __forceinline__ void
    fetch(const Worker<Shape>& self, const Real4<Real>* xq, int base, Source<Shape>* s) const
    {
        unsigned int starts = 0;
        int before          = -1;
#pragma unroll
        for (int r = 0; r < Shape::c_perLane; r++)
        {
            const int at = offset_[r] - base;
            before += __popc(__ballot_sync(c_all, at < 0));
            starts |= bit(at);
        }
        starts                  = reduceOr(starts);
        const Piece<Real> piece = self.list[before + __popc(starts & self.upTo)];
        s->x                    = piece.x;
        s->y                    = piece.y;
        s->z                    = piece.z;
        const int source        = base + self.lane;
        s->index                = source + piece.shift;
        if (source < total_)
        {
            s->xq = load(xq + s->index);
            self.law.fetch(s->index, &s->law);
        }
        else
        {
            s->xq.w = 0;
        }
    }

private:
    __device__ __forceinline__ static Piece<Real> pieceAt(const int* D,
                                                          const Real (&edges)[3][3],
                                                          int shift)
    {
        const Real dx = static_cast<Real>(D[0]), dy = static_cast<Real>(D[1]),
                   dz = static_cast<Real>(D[2]);
        Piece<Real> p;
        p.x     = dx * edges[0][0] + dy * edges[1][0] + dz * edges[2][0];
        p.y     = dx * edges[0][1] + dy * edges[1][1] + dz * edges[2][1];
        p.z     = dx * edges[0][2] + dy * edges[1][2] + dz * edges[2][2];
        p.shift = shift;
        return p;
    }

    int offset_[Shape::c_perLane]; //!< position of the lane's piece in the sequence of sources
    int total_ = 0, first_ = 0, own_ = 0;
};

} // namespace p2pDetail
} // namespace farfield

#endif
