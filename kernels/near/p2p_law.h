/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the near-field kernel computes of a pair: 1/r, or another function.
 *
 *  A law says what a source and the targets have besides position and charge, and what follows for a
 *  pair. The kernel has the same loops for every law.
 */
#ifndef FARFIELD_KERNELS_NEAR_P2P_LAW_H
#define FARFIELD_KERNELS_NEAR_P2P_LAW_H

#include "near/near_functions.cuh"
#include "near/p2p_shape.h"
#include "near/p2p_warp.h"

namespace farfield
{
namespace p2pDetail
{

//! What is needed of a pair.
template<class Real>
struct PairValues
{
    Real force;     //!< q q s, see near_function.h
    Real potential; //!< f, if the energy is wanted
    Real excess;    //!< see SmoothTerms, where the law has any
};

} // namespace p2pDetail

//! All pairs have 1/r.
template<class Real_>
struct CoulombLaw
{
    using Real                        = Real_;
    using Arguments                   = P2pArguments<Real>;
    static constexpr bool c_hasExcess = false;

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
        //! The source that pair() is about from here on.
        __device__ __forceinline__ void begin(const OfSource& /*of*/) {}
        /*! \param[in] k   number of the target
         *  \param[in] qq  product of the charges
         *  \param[in] r2  squared distance, nm^2, not 0 */
        __device__ __forceinline__ p2pDetail::PairValues<Real> pair(int /*k*/,
                                                                    Real qq,
                                                                    Real r2) const
        {
            const Real y = p2pDetail::inverseRoot(r2);
            return { (qq * y) * (y * y), p2pDetail::refined(y, r2), 0 };
        }
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
    using Real                        = Real_;
    using Arguments                   = FunctionArguments<Real>;
    static constexpr bool c_hasExcess = true;

    //! See CoulombLaw.
    struct OfSource
    {
        Real term; //!< see NearFunctionView::terms
    };
    __device__ __forceinline__ explicit FunctionLaw(const Arguments& task) : of_(task.functions) {}
    __device__ __forceinline__ void fetch(int index, OfSource* of) const
    {
        of->term = __ldg(of_.terms + index);
    }

    template<class Shape>
    class Targets
    {
    public:
        __device__ __forceinline__ explicit Targets(const FunctionLaw& law) :
            of_(law.of_), terms_(room())
        {
        }
        __device__ __forceinline__ void load(int lane, int first, int count)
        {
            const Real term = lane < count ? __ldg(of_.terms + first + lane) : of_.narrow();
            if (lane < Shape::c_targets)
            {
                terms_[lane] = term;
            }
            wide_ = __ballot_sync(p2pDetail::c_all, of_.isWide(term));
        }
        __device__ __forceinline__ void begin(const OfSource& of)
        {
            const bool isWide = of_.isWide(of.term);
            const bool ofBoth = of_.isOfPair(true, false); // a narrow one has the function, too
            source_           = of.term;
            others_ = isWide ? (ofBoth ? p2pDetail::c_all : wide_) : (ofBoth ? wide_ : 0U);
        }
        __device__ __forceinline__ p2pDetail::PairValues<Real> pair(int k, Real qq, Real r2) const
        {
            const Real y                       = p2pDetail::inverseRoot(r2);
            const Real inverse                 = Shape::c_energy ? p2pDetail::refined(y, r2) : y;
            p2pDetail::PairValues<Real> values = { (qq * y) * (y * y), inverse, 0 };
            if ((others_ >> k & 1U) != 0 && r2 < of_.range2)
            {
                const auto terms = smoothTerms(
                        of_.function, r2, inverse, inverseWidth(of_.rule, terms_[k], source_));
                values = { qq * terms.slope, terms.excess + r2 * terms.slope, terms.excess };
            }
            return values;
        }

    private:
        //! Of the terms of the targets of this warp.
        __device__ __forceinline__ static Real* room()
        {
            __shared__ Real terms[Shape::c_warps][Shape::c_targets];
            return terms[threadIdx.x / c_warp];
        }

        NearFunctionView<Real> of_;
        Real* terms_;
        unsigned int wide_ = 0; //!< a bit for each target that has a width
        unsigned int others_ =
                0; //!< a bit for each whose pair with the source is not of 1/r within the range
        Real source_ = 0;
    };

private:
    NearFunctionView<Real> of_;
};

} // namespace farfield

#endif
