/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The lists of occupied cells that the GPU makes, against their definition; runs on the host.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "cells/grid.h"
#include "cpu/tree.h"
#include "tree/family_reach.h"
#include "tree/family_tree.h"

namespace farfield
{
namespace
{

//! The kernels of families.cu, one thread after another.
class Lists
{
public:
    Lists(const std::vector<Grid>& grids, int ws, const std::vector<int>& capacities)
    {
        tree_.levels = static_cast<int>(grids.size());
        tree_.ws     = ws;
        for (int level = 0; level < tree_.levels; level++)
        {
            tree_.grid[level]     = grids[level].plain();
            tree_.capacity[level] = (level > 0) ? capacities[level] : 0;
            tree_.first[level]    = tree_.marks;
            tree_.marks += (level + 1 < tree_.levels) ? tree_.grid[level].cells : 0;
        }
        tree_.mark   = room(tree_.marks + 1, 0);
        tree_.rank   = room(tree_.marks + 1, -7);
        tree_.count  = room(tree_.levels, 0);
        tree_.needed = room(tree_.levels, 0);
        int* slotOf0 = room(tree_.grid[0].cells, 0);
        for (int cell = 0; cell < tree_.grid[0].cells; cell++)
        {
            slotOf0[cell] = grids[0].slot(grids[0].cell(cell));
        }
        tree_.slotOf0 = slotOf0;
        for (int level = 1; level < tree_.levels; level++)
        {
            const int capacity      = tree_.capacity[level];
            tree_.parent[level]     = room(capacity, -1);
            tree_.parentSlot[level] = room(capacity, -1);
            tree_.neighbours[level] = room(tree_.neighbourCount() * capacity, -1);
            tree_.cellOf[level]     = room(8 * capacity, -1);
            tree_.slotOf[level]     = room(tree_.grid[level].cells, -1);
        }
    }

    const FamilyTree& build(const std::set<int>& leaves)
    {
        for (int level = 1; level < tree_.levels; level++)
        {
            for (int family = 0; family < tree_.capacity[level]; family++)
            {
                tree_.forget(level, family);
            }
        }
        for (int leaf : leaves)
        {
            tree_.markAncestors(leaf);
        }
        int sum = 0;
        for (int at = 0; at <= tree_.marks; at++)
        {
            tree_.rank[at] = sum;
            sum += tree_.mark[at];
        }
        // any order will do
        for (int at = tree_.marks - 1; at >= 0; at--)
        {
            tree_.place(at);
        }
        for (int level = 1; level < tree_.levels; level++)
        {
            for (int which = 0; which < tree_.neighbourCount(); which++)
            {
                for (int family = 0; family < tree_.capacity[level]; family++)
                {
                    tree_.link(level, which, family);
                }
            }
        }
        return tree_;
    }

private:
    int* room(int size, int value)
    {
        rooms_.emplace_back(size, value);
        return rooms_.back().data();
    }
    FamilyTree tree_ = {};
    std::vector<std::vector<int>> rooms_;
};

const std::vector<IntMat> c_shapes = { { { { 3, 0, 0 }, { 0, 4, 0 }, { 0, 0, 2 } } },
                                       { { { 1, 0, 0 }, { 0, 2, 0 }, { 0, 0, 1 } } },
                                       { { { 3, 0, 0 }, { 1, 2, 0 }, { -1, 1, 3 } } } };

TEST(GpuFamilies, AreThoseOfTheOccupiedCells)
{
    std::mt19937 generator(5);
    for (const IntMat& H : c_shapes)
    {
        for (int ws = 1; ws <= 2; ws++)
        {
            std::vector<Grid> grids = { Grid(H, Mat3::Identity()) };
            while (grids.size() < 4)
            {
                grids.push_back(grids.back().refined());
            }
            std::vector<int> capacities;
            for (const Grid& grid : grids)
            {
                capacities.push_back((static_cast<int>(grid.count()) / 8 + 31) / 32 * 32);
            }
            Lists lists(grids, ws, capacities);
            // the lists of a step must not show in the next
            for (const double density : { 0.5, 0.001, 0.0, 0.02, 1.0, 0.1 })
            {
                std::set<int> leaves;
                for (int cell = 0; cell < grids.back().count(); cell++)
                {
                    if (std::uniform_real_distribution<double>(0, 1)(generator) < density)
                    {
                        leaves.insert(cell);
                    }
                }
                const FamilyTree& tree = lists.build(leaves);
                std::set<int> occupied = leaves;
                for (int level = 3; level > 0; level--)
                {
                    const Grid& grid    = grids[level];
                    const Grid& coarser = grids[level - 1];
                    const int capacity  = capacities[level];
                    std::set<int> parents;
                    for (int cell : occupied)
                    {
                        parents.insert(coarser.index(parentOf(grid.cell(cell))));
                    }
                    std::map<int, int> familyOf;
                    for (int parent : parents)
                    {
                        familyOf.emplace(parent, static_cast<int>(familyOf.size()));
                    }
                    ASSERT_EQ(tree.needed[level], static_cast<int>(parents.size()));
                    ASSERT_EQ(tree.count[level], static_cast<int>(parents.size()));
                    ASSERT_FALSE(tree.hasOverflow());
                    std::vector<int> slotOf(grid.count(), -1), cellOf(8 * capacity, -1);
                    for (const auto& [parent, family] : familyOf)
                    {
                        const Int3 P = coarser.cell(parent);
                        for (int o = 0; o < 8; o++)
                        {
                            const int slot  = o * capacity + family;
                            const int child = grid.index({ 2 * P[0] + (o & 1),
                                                           2 * P[1] + (o >> 1) % 2,
                                                           2 * P[2] + o / 4 });
                            slotOf[child]   = slot;
                            cellOf[slot]    = child;
                            ASSERT_EQ(octantOf(grid.cell(child)), o);
                        }
                        ASSERT_EQ(tree.parentSlot[level][family],
                                  level == 1 ? coarser.slot(P) : tree.slotOf[level - 1][parent]);
                        for (int x = -ws; x <= ws; x++)
                        {
                            for (int y = -ws; y <= ws; y++)
                            {
                                for (int z = -ws; z <= ws; z++)
                                {
                                    const auto found = familyOf.find(coarser.index(
                                            coarser.reduce({ P[0] - x, P[1] - y, P[2] - z })));
                                    const int wanted = found == familyOf.end() ? -1 : found->second;
                                    ASSERT_EQ(tree.neighbours[level]
                                                             [neighbourIndex(ws, x, y, z) * capacity
                                                              + family],
                                              wanted);
                                }
                            }
                        }
                    }
                    for (size_t cell = 0; cell < slotOf.size(); cell++)
                    {
                        ASSERT_EQ(tree.slotOf[level][cell], slotOf[cell]);
                    }
                    for (size_t slot = 0; slot < cellOf.size(); slot++)
                    {
                        ASSERT_EQ(tree.cellOf[level][slot], cellOf[slot]);
                    }
                    occupied = parents;
                }
            }
        }
    }
}

//! Cells of a level that hold particles.
std::set<int> occupiedCells(const Grid& leaf,
                            const Grid& grid,
                            const std::vector<Vec3>& positions,
                            const Vec3& offset,
                            int depth)
{
    std::set<int> result;
    for (const Vec3& r : positions)
    {
        Int3 c;
        for (int k = 0; k < 3; k++)
        {
            c[k] = static_cast<int>(std::floor(r[k] - offset[k]));
        }
        c = leaf.reduce(c);
        result.insert(grid.index({ c[0] >> depth, c[1] >> depth, c[2] >> depth }));
    }
    return result;
}

//! What is counted bounds the occupied cells at any offset, after any motion up to the margin.
TEST(GpuFamilies, ReachNoMoreCellsThanAreCounted)
{
    std::mt19937 generator(6);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (const IntMat& H : c_shapes)
    {
        std::vector<Grid> grids = { Grid(H, Mat3::Identity()) };
        while (grids.size() < 4)
        {
            grids.push_back(grids.back().refined());
        }
        const Grid& leaf = grids.back();
        for (const double thickness : { 0.1, 1.0, 2.0, 5.0 })
        {
            for (const double margin : { 0.0, 0.1, 0.25 })
            {
                // a film in leaf cells, any image
                std::vector<Vec3> positions;
                const double low = 8 * uniform(generator);
                for (int i = 0; i < 300; i++)
                {
                    positions.emplace_back(50 * uniform(generator) - 20,
                                           50 * uniform(generator) - 20,
                                           low + thickness * uniform(generator));
                }
                for (int level = 0; level < 3; level++)
                {
                    std::array<std::set<int>, c_reachOffsets> reached;
                    const CellGrid cells = grids[level].plain();
                    for (const Vec3& r : positions)
                    {
                        // reduced as the device has it: the cell in the box and the position in it
                        const Vec3 floor         = r.array().floor();
                        const Int3 c             = leaf.reduce({ static_cast<int>(floor[0]),
                                                                 static_cast<int>(floor[1]),
                                                                 static_cast<int>(floor[2]) });
                        const double position[3] = { c[0] + r[0] - floor[0],
                                                     c[1] + r[1] - floor[1],
                                                     c[2] + r[2] - floor[2] };
                        forReachedCells(cells,
                                        position,
                                        margin,
                                        3 - level,
                                        [&](int cell, unsigned offsets)
                                        {
                                            for (int s = 0; s < c_reachOffsets; s++)
                                            {
                                                if (offsets >> s & 1U)
                                                {
                                                    reached[s].insert(cell);
                                                }
                                            }
                                        });
                    }
                    size_t most = 0;
                    for (const auto& cells : reached)
                    {
                        most = std::max(most, cells.size());
                    }
                    size_t found = 0;
                    for (int trial = 0; trial < 40; trial++)
                    {
                        const Vec3 offset(
                                uniform(generator), uniform(generator), uniform(generator));
                        std::vector<Vec3> moved = positions;
                        for (Vec3& r : moved)
                        {
                            r += margin
                                 * Vec3(2 * uniform(generator) - 1,
                                        2 * uniform(generator) - 1,
                                        2 * uniform(generator) - 1);
                        }
                        found = std::max(
                                found,
                                occupiedCells(leaf, grids[level], moved, offset, 3 - level).size());
                    }
                    EXPECT_LE(found, most) << "level " << level << ", thickness " << thickness;
                    if (margin == 0)
                    {
                        // half a leaf cell more along each axis, and what offsets were missed
                        EXPECT_LE(most, 2.4 * found + 8);
                    }
                }
            }
        }
    }
}

TEST(GpuFamilies, DropWhatThereIsNoRoomFor)
{
    const std::vector<Grid> grids = {
        Grid({ { { 4, 0, 0 }, { 0, 4, 0 }, { 0, 0, 4 } } }, Mat3::Identity()),
        Grid({ { { 8, 0, 0 }, { 0, 8, 0 }, { 0, 0, 8 } } }, Mat3::Identity()),
        Grid({ { { 16, 0, 0 }, { 0, 16, 0 }, { 0, 0, 16 } } }, Mat3::Identity())
    };
    Lists lists(grids, 1, { 0, 32, 64 });
    std::set<int> all;
    for (int cell = 0; cell < grids.back().count(); cell++)
    {
        all.insert(cell);
    }
    for (int step = 0; step < 2; step++)
    {
        const FamilyTree& tree = lists.build(all);
        EXPECT_TRUE(tree.hasOverflow());
        EXPECT_EQ(tree.needed[1], 64);
        EXPECT_EQ(tree.needed[2], 512);
        EXPECT_EQ(tree.count[1], 32);
        EXPECT_EQ(tree.count[2], 64);
        for (int level = 1; level <= 2; level++)
        {
            for (int family = 0; family < tree.count[level]; family++)
            {
                EXPECT_LT(tree.parentSlot[level][family], level == 1 ? 64 : 8 * 32);
                for (int which = 0; which < tree.neighbourCount(); which++)
                {
                    EXPECT_LT(tree.neighbours[level][which * tree.capacity[level] + family],
                              tree.capacity[level]);
                }
            }
        }
    }
}

} // namespace
} // namespace farfield
