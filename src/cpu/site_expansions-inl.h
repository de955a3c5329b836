/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2M of charges and moments, and L2P to potentials with their derivatives.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_SITE_EXPANSIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_SITE_EXPANSIONS_INL_H
#undef FARFIELD_CPU_SITE_EXPANSIONS_INL_H
#else
#define FARFIELD_CPU_SITE_EXPANSIONS_INL_H
#endif

#include <algorithm>
#include <vector>

#include "hwy/highway.h"

#include "cpu/l2p-inl.h"
#include "cpu/site_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Moments of one particle of each of several cells.
template<class Real>
struct MomentColumn
{
    Vec<Real> of[9]; //!< dipole, then quadrupole

    HWY_INLINE MomentColumn(const SortedMoments<Real>& moments,
                            int degree,
                            const ColumnPlaces<Real>& places)
    {
        for (int k = 0; k < momentCount(degree); k++)
        {
            of[k] = places.gather(moments.of[k], places.valid);
        }
    }
};

/*! \brief Adds q u_i, mu u_i and theta u_i (monic functions) of two columns to the accumulators,
 *         [i][1 + momentCount()][lane]: the part of theta that is not on its diagonal twice. */
template<int Degree, class Real>
HWY_INLINE void accumulateSites(const ExpansionTables<Real>& tables,
                                const Column<Real>& a,
                                const Column<Real>& b,
                                const MomentColumn<Real>& ofA,
                                const MomentColumn<Real>& ofB,
                                Real* acc)
{
    constexpr int c_moments = momentCount(Degree);
    const Tag<Real> d;
    const int L    = lanesOf<Real>();
    const int p    = tables.order;
    const auto one = hn::Set(d, Real(1));
    const auto add = [&](int i, Vec<Real> ua, Vec<Real> ub) HWY_ATTR
    {
        Real* to        = acc + (1 + c_moments) * i * L;
        const auto plus = [&](Vec<Real> va, Vec<Real> vb) HWY_ATTR
        {
            hn::Store(hn::MulAdd(va, ua, hn::MulAdd(vb, ub, hn::Load(d, to))), d, to);
            to += L;
        };
        plus(a.q, b.q);
        for (int k = 0; k < 3 && i < derivativeCount(p, 1); k++)
        {
            plus(ofA.of[k], ofB.of[k]);
        }
        for (int k = 3; k < c_moments && i < derivativeCount(p, 2); k++)
        {
            plus(ofA.of[k], ofB.of[k]);
        }
    };
    forMonicFunctions(tables, tables.order, a, b, one, one, add);
}

//! M_i = sum of q u_i + mu.grad u_i + theta:grad grad u_i: those of moments are the transpose of L2P.
template<int Degree, class Real>
void p2mOfDegree(const Particles<Real>& particles,
                 const SortedMoments<Real>& moments,
                 const LeafSlots& slots,
                 const ExpansionTables<Real>& tables,
                 int begin,
                 int end,
                 Real* M)
{
    constexpr int c_rows = 1 + momentCount(Degree);
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    const int n = coefficientCount(tables.order);
    std::vector<Real> room(static_cast<size_t>(c_rows * n + 1) * L);
    Real* acc        = alignedIn(&room);
    const Real unit  = 1 / tables.inverseUnit;
    const auto addTo = [&](Real* to, Real factor, const Real* from) HWY_ATTR
    { hn::Store(hn::MulAdd(hn::Set(d, factor), hn::Load(d, from), hn::Load(d, to)), d, to); };
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        std::fill_n(acc, c_rows * n * L, Real(0));
        for (int k = 0; k < columns; k += 2)
        {
            const ColumnPlaces<Real> ofA(first, count, k), ofB(first, count, k + 1);
            accumulateSites<Degree>(tables,
                                    loadColumn(particles, ofA, tables.inverseUnit),
                                    loadColumn(particles, ofB, tables.inverseUnit),
                                    MomentColumn<Real>(moments, Degree, ofA),
                                    MomentColumn<Real>(moments, Degree, ofB),
                                    acc);
        }
        // quadrupoles become dipoles, and these charges
        const auto row = [&](int i, int k) { return acc + (c_rows * i + k) * L; };
        for (int c = 0; c < 6 && Degree > 1; c++)
        {
            const auto& entries = tables.curvature[secondAxis(c)];
            const Real times    = c < 3 ? Real(1) : Real(2);
            for (size_t i = 0; i < entries.size(); i++)
            {
                for (int k = 0; k < 2; k++)
                {
                    addTo(row(entries[i].source[k], 1 + firstAxis(c)),
                          times * entries[i].value[k],
                          row(static_cast<int>(i), 4 + c));
                }
            }
        }
        const auto at = [&](int i) { return M + static_cast<size_t>(i) * slots.padded + slot; };
        for (int i = 0; i < n; i++)
        {
            hn::Store(hn::Mul(hn::Load(d, row(i, 0)), hn::Set(d, tables.scale[i])), d, at(i));
        }
        for (int axis = 0; axis < 3; axis++)
        {
            for (int j = 0; j < tables.order * tables.order; j++)
            {
                const auto& e = tables.gradient[axis][j];
                for (int k = 0; k < 2; k++)
                {
                    addTo(at(e.source[k]), e.value[k] * unit, row(j, 1 + axis));
                }
            }
        }
    }
}

template<class Real>
void p2mOfSites(const Particles<Real>& particles,
                const SortedMoments<Real>& moments,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                Real* M)
{
    const auto of = moments.degree() < 2 ? p2mOfDegree<1, Real> : p2mOfDegree<2, Real>;
    of(particles, moments, slots, tables, begin, end, M);
}

/*! \brief Gradients of the gradients of as many slots as there are lanes: h[6 i + axes][lane], in the order
 *         of SiteArrays.
 *  \param[in] g  of gradientExpansions() */
template<class Real>
HWY_INLINE void curvatureExpansions(const ExpansionTables<Real>& tables,
                                    const Real* g,
                                    Real* HWY_RESTRICT h)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    for (int c = 0; c < 6; c++)
    {
        const auto& entries = tables.curvature[secondAxis(c)];
        for (size_t i = 0; i < entries.size(); i++)
        {
            const auto& e = entries[i];
            const auto s  = hn::Mul(hn::Set(d, e.value[0]),
                                   hn::Load(d, g + (3 * e.source[0] + firstAxis(c)) * L));
            const auto t  = hn::MulAdd(hn::Set(d, e.value[1]),
                                      hn::Load(d, g + (3 * e.source[1] + firstAxis(c)) * L),
                                      s);
            hn::Store(t, d, h + (6 * i + c) * L);
        }
    }
}

//! Rows of expansions up to these.
constexpr int expansionRows(int degree)
{
    return c_curvedValues + (degree > 1 ? c_thirds : 0);
}

//! Gradients of what curvatureExpansions() gives: t[7 i + third][lane]. \param[in] h  of it
template<class Real>
HWY_INLINE void thirdExpansions(const ExpansionTables<Real>& tables,
                                const Real* h,
                                Real* HWY_RESTRICT t)
{
    const Tag<Real> d;
    const int L     = lanesOf<Real>();
    const int inner = derivativeCount(tables.order, 3);
    for (int c = 0; c < c_thirds; c++)
    {
        const auto& entries = tables.curvature[axisOfThird(c)];
        for (int i = 0; i < inner; i++)
        {
            const auto& e   = entries[i];
            const auto part = [&](int k) HWY_ATTR
            {
                return hn::Mul(hn::Set(d, e.value[k]),
                               hn::Load(d, h + (6 * e.source[k] + secondOfThird(c)) * L));
            };
            hn::Store(hn::Add(part(0), part(1)), d, t + (c_thirds * i + c) * L);
        }
    }
}

/*! \brief Third derivatives times theta.
 *  \param[in] t      xxx xxy xxz xyy yyy yyz xyz; the trace of any two axes is 0
 *  \param[in] theta  xx yy zz xy xz yz, its trace is 0 */
template<class Real>
HWY_INLINE void pullOf(const Vec<Real>* t, const Vec<Real>* theta, Vec<Real>* pull)
{
    const auto xzz = hn::Neg(hn::Add(t[0], t[3])), yzz = hn::Neg(hn::Add(t[1], t[4])),
               zzz           = hn::Neg(hn::Add(t[2], t[5]));
    const Vec<Real> of[3][6] = { { t[0], t[3], xzz, t[1], t[2], t[6] },
                                 { t[1], t[4], yzz, t[3], t[6], t[5] },
                                 { t[2], t[5], zzz, t[6], xzz, yzz } };
    for (int a = 0; a < 3; a++)
    {
        const auto diagonal = dotProduct<Real>(of[a], theta);
        const auto mixed    = dotProduct<Real>(of[a] + 3, theta + 3);
        pull[a]             = hn::Add(diagonal, hn::Add(mixed, mixed));
    }
}

//! The expansions of a group of slots: of the potential, of its gradient, of second and third derivatives.
template<class Real>
struct SiteExpansions
{
    Real *potential, *gradient, *curvature, *third;
};

//! Values of expansions at two columns, [value]: behind those of SiteArrays third derivatives.
template<int Degree, bool Curved, class Real>
HWY_INLINE void siteValues(const ExpansionTables<Real>& tables,
                           const SiteExpansions<Real>& e,
                           const Column<Real>& a,
                           const Column<Real>& b,
                           Vec<Real>* atA,
                           Vec<Real>* atB)
{
    const Tag<Real> d;
    const int L    = lanesOf<Real>();
    const int p    = tables.order;
    const auto one = hn::Set(d, Real(1));
    std::fill_n(atA, expansionRows(Degree), hn::Zero(d));
    std::fill_n(atB, expansionRows(Degree), hn::Zero(d));
    const auto add = [&](int i, Vec<Real> ua, Vec<Real> ub) HWY_ATTR
    {
        const auto plus = [&](int value, const Real* factors) HWY_ATTR
        {
            const auto factor = hn::Load(d, factors);
            atA[value]        = hn::MulAdd(factor, ua, atA[value]);
            atB[value]        = hn::MulAdd(factor, ub, atB[value]);
        };
        plus(0, e.potential + i * L);
        for (int axis = 0; axis < 3 && i < derivativeCount(p, 1); axis++)
        {
            plus(1 + axis, e.gradient + (3 * i + axis) * L);
        }
        for (int c = 0; c < 6 && Curved && i < derivativeCount(p, 2); c++)
        {
            plus(c_flatValues + c, e.curvature + (6 * i + c) * L);
        }
        for (int c = 0; c < c_thirds && Curved && Degree > 1 && i < derivativeCount(p, 3); c++)
        {
            plus(c_curvedValues + c, e.third + (c_thirds * i + c) * L);
        }
    };
    forMonicFunctions(tables, tables.order, a, b, one, one, add);
}

/*! \brief The force -(q g + H mu + pull) on a site.
 *  \param[in] v  of c_siteValues, see SiteArrays; without second derivatives there are no moments */
template<int Degree, bool Curved, class Real>
HWY_INLINE void siteForce(const Vec<Real>* v, Vec<Real> q, const Vec<Real>* mu, Vec<Real>* force)
{
    Vec<Real> ofDipole[3];
    if (Degree > 0 && Curved)
    {
        timesVector<Real>(v + c_flatValues, mu, ofDipole);
    }
    for (int a = 0; a < 3; a++)
    {
        force[a] = hn::Neg(hn::Mul(q, v[1 + a]));
        force[a] = Degree > 0 && Curved ? hn::Sub(force[a], ofDipole[a]) : force[a];
        force[a] = Degree > 1 && Curved ? hn::Sub(force[a], v[c_curvedValues + a]) : force[a];
    }
}

template<int Degree, bool Curved, class Real>
void l2pOfSlots(const Particles<Real>& particles,
                const SortedMoments<Real>& moments,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                const Real* local,
                Real strength,
                const SiteArrays<Real>& values,
                double* virial)
{
    constexpr int c_values = siteValueCount(Degree, Curved);
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    const int n = coefficientCount(tables.order);
    std::vector<Real> room(static_cast<size_t>(expansionRows(Degree) * n + 1) * L);
    Real* const base             = alignedIn(&room);
    const SiteExpansions<Real> e = { base, base + n * L, base + 4 * n * L, base + 10 * n * L };
    const auto unit              = hn::Set(d, 1 / tables.inverseUnit);
    const auto w                 = hn::Set(d, strength);
    const auto w2                = hn::Set(d, 2 * strength);
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        if (columns == 0)
        {
            continue;
        }
        potentialExpansions(tables, local + slot, slots.padded, e.potential);
        gradientExpansions(tables, local + slot, slots.padded, e.gradient);
        if (Curved)
        {
            curvatureExpansions(tables, e.gradient, e.curvature);
        }
        if (Curved && Degree > 1)
        {
            thirdExpansions(tables, e.curvature, e.third);
        }
        TensorSum<Real> sum;
        const auto finish = [&](const Column<Real>& c, Vec<Real>* v, int column) HWY_ATTR
        {
            const Vec<Real> r[3] = { hn::Mul(c.x, unit), hn::Mul(c.y, unit), hn::Mul(c.z, unit) };
            for (int axis = 0; axis < 3; axis++)
            {
                v[0]        = hn::MulAdd(hn::Mul(w, r[axis]), r[axis], v[0]);
                v[1 + axis] = hn::MulAdd(w2, r[axis], v[1 + axis]);
                if (Curved)
                {
                    v[c_flatValues + axis] = hn::Add(w2, v[c_flatValues + axis]);
                }
            }
            const MomentColumn<Real> of(moments,
                                        c_values > c_curvedValues || virial != nullptr ? Degree : 0,
                                        ColumnPlaces<Real>(first, count, column));
            if (c_values > c_curvedValues)
            {
                Vec<Real> pull[3];
                pullOf<Real>(v + c_curvedValues, of.of + 3, pull);
                std::copy_n(pull, 3, v + c_curvedValues);
            }
            for (int k = 0; k < c_values; k++)
            {
                forColumn<Real>(v[k],
                                first,
                                count,
                                column,
                                [&](int i, Real value) { values.of[k][i] += value; });
            }
            if (virial != nullptr)
            {
                Vec<Real> force[3];
                siteForce<Degree, Curved, Real>(v, c.q, of.of, force);
                sum.add(r[0], r[1], r[2], force[0], force[1], force[2]);
            }
        };
        for (int k = 0; k < columns; k += 2)
        {
            const Column<Real> a = loadColumn(particles, first, count, k, tables.inverseUnit);
            const Column<Real> b = loadColumn(particles, first, count, k + 1, tables.inverseUnit);
            Vec<Real> atA[expansionRows(2)], atB[expansionRows(2)];
            siteValues<Degree, Curved>(tables, e, a, b, atA, atB);
            finish(a, atA, k);
            finish(b, atB, k + 1);
        }
        if (virial != nullptr)
        {
            sum.addVirial(virial);
        }
    }
}

template<class Real>
void l2pOfSites(const Particles<Real>& particles,
                const SortedMoments<Real>& moments,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                const Real* local,
                Real strength,
                const SiteArrays<Real>& values,
                double* virial)
{
    constexpr decltype(&l2pOfSites<Real>) c_of[3][2] = {
        { l2pOfSlots<0, false, Real>, l2pOfSlots<0, true, Real> },
        { l2pOfSlots<1, false, Real>, l2pOfSlots<1, true, Real> },
        { l2pOfSlots<2, false, Real>, l2pOfSlots<2, true, Real> }
    };
    c_of[moments.degree()][values.isCurved ? 1 : 0](
            particles, moments, slots, tables, begin, end, local, strength, values, virial);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
