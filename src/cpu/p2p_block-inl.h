/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The inner loop of P2P: a few targets and all staged sources.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_P2P_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_P2P_BLOCK_INL_H
#undef FARFIELD_CPU_P2P_BLOCK_INL_H
#else
#define FARFIELD_CPU_P2P_BLOCK_INL_H
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"

#include "cpu/p2p_staging-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

/*! \brief c_rootScale / sqrt(r2) to the precision of the type.
 *
 *  In single precision a Newton step without its factor 1/2, which the charges of the sources
 *  carry. */
HWY_INLINE Vec<float> scaledInverseRoot(Vec<float> r2)
{
    const Tag<float> d;
    const auto y = hn::ApproximateReciprocalSqrt(r2);
    return hn::Mul(y, hn::NegMulAdd(hn::Mul(r2, y), y, hn::Set(d, 3.0f)));
}
HWY_INLINE Vec<double> scaledInverseRoot(Vec<double> r2)
{
    const Tag<double> d;
    return hn::Div(hn::Set(d, 1.0), hn::Sqrt(r2));
}

//! What is computed beside the forces.
enum class Besides
{
    Nothing,
    Energy,
    Potentials //!< and the energy
};

/*! \brief Forces between Targets particles of the cell, from i0, and all staged sources behind
 *         them.
 *  \tparam Third  sources get forces, too
 *  \tparam Close  there are pairs to leave out
 *  \param[in] close, closeEnd  those of these targets, by ascending source
 *  \returns the energy */
template<int Targets, Besides besides, bool Third, bool Close, class Real>
HWY_INLINE double targetBlock(const NearTask<Real>& task,
                              const Staged<Real>& s,
                              int i0,
                              const ClosePair* close,
                              const ClosePair* closeEnd)
{
    constexpr bool Energy     = besides != Besides::Nothing;
    constexpr bool Potentials = besides == Besides::Potentials;
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    Vec<Real> fx[Targets], fy[Targets], fz[Targets], atTarget[Targets];
    Real q[Targets]; // the staged charges are scaled for their part as sources
    for (int t = 0; t < Targets; t++)
    {
        fx[t] = fy[t] = fz[t] = atTarget[t] = hn::Zero(d);
        q[t] = c_rootScale<Real> * c_rootScale<Real> * c_rootScale<Real> * s.q[i0 + t];
    }
    auto sum        = hn::Zero(d);
    auto lost       = hn::Zero(d);
    const auto tiny = hn::Set(d, Real(1e-20));
    const auto step = [&](int j, auto masked, auto leavesOut) HWY_ATTR
    {
        HWY_ALIGN Real keep[Targets][c_slotPadding];
        if (decltype(leavesOut)::value)
        {
            std::fill_n(&keep[0][0], Targets * c_slotPadding, Real(1));
            for (; close != closeEnd && close->source < j + L; close++)
            {
                keep[close->target - i0][close->source - j] = 0;
            }
        }
        const auto sx  = hn::Load(d, s.x + j);
        const auto sy  = hn::Load(d, s.y + j);
        const auto sz  = hn::Load(d, s.z + j);
        const auto sq  = hn::Load(d, s.q + j);
        auto gx        = Third ? hn::Load(d, s.fx + j) : hn::Zero(d);
        auto gy        = Third ? hn::Load(d, s.fy + j) : hn::Zero(d);
        auto gz        = Third ? hn::Load(d, s.fz + j) : hn::Zero(d);
        auto potential = hn::Zero(d); // of the targets at the source
        for (int t = 0; t < Targets; t++)
        {
            const auto dx = hn::Sub(hn::Set(d, s.x[i0 + t]), sx);
            const auto dy = hn::Sub(hn::Set(d, s.y[i0 + t]), sy);
            const auto dz = hn::Sub(hn::Set(d, s.z[i0 + t]), sz);
            // the tiny term keeps coinciding sites finite, with zero force
            const auto r2 = hn::MulAdd(dx, dx, hn::MulAdd(dy, dy, hn::MulAdd(dz, dz, tiny)));
            auto y        = scaledInverseRoot(r2);
            if (decltype(masked)::value)
            {
                const auto behind = hn::Gt(hn::Iota(d, static_cast<Real>(j)),
                                           hn::Set(d, static_cast<Real>(i0 + t)));
                y                 = hn::IfThenElseZero(behind, y);
            }
            if (decltype(leavesOut)::value)
            {
                const auto left = hn::And(hn::Eq(hn::Load(d, keep[t]), hn::Zero(d)),
                                          hn::Lt(r2, hn::Set(d, task.imageDistance2)));
                y               = hn::IfThenZeroElse(left, y);
            }
            const auto qq = hn::Mul(hn::Mul(hn::Set(d, q[t]), sq), y);
            if (Energy)
            {
                // without the charge of the source: a product of two charges has the same rounding
                // error in every pair of its kind
                potential = hn::MulAdd(hn::Set(d, q[t]), y, potential);
            }
            if (Potentials)
            {
                atTarget[t] = hn::MulAdd(sq, y, atTarget[t]);
            }
            const auto f = hn::Mul(qq, hn::Mul(y, y));
            fx[t]        = hn::MulAdd(f, dx, fx[t]);
            fy[t]        = hn::MulAdd(f, dy, fy[t]);
            fz[t]        = hn::MulAdd(f, dz, fz[t]);
            if (Third)
            {
                gx = hn::NegMulAdd(f, dx, gx);
                gy = hn::NegMulAdd(f, dy, gy);
                gz = hn::NegMulAdd(f, dz, gz);
            }
        }
        if (Third)
        {
            hn::Store(gx, d, s.fx + j);
            hn::Store(gy, d, s.fy + j);
            hn::Store(gz, d, s.fz + j);
        }
        if (Potentials)
        {
            const auto before = hn::Load(d, s.potential + j);
            const auto scale  = hn::Set(d, 1 / c_rootScale<Real>);
            hn::Store(hn::MulAdd(scale, potential, before), d, s.potential + j);
        }
        if (Energy)
        {
            // Kahan's sum, because charges of one sign in a lane add up to far more than the result
            const auto term  = hn::MulSub(sq, potential, lost);
            const auto grown = hn::Add(sum, term);
            lost             = hn::Sub(hn::Sub(grown, sum), term);
            sum              = grown;
        }
    };
    int j = s.others;
    if (j == 0)
    {
        for (j = (i0 / L) * L; j < i0 + Targets; j += L)
        {
            step(j, std::true_type(), std::bool_constant<Close>());
        }
    }
    while (j < s.count)
    {
        // up to the vector with the next source to leave out
        const int plain = (Close && close != closeEnd) ? close->source / L * L : s.count;
        for (; j < plain; j += L)
        {
            step(j, std::false_type(), std::false_type());
        }
        if (Close && j < s.count)
        {
            step(j, std::false_type(), std::true_type());
            j += L;
        }
    }
    for (int t = 0; t < Targets; t++)
    {
        s.fx[i0 + t] += hn::GetLane(hn::SumOfLanes(d, fx[t]));
        s.fy[i0 + t] += hn::GetLane(hn::SumOfLanes(d, fy[t]));
        s.fz[i0 + t] += hn::GetLane(hn::SumOfLanes(d, fz[t]));
        if (Potentials)
        {
            s.potential[i0 + t] +=
                    c_rootScale<
                            Real> * c_rootScale<Real> * hn::GetLane(hn::SumOfLanes(d, atTarget[t]));
        }
    }
    double energy = 0;
    if (Energy)
    {
        HWY_ALIGN Real lane[c_slotPadding] = {}; // GCC 13 does not see that they are stored
        hn::Store(sum, d, lane);
        for (int k = 0; k < L; k++)
        {
            energy += static_cast<double>(lane[k]);
        }
        // roots carry their scale, charges of sources its inverse cube
        energy *= c_rootScale<Real> * c_rootScale<Real>;
    }
    return energy;
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
