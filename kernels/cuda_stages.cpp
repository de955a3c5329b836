/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cuda_backend.h"

#include <algorithm>

#include "runtime/matrix3.h"

namespace farfield
{

template<class Real>
void CudaBackend<Real>::sort()
{
    mustRepeat_          = false;
    const bool recording = isCapturing(far());
    if (wantedSums() != NearSums::None)
    {
        totals_.clear(far());
    }
    setPositions();
    if (ranks_)
    {
        // the far field does not wait for ghosts
        const Real* x = arrays_.positions();
        exchangePositions();
        sortInto(&ours_, x, nullptr, far());
    }
    sortInto(&cells_, arrays_.positions(), nearField_.forces(), sorting());
    if (!recording)
    {
        nearField_.findOccupancy(&cells_, sorting());
    }
    streams_.reach(Point::Sorted, sorting());
    listCells();
    startHelpers();
    if (tree().levels() > 1)
    {
        listFamilies(recording);
    }
    if (isRecordedByCaller())
    {
        history_.keepRecording();
    }
    if (recording || !onDevice_)
    {
        history_.addWithoutStep();
    }
    else
    {
        history_.add(this->task_.request.step);
    }
}

template<class Real>
void CudaBackend<Real>::exclusions()
{
    const cudaStream_t stream = streams_.excluded();
    streams_.awaitIn(stream, Point::Placed);
    if (replacesForces())
    {
        clearForces(arrays_.idle(), arrays_.idleCount(), forces(), stream);
    }
    const NearGrid where = nearGrid();
    // of sites it finds out which pairs are close, and no more is used
    const NearResults results =
            areSites() ? NearResults{ NearSums::None, nullptr, nullptr } : nearResults();
    nearField_.exclusions().subtract(where.box,
                                     where.closeDistance,
                                     nearField_.functions().given(),
                                     arrays_.positions(),
                                     arrays_.q(),
                                     arrays_.size(),
                                     arrays_.own(),
                                     results,
                                     stream);
    streams_.awaitIn(stream, Point::Sorted);
    if (areSites())
    {
        sites_.sort(cells_.particles(), farField_.rotation(), stream);
        nearField_.functions().sort(cells_.particles(), stream);
        streams_.reach(Point::ExcludedDone, stream);
        return;
    }
    nearField_.exclusions().findClose(cells_.particles(), stream);
    nearField_.functions().sort(cells_.particles(), stream);
    streams_.reach(Point::ExcludedDone, stream);
}

template<class Real>
void CudaBackend<Real>::nearFunction()
{
    if (areSites())
    {
        return; // with their near field
    }
    streams_.awaitIn(streams_.near(), Point::Listed);
    streams_.awaitIn(streams_.near(), Point::ExcludedDone);
    addFarther(nearField_.task(cells_, nearGrid(), nearResults()),
               fartherCells(),
               nearField_.forces(),
               streams_.near());
}

template<class Real>
void CudaBackend<Real>::p2p()
{
    streams_.awaitIn(streams_.near(), Point::Listed);
    streams_.awaitIn(streams_.near(), Point::ExcludedDone);
    if (areSites())
    {
        streams_.reach(Point::NearDone, streams_.near());
        return;
    }
    DeviceNearTask<Real> task = nearField_.task(cells_, nearGrid(), nearResults());
    if (NearFieldHelpers<Real>* const helpers = activeHelpers())
    {
        task = helpers->compute(task, streams_);
    }
    farfield::p2p(task, nearField_.forces(), streams_.near());
    streams_.reach(Point::NearDone, streams_.near());
}

template<class Real>
void CudaBackend<Real>::p2m()
{
    farField_.p2m(ours(), far());
    if (sites_.anyMoments())
    {
        streams_.awaitIn(far(), Point::NearDone); // they are sorted
        const int leaf = tree().leaf();
        sites_.addMultipoles(
                ours(), tree().view(leaf), static_cast<Real>(1 / tree().unit(leaf)), far());
    }
}

template<class Real>
void CudaBackend<Real>::m2l(int level)
{
    FarSums sums     = farSums();
    Real* ofAllRanks = nullptr;
    if (ranks_)
    {
        streams_.awaitIn(far(), Point::Placed); // exchanges are in turn
        ofAllRanks = ranks_->completeMultipoles(tree().view(level).M, isRecordedByCaller(), far());
        sums.deviatoric = ranks_->isFirst() ? sums.deviatoric : nullptr; // all of it
    }
    farField_.m2l(level, ofAllRanks, sums, far());
}

template<class Real>
void CudaBackend<Real>::l2p()
{
    if (areSites())
    {
        computeSites();
        if (tree().levels() > 1)
        {
            streams_.awaitIn(far(), Point::Watched);
        }
        return;
    }
    ForceArrays<Real> arrays = {};
    arrays.near              = nearField_.forces();
    arrays.nearPlace         = ranks_ ? cells_.particles().position : nullptr;
    arrays.excluded          = nearField_.exclusions().forces();
    copyTo(farField_.rotation(), arrays.rotation);
    arrays.replace = replacesForces();
    arrays.all     = forces();
    arrays.far     = this->task_.request.virial ? farForces_.data() : nullptr;
    arrays.poison  = ranks_ ? ranks_->poison() : tree().poison();
    if (this->fieldCap_ > 0)
    {
        arrays.fields       = totals_.fields();
        arrays.chargePerCap = static_cast<Real>(rootCoulomb_ / this->fieldCap_);
        arrays.largestIdle  = static_cast<Real>(largestIdle<Real>(rootCoulomb_));
    }
    if (NearFieldHelpers<Real>* const helpers = activeHelpers())
    {
        // beside the near field
        ForceArrays<Real> farAlone = {};
        farAlone.far = arrays.far = farForces_.data();
        farField_.l2p(ours(), netCharge_, farAlone, far());
        helpers->combine(nearField_.task(cells_, nearGrid(), nearResults()), arrays, streams_);
    }
    else
    {
        streams_.awaitIn(far(), Point::NearDone);
        farField_.l2p(ours(), netCharge_, arrays, far());
    }
    if (wantedSums() != NearSums::None)
    {
        farField_.sum(ours(), netCharge_, farForces_.data(), farSums(), far());
    }
    if (this->task_.potentials != nullptr)
    {
        addPotentials();
    }
    if (tree().levels() > 1)
    {
        streams_.awaitIn(far(), Point::Watched);
    }
}

template<class Real>
void CudaBackend<Real>::addPotentials()
{
    const int leaf = tree().leaf();
    check(cudaMemsetAsync(potentials(), 0, arrays_.size() * sizeof(Real), far()),
          "clearing potentials");
    PotentialInput<Real> input;
    input.particles   = cells_.particles();
    input.ofPairs     = cells_.ofPairs();
    input.where       = nearGrid();
    input.exclusions  = nearField_.exclusions().view();
    input.functions   = nearField_.functions().sorted();
    input.given       = nearField_.functions().given();
    input.farther     = fartherCells();
    input.x           = arrays_.positions();
    input.q           = arrays_.q();
    input.order       = farField_.discretisation().order;
    input.leaves      = tree().view(leaf);
    input.unit        = tree().unit(leaf);
    input.netCharge   = netCharge_;
    input.background  = farField_.background(leaf, 1);
    input.rootCoulomb = rootCoulomb_;
    input.poison      = tree().poison();
    farField_.traceShifts(1,
                          potentials_.sumSquares(input.particles, totals_.farScratch(), far()),
                          totals_.farScratch(),
                          far());
    potentials_.compute(input, potentials(), far());
}

template<class Real>
void CudaBackend<Real>::readTotals()
{
    totals_.read(cells_, streams_.far());
    const auto measured = totals_.newCappedFields();
    const bool isIdle   = this->fieldCap_ > 0 && arrays_.counts().ownTakingPart() == 0;
    // where none of a rank has a charge no kernel counts them
    this->cappedFields_ = isIdle ? 0 : measured.value_or(this->cappedFields_);
}

template<class Real>
Totals CudaBackend<Real>::collect()
{
    if (onDevice_)
    {
        streams_.leave(stream_);
        onDevice_ = false;
        return {};
    }
    noteEvaluation(far());
    arrays_.fetchForces(far());
    if (this->task_.potentials != nullptr)
    {
        arrays_.fetchPotentials(far());
    }
    sites_.fetch(this->task_, arrays_.size(), far());
    readTotals();
    if (helpers_)
    {
        helpers_->synchronize(); // their errors are not those of this GPU
    }
    mustRepeat_ = overflowed();
    if (mustRepeat_)
    {
        return {};
    }
    if (ranks_)
    {
        ranks_->confirm(); // forces change on all ranks, or on none
    }
    arrays_.deliverForces(this->task_.forces, this->task_.request.replaceForces);
    if (this->task_.potentials != nullptr)
    {
        arrays_.deliverPotentials(this->task_.potentials);
    }
    sites_.deliver(this->task_, arrays_.size());
    return totals_.totals();
}

template<class Real>
void CudaBackend<Real>::beginStage(Stage stage)
{
    if (stage == Stage::Sort && !streams_.inTurn())
    {
        clock_.reset();
    }
    // inside somebody else's capture nothing can be timed, and nothing is collected from arrays
    // on the device
    timed_ = !onDevice_ || (streams_.inTurn() && stage != Stage::Collect);
    if (timed_)
    {
        clock_.begin(stage, streams_.of(stage), streams_.inTurn());
    }
}

template<class Real>
void CudaBackend<Real>::endStage(Stage stage)
{
    if (timed_)
    {
        clock_.end(streams_.of(stage), streams_.inTurn());
    }
}

template<class Real>
bool CudaBackend<Real>::measured(double* seconds)
{
    std::fill_n(seconds, static_cast<int>(Stage::Count), 0.0);
    clock_.addTo(seconds);
    return true;
}

template<class Real>
FarSums CudaBackend<Real>::farSums()
{
    FarSums sums;
    sums.energy     = totals_.energy();
    sums.virial     = this->task_.request.virial ? totals_.virial() : nullptr;
    sums.deviatoric = this->task_.request.virial ? totals_.deviatoric() : nullptr;
    sums.scratch    = totals_.farScratch();
    return sums;
}

template<class Real>
NearGrid CudaBackend<Real>::nearGrid() const
{
    return { leafGrid(),
             cells_.keepsGiven() ? Mat3::Zero() : farField_.edges(),
             farField_.discretisation().ws,
             farField_.box(),
             std::min(this->exclusionRange_, farField_.surelyNear()) };
}

template<class Real>
FartherCells CudaBackend<Real>::fartherCells() const
{
    const Discretisation& d = farField_.discretisation();
    return FartherCells::of(
            leafGrid(), farField_.edges(), d.boundary, d.ws, nearField_.functions().range());
}

template<class Real>
void CudaBackend<Real>::setPositions()
{
    if (onDevice_)
    {
        arrays_.usePositions(this->task_.x);
    }
    else
    {
        arrays_.copyPositions(this->task_.x, far());
        arrays_.makeRoomForForces(); // not between the exchanges of an evaluation
    }
    streams_.reach(ranks_ ? Point::Given : Point::Placed, far());
}

template<class Real>
void CudaBackend<Real>::sortInto(DeviceCells<Real>* cells,
                                 const Real* x,
                                 Real4<Real>* cleared,
                                 cudaStream_t stream)
{
    Sums wanted = { this->task_.request.energy, this->task_.request.virial, {} };
    copyTo(farField_.rotation(), wanted.rotation);
    cells->sort(leafGrid(),
                farField_.frame(),
                gridPosition(this->task_.request.gridOffset, this->task_.request.step, far()),
                wanted,
                x,
                arrays_.q(),
                cleared,
                reproducible_,
                stream);
}

template<class Real>
void CudaBackend<Real>::exchangePositions()
{
    const cudaStream_t stream = streams_.ahead();
    streams_.awaitIn(stream, Point::Given);
    const Mat3 toCells = farField_.discretisation().leafGrid(farField_.box()).inverseEdges();
    arrays_.usePositions(ranks_->exchangePositions(arrays_.positions(), toCells, stream));
    streams_.reach(Point::Placed, stream);
}

template<class Real>
void CudaBackend<Real>::listCells()
{
    const cudaStream_t stream = streams_.ahead();
    streams_.awaitIn(stream, Point::Sorted);
    nearField_.list(&cells_, nearGrid(), stream);
    streams_.reach(Point::Listed, stream);
}

template<class Real>
void CudaBackend<Real>::listFamilies(bool recording)
{
    if (!recording)
    {
        // host arrays: the host looks at the end, and repeats the evaluation if it must
        const bool continues = history_.knowsPositions()
                               && (!onDevice_
                                   || (!this->task_.request.mayHaveJumped
                                       && history_.isNext(this->task_.request.step)));
        if (tree().ensureRoom(cells_, continues, far()))
        {
            history_.replace();
        }
        history_.knowPositions();
    }
    tree().list(cells_, far());
    streams_.awaitIn(streams_.watch(), Point::Sorted);
    tree().watch(cells_, streams_.watch());
    streams_.reach(Point::Watched, streams_.watch());
}

template<class Real>
bool CudaBackend<Real>::overflowed()
{
    const bool any = tree().overflowed();
    if (any)
    {
        history_.forgetPositions();
    }
    return any;
}

template<class Real>
void CudaBackend<Real>::throwIfOverflowed()
{
    if (overflowed())
    {
        throw Error(
                ErrorCode::InvalidArgument,
                "Particles moved farther than cells had room for, and Request::mayHaveJumped was "
                "not set. The forces of the last evaluation are not numbers.",
                "positions");
    }
}

// The other members are inline or compiled with cuda_backend.cpp.
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template void CudaBackend<Real>::sort();                                                       \
    template void CudaBackend<Real>::exclusions();                                                 \
    template void CudaBackend<Real>::nearFunction();                                               \
    template void CudaBackend<Real>::p2p();                                                        \
    template void CudaBackend<Real>::p2m();                                                        \
    template void CudaBackend<Real>::m2l(int);                                                     \
    template void CudaBackend<Real>::l2p();                                                        \
    template void CudaBackend<Real>::addPotentials();                                              \
    template void CudaBackend<Real>::readTotals();                                                 \
    template Totals CudaBackend<Real>::collect();                                                  \
    template void CudaBackend<Real>::beginStage(Stage);                                            \
    template void CudaBackend<Real>::endStage(Stage);                                              \
    template bool CudaBackend<Real>::measured(double*);                                            \
    template FarSums CudaBackend<Real>::farSums();                                                 \
    template NearGrid CudaBackend<Real>::nearGrid() const;                                         \
    template FartherCells CudaBackend<Real>::fartherCells() const;                                 \
    template void CudaBackend<Real>::throwIfOverflowed()
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE

} // namespace farfield
