/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "helpers/near_field_part.h"

#include <string>

namespace farfield
{

template<class Real>
NearFieldPart<Real>::NearFieldPart(int device) : device_(device)
{
    count_.resize(1);
    bounds_.resize(2);
    anyClose_.resize(1);
    totals_.resize(1);
    scratch_.resize(stream_);
    stream_.synchronize();
}

template<class Real>
void NearFieldPart<Real>::resize(const HelperRoom& room)
{
    const OnDevice scope(device_);
    xq_.resize(room.particles);
    forces_.resize(room.particles);
    start_.resize(static_cast<size_t>(room.cells) + 1);
    listed_.resize(room.cells);
    closeOf_.resize(room.excludesPairs ? room.particles : 0);
    terms_.resize(room.hasFunctions ? room.particles : 0);
}

template<class Real>
void NearFieldPart<Real>::synchronize() const
{
    const OnDevice scope(device_);
    check(cudaStreamSynchronize(stream_),
          ("waiting for the helper device " + std::to_string(device_)).c_str());
}

template<class Real>
void NearFieldPart<Real>::fetch(const DeviceNearTask<Real>& home)
{
    const OnDevice scope(device_);
    fetchCells(home,
               { xq_.data(),
                 forces_.data(),
                 start_.data(),
                 listed_.data(),
                 count_.data(),
                 bounds_.data(),
                 totals_.data() },
               stream_);
}

template<class Real>
void NearFieldPart<Real>::compute(const DeviceNearTask<Real>& home, const HelperOutput<Real>& to)
{
    const OnDevice scope(device_);
    // what is looked up for particles with many close partners alone stays where it is
    DeviceNearTask<Real> task  = home;
    task.particles.xq          = xq_.data();
    task.particles.start       = start_.data();
    task.occupied.cells        = home.occupied.cells != nullptr ? listed_.data() : nullptr;
    task.occupied.count        = count_.data();
    task.occupied.share.bounds = bounds_.data();
    task.results               = { home.results.wanted, totals_.data(), &scratch_ };
    if (home.exclusions.anyClose != nullptr)
    {
        fetchClose(task, home.exclusions, anyClose_.data(), closeOf_.data(), stream_);
        task.exclusions.anyClose = anyClose_.data();
        task.exclusions.closeOf  = closeOf_.data();
    }
    if (home.functions.any())
    {
        fetchTerms(task, home.functions.terms, terms_.data(), stream_);
        task.functions.terms = terms_.data();
    }
    p2p(task, forces_.data(), stream_);
    deliver(task, forces_.data(), to, stream_);
    done_.record(stream_);
}

template class NearFieldPart<float>;
template class NearFieldPart<double>;

} // namespace farfield
