/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What is done with arrays of points and results as they are given, on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_POINT_ARRAYS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_POINT_ARRAYS_H

#include "runtime/device.h"

namespace farfield
{

//! What a look at points and charges finds.
struct PointsSeen
{
    double low[3], high[3]; //!< of all that are finite
    int charge, particle,
            point; //!< the first whose charge or position is not finite; INT_MAX: none
};

//! Looks at arrays in device memory, one after the other; waits at the end.
class LookAtPoints
{
public:
    void begin(cudaStream_t stream);
    //! \param[in] areParticles  else other points
    void atPositions(const double* x, int n, bool areParticles, cudaStream_t stream);
    template<class Real>
    void atCharges(const Real* q, int n, int sets, cudaStream_t stream);
    PointsSeen end(cudaStream_t stream);

    //! Extents as integers with the order of the numbers. Plain data.
    struct Found
    {
        long long low[3], high[3];
        int charge, particle, point;
    };

private:
    DeviceBuffer<Found> found_;
};

//! What a look at results finds.
struct ResultsSeen
{
    unsigned long long largest; //!< as bits
    int invalid; //!< the first that is no number, by index before sorting; INT_MAX: none
};

//! \param[in] sums  [sets][4][n] sorted \param[out] seen  [1] device memory
void lookAtResults(const double* sums,
                   const int* order,
                   int n,
                   int sets,
                   ResultsSeen* seen,
                   cudaStream_t stream);

//! Writes where each index went. \param[out] sortedOf  [n]
void invertOrder(const int* order, int n, int* sortedOf, cudaStream_t stream);

//! Takes some results. \param[in] some  [count] indices before sorting \param[out] taken  [sets][4][count]
void takeResults(const double* sums,
                 const int* sortedOf,
                 int n,
                 int sets,
                 const int* some,
                 int count,
                 double* taken,
                 cudaStream_t stream);

//! Writes potentials, [n][sets], and fields, [n][sets][3], in the order before sorting; each may be null.
template<class Real>
void writeResults(const double* sums,
                  const int* order,
                  int n,
                  int sets,
                  Real* potentials,
                  Real* fields,
                  cudaStream_t stream);

//! Sums of rows. \param[out] sums  [rows]
void sumRows(const double* values, int rows, int n, double* sums, cudaStream_t stream);

} // namespace farfield

#endif
