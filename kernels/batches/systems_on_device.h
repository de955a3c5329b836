/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The systems of a call in device memory. The host has their numbers alone.
 */
#ifndef FARFIELD_KERNELS_BATCHES_SYSTEMS_ON_DEVICE_H
#define FARFIELD_KERNELS_BATCHES_SYSTEMS_ON_DEVICE_H

#include <limits>
#include <vector>

#include "farfield/farfield_batch.h"

#include "batches/batch_records.h"
#include "runtime/device.h"

namespace farfield
{

//! Arrays may be in the memory of the host or of the device; what is written is in order with a stream.
template<class Real>
class SystemsOnDevice
{
public:
    explicit SystemsOnDevice(const BatchOptions& options) : options_(options) {}
    /*! \brief Takes systems and looks at them.
     *  \param[in] record  of the call
     *  \throws Error  as BatchBackend::take(), but what boxes and particles have comes out by read() */
    void take(const BatchInput<Real>& input, BatchRecord* record, cudaStream_t stream);
    //! Copies the status to the record.
    void copyStatus(cudaStream_t stream);
    //! Takes note of the status of a call that is done.
    void note(const BatchStatus& status) { usual_ = status.largest; }
    //! Takes a direction.
    void takeDirection(const BatchDirection<Real>& direction, cudaStream_t stream);
    //! From here on charges are their derivatives in that direction.
    void takeChangesAsCharges(cudaStream_t stream);
    //! The errors of evaluate(), or zeros where there are none.
    void takeErrors(const double* given, cudaStream_t stream);
    /*! \brief Waits for the status.
     *  \param[in] touches     see BatchSums::contacts
     *  \param[in] potentials  see BatchSums::wantsPotentials
     *  \param[in] refuseLength  throws what is wrong with the sums that are too long
     *  \throws Error  InvalidArgument: boxes, particles, errors or sums are refused, or charges are at
     *                 one place */
    template<class RefuseLength>
    const BatchStatus& read(const char* touches,
                            bool potentials,
                            const RefuseLength& refuseLength,
                            cudaStream_t stream)
    {
        wait(stream);
        const BatchStatus& status = *record_->status.data();
        note(status);
        if (status.badInput != c_noSystem)
        {
            refuseInput(stream);
        }
        if (status.badParticle != c_noSystem)
        {
            refuseParticles(stream);
        }
        if (status.tooHigh != c_noSystem)
        {
            refuseHeight(stream);
        }
        if (status.badError != c_noSystem)
        {
            refuseErrors(stream);
        }
        if (status.tooLong != c_noSystem)
        {
            refuseLength(status);
        }
        if (status.contact != c_noSystem)
        {
            refuseContacts(touches, potentials, stream);
        }
        return status;
    }

    bool hasImages() const { return options_.boundary != Boundary::Open; }
    bool isSlab() const { return options_.boundary == Boundary::Slab; }
    int count() const { return count_; }
    size_t particles() const { return particles_; }
    SystemArrays arrays();
    BatchParticles<Real> view();
    BatchChanges<Real> changes();
    //! Which systems have charges, and errors that sums are cut for, [count].
    const DeviceBuffer<char>& isCharged() const { return isCharged_; }
    const DeviceBuffer<double>& errors() const { return errors_; }

    //! A system as the host plans it.
    struct OnHost
    {
        std::vector<double> box; //!< [3][3], nm; empty without images
        SystemTraits traits;
        double error;
        int first, n;
    };
    OnHost fetch(int system, cudaStream_t stream) const;

private:
    //! Copies the status, and waits.
    void wait(cudaStream_t stream);
    void takeOffsets(const int* offsets, cudaStream_t stream);
    //! How many particles there are. The host waits for it if only the GPU knows.
    void count(const BatchInput<Real>& input, cudaStream_t stream);
    //! \throws Error  InvalidArgument: offsets or boxes make no sense
    void refuseInput(cudaStream_t stream) const;
    void refuseParticles(cudaStream_t stream) const;
    void refuseHeight(cudaStream_t stream) const;
    void refuseErrors(cudaStream_t stream) const;
    void refuseContacts(const char* touches, bool potentials, cudaStream_t stream) const;
    //! Coordinates, sums of charges, and the order of particles.
    //! \param[in] refuses  see lookAt()
    void look(bool refuses, cudaStream_t stream);
    void sort(cudaStream_t stream);

    BatchOptions options_;
    int count_           = 0;
    size_t particles_    = 0;
    int given_           = -1; //!< BatchInput::particles
    int largest_         = 0;  //!< particles of a system, if only the GPU knows: as usual
    int usual_           = std::numeric_limits<int>::max();
    BatchRecord* record_ = nullptr; //!< of this call
    DeviceBuffer<BatchStatus> fresh_, status_;
    DeviceBuffer<int> offsets_;
    DeviceBuffer<double> rows_; //!< boxes of the caller
    DeviceBuffer<SystemInBox> inBox_;
    DeviceBuffer<CompactBox> boxes_;
    DeviceBuffer<SlabBox> slabs_;
    DeviceBuffer<SystemFindings> findings_;
    DeviceBuffer<SystemTraits> traits_;
    DeviceBuffer<char> isCharged_, isLeft_;
    DeviceBuffer<ForceAim> aims_;
    DeviceBuffer<double> errors_, contacts_, dBoxes_;
    DeviceBuffer<Real> x_, q_, dx_, dq_, moves_;
    DeviceBuffer<double> f_, net_, squares_, fractions_, dNet_;
    DeviceBuffer<unsigned int> keys_, sortedKeys_;
    DeviceBuffer<int> order_, sortedOrder_;
    DeviceBuffer<char> sortSpace_;
    bool isSorted_ = false, hasMoves_ = false;
};

} // namespace farfield

#endif
