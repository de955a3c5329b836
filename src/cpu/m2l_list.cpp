/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/tree.h"

namespace farfield
{
namespace
{

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
    // rows of the local expansions
    const bool more = virial != nullptr && !operators_.leastSquares();
    const int rows  = coefficientCount(operators_.order() + (more ? 1 : 0));
    const int n     = coefficientCount(operators_.order());
    const int cells = static_cast<int>(level->cells.size());
    std::vector<std::array<double, StrainCount>> partial(stretchCount(cells, team_.threads()));
    const auto addVirial = [&](const auto& op, const auto& X, auto* Y, const auto& to, int stretch)
    {
        if (virial == nullptr)
        {
            return;
        }
        if (more)
        {
            Y->transform(op.next, X, n);
        }
        Columns<Real> Z(n, to.size());
        Z.gather(level->M, level->padded, to);
        Vec3 force = Vec3::Zero();
        for (const DerivativeTerm& t : nextGradient_)
        {
            force[t.axis] -= t.value * Y->dot(t.from, Z, t.to);
        }
        addPairs(operators_.displacement(op.D), force, &partial[stretch]);
    };
    cells_.m2l(operators_.operators(), sources, level, operators_.ws(), rows, addVirial);
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
