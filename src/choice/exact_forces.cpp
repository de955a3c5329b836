/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/exact_forces.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cells/minimum_image.h"
#include "choice/exact_kernels.h"

namespace farfield
{
namespace
{

//! Of one term, ns: of two particles, and of a particle and a wave vector.
constexpr double c_pairTime = 40, c_waveTime = 2;
//! The same of a row of images, and of a row of wave vectors.
constexpr double c_imageRowTime = 5, c_waveRowTime = 60;

//! Both sums end at exp(-s^2) with this s at most.
double mostDigits(int realSize)
{
    return realSize == 4 ? 4.8 : 6;
}

//! The same, to tell errors of this size: what is left out is a hundred-thousandth of them.
double digitsFor(double accuracy, int realSize)
{
    return std::min(mostDigits(realSize), std::sqrt(std::log(1e5 / accuracy)));
}

//! Longest time, ns: what remains of a set-up takes twice as long in double precision. At a lower
//! accuracy it is that of about as many particles. The empty space of a slab may double it: without
//! that, far fewer particles would have exact forces if some are far from the others.
double longestTime(double digits, int realSize, bool isMostlyEmpty)
{
    return (realSize == 4 ? 5.3e7 : 1.16e8) * std::pow(digits / mostDigits(realSize), 2)
           * (isMostlyEmpty ? 2 : 1);
}

//! -(1/r) d/dr of erf(a r)/r, also at r = 0.
double smoothSlope(double a, double r2)
{
    const double u = a * a * r2;
    if (u < 0.1)
    {
        // 2 a^3/sqrt(pi) sum of (-u)^k 2 / (k! (2k + 3)), from the series of erf
        double sum = 0, term = 1;
        for (int k = 0; k < 12; k++)
        {
            sum += term * 2 / (2 * k + 3);
            term *= -u / (k + 1);
        }
        return 2 * a * a * a / std::sqrt(M_PI) * sum;
    }
    const double r = std::sqrt(r2);
    return (std::erf(a * r) / r - 2 * a / std::sqrt(M_PI) * std::exp(-u)) / r2;
}

using Displacement = std::array<double, 3>; //!< nm

double squareOf(const Displacement& d)
{
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

//! The integers that an interval holds. \param[in] middle, half  of it, in units of one
struct Range
{
    int first, last;
    Range(double middle, double half) :
        first(static_cast<int>(middle - half)), last(static_cast<int>(middle + half))
    {
        // without calls of ceil() and floor()
        first += first < middle - half ? 1 : 0;
        last -= last > middle + half ? 1 : 0;
    }
};

/*! \brief Excluded partners of each particle with a charge: later ones, in ascending order.
 *  \param[in] place  of each particle among those with a charge, -1 for others */
std::vector<std::vector<int>> laterPartners(const ExcludedPairs& excluded,
                                            const std::vector<int>& place)
{
    std::vector<std::vector<int>> result(place.size());
    for (int i = 0; i < static_cast<int>(place.size()); i++)
    {
        for (int k = excluded.offsets[i]; k < excluded.offsets[i + 1]; k++)
        {
            const int a = place[i], b = place[excluded.partners[k]];
            if (a >= 0 && b >= 0 && a != b)
            {
                result[std::min(a, b)].push_back(std::max(a, b));
            }
        }
    }
    for (std::vector<int>& partners : result)
    {
        std::sort(partners.begin(), partners.end());
    }
    return result;
}

} // namespace

//! Those with a charge.
struct ExactForces::Sources
{
    std::vector<int> index;       //!< among all particles
    std::vector<double> x[2];     //!< [n][3], in the box about the origin: a number and its rest
    std::vector<double> q;        //!< times the root of the Coulomb constant
    std::vector<double> phase[3]; //!< position in units of the box vectors, within half of one
    std::vector<std::vector<int>> excluded; //!< partners of each, later ones, in ascending order

    template<class Real>
    Sources(const PointCharges<Real>& particles, double coulombConstant, const Mat3& box)
    {
        std::vector<int> place(particles.n, -1);
        for (int i = 0; i < particles.n; i++)
        {
            const double charge = static_cast<double>(particles.q[i]);
            if (charge == 0)
            {
                continue;
            }
            place[i] = static_cast<int>(index.size());
            index.push_back(i);
            q.push_back(std::sqrt(coulombConstant) * charge);
            const Real* r = particles.x + 3 * static_cast<size_t>(i);
            // positions may be many boxes away: in extended precision nothing is lost
            long double rest[3] = { r[0], r[1], r[2] };
            long double s[3];
            for (int k = 2; k >= 0; k--)
            {
                s[k] = rest[k] / static_cast<long double>(box(k, k));
                for (int j = 0; j < k; j++)
                {
                    rest[j] -= s[k] * static_cast<long double>(box(k, j));
                }
            }
            long double inBox[3] = { 0, 0, 0 };
            for (int k = 0; k < 3; k++)
            {
                s[k] -= std::round(s[k]);
                phase[k].push_back(static_cast<double>(s[k]));
                for (int j = 0; j <= k; j++)
                {
                    inBox[j] += s[k] * static_cast<long double>(box(k, j));
                }
            }
            for (const long double component : inBox)
            {
                x[0].push_back(static_cast<double>(component));
                x[1].push_back(
                        static_cast<double>(component - static_cast<long double>(x[0].back())));
            }
        }
        excluded = laterPartners(particles.excluded, place);
    }
    int count() const { return static_cast<int>(q.size()); }
    //! From one to another, of any of their images.
    Displacement apart(int to, int from) const
    {
        Displacement d = {};
        for (int k = 0; k < 3; k++)
        {
            const size_t a = 3 * static_cast<size_t>(to) + k, b = 3 * static_cast<size_t>(from) + k;
            d[k] = (x[0][a] - x[0][b]) + (x[1][a] - x[1][b]);
        }
        return d;
    }
};

//! Images of later particles that are in reach of one.
struct ExactForces::Images
{
    struct Image
    {
        Displacement apart; //!< from it
        int of;
    };
    std::vector<Image> all;
    std::vector<double> slopes; //!< of each, and some more

    void findSlopes(double splitting)
    {
        const size_t padded = (all.size() + c_exactPadding - 1) / c_exactPadding * c_exactPadding;
        slopes.assign(padded, 1);
        for (size_t k = 0; k < all.size(); k++)
        {
            slopes[k] = squareOf(all[k].apart);
        }
        exactKernels().sharpSlopes(splitting, static_cast<int>(padded), slopes.data());
    }
};

ExactForces::ExactForces(Boundary boundary,
                         const Mat3& box,
                         const Heights& heights,
                         long long charged,
                         double accuracy,
                         int realSize) :
    isSlab_(boundary == Boundary::Slab),
    box_(box), digits_(digitsFor(accuracy, realSize)),
    longest_(longestTime(digits_, realSize, isSlab_ && heights.all > 2 * heights.most))
{
    const double n = static_cast<double>(charged);
    // that of particles: a plane has some height, too
    const double area = box(0, 0) * box(1, 1);
    const double volume =
            isSlab_ ? area * std::max(heights.most, 0.1 * std::sqrt(area)) : box.determinant();
    // steps of an eighth from one image of each particle within reach to a thousand
    for (double images = 1; images < 1000; images *= 1.125)
    {
        const double splitting = digits_ / std::cbrt(images * volume / (4 * M_PI / 3));
        const double wave      = 2 * digits_ * splitting / (2 * M_PI);
        const double reach     = digits_ / splitting;
        const double height    = isSlab_ ? 2 * (heights.all + reach) : box(2, 2);
        const double waves     = 4 * M_PI / 3 * wave * wave * wave * area * height / 2;
        // thin boxes have rows without an image in reach
        const double imageRows = (2 * reach / height + 1) * (2 * reach / box(1, 1) + 1);
        const double waveRows  = (wave * box(0, 0) + 1) * (2 * wave * box(1, 1) + 1);
        const double cost      = 0.5 * n * n * (images * c_pairTime + imageRows * c_imageRowTime)
                            + n * (waves * c_waveTime + waveRows * c_waveRowTime);
        if (splitting_ == 0 || cost < cost_)
        {
            splitting_ = splitting;
            cost_      = cost;
            box_.row(2) =
                    isSlab_ ? Eigen::RowVector3d(0, 0, height) : Eigen::RowVector3d(box.row(2));
        }
    }
}

bool ExactForces::areCheap() const
{
    return cost_ <= longest_;
}

void ExactForces::findImages(const Displacement& shortest,
                             int of,
                             bool isExcluded,
                             Images* images) const
{
    const double reach = digits_ / splitting_;
    if (squareOf(shortest) > reach * reach)
    {
        return;
    }
    // of a slab all images are at that height
    const Range c(isSlab_ ? 0 : -shortest[2] / box_(2, 2), isSlab_ ? 0 : reach / box_(2, 2));
    for (int nc = c.first; nc <= c.last; nc++)
    {
        const double z  = shortest[2] + nc * box_(2, 2);
        const double y0 = shortest[1] + nc * box_(2, 1);
        const double yz = std::sqrt(std::max(0.0, reach * reach - z * z));
        const Range b(-y0 / box_(1, 1), yz / box_(1, 1));
        for (int nb = b.first; nb <= b.last; nb++)
        {
            const double y  = y0 + nb * box_(1, 1);
            const double x0 = shortest[0] + nc * box_(2, 0) + nb * box_(1, 0);
            const double xs = std::sqrt(std::max(0.0, yz * yz - y * y));
            const Range a(-x0 / box_(0, 0), xs / box_(0, 0));
            for (int na = a.first; na <= a.last; na++)
            {
                if (!isExcluded || na != 0 || nb != 0 || nc != 0)
                {
                    images->all.push_back({ { x0 + na * box_(0, 0), y, z }, of });
                }
            }
        }
    }
}

void ExactForces::addReal(const Sources& s, std::vector<double>* forces) const
{
    const MinimumImage image = MinimumImage::of(box_);
    Images images;
    for (int i = 0; i < s.count(); i++)
    {
        double* const ofI = forces->data() + 3 * static_cast<size_t>(s.index[i]);
        const auto add    = [&](int j, const Displacement& d, double slope)
        {
            double* const ofJ = forces->data() + 3 * static_cast<size_t>(s.index[j]);
            for (int k = 0; k < 3; k++)
            {
                const double f = s.q[i] * s.q[j] * slope * d[k];
                ofI[k] += f;
                ofJ[k] -= f;
            }
        };
        images.all.clear();
        auto partner = s.excluded[i].begin();
        for (int j = i + 1; j < s.count(); j++)
        {
            partner = std::find_if(partner, s.excluded[i].end(), [j](int p) { return p >= j; });
            const bool isExcluded = partner != s.excluded[i].end() && *partner == j;
            Displacement shortest = s.apart(i, j);
            image.search(shortest.data());
            if (isExcluded)
            {
                add(j, shortest, -smoothSlope(splitting_, squareOf(shortest)));
            }
            findImages(shortest, j, isExcluded, &images);
        }
        images.findSlopes(splitting_);
        for (size_t k = 0; k < images.all.size(); k++)
        {
            add(images.all[k].of, images.all[k].apart, images.slopes[k]);
        }
    }
}

void ExactForces::addReciprocal(const Sources& s, std::vector<double>* forces) const
{
    // F_i = 8 pi q_i / V sum over half of all k: k exp(-k^2 / 4 a^2) / k^2 Im(conj(S) exp(i k r_i))
    const Mat3 inverse   = 2 * M_PI * box_.inverse(); // wave vector: inverse times integers
    const double longest = 2 * digits_ * splitting_;
    const double quarter = 1 / (4 * splitting_ * splitting_);
    const double factor  = 8 * M_PI / box_.determinant();
    WaveArrays arrays(s.q, s.phase);
    WaveRow row;
    const Range h0(0, longest / inverse(0, 0));
    for (int a = 0; a <= h0.last; a++)
    {
        const double kx = inverse(0, 0) * a;
        const double yz = std::sqrt(std::max(0.0, longest * longest - kx * kx));
        const Range h1(-inverse(1, 0) * a / inverse(1, 1), yz / inverse(1, 1));
        for (int b = a == 0 ? 0 : h1.first; b <= h1.last; b++)
        {
            const double ky    = inverse(1, 0) * a + inverse(1, 1) * b;
            const double kz0   = inverse(2, 0) * a + inverse(2, 1) * b;
            const double along = std::sqrt(std::max(0.0, yz * yz - ky * ky));
            const double cut   = isSlab_ ? std::exp(-std::hypot(kx, ky) * 0.5 * box_(2, 2)) : 0;
            const Range h2(-kz0 / inverse(2, 2), along / inverse(2, 2));
            const int first = a == 0 && b == 0 ? 1 : h2.first;
            row             = { { a, b, first }, { kx, ky }, {}, {} };
            for (int c = first; c <= h2.last; c++)
            {
                const double kz = kz0 + inverse(2, 2) * c;
                const double k2 = kx * kx + ky * ky + kz * kz;
                row.last.push_back(kz);
                row.weights.push_back(factor * std::exp(-k2 * quarter) / k2
                                      * (1 - (c % 2 == 0 ? cut : -cut)));
            }
            exactKernels().addWaves(row, &arrays);
        }
    }
    for (int i = 0; i < s.count(); i++)
    {
        for (int k = 0; k < 3; k++)
        {
            (*forces)[3 * static_cast<size_t>(s.index[i]) + k] += s.q[i] * arrays.result[k][i];
        }
    }
}

template<class Real>
std::vector<double> ExactForces::operator()(const PointCharges<Real>& particles,
                                            double coulombConstant) const
{
    const Sources sources(particles, coulombConstant, box_);
    std::vector<double> forces(3 * static_cast<size_t>(particles.n), 0.0);
    addReal(sources, &forces);
    addReciprocal(sources, &forces);
    return forces;
}

template<class Real>
std::vector<double> ExactForces::ofOpen(const PointCharges<Real>& particles, double coulombConstant)
{
    const auto q = [&](int i) { return static_cast<double>(particles.q[i]); };
    std::vector<int> place(particles.n, -1);
    for (int i = 0; i < particles.n; i++)
    {
        place[i] = q(i) != 0 ? i : -1;
    }
    const auto excluded = laterPartners(particles.excluded, place);
    std::vector<double> forces(3 * static_cast<size_t>(particles.n), 0.0);
    for (int i = 0; i < particles.n; i++)
    {
        for (int j = i + 1; j < particles.n; j++)
        {
            if (q(i) * q(j) == 0 || std::binary_search(excluded[i].begin(), excluded[i].end(), j))
            {
                continue;
            }
            double d[3], r2 = 0;
            for (int k = 0; k < 3; k++)
            {
                d[k] = static_cast<double>(particles.x[3 * static_cast<size_t>(i) + k])
                       - static_cast<double>(particles.x[3 * static_cast<size_t>(j) + k]);
                r2 += d[k] * d[k];
            }
            const double slope = coulombConstant * q(i) * q(j) / (r2 * std::sqrt(r2));
            for (int k = 0; k < 3; k++)
            {
                forces[3 * static_cast<size_t>(i) + k] += slope * d[k];
                forces[3 * static_cast<size_t>(j) + k] -= slope * d[k];
            }
        }
    }
    return forces;
}

template std::vector<double> ExactForces::ofOpen(const PointCharges<float>&, double);
template std::vector<double> ExactForces::ofOpen(const PointCharges<double>&, double);
template std::vector<double> ExactForces::operator()(const PointCharges<float>&, double) const;
template std::vector<double> ExactForces::operator()(const PointCharges<double>&, double) const;

} // namespace farfield
