/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "m2l/symmetric_tables.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace farfield
{

SymmetryTables::SymmetryTables(int order, int ws, bool reflections) :
    ws_(ws), frameBits_(reflections ? 7 : 0)
{
    classes_.assign(coefficientCount(order), 0);
    for (int bit = 0; bit < (reflections ? 3 : 1); bit++)
    {
        const std::vector<int> signs = reflectionSigns(order, reflections ? 1 << bit : 7);
        for (size_t i = 0; i < classes_.size(); i++)
        {
            classes_[i] |= signs[i] < 0 ? 1 << bit : 0;
        }
    }
    if (reflections)
    {
        listReflectionOrbits();
    }
    else
    {
        listInversionOrbits();
    }
}

std::vector<int> SymmetryTables::members(int parityClass) const
{
    std::vector<int> result;
    for (int i = 0; i < coefficients(); i++)
    {
        if (classes_[i] == parityClass)
        {
            result.push_back(i);
        }
    }
    return result;
}

short SymmetryTables::source(int octant, const Int3& D) const
{
    int parent[3], child = 0;
    for (int k = 0; k < 3; k++)
    {
        const int s = ((octant >> k) & 1) - D[k];
        parent[k]   = -floorDivide(s, 2);
        child |= (s & 1) << k;
        if (std::abs(parent[k]) > ws_)
        {
            return static_cast<short>(neighbours() * 8);
        }
    }
    return static_cast<short>(neighbourIndex(ws_, parent[0], parent[1], parent[2]) * 8 + child);
}

void SymmetryTables::listReflectionOrbits()
{
    const int reach = 2 * ws_ + 1;
    for (int x = 0; x <= reach; x++)
    {
        for (int y = 0; y <= reach; y++)
        {
            for (int z = 0; z <= reach; z++)
            {
                if (std::max({ x, y, z }) <= ws_)
                {
                    continue;
                }
                Orbit orbit = {};
                orbit.D     = { x, y, z };
                for (int k = 0; k < 3; k++)
                {
                    // the farthest cells are all on one side
                    const bool two = orbit.D[k] > 0 && orbit.D[k] < reach;
                    orbit.mask |= two ? 1 << k : 0;
                    orbit.bits += two ? 1 : 0;
                    orbit.zeros |= orbit.D[k] == 0 ? 1 << k : 0;
                }
                for (int octant = 0; octant < 8; octant++)
                {
                    for (int variant = 0; variant < 8; variant++)
                    {
                        Int3 D    = orbit.D;
                        int place = 0;
                        for (int k = 0; k < 3; k++)
                        {
                            bool negative = ((octant >> k) & 1) == 0; // the frame of the octant
                            if ((orbit.mask >> k) & 1)
                            {
                                negative = negative != (((variant >> place) & 1) != 0);
                                place++;
                            }
                            D[k] = negative ? -D[k] : D[k];
                        }
                        orbit.sources[octant][variant] = source(octant, D);
                    }
                }
                orbits_.push_back(orbit);
            }
        }
    }
}

void SymmetryTables::listInversionOrbits()
{
    const int reach = 2 * ws_ + 1;
    for (int x = 0; x <= reach; x++)
    {
        for (int y = -reach; y <= reach; y++)
        {
            for (int z = -reach; z <= reach; z++)
            {
                const Int3 D       = { x, y, z };
                const bool forward = x > 0 || (x == 0 && (y > 0 || (y == 0 && z > 0)));
                if (!forward || std::max({ x, std::abs(y), std::abs(z) }) <= ws_)
                {
                    continue;
                }
                Orbit orbit = {};
                orbit.D     = D;
                orbit.mask  = 1;
                orbit.bits  = 1;
                for (int octant = 0; octant < 8; octant++)
                {
                    for (int variant = 0; variant < 8; variant++)
                    {
                        const int sign = (variant & 1) ? -1 : 1;
                        orbit.sources[octant][variant] =
                                source(octant, { sign * x, sign * y, sign * z });
                    }
                }
                orbits_.push_back(orbit);
            }
        }
    }
}

template<class Real>
SymmetricPlan<Real>::SymmetricPlan(const SymmetryTables& tables, size_t bytes) :
    coefficients(tables.coefficients()), neighbours(tables.neighbours()),
    frameBits(tables.frameBits()), orbits(static_cast<int>(tables.orbits().size()))
{
    cutRows(tables);
    cutColumns(tables);
    cutOrbits(tables, bytes);
}

template<class Real>
void SymmetricPlan<Real>::cutRows(const SymmetryTables& tables)
{
    // instructions of all warps per orbit and group of columns: products, loads, and the transforms
    // that every block repeats
    double best = std::numeric_limits<double>::max();
    for (int rows : c_rows)
    {
        int tiles = 0;
        for (int c = 0; c < 8; c++)
        {
            tiles += (static_cast<int>(tables.members(c).size()) + rows - 1) / rows;
        }
        const int groups = (tiles + c_maxTilesPerBlock - 1) / c_maxTilesPerBlock;
        const double cost =
                tiles * (c_columns * (c_octantsPerBlock + 0.25) * rows + c_octantsPerBlock + 6)
                + groups * 14.0 * c_octantsPerBlock * c_columns;
        if (cost < best)
        {
            best          = cost;
            rowsPerTile   = rows;
            tileGroups    = groups;
            tilesPerBlock = (tiles + groups - 1) / groups;
        }
    }
    for (int c = 0; c < 8; c++)
    {
        // equal shares, so that no tile of a class is much smaller than others
        const std::vector<int> members = tables.members(c);
        const int size                 = static_cast<int>(members.size());
        const int tiles                = (size + rowsPerTile - 1) / rowsPerTile;
        for (int t = 0; t < tiles; t++)
        {
            tileClass.push_back(c);
            const int first = t * size / tiles;
            const int last  = (t + 1) * size / tiles;
            for (int r = 0; r < rowsPerTile; r++)
            {
                tileRows.push_back(first + r < last ? members[first + r] : -1);
            }
        }
    }
    tileClass.resize(static_cast<size_t>(tileGroups) * tilesPerBlock, -1);
    tileRows.resize(tileClass.size() * rowsPerTile, -1);
}

template<class Real>
void SymmetricPlan<Real>::cutColumns(const SymmetryTables& tables)
{
    for (int c = 0; c < 8; c++)
    {
        const std::vector<int> members = tables.members(c);
        for (size_t first = 0; first < members.size(); first += c_columns)
        {
            const int count = std::min(c_columns + 0, static_cast<int>(members.size() - first));
            columnClass.push_back(c);
            columnCount.push_back(count);
            for (int k = 0; k < c_columns; k++)
            {
                columns.push_back(k < count ? members[first + k] : -1);
            }
        }
    }
}

template<class Real>
size_t SymmetricPlan<Real>::sharedBytes(int values, int orbitsOfChunk) const
{
    const size_t packets =
            2
            * (static_cast<size_t>(values) * c_octantsPerBlock * c_warp
               + static_cast<size_t>(orbitsOfChunk) * tilesPerBlock * packetsPerTile());
    return packets * sizeof(Packet<Real>)
           + sizeof(int) * (static_cast<size_t>(neighbours + 1) * c_warp + orbits);
}

template<class Real>
void SymmetricPlan<Real>::cutOrbits(const SymmetryTables& tables, size_t bytes)
{
    // runs of neighbouring displacements: they share sources, which then come from a near cache
    chunkStart.push_back(0);
    int values = 0;
    for (int k = 0; k < orbits; k++)
    {
        const Orbit& orbit = tables.orbits()[k];
        const int own      = 1 << orbit.bits;
        const int before   = k - chunkStart.back();
        if (before > 0
            && (sharedBytes(std::max(maxValues, values + own), std::max(maxOrbits, before + 1))
                        > bytes
                || values + own > 256))
        {
            chunkStart.push_back(k);
            values = 0;
        }
        records.push_back(OrbitRecord(values, orbit.mask, orbit.bits, orbit.zeros).word);
        values += own;
        maxValues = std::max(maxValues, values);
        maxOrbits = std::max(maxOrbits, k + 1 - chunkStart.back());
        for (const auto& ofOctant : orbit.sources)
        {
            for (short source : ofOctant)
            {
                sources.push_back(SourceWord::make(source >> 3, source & 7));
            }
        }
        displacements_.push_back(orbit.D);
    }
    chunkStart.push_back(orbits);
}

template<class Real>
std::vector<Real> SymmetricPlan<Real>::pack(const ListM2lOperators<Real>& operators) const
{
    const int rowsPadded    = packetsPerColumn() * c_columns;
    const size_t tileSize   = static_cast<size_t>(c_columns) * rowsPadded;
    const size_t orbitSize  = tileSize * tilesPerBlock;
    const size_t groupCount = static_cast<size_t>(tileGroups) * columnGroups();
    std::vector<Real> packed(groupCount * orbits * orbitSize, Real(0));
#pragma omp parallel for schedule(static) num_threads(operators.threads())
    for (int k = 0; k < orbits; k++)
    {
        const Real* T = operators.operators()[operators.find(displacements_[k])].T.data();
        for (int tile = 0; tile < static_cast<int>(tileClass.size()); tile++)
        {
            const int tileGroup = tile / tilesPerBlock;
            for (int group = 0; group < columnGroups(); group++)
            {
                const size_t position =
                        (static_cast<size_t>(tileGroup) * columnGroups() + group) * orbits + k;
                Real* to = packed.data() + position * orbitSize + (tile % tilesPerBlock) * tileSize;
                for (int c = 0; c < columnCount[group]; c++)
                {
                    const int j = columns[group * c_columns + c];
                    for (int r = 0; r < rowsPerTile; r++)
                    {
                        const int i = tileRows[static_cast<size_t>(tile) * rowsPerTile + r];
                        if (i >= 0)
                        {
                            to[c * rowsPadded + r] = T[static_cast<size_t>(i) * coefficients + j];
                        }
                    }
                }
            }
        }
    }
    return packed;
}

template class SymmetricPlan<float>;
template class SymmetricPlan<double>;

} // namespace farfield
