/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// What the CUDA backend does for sites in place of near field and L2P.
#include "cuda_backend.h"

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

template void CudaBackend<float>::computeSites();
template void CudaBackend<double>::computeSites();

} // namespace farfield
