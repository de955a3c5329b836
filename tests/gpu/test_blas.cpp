/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Loading of cuBLAS, which needs no GPU.
 */
#include <dlfcn.h>

#include <string>

#include <gtest/gtest.h>

#include "runtime/blas.h"

namespace farfield
{
namespace test
{
namespace
{

bool cublasIsLoaded()
{
    const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
    return dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

// Before any test
const bool c_isLoadedAtStart = cublasIsLoaded();

TEST(Cublas, IsLoadedWhereItIsUsedFirst)
{
    EXPECT_FALSE(c_isLoadedAtStart);
    EXPECT_STREQ(cublas().getStatusString(CUBLAS_STATUS_SUCCESS), "success");
    EXPECT_TRUE(cublasIsLoaded());
}

} // namespace
} // namespace test
} // namespace farfield
