/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A part of the near field on a GPU that helps another.
 */
#ifndef FARFIELD_KERNELS_HELPERS_NEAR_FIELD_PART_H
#define FARFIELD_KERNELS_HELPERS_NEAR_FIELD_PART_H

#include "helpers/links.h"
#include "runtime/devices.h"

namespace farfield
{

//! What a helper needs memory for.
struct HelperRoom
{
    int particles; //!< that are sorted
    int cells;     //!< 0: there are none yet
    bool excludesPairs, hasFunctions;

    bool operator==(const HelperRoom& other) const
    {
        return particles == other.particles && cells == other.cells
               && excludesPairs == other.excludesPairs && hasFunctions == other.hasFunctions;
    }
};

/*! \brief Some cells with what is around them, fetched from the solver's GPU, and their near field.
 *
 *  At most 52 bytes a particle in single precision, and 8 a cell. Functions make the GPU current. */
template<class Real>
class NearFieldPart
{
public:
    //! The GPU is the current one.
    explicit NearFieldPart(int device);

    void resize(const HelperRoom& room);
    //! Where fetch() and compute() put work.
    cudaStream_t stream() const { return stream_; }
    /*! \brief Fetches the cells of a share.
     *  \param[in] home  the task of the solver's GPU, with the share of this one */
    void fetch(const DeviceNearTask<Real>& home);
    /*! \brief Computes their pairs, once the solver's GPU knows which are left out.
     *  \param[in] to  in the memory of the solver's GPU */
    void compute(const DeviceNearTask<Real>& home, const HelperOutput<Real>& to);
    //! What compute() has last put into the stream is done.
    const Event& done() const { return done_; }
    //! Throws what has gone wrong on the device; waits.
    void synchronize() const;

private:
    int device_;
    Stream stream_{ Priority::Second };
    Event done_;
    DeviceBuffer<Real4<Real>> xq_, forces_;
    DeviceBuffer<int> start_, listed_, count_, bounds_, anyClose_;
    DeviceBuffer<int4> closeOf_;
    DeviceBuffer<Real> terms_; //!< see NearFunctionView
    DeviceBuffer<NearTotals> totals_;
    OrderedSums scratch_;
};

} // namespace farfield

#endif
