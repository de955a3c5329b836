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
#include "batch/wave_columns.h"

namespace farfield
{

//! Energy and virial of waves, kJ/mol.
struct WaveTotals
{
    double energy    = 0;
    double virial[6] = {}; //!< xx yy zz xy xz yz
};

//! A direction in which a system changes; one set of charges.
template<class Real>
struct WaveDirection
{
    const Real* q;           //!< derivatives of the charges, e, [n], as far apart as the charges
    const double* fractions; //!< derivatives of the fractional coordinates, [n][3]
    Mat3 strain;             //!< derivative of the box vectors, B' = B strain
};

/*! \brief Waves within a cut-off, and what they do at the particles of a system.
 *
 *  With w = 4 pi k_C / V exp(-k^2 / 4a^2) / k^2 and the sum over a half of all k,
 *
 *      E = sum w |S(k)|^2,  S(k) = sum_j q_j exp(i k r_j),  dE/dq_i = sum 2 w Re(S* exp(i k r_i)).
 *
 *  In a direction (q', v, strain), where v moves particles in their box, k' = -strain k and
 *
 *      w' = rho w,  rho = 2 (1 / k^2 + 1 / 4a^2) k strain k - tr strain,
 *      S' = sum_j (q'_j + i q_j k v_j) exp(i k r_j). */
template<class Real>
class WaveSums
{
public:
    /*! \brief Takes the places of particles.
     *  \param[in] f       fractional coordinates, [n][3]
     *  \param[in] isSlab  see originOfPhases()
     *  \throws Error  InvalidArgument: too many waves */
    void build(const ReducedBox& box,
               const EwaldPlan& plan,
               double coulombConstant,
               const double* f,
               int n,
               bool isSlab);
    /*! \brief Adds what one set of charges has.
     *  \param[in] q  e, [n], \p step apart
     *  \param[out] totals  added to; the virial stays as it is unless \p virial */
    void compute(const Real* q, int step, bool virial, WaveTotals* totals);
    /*! \brief Adds the derivative of what one set of charges has.
     *
     *  Potentials, gradients and curvatures are those of the charges. The derivatives w' S + w S' of the
     *  weights have tangentPotentials() and so on.
     *  \param[out] virial  xx yy zz xy xz yz, added to, or null */
    void
    computeTangent(const Real* q, int step, const WaveDirection<Real>& direction, double* virial);
    //! Potentials, kJ/mol/e, [n].
    const Real* potentials() const { return fields_.data(); }
    //! Gradients of these by fractional coordinates, over 2 pi, kJ/mol/e, [n].
    const Real* gradient(int axis) const { return fields_.data() + (axis + 1) * n_; }
    //! Second derivatives of these by fractional coordinates, over (2 pi)^2, kJ/mol/e, [n].
    const Real* curvature(int a, int b) const
    {
        return fields_.data() + (a == b ? 4 + a : 6 + a + b) * n_;
    }
    const Real* tangentPotentials() const { return fields_.data() + c_fields * n_; }
    const Real* tangentGradient(int axis) const
    {
        return fields_.data() + (c_fields + 1 + axis) * n_;
    }

private:
    //! A wave of a column.
    struct Wave : WaveVector
    {
        int signK, signL, l;
    };
    //! A potential, its gradient and its second derivatives.
    static constexpr int c_fields = 10;
    //! Calls use(wave) for one of each two opposite waves of a column within the cut-off.
    template<class Use>
    void forWaves(const WaveColumn& column, const Use& use) const;
    //! Structure factors of charges, in a set of sums.
    template<class Charge>
    void transform(int set, const Charge& charge);
    //! From structure factors to weights of the products. \returns the energy of the column, kJ/mol
    double weigh(const WaveColumn& column, double* virial);
    //! The same of the charges and of their derivatives, from structure factors of all sets.
    void weighTangent(const WaveColumn& column, const double* strain, double* virial);
    //! The sums of a set and a wave.
    Real* sumsOf(int set, const WaveColumn& column, int l)
    {
        return setOf(set) + static_cast<size_t>(column.first + l) * WaveProducts;
    }
    Real* setOf(int set)
    {
        return sums_.data() + static_cast<size_t>(set) * columns_.count * WaveProducts;
    }
    //! Ends of weigh(): \p weights take the place of the sums.
    void keepWeights(int set, const WaveColumn& column, const std::vector<double>& weights);
    PhaseTable<Real> table() const;

    Mat3 waves_ = Mat3::Zero(); //!< rows are reciprocal vectors, 1/nm
    EwaldPlan plan_{};
    double scale_  = 0; //!< 4 pi k_C / V
    int particles_ = 0;
    int n_         = 0; //!< particles with padding
    WaveColumns columns_;
    std::vector<double> alongThird_;  //!< exp(-(l k3)^2 / 4a^2)
    std::vector<double> weights_;     //!< of a column
    std::vector<double> tangents_;    //!< derivatives of these
    AlignedVector<Real> coordinates_; //!< [n]
    AlignedVector<Real> phases_[3];
    AlignedVector<Real> charges_;  //!< [n]
    AlignedVector<Real> products_; //!< see BatchKernels
    AlignedVector<Real> sums_;     //!< structure factors, then weights, [sets][waves][WaveProducts]
    AlignedVector<Real> fields_;   //!< [c_fields][n], with tangents [c_fields + 4][n]
};

} // namespace farfield

#endif
