/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums of a kernel with one choice of degree and cells.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_EVALUATION_H
#define FARFIELD_PAIR_KERNELS_KERNEL_EVALUATION_H

#include <memory>
#include <vector>

#include "cpu/cell_convolution.h"
#include "cpu/cell_tree.h"
#include "pair_kernels/kernel_operators.h"
#include "pair_kernels/kernel_plan.h"

namespace farfield
{

//! Charges and where results are wanted.
template<class Real>
struct PointSystem
{
    const double* x; //!< [n][3]
    const Real* q;   //!< [n][sets]
    int n, sets;
    const double* at; //!< [points][3]
    int points;       //!< -1: results are wanted at the charges

    bool areOwn() const { return points < 0; }
    int results() const { return areOwn() ? n : points; }
};

template<class Real>
class KernelEvaluation
{
public:
    /*! \brief Makes the operators.
     *  \param[in] region    only the box matters
     *  \param[in] accuracy  of periodic sums
     *  \param[in] team      does the work, here and later */
    KernelEvaluation(const PairKernel& kernel,
                     const KernelPlan& plan,
                     const Region& region,
                     double accuracy,
                     Team* team);

    //! Goes over to another box, whatever its place, if the operators are the same there. \returns whether they are
    bool adopt(const KernelPlan& plan, const Region& region);
    /*! \brief Potentials and fields, [sets][4][points].
     *  \param[in] region  the box that was adopted last
     *  \throws Error  InvalidArgument: a position is not finite */
    std::vector<double> operator()(const PointSystem<Real>& system, const Region& region);

private:
    using Operators = std::vector<KernelOperator<Real>>;

    //! What depends on the box beside operators.
    void setRegion(const Region& region);
    //! Finds the cells of all levels but a periodic level 0.
    void setCells(const SortedPoints<Real>& sources, const SortedPoints<Real>& targets);
    //! Local expansions of the leaves, from charges in the order of the sorted sources.
    void farField(const SortedPoints<Real>& sources, const Real* q);
    /*! \brief Adds what expansions of a set make to sums, and what pairs make of all sets.
     *  \param[in] set  -1: pairs */
    void addTo(std::vector<double>* sums,
               const PointSystem<Real>& system,
               const SortedPoints<Real>& sources,
               const SortedPoints<Real>& targets,
               const AlignedVector<Real>& q,
               int set);
    //! What a thread stages, and its sums.
    struct Room
    {
        AlignedVector<Real> x, y, z, q, sums, expansion;
        int staged = 0; //!< padded
    };
    //! Stages the sources in the near cells of a cell.
    void stage(const Int3& cell,
               const SortedPoints<Real>& sources,
               const AlignedVector<Real>& q,
               int sets,
               Room* room) const;
    Level<Real>& leaves() { return levels_.back(); }
    bool hasFarField() const { return isPeriodic_ || plan_.levels > 1; }

    const PairKernel& kernel_;
    KernelPlan plan_;
    Mat3 box_;
    bool isPeriodic_;
    Team& team_;
    LegendreBasis basis_;
    CellPolynomials<Real> polynomials_;
    PairLaw<Real> law_;
    double unit_;            //!< cube root of the volume of a leaf
    double operatorScale_;   //!< operators over those of the kernel
    double expansionFactor_; //!< of what local expansions of leaves give
    Int3 leafCounts_;
    std::vector<Int3> near_;
    std::vector<Vec3> shifts_; //!< of near cells, in units of leaves
    Real nowhere_;             //!< beyond any two points of near cells
    std::vector<Level<Real>> levels_;
    CellTree<Real> tree_;
    std::vector<std::shared_ptr<const Operators>> operators_; //!< of the levels
    std::unique_ptr<CellConvolution<Real>> convolution_;      //!< of level 0
    std::vector<Room> rooms_;                                 //!< of the threads
};

} // namespace farfield

#endif
