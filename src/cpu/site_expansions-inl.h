/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2M of charges and dipoles, and L2P to potentials with their derivatives.
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

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Dipoles of one particle of each of several cells.
template<class Real>
struct DipoleColumn
{
    Vec<Real> x, y, z;

    HWY_INLINE DipoleColumn(const SortedDipoles<Real>& dipoles, const ColumnPlaces<Real>& places) :
        x(places.gather(dipoles.x, places.valid)), y(places.gather(dipoles.y, places.valid)),
        z(places.gather(dipoles.z, places.valid))
    {
    }
};

//! Adds q u_i and mu u_i (monic functions) of two columns to the accumulators, [i][4][lane].
template<class Real>
HWY_INLINE void accumulateSites(const ExpansionTables<Real>& tables,
                                const Column<Real>& a,
                                const Column<Real>& b,
                                const DipoleColumn<Real>& ofA,
                                const DipoleColumn<Real>& ofB,
                                Real* acc)
{
    const Tag<Real> d;
    const int L     = lanesOf<Real>();
    const int inner = tables.order * tables.order;
    const auto one  = hn::Set(d, Real(1));
    const auto add  = [&](int i, Vec<Real> ua, Vec<Real> ub) HWY_ATTR
    {
        Real* to        = acc + 4 * i * L;
        const auto plus = [&](Vec<Real> va, Vec<Real> vb) HWY_ATTR
        {
            hn::Store(hn::MulAdd(va, ua, hn::MulAdd(vb, ub, hn::Load(d, to))), d, to);
            to += L;
        };
        plus(a.q, b.q);
        if (i < inner)
        {
            plus(ofA.x, ofB.x);
            plus(ofA.y, ofB.y);
            plus(ofA.z, ofB.z);
        }
    };
    forMonicFunctions(tables, tables.order, a, b, one, one, add);
}

//! M_i = sum of q u_i + mu.grad u_i: the second sum is the transpose of the gradient of L2P.
template<class Real>
void p2mOfSites(const Particles<Real>& particles,
                const SortedDipoles<Real>& dipoles,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                Real* M)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    const int n = coefficientCount(tables.order);
    std::vector<Real> room(static_cast<size_t>(4 * n + 1) * L);
    Real* acc       = alignedIn(&room);
    const Real unit = 1 / tables.inverseUnit;
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        std::fill_n(acc, 4 * n * L, Real(0));
        for (int k = 0; k < columns; k += 2)
        {
            const ColumnPlaces<Real> ofA(first, count, k), ofB(first, count, k + 1);
            accumulateSites(tables,
                            loadColumn(particles, ofA, tables.inverseUnit),
                            loadColumn(particles, ofB, tables.inverseUnit),
                            DipoleColumn<Real>(dipoles, ofA),
                            DipoleColumn<Real>(dipoles, ofB),
                            acc);
        }
        const auto at = [&](int i) { return M + static_cast<size_t>(i) * slots.padded + slot; };
        for (int i = 0; i < n; i++)
        {
            hn::Store(hn::Mul(hn::Load(d, acc + 4 * i * L), hn::Set(d, tables.scale[i])), d, at(i));
        }
        for (int axis = 0; axis < 3; axis++)
        {
            for (int j = 0; j < tables.order * tables.order; j++)
            {
                const auto& e     = tables.gradient[axis][j];
                const auto moment = hn::Load(d, acc + (4 * j + 1 + axis) * L);
                for (int k = 0; k < 2; k++)
                {
                    Real* to = at(e.source[k]);
                    hn::Store(hn::MulAdd(hn::Set(d, e.value[k] * unit), moment, hn::Load(d, to)),
                              d,
                              to);
                }
            }
        }
    }
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
        const auto& entries = tables.curvature[c_secondAxis[c]];
        for (size_t i = 0; i < entries.size(); i++)
        {
            const auto& e = entries[i];
            const auto s  = hn::Mul(hn::Set(d, e.value[0]),
                                   hn::Load(d, g + (3 * e.source[0] + c_firstAxis[c]) * L));
            const auto t  = hn::MulAdd(hn::Set(d, e.value[1]),
                                      hn::Load(d, g + (3 * e.source[1] + c_firstAxis[c]) * L),
                                      s);
            hn::Store(t, d, h + (6 * i + c) * L);
        }
    }
}

//! The expansions of a group of slots: of the potential, of its gradient, of second derivatives.
template<class Real>
struct SiteExpansions
{
    const Real *potential, *gradient, *curvature;
};

//! Values of expansions at two columns, [value].
template<bool Curved, class Real>
HWY_INLINE void siteValues(const ExpansionTables<Real>& tables,
                           const SiteExpansions<Real>& e,
                           const Column<Real>& a,
                           const Column<Real>& b,
                           Vec<Real>* atA,
                           Vec<Real>* atB)
{
    const Tag<Real> d;
    const int L     = lanesOf<Real>();
    const int inner = tables.order * tables.order;
    const int core  = static_cast<int>(tables.curvature[0].size());
    const auto one  = hn::Set(d, Real(1));
    std::fill_n(atA, c_siteValues, hn::Zero(d));
    std::fill_n(atB, c_siteValues, hn::Zero(d));
    const auto add = [&](int i, Vec<Real> ua, Vec<Real> ub) HWY_ATTR
    {
        const auto plus = [&](int value, const Real* factors) HWY_ATTR
        {
            const auto factor = hn::Load(d, factors);
            atA[value]        = hn::MulAdd(factor, ua, atA[value]);
            atB[value]        = hn::MulAdd(factor, ub, atB[value]);
        };
        plus(0, e.potential + i * L);
        for (int axis = 0; axis < 3 && i < inner; axis++)
        {
            plus(1 + axis, e.gradient + (3 * i + axis) * L);
        }
        for (int c = 0; c < 6 && Curved && i < core; c++)
        {
            plus(c_flatValues + c, e.curvature + (6 * i + c) * L);
        }
    };
    forMonicFunctions(tables, tables.order, a, b, one, one, add);
}

/*! \brief The force -(q g + H mu) on a site.
 *  \param[in] v  of c_siteValues, see SiteArrays; without second derivatives there is no dipole */
template<bool Curved, class Real>
HWY_INLINE void siteForce(const Vec<Real>* v, Vec<Real> q, const Vec<Real>* mu, Vec<Real>* force)
{
    constexpr int c_of[3][3] = { { 4, 7, 8 }, { 7, 5, 9 }, { 8, 9, 6 } };
    const auto minus         = hn::Neg(q);
    for (int a = 0; a < 3; a++)
    {
        force[a] = hn::Mul(minus, v[1 + a]);
        for (int b = 0; b < 3 && Curved; b++)
        {
            force[a] = hn::NegMulAdd(v[c_of[a][b]], mu[b], force[a]);
        }
    }
}

template<bool Curved, class Real>
void l2pOfSlots(const Particles<Real>& particles,
                const SortedDipoles<Real>& dipoles,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                const Real* local,
                Real strength,
                const SiteArrays<Real>& values,
                double* virial)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    const int n = coefficientCount(tables.order);
    std::vector<Real> room(static_cast<size_t>(10 * n + 1) * L);
    Real* const potential  = alignedIn(&room);
    Real* const gradient   = potential + n * L;
    Real* const curvature  = gradient + 3 * n * L;
    const auto unit        = hn::Set(d, 1 / tables.inverseUnit);
    const auto w           = hn::Set(d, strength);
    const auto w2          = hn::Set(d, 2 * strength);
    constexpr int c_values = Curved ? c_siteValues : c_flatValues;
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        if (columns == 0)
        {
            continue;
        }
        potentialExpansions(tables, local + slot, slots.padded, potential);
        gradientExpansions(tables, local + slot, slots.padded, gradient);
        if (Curved)
        {
            curvatureExpansions(tables, gradient, curvature);
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
                Vec<Real> mu[3] = { hn::Zero(d), hn::Zero(d), hn::Zero(d) }, force[3];
                if (dipoles.any())
                {
                    const DipoleColumn<Real> of(dipoles, ColumnPlaces<Real>(first, count, column));
                    mu[0] = of.x;
                    mu[1] = of.y;
                    mu[2] = of.z;
                }
                siteForce<Curved, Real>(v, c.q, mu, force);
                sum.add(r[0], r[1], r[2], force[0], force[1], force[2]);
            }
        };
        for (int k = 0; k < columns; k += 2)
        {
            const Column<Real> a = loadColumn(particles, first, count, k, tables.inverseUnit);
            const Column<Real> b = loadColumn(particles, first, count, k + 1, tables.inverseUnit);
            Vec<Real> atA[c_siteValues], atB[c_siteValues];
            siteValues<Curved>(tables, { potential, gradient, curvature }, a, b, atA, atB);
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
                const SortedDipoles<Real>& dipoles,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                const Real* local,
                Real strength,
                const SiteArrays<Real>& values,
                double* virial)
{
    const auto of = values.isCurved ? l2pOfSlots<true, Real> : l2pOfSlots<false, Real>;
    of(particles, dipoles, slots, tables, begin, end, local, strength, values, virial);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
