/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2M, M2L and L2L between the levels of a tree, whatever the expansions are.
 *
 *  Only cells that hold particles are kept. On every level multipoles of children become those of
 *  parents (M2M); cells exchange local expansions over the interaction list, the children of the
 *  near neighbours of the parent that are not near themselves (M2L); parents hand local expansions
 *  down (L2L). Greengard and Rokhlin, J. Comput. Phys. 73, 325 (1987),
 *  doi:10.1016/0021-9991(87)90140-9.
 */
#ifndef FARFIELD_CPU_CELL_TREE_H
#define FARFIELD_CPU_CELL_TREE_H

#include <array>
#include <utility>
#include <vector>

#include "cells/interaction_list.h"
#include "cpu/cell_columns.h"

namespace farfield
{

/*! \brief The children of the cells near the parent, for some cells of a sparse level.
 *
 *  Siblings share them, and stand together: a hash is asked for them once. */
class CousinTable
{
public:
    CousinTable() = default;
    //! \param[in] sources  whose slots are looked up; level: the cells [begin, end)
    template<class Real>
    CousinTable(const Level<Real>& sources, const Level<Real>& level, int ws, int begin, int end) :
        ws_(ws)
    {
        for (int slot = begin; slot < end; slot++)
        {
            const Int3 parent = parentOf(level.cells[slot]);
            if (slot > begin && parent == parentOf(level.cells[slot - 1]))
            {
                rows_.push_back(rows_.back());
                continue;
            }
            rows_.push_back(static_cast<int>(slots_.size()));
            for (int x = -ws; x <= ws; x++)
            {
                for (int y = -ws; y <= ws; y++)
                {
                    for (int z = -ws; z <= ws; z++)
                    {
                        const Int3 near = { parent[0] + x, parent[1] + y, parent[2] + z };
                        for (int octant = 0; octant < 8; octant++)
                        {
                            slots_.push_back(sources.slotAt(childOf(near, octant)));
                        }
                    }
                }
            }
        }
    }

    bool empty() const { return rows_.empty(); }
    //! Where the source of a target in an octant is in a row. \param[in] D  target minus source
    int place(int octant, const Int3& D) const
    {
        const Int3 source = { (octant & 1) - D[0], (octant >> 1 & 1) - D[1], (octant >> 2) - D[2] };
        const Int3 parent = parentOf(source);
        const int width   = 2 * ws_ + 1;
        return (((parent[0] + ws_) * width + parent[1] + ws_) * width + parent[2] + ws_) * 8
               + octantOf(source);
    }
    //! Slot of a source, -1 for none. \param[in] cell  counted from the first one
    int slot(int cell, int place) const { return slots_[rows_[cell] + place]; }

private:
    int ws_ = 0;
    std::vector<int> rows_, slots_;
};

template<class Real>
class CellTree
{
public:
    //! \param[in] coefficients  of an expansion
    //! \param[in] team          does the work
    CellTree(int coefficients, Team* team) : n_(coefficients), team_(*team) {}

    //! The operators of M2M and L2L for the child in each octant, [n][n].
    void setTranslations(const std::array<Matrix, 8>& up, const std::array<Matrix, 8>& down)
    {
        for (int octant = 0; octant < 8; octant++)
        {
            // kernels read rows
            up_[octant].assign(up[octant].data(), up[octant].data() + up[octant].size());
            down_[octant].assign(down[octant].data(), down[octant].data() + down[octant].size());
        }
    }

    //! M of the parents, all of its slots set, from M of the children.
    void m2m(const Level<Real>& child, Level<Real>* parent) const;
    /*! \brief Adds to L of a level what the multipoles of sources give, over the interaction lists.
     *  \param[in] operators  of ListDisplacement, each with a matrix T
     *  \param[in] ws         parents are near up to this displacement
     *  \param[in] rows       of the columns that each() is given, at least those of T
     *  \param[in] each       each(op, X, Y, to, stretch): called with the multipoles X of some sources,
     *                        the local expansions Y that they make, and the slots of their targets, for
     *                        each operator and stretch of cells */
    template<class Operators, class Each>
    void m2l(const Operators& operators,
             const Level<Real>& sources,
             Level<Real>* level,
             int ws,
             int rows,
             const Each& each) const;
    /*! \brief Sets L of the children from L of the parents.
     *  \param[in] each  each(octant, Y, X, children, stretch): called before Y, what the parents hand down
     *                   to children of an octant, is added. X is room. */
    template<class Each>
    void l2l(const Level<Real>& parent, Level<Real>* child, const Each& each) const;

private:
    //! Pairs of cells that an operator joins, among targets [begin, end).
    static void findPairs(const Level<Real>& sources,
                          const Level<Real>& level,
                          const ListDisplacement& op,
                          const CousinTable& cousins,
                          int begin,
                          int end,
                          std::vector<int>* from,
                          std::vector<int>* to);

    int n_;
    Team& team_;
    std::array<AlignedVector<Real>, 8> up_, down_;
};

template<class Real>
void CellTree<Real>::m2m(const Level<Real>& child, Level<Real>* parent) const
{
    const int cells = static_cast<int>(parent->cells.size());
    forStretches(cells,
                 &team_,
                 [&](int begin, int end, int /*stretch*/)
                 {
                     clearSlots(begin, paddedEnd(*parent, end), parent->padded, &parent->M);
                     Family family;
                     Columns<Real> X(n_, 0), Y(n_, 0);
                     for (int o = 0; o < 8; o++)
                     {
                         family.ofParents(child, *parent, o, begin, end);
                         X.resize(n_, family.children.size());
                         Y.resize(n_, family.children.size());
                         X.gather(child.M, child.padded, family.children);
                         Y.transform(up_[o], X);
                         Y.scatterAdd(family.parents, parent->padded, &parent->M);
                     }
                 });
}

template<class Real>
void CellTree<Real>::findPairs(const Level<Real>& sources,
                               const Level<Real>& level,
                               const ListDisplacement& op,
                               const CousinTable& cousins,
                               int begin,
                               int end,
                               std::vector<int>* from,
                               std::vector<int>* to)
{
    from->clear();
    to->clear();
    int place[8]; // in the table
    for (int o = 0; o < 8; o++)
    {
        place[o] = op.from[o] && !cousins.empty() ? cousins.place(o, op.D) : 0;
    }
    for (int slot = begin; slot < end; slot++)
    {
        const Int3& c = level.cells[slot];
        const int o   = octantOf(c);
        if (!op.from[o])
        {
            continue;
        }
        const int other =
                cousins.empty() ? sources.slotAt({ c[0] - op.D[0], c[1] - op.D[1], c[2] - op.D[2] })
                                : cousins.slot(slot - begin, place[o]);
        if (other >= 0)
        {
            from->push_back(other);
            to->push_back(slot);
        }
    }
}

template<class Real>
template<class Operators, class Each>
void CellTree<Real>::m2l(const Operators& operators,
                         const Level<Real>& sources,
                         Level<Real>* level,
                         int ws,
                         int rows,
                         const Each& each) const
{
    forStretches(static_cast<int>(level->cells.size()),
                 &team_,
                 [&](int begin, int end, int stretch)
                 {
                     std::vector<int> from, to;
                     Columns<Real> X(n_, 0), Y(n_, 0);
                     const CousinTable cousins =
                             level->isSparse ? CousinTable(sources, *level, ws, begin, end)
                                             : CousinTable();
                     for (const auto& op : operators)
                     {
                         findPairs(sources, *level, op, cousins, begin, end, &from, &to);
                         if (from.empty())
                         {
                             continue;
                         }
                         X.resize(n_, from.size());
                         X.gather(sources.M, sources.padded, from);
                         Y.resize(rows, from.size());
                         Y.transform(op.T, X);
                         Y.scatterAdd(to, level->padded, &level->L);
                         each(op, X, &Y, to, stretch);
                     }
                 });
}

template<class Real>
template<class Each>
void CellTree<Real>::l2l(const Level<Real>& parent, Level<Real>* child, const Each& each) const
{
    forStretches(static_cast<int>(child->cells.size()),
                 &team_,
                 [&](int begin, int end, int stretch)
                 {
                     clearSlots(begin, paddedEnd(*child, end), child->padded, &child->L);
                     Family family;
                     Columns<Real> X(n_, 0), Y(n_, 0);
                     for (int o = 0; o < 8; o++)
                     {
                         family.ofChildren(*child, parent, o, begin, end);
                         X.resize(n_, family.parents.size());
                         Y.resize(n_, family.parents.size());
                         X.gather(parent.L, parent.padded, family.parents);
                         Y.transform(down_[o], X);
                         each(o, &Y, &X, family.children, stretch);
                         Y.scatterAdd(family.children, child->padded, &child->L);
                     }
                 });
}

} // namespace farfield

#endif
