/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Structure factors and potentials of waves as products of matrices.
 *
 *  Compiled once per instruction set, see batch_kernels.cpp.
 */
#if defined(FARFIELD_BATCH_WAVES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_BATCH_WAVES_INL_H
#undef FARFIELD_BATCH_WAVES_INL_H
#else
#define FARFIELD_BATCH_WAVES_INL_H
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

#include "batch/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

template<class Real>
void phasesAlong(const Real* f, int n, int range, Real* phases)
{
    const Tag<Real> d;
    const auto turn = hn::Set(d, static_cast<Real>(6.283185307179586));
    for (int i = 0; i < n; i += lanesOf<Real>())
    {
        const auto angle = hn::Mul(turn, hn::Load(d, f + i));
        const auto c1 = hn::Cos(d, angle), s1 = hn::Sin(d, angle);
        auto c = hn::Set(d, Real(1)), s = hn::Zero(d);
        for (int m = 0; m <= range; m++)
        {
            Real* at = phases + static_cast<size_t>(m) * 2 * n + i;
            hn::Store(c, d, at);
            hn::Store(s, d, at + n);
            const auto next = hn::NegMulAdd(s, s1, hn::Mul(c, c1));
            s               = hn::MulAdd(s, c1, hn::Mul(c, s1));
            c               = next;
        }
    }
}

#if HWY_TARGET == HWY_SCALAR
template<class V, class Real>
HWY_INLINE void sumsOfLanes(V a, V b, V c, V e, Real* sums)
{
    sums[0] = hn::GetLane(a);
    sums[1] = hn::GetLane(b);
    sums[2] = hn::GetLane(c);
    sums[3] = hn::GetLane(e);
}
#else
//! Sums of even and odd lanes of a and b next to each other.
template<class V>
HWY_INLINE V pairOfSums(V a, V b)
{
    const hn::DFromV<V> d;
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}
//! Sums over blocks of 16 bytes: of two vectors each, then of four.
HWY_INLINE void sumsOfLanes(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> e, float* sums)
{
    const Tag<float> d;
    const hn::RepartitionToWide<Tag<float>> wide;
    const auto ab    = hn::BitCast(wide, pairOfSums(a, b));
    const auto ce    = hn::BitCast(wide, pairOfSums(c, e));
    const auto lower = hn::BitCast(d, hn::InterleaveLower(wide, ab, ce));
    const auto upper = hn::BitCast(d, hn::InterleaveUpper(wide, ab, ce));
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(hn::Add(lower, upper), d, lanes);
    for (int k = 0; k < 4; k++)
    {
        sums[k] = lanes[k];
    }
    for (size_t block = 4; block < hn::Lanes(d); block += 4)
    {
        for (int k = 0; k < 4; k++)
        {
            sums[k] += lanes[block + k];
        }
    }
}
HWY_INLINE void
sumsOfLanes(Vec<double> a, Vec<double> b, Vec<double> c, Vec<double> e, double* sums)
{
    const Tag<double> d;
    HWY_ALIGN double lanes[2][HWY_MAX_BYTES / sizeof(double)];
    hn::Store(pairOfSums(a, b), d, lanes[0]);
    hn::Store(pairOfSums(c, e), d, lanes[1]);
    for (int k = 0; k < 4; k++)
    {
        sums[k] = lanes[k / 2][k % 2];
    }
    for (size_t block = 2; block < hn::Lanes(d); block += 2)
    {
        for (int k = 0; k < 4; k++)
        {
            sums[k] += lanes[k / 2][block + k % 2];
        }
    }
}
#endif

//! Sums of Waves successive waves of a column, of four products along two axes.
template<int Waves, class Real>
HWY_INLINE void sumWaves(const Real* along, const Real* products, int n, Real* sums)
{
    const Tag<Real> d;
    Vec<Real> cosines[Waves][4], sines[Waves][4];
    for (int w = 0; w < Waves; w++)
    {
        for (int k = 0; k < 4; k++)
        {
            cosines[w][k] = sines[w][k] = hn::Zero(d);
        }
    }
    for (int i = 0; i < n; i += lanesOf<Real>())
    {
        Vec<Real> p[4];
        for (int k = 0; k < 4; k++)
        {
            p[k] = hn::Load(d, products + k * n + i);
        }
        for (int w = 0; w < Waves; w++)
        {
            const auto c = hn::Load(d, along + 2 * w * n + i);
            const auto s = hn::Load(d, along + (2 * w + 1) * n + i);
            for (int k = 0; k < 4; k++)
            {
                cosines[w][k] = hn::MulAdd(p[k], c, cosines[w][k]);
                sines[w][k]   = hn::MulAdd(p[k], s, sines[w][k]);
            }
        }
    }
    for (int w = 0; w < Waves; w++)
    {
        Real* const to = sums + w * WaveProducts;
        sumsOfLanes(cosines[w][0], cosines[w][1], cosines[w][2], cosines[w][3], to);
        sumsOfLanes(sines[w][0], sines[w][1], sines[w][2], sines[w][3], to + 4);
    }
}

template<class Real>
void structureFactors(const PhaseTable<Real>& phases,
                      const WaveColumn* columns,
                      int columnCount,
                      const Real* q,
                      Real* products,
                      Real* sums)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    const int n = phases.n;
    // as many sums as registers hold
    constexpr int c_waves = HWY_TARGET <= HWY_AVX3 ? 2 : 1;
    Real* const cosine    = products + 4 * n; // along the first axis, times charges
    Real* const sine      = products + 5 * n;
    for (int column = 0; column < columnCount; column++)
    {
        const WaveColumn& w = columns[column];
        if (column == 0 || w.h != columns[column - 1].h)
        {
            const Real* along = phases.axis[0] + static_cast<size_t>(w.h) * 2 * n;
            for (int i = 0; i < n; i += L)
            {
                const auto charge = hn::Load(d, q + i);
                hn::Store(hn::Mul(charge, hn::Load(d, along + i)), d, cosine + i);
                hn::Store(hn::Mul(charge, hn::Load(d, along + n + i)), d, sine + i);
            }
        }
        const Real* along = phases.axis[1] + static_cast<size_t>(w.k) * 2 * n;
        for (int i = 0; i < n; i += L)
        {
            const auto cx = hn::Load(d, cosine + i), sx = hn::Load(d, sine + i);
            const auto cy = hn::Load(d, along + i), sy = hn::Load(d, along + n + i);
            hn::Store(hn::Mul(cx, cy), d, products + i);
            hn::Store(hn::Mul(sx, cy), d, products + n + i);
            hn::Store(hn::Mul(cx, sy), d, products + 2 * n + i);
            hn::Store(hn::Mul(sx, sy), d, products + 3 * n + i);
        }
        Real* const to = sums + static_cast<size_t>(w.first) * WaveProducts;
        int l          = 0;
        for (; l + c_waves <= w.last + 1; l += c_waves)
        {
            sumWaves<c_waves>(phases.axis[2] + static_cast<size_t>(l) * 2 * n,
                              products,
                              n,
                              to + l * WaveProducts);
        }
        for (; l <= w.last; l++)
        {
            sumWaves<1>(phases.axis[2] + static_cast<size_t>(l) * 2 * n,
                        products,
                        n,
                        to + l * WaveProducts);
        }
    }
}

template<bool Curvature, class Real>
void waveFields(const PhaseTable<Real>& phases,
                const WaveColumn* columns,
                int columnCount,
                const Real* weights,
                const WaveFields<Real>& fields)
{
    const Tag<Real> d;
    const int n = phases.n;
    for (int i = 0; i < n; i += lanesOf<Real>())
    {
        auto potential = hn::Zero(d), gx = hn::Zero(d), gy = hn::Zero(d), gz = hn::Zero(d);
        auto xx = hn::Zero(d), yy = hn::Zero(d), zz = hn::Zero(d);
        auto xy = hn::Zero(d), xz = hn::Zero(d), yz = hn::Zero(d);
        for (int column = 0; column < columnCount; column++)
        {
            const WaveColumn& w   = columns[column];
            const Real* const atX = phases.axis[0] + static_cast<size_t>(w.h) * 2 * n + i;
            const Real* const atY = phases.axis[1] + static_cast<size_t>(w.k) * 2 * n + i;
            // sums along the third axis, and their derivatives
            Vec<Real> t[4], u[4], z[4];
            for (int k = 0; k < 4; k++)
            {
                t[k] = u[k] = z[k] = hn::Zero(d);
            }
            const Real* weight = weights + static_cast<size_t>(w.first) * WaveProducts;
            for (int l = 0; l <= w.last; l++, weight += WaveProducts)
            {
                const Real* const atZ = phases.axis[2] + static_cast<size_t>(l) * 2 * n + i;
                const auto c = hn::Load(d, atZ), s = hn::Load(d, atZ + n);
                const auto number = hn::Set(d, static_cast<Real>(l));
                const auto dc = hn::Mul(number, hn::Neg(s)), ds = hn::Mul(number, c);
                for (int k = 0; k < 4; k++)
                {
                    const auto ofCosine = hn::Set(d, weight[k]);
                    const auto ofSine   = hn::Set(d, weight[4 + k]);
                    t[k]                = hn::MulAdd(ofSine, s, hn::MulAdd(ofCosine, c, t[k]));
                    u[k]                = hn::MulAdd(ofSine, ds, hn::MulAdd(ofCosine, dc, u[k]));
                    if (Curvature)
                    {
                        z[k] = hn::MulAdd(ofSine,
                                          hn::Mul(number, dc),
                                          hn::NegMulAdd(ofCosine, hn::Mul(number, ds), z[k]));
                    }
                }
            }
            const auto cx = hn::Load(d, atX), sx = hn::Load(d, atX + n);
            const auto cy = hn::Load(d, atY), sy = hn::Load(d, atY + n);
            // cos and sin along the first axis have these factors
            const auto a     = hn::MulAdd(sy, t[2], hn::Mul(cy, t[0]));
            const auto b     = hn::MulAdd(sy, t[3], hn::Mul(cy, t[1]));
            const auto da    = hn::NegMulAdd(sy, t[0], hn::Mul(cy, t[2]));
            const auto db    = hn::NegMulAdd(sy, t[1], hn::Mul(cy, t[3]));
            const auto za    = hn::MulAdd(sy, u[2], hn::Mul(cy, u[0]));
            const auto zb    = hn::MulAdd(sy, u[3], hn::Mul(cy, u[1]));
            const auto h     = hn::Set(d, static_cast<Real>(w.h));
            const auto k     = hn::Set(d, static_cast<Real>(w.k));
            const auto value = hn::MulAdd(sx, b, hn::Mul(cx, a));
            potential        = hn::Add(potential, value);
            gx               = hn::MulAdd(h, hn::NegMulAdd(sx, a, hn::Mul(cx, b)), gx);
            gy               = hn::MulAdd(k, hn::MulAdd(sx, db, hn::Mul(cx, da)), gy);
            gz               = hn::Add(gz, hn::MulAdd(sx, zb, hn::Mul(cx, za)));
            if (Curvature)
            {
                const auto zza = hn::MulAdd(sy, z[2], hn::Mul(cy, z[0]));
                const auto zzb = hn::MulAdd(sy, z[3], hn::Mul(cy, z[1]));
                const auto dza = hn::NegMulAdd(sy, u[0], hn::Mul(cy, u[2]));
                const auto dzb = hn::NegMulAdd(sy, u[1], hn::Mul(cy, u[3]));
                xx             = hn::NegMulAdd(hn::Mul(h, h), value, xx);
                yy             = hn::NegMulAdd(hn::Mul(k, k), value, yy);
                zz             = hn::Add(zz, hn::MulAdd(sx, zzb, hn::Mul(cx, zza)));
                xy = hn::MulAdd(hn::Mul(h, k), hn::NegMulAdd(sx, da, hn::Mul(cx, db)), xy);
                xz = hn::MulAdd(h, hn::NegMulAdd(sx, za, hn::Mul(cx, zb)), xz);
                yz = hn::MulAdd(k, hn::MulAdd(sx, dzb, hn::Mul(cx, dza)), yz);
            }
        }
        hn::Store(potential, d, fields.potential + i);
        hn::Store(gx, d, fields.gx + i);
        hn::Store(gy, d, fields.gy + i);
        hn::Store(gz, d, fields.gz + i);
        if (Curvature)
        {
            hn::Store(xx, d, fields.xx + i);
            hn::Store(yy, d, fields.yy + i);
            hn::Store(zz, d, fields.zz + i);
            hn::Store(xy, d, fields.xy + i);
            hn::Store(xz, d, fields.xz + i);
            hn::Store(yz, d, fields.yz + i);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
