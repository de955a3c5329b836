/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "choice/saved_state.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "cells/cell_shape.h"
#include "plan/open_box.h"
#include "plan/operator_limits.h"

namespace farfield
{
namespace
{

//! Changes with the meaning of the array.
constexpr double c_version = 12;
//! Version and checksum.
constexpr size_t c_header = 2;

//! Largest strain that operators follow; see Solver, which builds new ones long before.
constexpr double c_largestStrain = 0.1;
//! Cells of a choice may be worse shaped than the best ones of their size by this factor. Boxes of
//! all shapes and sizes: at most 1.3, and 1.7 where cells as large as the box are asked for.
constexpr double c_worstShape = 2;

std::string text(double value)
{
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%.9g", value);
    return buffer;
}

//! The value of an option as it is named in messages.
std::string valueText(const OptionDescription& option, double value)
{
    return std::visit(
            [&](auto member) -> std::string
            {
                using Value = std::decay_t<decltype(std::declval<Options>().*member)>;
                if constexpr (std::is_enum_v<Value>)
                {
                    if (isLegal(option, value))
                    {
                        return nameOf(static_cast<Value>(value));
                    }
                }
                return text(value);
            },
            option.member);
}

[[noreturn]] void refuse(const std::string& why, const char* parameter = "")
{
    throw Error(ErrorCode::InvalidArgument,
                "The saved FMM state cannot be used: " + why + ".",
                parameter);
}

//! FNV-1a over the bytes of the numbers behind the header; 53 bits, which a double holds exactly.
double checksum(const std::vector<double>& array)
{
    std::uint64_t hash = 14695981039346656037ull;
    for (size_t i = c_header; i < array.size(); i++)
    {
        unsigned char bytes[sizeof(double)];
        std::memcpy(bytes, &array[i], sizeof(double));
        for (const unsigned char byte : bytes)
        {
            hash = (hash ^ byte) * 1099511628211ull;
        }
    }
    return static_cast<double>(hash >> 11);
}

//! Calls f(option) for the options that decide on results; limits do not matter here.
template<class Function>
void forOptions(const Function& f)
{
    for (const OptionDescription& option : c_options<double>)
    {
        if (option.isPartOfState)
        {
            f(option);
        }
    }
}

//! Calls f(number) for all numbers of the state, to write or to read them.
template<class State, class Function>
void forNumbers(State& state, const Function& f)
{
    auto& d    = state.discretisation;
    auto& then = state.chosenFor;
    f(state.device);
    f(state.numbers.takingPart);
    f(state.numbers.acting);
    f(state.numbers.withPartners);
    f(state.numbers.inExcess);
    f(state.numbers.wide);
    f(state.numbers.nearRange);
    f(state.cellBound);
    f(state.allTakePart);
    f(d.accuracy);
    f(then.systemFactor);
    f(then.measuredError);
    f(d.exclusionRange);
    f(d.order);
    f(d.ws);
    f(d.levels);
    for (auto& row : d.leafCells)
    {
        for (auto& entry : row)
        {
            f(entry);
        }
    }
    for (int k = 0; k < 3; k++)
    {
        f(then.extent[k]);
        f(then.measuredExtent[k]);
    }
    f(then.isBestEffort);
    f(then.predictedError);
    f(then.measuredSpread);
    f(then.typicalForce);
    f(then.field.cap);
    f(then.field.level);
    for (auto* matrix : { &d.referenceBox, &state.strain, &state.virialStrain })
    {
        for (int i = 0; i < 9; i++)
        {
            f((*matrix)(i / 3, i % 3));
        }
    }
}

//! Whether a number is a value of a type.
template<class Value>
bool isA(double number)
{
    if constexpr (std::is_same_v<Value, Device>)
    {
        return number == static_cast<int>(Device::Cpu) || number == static_cast<int>(Device::Gpu);
    }
    else if constexpr (std::is_same_v<Value, bool>)
    {
        return number == 0 || number == 1;
    }
    else if constexpr (std::is_integral_v<Value>)
    {
        // a power of two, unlike the largest value itself
        const double beyond = std::ldexp(1.0, std::numeric_limits<Value>::digits);
        return std::floor(number) == number && std::abs(number) < beyond;
    }
    return true;
}

bool areSound(const ParticleNumbers& n)
{
    return n.takingPart >= 0 && n.acting >= 0 && n.withPartners >= 0 && n.inExcess >= 0
           && n.wide >= 0 && n.nearRange >= 0;
}

//! Whether the cells are some that could have been chosen for the box.
bool areSound(const SavedState& state)
{
    const Discretisation& d = state.discretisation;
    const ChosenFor& then   = state.chosenFor;
    const Mat3& box         = d.referenceBox;
    const IntMat& H         = d.leafCells;
    if (d.order < 0 || d.order > c_maxOrder || d.ws < 1 || d.ws > c_maxDirectRange || d.levels < 1
        || d.levels > 20 || !areSound(state.numbers) || then.field.cap < 0 || then.field.level < 0
        || then.predictedError < 0 || then.measuredSpread < 0 || then.typicalForce < 0
        || state.cellBound < 0 || !(state.strain.cwiseAbs().maxCoeff() <= c_largestStrain)
        || !(state.virialStrain.cwiseAbs().maxCoeff() <= c_largestStrain))
    {
        return false;
    }
    const int coarsen = 1 << (d.levels - 1);
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            const bool upper = j > i;
            if ((upper && (H[i][j] != 0 || box(i, j) != 0))
                || (i == j && (H[i][i] < 1 || !(box(i, i) > 0))) || H[i][j] % coarsen != 0
                || std::abs(static_cast<double>(H[i][j])) > c_maxCells || !std::isfinite(box(i, j)))
            {
                return false;
            }
        }
    }
    if (static_cast<double>(H[0][0]) * H[1][1] * H[2][2] > c_maxCells
        || !std::isfinite(box.determinant()) || !(box.determinant() > 0))
    {
        return false;
    }
    if (d.boundary != Boundary::Periodic
        && !OpenCells::of(d.coarseCells(), d.ws, d.boundary).hold(box, then.extent))
    {
        return false;
    }
    if (d.boundary == Boundary::Slab
        && (box(2, 0) != 0 || box(2, 1) != 0 || H[2][0] != 0 || H[2][1] != 0))
    {
        return false;
    }
    const Grid cells(H, box);
    const Grid best(chooseCells(box, cells.unit(), d.ws, coarsen), box);
    return shapeRatio(cells.edges(), d.ws) <= c_worstShape * shapeRatio(best.edges(), d.ws);
}

} // namespace

std::vector<double> encodeState(const SavedState& state, const Options& options, int precision)
{
    std::vector<double> array = { c_version, 0, static_cast<double>(precision) };
    forOptions([&](const OptionDescription& option) { array.push_back(valueOf(option, options)); });
    forNumbers(state, [&](const auto& value) { array.push_back(static_cast<double>(value)); });
    array[1] = checksum(array);
    return array;
}

size_t stateSize()
{
    static const size_t c_size = encodeState({}, {}, 0).size();
    return c_size;
}

SavedState
decodeState(const std::vector<double>& array, const Options& options, Device device, int precision)
{
    if (array.empty() || array[0] != c_version)
    {
        refuse("it was not written by this version of farfield");
    }
    if (array.size() != stateSize() || array[1] != checksum(array)
        || !std::all_of(array.begin(), array.end(), [](double v) { return std::isfinite(v); }))
    {
        refuse("it is damaged");
    }
    auto next = array.begin() + c_header;
    if (*next++ != precision)
    {
        refuse(precision == sizeof(float) ? "it was written in double precision, now it is single"
                                          : "it was written in single precision, now it is double");
    }
    forOptions(
            [&](const OptionDescription& option)
            {
                const double then = *next++;
                const double now  = valueOf(option, options);
                if (then != now)
                {
                    const std::string name = option.name;
                    refuse("it was written with " + name + " = " + valueText(option, then)
                                   + ", and now " + name + " is " + valueText(option, now),
                           option.name);
                }
            });
    SavedState state;
    forNumbers(state,
               [&](auto& value)
               {
                   using Value = std::decay_t<decltype(value)>;
                   if (!isA<Value>(*next))
                   {
                       refuse("it is damaged");
                   }
                   value = static_cast<Value>(*next++);
               });
    Discretisation& d = state.discretisation;
    d.leastSquares    = options.leastSquares;
    d.boundary        = options.boundary;
    d.engine          = engineOfLevels(options);
    // a checksum can be right although other programs have written the numbers
    if (!areSound(state))
    {
        refuse("its cells do not fit its box");
    }
    if (!isOfOptions(d, options, state.device))
    {
        refuse("its cells do not follow from its options");
    }
    const std::string why = whyTooLarge(d, device, precision);
    if (!why.empty())
    {
        refuse("its " + why);
    }
    return state;
}

} // namespace farfield
