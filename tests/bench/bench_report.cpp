/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "bench_report.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <sys/utsname.h>

#include "bench_machine.h"
#include "bench_timing.h"

namespace farfield
{
namespace bench
{
namespace
{

std::string versionText(int version)
{
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

nlohmann::json machine()
{
    nlohmann::json m;
    utsname names = {};
    uname(&names);
    m["system"]    = std::string(names.sysname) + " " + names.release;
    m["processor"] = processorName();
    m["threads"]   = std::thread::hardware_concurrency();
    int driver = 0, runtime = 0, device = 0;
    checkCuda(cudaDriverGetVersion(&driver), "reading the driver's version");
    checkCuda(cudaRuntimeGetVersion(&runtime), "reading the runtime's version");
    m["cuda_driver"]  = versionText(driver);
    m["cuda_runtime"] = versionText(runtime);
    // the version of the kernel module, which is not that of CUDA
    std::ifstream file("/proc/driver/nvidia/version");
    std::string line;
    if (std::getline(file, line))
    {
        m["driver"] = line;
    }
    checkCuda(cudaGetDevice(&device), "finding a GPU");
    cudaDeviceProp properties;
    checkCuda(cudaGetDeviceProperties(&properties, device), "reading the properties of the GPU");
    int clock = 0, memoryClock = 0;
    checkCuda(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device),
              "reading the clock rate");
    checkCuda(cudaDeviceGetAttribute(&memoryClock, cudaDevAttrMemoryClockRate, device),
              "reading the clock rate");
    m["gpu"] = { { "name", properties.name },
                 { "architecture",
                   "sm_" + std::to_string(10 * properties.major + properties.minor) },
                 { "multiprocessors", properties.multiProcessorCount },
                 { "clock_hz", 1e3 * clock },
                 { "memory_clock_hz", 1e3 * memoryClock },
                 { "memory_bus_bits", properties.memoryBusWidth },
                 { "memory_bytes", properties.totalGlobalMem },
                 { "l2_bytes", properties.l2CacheSize } };
    return m;
}

std::string now()
{
    const std::time_t time = std::time(nullptr);
    char buffer[32];
    std::strftime(buffer, sizeof(buffer), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&time));
    return buffer;
}

//! Of the program, which does not know it
std::string revision()
{
    const char* given = std::getenv("FARFIELD_REVISION");
    return given != nullptr ? given : "unknown";
}

} // namespace

Report::Report(const std::string& benchmark,
               const std::string& command,
               const std::string& path,
               double limit) :
    path_(path),
    limit_(limit), start_(std::chrono::steady_clock::now())
{
    root_["benchmark"]      = benchmark;
    root_["farfield"]       = version();
    root_["date"]           = now();
    root_["revision"]       = revision();
    root_["command"]        = command;
    root_["machine"]        = machine();
    root_["complete"]       = true;
    root_["cases"]          = nlohmann::json::array();
    const nlohmann::json& m = root_["machine"];
    std::printf("farfield %s, %s, CUDA %s, driver for CUDA %s\n",
                version(),
                m["gpu"]["name"].get<std::string>().c_str(),
                m["cuda_runtime"].get<std::string>().c_str(),
                m["cuda_driver"].get<std::string>().c_str());
    write();
}

void Report::add(const nlohmann::json& entry, const std::string& line)
{
    root_["cases"].push_back(entry);
    write();
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

bool Report::timeLeft()
{
    const double elapsed =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const bool left = limit_ <= 0 || elapsed < limit_;
    if (!left && root_["complete"].get<bool>())
    {
        root_["complete"] = false;
        write();
        std::printf("The time limit is reached: the rest is left out.\n");
    }
    return left;
}

void Report::write() const
{
    // What all cases share stands one entry a line, then each case in a line of its own.
    std::ofstream file(path_);
    file << "{\n";
    for (const auto& [name, entry] : root_.items())
    {
        if (name != "cases")
        {
            file << nlohmann::json(name) << ": " << entry << ",\n";
        }
    }
    file << "\"cases\": [";
    const char* separator = "\n";
    for (const nlohmann::json& entry : root_["cases"])
    {
        file << separator << entry;
        separator = ",\n";
    }
    file << "\n]\n}\n";
    if (!file.flush())
    {
        throw std::runtime_error("The file " + path_ + " cannot be written.");
    }
}

std::string text(const char* format, double value)
{
    char buffer[64];
    std::snprintf(buffer, sizeof(buffer), format, value);
    return buffer;
}

nlohmann::json describe(const Setup& setup)
{
    return { { "order", setup.order },
             { "direct_range", setup.directRange },
             { "engine", nameOf(setup.m2l) },
             { "least_squares", setup.leastSquares },
             { "cells", setup.cells },
             { "levels", setup.levels },
             { "leaf_cells", setup.leafCells },
             { "cell_size", setup.cellSize },
             { "estimated_error", setup.estimatedError },
             { "device", setup.deviceName } };
}

} // namespace bench
} // namespace farfield
