/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The benchmarks of farfield_gpu_benchmark: what each of them can be told.
 *
 *  Each adds its cases to a Report until the time is used up.
 */
#ifndef FARFIELD_BENCH_GPU_BENCHMARKS_H
#define FARFIELD_BENCH_GPU_BENCHMARKS_H

#include <map>
#include <string>
#include <vector>

#include "farfield/options.h"

#include "bench_report.h"
#include "bench_systems.h"

namespace farfield
{
namespace bench
{

//! What all benchmarks can be told.
struct CommonOptions
{
    std::string output;
    std::string command;
    int samples          = 15;
    double limit         = 0;
    unsigned seed        = 1;
    bool doublePrecision = false;
};

//! The engine with a name that the command line has checked.
M2lEngine engineNamed(const std::string& name);

//! M2L against the order: engines and the bounds.
struct M2lBenchmark
{
    std::vector<int> orders, cells = { 8, 16 };
    std::vector<std::string> engines = { "symmetric", "gemm", "fft" };
    std::vector<double> accuracies   = { 1e-2, 3e-4, 1e-5 };
    int perCell                      = 8;
    bool bounds                      = true;

    void run(const CommonOptions& common, Report* report) const;
};

//! Systems of EvaluationBenchmark by name: functions of the number of atoms and the seed.
inline const std::map<std::string, System (*)(int, unsigned)> c_evaluated = {
    { "water", waterBox },
    { "shuffled", shuffledWater },
    { "four-site", fourSiteWater },
    { "drude", drudeWater },
    { "random", static_cast<System (*)(int, unsigned)>(randomCharges) },
};

//! Whole evaluations against the number of particles and the size of cells.
struct EvaluationBenchmark
{
    std::vector<int> sizes           = { 23262, 46650, 93237, 372948, 1118844 };
    std::vector<std::string> systems = { "water", "random" }; //!< keys of c_evaluated
    std::vector<int> cells           = { 0, 8, 12, 16, 20, 24, 32, 40, 48, 64 };
    std::vector<std::string> engines = { "auto" };
    std::vector<double> edges        = { 40, 80 };
    std::vector<int> dropletCells    = { 0 };
    double accuracy                  = 3e-4;
    bool totals                      = true;

    //! Boxes that are filled evenly.
    void run(const CommonOptions& common, Report* report) const;
    //! Droplets of water.
    void runDroplets(const CommonOptions& common, Report* report) const;
};

//! Useful pairs per second of the near field.
struct P2pBenchmark
{
    std::vector<int> sizes      = { 93237, 1118844 };
    std::vector<double> perCell = { 8, 10, 12, 16, 20, 24, 28, 32 };
    bool reproducible           = false;
    double width                = 0; //!< nm, of smeared charges; 0: pairs have 1/r

    void run(const CommonOptions& common, Report* report) const;
};

//! Errors against converged results.
struct AccuracyBenchmark
{
    std::vector<std::string> references, engines = { "auto" };
    std::vector<int> sizes  = { 23262 };
    std::vector<int> orders = { -1, 6, 8, 10, 12 };
    std::vector<int> ranges = { 1 };
    double cellSize         = 0;
    double accuracy         = 3e-4;
    int shifts              = 3;
    int referenceOrder      = 20;
    bool cpu                = false;

    void run(const CommonOptions& common, Report* report) const;
};

} // namespace bench
} // namespace farfield

#endif
