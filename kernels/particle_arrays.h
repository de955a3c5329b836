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
#include "runtime/device.h"

namespace farfield
{

//! Arrays in the caller's order. Those of the caller are used where they are in device memory.
template<class Real>
class ParticleArrays
{
public:
    /*! \brief Takes charges; sets the number of particles. Where there is no memory for them, all
     *         stays as it was.
     *  \param[in] own  those from here on are ghosts */
    void setCharges(const ScaledCharges<Real>& charges, int own, cudaStream_t stream)
    {
        const std::vector<int> order = charges.order();
        if (order.size() > order_.size())
        {
            DeviceBuffer<int> larger;
            larger.resize(order.size());
            q_.resize(order.size());
            order_ = std::move(larger);
        }
        q_.upload(charges.q.data(), charges.q.size(), stream);
        order_.upload(order.data(), order.size(), stream);
        n_          = static_cast<int>(order.size());
        own_        = own;
        takingPart_ = charges.count();
        // ghosts are the last of the others, too
        idle_ = static_cast<int>(std::count_if(order.begin() + takingPart_,
                                               order.end(),
                                               [own](int particle) { return particle < own; }));
    }
    int size() const { return n_; }
    int own() const { return own_; }
    int takingPart() const { return takingPart_; } //!< see ScaledCharges
    const Real* q() const { return q_.data(); }
    //! [n] Those that take part, ascending, then the others; device memory.
    const int* order() const { return order_.data(); }
    //! Ours that do not take part, ascending; device memory.
    const int* idle() const { return order_.data() + takingPart_; }
    int idleCount() const { return idle_; }

    //! \param[in] x  [n][3] device memory
    void usePositions(const Real* x) { positions_ = x; }
    //! \param[in] x  [own][3] host memory
    void copyPositions(const Real* x, cudaStream_t stream)
    {
        x_.resize(values());
        check(cudaMemcpyAsync(x_.data(), x, x_.size() * sizeof(Real), cudaMemcpyDefault, stream),
              "copying positions to the GPU");
        positions_ = x_.data();
    }
    //! [n][3] of this evaluation, with those of ghosts.
    const Real* positions() const { return positions_; }

    //! [own][3] room for forces.
    Real* forces()
    {
        forces_.resize(values());
        return forces_.data();
    }
    //! [own] room for potentials.
    Real* potentials()
    {
        potentials_.resize(own_);
        return potentials_.data();
    }
    //! Brings potentials() to the host; they are there when the stream has come to its end.
    void fetchPotentials(cudaStream_t stream)
    {
        potentialsOnHost_.resize(own_);
        check(cudaMemcpyAsync(potentialsOnHost_.data(),
                              potentials_.data(),
                              own_ * sizeof(Real),
                              cudaMemcpyDeviceToHost,
                              stream),
              "copying potentials from the GPU");
    }
    //! Gives them to the caller.
    void deliverPotentials(Real* potentials) const
    {
        std::copy_n(potentialsOnHost_.data(), own_, potentials);
    }
    //! Brings forces() to the host; they are there when the stream has come to its end.
    void fetchForces(cudaStream_t stream)
    {
        onHost_.resize(values());
        check(cudaMemcpyAsync(onHost_.data(),
                              forces_.data(),
                              values() * sizeof(Real),
                              cudaMemcpyDeviceToHost,
                              stream),
              "copying forces from the GPU");
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
    size_t values() const { return 3 * static_cast<size_t>(own_); }

    int n_ = 0, own_ = 0, takingPart_ = 0, idle_ = 0;
    const Real* positions_ = nullptr;
    DeviceBuffer<Real> q_, x_, forces_, potentials_;
    DeviceBuffer<int> order_;
    PinnedBuffer<Real> onHost_, potentialsOnHost_;
};

} // namespace farfield

#endif
