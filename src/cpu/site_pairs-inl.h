/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2P of sites: charges and dipoles of near cells, to potentials with their derivatives.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_SITE_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_SITE_PAIRS_INL_H
#undef FARFIELD_CPU_SITE_PAIRS_INL_H
#else
#define FARFIELD_CPU_SITE_PAIRS_INL_H
#endif

#include <algorithm>
#include <utility>
#include <vector>

#include "hwy/highway.h"

#include "cpu/lacking-inl.h"
#include "cpu/near_function-inl.h"
#include "cpu/p2p_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Sources of a cell, copied side by side: its own first.
template<class Real>
struct StagedSites
{
    Real *x, *y, *z, *q;
    Real* dipole[3]; //!< null: there are none
    Real* width;     //!< as in NearFunctionTask; null: there are none
    int count;       //!< padded to whole vectors
};

//! What pairs have in place of 1/r.
enum class SitePairs
{
    Plain,  //!< nothing else
    Near,   //!< near functions where they are in range
    Farther //!< what near functions add to 1/r, in range
};

//! A source that a target leaves out for a while.
template<class Real>
struct LeftOutSite
{
    int source;
    Real x, y, z, q, dipole[3];
};

template<class Real>
StagedSites<Real> stageSites(const SiteTask<Real>& task,
                             const Stretches<Real>& stretches,
                             std::vector<Real>* room)
{
    const int L      = lanesOf<Real>();
    const int total  = stretches.endOfStaged();
    const int padded = (total + L - 1) / L * L;
    if (room->size() < static_cast<size_t>(8 * padded + L))
    {
        room->resize(static_cast<size_t>(16 * padded + L));
    }
    Real* base          = alignedIn(room);
    const auto array    = [&](int k) { return base + static_cast<size_t>(k) * padded; };
    StagedSites<Real> s = { array(0), array(1), array(2), array(3), {}, nullptr, padded };
    // far away, and nothing there
    for (int k = 0; k < 8; k++)
    {
        std::fill(array(k) + total, array(k) + padded, k < 3 ? Real(1e3) : Real(0));
    }
    for (const Stretch& t : stretches)
    {
        const Vec3& shift = stretches.shift(t);
        const auto copy   = [&](const Real* from, Real* to, double by)
        {
            const Real added = static_cast<Real>(by);
            std::transform(from + t.first,
                           from + t.first + t.count,
                           to + t.position,
                           [added](Real value) { return value + added; });
        };
        copy(task.particles.x, s.x, shift[0]);
        copy(task.particles.y, s.y, shift[1]);
        copy(task.particles.z, s.z, shift[2]);
        copy(task.particles.q, s.q, 0);
        if (task.functions != nullptr)
        {
            copy(task.functions->width, array(7), 0);
        }
        if (task.dipoles.any())
        {
            copy(task.dipoles.x, array(4), 0);
            copy(task.dipoles.y, array(5), 0);
            copy(task.dipoles.z, array(6), 0);
        }
    }
    for (int axis = 0; axis < 3 && task.dipoles.any(); axis++)
    {
        s.dipole[axis] = array(4 + axis);
    }
    s.width = task.functions != nullptr ? array(7) : nullptr;
    return s;
}

//! Which pairs have a width. \param[in] a, b  widths as in NearFunctionTask
template<class Real>
HWY_INLINE auto haveWidth(WidthRule rule, Vec<Real> a, Vec<Real> b)
{
    const auto zero = hn::Zero(Tag<Real>());
    return rule == WidthRule::GeometricMean ? hn::And(hn::Gt(a, zero), hn::Gt(b, zero))
                                            : hn::Or(hn::Gt(a, zero), hn::Gt(b, zero));
}

/*! \brief Makes B0 to B3 of 1/r those of near functions, or what these add.
 *  \param[in] r2     squared distances, not 0
 *  \param[in] inverse  1/r
 *  \param[in] a, b   widths as in NearFunctionTask
 *  \param[in] wide   of haveWidth() */
template<SitePairs Pairs, class Real>
HWY_INLINE void applyFunction(const NearFunctionTask<Real>& functions,
                              Vec<Real> r2,
                              Vec<Real> inverse,
                              Vec<Real> a,
                              Vec<Real> b,
                              hn::Mask<Tag<Real>> wide,
                              Vec<Real>* B)
{
    const Tag<Real> d;
    const auto isMet     = hn::And(wide, hn::Lt(r2, hn::Set(d, functions.range2)));
    const auto others    = hn::Set(d, Real(Pairs == SitePairs::Near ? 1 : 0));
    Vec<Real> factors[4] = { others, others, others, others };
    if (!hn::AllFalse(d, isMet))
    {
        const auto scale = inverseWidth<Real>(functions.function.rule, a, b);
        derivativeFactors<Real>(functions.function.function,
                                Pairs == SitePairs::Near,
                                hn::IfThenElseZero(isMet, hn::Mul(hn::Mul(r2, inverse), scale)),
                                factors);
    }
    for (int k = 0; k < 4; k++)
    {
        B[k] = hn::Mul(B[k], hn::IfThenElse(isMet, factors[k], others));
    }
}

/*! \brief The values of a target, [value].
 *  \param[in,out] virial  of the pairs, for Virial
 *
 *  With R from the source to the target, B0 = 1/R, B1 = B0/R^2, B2 = 3 B1/R^2 and B3 = 5 B2/R^2. A charge at
 *  the target has the potential of P2P there, see targetBlock(), and no derivatives.
 *  \param[in] targetCharge  of the target, whose staged charge is 0 */
template<SitePairs Pairs, bool Dipoles, bool Curved, bool Virial, class Real>
HWY_INLINE void siteRow(const SiteTask<Real>& task,
                        const StagedSites<Real>& s,
                        int target,
                        Real targetCharge,
                        Real* values,
                        TensorSum<Real>* virial)
{
    constexpr Real c_atOnePlace = Real(1e10);
    const Tag<Real> d;
    const int L        = lanesOf<Real>();
    const auto x       = hn::Set(d, s.x[target]);
    const auto y       = hn::Set(d, s.y[target]);
    const auto z       = hn::Set(d, s.z[target]);
    const auto rescale = hn::Set(d, 1 / c_rootScale<Real>);
    const auto charge  = hn::Set(d, targetCharge);
    Vec<Real> ofTarget[3]; // its dipole
    for (int k = 0; k < 3 && Dipoles; k++)
    {
        ofTarget[k] = hn::Set(d, s.dipole[k][target]);
    }
    Vec<Real> v[c_siteValues];
    std::fill_n(v, c_siteValues, hn::Zero(d));
    for (int j = 0; j < s.count; j += L)
    {
        const Vec<Real> R[3] = { hn::Sub(x, hn::Load(d, s.x + j)),
                                 hn::Sub(y, hn::Load(d, s.y + j)),
                                 hn::Sub(z, hn::Load(d, s.z + j)) };
        const auto q         = hn::Load(d, s.q + j);
        const auto r2        = hn::MulAdd(R[0], R[0], hn::MulAdd(R[1], R[1], hn::Mul(R[2], R[2])));
        auto here            = hn::Eq(r2, hn::Zero(d));
        auto safe            = r2;
        Vec<Real> width, other; // of near functions, of both particles
        hn::Mask<Tag<Real>> wide;
        if constexpr (Pairs != SitePairs::Plain)
        {
            width = hn::Set(d, s.width[target]);
            other = hn::Load(d, s.width + j);
            wide  = haveWidth<Real>(task.functions->function.rule, width, other);
        }
        if constexpr (Pairs == SitePairs::Near)
        {
            // near functions are finite at no distance: powers of this one are, too
            const auto least = hn::Set(d, Real(1e-10));
            const auto isOwn = hn::Eq(hn::Iota(d, static_cast<Real>(j)),
                                      hn::Set(d, static_cast<Real>(target)));
            const auto soft  = hn::AndNot(isOwn, wide);
            here             = hn::AndNot(soft, here);
            safe             = hn::IfThenElse(soft, hn::Max(r2, least), r2);
        }
        safe = hn::IfThenElse(here, hn::Set(d, Real(1)), safe);
        Vec<Real> B[4];
        B[0]         = hn::IfThenZeroElse(here, hn::Mul(rescale, scaledInverseRoot(safe)));
        const auto w = hn::Mul(B[0], B[0]);
        B[1]         = hn::Mul(B[0], w);
        B[2]         = hn::Mul(hn::Mul(hn::Set(d, Real(3)), B[1]), w);
        B[3]         = hn::Mul(hn::Mul(hn::Set(d, Real(5)), B[2]), w);
        if constexpr (Pairs != SitePairs::Plain)
        {
            applyFunction<Pairs, Real>(*task.functions, safe, B[0], width, other, wide, B);
        }
        const auto B0 = B[0], B1 = B[1], B2 = B[2];
        // the potential, -1/R times the slope, and the part of second derivatives along R
        auto value = hn::Mul(q, B0);
        auto slope = hn::Mul(q, B1);
        auto along = hn::Mul(q, B2);
        Vec<Real> mu[3];
        if (Dipoles)
        {
            for (int k = 0; k < 3; k++)
            {
                mu[k] = hn::Load(d, s.dipole[k] + j);
            }
            const auto b = hn::MulAdd(mu[0], R[0], hn::MulAdd(mu[1], R[1], hn::Mul(mu[2], R[2])));
            value        = hn::MulAdd(b, B1, value);
            slope        = hn::MulAdd(b, B2, slope);
            along        = hn::MulAdd(b, B[3], along);
        }
        value = hn::IfThenElse(here, hn::Mul(q, hn::Set(d, c_atOnePlace)), value);
        v[0]  = hn::Add(v[0], value);
        Vec<Real> gradient[3];
        for (int k = 0; k < 3; k++)
        {
            gradient[k] = hn::Mul(slope, R[k]);
            gradient[k] = Dipoles ? hn::MulSub(B1, mu[k], gradient[k]) : hn::Neg(gradient[k]);
            v[1 + k]    = hn::Add(v[1 + k], gradient[k]);
        }
        Vec<Real> t[3]; // along R, less B2 mu, which is there twice
        if (Curved)
        {
            for (int k = 0; k < 3; k++)
            {
                t[k] = hn::Mul(along, R[k]);
                if (Dipoles)
                {
                    mu[k] = hn::Mul(B2, mu[k]);
                    t[k]  = hn::Sub(t[k], mu[k]);
                }
            }
            const auto second = [&](int a, int b, Vec<Real> sum) HWY_ATTR
            {
                sum = hn::MulAdd(t[a], R[b], sum);
                return Dipoles ? hn::NegMulAdd(R[a], mu[b], sum) : sum;
            };
            v[4] = hn::Sub(second(0, 0, v[4]), slope);
            v[5] = hn::Sub(second(1, 1, v[5]), slope);
            v[6] = hn::Sub(second(2, 2, v[6]), slope);
            v[7] = second(0, 1, v[7]);
            v[8] = second(0, 2, v[8]);
            v[9] = second(1, 2, v[9]);
        }
        if (Virial)
        {
            // the force of the pair, from its gradient and its second derivatives
            Vec<Real> force[3];
            auto alongR = hn::Zero(d), ofDipoles = hn::Zero(d);
            for (int k = 0; k < 3 && Dipoles; k++)
            {
                alongR    = hn::MulAdd(ofTarget[k], R[k], alongR);
                ofDipoles = hn::MulAdd(ofTarget[k], mu[k], ofDipoles);
            }
            for (int k = 0; k < 3; k++)
            {
                force[k] = hn::Neg(hn::Mul(charge, gradient[k]));
                if (Dipoles)
                {
                    force[k] = hn::NegMulAdd(t[k], alongR, force[k]);
                    force[k] = hn::MulAdd(R[k], ofDipoles, force[k]);
                    force[k] = hn::MulAdd(slope, ofTarget[k], force[k]);
                }
            }
            virial->add(R[0], R[1], R[2], force[0], force[1], force[2]);
        }
    }
    for (int k = 0; k < (Curved ? c_siteValues : c_flatValues); k++)
    {
        values[k] = hn::GetLane(hn::SumOfLanes(d, v[k]));
    }
}

//! Takes the partners of a target that must not interact with it out of what is staged.
template<class Real>
void leaveOut(const SiteTask<Real>& task,
              const Stretches<Real>& stretches,
              const StagedSites<Real>& s,
              int target,
              std::vector<LeftOutSite<Real>>* left)
{
    left->clear();
    const ClosePartners& close = task.close;
    const int particle         = stretches.begin()->first + target;
    for (int k = close.offsets[particle]; k < close.offsets[particle + 1]; k++)
    {
        const int partner = close.partners[k];
        stretches.withParticle(
                partner,
                [&](const Stretch& t)
                {
                    const int j   = t.position + partner - t.first;
                    const Real x  = s.x[target] - s.x[j];
                    const Real y  = s.y[target] - s.y[j];
                    const Real z  = s.z[target] - s.z[j];
                    const Real r2 = x * x + y * y + z * z;
                    if (j == target || !(r2 < task.imageDistance2))
                    {
                        return;
                    }
                    LeftOutSite<Real> site = { j, s.x[j], s.y[j], s.z[j], s.q[j], {} };
                    // where it is masked: it may be so near that powers of 1/r overflow
                    s.x[j] = s.x[target];
                    s.y[j] = s.y[target];
                    s.z[j] = s.z[target];
                    s.q[j] = 0;
                    for (int axis = 0; axis < 3 && task.dipoles.any(); axis++)
                    {
                        site.dipole[axis] = s.dipole[axis][j];
                        s.dipole[axis][j] = 0;
                    }
                    left->push_back(site);
                });
    }
}

//! Puts them back.
template<class Real>
void putBack(const std::vector<LeftOutSite<Real>>& left, const StagedSites<Real>& s)
{
    for (const LeftOutSite<Real>& site : left)
    {
        s.x[site.source] = site.x;
        s.y[site.source] = site.y;
        s.z[site.source] = site.z;
        s.q[site.source] = site.q;
        for (int axis = 0; axis < 3 && s.dipole[axis] != nullptr; axis++)
        {
            s.dipole[axis][site.source] = site.dipole[axis];
        }
    }
}

template<SitePairs Pairs, bool Dipoles, bool Curved, bool Virial, class Real>
void p2pOfCells(const SiteTask<Real>& task, int begin, int end)
{
    Stretches<Real> stretches(*task.grid,
                              Pairs == SitePairs::Farther ? *task.farther
                                                          : nearDisplacements(task.ws),
                              task.isRelative,
                              task.particles.start);
    std::vector<Real> room;
    std::vector<LeftOutSite<Real>> left;
    for (int k = begin; k < end; k++)
    {
        stretches.find(task.cells[k], 0);
        const StagedSites<Real> s = stageSites(task, stretches, &room);
        const Stretch& own        = *stretches.begin();
        const bool leavesOut      = Pairs != SitePairs::Farther && task.close.offsets != nullptr;
        if (Pairs == SitePairs::Farther)
        {
            // those of the cell itself are met already
            std::fill_n(s.q, own.count, Real(0));
            for (int axis = 0; axis < 3 && Dipoles; axis++)
            {
                std::fill_n(s.dipole[axis], own.count, Real(0));
            }
        }
        if (leavesOut)
        {
            stretches.orderByParticle();
        }
        TensorSum<Real> virial;
        for (int i = 0; i < own.count; i++)
        {
            if (leavesOut)
            {
                leaveOut(task, stretches, s, i, &left);
            }
            Real values[c_siteValues];
            const Real charge = std::exchange(s.q[i], Real(0));
            siteRow<Pairs, Dipoles, Curved, Virial>(task, s, i, charge, values, &virial);
            s.q[i] = charge;
            for (int value = 0; value < (Curved ? c_siteValues : c_flatValues); value++)
            {
                Real& to = task.values.of[value][own.first + i];
                to       = values[value] + (Pairs == SitePairs::Farther ? to : Real(0));
            }
            putBack(left, s);
        }
        if (Virial)
        {
            task.virials[k] = {};
            virial.addVirial(task.virials[k].data());
            for (double& component : task.virials[k])
            {
                component *= 0.5;
            }
        }
    }
}

template<bool Dipoles, class Real>
void p2pWithDipoles(const SiteTask<Real>& task, int begin, int end)
{
    const bool isCurved = task.values.isCurved;
    if (task.functions != nullptr)
    {
        constexpr auto c_near = SitePairs::Near, c_farther = SitePairs::Farther;
        const auto of      = isCurved ? p2pOfCells<c_near, Dipoles, true, false, Real>
                                      : p2pOfCells<c_near, Dipoles, false, false, Real>;
        const auto farther = isCurved ? p2pOfCells<c_farther, Dipoles, true, false, Real>
                                      : p2pOfCells<c_farther, Dipoles, false, false, Real>;
        of(task, begin, end);
        if (task.farther != nullptr)
        {
            farther(task, begin, end);
        }
        return;
    }
    constexpr auto c_plain = SitePairs::Plain;
    // the virial of dipoles is of forces, which need second derivatives
    const auto of = task.virials == nullptr
                            ? isCurved ? p2pOfCells<c_plain, Dipoles, true, false, Real>
                                       : p2pOfCells<c_plain, Dipoles, false, false, Real>
                    : isCurved ? p2pOfCells<c_plain, Dipoles, true, true, Real>
                               : p2pOfCells<c_plain, false, false, true, Real>;
    of(task, begin, end);
}

template<class Real>
void p2pOfSites(const SiteTask<Real>& task, int begin, int end)
{
    const auto of = task.dipoles.any() ? p2pWithDipoles<true, Real> : p2pWithDipoles<false, Real>;
    of(task, begin, end);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
