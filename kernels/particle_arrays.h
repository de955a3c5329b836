/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges, positions and forces of the caller's particles, in device memory.
 */
#ifndef FARFIELD_KERNELS_PARTICLE_ARRAYS_H
#define FARFIELD_KERNELS_PARTICLE_ARRAYS_H

#include <algorithm>
#include <vector>

#include "operators/scaled_charges.h"
#include "ranks/device_plan.h"
#include "runtime/device.h"

namespace farfield
{

//! Arrays in the caller's order. Those of the caller are used where they are in device memory.
template<class Real>
class ParticleArrays
{
public:
    /*! \brief Takes charges; sets the number of particles. Where there is no memory for them, all
     *         stays as it was. */
    void setCharges(const ScaledCharges<Real>& charges, cudaStream_t stream)
    {
        const std::vector<int> order = charges.order();
        const auto n                 = static_cast<int>(order.size());
        setCharges(charges.q.data(), order.data(), { n, n, charges.count() }, stream);
        check(cudaStreamSynchronize(stream), "copying charges to the GPU");
    }
    //! The same of a plan of ranks.
    void setCharges(const DevicePlan<Real>& plan, cudaStream_t stream)
    {
        setCharges(plan.q(), plan.order(), plan.counts(), stream);
    }
    //! Copies other scaled charges, of as many particles, of which all take part as before.
    void copyCharges(const DeviceBuffer<Real>& scaled, cudaStream_t stream)
    {
        copyAsync(q_.data(), scaled.data(), scaled.size(), stream, "copying charges");
    }
    //! Takes other charges, of as many particles of which all take part, and gives its own.
    void exchangeCharges(DeviceBuffer<Real>* q) { std::swap(q_, *q); }
    const ParticleCounts& counts() const { return counts_; }
    int size() const { return counts_.all; }
    int own() const { return counts_.own; }
    int takingPart() const { return counts_.takingPart; }
    const Real* q() const { return q_.data(); }
    //! [n] Those that take part, ascending, then the others; device memory.
    const int* order() const { return order_.data(); }
    //! Ours that do not take part, ascending; device memory.
    const int* idle() const { return order_.data() + takingPart(); }
    int idleCount() const { return size() - takingPart(); } // all ghosts take part

    //! \param[in] x  [n][3] device memory
    void usePositions(const Real* x) { positions_ = x; }
    //! \param[in] x  [own][3] host memory
    void copyPositions(const Real* x, cudaStream_t stream)
    {
        x_.resize(values());
        copyAsync(x_.data(), x, x_.size(), stream, "copying positions to the GPU");
        positions_ = x_.data();
    }
    //! [n][3] of this evaluation, with those of ghosts.
    const Real* positions() const { return positions_; }

    //! On the device and on the host.
    void makeRoomForForces()
    {
        forces_.resize(values());
        onHost_.resize(values());
    }
    //! [own][3] room for forces.
    Real* forces()
    {
        forces_.resize(values());
        return forces_.data();
    }
    //! [own] room for potentials.
    Real* potentials()
    {
        potentials_.resize(own());
        return potentials_.data();
    }
    //! Brings potentials() to the host; they are there when the stream has come to its end.
    void fetchPotentials(cudaStream_t stream)
    {
        potentialsOnHost_.resize(own());
        copyAsync(potentialsOnHost_.data(),
                  potentials_.data(),
                  own(),
                  stream,
                  "copying potentials from the GPU");
    }
    //! Gives them to the caller.
    void deliverPotentials(Real* potentials) const
    {
        std::copy_n(potentialsOnHost_.data(), own(), potentials);
    }
    //! Brings forces() to the host; they are there when the stream has come to its end.
    void fetchForces(cudaStream_t stream)
    {
        onHost_.resize(values());
        copyAsync(onHost_.data(), forces_.data(), values(), stream, "copying forces from the GPU");
    }
    //! Adds them to the caller's, or writes over those.
    void deliverForces(Real* forces, bool replace) const
    {
        for (size_t i = 0; i < values(); i++)
        {
            forces[i] = (replace ? Real(0) : forces[i]) + onHost_.data()[i];
        }
    }
    //! Copies positions to where copyPositions() does, and waits. \returns these
    const Real* place(const Real* x, const Stream& stream)
    {
        x_.upload(x, values(), stream);
        stream.synchronize();
        return x_.data();
    }

private:
    size_t values() const { return 3 * static_cast<size_t>(own()); }
    //! From host or device memory.
    void
    setCharges(const Real* q, const int* order, const ParticleCounts& counts, cudaStream_t stream)
    {
        const auto n = static_cast<size_t>(counts.all);
        if (n > order_.room())
        {
            DeviceBuffer<int> larger;
            larger.resize(n);
            q_.resize(n);
            order_ = std::move(larger);
        }
        q_.resize(n);
        order_.resize(n);
        copyAsync(q_.data(), q, n, stream, "copying charges");
        copyAsync(order_.data(), order, n, stream, "copying who takes part");
        counts_ = counts;
    }

    ParticleCounts counts_;
    const Real* positions_ = nullptr;
    DeviceBuffer<Real> q_, x_, forces_, potentials_;
    DeviceBuffer<int> order_;
    PinnedBuffer<Real> onHost_, potentialsOnHost_;
};

} // namespace farfield

#endif
