/*
 * This file is part of the GROMACS molecular simulation package.
 *
 * Copyright 2026- The GROMACS Authors
 * and the project initiators Erik Lindahl, Berk Hess and David van der Spoel.
 * Consult the AUTHORS/COPYING files and https://www.gromacs.org for details.
 *
 * GROMACS is free software; you can redistribute it and/or
 * modify it under the terms of the GNU Lesser General Public License
 * as published by the Free Software Foundation; either version 2.1
 * of the License, or (at your option) any later version.
 *
 * GROMACS is distributed in the hope that it will be useful,
 * but WITHOUT ANY WARRANTY; without even the implied warranty of
 * MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
 * Lesser General Public License for more details.
 *
 * You should have received a copy of the GNU Lesser General Public
 * License along with GROMACS; if not, see
 * https://www.gnu.org/licenses, or write to the Free Software Foundation,
 * Inc., 51 Franklin Street, Fifth Floor, Boston, MA  02110-1301  USA.
 *
 * If you want to redistribute modifications to GROMACS, please
 * consider that scientific software is very special. Version
 * control is crucial - bugs must be traceable. We will be happy to
 * consider code for inclusion in the official distribution, but
 * derived work must not be called official GROMACS. Details are found
 * in the README & COPYING files - if they are missing, get the
 * official version at https://www.gromacs.org.
 *
 * To help us fund GROMACS development, we humbly ask that you cite
 * the research papers on the package. Check out https://www.gromacs.org.
 */

/*! \internal \file
 * \brief Implements the mdp options of the farfield FMM backend.
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "farfieldoptions.h"

#include <cstring>

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "gromacs/fileio/warninp.h"
#include "gromacs/mdtypes/imdpoptionprovider_helpers.h"
#include "gromacs/options/basicoptions.h"
#include "gromacs/options/optionsection.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/keyvaluetreetransform.h"
#include "gromacs/utility/strconvert.h"
#include "gromacs/utility/stringutil.h"

#include "fmm_mdmodule.h"

namespace gmx
{

namespace
{

//! Standard PME has 3.65e-4 on water; forces that are this much worse deserve a note
constexpr double c_noteAccuracy = 2e-3;

/*! \brief Calls f(name, value) for the options with an mdp option of their own.
 *
 * The name is that in the section of the FMM module, which adds the prefix "fmm-".
 *
 * \param[in] values  farfield::Options, const or not, to whose members the values are references
 */
template<typename Options, typename Function>
void forMdpOptions(Options& values, const Function& f)
{
    for (const farfield::OptionDescription& option : farfield::c_options<real>)
    {
        if (farfield::isMdpOption(option))
        {
            const char* name = option.setting + std::strlen("fmm-");
            std::visit([&](const auto member) { f(name, values.*member); }, option.member);
        }
    }
}

//! The table of the values that an option of type \p Enum can have.
template<typename Enum>
constexpr auto& valueTable()
{
    if constexpr (std::is_same_v<Enum, farfield::Device>)
    {
        return farfield::c_devices;
    }
    else if constexpr (std::is_same_v<Enum, farfield::Boundary>)
    {
        return farfield::c_boundaries;
    }
    else
    {
        return farfield::c_m2lEngines;
    }
}

//! The names of these values, in their order.
template<typename Enum>
std::vector<const char*> valueNames()
{
    std::vector<const char*> names;
    for (const auto& row : valueTable<Enum>())
    {
        names.push_back(row.name);
    }
    return names;
}

//! Adds an option of the type that the member has.
template<typename Value>
void addOption(OptionSectionHandle* section, const char* name, Value* value)
{
    if constexpr (std::is_same_v<Value, double>)
    {
        section->addOption(DoubleOption(name).store(value));
    }
    else if constexpr (std::is_same_v<Value, int>)
    {
        section->addOption(IntegerOption(name).store(value));
    }
    else if constexpr (std::is_same_v<Value, bool>)
    {
        section->addOption(BooleanOption(name).store(value));
    }
    else
    {
        std::vector<const char*> names = valueNames<Value>();
        names.push_back(nullptr);
        section->addOption(
                LegacyEnumOption<Value>(name).enumValueFromNullTerminatedArray(names.data()).store(value));
    }
}

/*! \brief Checks a value of an option with names, in any case.
 *
 * Checked already when the mdp file is transformed: errors there are reported with the option's
 * name.
 */
template<typename Enum>
std::string checkedName(const std::string& value)
{
    const std::vector<const char*> names = valueNames<Enum>();
    for (const char* name : names)
    {
        if (equalCaseInsensitive(value, name))
        {
            return name;
        }
    }
    GMX_THROW(InvalidInputError(formatString(
            "Invalid value: '%s'; expected one of %s", value.c_str(), joinStrings(names, ", ").c_str())));
}

//! Describes the values that \p option can have, to follow "set it to".
std::string legalValues(const farfield::OptionDescription& option)
{
    std::string text = formatString("a value from %g to %g", option.smallest, option.largest);
    if (option.unit[0] != '\0')
    {
        text += formatString(" %s", option.unit);
    }
    const double inDouble = farfield::findOption<double>(option.name)->smallest;
    if (inDouble != option.smallest)
    {
        text += formatString(" (from %g in double precision)", inDouble);
    }
    if (option.whenOpen[0] != '\0')
    {
        text += formatString(", or to %g: then %s", option.open, option.whenOpen);
    }
    return text;
}

} // namespace

void FarfieldOptions::initMdpOptionsFmm(OptionSectionHandle& section)
{
    forMdpOptions(values, [&](const char* name, auto& value) { addOption(&section, name, &value); });
}

void FarfieldOptions::initMdpTransformFmm(IKeyValueTreeTransformRules* rules)
{
    forMdpOptions(values,
                  [&](const char* name, auto& value)
                  {
                      using Value = std::decay_t<decltype(value)>;
                      if constexpr (std::is_enum_v<Value>)
                      {
                          addMdpTransformFromString<std::string>(
                                  rules, &checkedName<Value>, FmmModuleInfo::sc_name, name);
                      }
                      else
                      {
                          addMdpTransformFromString<Value>(
                                  rules, &fromStdString<Value>, FmmModuleInfo::sc_name, name);
                      }
                  });
}

void FarfieldOptions::buildMdpOutputFmm(KeyValueTreeObjectBuilder* builder) const
{
    forMdpOptions(values,
                  [&](const char* name, const auto& value)
                  {
                      using Value = std::decay_t<decltype(value)>;
                      if constexpr (std::is_enum_v<Value>)
                      {
                          addMdpOutputValue<std::string>(
                                  builder, FmmModuleInfo::sc_name, name, farfield::nameOf(value));
                      }
                      else
                      {
                          addMdpOutputValue<Value>(builder, FmmModuleInfo::sc_name, name, value);
                      }
                  });
}

void FarfieldOptions::validateMdpOptions(WarningHandler* wi) const
{
    if (wi == nullptr)
    {
        GMX_THROW(InconsistentInputError(
                "FarfieldOptions requires a WarningHandler to validate mdp options."));
    }
    for (const farfield::OptionDescription& option : farfield::c_options<real>)
    {
        const double value = farfield::valueOf(option, values);
        if (farfield::isMdpOption(option) && !farfield::isLegal(option, value))
        {
            wi->addError(formatString(
                    "%s is %g, set it to %s.", option.setting, value, legalValues(option).c_str()));
        }
    }
    if (values.accuracy > c_noteAccuracy && values.accuracy <= farfield::c_worstAccuracy && values.order < 0)
    {
        wi->addNote(
                formatString("%s is %g, forces will be much less accurate than with standard PME "
                             "settings, which correspond to 3e-4.",
                             farfieldSetting("accuracy"),
                             values.accuracy));
    }
}

const char* farfieldSetting(const char* name)
{
    const farfield::OptionDescription* option = farfield::findOption<real>(name);
    return option == nullptr ? "" : option->setting;
}

void copyWithoutFarfield(const KeyValueTreeObject& tree, KeyValueTreeObjectBuilder builder)
{
    for (const KeyValueTreeProperty& property : tree.properties())
    {
        if (property.value().isObject())
        {
            copyWithoutFarfield(property.value().asObject(), builder.addObject(property.key()));
        }
        else if (!startsWith(property.key(), "farfield-"))
        {
            builder.addRawValue(property.key(), KeyValueTreeValue(property.value()));
        }
    }
}

} // namespace gmx
