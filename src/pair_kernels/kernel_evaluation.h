/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums of a kernel with one choice of degree and cells.
 */
#ifndef FARFIELD_PAIR_KERNELS_KERNEL_EVALUATION_H
#define FARFIELD_PAIR_KERNELS_KERNEL_EVALUATION_H

#include <vector>

#include "pair_kernels/kernel_far_field.h"
#include "pair_kernels/left_out_pairs.h"

namespace farfield
{

//! Charges and where results are wanted.
template<class Real>
struct PointSystem
{
    const double* x; //!< [n][3]
    const Real* q;   //!< [n][sets]
    int n, sets;
    const double* at;                       //!< [points][3]
    int points;                             //!< -1: results are wanted at the charges
    const ExcludedPairs* leftOut = nullptr; //!< of the charges at each other, if there are any

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

    /*! \brief Goes over to another box, whatever its place, if the operators are the same there, or are close enough
     *         to those that derivatives give. \returns whether they are */
    bool adopt(const KernelPlan& plan, const Region& region);
    /*! \brief Potentials and fields, [sets][4][points].
     *  \param[in]  region   the box that was adopted last
     *  \param[out] virials  of the charges at each other, [sets][6] by c_strains; may be null
     *  \throws Error  InvalidArgument: a position is not finite */
    std::vector<double> operator()(const PointSystem<Real>& system,
                                   const Region& region,
                                   std::vector<double>* virials = nullptr);
    KernelFarField<Real>& farField() { return far_; }

private:
    //! What depends on the box beside far cells.
    void setRegion(const Region& region);
    //! The points of an evaluation.
    struct Points
    {
        const PointSystem<Real>& system;
        const SortedPoints<Real>&sources, &targets;
        const AlignedVector<Real>& q; //!< [sets][n] in the order of sources
        const std::vector<int>&
                sortedOf; //!< where each charge is among the sources, if there are excluded pairs
        const ShortestImages& shortest;
    };
    //! Adds what pairs make of all sets. \param[in,out] virials  see operator()()
    void addPairs(const Points& points, std::vector<double>* sums, std::vector<double>* virials);
    //! Adds potentials and fields at the targets of a cell. \param[in] from  [4][targets]
    void addScaled(const Real* from,
                   double factor,
                   const SortedPoints<Real>& targets,
                   int place,
                   int set,
                   std::vector<double>* sums) const;
    //! Adds what expansions make of a set.
    void addExpansions(const Points& points, int set, std::vector<double>* sums);
    //! What a thread stages, and its sums.
    struct Room
    {
        AlignedVector<Real> x, y, z, q, sums, expansion;
        std::vector<StagedCell> cells;
        LeftOutOfCell leftOut;
        int staged = 0; //!< padded
    };
    //! Takes away what far excluded pairs make. \param[in,out] virials  [sets][6], may be null
    void subtract(const LeftOutOfCell& pairs,
                  const PointSystem<Real>& system,
                  std::vector<double>* sums,
                  double* virials) const;
    //! Stages the sources in the near cells of a cell.
    void stage(const Int3& cell,
               const SortedPoints<Real>& sources,
               const AlignedVector<Real>& q,
               int sets,
               Room* room) const;

    const PairKernel& kernel_;
    KernelPlan plan_;
    Mat3 box_;
    bool isPeriodic_;
    Team& team_;
    KernelFarField<Real> far_;
    PairLaw<Real> law_;
    double unit_; //!< cube root of the volume of a leaf
    Int3 leafCounts_;
    std::vector<Int3> near_;
    std::vector<Vec3> shifts_; //!< of near cells, in units of leaves
    Real nowhere_;             //!< beyond any two points of near cells
    std::vector<Room> rooms_;  //!< of the threads
};

} // namespace farfield

#endif
