/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "base/processors.h"

#include <algorithm>
#include <fstream>

#include <omp.h>

#include "farfield/farfield.h"

namespace farfield
{
namespace
{

//! Time per period over the period, of files that hold one or both; 0: there is no quota.
double share(const std::string& quotaFile, const std::string& periodFile)
{
    // "max" and -1 stand for no quota
    std::ifstream first(quotaFile), second(periodFile);
    double quota = 0, period = 0;
    const bool isRead = periodFile.empty() ? static_cast<bool>(first >> quota >> period)
                                           : first >> quota && second >> period;
    return isRead && quota > 0 && period > 0 ? quota / period : 0;
}

} // namespace

int quotaOfGroups(const std::string& groups, const std::string& mount)
{
    double least = c_noQuota;
    std::ifstream lines(groups);
    // number:controllers:/path
    for (std::string line; std::getline(lines, line);)
    {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos)
        {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const bool isSecondVersion    = controllers.empty();
        std::string enclosed          = ",";
        enclosed.append(controllers).append(",");
        if (!isSecondVersion && enclosed.find(",cpu,") == std::string::npos)
        {
            continue;
        }
        std::string root = mount;
        if (!isSecondVersion)
        {
            root.append("/").append(controllers);
        }
        std::string path = line.substr(second + 1);
        while (true)
        {
            const std::string folder = root + path + "/";
            const double own         = isSecondVersion ? share(folder + "cpu.max", "")
                                                       : share(folder + "cpu.cfs_quota_us",
                                                       folder + "cpu.cfs_period_us");
            least                    = own > 0 ? std::min(least, own) : least;
            if (path.empty())
            {
                break;
            }
            path.erase(path.rfind('/'));
        }
    }
    return std::max(1, static_cast<int>(least));
}

int usableThreads(int threads)
{
    const int quota = quotaOfGroups("/proc/self/cgroup", "/sys/fs/cgroup");
    return std::min({ threads > 0 ? threads : omp_get_max_threads(), omp_get_num_procs(), quota });
}

} // namespace farfield
