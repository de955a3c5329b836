/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "helpers/near_field_part.h"

#include <string>

namespace farfield
{

template<class Real>
NearFieldPart<Real>::NearFieldPart(int device, bool reproducible) :
    device_(device), reproducible_(reproducible), nearField_(reproducible)
{
    bounds_.resize(2);
    totals_.resize(1);
    totals_.clear(main_);
    scratch_.resize(main_);
    main_.synchronize();
}

template<class Real>
void NearFieldPart<Real>::resize(const ParticleCounts& counts, int cells)
{
    const OnDevice scope(device_);
    const auto n = static_cast<size_t>(counts.all);
    q_.resize(n);
    order_.resize(n);
    x_.resize(3 * n);
    nearField_.resize(counts.takingPart);
    nearField_.forgetOccupancy(0, 0, false);
    isSorted_ = cells > 0 && counts.takingPart > 0;
    if (isSorted_)
    {
        cells_.resize(counts.takingPart, counts.all, counts.own, cells, false);
    }
    counts_ = counts;
}

template<class Real>
void NearFieldPart<Real>::setParticles(const ParticleArrays<Real>& home)
{
    const OnDevice scope(device_);
    const auto n = static_cast<size_t>(counts_.all);
    q_.upload(home.q(), n, main_);
    order_.upload(home.order(), n, main_);
    if (isSorted_)
    {
        cells_.setParticles(order_.data(), main_);
    }
}

template<class Real>
void NearFieldPart<Real>::adoptEvaluation(const DeviceCells<Real>& home)
{
    if (isSorted_)
    {
        const OnDevice scope(device_);
        cells_.adoptEvaluation(home, main_);
    }
}

template<class Real>
void NearFieldPart<Real>::synchronize() const
{
    const OnDevice scope(device_);
    check(cudaStreamSynchronize(main_),
          ("waiting for the helper device " + std::to_string(device_)).c_str());
}

template<class Real>
void NearFieldPart<Real>::reserveExclusions(int n, size_t partners)
{
    const OnDevice scope(device_);
    nearField_.exclusions().reserve(n, partners);
}

template<class Real>
void NearFieldPart<Real>::setExclusions(const DeviceExclusions<Real>& home, int n)
{
    const OnDevice scope(device_);
    nearField_.exclusions().copy(home, n, main_);
}

template<class Real>
void NearFieldPart<Real>::makeReady(const DeviceNearField<Real>& home)
{
    const OnDevice scope(device_);
    nearField_.adoptOccupancy(home, &cells_);
}

template<class Real>
HelperInput<Real> NearFieldPart<Real>::input()
{
    return { x_.data(), bounds_.data(), totals_.data() };
}

template<class Real>
void NearFieldPart<Real>::evaluate(const NearEvaluation& evaluation,
                                   const Event& sent,
                                   const HelperOutput<Real>& to)
{
    const OnDevice scope(device_);
    const NearGrid& where = evaluation.where;
    sent.holdBack(main_);
    placed_.record(main_);
    placed_.holdBack(excluded_);
    // the solver's GPU subtracts excluded pairs: here they are marked for those that are left out
    nearField_.exclusions().subtract(where.box,
                                     where.closeDistance,
                                     x_.data(),
                                     q_.data(),
                                     counts_.all,
                                     counts_.own,
                                     { NearSums::None, nullptr, nullptr },
                                     excluded_);
    marked_.record(excluded_);
    cells_.sort(where.grid,
                where.frame,
                evaluation.position,
                {},
                x_.data(),
                q_.data(),
                nearField_.forces(),
                reproducible_,
                main_);
    nearField_.list(&cells_, where, main_);
    marked_.holdBack(main_);
    nearField_.exclusions().findClose(cells_.particles(), main_);
    const CellShare share = { bounds_.data(), evaluation.parts };
    nearField_.p2p(cells_, where, { evaluation.wanted, totals_.data(), &scratch_ }, share, main_);
    deliver(cells_.particles(),
            order_.data(),
            nearField_.forces(),
            totals_.data(),
            where.grid,
            where.ws,
            nearField_.visited(cells_, where.grid, share),
            to,
            main_);
    done_.record(main_);
}

template class NearFieldPart<float>;
template class NearFieldPart<double>;

} // namespace farfield
