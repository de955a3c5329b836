/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What far cells make of each other, with one choice of degree and cells, on the CPU.
 */
#ifndef FARFIELD_PAIR_KERNELS_CPU_FAR_FIELD_H
#define FARFIELD_PAIR_KERNELS_CPU_FAR_FIELD_H

#include <memory>
#include <vector>

#include "cpu/cell_convolution.h"
#include "cpu/cell_tree.h"
#include "pair_kernels/far_operators.h"
#include "pair_kernels/sorted_points.h"

namespace farfield
{

template<class Real>
class CpuFarField
{
public:
    //! Makes the operators, see KernelBackend::evaluation().
    CpuFarField(const PairKernel& kernel,
                const KernelPlan& plan,
                const Region& region,
                double accuracy,
                Team* team);

    //! As KernelEvaluation::adopt(), for the same plan.
    bool adopt(const Region& region);
    //! Whether there are far cells.
    bool isAnything() const { return operators_.isAnything(); }

    //! Finds the cells of all levels but a periodic level 0.
    void setCells(const SortedPoints<Real>& sources, const SortedPoints<Real>& targets);
    //! Multipoles of all levels, from charges in the order of the sorted sources.
    void upwards(const SortedPoints<Real>& sources, const Real* q);
    //! Adds the virial, after upwards() and before downwards(); derivatives are there. \param[in,out] virial  [6] by
    //! c_strains
    void addVirial(double* virial);
    //! Local expansions of the leaves.
    void downwards();

    const Level<Real>& leaves() const { return levels_.back(); }
    int coefficients() const { return operators_.basis().count(); }
    const CellPolynomials<Real>& polynomials() const { return operators_.polynomials(); }
    //! Of what local expansions of leaves give.
    double expansionFactor() const { return operators_.expansionFactor(); }

    //! Whether derivatives by strains are there, which virials need.
    bool hasDerivatives() const { return !derivatives_.empty(); }
    //! Makes them, by all threads: not in a region of the team.
    void makeDerivatives();

private:
    using List = typename FarOperators<Real>::List;
    //! Of the kernel or of a derivative of it.
    struct Packed
    {
        std::vector<std::shared_ptr<const List>> lists; //!< of the levels
        AlignedVector<Real> waves; //!< of level 0 in a periodic box, see CellConvolution::packed()
    };

    //! Those of the kernel, and of derivatives if so many are wanted.
    std::vector<Packed> packed(int derivatives) const;
    //! Takes operators of a strained box.
    void strainOperators(const StrainWeights<Real>& weights);
    //! What depends on the box beside operators.
    void setGrids();

    Team& team_;
    FarOperators<Real> operators_;
    std::vector<Level<Real>> levels_;
    CellTree<Real> tree_;
    std::unique_ptr<CellConvolution<Real>> convolution_; //!< of level 0
    std::vector<std::shared_ptr<const List>> lists_;     //!< of the levels, in use
    std::vector<Packed> derivatives_; //!< once they are needed: see c_derivatives
};

} // namespace farfield

#endif
