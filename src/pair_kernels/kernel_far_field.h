/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What far cells make of each other, with one choice of degree and cells.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_FAR_FIELD_H
#define FARFIELD_PAIR_KERNELS_KERNEL_FAR_FIELD_H

#include <memory>
#include <vector>

#include "cpu/cell_convolution.h"
#include "cpu/cell_tree.h"
#include "pair_kernels/kernel_operators.h"
#include "pair_kernels/kernel_plan.h"

namespace farfield
{

template<class Real>
class KernelFarField
{
public:
    //! Makes the operators, see KernelEvaluation.
    KernelFarField(const PairKernel& kernel,
                   const KernelPlan& plan,
                   const Region& region,
                   double accuracy,
                   Team* team);

    //! As KernelEvaluation::adopt(), for the same plan.
    bool adopt(const Region& region);
    //! Whether there are far cells.
    bool isAnything() const { return isPeriodic_ || plan_.levels > 1; }

    //! Finds the cells of all levels but a periodic level 0.
    void setCells(const SortedPoints<Real>& sources, const SortedPoints<Real>& targets);
    //! Multipoles of all levels, from charges in the order of the sorted sources.
    void upwards(const SortedPoints<Real>& sources, const Real* q);
    //! Adds the virial, after upwards() and before downwards(). \param[in,out] virial  [6] by c_strains
    void addVirial(double* virial);
    //! Local expansions of the leaves.
    void downwards();

    const Level<Real>& leaves() const { return levels_.back(); }
    int coefficients() const { return basis_.count(); }
    const CellPolynomials<Real>& polynomials() const { return polynomials_; }
    //! Of what local expansions of leaves give.
    double expansionFactor() const { return expansionFactor_; }

    //! Box vectors that the operators were made for.
    const Mat3& reference() const { return reference_; }
    //! Whether derivatives by strains are there: virials make them.
    bool hasDerivatives() const { return !derivatives_.empty(); }
    void makeDerivatives();

private:
    using Operators = std::vector<KernelOperator<Real>>;
    //! Of the kernel or of a derivative of it.
    struct FarOperators
    {
        std::vector<std::shared_ptr<const Operators>> lists; //!< of the levels
        AlignedVector<Real> waves; //!< of level 0 in a periodic box, see CellConvolution::packed()
    };

    //! Makes those of the kernel, and of derivatives if so many are wanted.
    std::vector<FarOperators> makeOperators(int derivatives) const;
    //! What operators become where cells are strained, to first order. \param[in] strain  symmetric
    void strainOperators(const Mat3& strain);
    //! What depends on the box beside operators.
    void setRegion(const Region& region);

    const PairKernel& kernel_;
    KernelPlan plan_;
    Mat3 reference_;
    double accuracy_; //!< of periodic sums
    bool isPeriodic_;
    bool isStrained_ = false; //!< the operators in use are not those of the reference
    Team& team_;
    LegendreBasis basis_;
    CellPolynomials<Real> polynomials_;
    double operatorScale_   = 1; //!< operators over those of the kernel
    double expansionFactor_ = 1;
    std::vector<Level<Real>> levels_;
    CellTree<Real> tree_;
    WaveVectors waves_;
    std::unique_ptr<CellConvolution<Real>> convolution_;  //!< of level 0
    std::vector<std::shared_ptr<const Operators>> lists_; //!< of the levels, in use
    std::vector<FarOperators> derivatives_; //!< once they are needed: see c_derivatives
};

} // namespace farfield

#endif
