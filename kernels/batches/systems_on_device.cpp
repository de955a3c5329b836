/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batches/systems_on_device.h"

#include <algorithm>
#include <cmath>

#include "batch/batch_check.h"
#include "batch/batch_system.h"
#include "evaluation/input_check.h"

namespace farfield
{
namespace
{

template<class T>
void take(DeviceBuffer<T>* to, const T* from, size_t count, cudaStream_t stream)
{
    to->resize(count);
    copyAsync(to->data(), from, count, stream, "copying systems to the GPU");
}

//! Copies to the host, and waits.
template<class T>
std::vector<T> onHost(const T* from, size_t count, cudaStream_t stream)
{
    std::vector<T> to(count);
    const char* const action = "copying systems from the GPU";
    copyAsync(to.data(), from, count, stream, action);
    check(cudaStreamSynchronize(stream), action);
    return to;
}

//! A status of which nothing is known.
BatchStatus freshStatus()
{
    BatchStatus status = {};
    status.badInput = status.badParticle = status.badError = c_noSystem;
    status.tooHigh = status.tooLong = status.contact = c_noSystem;
    return status;
}

} // namespace

template<class Real>
void SystemsOnDevice<Real>::copyStatus(cudaStream_t stream)
{
    copyAsync(record_->status.data(), status_.data(), 1, stream, "copying the status of a call");
}

template<class Real>
void SystemsOnDevice<Real>::wait(cudaStream_t stream)
{
    copyStatus(stream);
    check(cudaStreamSynchronize(stream), "waiting for systems");
}

template<class Real>
void SystemsOnDevice<Real>::takeOffsets(const int* offsets, cudaStream_t stream)
{
    // a call without systems has no offsets to read
    const size_t size = count_ > 0 ? static_cast<size_t>(count_) + 1 : 0;
    if (size > 0 && !isOnDevice(offsets))
    {
        // pinned memory is copied without a wait
        checkOffsets(offsets, count_, given_);
        record_->offsets.resize(size);
        offsets = std::copy_n(offsets, size, record_->offsets.data()) - size;
    }
    farfield::take(&offsets_, offsets, size, stream);
}

template<class Real>
void SystemsOnDevice<Real>::take(const BatchInput<Real>& input,
                                 BatchRecord* record,
                                 cudaStream_t stream)
{
    checkNumber(input.systems, "systems");
    count_             = input.systems;
    given_             = input.particles;
    record_            = record;
    const auto systems = static_cast<size_t>(count_);
    record_->status.resize(1);
    if (fresh_.size() == 0)
    {
        const BatchStatus fresh = freshStatus();
        fresh_.upload(&fresh, 1, stream);
    }
    farfield::take(&status_, fresh_.data(), 1, stream);
    takeOffsets(input.offsets, stream);
    if (hasImages())
    {
        farfield::take(&rows_, input.boxes, 9 * systems, stream);
        boxes_.resize(systems);
        slabs_.resize(isSlab() ? systems : 0);
    }
    inBox_.resize(systems);
    findings_.resize(systems);
    traits_.resize(systems);
    isCharged_.resize(systems);
    isLeft_.resize(systems);
    aims_.resize(systems);
    errors_.resize(systems);
    contacts_.resize(systems);
    takeSystems(arrays(), given_, stream);
    count(input, stream);
    farfield::take(&x_, input.x, 3 * particles_, stream);
    farfield::take(&q_, input.q, particles_ * options_.channels, stream);
    errors_.clear(stream);
    look(true, stream);
}

template<class Real>
void SystemsOnDevice<Real>::count(const BatchInput<Real>& input, cudaStream_t stream)
{
    particles_ = 0;
    largest_   = 0;
    if (count_ == 0)
    {
        return;
    }
    if (!isOnDevice(input.offsets))
    {
        particles_ = input.offsets[count_];
        for (int s = 0; s < count_; s++)
        {
            largest_ = std::max(largest_, input.offsets[s + 1] - input.offsets[s]);
        }
        return;
    }
    if (given_ >= 0)
    {
        particles_ = given_;
        largest_   = usual_;
        return;
    }
    wait(stream);
    const BatchStatus& status = *record_->status.data();
    if (status.badInput != c_noSystem)
    {
        refuseInput(stream);
    }
    particles_ = status.particles;
    largest_   = status.largest;
}

template<class Real>
void SystemsOnDevice<Real>::refuseInput(cudaStream_t stream) const
{
    checkOffsets(onHost(offsets_.data(), offsets_.size(), stream).data(), count_, given_);
    if (hasImages())
    {
        const auto boxes = onHost(rows_.data(), rows_.size(), stream);
        checkBoxes(boxes.data(), count_, options_.boundary);
        // the host may round the other way
        const int system = record_->status.data()->badInput;
        throw boxNotLegal(
                system, boxes.data() + 9 * static_cast<size_t>(system), options_.boundary);
    }
}

template<class Real>
void SystemsOnDevice<Real>::look(bool refuses, cudaStream_t stream)
{
    const auto systems  = static_cast<size_t>(count_);
    const auto channels = static_cast<size_t>(options_.channels);
    f_.resize(hasImages() ? 3 * particles_ : 0);
    keys_.resize(particles_);
    order_.resize(particles_);
    net_.resize(systems * channels);
    squares_.resize(systems * channels);
    isSorted_ = false;
    if (isSlab())
    {
        boxSlabs(arrays(), view(), options_.accuracy, stream);
    }
    lookAt(arrays(), view(), options_.smearing, keys_.data(), refuses, stream);
    // where each system has one cell there is nothing to sort
    if (hasImages() && largest_ >= 2 * c_tile)
    {
        sort(stream);
    }
}

template<class Real>
void SystemsOnDevice<Real>::refuseParticles(cudaStream_t stream) const
{
    const auto all = onHost(findings_.data(), findings_.size(), stream);
    const auto in  = onHost(inBox_.data(), inBox_.size(), stream);
    for (int s = 0; s < count_; s++)
    {
        const SystemFindings& found = all[s];
        if (found.badPosition < in[s].n)
        {
            throw positionNotFinite(s, found.badPosition);
        }
        if (found.badCharge < in[s].n)
        {
            throw chargeNotFinite(s, found.badCharge);
        }
        if (found.tooFar < in[s].n)
        {
            throw inSystem(s, tooFarMessage(found.tooFar));
        }
    }
}

template<class Real>
void SystemsOnDevice<Real>::refuseHeight(cudaStream_t stream) const
{
    const int system   = record_->status.data()->tooHigh;
    const SlabBox slab = onHost(slabs_.data() + system, 1, stream)[0];
    throw inSystem(system, tooHighMessage(slab.thickness));
}

template<class Real>
void SystemsOnDevice<Real>::sort(cudaStream_t stream)
{
    if (largest_ <= c_mostRanked)
    {
        rankByCell(inBox_.data(), count_, keys_.data(), order_.data(), stream);
        return;
    }
    sortedKeys_.resize(particles_);
    sortedOrder_.resize(particles_);
    const auto by = [&](void* space, size_t bytes)
    {
        return sortByCell(keys_.data(),
                          sortedKeys_.data(),
                          order_.data(),
                          sortedOrder_.data(),
                          static_cast<int>(particles_),
                          firstCellOf(count_, static_cast<int>(particles_)),
                          space,
                          bytes,
                          stream);
    };
    sortSpace_.resize(by(nullptr, 0));
    by(sortSpace_.data(), sortSpace_.size());
    isSorted_ = true;
}

template<class Real>
void SystemsOnDevice<Real>::takeDirection(const BatchDirection<Real>& direction,
                                          cudaStream_t stream)
{
    const size_t charges = particles_ * options_.channels;
    hasMoves_            = direction.x != nullptr;
    farfield::take(&dx_, direction.x, hasMoves_ ? 3 * particles_ : 0, stream);
    dq_.resize(charges);
    if (direction.q != nullptr)
    {
        copyAsync(dq_.data(), direction.q, charges, stream, "copying charges to the GPU");
    }
    else
    {
        dq_.clear(stream);
    }
    if (hasImages() && direction.boxes != nullptr)
    {
        farfield::take(&dBoxes_, direction.boxes, rows_.size(), stream);
        takeStrains(arrays(), dBoxes_.data(), stream);
    }
    moves_.resize(3 * particles_);
    fractions_.resize(3 * particles_);
    dNet_.resize(static_cast<size_t>(count_) * options_.channels);
    farfield::takeDirection(inBox_.data(), count_, hasImages(), view(), changes(), stream);
}

template<class Real>
void SystemsOnDevice<Real>::takeChangesAsCharges(cudaStream_t stream)
{
    farfield::take(&q_, dq_.data(), dq_.size(), stream);
    look(false, stream);
}

template<class Real>
void SystemsOnDevice<Real>::takeErrors(const double* given, cudaStream_t stream)
{
    if (given != nullptr)
    {
        farfield::take(&errors_, given, errors_.size(), stream);
    }
}

template<class Real>
void SystemsOnDevice<Real>::refuseErrors(cudaStream_t stream) const
{
    checkErrors(onHost(errors_.data(), errors_.size(), stream).data(), count_);
}

template<class Real>
typename SystemsOnDevice<Real>::OnHost SystemsOnDevice<Real>::fetch(int system,
                                                                    cudaStream_t stream) const
{
    OnHost own;
    if (hasImages())
    {
        const double* const rows = isSlab() ? slabs_.data()[system].rows
                                            : rows_.data() + 9 * static_cast<size_t>(system);
        own.box                  = onHost(rows, 9, stream);
    }
    const SystemInBox in = onHost(inBox_.data() + system, 1, stream)[0];
    own.traits           = onHost(traits_.data() + system, 1, stream)[0];
    own.error            = onHost(errors_.data() + system, 1, stream)[0];
    own.first            = in.first;
    own.n                = in.n;
    return own;
}

template<class Real>
void SystemsOnDevice<Real>::refuseContacts(const char* touches,
                                           bool potentials,
                                           cudaStream_t stream) const
{
    const auto contacts = onHost(contacts_.data(), contacts_.size(), stream);
    for (int s = 0; s < count_; s++)
    {
        if (contacts[s] < 0)
        {
            continue;
        }
        const OnHost own    = fetch(s, stream);
        const auto first    = static_cast<size_t>(own.first);
        const auto n        = static_cast<size_t>(own.n);
        const auto channels = static_cast<size_t>(options_.channels);
        const auto x        = onHost(x_.data() + 3 * first, 3 * n, stream);
        const auto q        = onHost(q_.data() + channels * first, channels * n, stream);
        const auto touching = onHost(touches + first, n, stream);
        const ReducedBox box(
                hasImages() ? Mat3(Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(
                        own.box.data()))
                            : Mat3::Identity());
        const BatchSystem<Real> system = { x.data(), q.data(), nullptr, own.n };
        for (int i = 0; i < own.n; i++)
        {
            if (touching[i] != 0)
            {
                withSystemNamed(s,
                                [&]
                                {
                                    refuseContact(system,
                                                  hasImages() ? &box : nullptr,
                                                  options_.channels,
                                                  i,
                                                  std::sqrt(contacts[s]),
                                                  potentials);
                                });
            }
        }
    }
}

template<class Real>
SystemArrays SystemsOnDevice<Real>::arrays()
{
    return { count_,
             hasImages(),
             offsets_.data(),
             rows_.data(),
             inBox_.data(),
             boxes_.data(),
             isSlab() ? slabs_.data() : nullptr,
             findings_.data(),
             traits_.data(),
             isCharged_.data(),
             isLeft_.data(),
             aims_.data(),
             errors_.data(),
             contacts_.data(),
             status_.data() };
}

template<class Real>
BatchParticles<Real> SystemsOnDevice<Real>::view()
{
    return { options_.channels,
             x_.data(),
             q_.data(),
             f_.data(),
             isSorted_ ? sortedOrder_.data() : order_.data(),
             net_.data(),
             squares_.data() };
}

template<class Real>
BatchChanges<Real> SystemsOnDevice<Real>::changes()
{
    return {
        hasMoves_ ? dx_.data() : nullptr, dq_.data(), moves_.data(), fractions_.data(), dNet_.data()
    };
}

template class SystemsOnDevice<float>;
template class SystemsOnDevice<double>;

} // namespace farfield
