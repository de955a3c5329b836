/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What computes sums of a kernel: the CPU or a GPU.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_BACKEND_H
#define FARFIELD_PAIR_KERNELS_KERNEL_BACKEND_H

#include <memory>
#include <vector>

#include "farfield/farfield_kernels.h"

#include "base/team.h"
#include "pair_kernels/kernel_input.h"
#include "pair_kernels/kernel_plan.h"
#include "pair_kernels/point_system.h"

namespace farfield
{

//! Sums with one choice of degree and cells, over the points that a backend has taken last.
template<class Real>
class KernelEvaluation
{
public:
    virtual ~KernelEvaluation() = default;

    /*! \brief Goes over to another box, whatever its place, if the operators are the same there, or are close enough
     *         to those that derivatives give. \returns whether they are */
    bool adopt(const KernelPlan& plan, const Region& region)
    {
        if (plan == plan_ && (region.box == box_ || adoptBox(region)))
        {
            box_ = region.box;
            return true;
        }
        return false;
    }
    /*! \brief Computes potentials and fields, which the backend keeps.
     *  \param[in] region        the box that was adopted last
     *  \param[in] wantsVirials  of the charges at each other, too
     *  \throws Error  InvalidArgument: a position is too far away; OutOfMemory */
    virtual void evaluate(const Region& region, bool wantsVirials) = 0;
    //! Whether enqueue() can be called for the points that the backend has.
    virtual bool mayEnqueue(const Region& /*region*/) const { return false; }
    //! As evaluate() without virials, for sites; nobody waits, and no position is refused. \param[in] x  see DeviceSites
    virtual void enqueue(const Region& /*region*/, const Real* /*x*/) {}

    //! Box vectors that the operators were made for.
    const Mat3& reference() const { return reference_; }
    //! Whether derivatives by strains are there: virials make them.
    virtual bool hasDerivatives() const = 0;
    virtual void makeDerivatives()      = 0;

protected:
    KernelEvaluation(const KernelPlan& plan, const Region& region) :
        plan_(plan), reference_(region.box), box_(region.box)
    {
    }
    const KernelPlan& plan() const { return plan_; }

private:
    //! Goes over to another box for the same plan, if it can.
    virtual bool adoptBox(const Region& region) = 0;

    KernelPlan plan_;
    Mat3 reference_, box_;
};

//! What all results are like.
struct ResultRange
{
    int invalid    = -1; //!< a result that is no number, -1 for none
    double largest = 0;
};

//! Charges that are atoms among others, in the memory of a GPU. Streams are cudaStream_t.
template<class Real>
class DeviceSites
{
public:
    //! Sets them. \throws Error  OutOfMemory
    virtual void set(const KernelSites<Real>& sites) = 0;
    //! What follows comes after the work of a stream.
    virtual void begin(void* stream) = 0;
    //! As KernelBackend::take() with positions and charges of the sites. \param[in] x  of all atoms, [atoms][3] device memory
    virtual Extent take(const Real* x, bool isOpen) = 0;
    //! Adds forces of the last evaluation. \param[in,out] forces  of all atoms, [atoms][3] device memory
    virtual void addForces(Real* forces, void* stream) = 0;
    virtual bool isCapturing(void* stream) const       = 0;

protected:
    ~DeviceSites() = default;
};

//! The points of a call, and their results.
template<class Real>
class KernelBackend
{
public:
    virtual ~KernelBackend() = default;

    //! Excluded pairs of charges at each other, from the next call on; none if there are no partners.
    virtual void setLeftOut(const ExcludedPairs& pairs) = 0;
    /*! \brief Takes points.
     *  \param[in] input  all but positions and charges are checked
     *  \returns where the points are
     *  \throws Error  InvalidArgument: a position or a charge is not finite; OutOfMemory */
    virtual Extent take(const KernelInput<Real>& input) = 0;
    //! Null: there is no GPU.
    virtual DeviceSites<Real>* deviceSites() { return nullptr; }
    //! How many points were taken.
    virtual const PointNumbers& numbers() const = 0;
    //! The points themselves, in host memory.
    virtual const PointSystem<Real>& onHost() = 0;

    //! Calls between two measurements of the error, at most.
    virtual int mostCallsBetween() const { return 1024; }
    //! See KernelCosts. \param[in] accuracy  that is asked for
    virtual KernelUnitCosts costs(double accuracy) const                                      = 0;
    virtual std::vector<LevelCount> countLevels(const Region& region, const KernelPlan& plan) = 0;

    //! Makes the operators of a plan. \param[in] accuracy  of periodic sums
    virtual std::unique_ptr<KernelEvaluation<Real>> evaluation(const KernelPlan& plan,
                                                               const Region& region,
                                                               double accuracy) = 0;
    //! Sums over all pairs without images, in double precision, for some results: [sets][4][some].
    virtual std::vector<double> directSums(const Region& region, const std::vector<int>& some) = 0;

    //! \name Of the last evaluation
    //!@{
    //! Potentials and fields of some results: [sets][4][some].
    virtual std::vector<double> results(const std::vector<int>& some) = 0;
    virtual ResultRange range()                                       = 0;
    //! Writes potentials and fields that are wanted.
    virtual void write(const KernelOutput<Real>& output) = 0;
    //! [sets][6] by c_strains; empty if they were not wanted.
    virtual const std::vector<double>& virials() const = 0;
    //!@}
};

template<class Real>
std::unique_ptr<KernelBackend<Real>> makeCpuKernelBackend(const PairKernel& kernel, Team* team);

/*! \brief One on a CUDA device.
 *  \param[in] deviceId  as KernelOptions::deviceId
 *  \param[in] team      makes operators
 *  \throws Error  NotCompiled: this library has no CUDA; DeviceFailure: there is no such device */
template<class Real>
std::unique_ptr<KernelBackend<Real>> makeGpuKernelBackend(const PairKernel& kernel,
                                                          int deviceId,
                                                          Team* team);

} // namespace farfield

#endif
