/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the near-field kernel computes of a pair: 1/r, or another function.
 *
 *  A law says what sources and targets have besides position and charge, which pairs it takes out of
 *  the sum of 1/r, and what these have instead. The kernel has the same loops for every law.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_LAW_H
#define FARFIELD_KERNELS_NEAR_P2P_LAW_H

#include "near/near_functions.cuh"
#include "near/p2p_shape.h"
#include "near/p2p_warp.h"

namespace farfield
{

//! All pairs have 1/r.
template<class Real_>
struct CoulombLaw
{
    using Real                         = Real_;
    using Arguments                    = P2pArguments<Real>;
    static constexpr bool c_takesPairs = false;

    //! What a source has.
    struct OfSource
    {
    };
    __device__ __forceinline__ explicit CoulombLaw(const Arguments& /*task*/) {}
    //! \param[in] index  of the source, sorted
    __device__ __forceinline__ void fetch(int /*index*/, OfSource* /*of*/) const {}

    //! What a group of targets has.
    template<class Shape>
    struct Targets
    {
        __device__ __forceinline__ explicit Targets(const CoulombLaw& /*law*/) {}
        //! Between two __syncwarp(). \param[in] first, count  sorted particles
        __device__ __forceinline__ void load(int /*lane*/, int /*first*/, int /*count*/) {}
        //! The source of the pairs from here on. \param[in] q  its charge
        __device__ __forceinline__ void begin(const OfSource& /*of*/, Real /*q*/) {}
        //! Whether the law takes a pair. \param[in] k  number of the target
        __device__ __forceinline__ bool takes(int /*k*/, Real /*r2*/) const { return false; }
    };
};

//! Arguments of a kernel with near functions.
template<class Real>
struct FunctionArguments : P2pArguments<Real>
{
    NearFunctionView<Real> functions; //!< in the order of the particles
};

//! Pairs within a range may have another function than 1/r.
template<class Real_>
class FunctionLaw
{
public:
    using Real                         = Real_;
    using Arguments                    = FunctionArguments<Real>;
    static constexpr bool c_takesPairs = true;

    struct OfSource
    {
        Real term; //!< see NearFunctionView::terms
    };
    __device__ __forceinline__ explicit FunctionLaw(const Arguments& task) :
        functions_(task.functions)
    {
    }
    __device__ __forceinline__ void fetch(int index, OfSource* of) const
    {
        of->term = __ldg(functions_.terms + index);
    }

    //! See CoulombLaw.
    template<class Shape>
    class Targets
    {
    public:
        __device__ __forceinline__ explicit Targets(const FunctionLaw& law) :
            functions_(law.functions_), terms_(room())
        {
        }
        __device__ __forceinline__ void load(int lane, int first, int count)
        {
            const Real term =
                    lane < count ? __ldg(functions_.terms + first + lane) : functions_.narrow();
            if (lane < Shape::c_targets)
            {
                terms_[lane] = term;
            }
            wide_ = __ballot_sync(p2pDetail::c_all, functions_.isWide(term));
            all_  = __ballot_sync(p2pDetail::c_all, lane < count);
        }
        __device__ __forceinline__ void begin(const OfSource& of, Real q)
        {
            const bool isWide       = functions_.isWide(of.term);
            const bool needsBoth    = !functions_.isOfPair(true, false);
            const unsigned ofWide   = needsBoth ? wide_ : all_;
            const unsigned ofNarrow = needsBoth ? 0U : wide_;
            // behind the last source there are some without charge
            others_ = q == 0 ? 0U : isWide ? ofWide : ofNarrow;
            source_ = of.term;
            taken_  = 0;
        }
        __device__ __forceinline__ bool takes(int k, Real r2)
        {
            const bool isTaken = (others_ >> k & 1U) != 0 && r2 < functions_.range2;
            taken_ |= isTaken ? 1U << k : 0U;
            return isTaken;
        }
        //! A bit for each target whose pair with the source the law has taken.
        __device__ __forceinline__ unsigned int taken() const { return taken_; }
        //! What such a pair has. \param[in] r2  squared distance, nm^2, not 0
        __device__ __forceinline__ SmoothTerms<Real> terms(int k, Real r2) const
        {
            const Real y = p2pDetail::inverseRoot(r2);
            return smoothTerms(functions_.function,
                               r2,
                               Shape::c_energy ? p2pDetail::refined(y, r2) : y,
                               inverseWidth(functions_.rule, terms_[k], source_));
        }

    private:
        //! Of the terms of the targets of this warp.
        __device__ __forceinline__ static Real* room()
        {
            __shared__ Real terms[Shape::c_warps][Shape::c_targets];
            return terms[threadIdx.x / c_warp];
        }

        NearFunctionView<Real> functions_;
        Real* terms_;
        Real source_ = 0; //!< term of the source
        //! A bit for each target: that has a width; that is there; that may have a function with the source.
        unsigned int wide_ = 0, all_ = 0, others_ = 0;
        unsigned int taken_ = 0;
    };

private:
    NearFunctionView<Real> functions_;
};

} // namespace farfield

#endif
