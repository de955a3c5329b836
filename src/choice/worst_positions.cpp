/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/worst_positions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cells/excluded_pairs.h"
#include "cells/minimum_image.h"

namespace farfield
{

std::array<double, 3> cornerAt(const Vec3& point, const Grid& leaf)
{
    const Mat3& toCells = leaf.inverseEdges();
    std::array<double, 3> offset;
    for (int axis = 0; axis < 3; axis++)
    {
        double cell = 0;
        for (int j = 0; j < 3; j++)
        {
            cell += point[j] * toCells(j, axis);
        }
        offset[axis] = cell - std::floor(cell);
    }
    return offset;
}

namespace
{

//! Multiples of box vectors that lead from a cell to those that are just far, and back.
std::vector<Vec3> shiftsBeyond(const Discretisation& d, const Mat3& box)
{
    const IntMat& cells = d.leafCells;
    Int3 reach;
    for (int k = 2; k >= 0; k--)
    {
        // rows below go along this axis, too
        int across = d.ws + 1;
        for (int row = k + 1; row < 3; row++)
        {
            across += reach[row] * std::abs(cells[row][k]);
        }
        reach[k] = isOpenAlong(d.boundary, k) ? 0 : (across + cells[k][k] - 1) / cells[k][k];
    }
    std::vector<Vec3> shifts;
    for (int a = -reach[0]; a <= reach[0]; a++)
    {
        for (int b = -reach[1]; b <= reach[1]; b++)
        {
            for (int c = -reach[2]; c <= reach[2]; c++)
            {
                shifts.push_back((a * box.row(0) + b * box.row(1) + c * box.row(2)).transpose());
            }
        }
    }
    return shifts;
}

//! Two particles of which one is in the far field of the other.
struct FarPair
{
    double error; //!< in some unit
    int i;
    Vec3 apart; //!< r_i - r_j of an image, nm
};

//! The far pairs with the largest errors, in descending order.
class WorstPairs
{
public:
    //! \param[in] largest  magnitude of a charge, e
    WorstPairs(const Discretisation& d, const Grid& leaf, double largest) :
        toCells_(leaf.inverseEdges()), ws_(d.ws), decay_(0.5 * (d.order + 3)), largest_(largest),
        near2_(std::pow(surelyNear(leaf, d.ws), 2))
    {
    }
    //! \param[in] product  of the magnitudes of the charges, e^2
    void look(int i, const Vec3& apart, double product)
    {
        constexpr size_t c_pairs = 4;

        const double r2 = apart.squaredNorm();
        if (!(r2 > near2_) || r2 > farthest2_
            || (apart.transpose() * toCells_).cwiseAbs().maxCoeff() <= ws_)
        {
            return;
        }
        const double error = product * std::pow(r2, -decay_);
        const auto behind  = [&](const FarPair& other) { return other.error < error; };
        pairs_.insert(std::find_if(pairs_.begin(), pairs_.end(), behind), { error, i, apart });
        if (pairs_.size() > c_pairs)
        {
            pairs_.pop_back();
            farthest2_ = std::pow(largest_ * largest_ / pairs_.back().error, 1 / decay_);
        }
    }
    const std::vector<FarPair>& found() const { return pairs_; }

private:
    Mat3 toCells_;
    int ws_;
    double decay_; //!< of errors with the squared distance
    double largest_;
    double near2_; //!< closer ones are near, nm^2
    //! Errors of pairs that are farther apart are smaller than those that were found.
    double farthest2_ = std::numeric_limits<double>::infinity();
    std::vector<FarPair> pairs_;
};

/*! \brief Where between the two a cell ends, nm from the first.
 *
 *  A cell ends at one of the two. Of few particles that may be another one in each dimension, and where
 *  the two are near each other cells end beyond them: one is in the corner of its cell then. */
std::vector<Vec3> cellEndsOf(const FarPair& pair, const Grid& leaf, int ws, bool areVeryFew)
{
    constexpr double c_partsOf[] = { 1e-3, 1 - 1e-3 };
    constexpr double c_beyond    = 1e-3; // cells
    constexpr int c_combinations = 8;

    const Vec3 inCells = (pair.apart.transpose() * leaf.inverseEdges()).transpose();
    std::vector<Vec3> all;
    for (int ends = 0; ends < c_combinations; ends += areVeryFew ? 1 : c_combinations - 1)
    {
        Vec3 back;
        for (int k = 0; k < 3; k++)
        {
            const int end        = ends >> k & 1;
            const bool isBeyond  = areVeryFew && std::abs(inCells[k]) <= ws;
            const double between = c_partsOf[end] * inCells[k];
            const double beyond =
                    end * inCells[k] + (2 * end - 1) * std::copysign(c_beyond, inCells[k]);
            back[k] = isBeyond ? beyond : between;
        }
        all.push_back(leaf.edges().transpose() * back);
    }
    return all;
}

} // namespace

template<class Real>
std::vector<Vec3> pointsInMainPair(const ChargeSet<Real>& charges,
                                   const Real* x,
                                   const Mat3& box,
                                   const std::vector<Real>& forces)
{
    //! Part of all squared forces that is worth a look, and where the pair is parted.
    constexpr double c_part      = 0.05;
    constexpr double c_partsOf[] = { 0.5, 0.3, 0.7, 0.4 };

    const int n = charges.count();
    int main    = 0;
    double all = 0, largest = -1;
    for (int i = 0; i < n; i++)
    {
        double square = 0;
        for (int k = 0; k < 3; k++)
        {
            const double f = static_cast<double>(forces[3 * static_cast<size_t>(i) + k]);
            square += f * f;
        }
        all += square;
        if (square > largest)
        {
            largest = square;
            main    = i;
        }
    }
    if (!(largest >= c_part * all))
    {
        return {};
    }
    const ExcludedPairs& excluded = charges.excluded();
    const auto excludes           = [&](int i, int j)
    {
        const int* const begin = excluded.partners.data();
        const int* const end   = begin + excluded.offsets[i + 1];
        return std::find(begin + excluded.offsets[i], end, j) != end;
    };
    const auto position      = [&](int i) { return x + 3 * static_cast<size_t>(i); };
    const MinimumImage image = MinimumImage::of(box);
    double nearest           = std::numeric_limits<double>::infinity();
    Vec3 apart               = Vec3::Zero();
    for (int j = 0; j < n; j++)
    {
        double dx[3];
        if (j != main && charges.isActing(j))
        {
            const double r2 = image.between(position(main), position(j), dx);
            if (r2 < nearest && !excludes(main, j) && !excludes(j, main))
            {
                nearest = r2;
                apart   = Vec3(dx[0], dx[1], dx[2]);
            }
        }
    }
    std::vector<Vec3> points;
    for (const double part : c_partsOf)
    {
        const Real* r = position(main);
        points.push_back(Vec3(r[0], r[1], r[2]) - part * apart);
    }
    return std::isfinite(nearest) ? points : std::vector<Vec3>();
}

template<class Real>
std::vector<Vec3> pointsAtFarPairs(const ChargeSet<Real>& charges,
                                   const Real* x,
                                   const Mat3& box,
                                   const Discretisation& d)
{
    if (d.isAllNear())
    {
        return {};
    }
    const bool areVeryFew    = charges.count() <= 64; // whose images are looked at, too
    const Grid leaf          = d.leafGrid(box);
    const MinimumImage image = MinimumImage::of(box);
    const auto& q            = charges.charges();
    const auto position      = [&](int i) { return x + 3 * static_cast<size_t>(i); };
    const auto size          = [&](int i) { return std::abs(static_cast<double>(q[i])); };
    double largest           = 0;
    for (int i = 0; i < charges.count(); i++)
    {
        largest = std::max(largest, size(i));
    }
    WorstPairs pairs(d, leaf, largest);
    // of very few in boxes of few cells all nearest images may be near
    const std::vector<Vec3> shifts =
            areVeryFew ? shiftsBeyond(d, box) : std::vector<Vec3>{ Vec3::Zero() };
    for (int i = 0; i < charges.count(); i++)
    {
        for (int j = 0; j < i; j++)
        {
            const double product = size(i) * size(j);
            if (product > 0)
            {
                double dx[3];
                image.between(position(i), position(j), dx);
                for (const Vec3& shift : shifts)
                {
                    pairs.look(i, Vec3(dx[0], dx[1], dx[2]) + shift, product);
                }
            }
        }
    }
    std::vector<Vec3> points;
    for (const FarPair& pair : pairs.found())
    {
        const Real* r = position(pair.i);
        for (const Vec3& back : cellEndsOf(pair, leaf, d.ws, areVeryFew))
        {
            points.push_back(Vec3(r[0], r[1], r[2]) - back);
        }
    }
    return points;
}

template decltype(pointsInMainPair<float>) pointsInMainPair<float>;
template decltype(pointsInMainPair<double>) pointsInMainPair<double>;
template decltype(pointsAtFarPairs<float>) pointsAtFarPairs<float>;
template decltype(pointsAtFarPairs<double>) pointsAtFarPairs<double>;

} // namespace farfield
