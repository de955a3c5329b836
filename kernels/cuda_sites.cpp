/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// What the CUDA backend does for sites in place of near field and L2P, and for their tangents.
#include "cuda_backend.h"

#include <utility>

namespace farfield
{

template<class Real>
void CudaBackend<Real>::computeSites()
{
    const Task<Real>& task  = this->task_;
    const int n             = arrays_.size();
    const int leaf          = tree().leaf();
    SiteOutput<Real> output = {};
    output.forces           = task.wantsForces ? forces() : nullptr;
    output.replace          = replacesForces();
    const auto clear        = [&](Real* values, int each)
    {
        check(cudaMemsetAsync(values, 0, each * static_cast<size_t>(n) * sizeof(Real), far()),
              "clearing values of sites");
        return values;
    };
    output.potentials = task.potentials != nullptr ? clear(potentials(), 1) : nullptr;
    const auto room   = [&](Real* wanted, SiteResult<Real>* own)
    {
        if (wanted == nullptr)
        {
            return wanted;
        }
        return clear(onDevice_ ? wanted : own->onDevice(n), own->each());
    };
    output.gradients = room(task.gradients, &sites_.gradients());
    output.hessians  = room(task.hessians, &sites_.hessians());
    output.torques   = room(task.torques, &sites_.torques());
    streams_.awaitIn(far(), Point::NearDone);
    SiteInput<Real> input;
    input.particles  = cells_.particles();
    input.ofPairs    = cells_.ofPairs();
    input.where      = nearGrid();
    input.exclusions = nearField_.exclusions().view();
    input.x          = arrays_.positions();
    input.q          = arrays_.q();
    input.leaves     = tree().view(leaf);
    input.unit       = tree().unit(leaf);
    input.netCharge  = netCharge_;
    input.background = farField_.background(leaf, 1);
    input.rotation   = farField_.rotation();
    input.poison     = tree().poison();
    input.functions  = nearField_.functions().sorted();
    input.farther    = fartherCells();
    farField_.traceShifts(1,
                          sites_.sumSquares(input.particles, totals_.farScratch(), far()),
                          totals_.farScratch(),
                          far());
    SiteSums sums;
    if (wantedSums() != NearSums::None)
    {
        sums.energy      = totals_.energy();
        sums.timesDegree = totals_.timesDegree();
        sums.virial      = task.request.virial ? totals_.virial() : nullptr;
        sums.scratch     = totals_.farScratch();
    }
    if (this->fieldCap_ > 0)
    {
        sums.fields = totals_.fields();
        sums.perCap = 1 / this->fieldCap_;
    }
    sites_.compute(input, rootCoulomb_, sums, output, far());
}

template<class Real>
double CudaBackend<Real>::lendSources(const Direction<Real>& direction, void* stream)
{
    const auto s       = static_cast<cudaStream_t>(stream);
    const auto sources = tangent_.make(arrays_.q(), direction, arrays_.size(), rootCoulomb_, s);
    if (sources.unit != 0)
    {
        sites_.lendDipoles(&tangent_.dipoles(), arrays_.size(), s);
        arrays_.exchangeCharges(&tangent_.charges());
        ownNetCharge_ = std::exchange(netCharge_, sources.net);
        history_.replace(); // the net charge is an argument of kernels
    }
    return sources.unit;
}

template<class Real>
void CudaBackend<Real>::handBack()
{
    sites_.handBack();
    arrays_.exchangeCharges(&tangent_.charges());
    netCharge_ = ownNetCharge_;
    history_.replace();
}

template<class Real>
void CudaBackend<Real>::combine(const Direction<Real>& direction,
                                double unit,
                                const Tangent<Real>& tangent,
                                void* stream)
{
    const auto s = static_cast<cudaStream_t>(stream);
    tangent_.combine(arrays_.q(), direction, unit, arrays_.size(), rootCoulomb_, tangent, s);
    check(cudaStreamSynchronize(s), "waiting for a tangent");
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template void CudaBackend<Real>::computeSites();                                               \
    template double CudaBackend<Real>::lendSources(const Direction<Real>&, void*);                 \
    template void CudaBackend<Real>::handBack();                                                   \
    template void CudaBackend<Real>::combine(                                                      \
            const Direction<Real>&, double, const Tangent<Real>&, void*)
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

} // namespace farfield
