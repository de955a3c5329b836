/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/cell_columns.h"
#include "operators/background.h"

namespace farfield
{

template<class Real>
void Tree<Real>::m2m(const Level<Real>& child, Level<Real>* parent) const
{
    const int n     = coefficientCount(operators_.order());
    const int cells = static_cast<int>(parent->cells.size());
    forStretches(cells,
                 &team_,
                 [&](int begin, int end, int /*stretch*/)
                 {
                     clearSlots(begin, paddedEnd(*parent, end), parent->padded, &parent->M);
                     Family family;
                     Columns<Real> X(n, 0), Y(n, 0);
                     for (int o = 0; o < 8; o++)
                     {
                         family.ofParents(child, *parent, o, begin, end);
                         X.resize(n, family.children.size());
                         Y.resize(n, family.children.size());
                         X.gather(child.M, child.padded, family.children);
                         Y.transform(up_[o], X);
                         Y.scatterAdd(family.parents, parent->padded, &parent->M);
                     }
                 });
}

template<class Real>
double Tree<Real>::traceShift(const Level<Real>& child) const
{
    double sum = 0;
    for (size_t slot = 0; slot < child.cells.size(); slot++)
    {
        const Vec3& s = shifts_[octantOf(child.cells[slot])];
        const auto M  = [&](int l, int m)
        {
            return static_cast<double>(
                    child.M[static_cast<size_t>(coefficientIndex(l, m)) * child.padded + slot]);
        };
        sum += squaredShift(s.data()) * M(0, 0);
        if (operators_.order() > 0)
        {
            sum += shiftOfDipole(s.data(), { M(1, -1), M(1, 0), M(1, 1) });
        }
    }
    return sum;
}

template class Tree<float>;
template class Tree<double>;

} // namespace farfield
