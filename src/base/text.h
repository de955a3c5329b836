/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Numbers in messages.
 */
#ifndef FARFIELD_BASE_TEXT_H
#define FARFIELD_BASE_TEXT_H

#include <cstdio>
#include <string>

namespace farfield
{

template<class T>
std::string text(const T& value)
{
    return std::to_string(value);
}
inline std::string text(double value)
{
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%g", value);
    return buffer;
}

} // namespace farfield

#endif
