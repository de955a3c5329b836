/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Energy and virial of an evaluation on the device, and what the host has to know of it.
 */
#ifndef FARFIELD_KERNELS_DEVICE_TOTALS_H
#define FARFIELD_KERNELS_DEVICE_TOTALS_H

#include <optional>

#include "backend/backend.h"
#include "expansions/expansions.h"
#include "near/near.h"
#include "runtime/ordered_sums.h"
#include "sort/cell_list.h"

namespace farfield
{

//! Sums of an evaluation in device memory.
struct DeviceSums
{
    NearTotals near;
    double energy;        //!< of the far field; of sites all of it
    double timesDegree;   //!< as StageSums::energyTimesDegree
    double virial[6];     //!< of the far field: xx yy zz xy xz yz
    double deviatoric[5]; //!< as StageSums::deviatoric
};

template<class Real>
class DeviceTotals
{
public:
    //! They are copied to the host even where nothing was added up.
    explicit DeviceTotals(cudaStream_t stream);

    void clear(cudaStream_t stream) { sums_.clear(stream); }
    //! Fields are counted with another cap from now on.
    void clearFields(cudaStream_t stream)
    {
        fields_.clear(stream);
        fieldsRead_ = {};
    }
    //! \name Device memory, that stages add to
    //!@{
    NearTotals* near() { return &sums_.data()->near; }
    double* energy() { return &sums_.data()->energy; }
    double* timesDegree() { return &sums_.data()->timesDegree; }
    double* virial() { return sums_.data()->virial; }
    double* deviatoric() { return sums_.data()->deviatoric; }
    FieldSums* fields() { return fields_.data(); }
    //!@}
    //! \name Scratch: near and far field may run at the same time
    //!@{
    OrderedSums* nearScratch() { return &nearScratch_; }
    OrderedSums* farScratch() { return &farScratch_; }
    //!@}

    /*! \brief Waits for the evaluation, and brings its sums to the host.
     *  \throws Error  InvalidArgument: a position that is not finite or much too far away */
    void read(const DeviceCells<Real>& particles, const Stream& stream);
    //! Those of the last evaluation that was read, as its own request says.
    Totals totals() const;
    //! See Backend::cappedFields(): the mean of the evaluations that the last call did not know of.
    std::optional<double> newCappedFields();

private:
    struct Status
    {
        DeviceSums sums;
        FieldSums fields;
        typename DeviceCells<Real>::Evaluation evaluation;
    };

    DeviceBuffer<DeviceSums> sums_;
    DeviceBuffer<FieldSums> fields_;
    FieldSums fieldsRead_ = {};
    OrderedSums nearScratch_, farScratch_;
    PinnedBuffer<Status> status_;
};

} // namespace farfield

#endif
