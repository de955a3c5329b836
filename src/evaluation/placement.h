/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Where particles are, and the box that their cells fill.
 */
#ifndef FARFIELD_EVALUATION_PLACEMENT_H
#define FARFIELD_EVALUATION_PLACEMENT_H

#include <functional>

#include "backend/gpu_backend.h"
#include "evaluation/charge_set.h"
#include "evaluation/narrowed_slab.h"
#include "evaluation/operators_in_use.h"

namespace farfield
{

//! A box, and how far particles without images are apart in each dimension, nm, see extentInBox().
template<class Real>
struct Place
{
    Mat3 box;
    Vec3 extent;
    NarrowedSlab<Real> narrowed; //!< without wide empty layers, if anything is

    //! Positions as the stages get them.
    const Real* of(const Real* x) const { return narrowed.any() ? narrowed.x() : x; }
};

//! Finds the places of particles. The box of those without images is that of the operators in use.
template<class Real>
class Placement
{
public:
    Placement(const Options& options,
              const ChargeSet<Real>* charges,
              const OperatorsInUse<Real>* operators) :
        options_(options),
        charges_(charges), operators_(operators)
    {
    }
    /*! \param[in] chosen  extent that the operators in use were chosen for, nm
     *  \throws Error  InvalidArgument: the box, or a position that is not finite or too far away */
    Place<Real> onHost(const Real* x, const double box[3][3], const Vec3& chosen) const;
    //! The same of positions in device memory. \throws Error  and Unsupported: no such virial
    Place<Real> onDevice(const Task<Real>& task, GpuBackend<Real>* gpu, const Vec3& chosen) const;
    //! What narrowing has changed of a result.
    SlabCorrection<Real> correctionOf(const Place<Real>& place) const;
    //! That points, [points][3] in host memory, are somewhere.
    void checkPoints(const Real* at, int points, const double box[3][3]) const;

private:
    //! \throws Error  InvalidArgument: not legal, or too narrow for near functions
    Mat3 boxFor(const double box[3][3]) const;
    //! Width, nm, that empty layers keep.
    double kept(const Mat3& box) const;
    /*! \param[in] box        whose vectors along periodic axes count
     *  \param[in] positions  returns those in host memory; called if something may be narrowed */
    Place<Real> withoutImages(const Mat3& box,
                              const Vec3& extent,
                              const Vec3& chosen,
                              const std::function<const Real*()>& positions) const;
    //! Whether particles are so far apart along z that cells should not follow them.
    bool mayBeNarrowed(const Mat3& box, const Vec3& extent, const Vec3& chosen) const;

    Options options_;
    const ChargeSet<Real>* charges_;
    const OperatorsInUse<Real>* operators_;
};

} // namespace farfield

#endif
