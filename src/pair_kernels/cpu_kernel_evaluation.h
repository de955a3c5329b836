/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums of a kernel with one choice of degree and cells, on the CPU.
 */
#ifndef FARFIELD_PAIR_KERNELS_CPU_KERNEL_EVALUATION_H
#define FARFIELD_PAIR_KERNELS_CPU_KERNEL_EVALUATION_H

#include <vector>

#include "pair_kernels/cpu_far_field.h"
#include "pair_kernels/kernel_backend.h"
#include "pair_kernels/left_out_pairs.h"

namespace farfield
{

//! The points of a call, and what was computed.
template<class Real>
struct PointsOnCpu
{
    PointSystem<Real> system;
    std::vector<double> sums, virials; //!< [sets][4][results], and see KernelBackend::virials()
};

template<class Real>
class CpuKernelEvaluation final : public KernelEvaluation<Real>
{
public:
    /*! \brief Makes the operators.
     *  \param[in]     accuracy  of periodic sums
     *  \param[in,out] points    of all evaluations
     *  \param[in]     team      does the work, here and later */
    CpuKernelEvaluation(const PairKernel& kernel,
                        const KernelPlan& plan,
                        const Region& region,
                        double accuracy,
                        PointsOnCpu<Real>* points,
                        Team* team);

    void evaluate(const Region& region, bool wantsVirials) override;
    bool hasDerivatives() const override { return far_.hasDerivatives(); }
    void makeDerivatives() override { far_.makeDerivatives(); }

private:
    bool adoptBox(const Region& region) override;
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
    //! Adds what pairs make of all sets. \param[in,out] virials  [sets][6]; null: they are not wanted
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

    PointsOnCpu<Real>& points_;
    const PairKernel& kernel_;
    bool isPeriodic_;
    Team& team_;
    CpuFarField<Real> far_;
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
