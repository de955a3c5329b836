/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Options of the commands that are built from tests: a name and a value each; the names of
 *         precisions.
 */
#ifndef FARFIELD_TESTS_COMMAND_LINE_H
#define FARFIELD_TESTS_COMMAND_LINE_H

#include <cstdlib>

#include <functional>
#include <map>
#include <string>

#include "farfield/farfield.h"

namespace farfield
{
namespace test
{

//! What an option does with its value; false if the value is not legal.
using SetOption = std::function<bool(const std::string&)>;

inline SetOption setNumber(double* number)
{
    return [number](const std::string& value)
    {
        *number = std::atof(value.c_str());
        return true;
    };
}
inline SetOption setNumber(int* number)
{
    return [number](const std::string& value)
    {
        *number = std::atoi(value.c_str());
        return true;
    };
}
inline SetOption setText(std::string* text)
{
    return [text](const std::string& value)
    {
        *text = value;
        return true;
    };
}
//! cpu or gpu.
inline SetOption setDevice(Device* device)
{
    return [device](const std::string& value)
    {
        *device = value == "gpu" ? Device::Gpu : Device::Cpu;
        return value == "gpu" || value == "cpu";
    };
}

//! A precision in options and in what commands print.
template<class Real>
constexpr const char* precisionName()
{
    return sizeof(Real) == 4 ? "float" : "double";
}

//! Takes the options in turn; false if one is not known, has no value or an illegal one.
inline bool parseOptions(int argc, char** argv, const std::map<std::string, SetOption>& options)
{
    for (int i = 1; i < argc; i += 2)
    {
        const auto option = options.find(argv[i]);
        if (option == options.end() || i + 1 == argc || !option->second(argv[i + 1]))
        {
            return false;
        }
    }
    return true;
}

} // namespace test
} // namespace farfield

#endif
