/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief farfield_helper_tests: helpers for the near field, and laws with them.
 *
 *      farfield_helper_tests [gtest options] [DEVICE...]
 *
 *  Without devices the current one helps itself, as two.
 */
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "backend/gpu_backend.h"
#include "test_support.h"

//! What CTest takes for a test that was skipped; see tests/CMakeLists.txt.
constexpr int c_skipped = 77;

int main(int argc, char** argv)
{
    using namespace farfield;
    ::testing::InitGoogleTest(&argc, argv);
    if (!gpuIsUsable(-1))
    {
        std::printf("There is no GPU to be helped.\n");
        return c_skipped;
    }
    for (int i = 1; i < argc; i++)
    {
        test::helpersOfTests.add(std::atoi(argv[i]));
    }
    if (test::helpersOfTests.empty())
    {
        letDevicesHelpThemselves(true);
        test::helpersOfTests = { 0, 0 };
    }
    return RUN_ALL_TESTS();
}
