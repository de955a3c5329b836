/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/exact_forces.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "cells/minimum_image.h"

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

//! -(1/r) d/dr of erfc(a r)/r.
double sharpSlope(double a, double r2)
{
    const double r = std::sqrt(r2);
    return (std::erfc(a * r) / r + 2 * a / std::sqrt(M_PI) * std::exp(-a * a * r2)) / r2;
}

//! The same of erf(a r)/r, also at r = 0.
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

//! The integers that an interval holds. \param[in] middle, half  of it, in units of one
struct Range
{
    int first, last;
    Range(double middle, double half) :
        first(static_cast<int>(std::ceil(middle - half))),
        last(static_cast<int>(std::floor(middle + half)))
    {
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
    std::vector<long double> x;   //!< [n][3], in the box about the origin
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
            x.insert(x.end(), inBox, inBox + 3);
        }
        excluded = laterPartners(particles.excluded, place);
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

void ExactForces::addReal(const Sources& s, std::vector<double>* forces) const
{
    const MinimumImage image = MinimumImage::of(box_);
    const double reach       = digits_ / splitting_;
    const int n              = static_cast<int>(s.q.size());
    for (int i = 0; i < n; i++)
    {
        auto partner = s.excluded[i].begin();
        for (int j = i + 1; j < n; j++)
        {
            while (partner != s.excluded[i].end() && *partner < j)
            {
                ++partner;
            }
            const bool isExcluded = partner != s.excluded[i].end() && *partner == j;
            double dx[3];
            for (int k = 0; k < 3; k++)
            {
                dx[k] = static_cast<double>(s.x[3 * static_cast<size_t>(i) + k]
                                            - s.x[3 * static_cast<size_t>(j) + k]);
            }
            image.search(dx);
            const double r2 = dx[0] * dx[0] + dx[1] * dx[1] + dx[2] * dx[2];
            double force[3] = { 0, 0, 0 };
            const auto add  = [&](double x, double y, double z, double slope)
            {
                force[0] += slope * x;
                force[1] += slope * y;
                force[2] += slope * z;
            };
            if (isExcluded)
            {
                add(dx[0], dx[1], dx[2], -smoothSlope(splitting_, r2));
            }
            // of a slab all images are at that height, within reach or not
            const Range c(isSlab_ ? 0 : -dx[2] / box_(2, 2), isSlab_ ? 0 : reach / box_(2, 2));
            for (int nc = c.first; nc <= c.last; nc++)
            {
                const double z  = dx[2] + nc * box_(2, 2);
                const double y0 = dx[1] + nc * box_(2, 1);
                const double yz = std::sqrt(std::max(0.0, reach * reach - z * z));
                const Range b(-y0 / box_(1, 1), yz / box_(1, 1));
                for (int nb = b.first; nb <= b.last; nb++)
                {
                    const double y  = y0 + nb * box_(1, 1);
                    const double x0 = dx[0] + nc * box_(2, 0) + nb * box_(1, 0);
                    const double xs = std::sqrt(std::max(0.0, yz * yz - y * y));
                    const Range a(-x0 / box_(0, 0), xs / box_(0, 0));
                    for (int na = a.first; na <= a.last; na++)
                    {
                        const bool isShortest = na == 0 && nb == 0 && nc == 0;
                        if (!isExcluded || !isShortest)
                        {
                            const double x = x0 + na * box_(0, 0);
                            add(x, y, z, sharpSlope(splitting_, x * x + y * y + z * z));
                        }
                    }
                }
            }
            for (int k = 0; k < 3; k++)
            {
                const double f = s.q[i] * s.q[j] * force[k];
                (*forces)[3 * static_cast<size_t>(s.index[i]) + k] += f;
                (*forces)[3 * static_cast<size_t>(s.index[j]) + k] -= f;
            }
        }
    }
}

void ExactForces::addReciprocal(const Sources& s, std::vector<double>* forces) const
{
    // F_i = 8 pi q_i / V sum over half of all k: k exp(-k^2 / 4 a^2) / k^2 Im(conj(S) exp(i k r_i))
    const size_t n       = s.q.size();
    const Mat3 inverse   = 2 * M_PI * box_.inverse(); // wave vector: inverse times integers
    const double longest = 2 * digits_ * splitting_;
    const double quarter = 1 / (4 * splitting_ * splitting_);
    const double factor  = 8 * M_PI / box_.determinant();
    std::vector<double> re(n), im(n), stepRe(n), stepIm(n), sum(n), sumOfLast(n);
    std::vector<double> result(3 * n, 0.0);
    for (size_t i = 0; i < n; i++)
    {
        stepRe[i] = std::cos(2 * M_PI * s.phase[2][i]);
        stepIm[i] = std::sin(2 * M_PI * s.phase[2][i]);
    }
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
            if (first > h2.last)
            {
                continue;
            }
            for (size_t i = 0; i < n; i++)
            {
                const double phase = a * s.phase[0][i] + b * s.phase[1][i] + first * s.phase[2][i];
                re[i]              = std::cos(2 * M_PI * phase);
                im[i]              = std::sin(2 * M_PI * phase);
                sum[i]             = 0;
                sumOfLast[i]       = 0;
            }
            for (int c = first; c <= h2.last; c++)
            {
                double sRe = 0, sIm = 0;
                for (size_t i = 0; i < n; i++)
                {
                    sRe += s.q[i] * re[i];
                    sIm += s.q[i] * im[i];
                }
                const double kz = kz0 + inverse(2, 2) * c;
                const double k2 = kx * kx + ky * ky + kz * kz;
                const double weight =
                        factor * std::exp(-k2 * quarter) / k2 * (1 - (c % 2 == 0 ? cut : -cut));
                sRe *= weight;
                sIm *= weight;
                for (size_t i = 0; i < n; i++)
                {
                    const double term = sRe * im[i] - sIm * re[i];
                    sum[i] += term;
                    sumOfLast[i] += kz * term;
                    const double next = re[i] * stepRe[i] - im[i] * stepIm[i];
                    im[i]             = re[i] * stepIm[i] + im[i] * stepRe[i];
                    re[i]             = next;
                }
            }
            for (size_t i = 0; i < n; i++)
            {
                result[3 * i] += kx * sum[i];
                result[3 * i + 1] += ky * sum[i];
                result[3 * i + 2] += sumOfLast[i];
            }
        }
    }
    for (size_t i = 0; i < 3 * n; i++)
    {
        (*forces)[3 * static_cast<size_t>(s.index[i / 3]) + i % 3] += s.q[i / 3] * result[i];
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
