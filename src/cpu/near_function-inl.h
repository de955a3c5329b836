/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What pairs have beyond 1/r, by the staging of P2P.
 *
 *  Targets are the particles that have a width. They meet all sources of the half of the cells that the
 *  third law leaves, and those without a width of the other half.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_NEAR_FUNCTION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_NEAR_FUNCTION_INL_H
#undef FARFIELD_CPU_NEAR_FUNCTION_INL_H
#else
#define FARFIELD_CPU_NEAR_FUNCTION_INL_H
#endif

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "hwy/highway.h"

#include "cpu/lacking-inl.h"
#include "cpu/p2p_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! 1/sqrt(a)
template<class Real>
HWY_INLINE Vec<Real> inverseRoot(Vec<Real> a)
{
    return hn::Mul(hn::Set(Tag<Real>(), 1 / c_rootScale<Real>), scaledInverseRoot(a));
}

//! The inverse width of pairs, of which not both have the width 0.
template<class Real>
HWY_INLINE Vec<Real> inverseWidth(WidthRule rule, Vec<Real> a, Vec<Real> b)
{
    return rule == WidthRule::RootSumSquare   ? inverseRoot<Real>(hn::Add(a, b))
           : rule == WidthRule::GeometricMean ? hn::Mul(a, b)
                                              : reciprocal(hn::Max(a, b));
}

//! Where a source is put that must not be met: out of any range.
template<class Real>
constexpr Real c_away = Real(1e15);

//! A box around positions.
template<class Real>
struct Bounds
{
    Real low[3], high[3];
};

//! How far positions along an axis are from a box.
template<class Real>
HWY_INLINE Vec<Real> gap(Vec<Real> x, const Bounds<Real>& bounds, int axis)
{
    const Tag<Real> d;
    return hn::Max(hn::Zero(d),
                   hn::Max(hn::Sub(hn::Set(d, bounds.low[axis]), x),
                           hn::Sub(x, hn::Set(d, bounds.high[axis]))));
}

/*! \brief Forces between a target and all staged sources, those of its own cell behind it.
 *  \param[in] target  among the sources
 *  \param[out] whole  called with the source, and the displacement from it, of pairs that are left out
 *  \returns the energy */
template<class Real, class Whole>
HWY_INLINE double targetFunction(const NearFunctionTask<Real>& task,
                                 const Staged<Real>& s,
                                 int target,
                                 const Whole& whole)
{
    const Tag<Real> d;
    const int L       = lanesOf<Real>();
    const auto x      = hn::Set(d, s.x[target]);
    const auto y      = hn::Set(d, s.y[target]);
    const auto z      = hn::Set(d, s.z[target]);
    const auto width  = hn::Set(d, s.width[target]);
    const auto own    = hn::Set(d, s.q[target]);
    const auto range2 = hn::Set(d, task.range2);
    const auto whole2 = hn::Set(d, task.whole2);
    const auto tiny   = hn::Set(d, Real(1e-20)); // as in P2P
    auto fx = hn::Zero(d), fy = hn::Zero(d), fz = hn::Zero(d), potential = hn::Zero(d);
    for (int j = 0; j < s.count; j += L)
    {
        const auto dx = hn::Sub(x, hn::Load(d, s.x + j));
        const auto dy = hn::Sub(y, hn::Load(d, s.y + j));
        const auto dz = hn::Sub(z, hn::Load(d, s.z + j));
        const auto r2 = hn::MulAdd(dx, dx, hn::MulAdd(dy, dy, hn::MulAdd(dz, dz, tiny)));
        const auto v  = hn::Load(d, s.width + j);
        auto isMet    = hn::Lt(r2, range2);
        if (j < s.own)
        {
            // those before it that have a width have met it
            const auto number = hn::Iota(d, static_cast<Real>(j));
            const auto at     = hn::Set(d, static_cast<Real>(target));
            isMet             = hn::And(isMet, hn::Or(hn::Gt(number, at), hn::Eq(v, hn::Zero(d))));
        }
        if (hn::AllFalse(d, isMet))
        {
            continue;
        }
        const auto inverse = inverseRoot<Real>(r2);
        const auto inWidths =
                hn::Mul(hn::Mul(r2, inverse), inverseWidth<Real>(task.function.rule, width, v));
        auto isWhole = hn::And(isMet, hn::Lt(r2, whole2));
        if (!hn::AllFalse(d, isWhole))
        {
            isWhole = hn::And(isWhole, hn::Lt(inWidths, hn::Set(d, task.whole)));
            HWY_ALIGN Real lanes[4][c_slotPadding];
            hn::Store(hn::IfThenElseZero(isWhole, hn::Set(d, Real(1))), d, lanes[3]);
            hn::Store(dx, d, lanes[0]);
            hn::Store(dy, d, lanes[1]);
            hn::Store(dz, d, lanes[2]);
            for (int k = 0; k < L; k++)
            {
                if (lanes[3][k] != 0)
                {
                    whole(j + k, lanes[0][k], lanes[1][k], lanes[2][k]);
                }
            }
            isMet = hn::AndNot(isWhole, isMet);
        }
        const auto lacks  = lacking<Real>(task.function.function, inWidths);
        const auto term   = hn::IfThenElseZero(isMet, inverse);
        const auto sq     = hn::Load(d, s.q + j);
        const auto square = hn::Mul(inverse, inverse);
        const auto f      = hn::Mul(hn::Mul(hn::Mul(own, sq), hn::Mul(term, square)), lacks.slope);
        const auto value  = hn::Mul(term, lacks.value);
        fx                = hn::NegMulAdd(f, dx, fx);
        fy                = hn::NegMulAdd(f, dy, fy);
        fz                = hn::NegMulAdd(f, dz, fz);
        potential         = hn::NegMulAdd(sq, value, potential);
        hn::Store(hn::MulAdd(f, dx, hn::Load(d, s.fx + j)), d, s.fx + j);
        hn::Store(hn::MulAdd(f, dy, hn::Load(d, s.fy + j)), d, s.fy + j);
        hn::Store(hn::MulAdd(f, dz, hn::Load(d, s.fz + j)), d, s.fz + j);
        if (task.potentials)
        {
            const auto before = hn::Load(d, s.potential + j);
            hn::Store(hn::NegMulAdd(own, value, before), d, s.potential + j);
        }
    }
    const auto sum = [d](Vec<Real> v) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(d, v)); };
    s.fx[target] += sum(fx);
    s.fy[target] += sum(fy);
    s.fz[target] += sum(fz);
    const Real atTarget = sum(potential);
    if (task.potentials)
    {
        s.potential[target] += atTarget;
    }
    return static_cast<double>(s.q[target]) * static_cast<double>(atTarget);
}

/*! \brief Copies side by side the sources that the targets of a cell may meet.
 *
 *  Sources of the cell itself come first; those of them that have a width are the targets.
 *  \param[in,out] s      gets the numbers of sources
 *  \param[out]    index  the sorted particles */
template<class Real>
void stageInRange(const NearFunctionTask<Real>& task,
                  const Stretches<Real>& stretches,
                  Staged<Real>* s,
                  typename NearFunctionRoom<Real>::Index* index)
{
    const Tag<Real> d;
    const hn::RebindToSigned<Tag<Real>> di;
    const Particles<Real>& p = task.particles;
    const int L              = lanesOf<Real>();
    const int forward        = task.forward();
    const bool needsBoth     = task.function.rule == WidthRule::GeometricMean;
    const Real* const from[] = { p.x, p.y, p.z };
    const Stretch own        = *stretches.begin();
    Bounds<Real> bounds;
    for (int axis = 0; axis < 3; axis++)
    {
        bounds.low[axis]  = std::numeric_limits<Real>::max();
        bounds.high[axis] = -bounds.low[axis];
        for (int i = own.first; i < own.first + own.count; i++)
        {
            if (task.width[i] > 0)
            {
                bounds.low[axis]  = std::min(bounds.low[axis], from[axis][i]);
                bounds.high[axis] = std::max(bounds.high[axis], from[axis][i]);
            }
        }
    }
    const auto range2 = hn::Set(d, task.range2);
    s->count          = 0;
    for (const Stretch& t : stretches)
    {
        const Vec3& shift = stretches.shift(t);
        for (int i = 0; i < t.count; i += L)
        {
            const auto x     = hn::Add(hn::LoadU(d, p.x + t.first + i),
                                   hn::Set(d, static_cast<Real>(shift[0])));
            const auto y     = hn::Add(hn::LoadU(d, p.y + t.first + i),
                                   hn::Set(d, static_cast<Real>(shift[1])));
            const auto z     = hn::Add(hn::LoadU(d, p.z + t.first + i),
                                   hn::Set(d, static_cast<Real>(shift[2])));
            const auto width = hn::LoadU(d, task.width + t.first + i);
            const auto dx    = gap<Real>(x, bounds, 0);
            const auto dy    = gap<Real>(y, bounds, 1);
            const auto dz    = gap<Real>(z, bounds, 2);
            const auto r2    = hn::MulAdd(dx, dx, hn::MulAdd(dy, dy, hn::Mul(dz, dz)));
            auto isMet       = hn::And(hn::FirstN(d, std::min(L, t.count - i)), hn::Lt(r2, range2));
            if (needsBoth || t.displacement >= forward)
            {
                const auto isNarrow = hn::Eq(width, hn::Zero(d));
                isMet = needsBoth ? hn::AndNot(isNarrow, isMet) : hn::And(isNarrow, isMet);
            }
            if (hn::AllFalse(d, isMet))
            {
                continue;
            }
            const int to = s->count;
            hn::CompressStore(x, isMet, d, s->x + to);
            hn::CompressStore(y, isMet, d, s->y + to);
            hn::CompressStore(z, isMet, d, s->z + to);
            hn::CompressStore(width, isMet, d, s->width + to);
            hn::CompressStore(hn::LoadU(d, p.q + t.first + i), isMet, d, s->q + to);
            s->count += static_cast<int>(hn::CompressStore(
                    hn::Iota(di, t.first + i), hn::RebindMask(di, isMet), di, index + to));
        }
        if (&t == stretches.begin())
        {
            s->own = s->count;
        }
    }
    for (int i = s->count; i < s->count + L; i++)
    {
        s->x[i] = s->y[i] = s->z[i] = c_away<Real>;
        s->width[i] = s->q[i] = 0;
    }
    for (Real* sum : { s->fx, s->fy, s->fz, s->potential })
    {
        std::fill_n(sum, s->count + L, Real(0));
    }
}

//! Adds forces and potentials of what is staged to those of its particles.
template<class Real>
void addInRange(const NearFunctionTask<Real>& task,
                const Stretches<Real>& stretches,
                const Staged<Real>& s,
                const typename NearFunctionRoom<Real>::Index* index,
                NearForces<Real>* forces)
{
    for (const Stretch& t : stretches)
    {
        forces->touch(t.first, t.first + t.count);
    }
    const auto add = [&](Real* to, const Real* from)
    {
        for (int i = 0; i < s.count; i++)
        {
            to[index[i]] += from[i];
        }
    };
    add(forces->x.get(), s.fx);
    add(forces->y.get(), s.fy);
    add(forces->z.get(), s.fz);
    if (task.potentials)
    {
        add(forces->potential.get(), s.potential);
    }
    if (task.virial)
    {
        addVirial(s, forces->virial);
    }
}

template<class Real>
void nearFunction(const NearFunctionTask<Real>& task,
                  int begin,
                  int end,
                  NearFunctionRoom<Real>* room,
                  NearForces<Real>* forces)
{
    const Particles<Real>& p = task.particles;
    const int forward        = task.forward();
    const bool needsBoth     = task.function.rule == WidthRule::GeometricMean;
    const bool excludes      = task.excluded.offsets != nullptr;
    Stretches<Real> stretches(*task.grid, *task.displacements, task.isRelative, p.start);
    const auto isWanted = [&](int displacement, int neighbour)
    {
        const bool isForward = displacement < forward;
        const int wide       = task.wide[neighbour];
        return needsBoth ? isForward && wide > 0
                         : isForward || p.start[neighbour + 1] - p.start[neighbour] > wide;
    };
    for (int k = begin; k < end; k++)
    {
        const int cell = task.cells[k];
        if (task.wide[cell] == 0)
        {
            continue;
        }
        stretches.find(cell, 0, isWanted);
        const int total = stretches.endOfStaged();
        Staged<Real> s  = stagedRoom(total, 0, 0, &forces->staging);
        room->index.resize(std::max<size_t>(room->index.size(), total + lanesOf<Real>()));
        const auto* index = room->index.data();
        stageInRange(task, stretches, &s, room->index.data());
        if (excludes)
        {
            room->enter(p.atom, s.count);
        }
        for (int i = 0; i < s.own; i++)
        {
            if (s.width[i] == 0)
            {
                continue;
            }
            room->away.clear();
            const auto atom = p.atom[index[i]];
            for (int n = excludes ? task.excluded.offsets[atom] : 0;
                 excludes && n < task.excluded.offsets[atom + 1];
                 n++)
            {
                room->forPlaces(task.excluded.partners[n],
                                [&](int source) {
                                    room->away.emplace_back(
                                            source, std::exchange(s.x[source], c_away<Real>));
                                });
            }
            const auto addWhole = [&](int source, Real dx, Real dy, Real dz)
            {
                room->whole.push_back({ static_cast<int>(index[i]),
                                        static_cast<int>(index[source]),
                                        { dx, dy, dz } });
            };
            forces->energy += targetFunction(task, s, i, addWhole);
            for (const auto& [source, x] : room->away)
            {
                s.x[source] = x;
            }
        }
        if (excludes)
        {
            room->leave(p.atom, s.count);
        }
        addInRange(task, stretches, s, index, forces);
    }
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
