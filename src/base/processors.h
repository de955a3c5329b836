/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How many processors there are for this process.
 */
#ifndef FARFIELD_BASE_PROCESSORS_H
#define FARFIELD_BASE_PROCESSORS_H

#include <string>

namespace farfield
{

/*! \brief The quota of a process by its control groups, in whole processors.
 *
 *  Control groups of versions 1 and 2 are read, and the groups above them. A container usually sees
 *  its own group as the root.
 *  \param[in] groups  the groups of the process: /proc/self/cgroup
 *  \param[in] mount   where they are mounted: /sys/fs/cgroup
 *  \returns at least 1; c_noQuota without a quota */
int quotaOfGroups(const std::string& groups, const std::string& mount);
constexpr int c_noQuota = 1 << 30;

} // namespace farfield

#endif
