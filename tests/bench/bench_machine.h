/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What benchmarks say of the machine.
 */
#ifndef FARFIELD_BENCH_MACHINE_H
#define FARFIELD_BENCH_MACHINE_H

#include <fstream>
#include <string>

namespace farfield
{
namespace bench
{

//! The name of the processor, as Linux knows it.
inline std::string processorName()
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
    {
        const size_t colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
        {
            return line.substr(colon + 2);
        }
    }
    return "unknown";
}

} // namespace bench
} // namespace farfield

#endif
