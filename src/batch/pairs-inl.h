/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The pairs of a target: those within the cut-off are put together, then computed.
 *
 *  Compiled once per instruction set, see batch_kernels.cpp.
 */
#if defined(FARFIELD_BATCH_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_BATCH_PAIRS_INL_H
#undef FARFIELD_BATCH_PAIRS_INL_H
#else
#define FARFIELD_BATCH_PAIRS_INL_H
#endif

#include <cstdint>

#include <algorithm>
#include <limits>

#include "hwy/highway.h"

#include "base/simd_functions-inl.h"
#include "batch/batch_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

HWY_INLINE Vec<float> differences(std::int32_t a, const std::int32_t* b)
{
    const hn::RebindToSigned<Tag<float>> d;
    return hn::ConvertTo(Tag<float>(), hn::Sub(hn::Set(d, a), hn::LoadU(d, b)));
}
template<class Real>
HWY_INLINE Vec<Real> differences(Real a, const Real* b)
{
    const Tag<Real> d;
    return hn::Sub(hn::Set(d, a), hn::LoadU(d, b));
}

HWY_INLINE Vec<float> inverseRoot(Vec<float> square)
{
    const Tag<float> d;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    // an estimate of 12 bits and a step of Newton's method
    const auto y    = hn::ApproximateReciprocalSqrt(square);
    const auto half = hn::Mul(hn::Set(d, 0.5F), y);
    return hn::Mul(half, hn::NegMulAdd(hn::Mul(square, y), y, hn::Set(d, 3.0F)));
#else
    return hn::Div(hn::Set(d, 1.0F), hn::Sqrt(square));
#endif
}
HWY_INLINE Vec<double> inverseRoot(Vec<double> square)
{
    return hn::Div(hn::Set(Tag<double>(), 1.0), hn::Sqrt(square));
}

//! Stores the lanes of a mask one after the other; there is room for a vector.
template<class M>
HWY_INLINE void storeLanes(Vec<float> v, M lanes, float* to)
{
    // faster than a store of parts of a vector, unlike with double
    hn::StoreU(hn::Compress(v, lanes), Tag<float>(), to);
}
template<class M>
HWY_INLINE void storeLanes(Vec<double> v, M lanes, double* to)
{
    hn::CompressStore(v, lanes, Tag<double>(), to);
}

//! Puts the pairs of a target within the cut-off into the buffers. \returns their number
template<class Real, class Place>
HWY_INLINE int gatherPairs(const PairTask<Real, Place>& task,
                           int target,
                           const PairRow* rows,
                           int rowCount,
                           PairBuffers<Real>* b)
{
    const Tag<Real> d;
    const int L           = lanesOf<Real>();
    const auto cutoff     = hn::Set(d, task.squareCutoff);
    const Place *const sx = task.x, *const sy = task.y, *const sz = task.z;
    Real *const toX = b->dx.data(), *const toY = b->dy.data(), *const toZ = b->dz.data();
    Real *const toSquare = b->square.data(), *const toCarried = b->carried.data();
    const Place x = sx[target], y = sy[target], z = sz[target];
    int count = 0;
    for (int r = 0; r < rowCount; r++)
    {
        const int last = rows[r].last;
        for (int j = rows[r].first; j < last; j += L)
        {
            const auto dx     = differences(x, sx + j);
            const auto dy     = differences(y, sy + j);
            const auto dz     = differences(z, sz + j);
            const auto square = hn::MulAdd(dx, dx, hn::MulAdd(dy, dy, hn::Mul(dz, dz)));
            auto isNear       = hn::Lt(square, cutoff);
            if (j + L > last)
            {
                isNear = hn::And(isNear, hn::FirstN(d, static_cast<size_t>(last - j)));
            }
            if (hn::AllFalse(d, isNear))
            {
                continue;
            }
            storeLanes(dx, isNear, toX + count);
            storeLanes(dy, isNear, toY + count);
            storeLanes(dz, isNear, toZ + count);
            storeLanes(square, isNear, toSquare + count);
            for (int c = 0; c < task.columns; c++)
            {
                const auto v =
                        hn::LoadU(d, task.carried + static_cast<size_t>(c) * task.stride + j);
                storeLanes(v, isNear, toCarried + c * b->capacity + count);
            }
            count += static_cast<int>(hn::CountTrue(d, isNear));
        }
    }
    // what fills the last vector is far away, and has no charge
    const auto zero = hn::Zero(d);
    for (auto* array : { &b->dx, &b->dy, &b->dz })
    {
        hn::StoreU(zero, d, array->data() + count);
    }
    for (int c = 0; c < task.columns; c++)
    {
        hn::StoreU(zero, d, toCarried + c * b->capacity + count);
    }
    hn::StoreU(cutoff, d, b->square.data() + count);
    return count;
}

/*! \brief B0 = erfc(a r)/r and B1 = -B0'/r, which takes the place of the squares; B2 = -B1'/r with Third.
 *  \returns the smallest square, nm^2 */
template<bool Screened, bool Third, class Real>
HWY_INLINE Real pairFunctions(Real unit, Real splitting, int count, PairBuffers<Real>* b)
{
    const Tag<Real> d;
    const int L     = lanesOf<Real>();
    const auto toNm = hn::Set(d, unit * unit);
    const auto a    = hn::Set(d, splitting);
    const auto slopeAtRoot =
            hn::Set(d, static_cast<Real>(1.1283791670955126) * splitting); // 2 / pi^(1/2)
    const auto doubleSquare = hn::Set(d, 2 * splitting * splitting);
    const auto three        = hn::Set(d, Real(3));
    // charges at one place are refused or without effect, but must not spoil the sums
    const auto tiny = hn::Set(d, Real(Third && sizeof(Real) == 4 ? 1e-14 : 1e-20));
    auto nearest    = hn::Set(d, std::numeric_limits<Real>::max());
    for (int j = 0; j < count; j += L)
    {
        const auto given         = hn::Mul(hn::Load(d, b->square.data() + j), toNm);
        nearest                  = hn::Min(nearest, given);
        const auto square        = hn::Max(given, tiny);
        const auto inverse       = inverseRoot(square);
        const auto inverseSquare = hn::Mul(inverse, inverse);
        auto value = inverse, slope = hn::Mul(inverse, inverseSquare);
        auto third = hn::Mul(three, hn::Mul(slope, inverseSquare));
        if (Screened)
        {
            const auto x = hn::Mul(a, hn::Mul(square, inverse));
            const auto e = decay<Real>(hn::Mul(x, x));
            value        = hn::Mul(hn::Mul(e, scaledErfc<Real>(x)), inverse);
            slope        = hn::Mul(hn::MulAdd(slopeAtRoot, e, value), inverseSquare);
            third        = hn::Mul(
                    hn::MulAdd(hn::Mul(doubleSquare, slopeAtRoot), e, hn::Mul(three, slope)),
                    inverseSquare);
        }
        hn::Store(value, d, b->value.data() + j);
        hn::Store(slope, d, b->square.data() + j);
        if (Third)
        {
            hn::Store(third, d, b->third.data() + j);
        }
    }
    return hn::GetLane(hn::MinOfLanes(d, nearest));
}

template<bool Third, class Real, class Place>
HWY_INLINE Real pairFunctions(const PairTask<Real, Place>& task, int count, PairBuffers<Real>* b)
{
    return task.splitting > 0 ? pairFunctions<true, Third>(task.unit, task.splitting, count, b)
                              : pairFunctions<false, Third>(task.unit, task.splitting, count, b);
}

//! Sum of products of the first \p count elements.
template<class Real>
HWY_INLINE double product(const Real* u, const Real* v, int count)
{
    const Tag<Real> d;
    auto sum = hn::Zero(d);
    for (int j = 0; j < count; j += lanesOf<Real>())
    {
        sum = hn::MulAdd(hn::Load(d, u + j), hn::Load(d, v + j), sum);
    }
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
}

template<class Real, class Place>
PairSums<Real> pairsOf(const PairTask<Real, Place>& task,
                       int target,
                       const PairRow* rows,
                       int rowCount,
                       PairBuffers<Real>* b,
                       double* potentials)
{
    const Tag<Real> d;
    const int L         = lanesOf<Real>();
    const int count     = gatherPairs(task, target, rows, rowCount, b);
    PairSums<Real> sums = {};
    sums.nearest        = pairFunctions<false>(task, count, b);
    for (int c = 0; c < task.channels; c++)
    {
        potentials[c] = product(b->carried.data() + c * b->capacity, b->value.data(), count);
    }
    // products of charges take the place of the values
    for (int j = 0; j < count; j += L)
    {
        auto weight = hn::Zero(d);
        for (int c = 0; c < task.channels; c++)
        {
            const Real q = task.carried[static_cast<size_t>(c) * task.stride + target];
            weight       = hn::MulAdd(
                    hn::Set(d, q), hn::Load(d, b->carried.data() + c * b->capacity + j), weight);
        }
        hn::Store(hn::Mul(weight, hn::Load(d, b->square.data() + j)), d, b->value.data() + j);
    }
    const auto unit         = static_cast<double>(task.unit);
    Real* const component[] = { b->dx.data(), b->dy.data(), b->dz.data() };
    for (int k = 0; k < 3; k++)
    {
        sums.force[k] = unit * product(b->value.data(), component[k], count);
    }
    if (task.virial)
    {
        const int other[3][2] = { { 0, 3 }, { 1, 5 }, { 2, 4 } }; // xx xy, yy yz, zz xz
        for (int k = 0; k < 3; k++)
        {
            for (int j = 0; j < count; j += L)
            {
                const auto f =
                        hn::Mul(hn::Load(d, b->value.data() + j), hn::Load(d, component[k] + j));
                hn::Store(f, d, b->square.data() + j);
            }
            sums.virial[other[k][0]] = unit * unit * product(b->square.data(), component[k], count);
            sums.virial[other[k][1]] =
                    unit * unit * product(b->square.data(), component[(k + 1) % 3], count);
        }
    }
    return sums;
}

/*! \brief Derivatives of a target's sums.
 *
 *  With d the distance and d' its derivative, q q = sum over channels and s = d d',
 *
 *      phi' = sum q' B0 - q s B1,   f' = sum ((q q)' B1 - q q s B2) d + q q B1 d'. */
template<class Real, class Place>
PairSums<Real> tangentsOf(const PairTask<Real, Place>& task,
                          int target,
                          const PairRow* rows,
                          int rowCount,
                          PairBuffers<Real>* b,
                          double* potentials)
{
    const Tag<Real> d;
    using V             = Vec<Real>;
    const int channels  = task.channels;
    const int count     = gatherPairs(task, target, rows, rowCount, b);
    PairSums<Real> sums = {};
    sums.nearest        = pairFunctions<true>(task, count, b);
    const auto ofTarget = [&](int column) HWY_ATTR
    { return hn::Set(d, task.carried[static_cast<size_t>(column) * task.stride + target]); };
    const auto ofSources     = [&](int column) { return b->carried.data() + column * b->capacity; };
    Real* const distances[3] = { b->dx.data(), b->dy.data(), b->dz.data() };
    const auto unit          = hn::Set(d, task.unit);
    const V zero             = hn::Zero(d);
    V force[3] = { zero, zero, zero }, virial[6] = { zero, zero, zero, zero, zero, zero };
    for (int j = 0; j < count; j += lanesOf<Real>())
    {
        V r[3], dr[3], along = zero, weight = zero, dWeight = zero;
        for (int k = 0; k < 3; k++)
        {
            r[k] = hn::Mul(unit, hn::Load(d, distances[k] + j));
        }
        for (int k = 0; k < 3; k++)
        {
            dr[k] = hn::Sub(ofTarget(2 * channels + k),
                            hn::Load(d, ofSources(2 * channels + k) + j));
            for (int m = 0; m < 3; m++)
            {
                dr[k] = hn::MulAdd(r[m], hn::Set(d, task.strain[m][k]), dr[k]);
            }
            along = hn::MulAdd(r[k], dr[k], along);
        }
        for (int c = 0; c < channels; c++)
        {
            const auto q = hn::Load(d, ofSources(c) + j);
            weight       = hn::MulAdd(ofTarget(c), q, weight);
            dWeight      = hn::MulAdd(ofTarget(channels + c), q, dWeight);
            dWeight = hn::MulAdd(ofTarget(c), hn::Load(d, ofSources(channels + c) + j), dWeight);
        }
        const auto slope  = hn::Load(d, b->square.data() + j);
        const auto third  = hn::Load(d, b->third.data() + j);
        const auto across = hn::Mul(weight, slope);
        const auto radial = hn::NegMulAdd(hn::Mul(weight, third), along, hn::Mul(dWeight, slope));
        V f[3];
        for (int k = 0; k < 3; k++)
        {
            f[k]     = hn::MulAdd(radial, r[k], hn::Mul(across, dr[k]));
            force[k] = hn::Add(force[k], f[k]);
        }
        if (task.virial)
        {
            const int component[3][3] = { { 0, 3, 4 }, { 3, 1, 5 }, { 4, 5, 2 } };
            for (int k = 0; k < 3; k++)
            {
                for (int m = k; m < 3; m++)
                {
                    V* const to = &virial[component[k][m]];
                    *to = hn::MulAdd(f[k], r[m], hn::MulAdd(hn::Mul(across, r[k]), dr[m], *to));
                }
            }
        }
        hn::Store(hn::Mul(slope, along), d, b->square.data() + j);
    }
    for (int c = 0; c < channels; c++)
    {
        potentials[c] = product(ofSources(channels + c), b->value.data(), count)
                        - product(ofSources(c), b->square.data(), count);
    }
    // no std::transform: it is compiled for any processor, and passes vectors otherwise
    const auto sumOf = [d](V v) HWY_ATTR
    { return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v))); };
    for (int k = 0; k < 3; k++)
    {
        sums.force[k] = sumOf(force[k]);
    }
    for (int k = 0; k < 6; k++)
    {
        sums.virial[k] = sumOf(virial[k]);
    }
    return sums;
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
