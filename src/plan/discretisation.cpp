/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "plan/discretisation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cells/cell_shape.h"
#include "plan/cost_model.h"
#include "plan/error_estimate.h"
#include "plan/open_box.h"
#include "plan/operator_limits.h"

namespace farfield
{
namespace
{

//! Smallest leaf cell, nm: closer than any two atoms that interact.
constexpr double c_minCellSize = 0.15;
//! Least order that is chosen: without dipoles there is hardly a far field.
constexpr int c_leastOrder = 1;

int levelsFor(Device device, const Mat3& box, double edge)
{
    const double cells = std::min({ box(0, 0), box(1, 1), box(2, 2) }) / edge;
    const double ratio = std::max(cells / coarseCells(device), 1.0);
    return 1 + std::max(1, static_cast<int>(std::lround(std::log2(ratio))));
}

/*! \brief Numbers of levels that suit cells of such an edge; 1: a convolution over the leaves.
 *
 *  A slab may be much longer along z than it is wide, if something has evaporated: a coarsest level
 *  of a few cells in the plane, or one, keeps it small. */
std::vector<int> levelsThatSuit(Device device, const Mat3& box, const Options& options, double edge)
{
    std::vector<int> result;
    if (options.m2l == M2lEngine::Auto || options.m2l == M2lEngine::Fft)
    {
        result.push_back(1);
    }
    if (options.m2l != M2lEngine::Fft)
    {
        result.push_back(levelsFor(device, box, edge));
        const double inPlane = std::min(box(0, 0), box(1, 1)) / edge;
        while (options.boundary == Boundary::Slab && (1 << result.back()) <= inPlane)
        {
            result.push_back(result.back() + 1);
        }
    }
    return result;
}

} // namespace

IntMat Discretisation::coarseCells() const
{
    IntMat H = leafCells;
    for (Int3& row : H)
    {
        for (int& entry : row)
        {
            entry /= 1 << (levels - 1);
        }
    }
    return H;
}

bool Discretisation::isAllNear() const
{
    return levels == 1 && OpenCells::of(leafCells, ws, boundary).areAllNear();
}

namespace
{

//! A setting before its cells are laid out.
struct Candidate
{
    int order, ws;
    double edge; //!< wanted, nm
    double cells;
    double cost, error; //!< predicted
    int levels;         //!< 1: none above the periodic M2L
    double memory;      //!< predicted, bytes
    double setUp;       //!< predicted, ns of one core
};

void checkCellSize(const Options& options, const Mat3& box)
{
    const double shortest = std::min({ box(0, 0), box(1, 1), box(2, 2) });
    if (options.cellSize > shortest * (1 + c_cellSizeRounding))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The cell size, " + std::to_string(options.cellSize)
                            + " nm, must not exceed the shortest box dimension, "
                            + std::to_string(shortest) + " nm.",
                    "cellSize");
    }
    if (options.cellSize > 0 && box.determinant() / std::pow(options.cellSize, 3) > c_maxCells)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The cell size, " + std::to_string(options.cellSize)
                            + " nm, splits the box into more than "
                            + std::to_string(static_cast<long long>(c_maxCells))
                            + " cells; larger cells are needed.",
                    "cellSize");
    }
}

//! Cells of the coarsest level. \param[in] lengths  of the leaves
OpenCells coarsestOf(const PlanTask& task, const Int3& lengths, int levels, int ws)
{
    const int split = 1 << (levels - 1);
    return { { lengths[0] / split, lengths[1] / split, lengths[2] / split },
             ws,
             task.options.boundary };
}

//! Whether cells keep particles without images apart from where these would be, and go on to.
bool keepApart(const PlanTask& task, const Int3& leafCells, int levels, int ws)
{
    return task.options.boundary == Boundary::Periodic
           || coarsestOf(task, leafCells, levels, ws).hold(task.box, largestLike(task.extent));
}

//! Cells that suit options and particles, of one direct range, for any order.
struct Cells
{
    double edge;     //!< wanted, nm
    double unit;     //!< cube root of the volume of a cell, nm
    bool areAllNear; //!< there is no far field
    int levels;
    Work work; //!< of some order
};

//! Edges in steps of 2 per cent, from too small to one cell.
std::vector<Cells> allCells(const PlanTask& task, int ws)
{
    const Options& options = task.options;
    const Mat3& box        = task.box;
    const double boxVolume = box.determinant();
    const double shortest  = std::min({ box(0, 0), box(1, 1), box(2, 2) });
    // without images at least some cells are needed
    const double smallest = std::min(
            c_minCellSize, options.boundary == Boundary::Periodic ? shortest : shortest / 8);
    const double n = std::max<double>(1, static_cast<double>(task.particles));
    std::vector<Cells> result;
    for (double edge = smallest; edge < 1.02 * shortest; edge *= 1.02)
    {
        const double wanted = options.cellSize > 0 ? options.cellSize : std::min(edge, shortest);
        for (const int levels : levelsThatSuit(task.device, box, options, wanted))
        {
            // as chooseCells() rounds: a tree splits cells of its coarsest level
            const int split = 1 << (levels - 1);
            Int3 lengths;
            for (int k = 0; k < 3; k++)
            {
                lengths[k] =
                        split
                        * std::max(1, static_cast<int>(std::lround(box(k, k) / (split * wanted))));
            }
            const double cells = static_cast<double>(lengths[0]) * lengths[1] * lengths[2];
            if (!keepApart(task, lengths, levels, ws)
                || (options.cellSize == 0 && (cells > c_maxCells || edge > task.largestCell)))
            {
                continue;
            }
            const bool areAllNear =
                    levels == 1 && coarsestOf(task, lengths, levels, ws).areAllNear();
            Work work(0, ws, lengths, levels, boxVolume, task.occupancy, n);
            if (areAllNear)
            {
                work.allAreNear();
            }
            result.push_back({ wanted, std::cbrt(boxVolume / cells), areAllNear, levels, work });
        }
        if (options.cellSize > 0)
        {
            break;
        }
    }
    return result;
}

//! All settings that the options leave open.
std::vector<Candidate> allCandidates(const PlanTask& task)
{
    const Options& options = task.options;
    const Mat3& box        = task.box;
    std::vector<Candidate> candidates;
    const int threads     = std::max(1, options.threads);
    const double shortest = std::min({ box(0, 0), box(1, 1), box(2, 2) });
    const int firstOrder  = options.order >= 0 ? options.order : c_leastOrder;
    const int lastOrder   = options.order >= 0 ? options.order : c_maxOrder;
    // if one suffices and the order is open, no other is asked for
    bool isOneSufficient = false;
    for (int ws = 1; ws <= 2; ws++)
    {
        if (options.directRange != 0 && options.directRange != ws)
        {
            continue;
        }
        // cells of the shape that this box allows
        const double ratio =
                shapeRatio(Grid(chooseCells(box, shortest / 16, ws, 1), box).edges(), ws);
        const std::vector<Cells> cells = allCells(task, ws);
        int mostLevels                 = 1;
        for (const Cells& c : cells)
        {
            mostLevels = std::max(mostLevels, c.levels);
        }
        for (int order = firstOrder; order <= lastOrder; order++)
        {
            const OperatorKind kind(order, options.leastSquares, box);
            // errors are in proportion to those of cells of 1 nm
            std::vector<double> errors(mostLevels + 1);
            for (int levels = 1; levels <= mostLevels; levels++)
            {
                errors[levels] = estimatedError(order, ws, options.leastSquares, 1, ratio, levels);
            }
            for (const Cells& c : cells)
            {
                const double error  = c.areAllNear ? c_errorOfNearField : errors[c.levels] / c.unit;
                const bool suffices = error <= options.accuracy;
                if (isOneSufficient && !suffices && options.order < 0)
                {
                    continue;
                }
                isOneSufficient = isOneSufficient || suffices;
                const Work work = c.work.ofOrder(order);
                candidates.push_back({ order,
                                       ws,
                                       c.edge,
                                       work.cells,
                                       predictedCost(task.device, work, task.network),
                                       error,
                                       c.levels,
                                       predictedMemory(work, kind, threads, task.realSize),
                                       predictedSetUp(work, kind) });
            }
        }
    }
    return candidates;
}

/*! \brief Leaves out what is beyond the bounds.
 *  \throws Error  nothing is left, or nothing of what suffices */
std::vector<Candidate> fittingCandidates(const PlanTask& task, const std::vector<Candidate>& all)
{
    const Options& options = task.options;
    const auto suffices    = [&](const Candidate& c) { return c.error <= options.accuracy; };
    const auto excessOf    = [&](const Candidate& c)
    { return Excess(task.device, c.memory, c.setUp); };
    std::vector<Candidate> fitting;
    std::copy_if(all.begin(),
                 all.end(),
                 std::back_inserter(fitting),
                 [&](const Candidate& c) { return !excessOf(c).any(); });
    // an explicit order need not suffice
    const bool lost = options.order < 0 && std::any_of(all.begin(), all.end(), suffices)
                      && std::none_of(fitting.begin(), fitting.end(), suffices);
    if (fitting.empty() || lost)
    {
        const auto least = std::min_element(
                all.begin(),
                all.end(),
                [&](const Candidate& a, const Candidate& b)
                {
                    return std::make_pair(lost && !suffices(a), excessOf(a).most())
                           < std::make_pair(lost && !suffices(b), excessOf(b).most());
                });
        refuseOperators(options, excessOf(*least), least->order, least->cells);
    }
    return fitting;
}

//! Those whose error suffices, cheapest first; if there are none, the one that comes closest.
std::vector<Candidate> sufficientCandidates(const Options& options,
                                            const std::vector<Candidate>& all)
{
    std::vector<Candidate> sufficient;
    std::copy_if(all.begin(),
                 all.end(),
                 std::back_inserter(sufficient),
                 [&](const Candidate& c) { return c.error <= options.accuracy; });
    const auto cheaper = [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; };
    if (!sufficient.empty())
    {
        std::stable_sort(sufficient.begin(), sufficient.end(), cheaper);
        return sufficient;
    }
    if (options.order < 0)
    {
        return { *std::min_element(all.begin(),
                                   all.end(),
                                   [](const Candidate& a, const Candidate& b)
                                   { return a.error < b.error; }) };
    }
    // an explicit order stands even if it misses the accuracy: the cheapest cells then
    const auto end = std::find_if(
            all.begin(), all.end(), [&](const Candidate& c) { return c.ws != all.front().ws; });
    return { *std::min_element(all.begin(), end, cheaper) };
}

//! Cells that have been laid out: they do not depend on the order.
class Layouts
{
public:
    explicit Layouts(const PlanTask& task) : options_(task.options), box_(task.box) {}
    //! The discretisation of a candidate, and its predicted error.
    std::pair<Discretisation, double> complete(const Candidate& candidate)
    {
        const auto& c = candidate;
        auto found    = known_.find({ c.edge, c.ws, c.levels });
        if (found == known_.end())
        {
            Layout layout;
            layout.cells = chooseCells(box_, c.edge, c.ws, 1 << (c.levels - 1));
            const Grid grid(layout.cells, box_);
            layout.unit  = grid.unit();
            layout.ratio = shapeRatio(grid.edges(), c.ws);
            found        = known_.insert({ { c.edge, c.ws, c.levels }, layout }).first;
        }
        const Layout& layout = found->second;
        Discretisation d;
        d.order        = c.order;
        d.ws           = c.ws;
        d.leastSquares = options_.leastSquares;
        d.engine       = engineOfLevels(options_);
        d.boundary     = options_.boundary;
        d.accuracy     = options_.accuracy;
        d.levels       = c.levels;
        d.referenceBox = box_;
        d.leafCells    = layout.cells;
        return {
            d,
            d.isAllNear()
                    ? c_errorOfNearField
                    : estimatedError(
                            c.order, c.ws, d.leastSquares, layout.unit, layout.ratio, d.levels)
        };
    }

private:
    struct Layout
    {
        IntMat cells;
        double unit, ratio;
    };
    const Options& options_;
    const Mat3& box_;
    std::map<std::tuple<double, int, int>, Layout> known_;
};

//! Whether a setting of about the same cost is among those that were taken.
bool hasAlike(const std::vector<Candidate>& taken, const Candidate& c)
{
    //! Numbers of cells closer than this cost the same.
    constexpr double c_likeCells = 1.12;
    return std::any_of(taken.begin(),
                       taken.end(),
                       [&](const Candidate& t)
                       {
                           return (t.levels == 1) == (c.levels == 1) && t.ws == c.ws
                                  && std::abs(std::log(t.cells / c.cells)) < std::log(c_likeCells);
                       });
}

//! All candidates; where none has cells that are small enough, those with larger ones.
std::vector<Candidate> candidatesFor(const PlanTask& task)
{
    auto all = allCandidates(task);
    if (all.empty())
    {
        PlanTask any    = task;
        any.largestCell = std::numeric_limits<double>::infinity();
        all             = allCandidates(any);
    }
    if (all.empty())
    {
        throw Error(ErrorCode::InvalidArgument,
                    "Without images more than half of the box must be empty, and no cells that "
                    "the options allow give such a box. Set a smaller cellSize, or 0, and "
                    "directRange = 1 or 0.",
                    "cellSize");
    }
    return all;
}

/*! \brief The settings that suffice, cheapest first: those of about the lowest cost, none twice.
 *  \param[in] most  no more than this; the result is never empty */
std::vector<Discretisation> cheapest(const PlanTask& task, size_t most)
{
    //! Predicted costs are right within such a factor: what is dearer is not timed.
    constexpr double c_dearer = 1.5;

    const Options& options = task.options;
    checkCellSize(options, task.box);
    const auto sufficient =
            sufficientCandidates(options, fittingCandidates(task, candidatesFor(task)));
    std::vector<Candidate> taken;
    std::vector<Discretisation> result;
    Layouts layouts(task);
    std::optional<std::pair<Discretisation, double>> closest;
    for (const Candidate& c : sufficient)
    {
        if (result.size() >= most || (!taken.empty() && c.cost > c_dearer * taken.front().cost))
        {
            break;
        }
        if (hasAlike(taken, c))
        {
            continue;
        }
        const std::pair<Discretisation, double> laidOut = layouts.complete(c);
        const Discretisation& d                         = laidOut.first;
        if (std::any_of(result.begin(),
                        result.end(),
                        [&](const Discretisation& r) {
                            return r.leafCells == d.leafCells && r.ws == d.ws
                                   && r.levels == d.levels;
                        }))
        {
            continue;
        }
        const Int3 cells = { d.leafCells[0][0], d.leafCells[1][1], d.leafCells[2][2] };
        if (excessOf(d, task.device, task.realSize).any()
            || !keepApart(task, cells, d.levels, d.ws))
        {
            // more cells came out than expected, or fewer
            continue;
        }
        if (laidOut.second > options.accuracy)
        {
            // the cells came out with a worse shape than expected
            if (!closest || laidOut.second < closest->second)
            {
                closest = laidOut;
            }
            continue;
        }
        taken.push_back(c);
        result.push_back(d);
    }
    if (result.empty() && !closest)
    {
        const Discretisation d = layouts.complete(sufficient.front()).first;
        refuseOperators(options,
                        excessOf(d, task.device, task.realSize),
                        d.order,
                        static_cast<double>(d.leafGrid(task.box).count()));
    }
    if (result.empty())
    {
        result.push_back(closest->first);
    }
    return result;
}

} // namespace

bool isOfOptions(const Discretisation& d, const Options& options, Device device)
{
    //! Cells that are laid out differ from those that were wanted, and follow their box.
    constexpr double c_otherEdges = 1.5;

    const bool isTree = d.levels > 1;
    // levelsFor() rounds the logarithm of the cells of the coarsest level
    const double mostCoarse = c_otherEdges * std::sqrt(2.0) * coarseCells(device);
    const Mat3& box         = d.referenceBox;
    const double coarse     = std::min({ box(0, 0), box(1, 1), box(2, 2) })
                          / (d.leafGrid(box).unit() * (1 << (d.levels - 1)));
    return (options.order >= 0 ? d.order == options.order : d.order >= c_leastOrder)
           && (options.directRange == 0 || d.ws == options.directRange)
           && (options.m2l == M2lEngine::Auto || isTree == (options.m2l != M2lEngine::Fft))
           && (!isTree || coarse <= mostCoarse);
}

Discretisation chooseDiscretisation(const PlanTask& task)
{
    return cheapest(task, 1).front();
}

std::vector<Discretisation> discretisationsToTime(const PlanTask& task)
{
    constexpr size_t c_most = 6;
    return cheapest(task, c_most);
}

} // namespace farfield
