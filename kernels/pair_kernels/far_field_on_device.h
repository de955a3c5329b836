/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What far cells make of each other, with one choice of degree and cells, on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_FAR_FIELD_ON_DEVICE_H
#define FARFIELD_KERNELS_PAIR_KERNELS_FAR_FIELD_ON_DEVICE_H

#include <memory>
#include <vector>

#include "pair_kernels/far_field_kernels.h"
#include "pair_kernels/far_operators.h"
#include "pair_kernels/matrices_on_device.h"
#include "pair_kernels/point_polynomials.h"
#include "pair_kernels/wave_products.h"

namespace farfield
{

/*! \brief Whether expansions and operators may be rounded to 11 significant bits: where fields may be off by 1e-3.
 *
 *  Rounding makes 1e-4 of fields, and up to 5e-3 of potentials in systems without order, see gemm_kernels.cuh.
 *  \param[in] accuracy  of operators, a thousandth of that of fields */
constexpr bool mayRoundExpansions(double accuracy)
{
    return accuracy > 0.999e-6;
}

template<class Real>
class FarFieldOnDevice
{
public:
    //! Makes the operators, see KernelBackend::evaluation(). \param[in] stream  for this and all that follows
    FarFieldOnDevice(const PairKernel& kernel,
                     const KernelPlan& plan,
                     const Region& region,
                     double accuracy,
                     Team* team,
                     cudaStream_t stream);

    //! As KernelEvaluation::adopt(), for the same plan.
    bool adopt(const Region& region);
    //! Whether there are far cells.
    bool isAnything() const { return operators_.isAnything(); }

    //! Finds the cells of all levels. \param[in] targets  null: they are the sources
    void setCells(PointsInLeaves<Real>* sources,
                  PointsInLeaves<Real>* targets,
                  const LeafFrame& frame);
    //! Multipoles of all levels, from the charges beside the positions.
    void upwards(PointsInLeaves<Real>* sources);
    //! Adds the virial, after upwards() and before downwards(). The host waits. \param[in,out] virial  [6] by c_strains
    void addVirial(double* virial);
    //! Local expansions of all levels.
    void downwards();
    //! Adds what local expansions make. \param[in,out] sums  [4][targets] sorted
    void addFields(PointsInLeaves<Real>* targets, double unit, double* sums);

    bool hasDerivatives() const { return !derivatives_.empty(); }
    void makeDerivatives();

private:
    using List     = typename FarOperators<Real>::List;
    using Matrices = MatricesOnDevice<Real>;
    //! Of the kernel or of a derivative of it.
    struct Operators
    {
        std::vector<std::shared_ptr<Matrices>> lists; //!< of the levels
        typename WaveProducts<Real>::Operators waves;
    };
    struct Expansions
    {
        DeviceBuffer<Real> M, L;
    };

    std::vector<Operators> operatorsOnDevice(int derivatives);
    //! Takes operators of a strained box.
    void strainOperators(const StrainWeights<Real>& weights);
    //! The leaves of sources and targets together. \returns cells of all levels
    std::vector<int> merge(PointsInLeaves<Real>* sources, PointsInLeaves<Real>* targets);
    //! Levels above 0 with the operators of the kernel or of a derivative.
    std::vector<ProductOfLevel<Real>>
    overLists(const std::vector<std::shared_ptr<Matrices>>& lists);
    //! Level 0 of a periodic box.
    Level0Fields<Real> level0(DeviceBuffer<Real>* expansions);
    int levels() const { return operators_.plan().levels; }

    Team& team_;
    cudaStream_t stream_;
    FarOperators<Real> operators_;
    ProductShape shape_;
    PolynomialsOnDevice<Real> polynomials_;
    Matrices up_, down_;
    StepsOfLists steps_;
    Operators inUse_;
    std::vector<Operators> derivatives_;        //!< once they are needed: see c_derivatives
    std::unique_ptr<WaveProducts<Real>> waves_; //!< of level 0 in a periodic box
    DeviceBuffer<int> slotOfCell_; //!< of all cells of level 0, the first component fastest

    //! \name The cells of an evaluation
    //!@{
    CubRoom room_;
    KeyRuns runs_;
    CellsOfLevels cells_;
    std::vector<Expansions> expansions_;
    DeviceBuffer<std::uint64_t> bothKeys_, sortedKeys_, mergedKeys_;
    DeviceBuffer<int> starts_, sourceSlots_, targetSlots_;
    bool areMerged_    = false;
    long long cellsOf_ = 0; //!< PointsInLeaves::generation() that cells_ are of
    PartialSums<Real> partial_;
    DeviceBuffer<double> partialSums_;
    //!@}
};

} // namespace farfield

#endif
