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
    const int n     = coefficientCount(operators_.order());
    const int cells = static_cast<int>(child->cells.size());
    std::vector<std::array<double, 6>> partial(stretchCount(cells, team_.threads()));
    const auto doStretch = [&](int begin, int end, int stretch)
    {
        clearSlots(begin, paddedEnd(*child, end), child->padded, &child->L);
        Family family;
        Columns<Real> X(n, 0), Y(n, 0);
        for (int o = 0; o < 8; o++)
        {
            family.ofChildren(*child, parent, o, begin, end);
            X.resize(n, family.parents.size());
            Y.resize(n, family.parents.size());
            X.gather(parent.L, parent.padded, family.parents);
            Y.transform(down_[o], X);
            const Vec3& s = shifts_[o];
            for (int i = 0; i < std::min(n, c_shiftTerms); i++)
            {
                Y.addToRow(i, backgroundOfShift(i, s.data(), background));
            }
            Y.scatterAdd(family.children, child->padded, &child->L);
            if (virial != nullptr && !family.children.empty())
            {
                X.gather(child->M, child->padded, family.children);
                double force[3] = { 0, 0, 0 };
                for (const DerivativeTerm& t : gradient_)
                {
                    force[t.axis] -= t.value * Y.dot(t.from, X, t.to);
                }
                if (n > 1)
                {
                    addBackgroundForce(background, { X.sum(1), X.sum(2), X.sum(3) }, force);
                }
                auto& sum = partial[stretch];
                sum[0] -= 0.5 * s[0] * force[0];
                sum[1] -= 0.5 * s[1] * force[1];
                sum[2] -= 0.5 * s[2] * force[2];
                sum[3] -= 0.25 * (s[0] * force[1] + s[1] * force[0]);
                sum[4] -= 0.25 * (s[0] * force[2] + s[2] * force[0]);
                sum[5] -= 0.25 * (s[1] * force[2] + s[2] * force[1]);
            }
        }
    };
    forStretches(cells, &team_, doStretch);
    for (size_t k = 0; virial != nullptr && k < partial.size(); k++)
    {
        for (int c = 0; c < 6; c++)
        {
            virial[c] += partial[k][c];
        }
    }
}

template class Tree<float>;
template class Tree<double>;

} // namespace farfield
