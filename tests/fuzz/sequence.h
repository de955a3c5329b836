/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A random sequence of calls of the public interface, each result checked.
 */
#ifndef FARFIELD_TESTS_FUZZ_SEQUENCE_H
#define FARFIELD_TESTS_FUZZ_SEQUENCE_H

#include <functional>
#include <set>
#include <stdexcept>
#include <string>

#include "farfield/farfield.h"

namespace farfield
{
namespace test
{

//! What the sequences are drawn from.
struct FuzzSettings
{
    Device device   = Device::Cpu;
    int most        = 3000; //!< particles
    int mostThreads = 4;
    double slack    = 1;           //!< the error may be so many times the request
    std::set<std::string> without; //!< names of calls that are left out
};

//! A result that is not what it has to be. The kind is the same for like failures.
class Failure : public std::runtime_error
{
public:
    Failure(const std::string& kind, const std::string& text) :
        std::runtime_error(text), kind_(kind)
    {
    }
    const std::string& kind() const { return kind_; }

private:
    std::string kind_;
};

//! Names of the calls, for FuzzSettings::without.
std::set<std::string> callNames();

/*! \brief Runs the sequence of a seed.
 *
 *  Every call draws from a generator of its own, so that leaving one out leaves the others as they
 *  are as far as the system allows.
 *  \param[in] isKept  whether to make the call of that number; those that set up are made anyway
 *  \param[in] report  is told each call before it is made
 *  \returns the number of calls of the sequence
 *  \throws Failure */
int runSequence(unsigned seed,
                const FuzzSettings& settings,
                const std::function<bool(int)>& isKept,
                const std::function<void(int, const std::string&)>& report);

} // namespace test
} // namespace farfield

#endif
