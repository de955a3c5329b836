/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The systems of a call in device memory, and what the host knows of them.
 */
#ifndef FARFIELD_KERNELS_BATCHES_SYSTEMS_ON_DEVICE_H
#define FARFIELD_KERNELS_BATCHES_SYSTEMS_ON_DEVICE_H

#include <vector>

#include "farfield/farfield_batch.h"

#include "batch/reduced_box.h"
#include "batch/system_plan.h"
#include "batches/device_systems.h"
#include "runtime/device.h"

namespace farfield
{


//! Arrays may be in the memory of the host or of the device; what is written is in order with a stream.
template<class Real>
class SystemsOnDevice
{
public:
    explicit SystemsOnDevice(const BatchOptions& options) : options_(options) {}
    //! \throws Error  as BatchBackend::take()
    void take(const BatchInput<Real>& input, cudaStream_t stream);
    //! Takes a direction.
    void takeDirection(const BatchDirection<Real>& direction, cudaStream_t stream);
    //! From here on charges are their derivatives in that direction.
    void takeChangesAsCharges(cudaStream_t stream);
    //! The errors of evaluate(), or zeros. \throws Error  InvalidArgument: they make no sense
    std::vector<double> errorsOf(const double* given, cudaStream_t stream) const;
    /*! \brief Refuses charges at one place.
     *  \param[in] contacts  see BatchSums
     *  \throws Error  as refuseContact() */
    void refuseContacts(int system,
                        const char* contacts,
                        double rounding,
                        bool potentials,
                        cudaStream_t stream) const;

    bool hasImages() const { return options_.boundary == Boundary::Periodic; }
    int count() const { return static_cast<int>(offsets_.size()) - 1; }
    int first(int system) const { return offsets_[system]; }
    int size(int system) const { return offsets_[system + 1] - offsets_[system]; }
    size_t particles() const { return offsets_.back(); }
    const SystemTraits& traits(int system) const { return traits_[system]; }
    const ReducedBox& box(int system) const { return boxes_[system]; }
    //! Rows; zero but for a direction.
    const double* strain(int system) const { return inBox_[system].strain; }
    BatchParticles<Real> view();
    BatchChanges<Real> changes();

private:
    void takeBoxes(const BatchInput<Real>& input, cudaStream_t stream);
    //! Coordinates, sums of charges, and the order of particles.
    void look(cudaStream_t stream);
    //! \throws Error  InvalidArgument: what was found makes no sense
    void check() const;
    void sort(cudaStream_t stream);

    BatchOptions options_;
    std::vector<int> offsets_ = { 0 };
    std::vector<double> given_; //!< boxes of the caller
    std::vector<ReducedBox> boxes_;
    std::vector<SystemInBox> inBox_;
    std::vector<SystemTraits> traits_;
    std::vector<SystemFindings> found_;
    std::vector<double> squared_;
    int cells_ = 0; //!< of all systems
    DeviceBuffer<SystemInBox> inBoxOnDevice_;
    DeviceBuffer<SystemFindings> findings_;
    DeviceBuffer<Real> x_, q_, dx_, dq_, moves_;
    DeviceBuffer<double> f_, net_, squares_, fractions_, dNet_;
    DeviceBuffer<unsigned int> keys_, sortedKeys_;
    DeviceBuffer<int> order_, sortedOrder_;
    DeviceBuffer<char> sortSpace_;
    bool isSorted_ = false, hasMoves_ = false;
};

} // namespace farfield

#endif
