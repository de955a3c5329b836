/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/site_fields.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "cells/excluded_pairs.h"
#include "cells/minimum_image.h"

namespace farfield
{
namespace
{

//! Particles that a thread takes at a time.
constexpr int c_grain = 256;

/*! \brief The values of a source.
 *  \param[in] R  from it to the target, nm
 *  \param[in] r2  its square
 *  \param[in] factors  of 1/r and its derivatives */
SiteValues valuesOf(double q,
                    const Vec3& dipole,
                    const Vec3& R,
                    double r2,
                    const DerivativeFactors<double>& factors)
{
    const double r     = std::sqrt(r2);
    const double B0    = factors.of[0] / r;
    const double B1    = factors.of[1] / (r * r2);
    const double B2    = 3 * factors.of[2] / (r * r2 * r2);
    const double B3    = 15 * factors.of[3] / (r * r2 * r2 * r2);
    const double b     = dipole.dot(R);
    const double along = q * B2 + b * B3, slope = q * B1 + b * B2;
    SiteValues v;
    v[0] = q * B0 + b * B1;
    for (int k = 0; k < 3; k++)
    {
        v[1 + k] = B1 * dipole[k] - slope * R[k];
    }
    for (int c = 0; c < 6; c++)
    {
        const int i = c_firstAxis[c], j = c_secondAxis[c];
        v[c_flatValues + c] = along * R[i] * R[j] - B2 * (dipole[i] * R[j] + R[i] * dipole[j])
                              - (i == j ? slope : 0);
    }
    return v;
}

//! Those of a pair.
template<class Real>
DerivativeFactors<double> factorsOf(const NearPairs<Real>& functions, size_t i, size_t j, double r2)
{
    if (functions.any() && r2 < functions.range * functions.range)
    {
        const double width = functions.width(static_cast<int>(i), static_cast<int>(j));
        if (width > 0)
        {
            return derivativeFactors(functions.function.function, std::sqrt(r2) / width);
        }
    }
    return { { 1, 1, 1, 1 } };
}

//! Second derivatives as a matrix.
Mat3 matrixOf(const double* h)
{
    Mat3 m;
    for (int c = 0; c < 6; c++)
    {
        m(c_firstAxis[c], c_secondAxis[c]) = m(c_secondAxis[c], c_firstAxis[c]) = h[c];
    }
    return m;
}

template<class Real>
Vec3 vectorAt(const Real* vectors, size_t i)
{
    return { static_cast<double>(vectors[3 * i]),
             static_cast<double>(vectors[3 * i + 1]),
             static_cast<double>(vectors[3 * i + 2]) };
}

} // namespace

template<class Real>
void SiteFields<Real>::setDipoles(const Real* dipoles,
                                  const Real* strengths,
                                  int n,
                                  double rootCoulomb)
{
    std::vector<Real> own, ofStrength;
    if (dipoles != nullptr)
    {
        own.resize(3 * static_cast<size_t>(n));
        std::transform(dipoles,
                       dipoles + own.size(),
                       own.begin(),
                       [=](Real mu)
                       { return static_cast<Real>(rootCoulomb * static_cast<double>(mu)); });
        ofStrength.assign(strengths, strengths + n);
    }
    dipoles_.swap(own);
    strengths_.swap(ofStrength);
}

template<class Real>
SortedDipoles<Real> SiteFields<Real>::sorted() const
{
    if (!anyDipoles())
    {
        return {};
    }
    return { sortedDipoles_[0].data(), sortedDipoles_[1].data(), sortedDipoles_[2].data() };
}

template<class Real>
SiteArrays<Real> SiteFields<Real>::arrays() const
{
    SiteArrays<Real> arrays = {};
    for (int k = 0; k < c_siteValues; k++)
    {
        arrays.of[k] = const_cast<Real*>(values_[k].data());
    }
    arrays.isCurved = isCurved_;
    return arrays;
}

template<class Real>
void SiteFields<Real>::sortDipoles(const CellList<Real>& list, const Mat3& rotation)
{
    const auto count = list.atom().size();
    for (auto& axis : sortedDipoles_)
    {
        // kernels gather from the first particle where there is none
        axis.assign(std::max<size_t>(count, 1), Real(0));
    }
    team_.addRanges(static_cast<int>(count),
                    c_grain,
                    [this, &list, rotation](int begin, int end)
                    {
                        for (int i = begin; i < end; i++)
                        {
                            const Vec3 mu = rotation * vectorAt(dipoles_.data(), list.atom()[i]);
                            for (int k = 0; k < 3; k++)
                            {
                                sortedDipoles_[k][i] = static_cast<Real>(mu[k]);
                            }
                        }
                    });
}

template<class Real>
Vec3 SiteFields<Real>::forceOn(size_t particle,
                               const std::vector<Real>& q,
                               const SiteValues& v) const
{
    Vec3 force = -static_cast<double>(q[particle]) * Vec3(v[1], v[2], v[3]);
    if (anyDipoles())
    {
        force -= matrixOf(v.data() + c_flatValues) * vectorAt(dipoles_.data(), particle);
    }
    return force;
}

template<class Real>
void SiteFields<Real>::addVirials(StageSums* sums) const
{
    for (int c = 0; c < 6 && wantsVirial_; c++)
    {
        for (const auto& own : virials_)
        {
            sums->virial[c] += own[c];
        }
        for (const auto& own : subtractedVirials_)
        {
            sums->excludedVirial[c] += own[c];
        }
    }
}

template<class Real>
void SiteFields<Real>::subtract(const ExcludedPairs& excluded,
                                const Mat3& box,
                                const Real* x,
                                const std::vector<Real>& q,
                                const NearPairs<Real>& functions,
                                double closeDistance,
                                int begin,
                                int end)
{
    const MinimumImage image = MinimumImage::of(box);
    for (int i = begin; i < end; i++)
    {
        SiteValues sum               = {};
        std::array<double, 6> virial = {};
        for (int k = excluded.offsets[i]; k < excluded.offsets[i + 1]; k++)
        {
            const auto j = static_cast<size_t>(excluded.partners[k]);
            Vec3 R;
            const double r2 = image.between(x + 3 * static_cast<size_t>(i), x + 3 * j, R.data());
            isClose_[k]     = r2 < closeDistance * closeDistance ? 1 : 0;
            if (isClose_[k] == 0)
            {
                const Vec3 dipole =
                        anyDipoles() ? vectorAt(dipoles_.data(), j) : Vec3(Vec3::Zero());
                const SiteValues v = valuesOf(
                        static_cast<double>(q[j]), dipole, R, r2, factorsOf(functions, i, j, r2));
                std::transform(sum.begin(), sum.end(), v.begin(), sum.begin(), std::minus<>());
                const Vec3 force = forceOn(i, q, v);
                for (int c = 0; c < 6 && wantsVirial_; c++)
                {
                    // of -1/2 R (x) F a quarter here, and in both orders
                    virial[c] += 0.125
                                 * (R[c_firstAxis[c]] * force[c_secondAxis[c]]
                                    + R[c_secondAxis[c]] * force[c_firstAxis[c]]);
                }
            }
        }
        if (wantsVirial_)
        {
            subtractedVirials_[i] = virial;
        }
        std::transform(sum.begin(),
                       sum.end(),
                       subtracted_.begin() + static_cast<std::ptrdiff_t>(i) * c_siteValues,
                       [](double value) { return static_cast<Real>(value); });
    }
}

template<class Real>
void SiteFields<Real>::listClosePairs(const ExcludedPairs& excluded, const CellList<Real>& list)
{
    rank_.assign(excluded.offsets.size() - 1, -1);
    const auto& atom = list.atom();
    for (size_t i = 0; i < atom.size(); i++)
    {
        rank_[atom[i]] = static_cast<int>(i);
    }
    closeOffsets_.assign(1, 0);
    closePartners_.clear();
    for (const int particle : atom)
    {
        for (int k = excluded.offsets[particle]; k < excluded.offsets[particle + 1]; k++)
        {
            if (isClose_[k] != 0)
            {
                closePartners_.push_back(rank_[excluded.partners[k]]);
            }
        }
        closeOffsets_.push_back(static_cast<int>(closePartners_.size()));
    }
}

template<class Real>
void SiteFields<Real>::begin(const CellList<Real>& list,
                             const Exclusions<Real>& exclusions,
                             const Mat3& box,
                             const Mat3& rotation,
                             const Real* x,
                             const std::vector<Real>& q,
                             const NearPairs<Real>& functions,
                             double closeDistance,
                             bool isCurved,
                             bool virial)
{
    isCurved_        = isCurved;
    wantsVirial_     = virial;
    const auto count = list.atom().size();
    for (int k = 0; k < c_siteValues; k++)
    {
        values_[k].resize(k < c_flatValues || isCurved_ ? count : 0);
    }
    if (anyDipoles())
    {
        sortDipoles(list, rotation);
    }
    const bool excludes           = exclusions.count() > 0;
    const ExcludedPairs& excluded = exclusions.bothWays();
    subtracted_.resize(excludes ? c_siteValues * q.size() : 0);
    virials_.resize(virial ? list.occupied().size() : 0);
    subtractedVirials_.resize(virial && excludes ? q.size() : 0);
    isClose_.assign(excluded.partners.size(), 0);
    if (excludes)
    {
        team_.addRanges(static_cast<int>(q.size()),
                        c_grain,
                        [=, &q, &excluded, &functions](int begin, int end)
                        { subtract(excluded, box, x, q, functions, closeDistance, begin, end); });
    }
    team_.run();
    closePartners_.clear();
    if (excludes)
    {
        listClosePairs(excluded, list);
    }
}

template<class Real>
void SiteFields<Real>::addP2p(const CellList<Real>& list,
                              const Grid& grid,
                              int ws,
                              double closeDistance,
                              const NearFunctionTask<Real>* functions)
{
    //! Cells that a thread takes at a time.
    constexpr int c_cells = 4;

    task_            = {};
    task_.isRelative = !list.keepsGiven();
    task_.particles  = task_.isRelative ? list.particles() : list.given();
    task_.dipoles    = sorted();
    task_.grid       = &grid;
    task_.ws         = ws;
    task_.cells      = list.occupied().data();
    task_.values     = arrays();
    task_.functions  = functions;
    farther_.clear();
    if (functions != nullptr)
    {
        const auto isFarther = [ws](const Int3& D) {
            return std::max({ std::abs(D[0]), std::abs(D[1]), std::abs(D[2]) }) > ws;
        };
        farther_.assign(1, Int3{ 0, 0, 0 });
        std::copy_if(functions->displacements->begin(),
                     functions->displacements->end(),
                     std::back_inserter(farther_),
                     isFarther);
    }
    task_.farther = farther_.size() > 1 ? &farther_ : nullptr;
    task_.virials = wantsVirial_ ? virials_.data() : nullptr;
    if (!closePartners_.empty())
    {
        task_.close          = { closeOffsets_.data(), closePartners_.data() };
        task_.imageDistance2 = static_cast<Real>(closeInCells(closeDistance));
    }
    team_.addRanges(static_cast<int>(list.occupied().size()),
                    c_cells,
                    [this](int begin, int end)
                    { cpuKernels<Real>().p2pOfSites(task_, begin, end); });
}

template<class Real>
void SiteFields<Real>::p2m(const CellList<Real>& list,
                           const LeafSlots& slots,
                           const ExpansionTables<Real>& tables,
                           int begin,
                           int end,
                           Real* M) const
{
    if (anyDipoles())
    {
        cpuKernels<Real>().p2mOfSites(list.particles(), sorted(), slots, tables, begin, end, M);
    }
    else
    {
        cpuKernels<Real>().p2m(list.particles(), slots, tables, begin, end, M);
    }
}

template<class Real>
void SiteFields<Real>::l2p(const CellList<Real>& list,
                           const LeafSlots& slots,
                           const ExpansionTables<Real>& tables,
                           int begin,
                           int end,
                           const Real* L,
                           double curvature,
                           double* virial) const
{
    cpuKernels<Real>().l2pOfSites(list.particles(),
                                  sorted(),
                                  slots,
                                  tables,
                                  begin,
                                  end,
                                  L,
                                  static_cast<Real>(curvature),
                                  arrays(),
                                  virial);
}

template<class Real>
double SiteFields<Real>::squaredDistances(const Particles<Real>& particles) const
{
    double sum                        = 0;
    const SortedDipoles<Real> dipoles = sorted();
    for (size_t i = 0; dipoles.any() && i < sortedDipoles_[0].size(); i++)
    {
        sum += 2
               * (static_cast<double>(particles.x[i]) * static_cast<double>(dipoles.x[i])
                  + static_cast<double>(particles.y[i]) * static_cast<double>(dipoles.y[i])
                  + static_cast<double>(particles.z[i]) * static_cast<double>(dipoles.z[i]));
    }
    return sum;
}

template<class Real>
auto SiteFields<Real>::collect(const CellList<Real>& list,
                               const Task<Real>& task,
                               const std::vector<Real>& q,
                               const Common& common) -> Sums
{
    const auto count = static_cast<int>(list.atom().size());
    const int chunks = (count + c_grain - 1) / c_grain;
    std::vector<Sums> ofChunk(chunks);
    team_.add(chunks,
              [&](int chunk, int /*thread*/)
              {
                  const int begin = chunk * c_grain;
                  const int end   = std::min(count, begin + c_grain);
                  ofChunk[chunk]  = collectRange(list, task, q, common, begin, end);
              });
    // nothing fails any more
    const auto clear = [&](Real* values, size_t each)
    { std::fill_n(values, values != nullptr ? each * q.size() : 0, Real(0)); };
    clear(task.request.replaceForces ? task.forces : nullptr, 3);
    clear(task.potentials, 1);
    clear(task.gradients, 3);
    clear(task.hessians, 6);
    team_.run();
    Sums all;
    for (const Sums& sums : ofChunk)
    {
        all.energy += sums.energy;
        all.ofDipoles += sums.ofDipoles;
        all.capped += sums.capped;
    }
    return all;
}

template<class Real>
auto SiteFields<Real>::collectRange(const CellList<Real>& list,
                                    const Task<Real>& task,
                                    const std::vector<Real>& q,
                                    const Common& common,
                                    int begin,
                                    int end) -> Sums
{
    const Mat3& rotation     = common.rotation;
    const double rootCoulomb = common.rootCoulomb;
    const double idle        = largestIdle<Real>(rootCoulomb);
    Sums sums;
    for (int i = begin; i < end; i++)
    {
        const auto atom = static_cast<size_t>(list.atom()[i]);
        SiteValues v    = {};
        for (int k = 0; k < (isCurved_ ? c_siteValues : c_flatValues); k++)
        {
            v[k] = static_cast<double>(values_[k][i]);
        }
        v[0] += common.potentialOfBackground;
        Eigen::Map<Vec3> gradient(v.data() + 1);
        gradient           = (rotation.transpose() * gradient).eval();
        const Mat3 hessian = rotation.transpose() * matrixOf(v.data() + c_flatValues) * rotation;
        for (int c = 0; c < 6; c++)
        {
            v[c_flatValues + c] = hessian(c_firstAxis[c], c_secondAxis[c]);
        }
        for (size_t k = 0; k < c_siteValues && !subtracted_.empty(); k++)
        {
            v[k] += static_cast<double>(subtracted_[atom * c_siteValues + k]);
        }
        const auto charge = static_cast<double>(q[atom]);
        const double ofDipole =
                anyDipoles() ? 0.5 * vectorAt(dipoles_.data(), atom).dot(gradient) : 0;
        sums.energy += 0.5 * charge * v[0] + ofDipole;
        sums.ofDipoles += ofDipole;
        if (task.wantsForces)
        {
            const Vec3 force      = forceOn(atom, q, v);
            const double strength = anyDipoles()
                                            ? rootCoulomb * static_cast<double>(strengths_[atom])
                                            : std::abs(charge);
            if (strength > idle)
            {
                // what is not a number counts as beyond
                const double inCaps = force.norm() * rootCoulomb / strength * common.perCap;
                sums.capped += inCaps < 1 ? inCaps * inCaps : 1;
            }
            for (size_t k = 0; k < 3; k++)
            {
                Real& to = task.forces[3 * atom + k];
                to = static_cast<Real>(force[k]) + (task.request.replaceForces ? Real(0) : to);
            }
        }
        for (size_t k = 0; k < 3 && task.gradients != nullptr; k++)
        {
            task.gradients[3 * atom + k] = static_cast<Real>(rootCoulomb * gradient[k]);
        }
        for (int c = 0; c < 6 && task.hessians != nullptr; c++)
        {
            task.hessians[6 * atom + c] = static_cast<Real>(rootCoulomb * v[c_flatValues + c]);
        }
        if (task.potentials != nullptr)
        {
            task.potentials[atom] = static_cast<Real>(rootCoulomb * v[0]);
        }
    }
    return sums;
}

template class SiteFields<float>;
template class SiteFields<double>;

} // namespace farfield
