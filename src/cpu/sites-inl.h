/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2M, L2P and P2P of sites: particles with charges and dipoles, potentials with two derivatives.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_SITES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_SITES_INL_H
#undef FARFIELD_CPU_SITES_INL_H
#else
#define FARFIELD_CPU_SITES_INL_H
#endif

#include <algorithm>
#include <vector>

#include "hwy/highway.h"

#include "cpu/l2p-inl.h"
#include "cpu/p2p_block-inl.h"

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
    constexpr int c_first[6] = { 0, 1, 2, 0, 0, 1 }, c_second[6] = { 0, 1, 2, 1, 2, 2 };
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    for (int c = 0; c < 6; c++)
    {
        const auto& entries = tables.curvature[c_second[c]];
        for (size_t i = 0; i < entries.size(); i++)
        {
            const auto& e = entries[i];
            const auto s  = hn::Mul(hn::Set(d, e.value[0]),
                                   hn::Load(d, g + (3 * e.source[0] + c_first[c]) * L));
            const auto t  = hn::MulAdd(
                    hn::Set(d, e.value[1]), hn::Load(d, g + (3 * e.source[1] + c_first[c]) * L), s);
            hn::Store(t, d, h + (6 * i + c) * L);
        }
    }
}

//! Adds one vector of values, one particle of each cell.
template<class Real>
HWY_INLINE void addColumn(Vec<Real> v, const int* first, const int* count, int column, Real* to)
{
    HWY_ALIGN Real out[c_slotPadding];
    hn::Store(v, Tag<Real>(), out);
    for (int lane = 0; lane < lanesOf<Real>(); lane++)
    {
        if (column < count[lane])
        {
            to[first[lane] + column] += out[lane];
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
        for (int i = 0; i < n; i++)
        {
            const auto factor = hn::Set(d, tables.scale[i] * tables.inverseUnit);
            hn::Store(hn::Mul(factor,
                              hn::Load(d, local + static_cast<size_t>(i) * slots.padded + slot)),
                      d,
                      potential + i * L);
        }
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
                addColumn(v[k], first, count, column, values.of[k]);
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

//! Sources of a cell, copied side by side: its own first.
template<class Real>
struct StagedSites
{
    Real *x, *y, *z, *q;
    Real* dipole[3]; //!< null: there are none
    int count;       //!< padded to whole vectors
};

//! A source that a target leaves out for a while.
template<class Real>
struct LeftOutSite
{
    int source;
    Real q, dipole[3];
};

template<class Real>
StagedSites<Real> stageSites(const SiteTask<Real>& task,
                             const Stretches<Real>& stretches,
                             std::vector<Real>* room)
{
    const int L      = lanesOf<Real>();
    const int total  = stretches.endOfStaged();
    const int padded = (total + L - 1) / L * L;
    if (room->size() < static_cast<size_t>(7 * padded + L))
    {
        room->resize(static_cast<size_t>(14 * padded + L));
    }
    Real* base          = alignedIn(room);
    const auto array    = [&](int k) { return base + static_cast<size_t>(k) * padded; };
    StagedSites<Real> s = { array(0), array(1), array(2), array(3), {}, padded };
    // far away, and nothing there
    for (int k = 0; k < 7; k++)
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
    return s;
}

/*! \brief The values of a target, [value].
 *  \param[in,out] virial  of the pairs, for Virial
 *
 *  With R from the source to the target, B0 = 1/R, B1 = B0/R^2, B2 = 3 B1/R^2 and B3 = 5 B2/R^2. What is at
 *  the target itself has no part. */
template<bool Dipoles, bool Curved, bool Virial, class Real>
HWY_INLINE void
siteRow(const StagedSites<Real>& s, int target, Real* values, TensorSum<Real>* virial)
{
    const Tag<Real> d;
    const int L        = lanesOf<Real>();
    const auto x       = hn::Set(d, s.x[target]);
    const auto y       = hn::Set(d, s.y[target]);
    const auto z       = hn::Set(d, s.z[target]);
    const auto rescale = hn::Set(d, 1 / c_rootScale<Real>);
    const auto charge  = hn::Set(d, s.q[target]);
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
        const auto here      = hn::Eq(r2, hn::Zero(d));
        const auto safe      = hn::IfThenElse(here, hn::Set(d, Real(1)), r2);
        const auto B0        = hn::IfThenZeroElse(here, hn::Mul(rescale, scaledInverseRoot(safe)));
        const auto w         = hn::Mul(B0, B0);
        const auto B1        = hn::Mul(B0, w);
        const auto B2        = hn::Mul(hn::Mul(hn::Set(d, Real(3)), B1), w);
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
            const auto b  = hn::MulAdd(mu[0], R[0], hn::MulAdd(mu[1], R[1], hn::Mul(mu[2], R[2])));
            const auto B3 = hn::Mul(hn::Mul(hn::Set(d, Real(5)), B2), w);
            value         = hn::MulAdd(b, B1, value);
            slope         = hn::MulAdd(b, B2, slope);
            along         = hn::MulAdd(b, B3, along);
        }
        v[0] = hn::Add(v[0], value);
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
        stretches.withParticle(partner,
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
                                   LeftOutSite<Real> site = { j, s.q[j], {} };
                                   s.q[j]                 = 0;
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
        s.q[site.source] = site.q;
        for (int axis = 0; axis < 3 && s.dipole[axis] != nullptr; axis++)
        {
            s.dipole[axis][site.source] = site.dipole[axis];
        }
    }
}

template<bool Dipoles, bool Curved, bool Virial, class Real>
void p2pOfCells(const SiteTask<Real>& task, int begin, int end)
{
    Stretches<Real> stretches(
            *task.grid, nearDisplacements(task.ws), task.isRelative, task.particles.start);
    std::vector<Real> room;
    std::vector<LeftOutSite<Real>> left;
    for (int k = begin; k < end; k++)
    {
        stretches.find(task.cells[k], 0);
        const StagedSites<Real> s = stageSites(task, stretches, &room);
        const Stretch& own        = *stretches.begin();
        const bool leavesOut      = task.close.offsets != nullptr;
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
            siteRow<Dipoles, Curved, Virial>(s, i, values, &virial);
            for (int value = 0; value < (Curved ? c_siteValues : c_flatValues); value++)
            {
                task.values.of[value][own.first + i] = values[value];
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

template<bool Virial, class Real>
void p2pWithVirial(const SiteTask<Real>& task, int begin, int end)
{
    // dipoles have second derivatives: their forces need them
    const auto of = task.dipoles.any()     ? p2pOfCells<true, true, Virial, Real>
                    : task.values.isCurved ? p2pOfCells<false, true, Virial, Real>
                                           : p2pOfCells<false, false, Virial, Real>;
    of(task, begin, end);
}

template<class Real>
void p2pOfSites(const SiteTask<Real>& task, int begin, int end)
{
    const auto of =
            task.virials != nullptr ? p2pWithVirial<true, Real> : p2pWithVirial<false, Real>;
    of(task, begin, end);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
