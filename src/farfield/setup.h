/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What solvers tell of themselves: the discretisation in use and times, for logs and tests.
 */
#ifndef FARFIELD_SETUP_H
#define FARFIELD_SETUP_H

#include <array>
#include <string>
#include <vector>

#include "farfield/options.h"

namespace farfield
{

//! A setting that was timed, see Options::tune.
struct TimedSetting
{
    int order = 0, directRange = 0, levels = 0;
    M2lEngine m2l       = M2lEngine::Auto; //!< never Auto
    long long leafCells = 0;
    double cellSize     = 0;     //!< nm
    int helpers         = 0;     //!< of Options::helperDevices, the first ones that can help
    double seconds      = 0;     //!< per evaluation of forces
    bool isInUse        = false; //!< at most one of those that were timed is
};

//! A device that computes a part of the near field, see Options::helperDevices.
struct HelperDevice
{
    int deviceId = -1;
    double share = 0; //!< its part of the cells of the near field, now
};

//! The discretisation in use, for logs and tests.
struct Setup
{
    int order         = 0;               //!< multipole order p
    int directRange   = 0;               //!< ws
    M2lEngine m2l     = M2lEngine::Auto; //!< the engine in use, never Auto
    Device device     = Device::Auto;    //!< the backend in use, never Auto
    bool leastSquares = false;           //!< least-squares M2L operators in use
    //! Leaf cells: the box is H (lower triangular, integer) times the cell vectors.
    std::array<std::array<int, 3>, 3> cells = {};
    int levels          = 0; //!< levels of the tree; 1 when the FFT acts on the leaves
    long long leafCells = 0; //!< leaf cells in the box
    double cellSize     = 0; //!< cube root of the leaf cell volume, nm
    /*! \brief RMS force error relative to what Options::accuracy says.
     *
     *  Measured for the positions that the cells were chosen for: forces at several positions of
     *  the grid differ by their errors. With charges of two states it is the error that their
     *  difference makes at lambda 1/2, where that is larger. */
    double estimatedError = 0;
    /*! \brief The same at the position of the grid where it is largest, and more for positions that
     *         were not measured: this is what cells are chosen by.
     *
     *  More than Options::accuracy where isBestEffort is set, with an order that is given, and by up to
     *  5 % later in a run; a crystal may have many times estimatedError where its atoms lie in corners
     *  of cells. */
    double largestError = 0;
    /*! \brief The accuracy is not met, and nothing better can be had.
     *
     *  Charges nearly coincide, and this precision resolves their forces no better; or particles have
     *  moved, in a run that must go on, so that no setting does; or the difference of two states
     *  has far stronger forces than both, which cancel but for their errors. largestError says how far
     *  off forces may be. Never where Options::order is given. */
    bool isBestEffort = false;
    /*! \brief The device whose costs decided on order and cells, never Auto.
     *
     *  Another one than device after restore() of a state that was saved on it: a run continues
     *  with its cells, right but perhaps not the fastest here. */
    Device chosenFor = Device::Auto;
    int threads      = 0;   //!< OpenMP threads
    std::string deviceName; //!< processor: SIMD target or GPU name
    int deviceId = -1;      //!< CUDA device; -1 on the CPU
    //! Those in use, in the order of Options::helperDevices. The device of the solver has the rest of
    //! the near field.
    std::vector<HelperDevice> helpers;
    //! Why helpers were left out, see Options::helpersIfFaster; empty if all can be used.
    std::string helpersLost;
    //! What was timed, in this order; empty unless Options::tune.
    std::vector<TimedSetting> timed;
};

//! Time spent in a stage since construction or the last resetTimings().
struct StageTime
{
    std::string name;    //!< "P2M", "M2L", "P2P", ...
    long long calls = 0; //!< number of evaluations that ran the stage
    //! Wall-clock seconds; on the CPU those of all threads at work, divided by their number. "Waiting"
    //! has the rest.
    double seconds = 0;
};

} // namespace farfield

#endif
