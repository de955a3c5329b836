/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/tree.h"

#include <algorithm>

#include "cpu/cpu_kernels.h"
#include "operators/child_translation.h"

namespace farfield
{
namespace
{

//! A matrix as kernels read it.
template<class Real>
AlignedVector<Real> rowMajor(const Matrix& T)
{
    return AlignedVector<Real>(T.data(), T.data() + T.size());
}

} // namespace

template<class Real>
void Level<Real>::setCells(std::vector<Int3> occupied, int coefficients)
{
    for (const Int3& c : cells)
    {
        slotOf[grid.index(c)] = -1;
    }
    cells = std::move(occupied);
    slotOf.resize(grid.count(), -1);
    for (size_t slot = 0; slot < cells.size(); slot++)
    {
        slotOf[grid.index(cells[slot])] = static_cast<int>(slot);
    }
    padded = static_cast<int>((cells.size() + c_slotPadding - 1) / c_slotPadding * c_slotPadding);
    M.resize(static_cast<size_t>(coefficients) * padded);
    L.resize(M.size());
}

template<class Real>
Tree<Real>::Tree(const Mat3& scaledEdges, int ws, const Reduction& reduction, Team* team) :
    operators_(scaledEdges, ws, reduction, team->threads()), team_(*team),
    gradient_(derivativeTerms(reduction.order())),
    nextGradient_(derivativeTerms(reduction.order() + (reduction.leastSquares() ? 0 : 1)))
{
    setTranslations(operators_.edges());
}

template<class Real>
void Tree<Real>::setTranslations(const Mat3& edges)
{
    const int p = operators_.order();
    for (int o = 0; o < 8; o++)
    {
        shifts_[o]     = childShift(o, edges);
        const Matrix S = childTranslation(p, shifts_[o]);
        up_[o]         = rowMajor<Real>(S);
        down_[o]       = rowMajor<Real>(0.5 * S.transpose());
    }
}

template<class Real>
void Tree<Real>::setStrain(const Mat3& strain)
{
    operators_.setStrain(strain);
    setTranslations(operators_.edges() * (Mat3::Identity() + strain));
}

template struct Level<float>;
template struct Level<double>;
template class Tree<float>;
template class Tree<double>;

} // namespace farfield
