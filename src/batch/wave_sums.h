/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The sum over wave vectors of one system.
 */
#ifndef FARFIELD_BATCH_WAVE_SUMS_H
#define FARFIELD_BATCH_WAVE_SUMS_H

#include <vector>

#include "batch/batch_kernels.h"
#include "batch/ewald_plan.h"
#include "batch/reduced_box.h"

namespace farfield
{

//! Energy and virial of waves, kJ/mol.
struct WaveTotals
{
    double energy = 0;
    Mat3 virial   = Mat3::Zero();
};

/*! \brief Waves within a cut-off, and what they do at the particles of a system.
 *
 *  With w = 4 pi k_C / V exp(-k^2 / 4a^2) / k^2 and the sum over a half of all k,
 *
 *      E = sum w |S(k)|^2,  S(k) = sum_j q_j exp(i k r_j),  dE/dq_i = sum 2 w Re(S* exp(i k r_i)). */
template<class Real>
class WaveSums
{
public:
    /*! \brief Takes the places of particles.
     *  \param[in] f  fractional coordinates, [n][3]
     *  \throws Error  InvalidArgument: too many waves */
    void build(const ReducedBox& box,
               const EwaldPlan& plan,
               double coulombConstant,
               const double* f,
               int n);
    /*! \brief Adds what one set of charges has.
     *  \param[in] q  e, [n], \p step apart
     *  \param[out] totals  added to; the virial stays as it is unless \p virial */
    void compute(const Real* q, int step, bool virial, WaveTotals* totals);
    //! Potentials of compute(), kJ/mol/e, [n].
    const Real* potentials() const { return fields_.data(); }
    //! Gradients of these by fractional coordinates, over 2 pi, kJ/mol/e, [n].
    const Real* gradient(int axis) const { return fields_.data() + (axis + 1) * n_; }

private:
    //! The columns within the cut-off.
    void findColumns();
    //! From structure factors to weights of the products. \returns the energy of the column, kJ/mol
    double weigh(const WaveColumn& column, bool virial, Mat3* xi);

    Mat3 waves_ = Mat3::Zero(); //!< rows are reciprocal vectors, 1/nm
    EwaldPlan plan_{};
    double scale_  = 0; //!< 4 pi k_C / V
    int particles_ = 0;
    int n_         = 0; //!< particles with padding
    int count_     = 0;
    std::vector<WaveColumn> columns_;
    std::vector<double> alongThird_;  //!< exp(-(l k3)^2 / 4a^2)
    std::vector<double> weights_;     //!< of a column
    AlignedVector<Real> coordinates_; //!< [n]
    AlignedVector<Real> phases_[3];
    AlignedVector<Real> charges_;  //!< [n]
    AlignedVector<Real> products_; //!< see BatchKernels
    AlignedVector<Real> sums_;     //!< structure factors, then weights, [waves][WaveProducts]
    AlignedVector<Real> fields_;   //!< [4][n]
};

} // namespace farfield

#endif
