/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Groups of charges of which all pairs are excluded, as those of QM/MM: what they cost
 *         beside their pairs, counted in bytes.
 */
#include "memory_in_use.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! All pairs of \p n charges, one way.
struct Group
{
    std::vector<float> q;
    std::vector<int> offsets = { 0 }, partners;

    explicit Group(int n) : q(n, 1.0f)
    {
        partners.reserve(static_cast<size_t>(n) * (n - 1) / 2);
        for (int i = 0; i < n; i++)
        {
            for (int j = i + 1; j < n; j++)
            {
                partners.push_back(j);
            }
            offsets.push_back(static_cast<int>(partners.size()));
        }
    }
    void load(Solver<float>* solver) const
    {
        const int n = static_cast<int>(q.size());
        solver->setCharges(q.data(), n);
        solver->setExclusions(offsets.data(), partners.data(), n);
    }
    //! Bytes of so many integers a pair, and a tenth more for all that is linear in the charges.
    double bytes(double integers) const { return 1.1 * integers * sizeof(int) * partners.size(); }
};

Options onCpu()
{
    Options options;
    options.device = Device::Cpu;
    return options;
}

/*! \brief What stands stays until its successor is complete, and pairs are sorted by way of one
 *         more list: three integers a pair the first time, five later. */
TEST(ExcludedGroups, TakeFiveIntegersAPairWhileTheyAreSet)
{
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "The sanitizer keeps what is freed.";
#endif
    const Group group(3000);
    Solver<float> solver(onCpu());
    const size_t before = peakInUse();
    group.load(&solver);
    EXPECT_LE(static_cast<double>(peakInUse() - before), group.bytes(3));
    group.load(&solver);
    EXPECT_LE(static_cast<double>(peakInUse() - before), group.bytes(5));
}

//! The solver remembers what the caller has listed, and the backend has each pair once.
TEST(ExcludedGroups, TakeTwoIntegersAPair)
{
    const Group group(3000);
    Solver<float> solver(onCpu());
    const size_t before = heapInUse();
    group.load(&solver);
    EXPECT_LE(static_cast<double>(heapInUse() - before), group.bytes(2));
    group.load(&solver);
    EXPECT_LE(static_cast<double>(heapInUse() - before), group.bytes(2));
    // other charges: it is known already which pairs there are
    solver.setCharges(group.q.data(), static_cast<int>(group.q.size()));
    EXPECT_LE(static_cast<double>(heapInUse() - before), group.bytes(2));
}

} // namespace
} // namespace test
} // namespace farfield
