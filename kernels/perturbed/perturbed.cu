/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "backend/perturbed_on_device.h"

#include "runtime/device.h"
#include "runtime/ordered_sums.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

//! to[k] = x[particles[k]], n vectors.
template<class Real>
__global__ void gather(int n, const int* particles, const Real* x, Real* to)
{
    const size_t k = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (k < 3 * static_cast<size_t>(n))
    {
        to[k] = x[3 * static_cast<size_t>(particles[k / 3]) + k % 3];
    }
}

//! all[particles[k]] += factor f[k], n vectors.
template<class Real>
__global__ void scatter(int n, const int* particles, Real factor, const Real* f, Real* all)
{
    const size_t k = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (k < 3 * static_cast<size_t>(n))
    {
        all[3 * static_cast<size_t>(particles[k / 3]) + k % 3] += factor * f[k];
    }
}

//! *to = sum difference[k] potentials[particles[k]], in an order that is always the same. One block.
template<class Real>
__global__ void
sumProducts(int n, const int* particles, const Real* difference, const Real* potentials, double* to)
{
    double own = 0;
    for (int k = static_cast<int>(threadIdx.x); k < n; k += static_cast<int>(blockDim.x))
    {
        own += static_cast<double>(difference[k]) * static_cast<double>(potentials[particles[k]]);
    }
    own = blockSum(own);
    if (threadIdx.x == 0)
    {
        *to = own;
    }
}

template<class Real>
class CudaPerturbed final : public PerturbedOnDevice<Real>
{
public:
    CudaPerturbed() { sum_.resize(1); }

    void set(const std::vector<int>& particles,
             const std::vector<Real>& difference,
             int all) override
    {
        n_ = static_cast<int>(particles.size());
        particles_.upload(particles.data(), particles.size(), beside_);
        difference_.upload(difference.data(), difference.size(), beside_);
        x_.resize(values());
        forces_.resize(values());
        potentials_.resize(all);
    }

    void* begin(const Real* x, void* stream) override
    {
        begun_.record(static_cast<cudaStream_t>(stream));
        begun_.holdBack(beside_);
        gather<Real><<<blocksFor(values(), c_threads), c_threads, 0, beside_>>>(
                n_, particles_.data(), x, x_.data());
        checkLaunch("positions of perturbed particles");
        return static_cast<cudaStream_t>(beside_);
    }
    const Real* positions() const override { return x_.data(); }
    Real* forces() override { return forces_.data(); }
    void end(double factor, Real* all, void* stream) override
    {
        const cudaStream_t s = static_cast<cudaStream_t>(stream);
        ended_.record(beside_);
        ended_.holdBack(s);
        scatter<Real><<<blocksFor(values(), c_threads), c_threads, 0, s>>>(
                n_, particles_.data(), static_cast<Real>(factor), forces_.data(), all);
        checkLaunch("forces on perturbed particles");
    }

    Real* potentials() override { return potentials_.data(); }
    void sum(const Real* potentials, void* stream) override
    {
        sumProducts<Real><<<1, c_threads, 0, static_cast<cudaStream_t>(stream)>>>(
                n_, particles_.data(), difference_.data(), potentials, sum_.data());
        checkLaunch("dV/dlambda");
    }
    double summed() override
    {
        double result = 0;
        sum_.download(&result, 1, beside_);
        return result;
    }

private:
    size_t values() const { return 3 * static_cast<size_t>(n_); }

    int n_ = 0;
    Stream beside_{ Priority::Highest };
    Event begun_, ended_;
    DeviceBuffer<int> particles_;
    DeviceBuffer<Real> difference_, x_, forces_, potentials_;
    DeviceBuffer<double> sum_;
};

} // namespace

template<class Real>
std::unique_ptr<PerturbedOnDevice<Real>> makePerturbed()
{
    return std::make_unique<CudaPerturbed<Real>>();
}

template std::unique_ptr<PerturbedOnDevice<float>> makePerturbed<float>();
template std::unique_ptr<PerturbedOnDevice<double>> makePerturbed<double>();

} // namespace farfield
