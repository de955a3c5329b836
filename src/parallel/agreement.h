/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Errors of one rank, told to all, so that none waits for another that has given up.
 */
#ifndef FARFIELD_PARALLEL_AGREEMENT_H
#define FARFIELD_PARALLEL_AGREEMENT_H

#include <new>
#include <string>
#include <vector>

#include "parallel/ranks.h"
#include "solver/memory_errors.h"

namespace farfield
{

//! The member of Options of that name, as a text that stays, for an Error; empty if there is none.
inline const char* optionNamed(const std::string& name)
{
    for (const OptionDescription& option : c_options<double>)
    {
        if (name == option.name)
        {
            return option.name;
        }
    }
    return "";
}

/*! \brief Does work() on every rank; all ranks together, work() itself is not.
 *  \throws Error  on all ranks, what the first of those threw where it threw */
template<class Work>
void agree(Ranks* ranks, const Work& work)
{
    struct Report
    {
        int failed;
        ErrorCode code;
    };
    Report report = { 0, ErrorCode::InvalidArgument };
    std::string text, parameter;
    try
    {
        withMemoryErrors(work);
    }
    catch (const Error& error)
    {
        report    = { 1, error.code() };
        text      = error.what();
        parameter = error.parameter();
    }
    const std::vector<Report> reports = ranks->gatherOne(report);
    for (int r = 0; r < ranks->size(); r++)
    {
        if (reports[r].failed != 0)
        {
            const auto texts      = ranks->gather(std::vector<char>(text.begin(), text.end()));
            const auto parameters = ranks->gather(std::vector<char>(parameter.begin(), parameter.end()));
            throw Error(reports[r].code,
                        std::string(texts.begin(r), texts.end(r)),
                        optionNamed(std::string(parameters.begin(r), parameters.end(r))));
        }
    }
}

} // namespace farfield

#endif
