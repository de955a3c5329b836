/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/regions.h"

#include <algorithm>

namespace farfield
{

void markNear(const Grid& grid, const std::vector<int>& cells, int ws, std::vector<char>* marked)
{
    const std::vector<Int3> near = nearDisplacements(ws);
    marked->assign(grid.count(), 0);
    for (const int cell : cells)
    {
        const Int3 c = grid.cell(cell);
        for (const Int3& D : near)
        {
            (*marked)[grid.indexOfImage({ c[0] + D[0], c[1] + D[1], c[2] + D[2] })] = 1;
        }
    }
}

Regions::Regions(const Discretisation& d, const Mat3& box, const ByRank<int>& leafCells) :
    grids_(1, Grid(d.coarseCells(), box)), cells_(d.levels)
{
    while (static_cast<int>(grids_.size()) < d.levels)
    {
        grids_.push_back(grids_.back().refined());
    }
    const int ranks = static_cast<int>(leafCells.offsets.size()) - 1;
    for (int r = 0; r < ranks; r++)
    {
        cells_.back().emplace_back(leafCells.begin(r), leafCells.end(r));
    }
    for (int level = d.levels - 1; level > 0; level--)
    {
        for (int r = 0; r < ranks; r++)
        {
            std::vector<int> parents;
            for (const int cell : cells_[level][r])
            {
                parents.push_back(parentIndex(level, cell));
            }
            std::sort(parents.begin(), parents.end());
            parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
            cells_[level - 1].push_back(std::move(parents));
        }
    }
}

std::vector<int> Regions::slots(int rank) const
{
    std::vector<int> slots;
    for (const int cell : cells_[0][rank])
    {
        slots.push_back(grids_[0].slot(grids_[0].cell(cell)));
    }
    return slots;
}

int Regions::parentIndex(int level, int cell) const
{
    return grids_[level - 1].index(parentOf(grids_[level].cell(cell)));
}

std::vector<int> Regions::cellsUnder(int level,
                                     int rank,
                                     const std::vector<char>& nearParents) const
{
    std::vector<int> under;
    for (const int cell : cells_[level][rank])
    {
        if (nearParents[parentIndex(level, cell)])
        {
            under.push_back(cell);
        }
    }
    return under;
}

} // namespace farfield
