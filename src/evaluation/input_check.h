/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Checks of everything that a caller hands over, before anything has changed.
 *
 *  Each throws Error, InvalidArgument unless said, with a text that names the value and its range.
 */
#ifndef FARFIELD_EVALUATION_INPUT_CHECK_H
#define FARFIELD_EVALUATION_INPUT_CHECK_H

#include <string>
#include <vector>

#include "farfield/farfield.h"

#include "base/vectors.h"
#include "evaluation/box_limits.h"

namespace farfield
{

//! Ranges of all options. \tparam Real  decides on the best accuracy
template<class Real>
void checkOptions(const Options& options);
//! That the device has what the options ask for. \throws Error  Unsupported
void checkEngine(M2lEngine engine, Device device);
/*! \brief That there may be helpers.
 *  \param[in] device    in use, never Auto
 *  \param[in] onRanks   whether the system is on several ranks
 *  \throws Error  InvalidArgument: they are too many; Unsupported: the solver is not one GPU's */
void checkHelpers(const DeviceList& helpers, Device device, bool onRanks);
//! That the backend is a GPU's. \throws Error  Unsupported
void checkOnGpu(bool isOnGpu);
/*! \brief The box as a matrix.
 *  \param[in] box       rows, nm: finite, lower triangular, positive diagonal
 *  \param[in] boundary  vectors along axes without images are not read; 1 nm stands for them */
Mat3 checkedBox(const double box[3][3], Boundary boundary);
//! More are refused: indices, with some room for counting beyond the last, are ints.
constexpr int c_mostParticles = 1 << 30;
//! That a number of particles is not negative, and not above c_mostParticles. \param[in] of  what they are
void checkNumber(long long n, const char* of);
//! \param[in] q  [n]: finite
template<class Real>
void checkCharges(const Real* q, int n);
/*! \param[in] dipoles  e nm, [n][3]: finite, no component above 1e12 e nm; or null
 *  \param[in] count    number of the charges, which n has to be */
template<class Real>
void checkDipoles(const Real* dipoles, int n, int count);
/*! \param[in] quadrupoles  e nm^2, [n][6]: finite, no component above 1e12 e nm^2, no trace but rounding; or null
 *  \param[in] count    number of the charges, which n has to be */
template<class Real>
void checkQuadrupoles(const Real* quadrupoles, int n, int count);
/*! \brief Arguments of Solver::induceDipoles().
 *  \param[in] n  particles */
template<class Real>
void checkInduction(const Real* polarisabilities, const Real* dipoles, int n, double tolerance);
/*! \brief That dipoles, and derivatives of potentials, go with all else that is wanted.
 *  \param[in] what       is wanted, in the message
 *  \param[in] twoStates  whether charges have two states
 *  \param[in] function   what pairs have in place of 1/r
 *  \param[in] virial     whether it is wanted as well
 *  \throws Error  Unsupported */
void checkSites(const char* what, bool twoStates, PairFunction function, bool virial);
/*! \param[in] offsets  [n + 1], ascending from 0
 *  \param[in] partners  [offsets[n]], 0 to n - 1
 *  \param[in] count    number of the charges, which n has to be */
void checkExclusions(const int* offsets, const int* partners, int n, int count);
/*! \param[in] widths  of near functions, nm, [n]: finite, not negative; null where pairs have 1/r
 *  \param[in] count   number of the charges, which n has to be */
template<class Real>
void checkWidths(const NearFunction& function, const Real* widths, int n, int count);
//! That one image of a pair is within the range of a near function, nm, at most.
void checkNearRange(double range, const Mat3& box, Boundary boundary);
//! \param[in] group  [n], 0 to groups - 1
void checkGroups(const int* group, int n, int groups);
//! \param[in] x  [n][3], nm: finite, and so near that a cell can be told
//! \param[in] isCharged  [n]; positions of particles without a charge do not matter
//! \param[in] what       they are, in the message
template<class Real>
void checkPositions(const Real* x,
                    const std::vector<char>& isCharged,
                    const Mat3& box,
                    const char* what = "particle");
//! That there are potentials and fields at so many points.
//! \param[in] particles  there are beside them
//! \param[in] twoStates  whether charges have two states. \throws Error  Unsupported
void checkPoints(int points, int particles, bool twoStates);
/*! \brief The extent, nm, of particles without images.
 *  \param[in] x      [n][3], nm: finite, and within a box of the largest size
 *  \param[in] counts [n]; positions of others do not matter
 *  \param[in] what   they are, in the message */
template<class Real>
Vec3 checkedExtent(const Real* x, const std::vector<char>& counts, const char* what = "particle");
//! That the extent, nm, of particles without images is within a box of the largest size.
void checkExtent(const Vec3& extent);
//! That a virial of particles without any images is one of forces in device memory that are theirs
//! alone. \throws Error  Unsupported
void checkOpenVirialOnDevice(const Request& request);
//! The offset of the grid: 0 to 1 each.
void checkRequest(const Request& request);

} // namespace farfield

#endif
