/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The JSON file of a benchmark: where it ran, and a list of cases.
 */
#ifndef FARFIELD_BENCH_REPORT_H
#define FARFIELD_BENCH_REPORT_H

#include <chrono>
#include <string>

#include <nlohmann/json.hpp>

namespace farfield
{
namespace bench
{

//! Collects cases; the file is complete after each of them.
class Report
{
public:
    /*! \param[in] benchmark  its name
     *  \param[in] command    how the program was called
     *  \param[in] path       file to write
     *  \param[in] limit      seconds after which no further case is begun; 0: none */
    Report(const std::string& benchmark,
           const std::string& command,
           const std::string& path,
           double limit);

    //! Adds a case, writes the file and prints a line.
    void add(const nlohmann::json& entry, const std::string& line);
    //! Whether time is left for another case; false is noted in the file.
    bool timeLeft();

private:
    void write() const;

    nlohmann::json root_;
    std::string path_;
    double limit_;
    std::chrono::steady_clock::time_point start_;
};

} // namespace bench
} // namespace farfield

#endif
