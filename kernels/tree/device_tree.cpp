/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tree/device_tree.h"

#include <algorithm>

#include "operators/solid_harmonics.h"
#include "runtime/matrix3.h"

namespace farfield
{
namespace
{

//! Room for families beyond those that particles may come to, as a factor: some move far.
constexpr double c_familyReserve = 1.02;
//! Motion that room is made for, and motion that must be left: leaf cells. What lies between keeps
//! room from being made at every look.
constexpr double c_reserveMargin = 0.25, c_leastMargin = 0.1;
//! Room that is kept, as a factor of what is needed: particles that were spread, to measure errors
//! or before a jump, leave more.
constexpr double c_mostSlack = 2;
static_assert(c_reserveMargin <= c_largestReachMargin, "counts are right up to that margin");

int roundUp(long long count, int multiple)
{
    return static_cast<int>((count + multiple - 1) / multiple * multiple);
}

} // namespace

template<class Real>
void DeviceTree<Real>::build(const Discretisation& discretisation, cudaStream_t stream)
{
    coarseCells_  = discretisation.coarseCells();
    coefficients_ = coefficientCount(discretisation.order);
    ws_           = discretisation.ws;
    levels_.resize(discretisation.levels);
    setLevel0(Grid(coarseCells_, discretisation.referenceBox), stream);
    setBox(discretisation.referenceBox);
    if (levels() > 1)
    {
        reach_.resize(grids());
    }
}

template<class Real>
Grid DeviceTree<Real>::setBox(const Mat3& box)
{
    Grid leaves(coarseCells_, box);
    for (int level = 0; level < this->levels(); level++)
    {
        if (level > 0)
        {
            leaves = leaves.refined();
        }
        levels_[level] = { leaves.plain(), leaves.unit() };
    }
    copyTo(leaves.inverseEdges(), inverseEdges_);
    return leaves;
}

template<class Real>
void DeviceTree<Real>::setLevel0(const Grid& coarse, cudaStream_t stream)
{
    const int cells = static_cast<int>(coarse.count());
    std::vector<int> cellOf(roundUp(cells, c_warp), -1), slotOf(cells);
    for (int cell = 0; cell < cells; cell++)
    {
        slotOf[cell]         = coarse.slot(coarse.cell(cell));
        cellOf[slotOf[cell]] = cell;
    }
    cellOf_.upload(cellOf.data(), cellOf.size(), stream);
    slotOf_.upload(slotOf.data(), slotOf.size(), stream);
    top_ = expansionsFor(static_cast<int>(cellOf.size()), stream);
}

template<class Real>
typename DeviceTree<Real>::Expansions DeviceTree<Real>::expansionsFor(int stride,
                                                                      cudaStream_t stream) const
{
    Expansions result;
    result.stride     = stride;
    const size_t size = static_cast<size_t>(stride) * coefficients_;
    result.M.resize(size);
    result.L.resize(size);
    // padding is read by transforms and products, and must be finite
    result.M.clear(stream);
    result.L.clear(stream);
    return result;
}

template<class Real>
const typename DeviceTree<Real>::Expansions& DeviceTree<Real>::expansions(int level) const
{
    return level == 0 ? top_ : room_->expansions[level];
}

template<class Real>
LevelView<Real> DeviceTree<Real>::view(int level)
{
    const bool top  = level == 0;
    Expansions& own = top ? top_ : room_->expansions[level];
    return { levels_[level].grid,
             own.stride,
             own.M.data(),
             own.L.data(),
             top ? cellOf_.data() : room_->lists.cellOf(level),
             top ? slotOf_.data() : room_->lists.slotOf(level) };
}

template<class Real>
std::vector<CellGrid> DeviceTree<Real>::grids() const
{
    std::vector<CellGrid> result;
    for (const Level& level : levels_)
    {
        result.push_back(level.grid);
    }
    return result;
}

template<class Real>
bool DeviceTree<Real>::isTight() const
{
    bool tight = false;
    for (int level = 1; room_ && level < levels(); level++)
    {
        tight = tight || reach_.families(level) > room_->lists.capacity(level);
    }
    return tight;
}

//! Whether there is far more room than for the families of the last count.
template<class Real>
bool DeviceTree<Real>::isLoose(int particles) const
{
    bool loose = false;
    for (int level = 1; room_ && level < levels(); level++)
    {
        loose = loose || room_->lists.capacity(level) > c_mostSlack * capacityFor(level, particles);
    }
    return loose;
}

/*! \brief Families of a level to have room for, by the last count.
 *
 *  The order of sums follows from the room: where it must not follow from the last count, there is room
 *  for all that so many particles may come to, eight each with the margin of the counts. */
template<class Real>
int DeviceTree<Real>::capacityFor(int level, int particles) const
{
    const double reached = reproducible_ ? 8.0 * std::max(1, particles)
                                         : c_familyReserve * reach_.families(level) + c_warp;
    const double wanted  = std::min<double>(levels_[level - 1].grid.cells, reached);
    return roundUp(static_cast<long long>(wanted), c_warp);
}

template<class Real>
bool DeviceTree<Real>::needsRoom() const
{
    return isTight() || (room_ && room_->lists.hasOverflow());
}

//! Counts the families that particles may come to, and waits.
template<class Real>
void DeviceTree<Real>::count(const DeviceCells<Real>& particles, double margin, cudaStream_t stream)
{
    reach_.count(particles.particles(),
                 inverseEdges_,
                 margin,
                 particles.evaluation()->origin,
                 nullptr,
                 stream);
    check(cudaStreamSynchronize(stream), "waiting for the kernels");
}

template<class Real>
bool DeviceTree<Real>::ensureRoom(const DeviceCells<Real>& particles,
                                  bool continues,
                                  cudaStream_t stream)
{
    bool hasTooMuch = false;
    if (room_ && !continues)
    {
        count(particles, c_reserveMargin, stream);
        hasTooMuch = isLoose(particles.particles().n);
        if (!hasTooMuch)
        {
            count(particles, c_leastMargin, stream);
        }
    }
    if (room_ && !hasTooMuch && !needsRoom())
    {
        return false;
    }
    makeRoom(particles, stream);
    return true;
}

//! Lists and expansions anew. Those before last are freed: see farfield_cuda.h.
template<class Real>
void DeviceTree<Real>::makeRoom(const DeviceCells<Real>& particles, cudaStream_t stream)
{
    check(cudaDeviceSynchronize(), "waiting for the GPU");
    formerRoom_.reset();
    count(particles, c_reserveMargin, stream);
    auto room = std::make_unique<Room>();
    std::vector<int> capacities(levels_.size(), 0);
    room->expansions.resize(levels_.size());
    for (int level = 1; level < levels(); level++)
    {
        capacities[level]       = capacityFor(level, particles.particles().n);
        room->expansions[level] = expansionsFor(8 * capacities[level], stream);
    }
    room->lists.resize(grids(), ws_, capacities, slotOf_.data(), stream);
    formerRoom_ = std::exchange(room_, std::move(room));
}

template<class Real>
void DeviceTree<Real>::list(const DeviceCells<Real>& particles, cudaStream_t stream)
{
    room_->lists.build(particles.particles(), stream);
}

template<class Real>
void DeviceTree<Real>::watch(const DeviceCells<Real>& particles, cudaStream_t stream)
{
    reach_.count(particles.particles(),
                 inverseEdges_,
                 c_leastMargin,
                 particles.evaluation()->origin,
                 &particles.evaluation()->number,
                 stream);
}

template<class Real>
bool DeviceTree<Real>::overflowed()
{
    bool any = false;
    for (Room* room : { room_.get(), formerRoom_.get() })
    {
        any = (room != nullptr && room->lists.overflow()) || any;
    }
    return any;
}

template<class Real>
std::vector<double> DeviceTree<Real>::multipoles(int level, cudaStream_t stream) const
{
    return byCell(level, expansions(level).M, stream);
}

template<class Real>
std::vector<double> DeviceTree<Real>::locals(int level, cudaStream_t stream) const
{
    return byCell(level, expansions(level).L, stream);
}

template<class Real>
std::vector<double> DeviceTree<Real>::byCell(int level,
                                             const DeviceBuffer<Real>& values,
                                             cudaStream_t stream) const
{
    const int cells  = levels_[level].grid.cells;
    const int stride = expansions(level).stride;
    std::vector<Real> all(static_cast<size_t>(stride) * coefficients_);
    std::vector<int> slotOf(cells);
    values.download(all.data(), all.size(), stream);
    const int* slots = level == 0 ? slotOf_.data() : room_->lists.slotOf(level);
    copyAsync(slotOf.data(), slots, cells, stream, "copying from the GPU");
    check(cudaStreamSynchronize(stream), "copying from the GPU");
    std::vector<double> result(static_cast<size_t>(cells) * coefficients_, 0.0);
    for (int cell = 0; cell < cells; cell++)
    {
        for (int i = 0; i < coefficients_ && slotOf[cell] >= 0; i++)
        {
            result[static_cast<size_t>(cell) * coefficients_ + i] =
                    all[static_cast<size_t>(i) * stride + slotOf[cell]];
        }
    }
    return result;
}

template class DeviceTree<float>;
template class DeviceTree<double>;

} // namespace farfield
