/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The sources of a cell for P2P, copied side by side, and their forces back.
 *
 *  Compiled once per instruction set, see cpu_kernels.cpp.
 */
#if defined(FARFIELD_CPU_P2P_STAGING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FARFIELD_CPU_P2P_STAGING_INL_H
#undef FARFIELD_CPU_P2P_STAGING_INL_H
#else
#define FARFIELD_CPU_P2P_STAGING_INL_H
#endif

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "hwy/highway.h"

#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farfield
{
namespace HWY_NAMESPACE
{

//! Roots of P2P carry this factor, and charges of sources its inverse cube, see scaledInverseRoot().
template<class Real>
constexpr Real c_rootScale = sizeof(Real) == 4 ? 2 : 1;

//! Sources of one cell: its own particles first, then those of others.
template<class Real>
struct Staged
{
    Real *x, *y, *z, *q, *fx, *fy, *fz;
    Real* potential; //!< where it is wanted
    Real* width;     //!< as in NearFunctionTask
    int count;       //!< sources
    int own;         //!< particles of the cell itself
    int others;      //!< where sources begin, a multiple of the lanes; 0: all behind a target are
};

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
    /*! \param[in] displacements  of the near cells
     *  \param[in] isRelative     as in NearTask
     *  \param[in] start          first particle of each cell */
    Stretches(const Grid& grid,
              std::vector<Int3> displacements,
              bool isRelative,
              const int* start) :
        grid_(grid),
        start_(start), all_(std::move(displacements)), stretches_(all_.size())
    {
        for (const Int3& D : all_)
        {
            shifts_.push_back(isRelative ? grid.displacement(D) : Vec3(Vec3::Zero()));
            for (const int component : D)
            {
                reach_ = std::max(reach_, std::abs(component));
            }
        }
    }
    //! Those of P2P. \param[in] third  whether the third law leaves half of the near cells
    Stretches(const NearTask<Real>& task, const int* start, bool third) :
        Stretches(*task.grid,
                  third ? forwardHalf(nearDisplacements(task.ws)) : nearDisplacements(task.ws),
                  task.isRelative,
                  start)
    {
    }
    //! Lists those of a cell. \param[in] position  of the first particle among the staged ones
    void find(int cell, int position)
    {
        find(cell, position, [](int /*displacement*/, int /*neighbour*/) { return true; });
    }
    //! The same of those for which isWanted() is true, which gets the index of a displacement and a cell.
    template<class IsWanted>
    void find(int cell, int position, const IsWanted& isWanted)
    {
        const Grid& grid    = grid_;
        const int ws        = reach_;
        const Int3 n        = { grid.H()[0][0], grid.H()[1][1], grid.H()[2][2] };
        const Int3 c        = grid.cell(cell);
        const bool interior = c[0] >= ws && c[1] >= ws && c[2] >= ws && c[0] < n[0] - ws
                              && c[1] < n[1] - ws && c[2] < n[2] - ws;
        end_  = position;
        used_ = 0;
        for (int k = 0; k < static_cast<int>(all_.size()); k++)
        {
            const Int3 to       = { c[0] + all_[k][0], c[1] + all_[k][1], c[2] + all_[k][2] };
            const int neighbour = grid.index(interior ? to : grid.reduce(to));
            const int first     = start_[neighbour];
            const int count     = start_[neighbour + 1] - first;
            if (count > 0 && isWanted(k, neighbour))
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
    //! What is added to positions in a neighbour for those that the cell sees, nm.
    const Vec3& shift(const Stretch& t) const { return shifts_[t.displacement]; }

private:
    static std::vector<Int3> forwardHalf(std::vector<Int3> all)
    {
        all.resize(1 + (all.size() - 1) / 2);
        return all;
    }

    const Grid& grid_;
    const int* start_;
    std::vector<Int3> all_; //!< of the cell itself and of those that it meets
    int reach_ = 0;         //!< the largest component of any
    std::vector<Vec3> shifts_;
    std::vector<Stretch> stretches_;
    std::vector<Stretch> byParticle_; //!< by their first particles
    int used_ = 0, end_ = 0;
};

//! Room for the sources of a cell, aligned to vectors.
template<class Real>
Staged<Real> stagedRoom(int total, int own, int others, std::vector<Real>* room)
{
    const int L = lanesOf<Real>();
    // room for whole vectors behind the last source, and for a row of padding
    const size_t capacity = static_cast<size_t>(((total + L - 1) / L + 2) * L);
    if (room->size() < 9 * capacity + L)
    {
        room->resize(18 * capacity + L);
    }
    Real* base = alignedIn(room);
    return { base,
             base + capacity,
             base + 2 * capacity,
             base + 3 * capacity,
             base + 4 * capacity,
             base + 5 * capacity,
             base + 6 * capacity,
             base + 7 * capacity,
             base + 8 * capacity,
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

//! Copies sources to one place, in the frame of the cell that sees them, and clears the
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

} // namespace HWY_NAMESPACE
} // namespace farfield
HWY_AFTER_NAMESPACE();

#endif
