/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks/shared_closure.h"

namespace farfield
{

template<class Real>
void SharedClosure<Real>::plan(const Regions& regions,
                               const Ranks& ranks,
                               const LevelView<Real>& level,
                               DevicePeriodicM2l<Real>* m2l,
                               cudaStream_t stream)
{
    const int n  = m2l->coefficients();
    const int me = ranks.rank();
    share_       = { me, ranks.size() };
    std::vector<std::vector<int>> waves, slots;
    for (int r = 0; r < ranks.size(); r++)
    {
        waves.push_back(m2l->waves({ r, ranks.size() }));
        slots.push_back(regions.slots(r));
    }
    ours_.plan(placesOfOthers(share_, me, n, waves, sizeof(Complex<Real>)), stream);
    theirs_.plan(fieldsOfOthers(share_, me, n, waves, sizeof(Complex<Real>)), stream);
    localsOut_.plan(placesOfOthers(share_, me, n, slots, sizeof(Real)), stream);
    localsIn_.plan(fieldsOfOthers(share_, me, n, slots, sizeof(Real)), stream);
    m2l->prepare(share_);
    // where none of our particles come to be most coefficients are never set, and sums visit all cells
    check(cudaMemsetAsync(level.L, 0, static_cast<size_t>(n) * level.stride * sizeof(Real), stream),
          "clearing local expansions");
}

template<class Real>
void SharedClosure<Real>::close(const Real* multipoles,
                                const LevelView<Real>& level,
                                double virialScale,
                                double* virial,
                                DevicePeriodicM2l<Real>* m2l,
                                DeviceCommunicator* communicator,
                                cudaStream_t stream)
{
    m2l->forward(multipoles, share_, stream);

    ours_.pack(m2l->spectrum(), m2l->spectrumStride(), nullptr, stream);
    ours_.exchange(&theirs_, communicator, stream);
    theirs_.unpack(m2l->spectrum(), m2l->spectrumStride(), stream);

    if (virial != nullptr)
    {
        m2l->contract(share_, virialScale, virial, stream);
    }
    m2l->multiply(share_, stream);

    theirs_.pack(m2l->spectrum(), m2l->spectrumStride(), nullptr, stream);
    theirs_.exchange(&ours_, communicator, stream);
    ours_.unpack(m2l->spectrum(), m2l->spectrumStride(), stream);

    const int first = share_.begin(m2l->coefficients());
    m2l->backward(level.L + static_cast<size_t>(first) * level.stride, share_, stream);

    localsOut_.pack(level.L, level.stride, nullptr, stream);
    localsOut_.exchange(&localsIn_, communicator, stream);
    localsIn_.unpack(level.L, level.stride, stream);
}

template class SharedClosure<float>;
template class SharedClosure<double>;

} // namespace farfield
