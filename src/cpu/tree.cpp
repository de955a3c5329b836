/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/tree.h"

#include <algorithm>
#include <cmath>

#include "cpu/cpu_kernels.h"
#include "operators/background.h"
#include "operators/child_translation.h"

namespace farfield
{

namespace
{

//! Expansions of a set of cells, copied side by side: [coefficients][columns].
template<class Real>
class Columns
{
public:
    //! Room for count columns; the padding behind them is zero.
    Columns(int coefficients, size_t count) { resize(coefficients, count); }
    void resize(int coefficients, size_t count)
    {
        rows_    = coefficients;
        columns_ = static_cast<int>((count + c_slotPadding - 1) / c_slotPadding * c_slotPadding);
        values_.resize(static_cast<size_t>(rows_) * columns_);
    }

    int rows() const { return rows_; }
    int columns() const { return columns_; }
    Real* row(int i) { return values_.data() + static_cast<size_t>(i) * columns_; }
    const Real* row(int i) const { return values_.data() + static_cast<size_t>(i) * columns_; }

    //! Takes the expansions in the given slots of a coefficient-major array.
    void gather(const AlignedVector<Real>& from, int padded, const std::vector<int>& slots)
    {
        for (int i = 0; i < rows_; i++)
        {
            const Real* in = from.data() + static_cast<size_t>(i) * padded;
            Real* out      = row(i);
            for (size_t b = 0; b < slots.size(); b++)
            {
                out[b] = in[slots[b]];
            }
            std::fill(out + slots.size(), out + columns_, Real(0));
        }
    }
    //! Adds them to the given slots.
    void scatterAdd(const std::vector<int>& slots, int padded, AlignedVector<Real>* to) const
    {
        if (slots.empty())
        {
            return; // of a rank without particles
        }
        const int given = static_cast<int>(to->size() / padded);
        for (int i = 0; i < std::min(rows_, given); i++)
        {
            const Real* in = row(i);
            Real* out      = to->data() + static_cast<size_t>(i) * padded;
            for (size_t b = 0; b < slots.size(); b++)
            {
                out[slots[b]] += in[b];
            }
        }
    }
    //! Rows from first on = T from.
    void transform(const AlignedVector<Real>& T, const Columns& from, int first = 0)
    {
        cpuKernels<Real>().transform(T.data(),
                                     static_cast<int>(T.size()) / from.rows_,
                                     from.rows_,
                                     from.values_.data(),
                                     columns_,
                                     row(first));
    }
    void addToRow(int i, double value)
    {
        for (int b = 0; b < columns_; b++)
        {
            row(i)[b] += static_cast<Real>(value);
        }
    }
    //! Scalar product of a row with one of another set.
    double dot(int i, const Columns& other, int j) const
    {
        return static_cast<double>(cpuKernels<Real>().dot(row(i), other.row(j), columns_));
    }
    double sum(int i) const
    {
        double total = 0;
        for (int c = 0; c < columns_; c++)
        {
            total += static_cast<double>(row(i)[c]);
        }
        return total;
    }

private:
    int rows_ = 0, columns_ = 0;
    AlignedVector<Real> values_;
};

//! A matrix as kernels read it.
template<class Real>
AlignedVector<Real> rowMajor(const Matrix& T)
{
    return AlignedVector<Real>(T.data(), T.data() + T.size());
}

//! Slots of cells and of their parents, of which no two are the same.
struct Family
{
    std::vector<int> children, parents;

    //! Those of the parents [begin, end) with children in one octant.
    template<class Real>
    void
    ofParents(const Level<Real>& child, const Level<Real>& parent, int octant, int begin, int end)
    {
        children.clear();
        parents.clear();
        for (int slot = begin; slot < end; slot++)
        {
            const int own = child.slotOf[child.grid.index(childOf(parent.cells[slot], octant))];
            if (own >= 0)
            {
                children.push_back(own);
                parents.push_back(slot);
            }
        }
    }
    //! Those of the children [begin, end) that are in one octant.
    template<class Real>
    void
    ofChildren(const Level<Real>& child, const Level<Real>& parent, int octant, int begin, int end)
    {
        children.clear();
        parents.clear();
        for (int slot = begin; slot < end; slot++)
        {
            if (octantOf(child.cells[slot]) == octant)
            {
                children.push_back(slot);
                parents.push_back(parent.slotOf[parent.grid.index(parentOf(child.cells[slot]))]);
            }
        }
    }
};

//! Cells that a thread takes at a time: all threads have as many, and operands stay in the cache.
int stretchOfCells(int cells, int threads)
{
    constexpr int c_most = 512;
    const int rounds     = (cells + c_most * threads - 1) / (c_most * threads);
    const int parts      = std::max(1, rounds) * threads;
    const int each       = (cells + parts - 1) / parts;
    // no cache line belongs to two threads
    return std::max(1, (each + c_slotPadding - 1) / c_slotPadding) * c_slotPadding;
}

//! Calls work(begin, end, stretch) for all stretches of cells, by all threads.
template<class Work>
void forStretches(int cells, Team* team, const Work& work)
{
    const int stretch = stretchOfCells(cells, team->threads());
    team->forTasks((cells + stretch - 1) / stretch,
                   [&](int k, int /*thread*/)
                   { work(k * stretch, std::min(cells, (k + 1) * stretch), k); });
}
//! The number of these stretches.
int stretchCount(int cells, int threads)
{
    const int stretch = stretchOfCells(cells, threads);
    return (cells + stretch - 1) / stretch;
}

//! Sets [begin, end) of each row of a coefficient-major array to zero.
template<class Real>
void clearSlots(int begin, int end, int padded, AlignedVector<Real>* values)
{
    for (size_t row = 0; row < values->size(); row += padded)
    {
        std::fill(values->begin() + row + begin, values->begin() + row + end, Real(0));
    }
}

//! The end of a stretch of cells, with the padding behind the last.
template<class Real>
int paddedEnd(const Level<Real>& level, int end)
{
    return end == static_cast<int>(level.cells.size()) ? level.padded : end;
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

template struct Level<float>;
template struct Level<double>;
template class Tree<float>;
template class Tree<double>;

} // namespace farfield
