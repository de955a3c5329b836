/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>

#include "cpu/tree.h"
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
    const auto addOthers =
            [&](int octant, Columns<Real>* Y, Columns<Real>* X, const auto& children, int stretch)
    {
        const Vec3& s = shifts_[octant];
        for (int i = 0; i < std::min(n, c_shiftTerms); i++)
        {
            Y->addToRow(i, backgroundOfShift(i, s.data(), background));
        }
        if (virial == nullptr || children.empty())
        {
            return;
        }
        X->gather(child->M, child->padded, children);
        double force[3] = { 0, 0, 0 };
        for (const DerivativeTerm& t : gradient_)
        {
            force[t.axis] -= t.value * Y->dot(t.from, *X, t.to);
        }
        if (n > 1)
        {
            addBackgroundForce(background, { X->sum(1), X->sum(2), X->sum(3) }, force);
        }
        auto& sum = partial[stretch];
        sum[0] -= 0.5 * s[0] * force[0];
        sum[1] -= 0.5 * s[1] * force[1];
        sum[2] -= 0.5 * s[2] * force[2];
        sum[3] -= 0.25 * (s[0] * force[1] + s[1] * force[0]);
        sum[4] -= 0.25 * (s[0] * force[2] + s[2] * force[0]);
        sum[5] -= 0.25 * (s[1] * force[2] + s[2] * force[1]);
    };
    cells_.l2l(parent, child, addOthers);
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
