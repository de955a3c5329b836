/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The operators between far cells with one choice of degree and cells, for any backend.
 */
#ifndef FARFIELD_PAIR_KERNELS_FAR_OPERATORS_H
#define FARFIELD_PAIR_KERNELS_FAR_OPERATORS_H

#include <array>
#include <memory>
#include <vector>

#include "base/team.h"
#include "pair_kernels/kernel_operators.h"
#include "pair_kernels/kernel_plan.h"
#include "pair_kernels/point_kernels.h"

namespace farfield
{

//! Weights of the operators of the kernel and of its derivatives by strains in operators of a strained box.
template<class Real>
using StrainWeights = std::array<Real, c_derivatives>;

template<class Real>
class FarOperators
{
public:
    //! Of the interaction lists of a level.
    using List = std::vector<KernelOperator<Real>>;

    //! \param[in] region    only the box matters
    //! \param[in] accuracy  of periodic sums
    //! \param[in] team      makes operators
    FarOperators(const PairKernel& kernel,
                 const KernelPlan& plan,
                 const Region& region,
                 double accuracy,
                 Team* team);

    const KernelPlan& plan() const { return plan_; }
    bool isPeriodic() const { return isPeriodic_; }
    //! Whether there are far cells.
    bool isAnything() const { return isPeriodic_ || plan_.levels > 1; }
    const LegendreBasis& basis() const { return basis_; }
    //! The cells of a level in the box that was adopted last.
    const Grid& grid(int level) const { return grids_[level]; }
    //! Of level 0 in a periodic box.
    const WaveVectors& waves() const { return waves_; }
    const CellPolynomials<Real>& polynomials() const { return polynomials_; }
    //! Of what local expansions of leaves give.
    double expansionFactor() const { return expansionFactor_; }

    //! M of the parent from M of the child in an octant, and L of the child from L of the parent.
    std::array<Matrix, 8> up() const;
    std::array<Matrix, 8> down() const;
    /*! \brief The operators of the interaction lists of the box that the constructor was given.
     *  \param[in] derivatives  1, or c_derivatives
     *  \returns [derivatives][levels]; those of level 0 are null, and levels may share theirs */
    std::vector<std::vector<std::shared_ptr<const List>>> lists(int derivatives) const;
    //! The matrices of representative wave vectors: see PeriodicKernelSums::forEach().
    void forWaves(int derivatives, int first, int end, const PeriodicKernelSums::Use& use) const;

    //! What a box needs.
    enum class Adopted
    {
        Never,   //!< operators of its own
        AsIs,    //!< those that are in use
        Strained //!< those that weights of derivatives give
    };
    /*! \brief Goes over to another box, whatever its place.
     *  \param[in]  hasDerivatives  derivatives by strains are there
     *  \param[out] weights         where it is strained */
    Adopted adopt(const Region& region, bool hasDerivatives, StrainWeights<Real>* weights);

    /*! \brief The virial of far cells.
     *  \param[in]     sums    of M K M over all cells, of the kernel and of its derivatives
     *  \param[in,out] virial  [6] by c_strains, added to */
    void addVirial(const std::array<double, c_derivatives>& sums, double* virial) const;
    //! What sums of a level are to be multiplied with.
    double virialFactor(int level) const;

private:
    //! What depends on the box beside operators.
    void setRegion(const Region& region);

    const PairKernel& kernel_;
    KernelPlan plan_;
    Mat3 reference_;  //!< box vectors that the operators were made for
    double accuracy_; //!< of periodic sums
    bool isPeriodic_;
    bool isStrained_ = false; //!< the operators in use are not those of the reference
    Team& team_;
    LegendreBasis basis_;
    CellPolynomials<Real> polynomials_ = {};
    double operatorScale_              = 1; //!< operators over those of the kernel
    double expansionFactor_            = 1;
    std::vector<Grid> grids_, ofReference_; //!< of the levels
    WaveVectors waves_;
};

} // namespace farfield

#endif
