/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The error of a position that has no cell.
 */
#ifndef FARFIELD_CELLS_POSITION_ERROR_H
#define FARFIELD_CELLS_POSITION_ERROR_H

#include <cstddef>
#include <string>

#include "farfield/farfield.h"

#include "base/text.h"

namespace farfield
{

/*! \brief What has a position, with its number and its place, for messages.
 *  \param[in] what  "particle" or "point"
 *  \param[in] r     its position, nm, [3]; null if that is on another device */
template<class Real>
std::string nameOfPlace(const char* what, int index, const Real* r)
{
    std::string name = std::string(what) + " " + text(index);
    if (r != nullptr)
    {
        name += " (" + text(static_cast<double>(r[0])) + ", " + text(static_cast<double>(r[1]))
                + ", " + text(static_cast<double>(r[2])) + ")";
    }
    return name;
}

//! That a position has no cell, as binPosition() finds it. Cells are no larger than the box.
template<class Real>
Error positionError(const char* what, int index, const Real* r)
{
    return Error(ErrorCode::InvalidArgument,
                 "The position of " + nameOfPlace(what, index, r)
                         + " is not finite or lies more than a billion cells outside the box.",
                 "positions");
}

} // namespace farfield

#endif
