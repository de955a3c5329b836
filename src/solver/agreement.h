/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Errors of one rank, told to all, so that none waits for another that has given up.
 */
#ifndef FARFIELD_SOLVER_AGREEMENT_H
#define FARFIELD_SOLVER_AGREEMENT_H

#include <cstring>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "evaluation/memory_errors.h"
#include "parallel/ranks.h"

namespace farfield
{

//! What Error::parameter() may be of that name, as a text that stays; empty if there is none.
inline const char* parameterNamed(const std::string& name)
{
    for (const OptionDescription& option : c_options<double>)
    {
        if (name == option.name)
        {
            return option.name;
        }
    }
    return name == "positions" ? "positions" : "";
}

//! An Error as bytes.
struct ErrorReport
{
    ErrorCode code;
    std::array<char, 480> text;
    std::array<char, 32> parameter;

    ErrorReport() = default;
    explicit ErrorReport(const Error& error) : code(error.code()), text(), parameter()
    {
        std::strncpy(text.data(), error.what(), text.size() - 1);
        std::strncpy(parameter.data(), error.parameter(), parameter.size() - 1);
    }
    Error error() const { return { code, text.data(), parameterNamed(parameter.data()) }; }
};

/*! \brief Does work of all ranks together, in the course of which they may exchange anything.
 *
 *  The one rule for failures of single ranks: whoever fails says so in place of the next exchange, and all
 *  ranks throw. So none waits for another that has given up. Within such work it is just done.
 *  \throws Error  on all ranks, what the first of those threw where work() threw; on this one alone if it
 *                 was to fail silently */
template<class Work>
auto together(Ranks* ranks, const Work& work) -> decltype(work())
{
    if (ranks->isWatched())
    {
        return work();
    }
    struct Watch
    {
        Ranks* ranks;
        explicit Watch(Ranks* of) : ranks(of) { ranks->setWatched(true); }
        Watch(const Watch&)            = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { ranks->setWatched(false); }
    };
    ErrorReport report = {};
    int failed         = -1;
    try
    {
        const Watch watch(ranks);
        if constexpr (std::is_void_v<decltype(work())>)
        {
            withMemoryErrors(work);
            ranks->confirm();
            return;
        }
        else
        {
            auto result = withMemoryErrors(work);
            ranks->confirm();
            return result;
        }
    }
    catch (const OtherRankFailed& other)
    {
        failed = other.rank;
    }
    catch (const Error& error)
    {
        if (ranks->isSilent())
        {
            throw;
        }
        report = ErrorReport(error);
        failed = ranks->failedAfter(true);
    }
    ranks->tellFrom(failed, &report);
    throw withMemoryErrors([&] { return report.error(); });
}

/*! \brief Asks every rank, which needs no others for its answer; in work that is done together.
 *  \returns [ranks] what question() gave on each of them, to be copied by bytes */
template<class Question>
auto answersOf(Ranks* ranks, const Question& question) -> std::vector<decltype(question())>
{
    return ranks->gatherOne(question());
}

//! Does work() on every rank, which needs no others for it, and goes on where all have done it.
template<class Work>
void agree(Ranks* ranks, const Work& work)
{
    work();
    ranks->confirm();
}

} // namespace farfield

#endif
