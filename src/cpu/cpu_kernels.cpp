/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// Compiled once per instruction set by Highway; see cpu_kernels.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/cpu_kernels.cpp"
// One target per generation of processors keeps the build short.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <type_traits>

#include "cpu/cpu_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

template<class Real>
using Tag = hn::ScalableTag<Real>;
template<class Real>
using Vec = hn::Vec<Tag<Real>>;

constexpr int c_maxCoefficients = coefficientCount(20);

template<class Real>
int lanesOf()
{
    return static_cast<int>(hn::Lanes(Tag<Real>()));
}

//! Positions and charges of one particle of each of several cells; q = 0 where a cell has no more.
template<class Real>
struct Column
{
    Vec<Real> x, y, z, q;
};

template<class Real>
HWY_INLINE Column<Real>
loadColumn(const Particles<Real>& p, const int* first, const int* count, int k, Real inverseUnit)
{
    const Tag<Real> d;
    using Index = hwy::MakeSigned<Real>;
    const hn::Rebind<Index, Tag<Real>> di;
    HWY_ALIGN Index index[c_slotPadding];
    HWY_ALIGN Real valid[c_slotPadding];
    const int lanes = lanesOf<Real>();
    for (int lane = 0; lane < lanes; lane++)
    {
        const bool has = k < count[lane];
        index[lane]    = has ? first[lane] + k : 0;
        valid[lane]    = has ? Real(1) : Real(0);
    }
    const auto i     = hn::Load(di, index);
    const auto scale = hn::Mul(hn::Load(d, valid), hn::Set(d, inverseUnit));
    Column<Real> c;
    c.x = hn::Mul(hn::GatherIndex(d, p.x, i), scale);
    c.y = hn::Mul(hn::GatherIndex(d, p.y, i), scale);
    c.z = hn::Mul(hn::GatherIndex(d, p.z, i), scale);
    c.q = hn::Mul(hn::GatherIndex(d, p.q, i), hn::Load(d, valid));
    return c;
}

inline int longest(const int* count, int lanes)
{
    return *std::max_element(count, count + lanes);
}

//! Adds q u_i (monic functions) of two columns to the accumulators.
template<class Real>
HWY_INLINE void accumulate(const ExpansionTables<Real>& tables,
                           const Column<Real>& a,
                           const Column<Real>& b,
                           Real* acc)
{
    const Tag<Real> d;
    const int L    = lanesOf<Real>();
    const int p    = tables.order;
    const auto r2a = hn::MulAdd(a.x, a.x, hn::MulAdd(a.y, a.y, hn::Mul(a.z, a.z)));
    const auto r2b = hn::MulAdd(b.x, b.x, hn::MulAdd(b.y, b.y, hn::Mul(b.z, b.z)));
    auto ca        = a.q;
    auto cb        = b.q;
    auto sa        = hn::Zero(d);
    auto sb        = hn::Zero(d);
    for (int m = 0; m <= p; m++)
    {
        if (m > 0)
        {
            const auto ta = hn::Sub(hn::Mul(a.x, ca), hn::Mul(a.y, sa));
            const auto tb = hn::Sub(hn::Mul(b.x, cb), hn::Mul(b.y, sb));
            sa            = hn::MulAdd(a.x, sa, hn::Mul(a.y, ca));
            sb            = hn::MulAdd(b.x, sb, hn::Mul(b.y, cb));
            ca            = ta;
            cb            = tb;
        }
        auto cCurA = ca, sCurA = sa, cCurB = cb, sCurB = sb;
        auto cPrevA = hn::Zero(d), sPrevA = hn::Zero(d), cPrevB = hn::Zero(d), sPrevB = hn::Zero(d);
        for (int l = m; l <= p; l++)
        {
            Real* cAcc = acc + coefficientIndex(l, m) * L;
            hn::Store(hn::Add(hn::Load(d, cAcc), hn::Add(cCurA, cCurB)), d, cAcc);
            const auto beta  = hn::Set(d, tables.beta[l * (p + 1) + m]);
            const auto fa    = hn::Mul(beta, r2a);
            const auto fb    = hn::Mul(beta, r2b);
            const auto cNewA = hn::NegMulAdd(fa, cPrevA, hn::Mul(a.z, cCurA));
            const auto cNewB = hn::NegMulAdd(fb, cPrevB, hn::Mul(b.z, cCurB));
            cPrevA           = cCurA;
            cPrevB           = cCurB;
            cCurA            = cNewA;
            cCurB            = cNewB;
            if (m > 0)
            {
                Real* sAcc = acc + coefficientIndex(l, -m) * L;
                hn::Store(hn::Add(hn::Load(d, sAcc), hn::Add(sCurA, sCurB)), d, sAcc);
                const auto sNewA = hn::NegMulAdd(fa, sPrevA, hn::Mul(a.z, sCurA));
                const auto sNewB = hn::NegMulAdd(fb, sPrevB, hn::Mul(b.z, sCurB));
                sPrevA           = sCurA;
                sPrevB           = sCurB;
                sCurA            = sNewA;
                sCurB            = sNewB;
            }
        }
    }
}

template<class Real>
void p2m(const Particles<Real>& particles,
         const LeafSlots& slots,
         const ExpansionTables<Real>& tables,
         int begin,
         int end,
         Real* M)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    const int n = coefficientCount(tables.order);
    HWY_ALIGN Real acc[c_maxCoefficients * c_slotPadding];
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        std::fill_n(acc, n * L, Real(0));
        for (int k = 0; k < columns; k += 2)
        {
            accumulate(tables,
                       loadColumn(particles, first, count, k, tables.inverseUnit),
                       loadColumn(particles, first, count, k + 1, tables.inverseUnit),
                       acc);
        }
        for (int i = 0; i < n; i++)
        {
            hn::Store(hn::Mul(hn::Load(d, acc + i * L), hn::Set(d, tables.scale[i])),
                      d,
                      M + static_cast<size_t>(i) * slots.padded + slot);
        }
    }
}

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
    const int p         = tables.order - 1;
    const auto r2a      = hn::MulAdd(a.x, a.x, hn::MulAdd(a.y, a.y, hn::Mul(a.z, a.z)));
    const auto r2b      = hn::MulAdd(b.x, b.x, hn::MulAdd(b.y, b.y, hn::Mul(b.z, b.z)));
    auto ca             = hn::Set(d, Real(1));
    auto cb             = ca;
    auto sa             = hn::Zero(d);
    auto sb             = sa;
    Gradients<Real> sum = { sa, sa, sa, sa, sa, sa };
    const auto add      = [&](const Real* coefficient, auto ua, auto ub) HWY_ATTR
    {
        const auto gx = hn::Load(d, coefficient);
        const auto gy = hn::Load(d, coefficient + L);
        const auto gz = hn::Load(d, coefficient + 2 * L);
        sum.xa        = hn::MulAdd(gx, ua, sum.xa);
        sum.ya        = hn::MulAdd(gy, ua, sum.ya);
        sum.za        = hn::MulAdd(gz, ua, sum.za);
        sum.xb        = hn::MulAdd(gx, ub, sum.xb);
        sum.yb        = hn::MulAdd(gy, ub, sum.yb);
        sum.zb        = hn::MulAdd(gz, ub, sum.zb);
    };
    for (int m = 0; m <= p; m++)
    {
        if (m > 0)
        {
            const auto ta = hn::Sub(hn::Mul(a.x, ca), hn::Mul(a.y, sa));
            const auto tb = hn::Sub(hn::Mul(b.x, cb), hn::Mul(b.y, sb));
            sa            = hn::MulAdd(a.x, sa, hn::Mul(a.y, ca));
            sb            = hn::MulAdd(b.x, sb, hn::Mul(b.y, cb));
            ca            = ta;
            cb            = tb;
        }
        auto cCurA = ca, sCurA = sa, cCurB = cb, sCurB = sb;
        auto cPrevA = hn::Zero(d), sPrevA = hn::Zero(d), cPrevB = hn::Zero(d), sPrevB = hn::Zero(d);
        for (int l = m; l <= p; l++)
        {
            add(g + 3 * L * coefficientIndex(l, m), cCurA, cCurB);
            const auto beta  = hn::Set(d, tables.beta[l * (p + 2) + m]);
            const auto fa    = hn::Mul(beta, r2a);
            const auto fb    = hn::Mul(beta, r2b);
            const auto cNewA = hn::NegMulAdd(fa, cPrevA, hn::Mul(a.z, cCurA));
            const auto cNewB = hn::NegMulAdd(fb, cPrevB, hn::Mul(b.z, cCurB));
            cPrevA           = cCurA;
            cPrevB           = cCurB;
            cCurA            = cNewA;
            cCurB            = cNewB;
            if (m > 0)
            {
                add(g + 3 * L * coefficientIndex(l, -m), sCurA, sCurB);
                const auto sNewA = hn::NegMulAdd(fa, sPrevA, hn::Mul(a.z, sCurA));
                const auto sNewB = hn::NegMulAdd(fb, sPrevB, hn::Mul(b.z, sCurB));
                sPrevA           = sCurA;
                sPrevB           = sCurB;
                sCurA            = sNewA;
                sCurB            = sNewB;
            }
        }
    }
    return sum;
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
    const int n = tables.order * tables.order;
    HWY_ALIGN Real g[3 * c_maxCoefficients * c_slotPadding];
    HWY_ALIGN Real out[3][c_slotPadding];
    const auto unit = hn::Set(d, 1 / tables.inverseUnit);
    for (int slot = begin; slot < end; slot += L)
    {
        const int* first  = slots.first + slot;
        const int* count  = slots.count + slot;
        const int columns = longest(count, L);
        if (columns == 0)
        {
            continue;
        }
        for (int axis = 0; axis < 3; axis++)
        {
            for (int i = 0; i < n; i++)
            {
                const auto& e = tables.gradient[axis][i];
                const auto s  = hn::Mul(
                        hn::Set(d, e.value[0]),
                        hn::Load(d,
                                 local + static_cast<size_t>(e.source[0]) * slots.padded + slot));
                const auto t = hn::MulAdd(
                        hn::Set(d, e.value[1]),
                        hn::Load(d, local + static_cast<size_t>(e.source[1]) * slots.padded + slot),
                        s);
                hn::Store(t, d, g + (3 * i + axis) * L);
            }
        }
        auto xx = hn::Zero(d), yy = xx, zz = xx, xy = xx, xz = xx, yz = xx;
        for (int k = 0; k < columns; k += 2)
        {
            const Column<Real> a = loadColumn(particles, first, count, k, tables.inverseUnit);
            const Column<Real> b = loadColumn(particles, first, count, k + 1, tables.inverseUnit);
            const Gradients<Real> G = gradients(tables, g, a, b);
            const auto finish =
                    [&](const Column<Real>& c, Vec<Real> gx, Vec<Real> gy, Vec<Real> gz, int column)
                            HWY_ATTR
            {
                const auto x = hn::Mul(c.x, unit);
                const auto y = hn::Mul(c.y, unit);
                const auto z = hn::Mul(c.z, unit);
                const auto w = hn::Set(d, pull);
                gx           = hn::Mul(c.q, hn::MulSub(w, x, gx));
                gy           = hn::Mul(c.q, hn::MulSub(w, y, gy));
                gz           = hn::Mul(c.q, hn::MulSub(w, z, gz));
                hn::Store(gx, d, out[0]);
                hn::Store(gy, d, out[1]);
                hn::Store(gz, d, out[2]);
                for (int lane = 0; lane < L; lane++)
                {
                    if (column < count[lane])
                    {
                        const int i = first[lane] + column;
                        fx[i]       = out[0][lane];
                        fy[i]       = out[1][lane];
                        fz[i]       = out[2][lane];
                    }
                }
                if (virial != nullptr)
                {
                    xx = hn::MulAdd(x, gx, xx);
                    yy = hn::MulAdd(y, gy, yy);
                    zz = hn::MulAdd(z, gz, zz);
                    xy = hn::MulAdd(x, gy, hn::MulAdd(y, gx, xy));
                    xz = hn::MulAdd(x, gz, hn::MulAdd(z, gx, xz));
                    yz = hn::MulAdd(y, gz, hn::MulAdd(z, gy, yz));
                }
            };
            finish(a, G.xa, G.ya, G.za, k);
            finish(b, G.xb, G.yb, G.zb, k + 1);
        }
        if (virial != nullptr)
        {
            virial[0] -= 0.5 * hn::GetLane(hn::SumOfLanes(d, xx));
            virial[1] -= 0.5 * hn::GetLane(hn::SumOfLanes(d, yy));
            virial[2] -= 0.5 * hn::GetLane(hn::SumOfLanes(d, zz));
            virial[3] -= 0.25 * hn::GetLane(hn::SumOfLanes(d, xy));
            virial[4] -= 0.25 * hn::GetLane(hn::SumOfLanes(d, xz));
            virial[5] -= 0.25 * hn::GetLane(hn::SumOfLanes(d, yz));
        }
    }
}

/*! \brief c_rootScale / sqrt(r2) to the precision of the type.
 *
 *  In single precision a Newton step without its factor 1/2, which the charges of the sources
 * carry. */
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
template<class Real>
constexpr Real c_rootScale = sizeof(Real) == 4 ? 2 : 1;

//! Sources of one cell: its own particles first, then those of the forward neighbours.
template<class Real>
struct Staged
{
    Real *x, *y, *z, *q, *fx, *fy, *fz;
    int count; //!< sources
    int own;   //!< particles of the cell itself
};

/*! \brief Forces between Targets particles of the cell, from i0, and all staged sources behind
 *         them.
 *  \tparam Close  there are pairs to leave out
 *  \param[in] close, closeEnd  those of these targets, by ascending source
 *  \returns the energy */
template<int Targets, bool Energy, bool Close, class Real>
HWY_INLINE double targetBlock(const NearTask<Real>& task,
                              const Staged<Real>& s,
                              int i0,
                              const ClosePair* close,
                              const ClosePair* closeEnd)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    Vec<Real> fx[Targets], fy[Targets], fz[Targets];
    Real q[Targets]; // the staged charges are scaled for their part as sources
    for (int t = 0; t < Targets; t++)
    {
        fx[t] = fy[t] = fz[t] = hn::Zero(d);
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
        auto gx        = hn::Load(d, s.fx + j);
        auto gy        = hn::Load(d, s.fy + j);
        auto gz        = hn::Load(d, s.fz + j);
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
            const auto f = hn::Mul(qq, hn::Mul(y, y));
            fx[t]        = hn::MulAdd(f, dx, fx[t]);
            fy[t]        = hn::MulAdd(f, dy, fy[t]);
            fz[t]        = hn::MulAdd(f, dz, fz[t]);
            gx           = hn::NegMulAdd(f, dx, gx);
            gy           = hn::NegMulAdd(f, dy, gy);
            gz           = hn::NegMulAdd(f, dz, gz);
        }
        hn::Store(gx, d, s.fx + j);
        hn::Store(gy, d, s.fy + j);
        hn::Store(gz, d, s.fz + j);
        if (Energy)
        {
            // Kahan's sum, because charges of one sign in a lane add up to far more than the result
            const auto term  = hn::MulSub(sq, potential, lost);
            const auto grown = hn::Add(sum, term);
            lost             = hn::Sub(hn::Sub(grown, sum), term);
            sum              = grown;
        }
    };
    int j = (i0 / L) * L;
    for (; j < i0 + Targets; j += L)
    {
        step(j, std::true_type(), std::bool_constant<Close>());
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
    }
    double energy = 0;
    if (Energy)
    {
        HWY_ALIGN Real lane[c_slotPadding];
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

template<bool Energy, class Real>
double cellForces(const NearTask<Real>& task, const Staged<Real>& s, NearForces<Real>* forces)
{
    const auto block = [&](auto targets, int i) HWY_ATTR
    {
        constexpr int c_targets = decltype(targets)::value;
        if (task.closeOffsets != nullptr)
        {
            ClosePair* begin = forces->closePairs.data() + forces->closePairsOf[i];
            ClosePair* end   = forces->closePairs.data() + forces->closePairsOf[i + c_targets];
            if (begin != end)
            {
                std::sort(begin,
                          end,
                          [](const ClosePair& a, const ClosePair& b)
                          { return a.source < b.source; });
                return targetBlock<c_targets, Energy, true>(task, s, i, begin, end);
            }
        }
        return targetBlock<c_targets, Energy, false>(task, s, i, nullptr, nullptr);
    };
    double energy = 0;
    int i         = 0;
    for (; i + 4 <= s.own; i += 4)
    {
        energy += block(std::integral_constant<int, 4>(), i);
    }
    if (i + 2 <= s.own)
    {
        energy += block(std::integral_constant<int, 2>(), i);
        i += 2;
    }
    if (i < s.own)
    {
        energy += block(std::integral_constant<int, 1>(), i);
    }
    return energy;
}

//! One stretch of staged sources: the particles of one cell.
struct Stretch
{
    int first, count, position;
    int displacement; //!< of the cell, index into the near displacements
};

//! Finds the pairs of a cell that must not interact among its staged sources. In small boxes there
//! are several images of a source.
template<class Real>
void findClosePairs(const NearTask<Real>& task,
                    const Stretch* stretches,
                    int used,
                    NearForces<Real>* forces)
{
    const Stretch& own = stretches[0];
    forces->closePairs.clear();
    forces->closePairsOf.resize(own.count + 1);
    for (int i = 0; i < own.count; i++)
    {
        forces->closePairsOf[i] = static_cast<int>(forces->closePairs.size());
        for (int k = task.closeOffsets[own.first + i]; k < task.closeOffsets[own.first + i + 1];
             k++)
        {
            const int partner = task.closePartners[k];
            for (const Stretch* t = stretches; t < stretches + used; t++)
            {
                const int source = t->position + partner - t->first;
                // sources before the block of the target are targets that have been dealt with
                if (partner >= t->first && partner < t->first + t->count && source > i)
                {
                    forces->closePairs.push_back({ i, source });
                }
            }
        }
    }
    forces->closePairsOf[own.count] = static_cast<int>(forces->closePairs.size());
}

template<class Real>
void p2p(const NearTask<Real>& task, int begin, int end, NearForces<Real>* forces)
{
    const Tag<Real> d;
    const int L                 = lanesOf<Real>();
    const auto& p               = task.particles;
    const Grid& grid            = *task.grid;
    const std::vector<Int3> all = nearDisplacements(task.ws);
    const int forward           = 1 + (static_cast<int>(all.size()) - 1) / 2;
    std::vector<Vec3> shifts;
    for (int k = 0; k < forward; k++)
    {
        shifts.push_back(grid.displacement(all[k]));
    }
    std::vector<Stretch> stretches(forward);
    const Real cube        = c_rootScale<Real> * c_rootScale<Real> * c_rootScale<Real>;
    const auto sourceScale = hn::Set(d, 1 / cube);
    const Int3 n           = { grid.H()[0][0], grid.H()[1][1], grid.H()[2][2] };
    for (int item = begin; item < end; item++)
    {
        const int cell      = task.cells[item];
        const Int3 c        = grid.cell(cell);
        const bool interior = c[0] >= task.ws && c[1] >= task.ws && c[0] < n[0] - task.ws
                              && c[1] < n[1] - task.ws && c[2] < n[2] - task.ws;
        int total = 0;
        int used  = 0;
        for (int k = 0; k < forward; k++)
        {
            const Int3 to       = { c[0] + all[k][0], c[1] + all[k][1], c[2] + all[k][2] };
            const int neighbour = grid.index(interior ? to : grid.reduce(to));
            const int first     = p.start[neighbour];
            const int count     = p.start[neighbour + 1] - first;
            if (count > 0)
            {
                stretches[used++] = { first, count, total, k };
                total += count;
            }
        }
        // room for whole vectors behind the last source, and for a row of padding
        const size_t capacity = static_cast<size_t>(((total + L - 1) / L + 2) * L);
        if (forces->staging.size() < 7 * capacity + L)
        {
            forces->staging.resize(14 * capacity + L);
        }
        const size_t address = reinterpret_cast<size_t>(forces->staging.data());
        const size_t align   = L * sizeof(Real);
        Real* base = forces->staging.data() + ((align - address % align) % align) / sizeof(Real);
        Staged<Real> s = { base,
                           base + capacity,
                           base + 2 * capacity,
                           base + 3 * capacity,
                           base + 4 * capacity,
                           base + 5 * capacity,
                           base + 6 * capacity,
                           total,
                           stretches[0].count };
        for (int k = 0; k < used; k++)
        {
            const Stretch& t = stretches[k];
            const auto dx    = hn::Set(d, static_cast<Real>(shifts[t.displacement][0]));
            const auto dy    = hn::Set(d, static_cast<Real>(shifts[t.displacement][1]));
            const auto dz    = hn::Set(d, static_cast<Real>(shifts[t.displacement][2]));
            // whole vectors: what is written too much is overwritten by the next stretch
            for (int i = 0; i < t.count; i += L)
            {
                hn::StoreU(hn::Add(hn::LoadU(d, p.x + t.first + i), dx), d, s.x + t.position + i);
                hn::StoreU(hn::Add(hn::LoadU(d, p.y + t.first + i), dy), d, s.y + t.position + i);
                hn::StoreU(hn::Add(hn::LoadU(d, p.z + t.first + i), dz), d, s.z + t.position + i);
                hn::StoreU(hn::Mul(sourceScale, hn::LoadU(d, p.q + t.first + i)),
                           d,
                           s.q + t.position + i);
            }
        }
        for (int i = 0; i < L; i++)
        {
            s.x[total + i] = s.y[total + i] = s.z[total + i] = Real(1e3);
            s.q[total + i]                                   = 0;
        }
        for (int i = 0; i < total + L; i += L)
        {
            hn::Store(hn::Zero(d), d, s.fx + i);
            hn::Store(hn::Zero(d), d, s.fy + i);
            hn::Store(hn::Zero(d), d, s.fz + i);
        }
        if (task.closeOffsets != nullptr)
        {
            findClosePairs(task, stretches.data(), used, forces);
        }
        forces->energy += task.energy ? cellForces<true>(task, s, forces)
                                      : cellForces<false>(task, s, forces);
        for (int k = 0; k < used; k++)
        {
            const Stretch& t = stretches[k];
            forces->touch(t.first, t.first + t.count);
            const auto add = [&](Real* to, const Real* from) HWY_ATTR
            {
                for (int i = 0; i < t.count; i += L)
                {
                    const auto sum = hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i));
                    hn::BlendedStore(sum, hn::FirstN(d, std::min(L, t.count - i)), d, to + i);
                }
            };
            add(forces->x.get() + t.first, s.fx + t.position);
            add(forces->y.get() + t.first, s.fy + t.position);
            add(forces->z.get() + t.first, s.fz + t.position);
        }
        if (task.virial)
        {
            // the forces in the buffer are those of this cell's pairs alone, so sum r_ij (x) f_ij =
            // sum x (x) f
            auto xx = hn::Zero(d), yy = xx, zz = xx, xy = xx, xz = xx, yz = xx;
            for (int i = 0; i < total; i += L)
            {
                // behind the last source there is padding of the first vector, without force
                const auto x  = hn::Load(d, s.x + i);
                const auto y  = hn::Load(d, s.y + i);
                const auto z  = hn::Load(d, s.z + i);
                const auto fx = hn::Load(d, s.fx + i);
                const auto fy = hn::Load(d, s.fy + i);
                const auto fz = hn::Load(d, s.fz + i);
                xx            = hn::MulAdd(x, fx, xx);
                yy            = hn::MulAdd(y, fy, yy);
                zz            = hn::MulAdd(z, fz, zz);
                xy            = hn::MulAdd(x, fy, hn::MulAdd(y, fx, xy));
                xz            = hn::MulAdd(x, fz, hn::MulAdd(z, fx, xz));
                yz            = hn::MulAdd(y, fz, hn::MulAdd(z, fy, yz));
            }
            const auto sum = [&](auto v) HWY_ATTR
            { return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v))); };
            forces->virial[0] -= 0.5 * sum(xx);
            forces->virial[1] -= 0.5 * sum(yy);
            forces->virial[2] -= 0.5 * sum(zz);
            forces->virial[3] -= 0.25 * sum(xy);
            forces->virial[4] -= 0.25 * sum(xz);
            forces->virial[5] -= 0.25 * sum(yz);
        }
    }
}

//! Rows [first, first + Rows) of the symmetric product, and their mirror images.
template<int Rows, class Real>
HWY_INLINE const Real* multiplyRows(const Real* kappa, int n, int first, const Real* x, Real* y)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    Vec<Real> xr[Rows], xi[Rows], yr[Rows], yi[Rows];
    for (int r = 0; r < Rows; r++)
    {
        xr[r] = hn::Load(d, x + 2 * L * (first + r));
        xi[r] = hn::Load(d, x + 2 * L * (first + r) + L);
        yr[r] = hn::Load(d, y + 2 * L * (first + r));
        yi[r] = hn::Load(d, y + 2 * L * (first + r) + L);
    }
    for (int i = 0; i < Rows; i++)
    {
        for (int j = i; j < Rows; j++, kappa += L)
        {
            const auto k = hn::Load(d, kappa);
            yr[i]        = hn::MulAdd(k, xr[j], yr[i]);
            yi[i]        = hn::MulAdd(k, xi[j], yi[i]);
            if (j > i)
            {
                yr[j] = hn::MulAdd(k, xr[i], yr[j]);
                yi[j] = hn::MulAdd(k, xi[i], yi[j]);
            }
        }
    }
    for (int j = first + Rows; j < n; j++)
    {
        const auto zr = hn::Load(d, x + 2 * L * j);
        const auto zi = hn::Load(d, x + 2 * L * j + L);
        auto sr       = hn::Load(d, y + 2 * L * j);
        auto si       = hn::Load(d, y + 2 * L * j + L);
        for (int r = 0; r < Rows; r++, kappa += L)
        {
            const auto k = hn::Load(d, kappa);
            yr[r]        = hn::MulAdd(k, zr, yr[r]);
            yi[r]        = hn::MulAdd(k, zi, yi[r]);
            sr           = hn::MulAdd(k, xr[r], sr);
            si           = hn::MulAdd(k, xi[r], si);
        }
        hn::Store(sr, d, y + 2 * L * j);
        hn::Store(si, d, y + 2 * L * j + L);
    }
    for (int r = 0; r < Rows; r++)
    {
        hn::Store(yr[r], d, y + 2 * L * (first + r));
        hn::Store(yi[r], d, y + 2 * L * (first + r) + L);
    }
    return kappa;
}

template<class Real>
void multiply(const Real* kappa, int n, const Real* x, Real* y)
{
    std::fill_n(y, 2 * n * lanesOf<Real>(), Real(0));
    int first = 0;
    for (; first + c_rowBlock <= n; first += c_rowBlock)
    {
        kappa = multiplyRows<c_rowBlock>(kappa, n, first, x, y);
    }
    static_assert(c_rowBlock == 3, "the remainders below are those of three rows");
    if (n - first == 2)
    {
        multiplyRows<2>(kappa, n, first, x, y);
    }
    else if (n - first == 1)
    {
        multiplyRows<1>(kappa, n, first, x, y);
    }
}

//! Products of the coefficients of one degree and order with those of another.
template<class Real>
struct FourProducts
{
    Vec<Real> cc, ss, cs, sc;

    HWY_INLINE void setZero() { cc = ss = cs = sc = hn::Zero(Tag<Real>()); }
    //! Adds the products of a and b: [cosine, sine][re, im]. \tparam Sine  whether a has a sine
    template<bool Sine>
    HWY_INLINE void add(const Vec<Real>* a, const Vec<Real>* b)
    {
        cc = hn::MulAdd(a[1], b[1], hn::MulAdd(a[0], b[0], cc));
        cs = hn::MulAdd(a[1], b[3], hn::MulAdd(a[0], b[2], cs));
        if (Sine)
        {
            ss = hn::MulAdd(a[3], b[3], hn::MulAdd(a[2], b[2], ss));
            sc = hn::MulAdd(a[3], b[1], hn::MulAdd(a[2], b[0], sc));
        }
    }
    //! Hands them to the harmonics of a degree, see product_table.h.
    HWY_INLINE void store(int ma, int mb, Real* products) const
    {
        const Tag<Real> d;
        const int L      = lanesOf<Real>();
        const Real twice = (ma == mb) ? 1 : 2;
        const auto plus  = hn::Set(d, twice);
        const auto minus = hn::Set(d, (ma % 2) ? -twice : twice);
        const auto to    = [&](int order, Vec<Real> factor, Vec<Real> sum) HWY_ATTR
        {
            Real* at = products + order * L;
            hn::Store(hn::MulAdd(factor, sum, hn::Load(d, at)), d, at);
        };
        to(mb + ma, plus, hn::Sub(cc, ss));
        to(mb - ma, minus, hn::Add(cc, ss));
        to(-(mb + ma), plus, hn::Add(cs, sc));
        if (mb != ma)
        {
            to(-(mb - ma), minus, hn::Sub(cs, sc));
        }
    }
};

//! Products of coefficients of the orders ma <= mb, those of one sequence of degrees with the
//! other.
template<bool Sine, class Real>
HWY_INLINE void
convolve(const ProductTable<Real>& table, int ma, int mb, const Real* x, Real* products)
{
    const Tag<Real> d;
    const int L     = lanesOf<Real>();
    const int p     = table.order;
    const auto load = [&](int m, int degree, Vec<Real>* to) HWY_ATTR
    {
        const Real* from = x + 2 * L * (table.offset[m] + 2 * degree);
        for (int part = 0; part < 4; part++)
        {
            to[part] = hn::Load(d, from + part * L);
        }
    };
    for (int degree = ma + mb; degree <= 2 * p; degree += 2)
    {
        // two degrees share what is loaded; around the sequences are zeros, so that both have the
        // same terms
        const int first = std::max(ma, degree - p);
        const int last  = std::min(p, degree + 1 - mb);
        FourProducts<Real> lower, upper;
        lower.setZero();
        upper.setZero();
        Vec<Real> a[4], b[4];
        load(mb, degree + 1 - first, b);
        for (int l = first; l <= last; l++)
        {
            load(ma, l, a);
            upper.template add<Sine>(a, b);
            load(mb, degree - l, b);
            lower.template add<Sine>(a, b);
        }
        lower.store(ma, mb, products + coefficientIndex(degree, 0) * L);
        if (degree < 2 * p)
        {
            upper.store(ma, mb, products + coefficientIndex(degree + 1, 0) * L);
        }
    }
}

template<class Real>
void products(const ProductTable<Real>& table, const Real* x, Real* placed, Real* out)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    for (size_t i = 0; i < table.place.size(); i++)
    {
        auto re = hn::Zero(d), im = re;
        for (int k = table.start[i]; k < table.start[i + 1]; k++)
        {
            const auto value = hn::Set(d, table.sources[k].value);
            const Real* from = x + 2 * L * table.sources[k].from;
            re               = hn::MulAdd(value, hn::Load(d, from), re);
            im               = hn::MulAdd(value, hn::Load(d, from + L), im);
        }
        hn::Store(re, d, placed + 2 * L * table.place[i]);
        hn::Store(im, d, placed + 2 * L * table.place[i] + L);
    }
    std::fill_n(out, static_cast<size_t>(coefficientCount(2 * table.order)) * L, Real(0));
    for (int ma = 0; ma <= table.order; ma++)
    {
        for (int mb = ma; mb <= table.order; mb++)
        {
            ma == 0 ? convolve<false>(table, ma, mb, placed, out)
                    : convolve<true>(table, ma, mb, placed, out);
        }
    }
}

template<class Real>
void contract(const ProductTable<Real>& table,
              const std::array<const Real*, 4>& products,
              const Real* weights,
              const Real* derivatives,
              Real* sums)
{
    const Tag<Real> d;
    const int L         = lanesOf<Real>();
    const int harmonics = coefficientCount(2 * table.order);
    Vec<Real> weight[4], sum[StrainCount];
    for (int copy = 0; copy < 4; copy++)
    {
        weight[copy] = hn::Load(d, weights + copy * L);
    }
    for (auto& s : sum)
    {
        s = hn::Zero(d);
    }
    for (int h = 0; h < harmonics; h++)
    {
        Vec<Real> p[4];
        for (int copy = 0; copy < 4; copy++)
        {
            p[copy] = hn::Mul(weight[copy], hn::Load(d, products[copy] + h * L));
        }
        const auto scale = hn::Set(d, table.harmonicScale[h]);
        const auto even  = hn::Mul(scale, hn::Add(p[0], p[1])); // y as it is
        const auto evenZ = hn::Mul(scale, hn::Sub(p[0], p[1]));
        const auto odd   = hn::Mul(scale, hn::Add(p[2], p[3])); // y reflected
        const auto oddZ  = hn::Mul(scale, hn::Sub(p[2], p[3]));
        const auto all   = hn::Add(even, odd);
        const Real* from = derivatives + h * StrainCount * L;
        const auto add   = [&](Strain c, Vec<Real> with) HWY_ATTR
        { sum[c] = hn::MulAdd(with, hn::Load(d, from + c * L), sum[c]); };
        add(StrainXXminusZZ, all);
        add(StrainYYminusZZ, all);
        add(StrainXY, hn::Sub(even, odd));
        add(StrainXZ, hn::Add(evenZ, oddZ));
        add(StrainYZ, hn::Sub(evenZ, oddZ));
    }
    for (int c = 0; c < StrainCount; c++)
    {
        hn::Store(sum[c], d, sums + c * L);
    }
}

//! Rows [first, first + Rows) of Y, two vectors of columns from column on.
template<int Rows, class Real>
HWY_INLINE void transformTile(const Real* T,
                              int n,
                              const Real* X,
                              int columns,
                              int first,
                              int column,
                              bool two,
                              Real* Y)
{
    const Tag<Real> d;
    const int L      = lanesOf<Real>();
    const int second = two ? L : 0;
    Vec<Real> a[Rows], b[Rows];
    for (int r = 0; r < Rows; r++)
    {
        a[r] = b[r] = hn::Zero(d);
    }
    for (int k = 0; k < n; k++)
    {
        const Real* x = X + static_cast<size_t>(k) * columns + column;
        const auto xa = hn::Load(d, x);
        const auto xb = hn::Load(d, x + second);
        for (int r = 0; r < Rows; r++)
        {
            const auto t = hn::Set(d, T[static_cast<size_t>(first + r) * n + k]);
            a[r]         = hn::MulAdd(t, xa, a[r]);
            b[r]         = hn::MulAdd(t, xb, b[r]);
        }
    }
    for (int r = 0; r < Rows; r++)
    {
        Real* y = Y + static_cast<size_t>(first + r) * columns + column;
        hn::Store(a[r], d, y);
        hn::Store(b[r], d, y + second);
    }
}

template<class Real>
void transform(const Real* T, int rows, int n, const Real* X, int columns, Real* Y)
{
    const int L = lanesOf<Real>();
    for (int column = 0; column < columns; column += 2 * L)
    {
        const bool two = column + L < columns;
        int first      = 0;
        for (; first + 5 <= rows; first += 5)
        {
            transformTile<5>(T, n, X, columns, first, column, two, Y);
        }
        for (; first < rows; first++)
        {
            transformTile<1>(T, n, X, columns, first, column, two, Y);
        }
    }
}

template<class Real>
Real dot(const Real* a, const Real* b, int count)
{
    const Tag<Real> d;
    auto sum = hn::Zero(d);
    for (int i = 0; i < count; i += lanesOf<Real>())
    {
        sum = hn::MulAdd(hn::Load(d, a + i), hn::Load(d, b + i), sum);
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
}

template<class Real>
double exactDot(const Real* a, const Real* b, int count)
{
    const Tag<double> d;
    const hn::Rebind<Real, Tag<double>> of;
    const auto load = [&](const Real* from) HWY_ATTR
    {
        if constexpr (sizeof(Real) == sizeof(double))
        {
            return hn::Load(d, from);
        }
        else
        {
            return hn::PromoteTo(d, hn::Load(of, from));
        }
    };
    auto sum = hn::Zero(d);
    for (int i = 0; i < count; i += lanesOf<double>())
    {
        sum = hn::MulAdd(load(a + i), load(b + i), sum);
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
}

template<class Real>
const CpuKernels<Real>& kernels()
{
    static const CpuKernels<Real> table = { lanesOf<Real>(), p2m<Real>,       l2p<Real>,
                                            p2p<Real>,       multiply<Real>,  products<Real>,
                                            contract<Real>,  transform<Real>, dot<Real>,
                                            exactDot<Real> };
    return table;
}
const CpuKernels<float>& kernelsFloat()
{
    return kernels<float>();
}
const CpuKernels<double>& kernelsDouble()
{
    return kernels<double>();
}
const char* targetName()
{
    return hwy::TargetName(HWY_TARGET);
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farfield
{

HWY_EXPORT(kernelsFloat);
HWY_EXPORT(kernelsDouble);
HWY_EXPORT(targetName);

const char* cpuTargetName()
{
    return HWY_DYNAMIC_DISPATCH(targetName)();
}

template<>
const CpuKernels<float>& cpuKernels()
{
    return HWY_DYNAMIC_DISPATCH(kernelsFloat)();
}

template<>
const CpuKernels<double>& cpuKernels()
{
    return HWY_DYNAMIC_DISPATCH(kernelsDouble)();
}

template<class Real>
ExpansionTables<Real>::ExpansionTables(int p, double unit) :
    order(p), inverseUnit(static_cast<Real>(1 / unit))
{
    const MonicRecurrence monic(p);
    scale.assign(monic.scale.begin(), monic.scale.end());
    beta.assign(monic.beta.begin(), monic.beta.end());
    for (auto& axis : gradient)
    {
        axis.assign(p * p, GradientEntry{ { 0, 0 }, { 0, 0 } });
    }
    // d phi / dx in nm^-1: phi = sum_i L_i u_i(b / unit) / unit
    std::vector<int> used(3 * p * p, 0);
    for (const DerivativeTerm& t : derivativeTerms(p))
    {
        GradientEntry& entry = gradient[t.axis][t.to];
        int& k               = used[t.axis * p * p + t.to];
        entry.source[k]      = t.from;
        entry.value[k]       = static_cast<Real>(t.value * monic.scale[t.to] / (unit * unit));
        k++;
    }
}

template<class Real>
void NearForces<Real>::resize(int n)
{
    // kernels read whole vectors
    const int size = n + c_slotPadding;
    if (size != size_)
    {
        size_ = 0;
        for (auto* component : { &x, &y, &z })
        {
            component->reset(new Real[size]);
        }
        size_ = size;
    }
    touched.assign(n / c_chunk + 1, 0);
    energy = 0;
    std::fill(std::begin(virial), std::end(virial), 0.0);
}

template<class Real>
void NearForces<Real>::touch(int begin, int end)
{
    for (int chunk = begin / c_chunk; chunk <= (end - 1) / c_chunk; chunk++)
    {
        if (!touched[chunk])
        {
            touched[chunk]  = 1;
            const int first = chunk * c_chunk;
            const int count = std::min(c_chunk, size_ - first);
            for (auto* component : { &x, &y, &z })
            {
                std::fill_n(component->get() + first, count, Real(0));
            }
        }
    }
}

template struct ExpansionTables<float>;
template struct ExpansionTables<double>;
template struct NearForces<float>;
template struct NearForces<double>;

} // namespace farfield
#endif
