/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory that runs out while exchanges between ranks are planned; in the program of
 *         laws/out_of_memory.cpp.
 */
#include <cstring>

#include "evaluation/memory_errors.h"
#include "failing_allocations.h"
#include "parallel/partition.h"

namespace farfield
{
namespace test
{
namespace
{

//! The first of two ranks, of which the other has nothing and wants nothing.
class WithSilentOther final : public Communicator
{
public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    void exchange(const char* send,
                  const size_t* sendOffsets,
                  char* receive,
                  const size_t* receiveOffsets) override
    {
        std::memset(receive, 0, receiveOffsets[2]);
        std::copy(send + sendOffsets[0], send + sendOffsets[1], receive + receiveOffsets[0]);
    }
};

//! With more threads than one an exception has to leave a parallel region.
TEST(OutOfMemoryOfRanks, PlansReportIt)
{
    constexpr int c_count = 40, c_threads = 2;
    WithSilentOther communicator;
    Ranks ranks(&communicator);
    Discretisation d;
    const Mat3 box = 3 * Mat3::Identity();
    d.leafCells    = { { { 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 3 } } };
    d.referenceBox = box;
    // each has a partner that is nowhere
    OwnParticles<double> own;
    std::vector<double> x;
    own.excluded.offsets = { 0 };
    for (int i = 0; i < c_count; i++)
    {
        own.index.push_back(i);
        own.charges.push_back(1);
        own.excluded.partners.push_back(c_count + i);
        own.excluded.offsets.push_back(i + 1);
        x.insert(x.end(), { 0.07 * i, 0.05 * i, 0.03 * i });
    }
    int failures    = 0;
    bool failed     = false;
    const auto plan = [&]
    {
        Partition<double> partition(&ranks, 0.35, c_threads);
        ASSERT_EQ(partition.locate(own, x.data(), d, box), -1);
        try
        {
            partition.plan(own);
        }
        catch (const Error& error)
        {
            if (error.code() != ErrorCode::InvalidArgument) // partners were not found
            {
                throw;
            }
        }
    };
    plan(); // starts the threads
    const auto reported = [&] { withMemoryErrors(plan); };
    for (long long k = 0; withFailure(k, Mode::Once, &failed, reported); k++)
    {
        failures += failed ? 1 : 0;
    }
    EXPECT_GT(failures, 10);
}

} // namespace
} // namespace test
} // namespace farfield
