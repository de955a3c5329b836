/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench_systems.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "bench_random.h"

namespace farfield
{
namespace bench
{
namespace
{

template<class T>
void take(std::ifstream* file, T* to, size_t count)
{
    file->read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof(T)));
    if (!*file)
    {
        throw std::runtime_error("The reference file ends early.");
    }
}

} // namespace

double rms(const std::vector<double>& vectors, int particles)
{
    return std::sqrt(std::inner_product(vectors.begin(), vectors.end(), vectors.begin(), 0.0)
                     / std::max(particles, 1));
}

System randomCharges(int n, unsigned seed)
{
    return randomCharges(n, std::cbrt(n / 100.0), seed);
}

System randomCharges(int n, double edge, unsigned seed)
{
    Random random(seed);
    System system;
    setCube(edge, &system);
    system.name = "random";
    for (int i = 0; i < n; i++)
    {
        for (int k = 0; k < 3; k++)
        {
            system.x.push_back(single(random.uniform(0, edge)));
        }
        system.q.push_back(i % 2 == 0 ? 0.5 : -0.5);
    }
    system.offsets.assign(n + 1, 0);
    return system;
}

Reference readReference(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
    {
        throw std::runtime_error("The reference file " + path + " cannot be opened.");
    }
    Reference r;
    std::int32_t n = 0;
    take(&file, &n, 1);
    if (n < 1)
    {
        throw std::runtime_error("The reference file " + path + " holds no particles.");
    }
    const size_t count = static_cast<size_t>(n);
    take(&file, &r.system.box[0][0], 9);
    r.system.x.resize(3 * count);
    take(&file, r.system.x.data(), 3 * count);
    r.system.q.resize(count);
    take(&file, r.system.q.data(), count);
    std::vector<double> total(3 * count);
    take(&file, total.data(), 3 * count);
    r.forces.resize(3 * count);
    take(&file, r.forces.data(), 3 * count);
    take(&file, &r.energy, 1);
    take(&file, &r.virial[0][0], 9);
    r.system.offsets.resize(count + 1);
    take(&file, r.system.offsets.data(), count + 1);
    if (r.system.offsets.back() < 0)
    {
        throw std::runtime_error("The reference file " + path + " has no valid exclusions.");
    }
    r.system.partners.resize(r.system.offsets.back());
    take(&file, r.system.partners.data(), r.system.partners.size());
    r.rmsTotalForce  = rms(total, n);
    const size_t cut = path.find_last_of('/') + 1; // npos + 1 is 0
    r.system.name    = path.substr(cut, path.find_last_of('.') - cut);
    return r;
}

Occupation occupation(const System& system,
                      const std::array<std::array<int, 3>, 3>& H,
                      int directRange)
{
    // Rows of G with H G = box by forward substitution; positions in units of G backwards.
    double G[3][3] = {};
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            G[i][j] = system.box[i][j];
            for (int k = 0; k < i; k++)
            {
                G[i][j] -= H[i][k] * G[k][j];
            }
            G[i][j] /= H[i][i];
        }
    }
    const auto index = [&](int* c)
    {
        for (int k = 2; k >= 0; k--)
        {
            const int q = static_cast<int>(std::floor(static_cast<double>(c[k]) / H[k][k]));
            for (int j = 0; j <= k; j++)
            {
                c[j] -= q * H[k][j];
            }
        }
        return (static_cast<size_t>(c[2]) * H[1][1] + c[1]) * H[0][0] + c[0];
    };
    std::vector<long long> count(static_cast<size_t>(H[0][0]) * H[1][1] * H[2][2], 0);
    for (int i = 0; i < system.size(); i++)
    {
        const double* r = system.x.data() + 3 * static_cast<size_t>(i);
        double u[3];
        int c[3];
        for (int k = 2; k >= 0; k--)
        {
            u[k] = r[k];
            for (int j = k + 1; j < 3; j++)
            {
                u[k] -= u[j] * G[j][k];
            }
            u[k] /= G[k][k];
            c[k] = static_cast<int>(std::floor(u[k]));
        }
        count[index(c)]++;
    }
    Occupation result;
    result.nearPairs = -system.size();
    const int width  = 2 * directRange + 1;
    for (size_t cell = 0; cell < count.size(); cell++)
    {
        const int x = static_cast<int>(cell % H[0][0]);
        const int y = static_cast<int>(cell / H[0][0] % H[1][1]);
        const int z = static_cast<int>(cell / H[0][0] / H[1][1]);
        for (int d = 0; d < width * width * width && count[cell] > 0; d++)
        {
            int c[3] = { x + d % width - directRange,
                         y + d / width % width - directRange,
                         z + d / width / width - directRange };
            result.nearPairs += count[cell] * count[index(c)];
        }
        result.cells += count[cell] > 0;
    }
    return result;
}

} // namespace bench
} // namespace farfield
