/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Processors that quotas leave a process.
 */
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <omp.h>

#include <gtest/gtest.h>

#include "base/processors.h"
#include "farfield/farfield.h"

namespace farfield
{
namespace test
{
namespace
{

class Quotas : public ::testing::Test
{
protected:
    Quotas() : root_(std::filesystem::temp_directory_path() / "farfield_quotas_XXXXXX")
    {
        std::string name = root_;
        root_            = mkdtemp(name.data());
    }
    ~Quotas() override { std::filesystem::remove_all(root_); }
    void write(const std::string& file, const std::string& text)
    {
        const std::filesystem::path path = root_ / file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << '\n';
    }
    int quota() { return quotaOfGroups(root_ / "groups", root_ / "mount"); }

private:
    std::filesystem::path root_;
};

TEST_F(Quotas, AreThoseOfAllGroupsThatAProcessIsIn)
{
    EXPECT_EQ(quota(), c_noQuota); // there are no groups here
    write("groups", "0::/outer/inner");
    EXPECT_EQ(quota(), c_noQuota);
    write("mount/outer/inner/cpu.max", "max 100000");
    EXPECT_EQ(quota(), c_noQuota);
    write("mount/outer/cpu.max", "350000 100000");
    EXPECT_EQ(quota(), 3);
    write("mount/outer/inner/cpu.max", "50000 100000");
    EXPECT_EQ(quota(), 1);
}

//! A container takes its own group for the root.
TEST_F(Quotas, OfContainersStandInTheRoot)
{
    write("groups", "0::/");
    write("mount/cpu.max", "200000 100000");
    EXPECT_EQ(quota(), 2);
    write("groups", "0::/docker/0123456789abcdef"); // as the host calls it
    EXPECT_EQ(quota(), 2);
}

TEST_F(Quotas, OfTheFirstVersionStandInTwoFiles)
{
    write("groups", "5:memory:/job\n4:cpu,cpuacct:/job\n0::/");
    write("mount/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
    write("mount/cpu,cpuacct/job/cpu.cfs_quota_us", "-1");
    EXPECT_EQ(quota(), c_noQuota);
    write("mount/cpu,cpuacct/job/cpu.cfs_quota_us", "400000");
    EXPECT_EQ(quota(), 4);
    write("mount/memory/job/cpu.cfs_quota_us", "100000"); // not its own
    EXPECT_EQ(quota(), 4);
}

TEST(UsableThreads, AreNoMoreThanWantedNorThanProcessors)
{
    EXPECT_EQ(usableThreads(1), 1);
    EXPECT_GE(usableThreads(), 1);
    EXPECT_LE(usableThreads(), omp_get_max_threads());
    EXPECT_LE(usableThreads(c_maxThreads), omp_get_num_procs());
}

} // namespace
} // namespace test
} // namespace farfield
