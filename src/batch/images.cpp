/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/images.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "farfield/farfield.h"

#include "base/text.h"

namespace farfield
{

void checkImages(const ReducedBox& box, double cutoff, int n)
{
    const double images = imagesWithin(box.plain, cutoff, n);
    if (!(images < c_mostImages))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "needs " + text(images) + " images of its particles, more than "
                            + text(c_mostImages)
                            + ": its box is too flat or too long. Check its box vectors, or use a "
                              "Solver for it.",
                    "boxes");
    }
}

template<class Real>
template<class Use>
void Images<Real>::forImages(const double* f, const Use& use) const
{
    int first[3], last[3];
    for (int k = 0; k < 3; k++)
    {
        first[k] = static_cast<int>(std::ceil(-margin_[k] - f[k]));
        last[k]  = static_cast<int>(std::floor(1 + margin_[k] - f[k]));
    }
    for (int a = first[0]; a <= last[0]; a++)
    {
        const int binA = binOf(0, f[0] + a) * bins_[1];
        for (int b = first[1]; b <= last[1]; b++)
        {
            const int row = (binA + binOf(1, f[1] + b)) * bins_[2];
            for (int c = first[2]; c <= last[2]; c++)
            {
                use(a, b, c, row + binOf(2, f[2] + c));
            }
        }
    }
}

template<class Real>
void Images<Real>::layOut(const ReducedBox& box, double cutoff, int n)
{
    checkImages(box, cutoff, n);
    for (int k = 0; k < 3; k++)
    {
        margin_[k] = cutoff / box.heights[k];
    }
    // the finer the bins, the fewer images are too far away, but a row should fill a vector
    constexpr double c_along = 0.25, c_row = 16;
    const double inCube = n / box.volume * cutoff * cutoff * cutoff;
    const double across = std::clamp(std::sqrt(0.5 * c_row / inCube), 0.5, 1.0);
    double width[3]; // nm between faces of a bin
    for (int k = 0; k < 3; k++)
    {
        const double region = box.heights[k] + 2 * cutoff;
        const double wanted = region / (cutoff * (k == 2 ? c_along : across));
        // an image a bin or so
        const double most = 2 * region / std::cbrt(box.volume / n);
        bins_[k]          = static_cast<int>(std::max(1.0, std::min(wanted, most)));
        width[k]          = region / bins_[k];
        binsPerUnit_[k]   = bins_[k] / (1 + 2 * margin_[k]);
    }
    stencil_.clear();
    const auto reach = [&](int axis)
    { return std::min(bins_[axis] - 1, static_cast<int>(cutoff / width[axis]) + 1); };
    const auto gap = [&](int axis, int bins)
    { return std::max(0, std::abs(bins) - 1) * width[axis]; };
    if (std::is_integral<Place>::value)
    {
        double span = 0; // of the coordinates of a target and what may be its partner, nm
        for (int d = 0; d < 3; d++)
        {
            double component = 0;
            for (int k = 0; k < 3; k++)
            {
                component += (reach(k) + 1) / binsPerUnit_[k] * std::abs(box.vectors(k, d));
            }
            span = std::max(span, component);
        }
        unit_ = span / c_largestDifference;
    }
    for (int a = -reach(0); a <= reach(0); a++)
    {
        for (int b = -reach(1); b <= reach(1); b++)
        {
            // of boxes with other angles this would be no lower bound
            const double square =
                    box.isRectangular ? gap(0, a) * gap(0, a) + gap(1, b) * gap(1, b) : 0.0;
            const double left = cutoff * cutoff - square;
            if (left > 0)
            {
                stencil_.push_back({ a, b, static_cast<int>(std::sqrt(left) / width[2]) + 1 });
            }
        }
    }
}

template<class Real>
void Images<Real>::build(const ReducedBox& box,
                         const double* f,
                         const Real* carried,
                         int n,
                         int columns,
                         double cutoff)
{
    layOut(box, cutoff, n);
    columns_         = columns;
    const int binned = bins_[0] * bins_[1] * bins_[2];
    rounding_        = placesRounding(
            box.plain, cutoff, static_cast<double>(std::numeric_limits<Real>::epsilon()));
    start_.assign(binned + 1, 0);
    for (int i = 0; i < n; i++)
    {
        forImages(f + 3 * static_cast<size_t>(i),
                  [&](int, int, int, int bin) { start_[bin + 1]++; });
    }
    for (int bin = 0; bin < binned; bin++)
    {
        start_[bin + 1] += start_[bin];
    }
    count_  = start_[binned];
    stride_ = padded(count_ + c_batchPadding);
    next_.assign(start_.begin(), start_.end() - 1);
    for (auto* array : { &x_, &y_, &z_ })
    {
        array->resize(stride_);
    }
    carried_.resize(static_cast<size_t>(columns) * stride_);
    home_.resize(n);
    homeBin_.resize(n);
    const double toUnits = 1 / unit_;
    for (int i = 0; i < n; i++)
    {
        const double* at = f + 3 * static_cast<size_t>(i);
        forImages(at,
                  [&](int a, int b, int c, int bin)
                  {
                      const int to      = next_[bin]++;
                      const double u[3] = { at[0] + a - 0.5, at[1] + b - 0.5, at[2] + c - 0.5 };
                      double r[3];
                      for (int d = 0; d < 3; d++)
                      {
                          r[d] = toUnits
                                 * (u[0] * box.vectors(0, d) + u[1] * box.vectors(1, d)
                                    + u[2] * box.vectors(2, d));
                      }
                      x_[to] = placeAt<Place>(r[0]);
                      y_[to] = placeAt<Place>(r[1]);
                      z_[to] = placeAt<Place>(r[2]);
                      for (int column = 0; column < columns; column++)
                      {
                          carried_[static_cast<size_t>(column) * stride_ + to] =
                                  carried[static_cast<size_t>(i) * columns + column];
                      }
                      if (a == 0 && b == 0 && c == 0)
                      {
                          home_[i]    = to;
                          homeBin_[i] = bin;
                      }
                  });
    }
}

template<class Real>
PairTask<Real, typename Images<Real>::Place> Images<Real>::task() const
{
    PairTask<Real, Place> task = {};
    task.x                     = x_.data();
    task.y                     = y_.data();
    task.z                     = z_.data();
    task.carried               = carried_.data();
    task.columns               = columns_;
    task.stride                = stride_;
    task.unit                  = static_cast<Real>(unit_);
    return task;
}

template<class Real>
void Images<Real>::findRows(int particle, std::vector<PairRow>* rows) const
{
    rows->clear();
    const int bin  = homeBin_[particle];
    const int home = home_[particle];
    const int c    = bin % bins_[2];
    const int b    = bin / bins_[2] % bins_[1];
    const int a    = bin / bins_[2] / bins_[1];
    for (const Stencil& s : stencil_)
    {
        if (a + s.a < 0 || a + s.a >= bins_[0] || b + s.b < 0 || b + s.b >= bins_[1])
        {
            continue;
        }
        const int row     = ((a + s.a) * bins_[1] + b + s.b) * bins_[2];
        const PairRow all = { start_[row + std::max(0, c - s.reach)],
                              start_[row + std::min(bins_[2], c + s.reach + 1)] };
        if (s.a != 0 || s.b != 0)
        {
            rows->push_back(all);
            continue;
        }
        rows->push_back({ all.first, home });
        rows->push_back({ home + 1, all.last });
    }
}

template class Images<float>;
template class Images<double>;

} // namespace farfield
