/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/narrowed_slab.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cells/minimum_image.h"

namespace farfield
{
namespace
{

/*! \brief Excluded pairs of particles in two layers, each once, the smaller index first.
 *  \param[in] layer  of each particle */
template<class Real>
std::vector<std::pair<int, int>> excludedBetween(const std::vector<size_t>& layer,
                                                 const ChargeSet<Real>& charges)
{
    std::vector<std::pair<int, int>> pairs;
    const ExcludedPairs& excluded = charges.excluded();
    const auto& takesPart         = charges.takesPart();
    for (int i = 0; i < charges.count(); i++)
    {
        for (int k = excluded.offsets[i]; k < excluded.offsets[i + 1]; k++)
        {
            const int j = excluded.partners[k];
            if (layer[i] != layer[j] && takesPart[i] != 0 && takesPart[j] != 0)
            {
                pairs.emplace_back(std::min(i, j), std::max(i, j));
            }
        }
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    return pairs;
}

} // namespace

double keptWidth(const Mat3& box, const Options& options)
{
    // an order that was asked for may be meant to do better than the accuracy
    const double accuracy = options.order < 0 ? options.accuracy : 1e-12;
    // any wave vector of the plane is 2 pi or more over one of the two box vectors
    const double skew   = box(1, 0) - box(0, 0) * std::round(box(1, 0) / box(0, 0));
    const double period = std::max(box(0, 0), std::hypot(skew, box(1, 1)));
    return std::log(1e3 / accuracy) * period / (2 * M_PI);
}

template<class Real>
NarrowedSlab<Real>::NarrowedSlab(const Real* x, const std::vector<char>& counts, double kept)
{
    const size_t n      = counts.size();
    const auto heightOf = [&](size_t i) { return static_cast<double>(x[3 * i + 2]); };
    std::vector<double> heights;
    for (size_t i = 0; i < n; i++)
    {
        if (counts[i])
        {
            heights.push_back(heightOf(i));
        }
    }
    std::sort(heights.begin(), heights.end());
    for (const double z : heights)
    {
        if (layers_.empty() || z - layers_.back().last > kept)
        {
            layers_.push_back({ z, z, 0 });
        }
        layers_.back().last = z;
    }
    if (!any())
    {
        return;
    }
    // The layer nearest to the origin stays, and others come nearer: by a multiple of the last digit
    // of the largest of them, so that nothing is rounded
    const auto distance = [](const Layer& l) { return std::max({ l.first, -l.last, 0.0 }); };
    const auto middle   = std::min_element(layers_.begin(),
                                         layers_.end(),
                                         [&](const Layer& a, const Layer& b)
                                         { return distance(a) < distance(b); });
    const auto rounded  = [](double by, const Layer& l)
    {
        const double largest = std::max(std::abs(l.first), std::abs(l.last));
        const double digit =
                std::numeric_limits<Real>::epsilon() * std::exp2(std::ceil(std::log2(largest)));
        return std::trunc(by / digit) * digit;
    };
    for (auto above = middle + 1; above < layers_.end(); ++above)
    {
        const auto below = above - 1;
        above->lowered   = rounded(below->lowered + (above->first - below->last) - kept, *above);
    }
    for (auto above = middle; above > layers_.begin(); --above)
    {
        const auto below = above - 1;
        below->lowered   = rounded(above->lowered - (above->first - below->last) + kept, *below);
    }
    x_.assign(x, x + 3 * n);
    layer_.assign(n, 0);
    for (size_t i = 0; i < n; i++)
    {
        if (counts[i])
        {
            const auto above =
                    std::upper_bound(layers_.begin(),
                                     layers_.end(),
                                     heightOf(i),
                                     [](double z, const Layer& l) { return z < l.first; });
            layer_[i]     = above - layers_.begin() - 1;
            x_[3 * i + 2] = static_cast<Real>(heightOf(i) - layers_[layer_[i]].lowered);
        }
    }
}

template<class Real>
double NarrowedSlab<Real>::height() const
{
    const auto top    = [](const Layer& l) { return l.last - l.lowered; };
    const auto bottom = [](const Layer& l) { return l.first - l.lowered; };
    return layers_.empty() ? 0 : top(layers_.back()) - bottom(layers_.front());
}

template<class Real>
SlabCorrection<Real> NarrowedSlab<Real>::correction(const ChargeSet<Real>& charges,
                                                    const Mat3& box,
                                                    double coulombConstant) const
{
    const int n           = charges.count();
    const auto& q         = charges.charges();
    const auto& takesPart = charges.takesPart();
    SlabCorrection<Real> result;
    result.potentials.assign(n, Real(0));
    std::vector<double> ofLayer(layers_.size(), 0.0);
    for (int i = 0; i < n; i++)
    {
        ofLayer[layer_[i]] += static_cast<double>(q[i]);
    }
    const double factor = -2 * M_PI * coulombConstant / (box(0, 0) * box(1, 1));
    std::vector<double> potentials(layers_.size(), 0.0);
    for (size_t a = 0; a < layers_.size(); a++)
    {
        for (size_t b = 0; b < layers_.size(); b++)
        {
            potentials[a] +=
                    factor * std::abs(layers_[a].lowered - layers_[b].lowered) * ofLayer[b];
        }
        result.energy += 0.5 * ofLayer[a] * potentials[a];
    }
    // in proportion to a length along z over an area
    result.virial.diagonal() = 0.5 * result.energy * Vec3(-1, -1, 1);
    for (int i = 0; i < n; i++)
    {
        result.potentials[i] = static_cast<Real>(takesPart[i] != 0 ? potentials[layer_[i]] : 0);
    }
    // what was subtracted of excluded pairs in two layers was that of other distances
    const std::vector<std::pair<int, int>> pairs = excludedBetween(layer_, charges);
    result.forces.assign(pairs.empty() ? 0 : 3 * static_cast<size_t>(n), Real(0));
    Mat3 plane               = box;
    plane.row(2)             = Eigen::RowVector3d(0, 0, box(0, 0));
    const MinimumImage image = MinimumImage::of(plane);
    for (const auto& [i, j] : pairs)
    {
        const Real *a = x_.data() + 3 * static_cast<size_t>(i),
                   *b = x_.data() + 3 * static_cast<size_t>(j);
        double dx[3]  = { static_cast<double>(a[0]) - static_cast<double>(b[0]),
                          static_cast<double>(a[1]) - static_cast<double>(b[1]),
                          0 };
        image.search(dx);
        const double narrow = static_cast<double>(a[2]) - static_cast<double>(b[2]);
        const double wide   = narrow + layers_[layer_[i]].lowered - layers_[layer_[j]].lowered;
        const double qi = static_cast<double>(q[i]), qj = static_cast<double>(q[j]);
        for (const auto& [z, sign] : { std::pair(narrow, 1.0), std::pair(wide, -1.0) })
        {
            const Vec3 d(dx[0], dx[1], z);
            const double inverse = sign * coulombConstant / d.norm();
            const Vec3 force     = qi * qj * inverse / d.squaredNorm() * d;
            result.energy += qi * qj * inverse;
            result.virial -= 0.5 * d * force.transpose();
            result.potentials[i] += static_cast<Real>(qj * inverse);
            result.potentials[j] += static_cast<Real>(qi * inverse);
            for (int k = 0; k < 3; k++)
            {
                result.forces[3 * static_cast<size_t>(i) + k] += static_cast<Real>(force[k]);
                result.forces[3 * static_cast<size_t>(j) + k] -= static_cast<Real>(force[k]);
            }
        }
    }
    return result;
}

template<class Real>
void SlabCorrection<Real>::addTo(Totals* totals, bool energyIsWanted, bool virialIsWanted) const
{
    totals->energy += energyIsWanted ? energy : 0;
    for (int k = 0; k < 9 && virialIsWanted; k++)
    {
        totals->virial[k / 3][k % 3] += virial(k / 3, k % 3);
    }
}

template<class Real>
void SlabCorrection<Real>::addTo(Real* to, Real* toPotentials) const
{
    for (size_t k = 0; k < forces.size(); k++)
    {
        to[k] += forces[k];
    }
    for (size_t i = 0; i < potentials.size() && toPotentials != nullptr; i++)
    {
        toPotentials[i] += potentials[i];
    }
}

template struct SlabCorrection<float>;
template struct SlabCorrection<double>;
template class NarrowedSlab<float>;
template class NarrowedSlab<double>;

} // namespace farfield
