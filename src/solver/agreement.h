/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Errors of one rank, told to all, so that none waits for another that has given up.
 */
#ifndef FARFIELD_SOLVER_AGREEMENT_H
#define FARFIELD_SOLVER_AGREEMENT_H

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

/*! \brief Asks every rank, which needs no others for its answer; all ranks together.
 *  \returns whether question() was true on any of them
 *  \throws Error  on all ranks, what the first of those threw where it threw */
template<class Question>
bool isTrueOnAny(Ranks* ranks, const Question& question)
{
    struct Report
    {
        char failed, answer;
        ErrorCode code;
    };
    Report report = { 0, 0, ErrorCode::InvalidArgument };
    std::string text, parameter;
    try
    {
        report.answer = withMemoryErrors(question) ? 1 : 0;
    }
    catch (const Error& error)
    {
        report    = { 1, 0, error.code() };
        text      = error.what();
        parameter = error.parameter();
    }
    const std::vector<Report> reports = ranks->gatherOne(report);
    bool any                          = false;
    for (int r = 0; r < ranks->size(); r++)
    {
        if (reports[r].failed != 0)
        {
            const auto texts = ranks->gather(std::vector<char>(text.begin(), text.end()));
            const auto parameters =
                    ranks->gather(std::vector<char>(parameter.begin(), parameter.end()));
            throw Error(reports[r].code,
                        std::string(texts.begin(r), texts.end(r)),
                        optionNamed(std::string(parameters.begin(r), parameters.end(r))));
        }
        any = any || reports[r].answer != 0;
    }
    return any;
}

//! Does work() on every rank, which needs no others for it. \throws Error  as isTrueOnAny()
template<class Work>
void agree(Ranks* ranks, const Work& work)
{
    isTrueOnAny(ranks,
                [&]
                {
                    work();
                    return false;
                });
}

} // namespace farfield

#endif
