/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Compiled once per instruction set by Highway; see point_kernels.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pair_kernels/point_kernels.cpp"
#include "base/simd_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "pair_kernels/legendre_basis.h"
#include "pair_kernels/pair_laws-inl.h"
#include "pair_kernels/point_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

template<class Real>
HWY_INLINE Real sumOf(Vec<Real> v)
{
    return hn::GetLane(hn::SumOfLanes(Tag<Real>(), v));
}

//! P_0 to P_p of a coordinate, and their derivatives.
template<class Real>
struct Polynomials
{
    Vec<Real> value[c_mostDegree + 1], slope[c_mostDegree + 1];

    template<bool Slopes>
    HWY_INLINE void set(int degree, Vec<Real> xi)
    {
        const Tag<Real> d;
        const auto set = [d](double a) HWY_ATTR { return hn::Set(d, static_cast<Real>(a)); };
        const auto t   = hn::Add(xi, xi);
        // without their factors at first
        value[0] = set(1);
        slope[0] = hn::Zero(d);
        if (degree > 0)
        {
            value[1] = t;
            slope[1] = set(2);
        }
        for (int k = 1; k < degree; k++)
        {
            value[k + 1] =
                    hn::NegMulAdd(set(k / (k + 1.0)),
                                  value[k - 1],
                                  hn::Mul(hn::Mul(set((2 * k + 1) / (k + 1.0)), t), value[k]));
            if (Slopes)
            {
                slope[k + 1] = hn::MulAdd(set(4 * k + 2), value[k], slope[k - 1]);
            }
        }
        for (int k = 1; k <= degree; k++)
        {
            const auto factor = set(std::sqrt(2.0 * k + 1));
            value[k]          = hn::Mul(value[k], factor);
            slope[k]          = Slopes ? hn::Mul(slope[k], factor) : slope[k];
        }
    }
};

//! The coordinates in the cell of some points.
template<class Real>
struct Coordinates
{
    Vec<Real> xi[3];

    HWY_INLINE
    Coordinates(const CellPolynomials<Real>& basis, Vec<Real> x, Vec<Real> y, Vec<Real> z)
    {
        const Tag<Real> d;
        for (int k = 0; k < 3; k++)
        {
            xi[k] = hn::MulAdd(x,
                               hn::Set(d, basis.toCell[0][k]),
                               hn::MulAdd(y,
                                          hn::Set(d, basis.toCell[1][k]),
                                          hn::Mul(z, hn::Set(d, basis.toCell[2][k]))));
        }
    }
};

template<class Real>
void toMultipoles(const CellPolynomials<Real>& basis,
                  const CellPoints<Real>& points,
                  const Real* q,
                  Real* M)
{
    const Tag<Real> d;
    const int lanes  = lanesOf<Real>();
    const int degree = basis.degree;
    Vec<Real> sums[polynomialCount(c_mostDegree)];
    for (int a = 0; a < polynomialCount(degree); a++)
    {
        sums[a] = hn::Zero(d);
    }
    Polynomials<Real> px, py, pz;
    for (int i = 0; i < points.count; i += lanes)
    {
        // what is behind the last point has no charge
        const auto here = hn::FirstN(d, points.count - i);
        const Coordinates<Real> at(basis,
                                   hn::LoadU(d, points.x + i),
                                   hn::LoadU(d, points.y + i),
                                   hn::LoadU(d, points.z + i));
        const auto charge = hn::IfThenElseZero(here, hn::LoadU(d, q + i));
        px.template set<false>(degree, at.xi[0]);
        py.template set<false>(degree, at.xi[1]);
        pz.template set<false>(degree, at.xi[2]);
        Vec<Real>* sum = sums;
        for (int a = 0; a <= degree; a++)
        {
            const auto ofX = hn::Mul(charge, px.value[a]);
            for (int b = 0; b <= degree - a; b++)
            {
                const auto ofXY = hn::Mul(ofX, py.value[b]);
                for (int c = 0; c <= degree - a - b; c++, sum++)
                {
                    *sum = hn::MulAdd(ofXY, pz.value[c], *sum);
                }
            }
        }
    }
    for (int a = 0; a < polynomialCount(degree); a++)
    {
        M[a] += sumOf<Real>(sums[a]);
    }
}

template<class Real>
void fromLocals(const CellPolynomials<Real>& basis,
                const CellPoints<Real>& points,
                const Real* L,
                Real* result,
                int stride)
{
    const Tag<Real> d;
    const int lanes  = lanesOf<Real>();
    const int degree = basis.degree;
    Polynomials<Real> px, py, pz;
    for (int i = 0; i < points.count; i += lanes)
    {
        const Coordinates<Real> at(basis,
                                   hn::LoadU(d, points.x + i),
                                   hn::LoadU(d, points.y + i),
                                   hn::LoadU(d, points.z + i));
        px.template set<true>(degree, at.xi[0]);
        py.template set<true>(degree, at.xi[1]);
        pz.template set<true>(degree, at.xi[2]);
        auto phi           = hn::Zero(d);
        Vec<Real> slope[3] = { phi, phi, phi };
        const Real* l      = L;
        for (int a = 0; a <= degree; a++)
        {
            auto value = hn::Zero(d), alongY = hn::Zero(d), alongZ = hn::Zero(d);
            for (int b = 0; b <= degree - a; b++)
            {
                auto inner = hn::Zero(d), innerSlope = hn::Zero(d);
                for (int c = 0; c <= degree - a - b; c++, l++)
                {
                    const auto local = hn::Set(d, *l);
                    inner            = hn::MulAdd(local, pz.value[c], inner);
                    innerSlope       = hn::MulAdd(local, pz.slope[c], innerSlope);
                }
                value  = hn::MulAdd(py.value[b], inner, value);
                alongY = hn::MulAdd(py.slope[b], inner, alongY);
                alongZ = hn::MulAdd(py.value[b], innerSlope, alongZ);
            }
            phi      = hn::MulAdd(px.value[a], value, phi);
            slope[0] = hn::MulAdd(px.slope[a], value, slope[0]);
            slope[1] = hn::MulAdd(px.value[a], alongY, slope[1]);
            slope[2] = hn::MulAdd(px.value[a], alongZ, slope[2]);
        }
        const auto add = [&](int component, Vec<Real> v) HWY_ATTR
        {
            HWY_ALIGN Real values[c_stagePadding];
            hn::Store(v, d, values);
            Real* to = result + static_cast<size_t>(component) * stride + i;
            for (int lane = 0; lane < std::min(lanes, points.count - i); lane++)
            {
                to[lane] += values[lane];
            }
        };
        add(0, phi);
        for (int k = 0; k < 3; k++)
        {
            // the chain rule
            auto gradient = hn::Zero(d);
            for (int m = 0; m < 3; m++)
            {
                gradient = hn::MulAdd(hn::Set(d, basis.toCell[k][m]), slope[m], gradient);
            }
            add(1 + k, hn::Neg(gradient));
        }
    }
}

//! What all sources make at a target, for Sets sets of charges.
template<int Sets, bool Strain, class Law, class Real>
HWY_INLINE void pairsOfTarget(const PairTask<Real>& task, const Law& law, int target, int firstSet)
{
    constexpr int c_results = Strain ? c_resultsWithStrain : 4;
    const Tag<Real> d;
    const auto x       = hn::Set(d, task.targets.x[target]);
    const auto y       = hn::Set(d, task.targets.y[target]);
    const auto z       = hn::Set(d, task.targets.z[target]);
    const auto nowhere = hn::Set(d, task.nowhere);
    Vec<Real> sums[Sets][c_results];
    for (auto& sum : sums)
    {
        for (auto& component : sum)
        {
            component = hn::Zero(d);
        }
    }
    for (int j = 0; j < task.staged; j += lanesOf<Real>())
    {
        const auto dx = hn::Sub(x, hn::Load(d, task.x + j));
        const auto dy = hn::Sub(y, hn::Load(d, task.y + j));
        const auto dz = hn::Sub(z, hn::Load(d, task.z + j));
        const auto r2 = hn::MulAdd(dx, dx, hn::MulAdd(dy, dy, hn::Mul(dz, dz)));
        Vec<Real> g, f;
        law(r2, &g, &f);
        const auto isNowhere = hn::Lt(dx, hn::Neg(nowhere));
        g                    = hn::IfThenZeroElse(isNowhere, g);
        f                    = hn::IfThenZeroElse(isNowhere, f);
        const auto fx = hn::Mul(f, dx), fy = hn::Mul(f, dy), fz = hn::Mul(f, dz);
        for (int s = 0; s < Sets; s++)
        {
            const auto q =
                    hn::Load(d, task.q + static_cast<size_t>(firstSet + s) * task.staged + j);
            sums[s][0] = hn::MulAdd(q, g, sums[s][0]);
            sums[s][1] = hn::MulAdd(q, fx, sums[s][1]);
            sums[s][2] = hn::MulAdd(q, fy, sums[s][2]);
            sums[s][3] = hn::MulAdd(q, fz, sums[s][3]);
            if constexpr (Strain)
            {
                const auto qx = hn::Mul(q, fx), qy = hn::Mul(q, fy);
                sums[s][4] = hn::MulAdd(qx, dx, sums[s][4]);
                sums[s][5] = hn::MulAdd(qy, dy, sums[s][5]);
                sums[s][6] = hn::MulAdd(hn::Mul(q, fz), dz, sums[s][6]);
                sums[s][7] = hn::MulAdd(qx, dy, sums[s][7]);
                sums[s][8] = hn::MulAdd(qx, dz, sums[s][8]);
                sums[s][9] = hn::MulAdd(qy, dz, sums[s][9]);
            }
        }
    }
    for (int s = 0; s < Sets; s++)
    {
        for (int c = 0; c < c_results; c++)
        {
            task.result[(static_cast<size_t>(firstSet + s) * c_results + c) * task.stride
                        + target] += sumOf<Real>(sums[s][c]);
        }
    }
}

//! What all sources make at a target, for all sets of charges.
template<class Law, class Real>
HWY_INLINE void setsOfTarget(const PairTask<Real>& task, const Law& law, int target)
{
    if (task.wantsStrain)
    {
        for (int set = 0; set < task.sets; set++)
        {
            pairsOfTarget<1, true>(task, law, target, set);
        }
        return;
    }
    constexpr int c_mostTogether = 4; // sets that share the work of a pair
    for (int set = 0; set < task.sets; set += c_mostTogether)
    {
        const int together = std::min(task.sets - set, c_mostTogether);
        switch (together)
        {
            case 1:
                pairsOfTarget<1, false>(task, law, target, set);
                break;
            case 2:
                pairsOfTarget<2, false>(task, law, target, set);
                break;
            case 3:
                pairsOfTarget<3, false>(task, law, target, set);
                break;
            default:
                pairsOfTarget<4, false>(task, law, target, set);
        }
    }
}

template<class Law, class Real>
HWY_INLINE void pairsOf(const PairTask<Real>& task)
{
    const Law law(*task.law);
    std::vector<int> away;
    std::vector<Real> kept;
    for (int i = 0; i < task.targets.count; i++)
    {
        // a target does not act on itself, nor do some others: they are away for a while
        away.clear();
        if (task.own >= 0)
        {
            away.push_back(task.own + i);
        }
        if (task.awayStart != nullptr)
        {
            away.insert(
                    away.end(), task.away + task.awayStart[i], task.away + task.awayStart[i + 1]);
        }
        kept.clear();
        for (const int source : away)
        {
            kept.push_back(std::exchange(task.x[source], 2 * task.nowhere));
        }
        setsOfTarget(task, law, i);
        for (size_t k = away.size(); k-- > 0;)
        {
            task.x[away[k]] = kept[k];
        }
    }
}

template<class Real>
void pairs(const PairTask<Real>& task)
{
    switch (task.law->kind)
    {
        case PairLawKind::Yukawa:
            return pairsOf<YukawaLaw<Real>>(task);
        case PairLawKind::InversePower:
            return pairsOf<InversePowerLaw<Real>>(task);
        case PairLawKind::Table:
            return pairsOf<TableLaw<Real>>(task);
    }
}

template<class Real>
const PointKernels<Real>& kernelsOfPoints()
{
    static const PointKernels<Real> table = { toMultipoles<Real>, fromLocals<Real>, pairs<Real> };
    return table;
}
const PointKernels<float>& pointKernelsFloat()
{
    return kernelsOfPoints<float>();
}
const PointKernels<double>& pointKernelsDouble()
{
    return kernelsOfPoints<double>();
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farfield
{

HWY_EXPORT(pointKernelsFloat);
HWY_EXPORT(pointKernelsDouble);

template<>
const PointKernels<float>& pointKernels()
{
    return HWY_DYNAMIC_DISPATCH(pointKernelsFloat)();
}

template<>
const PointKernels<double>& pointKernels()
{
    return HWY_DYNAMIC_DISPATCH(pointKernelsDouble)();
}

} // namespace farfield
#endif
