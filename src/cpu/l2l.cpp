/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>

#include "cpu/cell_columns.h"
#include "operators/background.h"

namespace farfield
{

template<class Real>
void Tree<Real>::l2l(const Level<Real>& parent,
                     Level<Real>* child,
                     double background,
                     double* virial) const
{
    std::fill(child->L.begin(), child->L.end(), Real(0));
    const int n = coefficientCount(operators_.order());
    std::vector<int> children, parents;
    for (int o = 0; o < 8; o++)
    {
        familySlots(*child, parent, o, &children, &parents);
        Columns<Real> X(n, parents.size()), Y(n, parents.size());
        X.gather(parent.L, parent.padded, parents);
        Y.transform(down_[o], X);
        const Vec3& s = shifts_[o];
        for (int i = 0; i < std::min(n, c_shiftTerms); i++)
        {
            Y.addToRow(i, backgroundOfShift(i, s.data(), background));
        }
        Y.scatterAdd(children, child->padded, &child->L);
        if (virial != nullptr && !children.empty())
        {
            X.gather(child->M, child->padded, children);
            double force[3] = { 0, 0, 0 };
            for (const DerivativeTerm& t : gradient_)
            {
                force[t.axis] -= t.value * Y.dot(t.from, X, t.to);
            }
            if (n > 1)
            {
                addBackgroundForce(background, { X.sum(1), X.sum(2), X.sum(3) }, force);
            }
            virial[0] -= 0.5 * s[0] * force[0];
            virial[1] -= 0.5 * s[1] * force[1];
            virial[2] -= 0.5 * s[2] * force[2];
            virial[3] -= 0.25 * (s[0] * force[1] + s[1] * force[0]);
            virial[4] -= 0.25 * (s[0] * force[2] + s[2] * force[0]);
            virial[5] -= 0.25 * (s[1] * force[2] + s[2] * force[1]);
        }
    }
}

template class Tree<float>;
template class Tree<double>;

} // namespace farfield
