/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/cell_columns.h"

namespace farfield
{
namespace
{

//! Pairs of cells that an operator joins, among targets [begin, end).
template<class Real, class Operator>
void findPairs(const Level<Real>& sources,
               const Level<Real>& level,
               const Operator& op,
               int begin,
               int end,
               std::vector<int>* from,
               std::vector<int>* to)
{
    from->clear();
    to->clear();
    for (int slot = begin; slot < end; slot++)
    {
        const Int3& c = level.cells[slot];
        if (!op.from[octantOf(c)])
        {
            continue;
        }
        const Int3 source = level.grid.reduce({ c[0] - op.D[0], c[1] - op.D[1], c[2] - op.D[2] });
        const int other   = sources.slotOf[level.grid.index(source)];
        if (other >= 0)
        {
            from->push_back(other);
            to->push_back(slot);
        }
    }
}

//! Adds -1/2 D (x) F over pairs of cells, each of which is seen twice, without its trace.
void addPairs(const Vec3& D, const Vec3& force, std::array<double, StrainCount>* virial)
{
    for (int c = 0; c < StrainCount; c++)
    {
        const int a = c_strainAxes[c][0];
        const int b = c_strainAxes[c][1];
        (*virial)[c] -= (a == b) ? 0.25 * (D[a] * force[a] - D[2] * force[2])
                                 : 0.125 * (D[a] * force[b] + D[b] * force[a]);
    }
}

} // namespace

template<class Real>
void Tree<Real>::m2l(const Level<Real>& sources,
                     Level<Real>* level,
                     std::array<double, StrainCount>* virial) const
{
    const auto& operators = operators_.operators();
    // rows of the local expansions
    const bool more = virial != nullptr && !operators_.leastSquares();
    const int rows  = coefficientCount(operators_.order() + (more ? 1 : 0));
    const int n     = coefficientCount(operators_.order());
    const int cells = static_cast<int>(level->cells.size());
    std::vector<std::array<double, StrainCount>> partial(stretchCount(cells, team_.threads()));
    const auto doStretch = [&](int begin, int end, int k)
    {
        std::vector<int> from, to;
        Columns<Real> X(n, 0), Y(n, 0), Z(n, 0);
        for (const auto& op : operators)
        {
            findPairs(sources, *level, op, begin, end, &from, &to);
            if (from.empty())
            {
                continue;
            }
            X.resize(n, from.size());
            X.gather(sources.M, sources.padded, from);
            Y.resize(rows, from.size());
            Y.transform(op.T, X);
            Y.scatterAdd(to, level->padded, &level->L);
            if (virial == nullptr)
            {
                continue;
            }
            if (more)
            {
                Y.transform(op.next, X, n);
            }
            Z.resize(n, to.size());
            Z.gather(level->M, level->padded, to);
            Vec3 force = Vec3::Zero();
            for (const DerivativeTerm& t : nextGradient_)
            {
                force[t.axis] -= t.value * Y.dot(t.from, Z, t.to);
            }
            addPairs(operators_.displacement(op.D), force, &partial[k]);
        }
    };
    forStretches(cells, &team_, doStretch);
    for (size_t k = 0; virial != nullptr && k < partial.size(); k++)
    {
        for (int c = 0; c < StrainCount; c++)
        {
            (*virial)[c] += partial[k][c];
        }
    }
}

template class Tree<float>;
template class Tree<double>;

} // namespace farfield
