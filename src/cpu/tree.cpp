/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/tree.h"

#include "operators/background.h"
#include "operators/child_translation.h"

namespace farfield
{
template<class Real>
Tree<Real>::Tree(const Mat3& scaledEdges, int ws, const Reduction& reduction, Team* team) :
    operators_(scaledEdges, ws, reduction, team->threads()),
    cells_(coefficientCount(reduction.order()), team), team_(*team),
    gradient_(derivativeTerms(reduction.order())),
    nextGradient_(derivativeTerms(reduction.order() + (reduction.leastSquares() ? 0 : 1)))
{
    setTranslations(operators_.edges());
}

template<class Real>
void Tree<Real>::setTranslations(const Mat3& edges)
{
    const int p = operators_.order();
    std::array<Matrix, 8> up, down;
    for (int o = 0; o < 8; o++)
    {
        shifts_[o] = childShift(o, edges);
        up[o]      = childTranslation(p, shifts_[o]);
        down[o]    = 0.5 * up[o].transpose();
    }
    cells_.setTranslations(up, down);
}

template<class Real>
void Tree<Real>::setStrain(const Mat3& strain)
{
    operators_.setStrain(strain);
    setTranslations(operators_.edges() * (Mat3::Identity() + strain));
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
