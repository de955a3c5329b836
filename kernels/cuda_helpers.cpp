/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// What the CUDA backend does for its helpers.
#include "cuda_backend.h"

namespace farfield
{

template<class Real>
void CudaBackend<Real>::startHelpers()
{
    if (activeHelpers() != nullptr)
    {
        makeRoomOnHelpers(); // if it could not be made before
    }
    if (NearFieldHelpers<Real>* const helpers = activeHelpers())
    {
        helpers->start(nearField_.task(cells_, nearGrid(), nearResults()), streams_);
    }
}

template<class Real>
void CudaBackend<Real>::makeRoomOnHelpers(const HelperRoom& room)
{
    giveHelpers([&](NearFieldHelpers<Real>& helpers) { helpers.reserve(room); });
}

template<class Real>
void CudaBackend<Real>::giveHelpers(const std::function<void(NearFieldHelpers<Real>&)>& give)
{
    if (!helpers_)
    {
        return;
    }
    try
    {
        give(*helpers_);
    }
    catch (const Error& error)
    {
        history_.replace(); // recorded evaluations may use memory that is lost
        if (!helpersIfFaster_ || isCapturing(far()))
        {
            throw; // those that run read the shares, and a recording cannot wait for them
        }
        loseHelpers(error.what());
    }
}

template<class Real>
void CudaBackend<Real>::loseHelpers(const std::string& why)
{
    check(cudaDeviceSynchronize(), "waiting for the GPU"); // what runs reads the shares
    history_.replace();
    helpers_->dismiss();
    helpersLost_ += (helpersLost_.empty() ? "" : " ") + why;
}

template<class Real>
void CudaBackend<Real>::loseLateHelpers()
{
    //! A busy GPU may become free again.
    constexpr int c_mostLateWaits = 5;
    if (!helpersIfFaster_ || activeHelpers() == nullptr)
    {
        return;
    }
    lateWaits_ = helpers_->areLate() ? lateWaits_ + 1 : 0;
    if (lateWaits_ == c_mostLateWaits)
    {
        loseHelpers("The helper devices were busy: they were late with the least part of the near "
                    "field.");
    }
}

template<class Real>
void CudaBackend<Real>::useHelpers(int count)
{
    if (helpers_ && count != helpers_->used())
    {
        check(cudaDeviceSynchronize(), "waiting for the GPU");
        history_.replace();
        lateWaits_ = 0;
        giveHelpers(
                [&](NearFieldHelpers<Real>& helpers)
                {
                    helpers.use(count);
                    helpers.releaseOthers();
                });
        makeRoomOnHelpers();
    }
}

template<class Real>
std::vector<HelperDevice> CudaBackend<Real>::helpers() const
{
    if (!helpers_)
    {
        return {};
    }
    const OnDevice scope(device_);
    return helpers_->describe();
}

#define FARFIELD_INSTANTIATE(Real)                                                                 \
    template void CudaBackend<Real>::startHelpers();                                               \
    template void CudaBackend<Real>::makeRoomOnHelpers(const HelperRoom&);                         \
    template void CudaBackend<Real>::giveHelpers(                                                  \
            const std::function<void(NearFieldHelpers<Real>&)>&);                                  \
    template void CudaBackend<Real>::loseHelpers(const std::string&);                              \
    template void CudaBackend<Real>::loseLateHelpers();                                            \
    template void CudaBackend<Real>::useHelpers(int);                                              \
    template std::vector<HelperDevice> CudaBackend<Real>::helpers() const
FARFIELD_INSTANTIATE(float);
FARFIELD_INSTANTIATE(double);
#undef FARFIELD_INSTANTIATE

} // namespace farfield
