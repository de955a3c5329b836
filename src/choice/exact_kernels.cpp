/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Compiled once per instruction set by Highway.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "choice/exact_kernels.cpp"
#include "base/simd_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>

#include "base/simd_functions-inl.h"
#include "choice/exact_kernels.h"

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

void sharpSlopes(double a, int count, double* values)
{
    const Tag<double> d;
    const auto splitting   = hn::Set(d, a);
    const auto slopeAtRoot = hn::Set(d, M_2_SQRTPI * a);
    for (int j = 0; j < count; j += lanesOf<double>())
    {
        const auto r2    = hn::LoadU(d, values + j);
        const auto r     = hn::Sqrt(r2);
        const auto x     = hn::Mul(splitting, r);
        const auto e     = decay<double>(hn::Mul(x, x));
        const auto value = hn::Div(hn::Mul(e, scaledErfc<double>(x)), r);
        hn::StoreU(hn::Div(hn::MulAdd(slopeAtRoot, e, value), r2), d, values + j);
    }
}

//! Numbers that are complex, with arrays of their parts.
struct Sum
{
    Vec<double> re, im;

    HWY_INLINE Sum() { re = im = hn::Zero(Tag<double>()); }
    HWY_INLINE void add(Vec<double> q, Vec<double> ofRe, Vec<double> ofIm)
    {
        re = hn::MulAdd(q, ofRe, re);
        im = hn::MulAdd(q, ofIm, im);
    }
};

//! exp(i k r) of the first wave vector. \returns the sum S
HWY_INLINE Sum start(const WaveRow& row, WaveArrays* arrays)
{
    const Tag<double> d;
    const auto load = [d](const std::vector<double>& of, size_t i) HWY_ATTR
    { return hn::LoadU(d, of.data() + i); };
    Sum sum;
    for (size_t i = 0; i < arrays->q.size(); i += hn::Lanes(d))
    {
        auto turns = hn::Zero(d);
        for (int k = 0; k < 3; k++)
        {
            turns = hn::MulAdd(
                    hn::Set(d, double(row.multiples[k])), load(arrays->phase[k], i), turns);
        }
        const auto angle = hn::Mul(hn::Set(d, 2 * M_PI), hn::Sub(turns, hn::Round(turns)));
        const auto re    = hn::Cos(d, angle);
        const auto im    = hn::Sin(d, angle);
        hn::StoreU(re, d, arrays->re.data() + i);
        hn::StoreU(im, d, arrays->im.data() + i);
        hn::StoreU(hn::Zero(d), d, arrays->sum.data() + i);
        hn::StoreU(hn::Zero(d), d, arrays->sumOfLast.data() + i);
        sum.add(load(arrays->q, i), re, im);
    }
    return sum;
}

//! Adds the terms of a wave vector, and goes on to the next one. \returns the sum S of that
HWY_INLINE Sum addWave(double weight, double last, const Sum& of, WaveArrays* arrays)
{
    const Tag<double> d;
    const auto load = [d](const std::vector<double>& from, size_t i) HWY_ATTR
    { return hn::LoadU(d, from.data() + i); };
    const auto sRe = hn::Set(d, weight * hn::GetLane(hn::SumOfLanes(d, of.re)));
    const auto sIm = hn::Set(d, weight * hn::GetLane(hn::SumOfLanes(d, of.im)));
    const auto kz  = hn::Set(d, last);
    Sum next;
    for (size_t i = 0; i < arrays->q.size(); i += hn::Lanes(d))
    {
        const auto re = load(arrays->re, i), im = load(arrays->im, i);
        const auto term = hn::MulSub(sRe, im, hn::Mul(sIm, re));
        hn::StoreU(hn::Add(load(arrays->sum, i), term), d, arrays->sum.data() + i);
        hn::StoreU(
                hn::MulAdd(kz, term, load(arrays->sumOfLast, i)), d, arrays->sumOfLast.data() + i);
        const auto stepRe = load(arrays->stepRe, i), stepIm = load(arrays->stepIm, i);
        const auto nextRe = hn::MulSub(re, stepRe, hn::Mul(im, stepIm));
        const auto nextIm = hn::MulAdd(re, stepIm, hn::Mul(im, stepRe));
        hn::StoreU(nextRe, d, arrays->re.data() + i);
        hn::StoreU(nextIm, d, arrays->im.data() + i);
        next.add(load(arrays->q, i), nextRe, nextIm);
    }
    return next;
}

void addWaves(const WaveRow& row, WaveArrays* arrays)
{
    const Tag<double> d;
    Sum sum = start(row, arrays);
    for (size_t c = 0; c < row.last.size(); c++)
    {
        sum = addWave(row.weights[c], row.last[c], sum, arrays);
    }
    for (size_t i = 0; i < arrays->q.size(); i += hn::Lanes(d))
    {
        const auto ofRow = hn::LoadU(d, arrays->sum.data() + i);
        for (int k = 0; k < 2; k++)
        {
            double* const to = arrays->result[k].data() + i;
            hn::StoreU(hn::MulAdd(hn::Set(d, row.k[k]), ofRow, hn::LoadU(d, to)), d, to);
        }
        double* const to = arrays->result[2].data() + i;
        hn::StoreU(hn::Add(hn::LoadU(d, arrays->sumOfLast.data() + i), hn::LoadU(d, to)), d, to);
    }
}

const ExactKernels& kernelsOfTarget()
{
    static const ExactKernels table = { sharpSlopes, addWaves };
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farfield
{

HWY_EXPORT(kernelsOfTarget);

WaveArrays::WaveArrays(const std::vector<double>& charges,
                       const std::vector<double> (&positions)[3]) :
    q(charges)
{
    const size_t padded = (q.size() + c_exactPadding - 1) / c_exactPadding * c_exactPadding;
    q.resize(padded, 0);
    for (int k = 0; k < 3; k++)
    {
        phase[k] = positions[k];
        phase[k].resize(padded, 0);
        result[k].assign(padded, 0);
    }
    for (const double turns : phase[2])
    {
        stepRe.push_back(std::cos(2 * M_PI * turns));
        stepIm.push_back(std::sin(2 * M_PI * turns));
    }
    for (std::vector<double>* array : { &re, &im, &sum, &sumOfLast })
    {
        array->assign(padded, 0);
    }
}

const ExactKernels& exactKernels()
{
    return HWY_DYNAMIC_DISPATCH(kernelsOfTarget)();
}

} // namespace farfield
#endif
