/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/site_fields.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "base/packed.h"
#include "cells/excluded_pairs.h"
#include "cells/minimum_image.h"

namespace farfield
{
namespace
{

//! Particles that a thread takes at a time.
constexpr int c_grain = 256;

//! The components of a symmetric matrix: xx yy zz xy xz yz.
void setComponents(const Mat3& m, double* h)
{
    for (int c = 0; c < 6; c++)
    {
        h[c] = m(firstAxis(c), secondAxis(c));
    }
}

//! A site as a source.
struct Source
{
    double q;
    Vec3 dipole;
    Mat3 theta;
};

/*! \brief The values of a source, see SourceMoments.
 *  \param[in] R  from it to the target, nm
 *  \param[in] r2  its square
 *  \param[in] factors  of 1/r and its derivatives, without theta
 *  \param[in] ofTarget  its theta */
SiteValues valuesOf(const Source& source,
                    const Vec3& R,
                    double r2,
                    const DerivativeFactors<double>& factors,
                    const Mat3& ofTarget)
{
    double B[6], power = 1 / std::sqrt(r2);
    for (int k = 0; k < 6; k++)
    {
        B[k] = power * (k < 4 ? factors.of[k] : 1);
        power *= (2 * k + 1) / r2;
    }
    const Vec3 thetaR = source.theta * R;
    const double b = source.dipole.dot(R), c = thetaR.dot(R);
    const auto along   = [&](int k) { return source.q * B[k] + b * B[k + 1] + c * B[k + 2]; };
    const auto besides = [&](int k) -> Vec3
    { return source.dipole * B[k] + 2 * B[k + 1] * thetaR; };
    const Vec3 w2 = besides(2), u = ofTarget * R;
    const Vec3 gradient = besides(1) - along(1) * R;
    const Mat3 hessian  = along(2) * R * R.transpose() - along(1) * Mat3::Identity()
                         - R * w2.transpose() - w2 * R.transpose() + 2 * B[2] * source.theta;
    Vec3 pull = Vec3::Zero();
    if (!ofTarget.isZero(0))
    {
        const double both = source.theta.cwiseProduct(ofTarget).sum();
        pull = (2 * (u.dot(besides(3)) - B[3] * both) - along(3) * u.dot(R)) * R + 2 * along(2) * u
               + u.dot(R) * besides(3) - 2 * ofTarget * w2 - 4 * B[3] * source.theta * u;
    }
    SiteValues v;
    v[0] = along(0);
    for (int k = 0; k < 3; k++)
    {
        v[1 + k]              = gradient[k];
        v[c_curvedValues + k] = pull[k];
    }
    setComponents(hessian, v.data() + c_flatValues);
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

} // namespace

template<class Real>
void SiteFields<Real>::setMoments(const Moments<Real>& moments,
                                  const Real* strengths,
                                  int n,
                                  double rootCoulomb)
{
    const auto scaled = [=](const Real* values, size_t each, double factor)
    {
        std::vector<Real> own(values != nullptr ? each * static_cast<size_t>(n) : 0);
        std::transform(values,
                       values + own.size(),
                       own.begin(),
                       [factor](Real value)
                       { return static_cast<Real>(factor * static_cast<double>(value)); });
        return own;
    };
    std::vector<Real> dipoles     = scaled(moments.dipoles, 3, rootCoulomb);
    std::vector<Real> quadrupoles = scaled(moments.quadrupoles, 6, rootCoulomb / 3);
    std::vector<Real> ofStrength(strengths, strengths + (moments.any() ? n : 0));
    if (!quadrupoles.empty())
    {
        dipoles.resize(3 * static_cast<size_t>(n)); // all have both
    }
    dipoles_.swap(dipoles);
    quadrupoles_.swap(quadrupoles);
    strengths_.swap(ofStrength);
}

template<class Real>
SortedMoments<Real> SiteFields<Real>::sorted() const
{
    SortedMoments<Real> sorted;
    for (int k = 0; k < momentCount(degree()); k++)
    {
        sorted.of[k] = sortedMoments_[k].data();
    }
    return sorted;
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
void SiteFields<Real>::sortMoments(const CellList<Real>& list, const Mat3& rotation)
{
    const auto count = list.atom().size();
    for (int k = 0; k < momentCount(degree()); k++)
    {
        // kernels gather from the first particle where there is none
        sortedMoments_[k].assign(std::max<size_t>(count, 1), Real(0));
    }
    team_.addRanges(static_cast<int>(count),
                    c_grain,
                    [this, &list, rotation](int begin, int end)
                    {
                        for (int i = begin; i < end; i++)
                        {
                            const auto atom = static_cast<size_t>(list.atom()[i]);
                            std::array<double, momentCount(2)> moments;
                            Eigen::Map<Vec3>(moments.data()) =
                                    rotation * vectorAt(dipoles_.data(), atom);
                            if (degree() > 1)
                            {
                                setComponents(rotation * thetaOf(atom) * rotation.transpose(),
                                              moments.data() + 3);
                            }
                            for (int k = 0; k < momentCount(degree()); k++)
                            {
                                sortedMoments_[k][i] = static_cast<Real>(moments[k]);
                            }
                        }
                    });
}

template<class Real>
Mat3 SiteFields<Real>::thetaOf(size_t particle) const
{
    return degree() > 1 ? symmetricAt(quadrupoles_.data(), particle) : Mat3(Mat3::Zero());
}

template<class Real>
Vec3 SiteFields<Real>::forceOn(size_t particle,
                               const std::vector<Real>& q,
                               const SiteValues& v) const
{
    Vec3 force = -static_cast<double>(q[particle]) * Vec3(v[1], v[2], v[3]);
    if (anyMoments())
    {
        force -= symmetricAt(v.data() + c_flatValues, 0) * vectorAt(dipoles_.data(), particle);
        force -= Vec3(v[c_curvedValues], v[c_curvedValues + 1], v[c_curvedValues + 2]);
    }
    return force;
}

template<class Real>
Vec3 SiteFields<Real>::torqueOn(size_t particle, const SiteValues& v) const
{
    const Mat3 A = thetaOf(particle) * symmetricAt(v.data() + c_flatValues, 0);
    return -vectorAt(dipoles_.data(), particle).cross(Vec3(v[1], v[2], v[3]))
           - 2 * Vec3(A(1, 2) - A(2, 1), A(2, 0) - A(0, 2), A(0, 1) - A(1, 0));
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
                        anyMoments() ? vectorAt(dipoles_.data(), j) : Vec3(Vec3::Zero());
                const SiteValues v = valuesOf({ static_cast<double>(q[j]), dipole, thetaOf(j) },
                                              R,
                                              r2,
                                              factorsOf(functions, i, j, r2),
                                              thetaOf(i));
                std::transform(sum.begin(), sum.end(), v.begin(), sum.begin(), std::minus<>());
                const Vec3 force = forceOn(i, q, v);
                for (int c = 0; c < 6 && wantsVirial_; c++)
                {
                    // of -1/2 R (x) F a quarter here, and in both orders
                    virial[c] += 0.125
                                 * (R[firstAxis(c)] * force[secondAxis(c)]
                                    + R[secondAxis(c)] * force[firstAxis(c)]);
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
        values_[k].resize(k < siteValueCount(degree(), isCurved_) ? count : 0);
    }
    if (anyMoments())
    {
        sortMoments(list, rotation);
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
    task_.moments    = sorted();
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
    if (anyMoments())
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
    // quadrupoles have no trace
    double sum = 0;
    for (size_t i = 0; anyMoments() && i < sortedMoments_[0].size(); i++)
    {
        sum += 2
               * (static_cast<double>(particles.x[i]) * static_cast<double>(sortedMoments_[0][i])
                  + static_cast<double>(particles.y[i]) * static_cast<double>(sortedMoments_[1][i])
                  + static_cast<double>(particles.z[i])
                            * static_cast<double>(sortedMoments_[2][i]));
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
    clear(task.torques, 3);
    team_.run();
    Sums all;
    for (const Sums& sums : ofChunk)
    {
        all.energy += sums.energy;
        all.timesDegree += sums.timesDegree;
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
        for (int k = 0; k < siteValueCount(degree(), isCurved_); k++)
        {
            v[k] = static_cast<double>(values_[k][i]);
        }
        v[0] += common.potentialOfBackground;
        Eigen::Map<Vec3> gradient(v.data() + 1), pull(v.data() + c_curvedValues);
        gradient = (rotation.transpose() * gradient).eval();
        pull     = (rotation.transpose() * pull).eval();
        setComponents(rotation.transpose() * symmetricAt(v.data() + c_flatValues, 0) * rotation,
                      v.data() + c_flatValues);
        for (size_t k = 0; k < c_siteValues && !subtracted_.empty(); k++)
        {
            v[k] += static_cast<double>(subtracted_[atom * c_siteValues + k]);
        }
        const auto charge = static_cast<double>(q[atom]);
        const double ofDipole =
                anyMoments() ? 0.5 * vectorAt(dipoles_.data(), atom).dot(gradient) : 0;
        const double ofQuadrupole =
                0.5 * thetaOf(atom).cwiseProduct(symmetricAt(v.data() + c_flatValues, 0)).sum();
        sums.energy += 0.5 * charge * v[0] + ofDipole + ofQuadrupole;
        sums.timesDegree += ofDipole + 2 * ofQuadrupole;
        if (task.wantsForces)
        {
            const Vec3 force      = forceOn(atom, q, v);
            const double strength = anyMoments()
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
        if (task.torques != nullptr && anyMoments())
        {
            Eigen::Map<Eigen::Matrix<Real, 3, 1>>(task.torques + 3 * atom) =
                    torqueOn(atom, v).template cast<Real>();
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
