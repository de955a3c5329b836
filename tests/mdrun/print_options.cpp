/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Prints the tables of options.h as JSON, for test_options.py.
 *
 *  Texts are written as they are: they hold no quotation marks and no backslashes. */
#include <cstdio>

#include <type_traits>

#include "farfield/options.h"

namespace farfield
{
namespace
{

//! What kind of value a member of Options has.
const char* kindOf(const OptionMember& member)
{
    return std::visit(
            [](auto pointer)
            {
                using Pointer = decltype(pointer);
                if constexpr (std::is_same_v<Pointer, M2lEngine Options::*>)
                {
                    return "engine";
                }
                else if constexpr (std::is_same_v<Pointer, Device Options::*>)
                {
                    return "device";
                }
                else
                {
                    return std::is_same_v<Pointer, bool Options::*> ? "answer" : "number";
                }
            },
            member);
}

void printOptions()
{
    const char* separator = "";
    for (const OptionDescription& option : c_options<float>)
    {
        if (isMdpOption(option))
        {
            const double smallestInDouble = findOption<double>(option.name)->smallest;
            std::printf("%s\n{\"name\": \"%s\", \"kind\": \"%s\", \"default\": %.17g, "
                        "\"smallest\": [%.17g, %.17g], \"largest\": %.17g, \"unit\": \"%s\", "
                        "\"whenOpen\": \"%s\", \"text\": \"%s\"",
                        separator,
                        option.setting,
                        kindOf(option.member),
                        valueOf(option, mdpDefaults()),
                        option.smallest,
                        smallestInDouble,
                        option.largest,
                        option.unit,
                        option.whenOpen,
                        option.text);
            if (option.whenOpen[0] != '\0')
            {
                std::printf(", \"open\": %.17g", option.open);
            }
            std::printf("}");
            separator = ",";
        }
    }
}

void printEngines()
{
    const char* separator = "";
    for (const M2lEngineDescription& engine : c_m2lEngines)
    {
        std::printf("%s\n{\"name\": \"%s\", \"isForGpuOnly\": %s, \"text\": \"%s\"}",
                    separator,
                    engine.name,
                    engine.isForGpuOnly ? "true" : "false",
                    engine.text);
        separator = ",";
    }
}

void printDevices()
{
    const char* separator = "";
    for (const DeviceDescription& device : c_devices)
    {
        std::printf("%s\"%s\"", separator, device.name);
        separator = ", ";
    }
}

} // namespace
} // namespace farfield

int main()
{
    std::printf("{\"options\": [");
    farfield::printOptions();
    std::printf("],\n\"engines\": [");
    farfield::printEngines();
    std::printf("],\n\"devices\": [");
    farfield::printDevices();
    std::printf("]}\n");
}
