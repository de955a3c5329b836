/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/operators_in_use.h"

#include <new>

#include "base/text.h"

namespace farfield
{

template<class Real>
Setup OperatorsInUse<Real>::setup() const
{
    const Discretisation& d = *discretisation_;
    const Grid leaf         = d.leafGrid(frame_.box);
    Setup s;
    s.order        = d.order;
    s.directRange  = d.ws;
    s.m2l          = d.engineInUse();
    s.leastSquares = d.leastSquares;
    s.cells        = d.leafCells;
    s.levels       = d.levels;
    s.leafCells    = leaf.count();
    s.cellSize     = leaf.unit();
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
    backend_->setFieldCap(fieldCap_);
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
    stand_                          = false;
    discretisation_->exclusionRange = range;
    backend_->setExclusionRange(range);
}

template<class Real>
void OperatorsInUse<Real>::setFieldCap(double cap)
{
    stand_    = false;
    fieldCap_ = cap;
    backend_->setFieldCap(cap);
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
