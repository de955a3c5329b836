/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2P of sites: charges and moments of near cells, to potentials with their derivatives.
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
    Real* moment[9]; //!< those of SortedMoments, dipole first; null: there are none
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
    Real x, y, z, q, moment[9];
};

template<class Real>
StagedSites<Real> stageSites(const SiteTask<Real>& task,
                             const Stretches<Real>& stretches,
                             std::vector<Real>* room)
{
    const int L       = lanesOf<Real>();
    const int total   = stretches.endOfStaged();
    const int padded  = (total + L - 1) / L * L;
    const int moments = momentCount(task.moments.degree());
    const int arrays  = 5 + moments;
    if (room->size() < static_cast<size_t>(arrays * padded + L))
    {
        room->resize(static_cast<size_t>(2 * arrays * padded + L));
    }
    Real* base          = alignedIn(room);
    const auto array    = [&](int k) { return base + static_cast<size_t>(k) * padded; };
    StagedSites<Real> s = { array(0), array(1), array(2), array(3), {}, nullptr, padded };
    s.width             = task.functions != nullptr ? array(4) : nullptr;
    for (int k = 0; k < moments; k++)
    {
        s.moment[k] = array(5 + k);
    }
    // far away, and nothing there
    for (int k = 0; k < arrays; k++)
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
            copy(task.functions->width, s.width, 0);
        }
        for (int k = 0; k < moments; k++)
        {
            copy(task.moments.of[k], s.moment[k], 0);
        }
    }
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

//! A symmetric matrix, xx yy zz xy xz yz, times a vector.
template<class Real>
HWY_INLINE void timesVector(const Vec<Real>* m, const Vec<Real>* v, Vec<Real>* product)
{
    product[0] = hn::MulAdd(m[0], v[0], hn::MulAdd(m[3], v[1], hn::Mul(m[4], v[2])));
    product[1] = hn::MulAdd(m[3], v[0], hn::MulAdd(m[1], v[1], hn::Mul(m[5], v[2])));
    product[2] = hn::MulAdd(m[4], v[0], hn::MulAdd(m[5], v[1], hn::Mul(m[2], v[2])));
}

template<class Real>
HWY_INLINE auto dotProduct(const Vec<Real>* a, const Vec<Real>* b)
{
    return hn::MulAdd(a[0], b[0], hn::MulAdd(a[1], b[1], hn::Mul(a[2], b[2])));
}

/*! \brief What sources have along R and besides, at some of their derivatives.
 *
 *  With R from the source to the target, B0 = 1/R, B_k+1 = (2 k + 1) B_k/R^2, b = mu.R, c = R.theta R and
 *  s_k = q B_k + b B_k+1 + c B_k+2, w_k = mu B_k + 2 theta R B_k+1, phi is s_0, and its derivatives are
 *
 *      phi_a   = w1_a - s1 R_a
 *      phi_ab  = s2 R_a R_b - s1 d_ab - (R_a w2_b + w2_a R_b) + 2 B2 theta_ab
 *      phi_abc = -s3 R_a R_b R_c + (s2 R_a - w2_a) d_bc + ... + R_a R_b w3_c + ... - 2 B3 R_a theta_bc - ...
 *
 *  with all cyclic permutations, and the Kronecker symbol d. */
template<int Degree, class Real>
struct SourceMoments
{
    Vec<Real> q, b, c;
    Vec<Real> mu[3], theta[6], thetaR[3];

    HWY_INLINE SourceMoments(const StagedSites<Real>& s, int j, const Vec<Real>* R)
    {
        const Tag<Real> d;
        q = hn::Load(d, s.q + j);
        for (int k = 0; k < 3 && Degree > 0; k++)
        {
            mu[k] = hn::Load(d, s.moment[k] + j);
        }
        b = Degree > 0 ? dotProduct<Real>(mu, R) : hn::Zero(d);
        for (int k = 0; k < 6 && Degree > 1; k++)
        {
            theta[k] = hn::Load(d, s.moment[3 + k] + j);
        }
        c = hn::Zero(d);
        if (Degree > 1)
        {
            timesVector<Real>(theta, R, thetaR);
            c = dotProduct<Real>(thetaR, R);
        }
    }
    //! s_k
    HWY_INLINE Vec<Real> along(const Vec<Real>* B, int k) const
    {
        auto sum = hn::Mul(q, B[k]);
        sum      = Degree > 0 ? hn::MulAdd(b, B[k + 1], sum) : sum;
        return Degree > 1 ? hn::MulAdd(c, B[k + 2], sum) : sum;
    }
    //! w_k
    HWY_INLINE void besides(const Vec<Real>* B, int k, Vec<Real>* w) const
    {
        for (int axis = 0; axis < 3; axis++)
        {
            w[axis] = hn::Mul(B[k], mu[axis]);
            if (Degree > 1)
            {
                const auto twice = hn::Add(B[k + 1], B[k + 1]);
                w[axis]          = hn::MulAdd(twice, thetaR[axis], w[axis]);
            }
        }
    }
};

//! Third derivatives times the theta of the target, see SourceMoments.
template<class Real>
HWY_INLINE void pullOfSource(const SourceMoments<2, Real>& source,
                             const Vec<Real>* B,
                             const Vec<Real>* R,
                             const Vec<Real>* ofTarget,
                             Vec<Real>* pull)
{
    const Tag<Real> d;
    const auto two = hn::Set(d, Real(2));
    Vec<Real> w2[3], w3[3], u[3], turned[3], pulled[3];
    source.besides(B, 2, w2);
    source.besides(B, 3, w3);
    timesVector<Real>(ofTarget, R, u);
    timesVector<Real>(ofTarget, w2, turned);
    timesVector<Real>(source.theta, u, pulled);
    const auto c    = dotProduct<Real>(u, R);
    const auto both = hn::MulAdd(two,
                                 hn::MulAdd(ofTarget[3],
                                            source.theta[3],
                                            hn::MulAdd(ofTarget[4],
                                                       source.theta[4],
                                                       hn::Mul(ofTarget[5], source.theta[5]))),
                                 dotProduct<Real>(ofTarget, source.theta));
    // the factor of R: 2 (u.w3 - B3 theta:theta) - s3 c
    const auto ofR =
            hn::NegMulAdd(source.along(B, 3),
                          c,
                          hn::Mul(two, hn::NegMulAdd(B[3], both, dotProduct<Real>(u, w3))));
    const auto ofU  = hn::Mul(two, source.along(B, 2));
    const auto four = hn::Mul(hn::Set(d, Real(4)), B[3]);
    for (int a = 0; a < 3; a++)
    {
        pull[a] = hn::MulAdd(ofU, u[a], hn::MulAdd(c, w3[a], hn::Mul(ofR, R[a])));
        pull[a] = hn::NegMulAdd(two, turned[a], hn::NegMulAdd(four, pulled[a], pull[a]));
    }
}

/*! \brief The values of a target, [value].
 *  \param[in,out] virial  of the pairs, for Virial
 *
 *  A charge at the target has the potential of P2P there, see targetBlock(), and no derivatives.
 *  \param[in] targetCharge  of the target, whose staged charge is 0 */
template<SitePairs Pairs, int Degree, bool Curved, bool Virial, class Real>
HWY_INLINE void siteRow(const SiteTask<Real>& task,
                        const StagedSites<Real>& s,
                        int target,
                        Real targetCharge,
                        Real* values,
                        TensorSum<Real>* virial)
{
    constexpr Real c_atOnePlace = Real(1e10);
    constexpr int c_values      = siteValueCount(Degree, Curved);
    const Tag<Real> d;
    const int L        = lanesOf<Real>();
    const auto x       = hn::Set(d, s.x[target]);
    const auto y       = hn::Set(d, s.y[target]);
    const auto z       = hn::Set(d, s.z[target]);
    const auto rescale = hn::Set(d, 1 / c_rootScale<Real>);
    const auto charge  = hn::Set(d, targetCharge);
    Vec<Real> ofTarget[9]; // its moments
    for (int k = 0; k < momentCount(Degree); k++)
    {
        ofTarget[k] = hn::Set(d, s.moment[k][target]);
    }
    Vec<Real> v[c_siteValues];
    std::fill_n(v, c_siteValues, hn::Zero(d));
    for (int j = 0; j < s.count; j += L)
    {
        const Vec<Real> R[3] = { hn::Sub(x, hn::Load(d, s.x + j)),
                                 hn::Sub(y, hn::Load(d, s.y + j)),
                                 hn::Sub(z, hn::Load(d, s.z + j)) };
        const auto r2        = dotProduct<Real>(R, R);
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
        Vec<Real> B[6];
        B[0]         = hn::IfThenZeroElse(here, hn::Mul(rescale, scaledInverseRoot(safe)));
        const auto w = hn::Mul(B[0], B[0]);
        B[1]         = hn::Mul(B[0], w);
        for (int k = 2; k < 6; k++)
        {
            B[k] = hn::Mul(hn::Mul(hn::Set(d, Real(2 * k - 1)), B[k - 1]), w);
        }
        if constexpr (Pairs != SitePairs::Plain)
        {
            applyFunction<Pairs, Real>(*task.functions, safe, B[0], width, other, wide, B);
        }
        const SourceMoments<Degree, Real> source(s, j, R);
        const auto slope = source.along(B, 1);
        v[0]             = hn::Add(v[0],
                       hn::IfThenElse(here,
                                      hn::Mul(source.q, hn::Set(d, c_atOnePlace)),
                                      source.along(B, 0)));
        Vec<Real> gradient[3], w1[3];
        if (Degree > 0)
        {
            source.besides(B, 1, w1);
        }
        for (int k = 0; k < 3; k++)
        {
            gradient[k] = hn::Mul(slope, R[k]);
            gradient[k] = Degree > 0 ? hn::Sub(w1[k], gradient[k]) : hn::Neg(gradient[k]);
            v[1 + k]    = hn::Add(v[1 + k], gradient[k]);
        }
        Vec<Real> t[3], w2[3], pull[3]; // along R, less w2, which is there twice
        const auto twice = hn::Add(B[2], B[2]);
        if (Curved)
        {
            const auto along = source.along(B, 2);
            if (Degree > 0)
            {
                source.besides(B, 2, w2);
            }
            for (int k = 0; k < 3; k++)
            {
                t[k] = hn::Mul(along, R[k]);
                t[k] = Degree > 0 ? hn::Sub(t[k], w2[k]) : t[k];
            }
            for (int c = 0; c < 6; c++)
            {
                const int a = firstAxis(c), b = secondAxis(c);
                auto& sum = v[c_flatValues + c];
                sum       = hn::MulAdd(t[a], R[b], sum);
                sum       = Degree > 0 ? hn::NegMulAdd(R[a], w2[b], sum) : sum;
                sum       = Degree > 1 ? hn::MulAdd(twice, source.theta[c], sum) : sum;
                sum       = a == b ? hn::Sub(sum, slope) : sum;
            }
            if constexpr (Degree > 1)
            {
                pullOfSource<Real>(source, B, R, ofTarget + 3, pull);
                for (int k = 0; k < 3; k++)
                {
                    v[c_curvedValues + k] = hn::Add(v[c_curvedValues + k], pull[k]);
                }
            }
        }
        if (Virial)
        {
            // the force of the pair, from its gradient and its second and third derivatives
            Vec<Real> force[3], turned[3];
            const auto alongR    = Degree > 0 ? dotProduct<Real>(ofTarget, R) : hn::Zero(d);
            const auto ofDipoles = Degree > 0 ? dotProduct<Real>(ofTarget, w2) : hn::Zero(d);
            if (Degree > 1)
            {
                timesVector<Real>(source.theta, ofTarget, turned);
            }
            for (int k = 0; k < 3; k++)
            {
                force[k] = hn::Neg(hn::Mul(charge, gradient[k]));
                if (Degree > 0)
                {
                    force[k] = hn::NegMulAdd(t[k], alongR, force[k]);
                    force[k] = hn::MulAdd(R[k], ofDipoles, force[k]);
                    force[k] = hn::MulAdd(slope, ofTarget[k], force[k]);
                }
                if (Degree > 1)
                {
                    force[k] = hn::Sub(hn::NegMulAdd(twice, turned[k], force[k]), pull[k]);
                }
            }
            virial->add(R[0], R[1], R[2], force[0], force[1], force[2]);
        }
    }
    for (int k = 0; k < c_values; k++)
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
                    for (int k = 0; k < momentCount(task.moments.degree()); k++)
                    {
                        site.moment[k] = std::exchange(s.moment[k][j], Real(0));
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
        for (int k = 0; k < 9 && s.moment[k] != nullptr; k++)
        {
            s.moment[k][site.source] = site.moment[k];
        }
    }
}

template<SitePairs Pairs, int Degree, bool Curved, bool Virial, class Real>
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
            for (int k = 0; k < momentCount(Degree); k++)
            {
                std::fill_n(s.moment[k], own.count, Real(0));
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
            siteRow<Pairs, Degree, Curved, Virial>(task, s, i, charge, values, &virial);
            s.q[i] = charge;
            for (int value = 0; value < siteValueCount(Degree, Curved); value++)
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

template<int Degree, class Real>
void p2pOfDegree(const SiteTask<Real>& task, int begin, int end)
{
    const bool isCurved = task.values.isCurved;
    if constexpr (Degree < 2)
    {
        if (task.functions != nullptr)
        {
            constexpr auto c_near = SitePairs::Near, c_farther = SitePairs::Farther;
            const auto of      = isCurved ? p2pOfCells<c_near, Degree, true, false, Real>
                                          : p2pOfCells<c_near, Degree, false, false, Real>;
            const auto farther = isCurved ? p2pOfCells<c_farther, Degree, true, false, Real>
                                          : p2pOfCells<c_farther, Degree, false, false, Real>;
            of(task, begin, end);
            if (task.farther != nullptr)
            {
                farther(task, begin, end);
            }
            return;
        }
    }
    constexpr auto c_plain = SitePairs::Plain;
    // the virial of moments is of forces, which need second derivatives
    const auto of = task.virials == nullptr
                            ? isCurved ? p2pOfCells<c_plain, Degree, true, false, Real>
                                       : p2pOfCells<c_plain, Degree, false, false, Real>
                    : isCurved ? p2pOfCells<c_plain, Degree, true, true, Real>
                               : p2pOfCells<c_plain, 0, false, true, Real>;
    of(task, begin, end);
}

template<class Real>
void p2pOfSites(const SiteTask<Real>& task, int begin, int end)
{
    constexpr decltype(&p2pOfSites<Real>) c_ofDegree[] = { p2pOfDegree<0, Real>,
                                                           p2pOfDegree<1, Real>,
                                                           p2pOfDegree<2, Real> };
    c_ofDegree[task.moments.degree()](task, begin, end);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
