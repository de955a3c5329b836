/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "hierarchy.h"

#include <algorithm>
#include <cmath>

#include <omp.h>

#include "cpu_kernels.h"

namespace farfield
{

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
Hierarchy<Real>::Hierarchy(const Mat3&      scaledEdges,
                           int              ws,
                           const Reduction& reduction,
                           int              threads) :
    edges_(scaledEdges),
    reduction_(reduction), threads_(threads), entries_(m2lEntries(reduction.highOrder()))
{
    const int p = reduction_.order();
    for (int o = 0; o < 8; o++)
    {
        shifts_[o] = edges_.transpose() * Vec3((o & 1) - 0.5, ((o >> 1) & 1) - 0.5, (o >> 2) - 0.5);
        // u_i(a + s) in units of the parent, twice those of the child
        Matrix S = translation(p, shifts_[o]);
        for (int i = 0; i < coefficientCount(p); i++)
        {
            S.row(i) *= std::pow(0.5, degreeOf(i));
        }
        up_[o]   = S.cast<Real>();
        down_[o] = (0.5 * S.transpose()).cast<Real>();
    }
    const int reach = 2 * ws + 1;
    for (int x = -reach; x <= reach; x++)
    {
        for (int y = -reach; y <= reach; y++)
        {
            for (int z = -reach; z <= reach; z++)
            {
                if (std::max({ std::abs(x), std::abs(y), std::abs(z) }) <= ws)
                {
                    continue;
                }
                Operator op;
                op.D     = { x, y, z };
                bool any = false;
                for (int o = 0; o < 8; o++)
                {
                    const Int3 source = parentOf({ (o & 1) - x, ((o >> 1) & 1) - y, (o >> 2) - z });
                    op.from[o]        = std::max({ std::abs(source[0]),
                                                   std::abs(source[1]),
                                                   std::abs(source[2]) })
                                 <= ws;
                    any = any || op.from[o];
                }
                if (any)
                {
                    operators_.push_back(op);
                }
            }
        }
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
    for (int k = 0; k < static_cast<int>(operators_.size()); k++)
    {
        const Int3&         D = operators_[k].D;
        std::vector<double> v(coefficientCount(2 * reduction_.highOrder()));
        irregularHarmonics(
                2 * reduction_.highOrder(), edges_.transpose() * Vec3(D[0], D[1], D[2]), v.data());
        operators_[k].T =
                reduction_.reduce(m2lMatrix(entries_, reduction_.highOrder(), v.data()), false)
                        .template cast<Real>();
    }
}

template<class Real>
void Hierarchy<Real>::buildStrain()
{
    if (!strain_.empty())
    {
        return;
    }
    const int degree = 2 * reduction_.highOrder();
    strain_.resize(operators_.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
    for (int k = 0; k < static_cast<int>(operators_.size()); k++)
    {
        const Int3&         D = operators_[k].D;
        std::vector<double> out((1 + StrainCount) * coefficientCount(degree));
        irregularStrain(degree, edges_.transpose() * Vec3(D[0], D[1], D[2]), out.data());
        for (int c = 0; c < StrainCount; c++)
        {
            const double* v = out.data() + (1 + c) * coefficientCount(degree);
            strain_[k][c] = reduction_.reduce(m2lMatrix(entries_, reduction_.highOrder(), v), false)
                                    .template cast<Real>();
        }
    }
}

template<class Real>
void Hierarchy<Real>::setStrain(const Mat3& strain)
{
    buildStrain();
    if (unstrained_.empty())
    {
        for (const Operator& op : operators_)
        {
            unstrained_.push_back(op.T);
        }
    }
    const double weight[StrainCount] = {
        strain(0, 0), strain(1, 1), 2 * strain(0, 1), 2 * strain(0, 2), 2 * strain(1, 2)
    };
    for (size_t k = 0; k < operators_.size(); k++)
    {
        operators_[k].T = unstrained_[k];
        for (int c = 0; c < StrainCount; c++)
        {
            operators_[k].T += static_cast<Real>(weight[c]) * strain_[k][c];
        }
    }
}

namespace
{

//! Columns of a coefficient-major array as a dense matrix.
template<class Real, class RealMatrix>
void gather(const AlignedVector<Real>& from,
            int                        padded,
            const std::vector<int>&    slots,
            RealMatrix*                to)
{
    const int n = static_cast<int>(to->rows());
    for (int i = 0; i < n; i++)
    {
        const Real* row = from.data() + static_cast<size_t>(i) * padded;
        Real*       out = to->row(i).data();
        for (size_t b = 0; b < slots.size(); b++)
        {
            out[b] = row[slots[b]];
        }
    }
}

template<class Real, class RealMatrix>
void scatterAdd(const RealMatrix&       from,
                const std::vector<int>& slots,
                int                     padded,
                AlignedVector<Real>*    to)
{
    for (int i = 0; i < from.rows(); i++)
    {
        Real*       row = to->data() + static_cast<size_t>(i) * padded;
        const Real* in  = from.row(i).data();
        for (size_t b = 0; b < slots.size(); b++)
        {
            row[slots[b]] += in[b];
        }
    }
}

} // namespace

template<class Real>
void Hierarchy<Real>::m2m(const Level<Real>& child, Level<Real>* parent) const
{
    std::fill(parent->M.begin(), parent->M.end(), Real(0));
    const int n = coefficientCount(reduction_.order());
    for (int o = 0; o < 8; o++)
    {
        // within an octant no two children share a parent
        std::vector<int> from, to;
        for (size_t slot = 0; slot < child.cells.size(); slot++)
        {
            if (octantOf(child.cells[slot]) == o)
            {
                from.push_back(static_cast<int>(slot));
                to.push_back(parent->slotOf[parent->grid.index(parentOf(child.cells[slot]))]);
            }
        }
        if (from.empty())
        {
            continue;
        }
        RealMatrix X(n, from.size());
        gather(child.M, child.padded, from, &X);
        const RealMatrix Y = up_[o] * X;
        scatterAdd(Y, to, parent->padded, &parent->M);
    }
}

template<class Real>
double Hierarchy<Real>::traceShift(const Level<Real>& child) const
{
    double sum = 0;
    for (size_t slot = 0; slot < child.cells.size(); slot++)
    {
        const Vec3& s = shifts_[octantOf(child.cells[slot])];
        const auto  M = [&](int l, int m)
        {
            return static_cast<double>(
                    child.M[static_cast<size_t>(coefficientIndex(l, m)) * child.padded + slot]);
        };
        sum += s.squaredNorm() * M(0, 0);
        if (reduction_.order() > 0)
        {
            // u_1,1 = -x, u_1,-1 = -y, u_1,0 = z
            sum += 2 * (-s[0] * M(1, 1) - s[1] * M(1, -1) + s[2] * M(1, 0));
        }
    }
    return sum;
}

template<class Real>
void Hierarchy<Real>::l2l(const Level<Real>& parent, Level<Real>* child, double background) const
{
    std::fill(child->L.begin(), child->L.end(), Real(0));
    const int n = coefficientCount(reduction_.order());
    for (int o = 0; o < 8; o++)
    {
        std::vector<int> from, to;
        for (size_t slot = 0; slot < child->cells.size(); slot++)
        {
            if (octantOf(child->cells[slot]) == o)
            {
                to.push_back(static_cast<int>(slot));
                from.push_back(parent.slotOf[parent.grid.index(parentOf(child->cells[slot]))]);
            }
        }
        if (from.empty())
        {
            continue;
        }
        RealMatrix X(n, from.size());
        gather(parent.L, parent.padded, from, &X);
        RealMatrix  Y = down_[o] * X;
        const Vec3& s = shifts_[o];
        // |s + b|^2 = |s|^2 + 2 s.b + |b|^2; the last is left to the next level or the particles
        Y.row(0).array() += static_cast<Real>(background * s.squaredNorm());
        if (n > 1)
        {
            Y.row(coefficientIndex(1, 1)).array() -= static_cast<Real>(2 * background * s[0]);
            Y.row(coefficientIndex(1, -1)).array() -= static_cast<Real>(2 * background * s[1]);
            Y.row(coefficientIndex(1, 0)).array() += static_cast<Real>(2 * background * s[2]);
        }
        scatterAdd(Y, to, child->padded, &child->L);
    }
}

template<class Real>
void Hierarchy<Real>::m2l(Level<Real>* level, std::array<double, StrainCount>* virial)
{
    if (virial != nullptr)
    {
        buildStrain();
    }
    const int n     = coefficientCount(reduction_.order());
    const int cells = static_cast<int>(level->cells.size());
    // each thread owns a range of targets, in stretches that keep the operands in the cache
    constexpr int                                c_stretch = 512;
    const int                                    stretches = (cells + c_stretch - 1) / c_stretch;
    std::vector<std::array<double, StrainCount>> partial(stretches);
#pragma omp parallel num_threads(threads_)
    {
        std::vector<int> from, to;
        RealMatrix       X, Y, Z;
#pragma omp for schedule(static)
        for (int stretch = 0; stretch < stretches; stretch++)
        {
            std::array<double, StrainCount> own = {};
            for (size_t k = 0; k < operators_.size(); k++)
            {
                const Operator& op = operators_[k];
                from.clear();
                to.clear();
                for (int slot = stretch * c_stretch;
                     slot < std::min(cells, (stretch + 1) * c_stretch);
                     slot++)
                {
                    const Int3& c = level->cells[slot];
                    if (!op.from[octantOf(c)])
                    {
                        continue;
                    }
                    const Int3 source =
                            level->grid.reduce({ c[0] - op.D[0], c[1] - op.D[1], c[2] - op.D[2] });
                    const int other = level->slotOf[level->grid.index(source)];
                    if (other >= 0)
                    {
                        from.push_back(other);
                        to.push_back(slot);
                    }
                }
                if (from.empty())
                {
                    continue;
                }
                X.resize(n, from.size());
                gather(level->M, level->padded, from, &X);
                Y.noalias() = op.T * X;
                scatterAdd(Y, to, level->padded, &level->L);
                if (virial != nullptr)
                {
                    Z.resize(n, to.size());
                    gather(level->M, level->padded, to, &Z);
                    for (int c = 0; c < StrainCount; c++)
                    {
                        Y.noalias() = strain_[k][c] * X;
                        own[c] += 0.25 * Y.cwiseProduct(Z).template cast<double>().sum();
                    }
                }
            }
            partial[stretch] = own;
        }
    }
    if (virial != nullptr)
    {
        for (const auto& own : partial)
        {
            for (int c = 0; c < StrainCount; c++)
            {
                (*virial)[c] += own[c];
            }
        }
    }
}

template struct Level<float>;
template struct Level<double>;
template class Hierarchy<float>;
template class Hierarchy<double>;

} // namespace farfield
