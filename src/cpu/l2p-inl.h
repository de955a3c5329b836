/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief L2P: local expansions of as many cells as there are lanes, to forces on their particles
 *         and potentials at them.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_L2P_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_L2P_INL_H
#undef FARFIELD_CPU_L2P_INL_H
#else
#define FARFIELD_CPU_L2P_INL_H
#endif

#include "hwy/highway.h"

#include "cpu/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Gradient of the potential at two columns.
template<class Real>
struct Gradients
{
    Vec<Real> xa, ya, za, xb, yb, zb;
};

template<class Real>
HWY_INLINE Gradients<Real> gradients(const ExpansionTables<Real>& tables,
                                     const Real* g,
                                     const Column<Real>& a,
                                     const Column<Real>& b)
{
    const Tag<Real> d;
    const int L         = lanesOf<Real>();
    const auto zero     = hn::Zero(d);
    const auto one      = hn::Set(d, Real(1));
    Gradients<Real> sum = { zero, zero, zero, zero, zero, zero };
    const auto add      = [&](int i, Vec<Real> ua, Vec<Real> ub) HWY_ATTR
    {
        const auto gx = hn::Load(d, g + (3 * i) * L);
        const auto gy = hn::Load(d, g + (3 * i + 1) * L);
        const auto gz = hn::Load(d, g + (3 * i + 2) * L);
        sum.xa        = hn::MulAdd(gx, ua, sum.xa);
        sum.ya        = hn::MulAdd(gy, ua, sum.ya);
        sum.za        = hn::MulAdd(gz, ua, sum.za);
        sum.xb        = hn::MulAdd(gx, ub, sum.xb);
        sum.yb        = hn::MulAdd(gy, ub, sum.yb);
        sum.zb        = hn::MulAdd(gz, ub, sum.zb);
    };
    forMonicFunctions(tables, tables.order - 1, a, b, one, one, add);
    return sum;
}

//! Gradients of the local expansions of as many slots as there are lanes: g[3 i + axis][lane].
template<class Real>
HWY_INLINE void gradientExpansions(const ExpansionTables<Real>& tables,
                                   const Real* local,
                                   size_t padded,
                                   Real* HWY_RESTRICT g)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    for (int axis = 0; axis < 3; axis++)
    {
        for (int i = 0; i < tables.order * tables.order; i++)
        {
            const auto& e = tables.gradient[axis][i];
            const auto s =
                    hn::Mul(hn::Set(d, e.value[0]), hn::Load(d, local + e.source[0] * padded));
            const auto t = hn::MulAdd(
                    hn::Set(d, e.value[1]), hn::Load(d, local + e.source[1] * padded), s);
            hn::Store(t, d, g + (3 * i + axis) * L);
        }
    }
}

/*! \brief Local expansions of the potential of as many slots as there are lanes, in monic functions:
 *         scaled[i][lane]. */
template<class Real>
HWY_INLINE void potentialExpansions(const ExpansionTables<Real>& tables,
                                    const Real* local,
                                    size_t padded,
                                    Real* HWY_RESTRICT scaled)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    for (int i = 0; i < coefficientCount(tables.order); i++)
    {
        const auto factor = hn::Set(d, tables.scale[i] * tables.inverseUnit);
        hn::Store(hn::Mul(factor, hn::Load(d, local + i * padded)), d, scaled + i * L);
    }
}

//! Calls visit(particle, value) for a vector of values, one particle of each cell.
template<class Real, class Visit>
HWY_INLINE void
forColumn(Vec<Real> v, const int* first, const int* count, int column, const Visit& visit)
{
    HWY_ALIGN Real out[c_slotPadding];
    hn::Store(v, Tag<Real>(), out);
    for (int lane = 0; lane < lanesOf<Real>(); lane++)
    {
        if (column < count[lane])
        {
            visit(first[lane] + column, out[lane]);
        }
    }
}

//! Writes one vector of components of forces or of potentials, one particle of each cell.
template<class Real>
HWY_INLINE void storeColumn(Vec<Real> f, const int* first, const int* count, int column, Real* to)
{
    forColumn<Real>(f, first, count, column, [to](int i, Real value) { to[i] = value; });
}

template<class Real>
void l2p(const Particles<Real>& particles,
         const LeafSlots& slots,
         const ExpansionTables<Real>& tables,
         int begin,
         int end,
         const Real* local,
         Real pull,
         Real* fx,
         Real* fy,
         Real* fz,
         double* virial)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    HWY_ALIGN Real g[3 * c_maxCoefficients * c_slotPadding];
    const auto unit = hn::Set(d, 1 / tables.inverseUnit);
    const auto w    = hn::Set(d, pull);
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        if (columns == 0)
        {
            continue;
        }
        gradientExpansions(tables, local + slot, slots.padded, g);
        TensorSum<Real> sum;
        const auto finish =
                [&](const Column<Real>& c, Vec<Real> gx, Vec<Real> gy, Vec<Real> gz, int column)
                        HWY_ATTR
        {
            const auto x = hn::Mul(c.x, unit);
            const auto y = hn::Mul(c.y, unit);
            const auto z = hn::Mul(c.z, unit);
            gx           = hn::Mul(c.q, hn::MulSub(w, x, gx));
            gy           = hn::Mul(c.q, hn::MulSub(w, y, gy));
            gz           = hn::Mul(c.q, hn::MulSub(w, z, gz));
            storeColumn(gx, first, count, column, fx);
            storeColumn(gy, first, count, column, fy);
            storeColumn(gz, first, count, column, fz);
            if (virial != nullptr)
            {
                sum.add(x, y, z, gx, gy, gz);
            }
        };
        for (int k = 0; k < columns; k += 2)
        {
            const Column<Real> a = loadColumn(particles, first, count, k, tables.inverseUnit);
            const Column<Real> b = loadColumn(particles, first, count, k + 1, tables.inverseUnit);
            const Gradients<Real> G = gradients(tables, g, a, b);
            finish(a, G.xa, G.ya, G.za, k);
            finish(b, G.xb, G.yb, G.zb, k + 1);
        }
        if (virial != nullptr)
        {
            sum.addVirial(virial);
        }
    }
}

template<class Real>
void potentials(const Particles<Real>& particles,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                const Real* local,
                Real strength,
                Real* potential)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    HWY_ALIGN Real scaled[c_maxCoefficients * c_slotPadding];
    const auto unit = hn::Set(d, 1 / tables.inverseUnit);
    const auto w    = hn::Set(d, strength);
    const auto one  = hn::Set(d, Real(1));
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        if (columns > 0)
        {
            potentialExpansions(tables, local + slot, slots.padded, scaled);
        }
        const auto ofBackground = [&](const Column<Real>& c) HWY_ATTR
        {
            const auto r2 = hn::MulAdd(c.x, c.x, hn::MulAdd(c.y, c.y, hn::Mul(c.z, c.z)));
            return hn::Mul(hn::Mul(w, hn::Mul(unit, unit)), r2);
        };
        for (int k = 0; k < columns; k += 2)
        {
            const Column<Real> a = loadColumn(particles, first, count, k, tables.inverseUnit);
            const Column<Real> b = loadColumn(particles, first, count, k + 1, tables.inverseUnit);
            auto sumA            = ofBackground(a);
            auto sumB            = ofBackground(b);
            const auto add       = [&](int i, Vec<Real> ua, Vec<Real> ub) HWY_ATTR
            {
                const auto factor = hn::Load(d, scaled + i * L);
                sumA              = hn::MulAdd(factor, ua, sumA);
                sumB              = hn::MulAdd(factor, ub, sumB);
            };
            forMonicFunctions(tables, tables.order, a, b, one, one, add);
            storeColumn(sumA, first, count, k, potential);
            storeColumn(sumB, first, count, k + 1, potential);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
