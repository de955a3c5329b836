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

using Rows = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

template<class T>
void take(DeviceBuffer<T>* to, const T* from, size_t count, cudaStream_t stream)
{
    to->resize(count);
    copyAsync(to->data(), from, count, stream, "copying systems to the GPU");
}

//! Copies to the host; whoever reads it waits first.
template<class T>
void takeToHost(std::vector<T>* to, const T* from, size_t count, cudaStream_t stream)
{
    to->resize(count);
    copyAsync(to->data(), from, count, stream, "copying systems from the GPU");
}

void wait(cudaStream_t stream)
{
    check(cudaStreamSynchronize(stream), "waiting for systems");
}

/*! \brief Cells by which particles are sorted, so that those of a tile are near each other.
 *  \param[out] cells  along each axis */
void findCells(const ReducedBox& box, int n, int* cells)
{
    const double perLength = std::cbrt(n / (c_tile * box.volume));
    const int most         = std::max(1, n / c_tile);
    for (int k = 0; k < 3; k++)
    {
        cells[k] = static_cast<int>(std::clamp(box.heights[k] * perLength + 0.5, 1.0, 1.0 * most));
    }
    // of flat boxes
    while (static_cast<double>(cells[0]) * cells[1] * cells[2] > 2.0 * most)
    {
        int* const largest = std::max_element(cells, cells + 3);
        *largest           = (*largest + 1) / 2;
    }
}

} // namespace

template<class Real>
void SystemsOnDevice<Real>::takeBoxes(const BatchInput<Real>& input, cudaStream_t stream)
{
    takeToHost(&given_, input.boxes, 9 * static_cast<size_t>(input.systems), stream);
    wait(stream);
    checkBoxes(given_.data(), input.systems);
    boxes_.clear();
    boxes_.reserve(input.systems);
    for (int s = 0; s < input.systems; s++)
    {
        boxes_.emplace_back(Eigen::Map<const Rows>(given_.data() + 9 * static_cast<size_t>(s)));
    }
}

template<class Real>
void SystemsOnDevice<Real>::take(const BatchInput<Real>& input, cudaStream_t stream)
{
    checkNumber(input.systems, "systems");
    std::vector<int> offsets = { 0 };
    if (input.systems > 0)
    {
        takeToHost(&offsets, input.offsets, static_cast<size_t>(input.systems) + 1, stream);
        wait(stream);
    }
    checkOffsets(offsets.data(), input.systems);
    offsets_ = std::move(offsets);
    if (hasImages())
    {
        takeBoxes(input, stream);
    }
    farfield::take(&x_, input.x, 3 * particles(), stream);
    farfield::take(&q_, input.q, particles() * options_.channels, stream);
    inBox_.assign(count(), SystemInBox{});
    cells_ = 0;
    for (int s = 0; s < count(); s++)
    {
        SystemInBox& one = inBox_[s];
        one.first        = first(s);
        one.n            = size(s);
        one.firstCell    = cells_;
        if (hasImages())
        {
            Eigen::Map<Rows>{ one.inverse } = boxes_[s].inverse;
            findCells(boxes_[s], one.n, one.cells);
            cells_ += one.cells[0] * one.cells[1] * one.cells[2];
        }
    }
    look(stream);
    check();
}

template<class Real>
void SystemsOnDevice<Real>::look(cudaStream_t stream)
{
    const auto systems  = static_cast<size_t>(count());
    const auto channels = static_cast<size_t>(options_.channels);
    f_.resize(hasImages() ? 3 * particles() : 0);
    keys_.resize(particles());
    order_.resize(particles());
    net_.resize(systems * channels);
    squares_.resize(systems * channels);
    findings_.resize(systems);
    farfield::take(&inBoxOnDevice_, inBox_.data(), systems, stream);
    isSorted_ = false;
    lookAt(inBoxOnDevice_.data(),
           count(),
           hasImages(),
           view(),
           keys_.data(),
           findings_.data(),
           stream);
    takeToHost(&found_, findings_.data(), systems, stream);
    takeToHost(&squared_, squares_.data(), systems * channels, stream);
    // where each system has one cell there is nothing to sort
    if (cells_ > count())
    {
        sort(stream);
    }
    wait(stream);
    traits_.assign(systems, SystemTraits{});
    for (size_t s = 0; s < systems; s++)
    {
        traits_[s].charged = found_[s].charged;
        traits_[s].volume  = hasImages() ? boxes_[s].volume : 0;
        for (size_t c = 0; c < channels; c++)
        {
            traits_[s].squaredCharges += squared_[s * channels + c];
        }
    }
}

template<class Real>
void SystemsOnDevice<Real>::check() const
{
    for (int s = 0; s < count(); s++)
    {
        const SystemFindings& found = found_[s];
        if (found.badPosition < size(s))
        {
            throw positionNotFinite(s, found.badPosition);
        }
        if (found.badCharge < size(s))
        {
            throw chargeNotFinite(s, found.badCharge);
        }
        if (found.tooFar < size(s))
        {
            throw inSystem(s, tooFarMessage(found.tooFar));
        }
    }
}

template<class Real>
void SystemsOnDevice<Real>::sort(cudaStream_t stream)
{
    sortedKeys_.resize(particles());
    sortedOrder_.resize(particles());
    const auto by = [&](void* space, size_t bytes)
    {
        return sortByCell(keys_.data(),
                          sortedKeys_.data(),
                          order_.data(),
                          sortedOrder_.data(),
                          static_cast<int>(particles()),
                          cells_,
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
    const size_t charges = particles() * options_.channels;
    hasMoves_            = direction.x != nullptr;
    farfield::take(&dx_, direction.x, hasMoves_ ? 3 * particles() : 0, stream);
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
        std::vector<double> changes;
        takeToHost(&changes, direction.boxes, given_.size(), stream);
        wait(stream);
        for (int s = 0; s < count(); s++)
        {
            const size_t at = 9 * static_cast<size_t>(s);
            Eigen::Map<Rows>{ inBox_[s].strain } =
                    Mat3(Eigen::Map<const Rows>(given_.data() + at)).inverse()
                    * Eigen::Map<const Rows>(changes.data() + at);
        }
        farfield::take(&inBoxOnDevice_, inBox_.data(), inBox_.size(), stream);
    }
    moves_.resize(3 * particles());
    fractions_.resize(3 * particles());
    dNet_.resize(static_cast<size_t>(count()) * options_.channels);
    farfield::takeDirection(inBoxOnDevice_.data(), count(), hasImages(), view(), changes(), stream);
}

template<class Real>
void SystemsOnDevice<Real>::takeChangesAsCharges(cudaStream_t stream)
{
    farfield::take(&q_, dq_.data(), dq_.size(), stream);
    look(stream);
}

template<class Real>
std::vector<double> SystemsOnDevice<Real>::errorsOf(const double* given, cudaStream_t stream) const
{
    std::vector<double> errors(count(), 0.0);
    if (given != nullptr)
    {
        takeToHost(&errors, given, errors.size(), stream);
        wait(stream);
        checkErrors(errors.data(), count());
    }
    return errors;
}

template<class Real>
void SystemsOnDevice<Real>::refuseContacts(int system,
                                           const char* contacts,
                                           double rounding,
                                           bool potentials,
                                           cudaStream_t stream) const
{
    const auto at = static_cast<size_t>(first(system)), n = static_cast<size_t>(size(system));
    std::vector<Real> x, q;
    std::vector<char> touches;
    takeToHost(&x, x_.data() + 3 * at, 3 * n, stream);
    takeToHost(&q, q_.data() + at * options_.channels, n * options_.channels, stream);
    takeToHost(&touches, contacts + at, n, stream);
    wait(stream);
    const ReducedBox* const box = hasImages() ? &boxes_[system] : nullptr;
    const BatchSystem<Real> own = { x.data(), q.data(), nullptr, size(system) };
    for (int i = 0; i < own.n; i++)
    {
        if (touches[i] != 0)
        {
            refuseContact(own, box, options_.channels, i, rounding, potentials);
        }
    }
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
