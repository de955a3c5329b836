/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectorised inner loops of exact forces; the instruction set is chosen at run time.
 */
#ifndef FARFIELD_CHOICE_EXACT_KERNELS_H
#define FARFIELD_CHOICE_EXACT_KERNELS_H

#include <vector>

namespace farfield
{

//! Arrays of particles are padded to a multiple of this, at least the lanes of any vector.
constexpr int c_exactPadding = 16;

//! Wave vectors that differ in the third component alone, which rises in even steps.
struct WaveRow
{
    int multiples[3];            //!< of the first one, in units of the reciprocal box vectors
    double k[2];                 //!< 1/nm: the components that are the same
    std::vector<double> last;    //!< 1/nm: the third component of each
    std::vector<double> weights; //!< of its term
};

//! Particles and their work space: arrays of a length that is a multiple of c_exactPadding.
struct WaveArrays
{
    std::vector<double> q;              //!< 0 of what is no particle
    std::vector<double> phase[3];       //!< positions in units of the box vectors
    std::vector<double> stepRe, stepIm; //!< what a step along the third reciprocal vector does
    std::vector<double> re, im, sum, sumOfLast;
    std::vector<double> result[3];

    //! \param[in] charges, positions  [n], as q and phase
    WaveArrays(const std::vector<double>& charges, const std::vector<double> (&positions)[3]);
};

struct ExactKernels
{
    /*! \brief -(1/r) d/dr of erfc(a r)/r.
     *  \param[in]     count   a multiple of c_exactPadding
     *  \param[in,out] values  r^2, and the slopes afterwards */
    void (*sharpSlopes)(double a, int count, double* values);
    //! Adds k w Im(conj(S) exp(i k r)) of each wave vector, S the sum of q exp(i k r), to the result.
    void (*addWaves)(const WaveRow& row, WaveArrays* arrays);
};

//! Those for this processor.
const ExactKernels& exactKernels();

} // namespace farfield

#endif
