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
#include <exception>
#include <string>

#include <nlohmann/json.hpp>

#include "farfield/farfield.h"

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

//! A number as std::printf() writes it.
std::string text(const char* format, double value);

//! What a solver chose, as it stands in the file.
nlohmann::json describe(const Setup& setup);

/*! \brief Runs a case; what it throws becomes the result.
 *  \param[in] entry  what is known before
 *  \param[in] label  begin of the line that is printed
 *  \param[in] work   takes the entry, to add results, and returns the rest of the line */
template<class Work>
void runCase(Report* report, nlohmann::json entry, const std::string& label, const Work& work)
{
    std::string line = label;
    try
    {
        line += work(&entry);
    }
    catch (const std::exception& error)
    {
        entry["error"] = error.what();
        line += std::string("  ") + error.what();
    }
    report->add(entry, line);
}

} // namespace bench
} // namespace farfield

#endif
