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

#include <cmath>

#include <string>

#include "gromacs/fileio/warninp.h"
#include "gromacs/mdtypes/imdpoptionprovider_helpers.h"
#include "gromacs/options/basicoptions.h"
#include "gromacs/options/optionsection.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/keyvaluetreetransform.h"
#include "gromacs/utility/strconvert.h"
#include "gromacs/utility/stringutil.h"

#include "farfield.h"
#include "fmm_mdmodule.h"

namespace gmx
{

namespace
{

const EnumerationArray<FarfieldM2l, const char*> c_m2lNames = {
    { "auto", "hierarchy", "fft", "naive", "dynamic", "symmetric", "gemm" }
};

// Option names, without the prefix "fmm-" that the module adds
constexpr const char* c_accuracy    = "farfield-accuracy";
constexpr const char* c_order       = "farfield-order";
constexpr const char* c_directRange = "farfield-direct-range";
constexpr const char* c_cellSize    = "farfield-cell-size";
constexpr const char* c_m2l         = "farfield-m2l";
constexpr const char* c_device      = "farfield-device";
constexpr const char* c_tune        = "farfield-tune";

//! Standard PME has 3.65e-4 on water; forces that are this much worse deserve a note
constexpr double c_noteAccuracy = 2e-3;

/*! \brief Checks a value of an option with names, in any case.
 *
 * Checked already when the mdp file is transformed: errors there are reported with the option's
 * name.
 */
template<typename EnumType>
std::string checkedName(const std::string& value, const EnumerationArray<EnumType, const char*>& names)
{
    for (const char* name : names)
    {
        if (equalCaseInsensitive(value, name))
        {
            return name;
        }
    }
    GMX_THROW(InvalidInputError(formatString("Invalid value: '%s'; expected one of %s",
                                             value.c_str(),
                                             joinStrings(names.begin(), names.end(), ", ").c_str())));
}

} // namespace

void FarfieldOptions::initMdpOptionsFmm(OptionSectionHandle& section)
{
    section.addOption(DoubleOption(c_accuracy).store(&accuracy));
    section.addOption(IntegerOption(c_order).store(&order));
    section.addOption(IntegerOption(c_directRange).store(&directRange));
    section.addOption(DoubleOption(c_cellSize).store(&cellSize));
    section.addOption(EnumOption<FarfieldM2l>(c_m2l).enumValue(c_m2lNames).store(&m2l));
    section.addOption(EnumOption<FarfieldDevice>(c_device).enumValue(c_farfieldDeviceNames).store(&device));
    section.addOption(BooleanOption(c_tune).store(&tune));
}

void FarfieldOptions::initMdpTransformFmm(IKeyValueTreeTransformRules* rules)
{
    for (const char* name : { c_accuracy, c_cellSize })
    {
        addMdpTransformFromString<double>(rules, &fromStdString<double>, FmmModuleInfo::sc_name, name);
    }
    for (const char* name : { c_order, c_directRange })
    {
        addMdpTransformFromString<int>(rules, &fromStdString<int>, FmmModuleInfo::sc_name, name);
    }
    addMdpTransformFromString<bool>(rules, &fromStdString<bool>, FmmModuleInfo::sc_name, c_tune);
    addMdpTransformFromString<std::string>(
            rules,
            [](const std::string& value) { return checkedName(value, c_m2lNames); },
            FmmModuleInfo::sc_name,
            c_m2l);
    addMdpTransformFromString<std::string>(
            rules,
            [](const std::string& value) { return checkedName(value, c_farfieldDeviceNames); },
            FmmModuleInfo::sc_name,
            c_device);
}

void FarfieldOptions::buildMdpOutputFmm(KeyValueTreeObjectBuilder* builder) const
{
    const auto name = FmmModuleInfo::sc_name;
    addMdpOutputValue<double>(builder, name, c_accuracy, accuracy);
    addMdpOutputValue<int>(builder, name, c_order, order);
    addMdpOutputValue<int>(builder, name, c_directRange, directRange);
    addMdpOutputValue<double>(builder, name, c_cellSize, cellSize);
    addMdpOutputValue<std::string>(builder, name, c_m2l, c_m2lNames[m2l]);
    addMdpOutputValue<std::string>(builder, name, c_device, c_farfieldDeviceNames[device]);
    addMdpOutputValue<bool>(builder, name, c_tune, tune);
}

void FarfieldOptions::validateMdpOptions(WarningHandler* wi) const
{
    if (wi == nullptr)
    {
        GMX_THROW(InconsistentInputError(
                "FarfieldOptions requires a WarningHandler to validate mdp options."));
    }
    // The comparisons are written such that NaN is refused, too
    if (!(accuracy >= farfield::c_bestAccuracy<real> && accuracy <= farfield::c_worstAccuracy))
    {
        wi->addError(formatString(
                "fmm-farfield-accuracy is %g, set it to a relative force error from %g, the best "
                "in %s precision, to %g.",
                accuracy,
                farfield::c_bestAccuracy<real>,
                GMX_DOUBLE ? "double" : "mixed",
                farfield::c_worstAccuracy));
    }
    else if (accuracy > c_noteAccuracy && order < 0)
    {
        wi->addNote(formatString(
                "fmm-farfield-accuracy is %g, forces will be much less accurate than with "
                "standard PME settings, which correspond to 3e-4.",
                accuracy));
    }
    if (order < -1 || order > farfield::c_maxOrder)
    {
        wi->addError(formatString(
                "fmm-farfield-order is %d, set it to a multipole order from 0 to %d, or to -1 to "
                "let fmm-farfield-accuracy decide.",
                order,
                farfield::c_maxOrder));
    }
    if (directRange < 0 || directRange > farfield::c_maxDirectRange)
    {
        wi->addError(formatString(
                "fmm-farfield-direct-range is %d, set it to 1 or 2 cells, or to 0 to let the "
                "cost decide.",
                directRange));
    }
    if (!(cellSize >= 0) || !std::isfinite(cellSize))
    {
        wi->addError(formatString(
                "fmm-farfield-cell-size is %g, set it to a positive length in nm, or to 0 to let "
                "the cost decide.",
                cellSize));
    }
}

} // namespace gmx
