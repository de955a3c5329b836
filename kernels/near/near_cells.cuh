/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The particles of near cells, for a warp that has one target.
 */
#ifndef FARFIELD_KERNELS_NEAR_NEAR_CELLS_CUH
#define FARFIELD_KERNELS_NEAR_NEAR_CELLS_CUH

#include "near/near.h"
#include "near/near_pieces.h"
#include "runtime/load.cuh"
#include "runtime/matrix3.h"

namespace farfield
{

template<class Real>
struct NearCells
{
    SortedParticles<Real> particles;
    const Real4<Real>* pairs; //!< [n] as particles.xq, see DeviceCells::ofPairs()
    NeighbourFinder finder;
    int cells[3];  //!< of the grid
    bool isSkewed; //!< periods along y or z lead to other cells along x
    int ws;
    Real edges[3][3];

    NearCells() = default;
    NearCells(const SortedParticles<Real>& sorted,
              const SortedParticles<Real>& ofPairs,
              const NearGrid& where) :
        particles(sorted),
        pairs(ofPairs.xq), finder(where.grid), ws(where.ws)
    {
        const auto& H = where.grid.H;
        for (int k = 0; k < 3; k++)
        {
            cells[k] = H[k][k];
        }
        isSkewed = H[1][0] != 0 || H[2][0] != 0 || H[2][1] != 0;
        copyTo(where.edges, edges);
    }

    /*! \brief Gives a lane its sources: visit(j, charge, distance, isSelf), the distance from source j to
     *         the target, nm. \param[in] i  the target */
    template<class Visit>
    __device__ __forceinline__ void forSources(int i, int lane, const Visit& visit) const
    {
        const Real4<Real> a = load(pairs + i);
        const int cell      = particles.cell[i];
        int c[3];
        finder.cell(cell, c);
        // cells along x follow each other, and so do their particles
        const auto isInside = [&](int k) { return c[k] >= ws && c[k] + ws < cells[k]; };
        const bool isRow    = isInside(0) && (!isSkewed || (isInside(1) && isInside(2)));
        const int length    = isRow ? 2 * ws + 1 : 1;
        for (int dz = -ws; dz <= ws; dz++)
        {
            for (int dy = -ws; dy <= ws; dy++)
            {
                Real row[3] = { a.x, a.y, a.z };
                for (int k = 0; k < 3; k++)
                {
                    row[k] -= static_cast<Real>(dy) * edges[1][k]
                              + static_cast<Real>(dz) * edges[2][k];
                }
                for (int dx = -ws; dx <= ws; dx += length)
                {
                    const int D[3]  = { dx, dy, dz };
                    const int first = finder.neighbour(c, D);
                    const int end   = *particles.bins(first + length);
                    for (int j = *particles.bins(first) + lane; j < end; j += c_warp)
                    {
                        const Real4<Real> s = load(pairs + j);
                        const int along     = dx + (isRow ? particles.cell[j] - first : 0);
                        const Real steps    = static_cast<Real>(along);
                        const Real R[3]     = { row[0] - s.x - steps * edges[0][0],
                                                row[1] - s.y - steps * edges[0][1],
                                                row[2] - s.z - steps * edges[0][2] };
                        visit(j, s.w, R, j == i && along == 0 && dy == 0 && dz == 0);
                    }
                }
            }
        }
    }
};

} // namespace farfield

#endif
