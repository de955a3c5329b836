/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Errors on their way to other ranks.
 */
#include <cstring>

#include <gtest/gtest.h>

#include "solver/agreement.h"

namespace farfield
{
namespace test
{
namespace
{

//! An option, positions, nothing; and what no rank knows by a literal of its own.
TEST(ErrorReports, KeepWhatIsAtFault)
{
    for (const char* parameter : { "cellSize", "positions", "", "other" })
    {
        const Error told = ErrorReport(Error(ErrorCode::Unsupported, "a text", parameter)).error();
        EXPECT_EQ(told.code(), ErrorCode::Unsupported);
        EXPECT_STREQ(told.what(), "a text");
        EXPECT_STREQ(told.parameter(), std::strcmp(parameter, "other") == 0 ? "" : parameter);
    }
}

} // namespace
} // namespace test
} // namespace farfield
