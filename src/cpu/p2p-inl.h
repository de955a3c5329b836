/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2P: the near field of a cell with the third law, and of ghosts without it.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_P2P_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_P2P_INL_H
#undef FARFIELD_CPU_P2P_INL_H
#else
#define FARFIELD_CPU_P2P_INL_H
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"

#include "cpu/simd-inl.h"

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
template<class Real>
constexpr Real c_rootScale = sizeof(Real) == 4 ? 2 : 1;

//! Sources of one cell: its own particles first, then those of others.
template<class Real>
struct Staged
{
    Real *x, *y, *z, *q, *fx, *fy, *fz;
    Real* potential; //!< where it is wanted
    int count;       //!< sources
    int own;         //!< particles of the cell itself
    int others;      //!< where sources begin, a multiple of the lanes; 0: all behind a target are
};

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

template<Besides besides, bool Third, class Real>
double cellForces(const NearTask<Real>& task, const Staged<Real>& s, NearForces<Real>* forces)
{
    const auto block = [&](auto targets, int i) HWY_ATTR
    {
        constexpr int c_targets = decltype(targets)::value;
        if (task.close.offsets != nullptr)
        {
            ClosePair* begin = forces->closePairs.data() + forces->closePairsOf[i];
            ClosePair* end   = forces->closePairs.data() + forces->closePairsOf[i + c_targets];
            if (begin != end)
            {
                std::sort(begin,
                          end,
                          [](const ClosePair& a, const ClosePair& b)
                          { return a.source < b.source; });
                return targetBlock<c_targets, besides, Third, true>(task, s, i, begin, end);
            }
        }
        return targetBlock<c_targets, besides, Third, false>(task, s, i, nullptr, nullptr);
    };
    // blocks go to the parts in turn: a target has fewer sources behind it than those before
    constexpr int c_block = 4;
    const int whole       = s.own / c_block;
    double energy         = 0;
    for (int b = task.part; b < whole; b += task.parts)
    {
        energy += block(std::integral_constant<int, c_block>(), c_block * b);
    }
    if (whole % task.parts != task.part)
    {
        return energy;
    }
    int i = c_block * whole;
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

//! The near cells of a cell that hold particles, the cell itself first, with a place for each.
template<class Real>
class Stretches
{
public:
    //! \param[in] start  first particle of each cell
    //! \param[in] third  whether the third law leaves half of the near cells
    Stretches(const NearTask<Real>& task, const int* start, bool third) :
        task_(task), start_(start), all_(nearDisplacements(task.ws)),
        count_(third ? 1 + (static_cast<int>(all_.size()) - 1) / 2 : static_cast<int>(all_.size())),
        stretches_(count_)
    {
        for (int k = 0; k < count_; k++)
        {
            shifts_.push_back(task.grid->displacement(all_[k]));
        }
    }
    //! Lists those of a cell. \param[in] position  of the first particle among the staged ones
    void find(int cell, int position)
    {
        const Grid& grid    = *task_.grid;
        const int ws        = task_.ws;
        const Int3 n        = { grid.H()[0][0], grid.H()[1][1], grid.H()[2][2] };
        const Int3 c        = grid.cell(cell);
        const bool interior = c[0] >= ws && c[1] >= ws && c[2] >= ws && c[0] < n[0] - ws
                              && c[1] < n[1] - ws && c[2] < n[2] - ws;
        end_  = position;
        used_ = 0;
        for (int k = 0; k < count_; k++)
        {
            const Int3 to       = { c[0] + all_[k][0], c[1] + all_[k][1], c[2] + all_[k][2] };
            const int neighbour = grid.index(interior ? to : grid.reduce(to));
            const int first     = start_[neighbour];
            const int count     = start_[neighbour + 1] - first;
            if (count > 0)
            {
                stretches_[used_++] = { first, count, end_, k };
                end_ += count;
            }
        }
    }
    //! Makes ready for withParticle(), after find().
    void orderByParticle()
    {
        byParticle_.assign(begin(), end());
        std::sort(byParticle_.begin(),
                  byParticle_.end(),
                  [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
    }
    //! Calls a function for the stretches that hold a particle: in small boxes there are several.
    template<class Function>
    void withParticle(int particle, const Function& function) const
    {
        auto t = std::upper_bound(byParticle_.begin(),
                                  byParticle_.end(),
                                  particle,
                                  [](int p, const Stretch& s) { return p < s.first; });
        while (t != byParticle_.begin())
        {
            --t;
            if (particle >= t->first + t->count)
            {
                break;
            }
            function(*t);
        }
    }
    int endOfStaged() const { return end_; } //!< position behind all of them
    const Stretch* begin() const { return stretches_.data(); }
    const Stretch* end() const { return stretches_.data() + used_; }
    //! Position of a neighbour's centre relative to the cell's, nm.
    const Vec3& shift(const Stretch& t) const { return shifts_[t.displacement]; }

private:
    const NearTask<Real>& task_;
    const int* start_;
    std::vector<Int3> all_;
    int count_; //!< of these, the cell itself and the half that the third law leaves, or all
    std::vector<Vec3> shifts_;
    std::vector<Stretch> stretches_;
    std::vector<Stretch> byParticle_; //!< by their first particles
    int used_ = 0, end_ = 0;
};

/*! \brief Finds the pairs of a cell that must not interact among its staged sources.
 *
 *  In small boxes there are several images of a source.
 *  \param[in] own  particles of the cell itself, the targets */
template<class Real>
void findClosePairs(const ClosePartners& close,
                    const Stretch& own,
                    Stretches<Real>* stretches,
                    NearForces<Real>* forces)
{
    stretches->orderByParticle();
    forces->closePairs.clear();
    forces->closePairsOf.resize(own.count + 1);
    for (int i = 0; i < own.count; i++)
    {
        forces->closePairsOf[i] = static_cast<int>(forces->closePairs.size());
        for (int k = close.offsets[own.first + i]; k < close.offsets[own.first + i + 1]; k++)
        {
            const int partner = close.partners[k];
            stretches->withParticle(partner,
                                    [&](const Stretch& t)
                                    {
                                        const int source = t.position + partner - t.first;
                                        // those before are targets that have been dealt with
                                        if (source > i)
                                        {
                                            forces->closePairs.push_back({ i, source });
                                        }
                                    });
        }
    }
    forces->closePairsOf[own.count] = static_cast<int>(forces->closePairs.size());
}

//! Room for the sources of a cell, aligned to vectors.
template<class Real>
Staged<Real> stagedRoom(int total, int own, int others, std::vector<Real>* room)
{
    const int L = lanesOf<Real>();
    // room for whole vectors behind the last source, and for a row of padding
    const size_t capacity = static_cast<size_t>(((total + L - 1) / L + 2) * L);
    if (room->size() < 8 * capacity + L)
    {
        room->resize(16 * capacity + L);
    }
    const size_t address = reinterpret_cast<size_t>(room->data());
    const size_t align   = L * sizeof(Real);
    Real* base           = room->data() + ((align - address % align) % align) / sizeof(Real);
    return { base,
             base + capacity,
             base + 2 * capacity,
             base + 3 * capacity,
             base + 4 * capacity,
             base + 5 * capacity,
             base + 6 * capacity,
             base + 7 * capacity,
             total,
             own,
             others };
}

//! A row that is padding: far away, without a charge.
template<class Real>
HWY_INLINE void padStaged(const Staged<Real>& s, int begin, int end)
{
    for (int i = begin; i < end; i++)
    {
        s.x[i] = s.y[i] = s.z[i] = Real(1e3);
        s.q[i]                   = 0;
    }
}

//! Copies particles of a cell to their place among the staged ones. \param[in] shift  of the cell
template<class Real>
HWY_INLINE void
stageStretch(const Particles<Real>& p, const Stretch& t, const Vec3& shift, const Staged<Real>& s)
{
    const Tag<Real> d;
    const int L            = lanesOf<Real>();
    const Real cube        = c_rootScale<Real> * c_rootScale<Real> * c_rootScale<Real>;
    const auto sourceScale = hn::Set(d, 1 / cube);
    const auto dx          = hn::Set(d, static_cast<Real>(shift[0]));
    const auto dy          = hn::Set(d, static_cast<Real>(shift[1]));
    const auto dz          = hn::Set(d, static_cast<Real>(shift[2]));
    // whole vectors: what is written too much is overwritten by the next stretch
    for (int i = 0; i < t.count; i += L)
    {
        hn::StoreU(hn::Add(hn::LoadU(d, p.x + t.first + i), dx), d, s.x + t.position + i);
        hn::StoreU(hn::Add(hn::LoadU(d, p.y + t.first + i), dy), d, s.y + t.position + i);
        hn::StoreU(hn::Add(hn::LoadU(d, p.z + t.first + i), dz), d, s.z + t.position + i);
        hn::StoreU(hn::Mul(sourceScale, hn::LoadU(d, p.q + t.first + i)), d, s.q + t.position + i);
    }
}

//! Copies sources to one place, relative to the centre of the cell that sees them, and clears the
//! forces and potentials of all that is staged.
template<class Real>
HWY_INLINE void stage(const Particles<Real>& p,
                      const Stretches<Real>& stretches,
                      bool potentials,
                      const Staged<Real>& s)
{
    const Tag<Real> d;
    const int L     = lanesOf<Real>();
    const int total = s.count;
    for (const Stretch& t : stretches)
    {
        stageStretch(p, t, stretches.shift(t), s);
    }
    padStaged(s, total, total + L);
    for (int i = 0; i < total + L; i += L)
    {
        hn::Store(hn::Zero(d), d, s.fx + i);
        hn::Store(hn::Zero(d), d, s.fy + i);
        hn::Store(hn::Zero(d), d, s.fz + i);
    }
    if (potentials)
    {
        std::fill_n(s.potential, total + L, Real(0));
    }
}

//! Adds the forces and potentials of a staged stretch to those of its particles.
template<class Real>
HWY_INLINE void
addStaged(const Stretch& t, const Staged<Real>& s, bool potentials, NearForces<Real>* forces)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
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
    if (potentials)
    {
        add(forces->potential.get() + t.first, s.potential + t.position);
    }
}

/*! \brief Adds the virial of a cell.
 *
 *  The forces in the buffer are those of its pairs alone, so sum r_ij (x) f_ij = sum x (x) f. */
template<class Real>
HWY_INLINE void addVirial(const Staged<Real>& s, double* virial)
{
    const Tag<Real> d;
    const int L = lanesOf<Real>();
    TensorSum<Real> sum;
    for (int i = 0; i < s.count; i += L)
    {
        // behind the last source there is padding of the first vector, without force
        sum.add(hn::Load(d, s.x + i),
                hn::Load(d, s.y + i),
                hn::Load(d, s.z + i),
                hn::Load(d, s.fx + i),
                hn::Load(d, s.fy + i),
                hn::Load(d, s.fz + i));
    }
    sum.addVirial(virial);
}

//! The pairs of what is staged. \returns the energy
template<class Real>
double stagedForces(const NearTask<Real>& task, const Staged<Real>& s, NearForces<Real>* forces)
{
    return task.potentials ? cellForces<Besides::Potentials, true>(task, s, forces)
           : task.energy   ? cellForces<Besides::Energy, true>(task, s, forces)
                           : cellForces<Besides::Nothing, true>(task, s, forces);
}

template<class Real>
void p2p(const NearTask<Real>& task, int begin, int end, NearForces<Real>* forces)
{
    Stretches<Real> stretches(task, task.particles.start, true);
    for (int item = begin; item < end; item++)
    {
        stretches.find(task.cells[item], 0);
        const Staged<Real> s =
                stagedRoom(stretches.endOfStaged(), stretches.begin()->count, 0, &forces->staging);
        stage(task.particles, stretches, task.potentials, s);
        if (task.close.offsets != nullptr)
        {
            findClosePairs(task.close, *stretches.begin(), &stretches, forces);
        }
        forces->energy += stagedForces(task, s, forces);
        for (const Stretch& t : stretches)
        {
            addStaged(t, s, task.potentials, forces);
        }
        if (task.virial)
        {
            addVirial(s, forces->virial);
        }
    }
}

template<class Real>
void p2pOfGhosts(const NearTask<Real>& task,
                 const Particles<Real>& ghosts,
                 int begin,
                 int end,
                 NearForces<Real>* forces)
{
    const int L      = lanesOf<Real>();
    const int* start = task.particles.start;
    Stretches<Real> stretches(task, ghosts.start, false);
    for (int item = begin; item < end; item++)
    {
        const int cell    = task.cells[item];
        const Stretch own = { start[cell], start[cell + 1] - start[cell], 0, 0 };
        const int others  = (own.count + L - 1) / L * L;
        stretches.find(cell, others);
        if (stretches.begin() == stretches.end())
        {
            continue;
        }
        const Staged<Real> s =
                stagedRoom(stretches.endOfStaged(), own.count, others, &forces->staging);
        stageStretch(task.particles, own, Vec3::Zero(), s);
        padStaged(s, own.count, others);
        stage(ghosts, stretches, task.potentials, s);
        if (task.close.offsets != nullptr)
        {
            findClosePairs(task.close, own, &stretches, forces);
        }
        // whoever has the ghosts sees the same pairs; forces on them are for the virial alone
        if (task.energy)
        {
            forces->energy += 0.5 * stagedForces(task, s, forces);
        }
        else
        {
            cellForces<Besides::Nothing, false>(task, s, forces);
        }
        addStaged(own, s, task.potentials, forces);
        if (task.virial)
        {
            double ofPairs[6] = { 0, 0, 0, 0, 0, 0 };
            addVirial(s, ofPairs);
            for (int c = 0; c < 6; c++)
            {
                forces->virial[c] += 0.5 * ofPairs[c];
            }
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
