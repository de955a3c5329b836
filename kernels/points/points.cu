/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "backend/points_on_device.h"

#include "runtime/device.h"

namespace farfield
{
namespace
{

constexpr int c_threads = 256;

//! fields[k] = forces[k] / charge, n values.
template<class Real>
__global__ void divide(size_t n, const Real* forces, double charge, Real* fields)
{
    const size_t k = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (k < n)
    {
        fields[k] = static_cast<Real>(static_cast<double>(forces[k]) / charge);
    }
}

template<class Real>
class CudaPoints final : public PointsOnDevice<Real>
{
public:
    void place(const Real* x, int particles, const Real* at, int points, void* stream) override
    {
        particles_       = particles;
        points_          = points;
        const size_t all = particles_ + points_;
        x_.resize(3 * all);
        forces_.resize(3 * all);
        potentials_.resize(all);
        copy(x, 3 * particles_, x_.data(), stream);
        copy(at, 3 * points_, x_.data() + 3 * particles_, stream);
    }
    const Real* positions() const override { return x_.data(); }
    Real* forces() override { return forces_.data(); }
    Real* potentials() override { return potentials_.data(); }
    void collect(double charge, Real* potentials, Real* fields, void* stream) override
    {
        if (potentials != nullptr)
        {
            copy(potentials_.data() + particles_, points_, potentials, stream);
        }
        if (fields != nullptr)
        {
            const size_t n = 3 * points_;
            divide<Real>
                    <<<blocksFor(n, c_threads), c_threads, 0, static_cast<cudaStream_t>(stream)>>>(
                            n, forces_.data() + 3 * particles_, charge, fields);
            checkLaunch("fields at points");
        }
    }
    void clear(Real* potentials, Real* fields, int points, void* stream) override
    {
        const auto clear = [&](Real* values, size_t n)
        {
            if (values != nullptr && n > 0)
            {
                check(cudaMemsetAsync(
                              values, 0, n * sizeof(Real), static_cast<cudaStream_t>(stream)),
                      "clearing potentials and fields");
            }
        };
        clear(potentials, points);
        clear(fields, 3 * static_cast<size_t>(points));
        check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)),
              "clearing potentials and fields");
    }

private:
    static void copy(const Real* from, size_t n, Real* to, void* stream)
    {
        copyAsync(to, from, n, static_cast<cudaStream_t>(stream), "copying points");
    }

    size_t particles_ = 0, points_ = 0;
    DeviceBuffer<Real> x_, forces_, potentials_;
};

} // namespace

template<class Real>
std::unique_ptr<PointsOnDevice<Real>> makePoints()
{
    return std::make_unique<CudaPoints<Real>>();
}

template std::unique_ptr<PointsOnDevice<float>> makePoints<float>();
template std::unique_ptr<PointsOnDevice<double>> makePoints<double>();

} // namespace farfield
