/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Entry to the CUDA backend; in a build without CUDA, gpu_absent.cpp stands in for it.
 *
 *  Nothing here needs the headers of CUDA.
 */
#ifndef FARFIELD_BACKEND_GPU_BACKEND_H
#define FARFIELD_BACKEND_GPU_BACKEND_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/perturbed_on_device.h"
#include "backend/points_on_device.h"
#include "farfield/farfield_parallel.h"
#include "operators/charge_sums.h"
#include "parallel/own_particles.h"

namespace farfield
{

//! The part of a system that a GPU has, where others have the rest of it.
template<class Real>
struct DeviceRanks
{
    Partition<Real>* partition       = nullptr;
    Communicator* host               = nullptr;
    DeviceCommunicator* communicator = nullptr; //!< null: messages pass through the hosts
};

//! A backend that can also work on arrays in device memory.
template<class Real>
class GpuBackend : public Backend<Real>
{
public:
    /*! \brief The arrays of the next evaluation are in device memory; its collect() does not wait.
     *
     *  What follows is in order with the work of the stream.
     *  \param[in] stream  cudaStream_t
     *  \throws Error  InvalidArgument: particles had moved so far that there was too little room */
    virtual void enter(void* stream) = 0;
    /*! \brief Takes charges in device memory, e, in place of as many, of which all took part; waits.
     *
     *  setCharges() takes any. Kernels that were recorded read these.
     *  \returns their sums; none, and nothing has changed: a particle took no part, or a charge is zero or not
     *           legal, or there are several ranks */
    virtual std::optional<ChargeSums> replaceCharges(const Real* q, void* stream) = 0;
    //! Those that replaceCharges() has read last, e.
    virtual std::vector<Real> replacedCharges() const = 0;
    //! What follows, be it a change of the operators, is in order with the work of a stream.
    virtual void await(void* stream) = 0;
    //! That evaluation has failed: the next one is on host arrays again.
    virtual void leave() = 0;
    /*! \brief Puts an evaluation on arrays in device memory into a stream: as a graph, if it is like
     *         the one before, and there is memory for a graph.
     *  \param[in] evaluate  does so kernel by kernel, with enter()
     *  \throws Error  as enter() */
    virtual void repeat(const Task<Real>& task, const std::function<void()>& evaluate) = 0;
    //! Waits for the last evaluation, replays included. \throws Error  what was found on the device
    virtual Totals wait() = 0;
    //! Whether the work of a stream is being recorded.
    virtual bool isRecording(void* stream) const = 0;
    //! Waits for evaluations on device arrays, replays included: what they use may change then.
    virtual void settle() = 0;
    //! Whether recorded evaluations have too little reserve of room, as farfield_cuda.h says.
    virtual bool mustRecordAgain() const = 0;
    //! Whether graphs of evaluations may be updated to later ones, as farfield_cuda.h says.
    virtual bool mayUpdateGraphs() const = 0;
    //! Copies values from device memory to the host, in order with a stream, and waits.
    virtual std::vector<Real> copyToHost(const Real* values, size_t count, void* stream) = 0;
    //! The same of positions or forces, [n][3].
    std::vector<Real> onHost(const Real* vectors, int n, void* stream)
    {
        return copyToHost(vectors, 3 * static_cast<size_t>(n), stream);
    }
    //! Sets positions or forces, [n][3], in device memory to zero, in order with a stream.
    virtual void clear(Real* vectors, int n, void* stream) = 0;
    /*! \brief How far apart particles that take part are in each dimension, nm.
     *
     *  Waits for the work of the stream.
     *  \param[in] x  [n][3] device memory, without images
     *  \returns infinite where a position is not finite
     *  \throws Error  Unsupported: the stream is being recorded */
    virtual Vec3 extent(const Real* x, void* stream) = 0;

    //! Arrays in device memory.
    struct DeviceArrays
    {
        const Real* x;
        Real* forces;
        Real* potentials;
    };
    //! Copies positions from the host, with room for forces and potentials; valid until the next
    //! call.
    virtual DeviceArrays place(const Real* x) = 0;

    //! Adds values, in host memory, to as many in device memory, in order with a stream.
    virtual void add(const std::vector<Real>& values, Real* to, void* stream) = 0;

    /*! \name Tangents with arrays in device memory
     *
     *  Of the charges, evaluated in room.ofCharges, and of sources that take their place, in room.ofSources. */
    //!@{
    struct TangentRoom
    {
        Real* forces; //!< [n][3], which nobody needs
        Outputs<Real> ofCharges, ofSources;
    };
    //! Of n particles; valid until the next call.
    virtual TangentRoom tangentRoom(int n) = 0;
    /*! \brief Puts charges dq and dipoles q dx, of unit size at most, in the place of the charges; all take part, and
     *         there are no moments. Waits.
     *  \returns their unit, e, until handBack(); 0: there are none, and the charges stay */
    virtual double lendSources(const Direction<Real>& direction, void* stream) = 0;
    virtual void handBack()                                                    = 0;
    //! The tangent from what is in the room; waits. \param[in] unit  of lendSources()
    virtual void combine(const Direction<Real>& direction,
                         double unit,
                         const Tangent<Real>& tangent,
                         void* stream) = 0;
    //!@}

    //! What is measured.
    enum class Measure
    {
        None,
        Stages, //!< one after the other
        Whole   //!< near and far field side by side
    };
    /*! \brief Records an evaluation on device arrays and runs it several times.
     *  \param[in] evaluate  runs it; everything it needs has memory and operators already
     *  \returns medians, s, [Stage::Count], or one of the whole */
    virtual std::vector<double> measure(Measure what,
                                        int repeats,
                                        const std::function<void()>& evaluate) = 0;
    //! For charges of two states; for the device of this backend.
    virtual std::unique_ptr<PerturbedOnDevice<Real>> makePerturbed() const = 0;
    //! For potentials and fields at points; for the device of this backend.
    virtual std::unique_ptr<PointsOnDevice<Real>> makePoints() const = 0;
    //! Name of the GPU in use.
    virtual std::string deviceName() const = 0;
    //! Its number.
    virtual int deviceId() const = 0;
    //! How many helpers can be used.
    virtual int helperCount() const = 0;
    //! Uses so many of them, the first ones; waits. What was recorded cannot be launched any more.
    virtual void useHelpers(int count) = 0;
    //! Uses none from now on, as they need not be had; nothing of an evaluation may be under way.
    virtual void loseHelpers(const std::string& why) = 0;
    //! As Setup.
    virtual std::vector<HelperDevice> helpers() const = 0;
    virtual std::string helpersLost() const           = 0;
    //! Makes its device the current one of this thread. \returns the one that was
    virtual int makeCurrent() const = 0;
    //! Makes that one current again.
    virtual void restoreCurrent(int device) const noexcept = 0;
};

//! While it lives, the device of a backend is the current one of this thread; null does nothing.
template<class Real>
class DeviceScope
{
public:
    explicit DeviceScope(const GpuBackend<Real>* backend) :
        backend_(backend), before_(backend != nullptr ? backend->makeCurrent() : 0)
    {
    }
    ~DeviceScope()
    {
        if (backend_ != nullptr)
        {
            backend_->restoreCurrent(before_);
        }
    }
    DeviceScope(const DeviceScope&)            = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

private:
    const GpuBackend<Real>* backend_;
    int before_;
};

//! Devices that help with the near field.
struct HelpersWanted
{
    DeviceList devices;    //!< as Options::helperDevices
    bool ifFaster = false; //!< as Options::helpersIfFaster: none is used before useHelpers()
};

//! Whether this build and this machine can run the CUDA backend. \param[in] deviceId  as Options
bool gpuIsUsable(int deviceId);
/*! \brief The CUDA backend.
 *  \param[in] threads       OpenMP threads of the set-up
 *  \param[in] reproducible  as Options::reproducible
 *  \param[in] deviceId      as Options::deviceId
 *  \param[in] ranks         of a system on several ranks, or null
 *  \param[in] helpers       further devices; none with ranks
 *  \throws Error  NotCompiled: built without CUDA; DeviceFailure: no usable GPU; InvalidArgument,
 *                 Unsupported: a helper cannot be one */
template<class Real>
std::unique_ptr<GpuBackend<Real>> makeGpuBackend(double coulombConstant,
                                                 int threads,
                                                 bool reproducible,
                                                 int deviceId,
                                                 const DeviceRanks<Real>* ranks = nullptr,
                                                 const HelpersWanted& helpers   = {});

/*! \brief For tests: the device of a solver may be its helper, too, any number of times.
 *
 *  All but the access to the memory of another GPU can then be tested on one.
 *  \returns whether it might before */
bool letDevicesHelpThemselves(bool may);

} // namespace farfield

#endif
