/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "far_field.h"

#include <cmath>

#include "cells/excluded_pairs.h"
#include "m2l/engines.h"
#include "operators/background.h"
#include "operators/product_table.h"
#include "plan/error_estimate.h"
#include "runtime/matrix3.h"

namespace farfield
{

template<class Real>
void DeviceFarField<Real>::build(const Discretisation& discretisation,
                                 int threads,
                                 cudaStream_t stream)
{
    discretisation_         = discretisation;
    const Discretisation& d = discretisation_;
    const Grid coarse(d.coarseCells(), d.referenceBox);
    const Mat3 edges = coarse.scaledEdges();
    const Reduction reduction(d.order, d.leastSquares, edges);
    tree_.build(d, stream);
    periodic_ = std::make_unique<PeriodicM2lOperators<Real>>(
            coarse, d.boundary, d.ws, reduction, 2 * virialOrder(reduction), threads);
    periodicM2l_ =
            std::make_unique<DevicePeriodicM2l<Real>>(*periodic_, tree_.view(0).stride, stream);
    periodic_->releaseSums();
    periodic_->releaseStrainSums();
    if (d.levels > 1)
    {
        operators_ = std::make_unique<ListM2lOperators<Real>>(edges, d.ws, reduction, threads);
        engine_    = makeDeviceM2l<Real>(d.engine, roomForRounding());
        engine_->setOperators(*operators_, stream);
    }
    setTranslations(edges, stream);
    box_ = d.referenceBox;
    setCells(box_, stream);
}

template<class Real>
void DeviceFarField<Real>::setBox(const Mat3& box,
                                  const Mat3& strain,
                                  const Mat3& rotation,
                                  cudaStream_t stream)
{
    if (box != box_)
    {
        box_      = box;
        rotation_ = rotation;
        setCells(box * rotation.transpose(), stream);
    }
    if (strain != strain_)
    {
        double s[3][3];
        copyTo(strain, s);
        periodicM2l_->setStrain(s, stream);
        if (operators_)
        {
            setTranslations(operators_->edges() * (Mat3::Identity() + strain), stream);
            operators_->setStrain(strain);
            engine_->setOperators(*operators_, stream);
        }
        strain_ = strain;
        interpolate(stream);
    }
}

template<class Real>
void DeviceFarField<Real>::setVirialStrain(const Mat3& strain, cudaStream_t stream)
{
    periodicM2l_->setStrainedSums(periodic_->strainSumsAt(strain), stream);
    virialStrain_ = strain;
    interpolate(stream);
}

template<class Real>
void DeviceFarField<Real>::interpolate(cudaStream_t stream)
{
    if (!virialStrain_.isZero(0))
    {
        periodicM2l_->interpolate(alongStrain(strain_, virialStrain_), stream);
    }
}

template<class Real>
void DeviceFarField<Real>::setCells(const Mat3& box, cudaStream_t stream)
{
    const Grid leaves = tree_.setBox(box);
    edges_            = leaves.edges();
    frame_            = BinFrame::of(edges_, leaves.inverseEdges(), rotation_);
    surelyNear_       = farfield::surelyNear(leaves, discretisation_.ws);
    tables_.set(discretisation_.order, leaves.unit(), stream);
}

template<class Real>
void DeviceFarField<Real>::setTranslations(const Mat3& edges, cudaStream_t stream)
{
    if (tree_.levels() > 1)
    {
        translations_.set(discretisation_.order, edges, stream);
    }
}

//! What the accuracy leaves beside the truncation error; the two add in squares.
template<class Real>
double DeviceFarField<Real>::roomForRounding() const
{
    const Discretisation& d = discretisation_;
    const double truncation = estimatedError(d, d.leafGrid(d.referenceBox));
    return d.accuracy > truncation ? std::sqrt(d.accuracy * d.accuracy - truncation * truncation)
                                   : 0;
}

template<class Real>
double DeviceFarField<Real>::background(int level, double netCharge) const
{
    return discretisation_.background(netCharge, tree_.grid(level).cells);
}

template<class Real>
void DeviceFarField<Real>::p2m(const SortedParticles<Real>& particles, cudaStream_t stream)
{
    farfield::p2m(tables_, particles, tree_.view(tree_.leaf()), stream);
}

template<class Real>
void DeviceFarField<Real>::m2m(int level, cudaStream_t stream)
{
    translations_.m2m(tree_.view(level), tree_.families(level), tree_.view(level - 1), stream);
}

template<class Real>
void DeviceFarField<Real>::m2l(int level,
                               Real* multipoles,
                               const FarSums& sums,
                               cudaStream_t stream)
{
    const double scale = 1 / tree_.unit(level);
    if (level == 0)
    {
        LevelView<Real> view = tree_.view(0);
        view.M               = multipoles != nullptr ? multipoles : view.M;
        periodicM2l_->apply(view, scale, sums.deviatoric, stream);
        return;
    }
    engine_->apply(tree_.view(level), tree_.families(level), stream);
    if (sums.deviatoric != nullptr)
    {
        if (!virial_)
        {
            virial_ = std::make_unique<DeviceM2lVirial<Real>>();
            virial_->setOperators(*operators_, stream);
        }
        virial_->apply(tree_.view(level),
                       tree_.families(level),
                       scale,
                       sums.deviatoric,
                       sums.scratch,
                       stream);
    }
}

template<class Real>
void DeviceFarField<Real>::l2l(int level,
                               double netCharge,
                               const FarSums& sums,
                               cudaStream_t stream)
{
    translations_.l2l(tree_.view(level),
                      tree_.view(level + 1),
                      tree_.families(level + 1),
                      background(level + 1, netCharge),
                      1 / tree_.unit(level + 1),
                      sums,
                      stream);
}

template<class Real>
void DeviceFarField<Real>::l2p(const SortedParticles<Real>& particles,
                               double netCharge,
                               const ForceArrays<Real>& forces,
                               cudaStream_t stream)
{
    const int leaf    = tree_.leaf();
    const double pull = backgroundPull(background(leaf, netCharge), tree_.unit(leaf));
    farfield::l2p(tables_, particles, tree_.view(leaf), static_cast<Real>(pull), forces, stream);
}

template<class Real>
void DeviceFarField<Real>::sum(const SortedParticles<Real>& particles,
                               double netCharge,
                               const Real4<Real>* forces,
                               const FarSums& sums,
                               cudaStream_t stream)
{
    const int leaf    = tree_.leaf();
    const double half = backgroundEnergy(background(leaf, netCharge), tree_.unit(leaf));
    farTotals(discretisation_.order,
              particles,
              tree_.view(leaf),
              forces,
              0.5 / tree_.unit(leaf),
              2 * half,
              sums,
              stream);
    if (netCharge != 0)
    {
        traceShifts(half, sums.energy, sums.scratch, stream);
    }
}

template<class Real>
void DeviceFarField<Real>::traceShifts(double factor,
                                       double* sum,
                                       OrderedSums* scratch,
                                       cudaStream_t stream)
{
    for (int level = 1; level <= tree_.leaf(); level++)
    {
        const double u = tree_.unit(level);
        translations_.traceShift(
                tree_.view(level), tree_.families(level), factor * u * u, sum, scratch, stream);
    }
}

template class DeviceFarField<float>;
template class DeviceFarField<double>;

} // namespace farfield
