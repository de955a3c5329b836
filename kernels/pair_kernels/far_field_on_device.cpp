/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/far_field_on_device.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace farfield
{

template<class Real>
FarFieldOnDevice<Real>::FarFieldOnDevice(const PairKernel& kernel,
                                         const KernelPlan& plan,
                                         const Region& region,
                                         double accuracy,
                                         Team* team,
                                         cudaStream_t stream) :
    team_(*team),
    stream_(stream), operators_(kernel, plan, region, accuracy, team),
    shape_(operators_.basis().count(), sizeof(Real) == 4, mayRoundExpansions(accuracy)),
    expansions_(plan.levels)
{
    if (!isAnything())
    {
        return;
    }
    const LegendreBasis& basis = operators_.basis();
    polynomials_.set(basis, stream);
    const auto setOctants = [&](Matrices* on, const std::array<Matrix, 8>& matrices)
    {
        on->set(
                shape_,
                8,
                [&](int octant, int row, int column) { return matrices[octant](row, column); },
                team,
                stream);
    };
    setOctants(&up_, operators_.up());
    setOctants(&down_, operators_.down());
    steps_.set(plan.ws, stream);
    if (operators_.isPeriodic())
    {
        const Grid& grid = operators_.grid(0);
        std::vector<int> slots;
        const Int3& counts = plan.coarse;
        for (int i = 0; i < counts[0] * counts[1] * counts[2]; i++)
        {
            slots.push_back(grid.slot(
                    { i % counts[0], i / counts[0] % counts[1], i / counts[0] / counts[1] }));
        }
        slotOfCell_.upload(slots.data(), slots.size(), stream);
        waves_ = std::make_unique<WaveProducts<Real>>(grid, operators_.waves(), basis, stream);
    }
    inUse_ = std::move(operatorsOnDevice(1)[0]);
}

template<class Real>
std::vector<typename FarFieldOnDevice<Real>::Operators>
FarFieldOnDevice<Real>::operatorsOnDevice(int derivatives)
{
    std::vector<Operators> all(derivatives);
    {
        const auto lists = operators_.lists(derivatives);
        const int n      = shape_.coefficients;
        for (int k = 0; k < derivatives; k++)
        {
            all[k].lists.resize(levels());
            for (int l = 1; l < levels(); l++)
            {
                const List& list = *lists[k][l];
                if (l > 1 && lists[k][l] == lists[k][1])
                {
                    all[k].lists[l] = all[k].lists[1];
                    continue;
                }
                all[k].lists[l] = std::make_shared<Matrices>();
                all[k].lists[l]->set(
                        shape_,
                        static_cast<int>(list.size()),
                        [&](int op, int row, int column) { return list[op].T[row * n + column]; },
                        &team_,
                        stream_);
            }
        }
    }
    if (waves_)
    {
        const int count = waves_->representatives();
        std::vector<std::vector<Real>> packed(derivatives,
                                              std::vector<Real>(count * waves_->operatorSize()));
        operators_.forWaves(derivatives,
                            0,
                            count,
                            [&](int representative, const std::vector<Matrix>& kappas)
                            {
                                for (int k = 0; k < derivatives; k++)
                                {
                                    waves_->pack(representative, kappas[k], &packed[k]);
                                }
                            });
        for (int k = 0; k < derivatives; k++)
        {
            all[k].waves.upload(packed[k].data(), packed[k].size(), stream_);
        }
    }
    return all;
}

template<class Real>
void FarFieldOnDevice<Real>::makeDerivatives()
{
    if (derivatives_.empty() && isAnything())
    {
        derivatives_ = operatorsOnDevice(c_derivatives);
    }
}

template<class Real>
void FarFieldOnDevice<Real>::strainOperators(const StrainWeights<Real>& weights)
{
    const auto mix = [&](size_t size, const auto& of, Real* to)
    {
        Mixture<Real> mixture;
        for (int k = 0; k < c_derivatives; k++)
        {
            mixture.from[k]    = of(derivatives_[k]);
            mixture.weights[k] = weights[k];
        }
        farfield::mix(mixture, size, to, stream_);
    };
    for (int l = 1; l < levels(); l++)
    {
        if (l > 1 && derivatives_[0].lists[l] == derivatives_[0].lists[1])
        {
            inUse_.lists[l] = inUse_.lists[1];
            continue;
        }
        Matrices& to = *inUse_.lists[l];
        mix(
                to.size(), [&](const Operators& of) { return of.lists[l]->data(); }, to.data());
    }
    if (waves_)
    {
        mix(
                inUse_.waves.size(),
                [&](const Operators& of) { return of.waves.data(); },
                inUse_.waves.data());
    }
}

template<class Real>
bool FarFieldOnDevice<Real>::adopt(const Region& region)
{
    using Adopted = typename FarOperators<Real>::Adopted;
    StrainWeights<Real> weights;
    const Adopted adopted = operators_.adopt(region, hasDerivatives(), &weights);
    if (adopted == Adopted::Strained)
    {
        strainOperators(weights);
    }
    return adopted != Adopted::Never;
}

template<class Real>
std::vector<int> FarFieldOnDevice<Real>::merge(PointsInLeaves<Real>* sources,
                                               PointsInLeaves<Real>* targets)
{
    const int ofSources = sources->cells().back(), ofTargets = targets->cells().back();
    const int both = ofSources + ofTargets;
    bothKeys_.resize(both);
    sortedKeys_.resize(both);
    copyAsync(bothKeys_.data(), sources->keys(), ofSources, stream_, "copying keys");
    copyAsync(bothKeys_.data() + ofSources, targets->keys(), ofTargets, stream_, "copying keys");
    sortKeys(bothKeys_.data(), both, sortedKeys_.data(), &room_, stream_);
    runs_.find(sortedKeys_.data(), both, levels(), stream_);
    const int count = runs_.counts().back();
    starts_.resize(count);
    mergedKeys_.resize(count);
    runs_.writeStarts(0, starts_.data(), &room_, stream_);
    selectKeys(sortedKeys_.data(), starts_.data(), count, 0, mergedKeys_.data(), stream_);
    sourceSlots_.resize(ofSources);
    targetSlots_.resize(ofTargets);
    findSlots(sources->keys(), ofSources, mergedKeys_.data(), count, sourceSlots_.data(), stream_);
    findSlots(targets->keys(), ofTargets, mergedKeys_.data(), count, targetSlots_.data(), stream_);
    return runs_.counts();
}

template<class Real>
void FarFieldOnDevice<Real>::setCells(PointsInLeaves<Real>* sources,
                                      PointsInLeaves<Real>* targets,
                                      const LeafFrame& frame)
{
    areMerged_                    = targets != nullptr;
    const std::vector<int> counts = areMerged_ ? merge(sources, targets) : sources->cells();
    const CellsOfBox box{ { frame.counts[0], frame.counts[1], frame.counts[2] }, frame.isPeriodic };
    const long long before = std::exchange(cellsOf_, areMerged_ ? 0 : sources->generation());
    if (cellsOf_ == 0 || cellsOf_ != before)
    {
        cells_.set(areMerged_ ? mergedKeys_.data() : sources->keys(),
                   counts,
                   box,
                   operators_.plan().ws,
                   stream_);
    }
    // one level of all cells is written as a whole
    const bool isWritten = cellsOf_ != 0 && levels() == 1;
    for (int l = 0; l < levels(); l++)
    {
        for (DeviceBuffer<Real>* of : { &expansions_[l].M, &expansions_[l].L })
        {
            of->resize(static_cast<size_t>(counts[l]) * shape_.stride);
            if (!isWritten)
            {
                of->clear(stream_);
            }
        }
    }
}

template<class Real>
void FarFieldOnDevice<Real>::upwards(PointsInLeaves<Real>* sources)
{
    const auto polynomials = polynomials_.view(operators_.polynomials());
    pointsToMultipoles(polynomials,
                       sources->view(),
                       areMerged_ ? sourceSlots_.data() : nullptr,
                       expansions_.back().M.data(),
                       shape_.stride,
                       stream_);
    for (int l = levels() - 1; l > (waves_ ? 0 : 1); l--)
    {
        toParents<Real>(shape_,
                        { cells_.view(l - 1),
                          {},
                          up_.data(),
                          expansions_[l].M.data(),
                          expansions_[l - 1].M.data() },
                        stream_);
    }
    if (waves_)
    {
        if (cellsOf_ == 0) // else all cells are written
        {
            check(cudaMemsetAsync(waves_->fields(),
                                  0,
                                  static_cast<size_t>(shape_.coefficients) * waves_->stride()
                                          * sizeof(Real),
                                  stream_),
                  "clearing memory");
        }
        expansionsToFields(level0(&expansions_[0].M), stream_);
        waves_->forward(stream_);
    }
}

template<class Real>
Level0Fields<Real> FarFieldOnDevice<Real>::level0(DeviceBuffer<Real>* expansions)
{
    const Int3& counts = operators_.plan().coarse;
    return { cells_.view(0),     { { counts[0], counts[1], counts[2] }, true },
             slotOfCell_.data(), shape_.coefficients,
             expansions->data(), shape_.stride,
             waves_->fields(),   waves_->stride() };
}

template<class Real>
std::vector<ProductOfLevel<Real>>
FarFieldOnDevice<Real>::overLists(const std::vector<std::shared_ptr<Matrices>>& lists)
{
    std::vector<ProductOfLevel<Real>> products;
    for (int l = 1; l < levels(); l++)
    {
        products.push_back({ cells_.view(l),
                             cells_.view(l - 1),
                             lists[l]->data(),
                             expansions_[l].M.data(),
                             expansions_[l].L.data() });
    }
    return products;
}

template<class Real>
void FarFieldOnDevice<Real>::downwards()
{
    farfield::overLists(
            shape_, steps_, operators_.plan().ws, overLists(inUse_.lists), &partial_, stream_);
    if (waves_)
    {
        waves_->multiply(inUse_.waves, stream_);
        waves_->backward(stream_);
        fieldsToExpansions(level0(&expansions_[0].L), stream_);
    }
    // without images nothing is far of a cell of level 0
    for (int l = waves_ ? 1 : 2; l < levels(); l++)
    {
        toChildren<Real>(shape_,
                         { cells_.view(l),
                           cells_.view(l - 1),
                           down_.data(),
                           expansions_[l - 1].L.data(),
                           expansions_[l].L.data() },
                         stream_);
    }
}

template<class Real>
void FarFieldOnDevice<Real>::addFields(PointsInLeaves<Real>* targets, double unit, double* sums)
{
    localsToPoints(polynomials_.view(operators_.polynomials()),
                   targets->view(),
                   areMerged_ ? targetSlots_.data() : nullptr,
                   expansions_.back().L.data(),
                   shape_.stride,
                   operators_.expansionFactor(),
                   unit,
                   sums,
                   stream_);
}

template<class Real>
void FarFieldOnDevice<Real>::addVirial(double* virial)
{
    makeDerivatives();
    const int ofWaves = waves_ ? waves_->representatives() : 0;
    const int each    = ofWaves + levels() * c_dotParts;
    partialSums_.resize(static_cast<size_t>(c_derivatives) * each);
    partialSums_.clear(stream_);
    for (int k = 0; k < c_derivatives; k++)
    {
        const Operators& operators = k == 0 ? inUse_ : derivatives_[k];
        double* sums               = partialSums_.data() + static_cast<size_t>(k) * each;
        if (waves_)
        {
            waves_->products(operators.waves, k, sums, stream_);
        }
        farfield::overLists(shape_,
                            steps_,
                            operators_.plan().ws,
                            overLists(operators.lists),
                            &partial_,
                            stream_);
        for (int l = 1; l < levels(); l++)
        {
            dotParts(expansions_[l].M.data(),
                     expansions_[l].L.data(),
                     expansions_[l].M.size(),
                     sums + ofWaves + l * c_dotParts,
                     stream_);
        }
    }
    std::vector<double> partial(partialSums_.size());
    partialSums_.download(partial.data(), partial.size(), stream_);
    std::array<double, c_derivatives> sums{};
    for (int k = 0; k < c_derivatives; k++)
    {
        const double* of = partial.data() + static_cast<size_t>(k) * each;
        sums[k]          = std::accumulate(of, of + ofWaves, 0.0) * operators_.virialFactor(0);
        for (int l = 1; l < levels(); l++)
        {
            const double* ofLevel = of + ofWaves + l * c_dotParts;
            sums[k] += std::accumulate(ofLevel, ofLevel + c_dotParts, 0.0)
                       * operators_.virialFactor(l);
        }
    }
    operators_.addVirial(sums, virial);
}

template class FarFieldOnDevice<float>;
template class FarFieldOnDevice<double>;

} // namespace farfield
