/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/ewald_sums.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "pair_kernels/left_out_pairs.h"

namespace farfield
{
namespace
{

using Complex = std::complex<double>;

//! One of each pair k, -k of wave vectors, but 0, and twice what the smooth part has there over the volume.
struct Wave
{
    Int3 m;
    Vec3 k;
    double weight;
};

std::vector<Wave> wavesWithin(const PairKernel& kernel, double b, double longest, const Mat3& box)
{
    const Mat3 inverse = box.inverse();
    std::vector<Wave> waves;
    Int3 most;
    for (int k = 0; k < 3; k++)
    {
        most[k] = static_cast<int>(longest * box.row(k).norm() / (2 * M_PI));
    }
    for (int x = 0; x <= most[0]; x++)
    {
        for (int y = x == 0 ? 0 : -most[1]; y <= most[1]; y++)
        {
            for (int z = x == 0 && y == 0 ? 1 : -most[2]; z <= most[2]; z++)
            {
                const Vec3 k = 2 * M_PI * (inverse * Vec3(x, y, z));
                if (k.norm() <= longest)
                {
                    const double weight =
                            2 * kernel.smoothTransform(k.norm(), b) / box.determinant();
                    waves.push_back({ { x, y, z }, k, weight });
                }
            }
        }
    }
    return waves;
}

//! exp(2 pi i m.f) for all waves.
class Phases
{
public:
    explicit Phases(const std::vector<Wave>& waves) : waves_(waves)
    {
        for (const Wave& wave : waves)
        {
            for (int k = 0; k < 3; k++)
            {
                most_[k] = std::max(most_[k], std::abs(wave.m[k]));
            }
        }
    }
    //! \param[in] f  coordinates in the box, from 0 to 1
    void set(const Vec3& f)
    {
        for (int k = 0; k < 3; k++)
        {
            along_[k].resize(2 * most_[k] + 1);
            for (int m = -most_[k]; m <= most_[k]; m++)
            {
                along_[k][m + most_[k]] = std::polar(1.0, 2 * M_PI * m * f[k]);
            }
        }
    }
    Complex operator[](size_t wave) const
    {
        const Int3& m = waves_[wave].m;
        return along_[0][m[0] + most_[0]] * along_[1][m[1] + most_[1]] * along_[2][m[2] + most_[2]];
    }

private:
    const std::vector<Wave>& waves_;
    Int3 most_{ 0, 0, 0 };
    std::vector<Complex> along_[3];
};

Vec3 at(const double* x, size_t i)
{
    return { x[3 * i], x[3 * i + 1], x[3 * i + 2] };
}

//! Sums over the charges, [sets][waves], in an order that does not depend on threads.
template<class Real>
std::vector<Complex> structureFactors(const PointSystem<Real>& system,
                                      const std::vector<Wave>& waves,
                                      const Mat3& inverse,
                                      Team* team)
{
    constexpr int c_chunks = 16;
    const size_t size      = system.sets * waves.size();
    std::vector<std::vector<Complex>> ofChunks(c_chunks);
    team->forTasks(
            c_chunks,
            [&](int chunk, int /*thread*/)
            {
                std::vector<Complex>& sums = ofChunks[chunk];
                sums.assign(size, 0);
                Phases phases(waves);
                for (int i = chunk; i < system.n; i += c_chunks)
                {
                    phases.set(inverse.transpose() * at(system.x, i));
                    for (size_t w = 0; w < waves.size(); w++)
                    {
                        const Complex phase = std::conj(phases[w]);
                        for (int s = 0; s < system.sets; s++)
                        {
                            sums[s * waves.size() + w] +=
                                    static_cast<double>(
                                            system.q[static_cast<size_t>(i) * system.sets + s])
                                    * phase;
                        }
                    }
                }
            });
    for (int chunk = 1; chunk < c_chunks; chunk++)
    {
        for (size_t k = 0; k < size; k++)
        {
            ofChunks[0][k] += ofChunks[chunk][k];
        }
    }
    return ofChunks[0];
}

} // namespace

template<class Real>
std::vector<double> ewaldSums(const PairKernel& kernel,
                              const PointSystem<Real>& system,
                              const Region& region,
                              const std::vector<int>& some,
                              double accuracy,
                              Team* team)
{
    const Mat3& box    = region.box;
    const Mat3 inverse = box.inverse();
    double b = 0, reach = kernel.last();
    std::vector<Wave> waves;
    if (kernel.isSplit())
    {
        const double digits = std::sqrt(-std::log(accuracy));
        reach               = 0.5 * smallestWidth(inverse);
        b                   = digits / reach;
        waves               = wavesWithin(kernel, b, 2 * b * digits, box);
    }
    // beyond the image that is rounded to
    Int3 most;
    for (int k = 0; k < 3; k++)
    {
        most[k] = std::max(0,
                           static_cast<int>(std::ceil(reach * inverse.col(k).norm() - 0.5 - 1e-9)));
    }
    std::vector<Vec3> images;
    for (int x = -most[0]; x <= most[0]; x++)
    {
        for (int y = -most[1]; y <= most[1]; y++)
        {
            for (int z = -most[2]; z <= most[2]; z++)
            {
                images.push_back(box.transpose() * Vec3(x, y, z));
            }
        }
    }
    const std::vector<Complex> factors = structureFactors(system, waves, inverse, team);
    const ShortestImages shortest(box, true);
    const auto sharp   = [&](double r) { return kernel.sharp(r, b); };
    const auto smooth  = [&](double r) { return kernel.smooth(r, b); };
    const int sets     = system.sets;
    const size_t count = some.size();
    std::vector<double> result(sets * 4 * count, 0), netCharges(sets, 0);
    for (size_t i = 0; i < static_cast<size_t>(system.n) * sets; i++)
    {
        netCharges[i % sets] += static_cast<double>(system.q[i]);
    }
    const auto work = [&](int task, int /*thread*/)
    {
        const int target   = some[task];
        const bool isOwn   = system.areOwn();
        const Vec3 here    = at(isOwn ? system.x : system.at, target);
        const auto addPair = [&](int source, const Vec3& d, double g, double slope)
        {
            for (int s = 0; s < sets; s++)
            {
                const double q =
                        static_cast<double>(system.q[static_cast<size_t>(source) * sets + s]);
                result[4 * s * count + task] += q * g;
                for (int k = 0; k < 3 && slope != 0; k++)
                {
                    result[(4 * s + 1 + k) * count + task] -= q * slope * d[k] / d.norm();
                }
            }
        };
        std::vector<std::pair<int, Vec3>> leftOut;
        for (int k = system.leftOut == nullptr ? 0 : system.leftOut->offsets[target];
             system.leftOut != nullptr && k < system.leftOut->offsets[target + 1];
             k++)
        {
            const int source = system.leftOut->partners[k];
            const Vec3 d     = shortest(system.x + 3 * static_cast<size_t>(target),
                                    system.x + 3 * static_cast<size_t>(source));
            leftOut.emplace_back(source, d);
            const double r = d.norm();
            addPair(source, d, -smooth(r), r > 0 ? -slopeOf(smooth, r, std::max(r, 1 / b)) : 0);
        }
        for (int j = 0; j < system.n; j++)
        {
            const Vec3 f    = inverse.transpose() * (here - at(system.x, j));
            const Vec3 near = box.transpose() * Vec3(f.array() - f.array().round());
            for (const Vec3& image : images)
            {
                const Vec3 d      = near + image;
                const double r    = d.norm();
                const bool isLeft = std::any_of(
                        leftOut.begin(),
                        leftOut.end(),
                        [&](const auto& pair)
                        { return pair.first == j && (pair.second - d).norm() <= 1e-9 * reach; });
                const bool isItself = isOwn && j == target && r <= 1e-9 * reach;
                if (r < reach && !isItself && !isLeft)
                {
                    const double slope = kernel.isSplit() ? slopeOf(sharp, r, r) : kernel.slope(r);
                    addPair(j, d, sharp(r), slope);
                }
            }
        }
        if (!kernel.isSplit())
        {
            return;
        }
        Phases phases(waves);
        phases.set(inverse.transpose() * here);
        for (int s = 0; s < sets; s++)
        {
            double sums[4] = { 0, 0, 0, 0 };
            for (size_t w = 0; w < waves.size(); w++)
            {
                const Complex term = waves[w].weight * phases[w] * factors[s * waves.size() + w];
                sums[0] += term.real();
                for (int k = 0; k < 3; k++)
                {
                    sums[1 + k] += waves[w].k[k] * term.imag();
                }
            }
            sums[0] += netCharges[s] * kernel.smoothTransform(0, b) / box.determinant();
            sums[0] -= isOwn ? static_cast<double>(system.q[static_cast<size_t>(target) * sets + s])
                                       * smooth(0)
                             : 0;
            for (int k = 0; k < 4; k++)
            {
                result[(4 * s + k) * count + task] += sums[k];
            }
        }
    };
    team->forTasks(static_cast<int>(count), work);
    return result;
}

template std::vector<double> ewaldSums(const PairKernel&,
                                       const PointSystem<float>&,
                                       const Region&,
                                       const std::vector<int>&,
                                       double,
                                       Team*);
template std::vector<double> ewaldSums(const PairKernel&,
                                       const PointSystem<double>&,
                                       const Region&,
                                       const std::vector<int>&,
                                       double,
                                       Team*);

} // namespace farfield
