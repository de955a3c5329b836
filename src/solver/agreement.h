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

#include "evaluation/memory_errors.h"
#include "parallel/ranks.h"

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
 *  \returns [ranks] what question() gave on each of them, to be copied by bytes
 *  \throws Error  on all ranks, what the first of those threw where it threw */
template<class Question>
auto answersOf(Ranks* ranks, const Question& question) -> std::vector<decltype(question())>
{
    using Answer = decltype(question());
    struct Report
    {
        Answer answer;
        ErrorCode code;
        bool failed;
    };
    Report report = {};
    std::string text, parameter;
    try
    {
        report.answer = withMemoryErrors(question);
    }
    catch (const Error& error)
    {
        report.failed = true;
        report.code   = error.code();
        text          = error.what();
        parameter     = error.parameter();
    }
    std::vector<Answer> answers;
    for (const Report& of : ranks->gatherOne(report))
    {
        const auto r = static_cast<int>(answers.size());
        if (of.failed)
        {
            const auto texts = ranks->gather(std::vector<char>(text.begin(), text.end()));
            const auto parameters =
                    ranks->gather(std::vector<char>(parameter.begin(), parameter.end()));
            throw Error(of.code,
                        std::string(texts.begin(r), texts.end(r)),
                        optionNamed(std::string(parameters.begin(r), parameters.end(r))));
        }
        answers.push_back(of.answer);
    }
    return answers;
}

//! Does work() on every rank, which needs no others for it. \throws Error  as answersOf()
template<class Work>
void agree(Ranks* ranks, const Work& work)
{
    answersOf(ranks,
              [&]
              {
                  work();
                  return true;
              });
}

} // namespace farfield

#endif
