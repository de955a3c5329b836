/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Solvers with helpers for the near field, beside those that have none.
 */
#ifndef FARFIELD_TESTS_HELPERS_NEAR_FIELD_HELPING_H
#define FARFIELD_TESTS_HELPERS_NEAR_FIELD_HELPING_H

#include <cmath>

#include <algorithm>
#include <string>
#include <vector>

#include "box_matrix.h"
#include "device_caller.h"
#include "evaluation/evaluator.h"
#include "test_support.h"

namespace farfield
{
namespace test
{

//! Relative RMS difference of forces that are added up in another order.
template<class Real>
constexpr double c_sameForces = sizeof(Real) == 4 ? 1e-5 : 1e-12;

//! Devices that help themselves, and systems for them.
template<class Config>
class NearFieldHelping : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    void SetUp() override
    {
        ConfiguredTest<Config>::SetUp();
        before_ = letDevicesHelpThemselves(true);
    }
    void TearDown() override { letDevicesHelpThemselves(before_); }

    //! The device itself once and three times, then all others.
    static std::vector<DeviceList> helpers()
    {
        std::vector<DeviceList> all = { { 0 }, { 0, 0, 0 } };
        int devices                 = 0;
        checkCuda(cudaGetDeviceCount(&devices), "counting devices");
        DeviceList others;
        for (int device = 1; device < std::min(devices, c_maxHelperDevices + 1); ++device)
        {
            others.add(device);
        }
        if (!others.empty())
        {
            all.push_back(others);
        }
        return all;
    }
    static Options optionsWith(M2lEngine engine, const DeviceList& helpers)
    {
        Options options       = Config::options();
        options.m2l           = engine;
        options.cellSize      = 0.5;
        options.order         = 8;
        options.directRange   = 1;
        options.deviceId      = 0;
        options.helperDevices = helpers;
        return options;
    }
    static void expectForces(const std::vector<Vector>& forces, const std::vector<Vector>& wanted)
    {
        EXPECT_LE(relativeError(forces, wanted), c_sameForces<Real>);
    }
    static void expectSame(const Evaluation& result, const Evaluation& wanted, const System& system)
    {
        expectForces(result.forces, wanted.forces);
        const double tolerance = pairRounding<Real>(system);
        EXPECT_NEAR(result.energy, wanted.energy, tolerance);
        EXPECT_LE(largestDifference(result.virial, wanted.virial), tolerance);
    }
    //! Evaluates, and compares with one device that has the cells which were chosen.
    static void expectAsOneDevice(Solver<Real>& solver, const System& system)
    {
        const Evaluation result = evaluate(solver, system);
        Solver<Real> alone(optionsWith(M2lEngine::Fft, {}));
        alone.restore(solver.state());
        load(alone, system);
        expectSame(result, evaluate(alone, system), system);
    }
    //! Water of some 2 000 particles, somewhat moved.
    static System waterAt(const std::string& box, int step)
    {
        System water = pseudoWater(namedBox(box, 20.0), 31);
        for (int i = 0; i < water.size(); ++i)
        {
            for (int k = 0; k < 3; ++k)
            {
                water.positions[i][k] += 0.001 * step * std::sin(0.01 * (i / 3) + k);
            }
        }
        return rounded<Real>(water);
    }

private:
    bool before_ = false;
};

} // namespace test
} // namespace farfield

#endif
