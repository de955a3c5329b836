/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/operators_in_use.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "plan/error_estimate.h"

namespace farfield
{

template<class Real>
double OperatorsInUse<Real>::error(const Grid& leaf) const
{
    const double measured = discretisation_->measuredError;
    return measured > 0 ? measured
                        : std::max(estimatedError(*discretisation_, leaf), c_bestAccuracy<Real>);
}

template<class Real>
Setup OperatorsInUse<Real>::setup() const
{
    const Discretisation& d = *discretisation_;
    const Grid leaf         = d.leafGrid(frame_.box);
    Setup s;
    s.order          = d.order;
    s.directRange    = d.ws;
    s.m2l            = d.engineInUse();
    s.leastSquares   = d.leastSquares;
    s.cells          = d.leafCells;
    s.levels         = d.levels;
    s.leafCells      = leaf.count();
    s.cellSize       = leaf.unit();
    s.estimatedError = error(leaf);
    s.isBestEffort   = d.isBestEffort;
    return s;
}

template<class Real>
void OperatorsInUse<Real>::build(const Discretisation& d)
{
    stand_ = false;
    builds_++;
    try
    {
        backend_->build(d);
    }
    catch (const std::bad_alloc&)
    {
        throw Error(ErrorCode::OutOfMemory,
                    "The operators of order " + text(d.order) + " for "
                            + text(d.leafGrid(d.referenceBox).count())
                            + " cells do not fit into memory; larger cells or a lower order need "
                              "less.",
                    "cellSize");
    }
    backend_->setExclusionRange(d.exclusionRange);
    backend_->setFieldCap(d.field.cap);
    discretisation_ = d;
    frame_          = OperatorFrame();
    frame_.box      = d.referenceBox;
}

template<class Real>
void OperatorsInUse<Real>::build(const Discretisation& d, const OperatorFrame& frame)
{
    build(d);
    setBox(frame);
}

template<class Real>
void OperatorsInUse<Real>::setBox(const OperatorFrame& frame)
{
    stand_ = false;
    backend_->setBox(frame.box, frame.strain, frame.rotation);
    if (frame.virialStrain != frame_.virialStrain)
    {
        backend_->setVirialStrain(frame.virialStrain);
    }
    frame_ = frame;
}

template<class Real>
void OperatorsInUse<Real>::setExclusionRange(double range)
{
    discretisation_->exclusionRange = range;
    backend_->setExclusionRange(range);
}

template<class Real>
void OperatorsInUse<Real>::setError(double measured, double systemFactor, bool isBestEffort)
{
    discretisation_->measuredError = measured;
    discretisation_->systemFactor  = systemFactor;
    discretisation_->isBestEffort  = isBestEffort;
}

template<class Real>
void OperatorsInUse<Real>::setMeasuredField(const MeasuredField& field)
{
    discretisation_->field = field;
    backend_->setFieldCap(field.cap);
}

template<class Real>
void OperatorsInUse<Real>::rebuild()
{
    if (!stand_)
    {
        change([&] { build(Discretisation(*discretisation_), OperatorFrame(frame_)); });
    }
}

template class OperatorsInUse<float>;
template class OperatorsInUse<double>;

} // namespace farfield
