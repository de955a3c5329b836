/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Points per second of sums of kernels on a GPU, with arrays in its memory.
 *
 *      farfield_kernel_benchmark 100000 1000000 10000000
 *      farfield_kernel_benchmark 1000000 Plummer 1e-3
 *
 *  A row of JSON for each number of points, kind (uniform, Plummer), kernel (1/r, Yukawa) and accuracy. Those that are
 *  not named are all of them, and 1e-3, 1e-5 and 1e-8, the last in double precision.
 *  Times are wall-clock times of calls, which wait for the results: the first, and the fastest of several others.
 *  Points are uniform in a cube, or those of a sphere of Plummer that is cut where it has 0.999 of its mass.
 */
#include <chrono>
#include <cmath>
#include <cstdio>

#include <algorithm>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "farfield/farfield_kernels.h"

namespace
{

using namespace farfield;

struct Given
{
    std::vector<double> x;
    std::vector<float> q;
};

Given points(const std::string& kind, int n)
{
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> uniform(0, 1);
    Given given;
    for (int i = 0; i < n; i++)
    {
        if (kind == "uniform")
        {
            for (int k = 0; k < 3; k++)
            {
                given.x.push_back(uniform(random));
            }
        }
        else
        {
            const double radius = 1 / std::sqrt(std::pow(0.999 * uniform(random), -2.0 / 3) - 1);
            const double z = 2 * uniform(random) - 1, phi = 2 * M_PI * uniform(random);
            const double across = std::sqrt(1 - z * z);
            given.x.push_back(radius * across * std::cos(phi));
            given.x.push_back(radius * across * std::sin(phi));
            given.x.push_back(radius * z);
        }
        given.q.push_back(static_cast<float>(2 * uniform(random) - 1));
    }
    return given;
}

template<class T>
T* onDevice(const std::vector<T>& values)
{
    T* array = nullptr;
    if (cudaMalloc(&array, values.size() * sizeof(T)) != cudaSuccess)
    {
        throw std::runtime_error("no memory on the GPU");
    }
    cudaMemcpy(array, values.data(), values.size() * sizeof(T), cudaMemcpyDefault);
    return array;
}

template<class Real>
void measure(const std::string& name, const Kernel& kernel, const Given& given, double accuracy)
{
    const int n = static_cast<int>(given.q.size());
    KernelOptions options;
    options.accuracy = accuracy;
    options.device   = Device::Gpu;
    KernelSum<Real> sum(kernel, options);
    double* x        = onDevice(given.x);
    Real* q          = onDevice(std::vector<Real>(given.q.begin(), given.q.end()));
    Real* potentials = onDevice(std::vector<Real>(n));
    Real* fields     = onDevice(std::vector<Real>(3 * static_cast<size_t>(n)));
    KernelInput<Real> input;
    input.x = x;
    input.q = q;
    input.n = n;
    KernelOutput<Real> output;
    output.potentials = potentials;
    output.fields     = fields;
    std::vector<double> seconds;
    constexpr int c_repeats = 5;
    for (int k = 0; k <= c_repeats; k++)
    {
        const auto begin = std::chrono::steady_clock::now();
        sum.evaluate(input, output);
        seconds.push_back(
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    for (void* array : { static_cast<void*>(x),
                         static_cast<void*>(q),
                         static_cast<void*>(potentials),
                         static_cast<void*>(fields) })
    {
        cudaFree(array);
    }
    const KernelSetup setup = sum.setup();
    const double least      = *std::min_element(seconds.begin() + 1, seconds.end());
    printf("%s, \"n\": %d, \"accuracy\": %g, \"error\": %.2e, \"degree\": %d, \"direct_range\": "
           "%d, \"levels\": %d, "
           "\"points_per_s\": %.3e, \"first_us\": %.4f}\n",
           name.c_str(),
           n,
           accuracy,
           setup.measuredError,
           setup.degree,
           setup.directRange,
           setup.levels,
           n / least,
           1e6 * seconds[0] / n);
    fflush(stdout);
}

//! The words that are known among some, or all that are known.
std::vector<std::string> chosen(const std::vector<std::string>& words,
                                const std::vector<std::string>& known)
{
    std::vector<std::string> result;
    std::copy_if(words.begin(),
                 words.end(),
                 std::back_inserter(result),
                 [&](const std::string& word)
                 { return std::find(known.begin(), known.end(), word) != known.end(); });
    return result.empty() ? known : result;
}

} // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> words(argv + 1, argv + argc);
    for (const std::string& word : words)
    {
        const bool isCount = word.find_first_not_of("0123456789") == std::string::npos;
        const int n        = isCount ? std::stoi(word) : 0;
        for (const std::string& kind : chosen(words, { "uniform", "Plummer" }))
        {
            if (n < 1)
            {
                continue;
            }
            const Given given = points(kind, n);
            for (const std::string& name : chosen(words, { "1/r", "Yukawa" }))
            {
                const Kernel kernel = name == "1/r" ? Kernel::inversePower(1) : Kernel::yukawa(1);
                const std::string row =
                        std::string("{\"kind\": \"") + kind + "\", \"kernel\": \"" + name + "\"";
                for (const std::string& accuracy : chosen(words, { "1e-3", "1e-5", "1e-8" }))
                {
                    const double asked = std::stod(accuracy);
                    asked < 1e-6 ? measure<double>(row, kernel, given, asked)
                                 : measure<float>(row, kernel, given, asked);
                }
            }
        }
    }
    return 0;
}
