/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "m2l/m2l.h"
#include "m2l_periodic/index.h"
#include "m2l_periodic/level_transform.h"
#include "m2l_periodic/multiply.cuh"
#include "m2l_periodic/single_copy.cuh"
#include "m2l_periodic/strain.cuh"
#include "m2l_periodic/tensor.cuh"
#include "m2l_periodic/virial.cuh"

namespace farfield
{
namespace
{

//! Shared memory that kernels use besides what they are launched with, at most.
constexpr int c_staticBytes = 4096;
//! Host memory for operators on their way to the device.
constexpr size_t c_stagingBytes = 64U << 20U;

//! Rows and columns of the stored elements of an operator, -1 for padding.
std::vector<std::array<int, 2>> storedElements(int n, bool blocked)
{
    std::vector<std::array<int, 2>> elements;
    if (blocked)
    {
        const BlockedOperator o(n);
        for (int k = 0; k < o.size(); k++)
        {
            const bool used = o.column(k) < n;
            elements.push_back({ used ? o.row(k) : -1, used ? o.column(k) : -1 });
        }
        return elements;
    }
    for (int i = 0; i < n; i++)
    {
        for (int j = 0; j <= i; j++)
        {
            elements.push_back({ i, j });
        }
    }
    return elements;
}

template<class T>
void upload(const std::vector<T>& from, DeviceBuffer<T>* to, cudaStream_t stream)
{
    if (!from.empty())
    {
        to->upload(from.data(), from.size(), stream);
    }
}

} // namespace

template<class Real>
struct DevicePeriodicM2l<Real>::Impl
{
    Impl(const PeriodicM2lOperators<Real>& operators, int stride, cudaStream_t stream);

    void uploadOperators(const PeriodicM2lOperators<Real>& operators, cudaStream_t stream);
    void uploadStrain(const PeriodicM2lOperators<Real>& operators, cudaStream_t stream);
    void uploadSums(const typename PeriodicM2lOperators<Real>::StrainSums& sums,
                    DeviceBuffer<Real>* to,
                    cudaStream_t stream);
    void prepareKernels();
    //! Distance of operators in memory: whole cache lines.
    size_t operatorStride() const { return (elements_.size() + 31) / 32 * 32; }
    void multiply(cudaStream_t stream);
    //! Adds to the virial; before multiply().
    template<int Columns>
    void contract(double scale, double* virial, cudaStream_t stream);
    StrainView<Real> view(const DeviceBuffer<Real>& strain) const
    {
        return { strain.data(), sums_, representatives_ };
    }
    //! Blocks of so many neighbouring representatives.
    int blocks(int width) const
    {
        return waves_.ranges[0] * waves_.ranges[1] * blocksFor(waves_.ranges[2], width);
    }

    int n_;    //!< coefficients
    int high_; //!< coefficients of the high order
    int used_; //!< lattice sums of operators without least squares
    int sums_; //!< lattice sums whose derivatives the virial needs
    int representatives_;
    int stride_; //!< of the expansions
    double inverseCells_;
    WaveGrid waves_;
    SingleCopyShape singleCopy_;               //!< of skewed boxes
    MultiplyShape shape_;                      //!< of others without tensor cores
    TensorShape tensor_;                       //!< without tiles: no tensor cores
    std::vector<std::array<int, 2>> elements_; //!< stored ones of an operator
    size_t shared_;                            //!< what a block may have, bytes
    int processors_;                           //!< multiprocessors
    DeviceBuffer<Real> kappa_, unstrained_;
    DeviceBuffer<unsigned int> phases_; //!< of coefficients, 4 bits per copy
    DeviceBuffer<Real> strain_;
    DeviceBuffer<Real> strained_, interpolated_; //!< for the virial; empty until there is a line
    DeviceBuffer<SumPair<Real>> storedPairs_;    //!< of the stored elements
    VirialView<Real> virial_;                    //!< of what follows
    DeviceBuffer<int> productStart_, productPlace_;
    DeviceBuffer<typename ProductTable<Real>::Source> productSources_;
    DeviceBuffer<Real> harmonicScale_;
    DeviceBuffer<VirialTask> virialTasks_;
    DeviceBuffer<double> partial_;
    DeviceBuffer<Complex<Real>> spectrum_;
    LevelTransform<Real> transform_;
};

template<class Real>
DevicePeriodicM2l<Real>::Impl::Impl(const PeriodicM2lOperators<Real>& operators,
                                    int stride,
                                    cudaStream_t stream) :
    n_(coefficientCount(operators.reduction().order())),
    high_(coefficientCount(operators.reduction().highOrder())),
    used_(coefficientCount(2 * operators.reduction().order())),
    sums_(coefficientCount(operators.strainDegree())),
    representatives_(operators.representatives()), stride_(stride),
    inverseCells_(1.0 / static_cast<double>(operators.grid().count())),
    waves_(waveGrid(operators.grid().lengths(), operators.ranges(), operators.copies())),
    shared_(deviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
    processors_(deviceAttribute(cudaDevAttrMultiProcessorCount))
{
    const bool isSkewed = waves_.copies == 1;
    singleCopy_         = singleCopyShape(
            n_, sizeof(Real), representatives_, waves_.ranges[2], shared_, processors_);
    shape_ = multiplyShape(
            n_, sizeof(Real), representatives_, waves_.ranges[2], shared_, processors_);
    tensor_ = {};
    if (std::is_same_v<Real, float> && !isSkewed
        && deviceAttribute(cudaDevAttrComputeCapabilityMajor) >= 8)
    {
        tensor_ = tensorShape(n_,
                              representatives_,
                              waves_.ranges[2],
                              shared_,
                              deviceAttribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
                              processors_);
    }
    elements_ = storedElements(n_, tensor_.tiles > 0);
    std::vector<unsigned int> phases(n_, 0U);
    for (int j = 0; j < n_; j++)
    {
        for (int copy = 0; copy < waves_.copies; copy++)
        {
            phases[j] |= Phase(j, copy).code() << (4 * copy);
        }
    }
    upload(phases, &phases_, stream);
    spectrum_.resize(static_cast<size_t>(n_) * waves_.stride);
    uploadOperators(operators, stream);
    uploadStrain(operators, stream);
    transform_.prepare(operators.grid().lengths(), waves_, n_, stride_, shared_);
    prepareKernels();
    check(cudaStreamSynchronize(stream), "setting up the periodic M2L");
}

template<class Real>
void DevicePeriodicM2l<Real>::Impl::uploadOperators(const PeriodicM2lOperators<Real>& operators,
                                                    cudaStream_t stream)
{
    const size_t stride = operatorStride();
    const int some      = static_cast<int>(std::clamp<size_t>(
            c_stagingBytes / (stride * sizeof(Real)), 1, static_cast<size_t>(representatives_)));
    std::vector<Real> staging(some * stride, Real(0));
    kappa_.resize(representatives_ * stride);
    for (int first = 0; first < representatives_; first += some)
    {
        const int last = std::min(first + some, representatives_);
        operators.forEachKappa(first,
                               last,
                               [&](int k, const Matrix& K)
                               {
                                   Real* out = staging.data() + (k - first) * stride;
                                   for (const auto& [i, j] : elements_)
                                   {
                                       *out++ = (i < 0) ? Real(0) : static_cast<Real>(K(j, i));
                                   }
                               });
        copyAsync(kappa_.data() + first * stride,
                  staging.data(),
                  (last - first) * stride,
                  stream,
                  "copying operators to the GPU");
        check(cudaStreamSynchronize(stream), "copying operators to the GPU");
    }
}

template<class Real>
void DevicePeriodicM2l<Real>::Impl::uploadSums(
        const typename PeriodicM2lOperators<Real>::StrainSums& sums,
        DeviceBuffer<Real>* to,
        cudaStream_t stream)
{
    const size_t size = static_cast<size_t>(representatives_) * sums_;
    to->resize(StrainCount * size);
    for (int c = 0; c < StrainCount; c++)
    {
        copyAsync(to->data() + c * size,
                  sums[c].data(),
                  size,
                  stream,
                  "copying lattice sums to the GPU");
    }
}

template<class Real>
void DevicePeriodicM2l<Real>::Impl::uploadStrain(const PeriodicM2lOperators<Real>& operators,
                                                 cudaStream_t stream)
{
    uploadSums(operators.strainSums(), &strain_, stream);
    const auto uploadPairs =
            [&](const std::vector<std::array<int, 2>>& elements, DeviceBuffer<SumPair<Real>>* to)
    {
        std::vector<SumPair<Real>> pairs;
        pairs.reserve(elements.size());
        for (const auto& [i, j] : elements)
        {
            if (i < 0)
            {
                pairs.push_back({ { 0, 0 }, { Real(0), Real(0) } });
                continue;
            }
            const double sign = (degreeOf(i) % 2) ? -1 : 1;
            const M2lEntry& e = operators.entries()[static_cast<size_t>(j) * high_ + i];
            pairs.push_back({ { e.index[0], e.index[1] },
                              { static_cast<Real>(sign * e.value[0]),
                                static_cast<Real>(sign * e.value[1]) } });
        }
        upload(pairs, to, stream);
    };
    uploadPairs(elements_, &storedPairs_);
    const int order = operators.strainDegree() / 2;
    const ProductTable<Real> products(order, operators.reduction());
    const VirialPlaces places(order);
    const std::vector<VirialTask> tasks = virialTasks(order);
    std::vector<int> place;
    for (int i = 0; i < coefficientCount(order); i++)
    {
        const int l = degreeOf(i);
        const int m = i - coefficientIndex(l, 0);
        place.push_back(places.start(std::abs(m)) + l + (m < 0 ? places.count : 0));
    }
    upload(products.start, &productStart_, stream);
    upload(place, &productPlace_, stream);
    upload(products.sources, &productSources_, stream);
    upload(products.harmonicScale, &harmonicScale_, stream);
    upload(tasks, &virialTasks_, stream);
    virial_ = { n_,
                coefficientCount(order),
                order,
                static_cast<int>(tasks.size()),
                places,
                productStart_.data(),
                productSources_.data(),
                productPlace_.data(),
                harmonicScale_.data(),
                virialTasks_.data() };
    partial_.resize(static_cast<size_t>(representatives_) * StrainCount);
}

template<class Real>
void DevicePeriodicM2l<Real>::Impl::prepareKernels()
{
    const auto allow = [this](const void* kernel)
    {
        check(cudaFuncSetAttribute(kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_) - c_staticBytes),
              "asking for shared memory");
    };
    const auto allowMultiply = [&](auto* kernel)
    {
        check(cudaFuncSetAttribute(kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_)),
              "asking for shared memory");
    };
    if (tensor_.tiles > 0)
    {
        withTensorKernel(tensor_.tiles, allowMultiply);
    }
    if (waves_.copies == 4)
    {
        withMultiplyKernel<Real>(shape_.rows, allowMultiply);
        allow(reinterpret_cast<const void*>(virialKernel<Real, 8, true>));
        allow(reinterpret_cast<const void*>(virialKernel<Real, 8, false>));
    }
    else
    {
        allowMultiply(singleCopyKernel<Real, true>);
        allow(reinterpret_cast<const void*>(virialKernel<Real, 2, true>));
        allow(reinterpret_cast<const void*>(virialKernel<Real, 2, false>));
    }
}

template<class Real>
void DevicePeriodicM2l<Real>::Impl::multiply(cudaStream_t stream)
{
    if constexpr (std::is_same_v<Real, float>)
    {
        if (tensor_.tiles > 0)
        {
            const int width    = tensor_.width;
            const size_t bytes = width * tensor_.groupSize * sizeof(float);
            withTensorKernel(tensor_.tiles,
                             [&](auto* kernel)
                             {
                                 kernel<<<blocks(width), tensor_.threads(), bytes, stream>>>(
                                         tensor_,
                                         waves_,
                                         operatorStride(),
                                         kappa_.data(),
                                         phases_.data(),
                                         spectrum_.data());
                                 checkLaunch("tensorMultiplyKernel");
                             });
            return;
        }
    }
    if (waves_.copies == 1)
    {
        const auto kernel =
                singleCopy_.staged ? singleCopyKernel<Real, true> : singleCopyKernel<Real, false>;
        kernel<<<blocks(singleCopy_.width),
                 singleCopy_.threads(),
                 singleCopy_.bytes(sizeof(Real)),
                 stream>>>(singleCopy_,
                           waves_,
                           operatorStride(),
                           kappa_.data(),
                           phases_.data(),
                           spectrum_.data());
        checkLaunch("singleCopyKernel");
        return;
    }
    withMultiplyKernel<Real>(
            shape_.rows,
            [&](auto* kernel)
            {
                kernel<<<blocks(shape_.width),
                         shape_.threads(),
                         shape_.width * shape_.groupSize * sizeof(Real),
                         stream>>>(
                        shape_, waves_, operatorStride(), kappa_.data(), spectrum_.data());
                checkLaunch("multiplyKernel");
            });
}

template<class Real>
template<int Columns>
void DevicePeriodicM2l<Real>::Impl::contract(double scale, double* virial, cudaStream_t stream)
{
    const StrainView<Real> derivatives = view(interpolated_.size() > 0 ? interpolated_ : strain_);
    const auto launch                  = [&](auto* kernel, size_t bytes)
    {
        kernel<<<representatives_, c_virialThreads, bytes, stream>>>(waves_,
                                                                     virial_,
                                                                     derivatives,
                                                                     spectrum_.data(),
                                                                     0.25 * inverseCells_ * scale,
                                                                     partial_.data());
        checkLaunch("virialKernel");
    };
    const int places    = virial_.places.count;
    const size_t staged = VirialMemory<Real, Columns, true>::bytes(n_, places, sums_);
    if (staged <= shared_ - c_staticBytes)
    {
        launch(virialKernel<Real, Columns, true>, staged);
    }
    else
    {
        launch(virialKernel<Real, Columns, false>,
               VirialMemory<Real, Columns, false>::bytes(n_, places, sums_));
    }
    virialSumKernel<<<StrainCount, c_virialSumThreads, 0, stream>>>(
            partial_.data(), representatives_, virial);
    checkLaunch("virialSumKernel");
}

template<class Real>
DevicePeriodicM2l<Real>::DevicePeriodicM2l(const PeriodicM2lOperators<Real>& operators,
                                           int stride,
                                           cudaStream_t stream) :
    impl_(std::make_unique<Impl>(operators, stride, stream))
{
}

template<class Real>
DevicePeriodicM2l<Real>::~DevicePeriodicM2l() = default;

template<class Real>
void DevicePeriodicM2l<Real>::apply(const LevelView<Real>& level,
                                    double virialScale,
                                    double* virial,
                                    cudaStream_t stream)
{
    impl_->transform_.forward(level.M, impl_->spectrum_.data(), stream);
    if (virial != nullptr)
    {
        if (impl_->waves_.copies == 4)
        {
            impl_->template contract<8>(virialScale, virial, stream);
        }
        else
        {
            impl_->template contract<2>(virialScale, virial, stream);
        }
    }
    impl_->multiply(stream);
    impl_->transform_.backward(impl_->spectrum_.data(), level.L, stream);
}

template<class Real>
void DevicePeriodicM2l<Real>::setStrain(const double strain[3][3], cudaStream_t stream)
{
    Impl& own = *impl_;
    if (own.unstrained_.size() == 0)
    {
        own.unstrained_.resize(own.kappa_.size());
        copyAsync(own.unstrained_.data(),
                  own.kappa_.data(),
                  own.kappa_.size(),
                  stream,
                  "copying operators");
    }
    const double weight[StrainCount] = {
        strain[0][0], strain[1][1], 2 * strain[0][1], 2 * strain[0][2], 2 * strain[1][2]
    };
    StrainWeights<Real> weights;
    for (int c = 0; c < StrainCount; c++)
    {
        weights.value[c] = static_cast<Real>(own.inverseCells_ * weight[c]);
    }
    strainKernel<Real><<<own.representatives_, 256, own.used_ * sizeof(Real), stream>>>(
            static_cast<int>(own.elements_.size()),
            own.operatorStride(),
            own.used_,
            own.view(own.strain_),
            weights,
            own.storedPairs_.data(),
            own.unstrained_.data(),
            own.kappa_.data());
    checkLaunch("strainKernel");
}

template<class Real>
void DevicePeriodicM2l<Real>::setStrainedSums(
        const typename PeriodicM2lOperators<Real>::StrainSums& sums,
        cudaStream_t stream)
{
    impl_->interpolated_.resize(impl_->strain_.size());
    impl_->uploadSums(sums, &impl_->strained_, stream);
    check(cudaStreamSynchronize(stream), "copying lattice sums to the GPU");
}

template<class Real>
void DevicePeriodicM2l<Real>::interpolate(double along, cudaStream_t stream)
{
    const size_t size = impl_->interpolated_.size();
    interpolateKernel<Real><<<blocksFor(size, 256), 256, 0, stream>>>(size,
                                                                      static_cast<Real>(along),
                                                                      impl_->strain_.data(),
                                                                      impl_->strained_.data(),
                                                                      impl_->interpolated_.data());
    checkLaunch("interpolateKernel");
}

template class DevicePeriodicM2l<float>;
template class DevicePeriodicM2l<double>;

} // namespace farfield
