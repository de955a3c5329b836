/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "helpers/near_field_part.h"

namespace farfield
{

template<class Real>
NearFieldPart<Real>::NearFieldPart(int device, bool reproducible, int parts) :
    device_(device), reproducible_(reproducible), parts_(parts), nearField_(reproducible)
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
    x_.resize(3 * static_cast<size_t>(counts.all));
    nearField_.resize(counts.takingPart);
    if (cells > 0 && counts.takingPart > 0)
    {
        cells_.resize(counts.takingPart, counts.all, counts.own, cells, false);
    }
}

template<class Real>
void NearFieldPart<Real>::setCharges(const ScaledCharges<Real>& charges)
{
    const OnDevice scope(device_);
    arrays_.setCharges(charges, main_);
}

template<class Real>
void NearFieldPart<Real>::setExclusions(const int* offsets, const int* partners, int n, int threads)
{
    const OnDevice scope(device_);
    nearField_.exclusions().set(offsets, partners, n, threads, main_);
}

template<class Real>
void NearFieldPart<Real>::setParticles()
{
    if (arrays_.takingPart() > 0)
    {
        const OnDevice scope(device_);
        cells_.setParticles(arrays_.order(), main_);
    }
}

template<class Real>
void NearFieldPart<Real>::forgetOccupancy(int cells, int usual)
{
    nearField_.forgetOccupancy(cells, usual, false);
}

template<class Real>
HelperInput<Real> NearFieldPart<Real>::input()
{
    return { x_.data(), bounds_.data(), totals_.data() };
}

template<class Real>
void NearFieldPart<Real>::evaluate(const NearEvaluation& evaluation,
                                   const Event& sent,
                                   const DeviceNearField<Real>& known,
                                   const HelperOutput<Real>& to)
{
    const OnDevice scope(device_);
    const NearGrid& where = evaluation.where;
    nearField_.adoptOccupancy(known, &cells_);
    sent.holdBack(main_);
    placed_.record(main_);
    placed_.holdBack(excluded_);
    // the solver's GPU subtracts excluded pairs: here they are marked for those that are left out
    nearField_.exclusions().subtract(where.box,
                                     where.closeDistance,
                                     x_.data(),
                                     arrays_.q(),
                                     arrays_.size(),
                                     arrays_.own(),
                                     { NearSums::None, nullptr, nullptr },
                                     excluded_);
    marked_.record(excluded_);
    cells_.sort(where.grid,
                where.frame,
                evaluation.position,
                {},
                x_.data(),
                arrays_.q(),
                nearField_.forces(),
                reproducible_,
                main_);
    nearField_.list(&cells_, where, main_);
    marked_.holdBack(main_);
    nearField_.exclusions().findClose(cells_.particles(), main_);
    const CellShare share = { bounds_.data(), parts_ };
    nearField_.p2p(cells_, where, { evaluation.wanted, totals_.data(), &scratch_ }, share, main_);
    deliver(cells_.particles(),
            arrays_.order(),
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
