/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How many excluded pairs a GPU can have; runs on the host.
 */
#include <gtest/gtest.h>

#include "farfield/farfield.h"

#include "near/exclusion_rows.h"

namespace farfield
{
namespace test
{
namespace
{

TEST(ExclusionRows, NameTheDeviceWhereThereAreTooMany)
{
    EXPECT_NO_THROW(checkExcludedPairs(1000000000));
    try
    {
        checkExcludedPairs(1000000001);
        ADD_FAILURE() << "no error";
    }
    catch (const Error& error)
    {
        EXPECT_EQ(error.code(), ErrorCode::Unsupported);
        EXPECT_STREQ(error.parameter(), "device");
    }
}

} // namespace
} // namespace test
} // namespace farfield
