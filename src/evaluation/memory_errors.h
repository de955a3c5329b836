/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Missing memory, reported as an Error of the library.
 */
#ifndef FARFIELD_EVALUATION_MEMORY_ERRORS_H
#define FARFIELD_EVALUATION_MEMORY_ERRORS_H

#include <new>
#include <stdexcept>

#include "farfield/farfield.h"

namespace farfield
{

//! Made while there is memory: its text is shared by copies.
extern const Error c_outOfMemory;

//! Returns work(), with memory that is missing reported as an Error.
template<class Work>
auto withMemoryErrors(const Work& work) -> decltype(work())
{
    try
    {
        return work();
    }
    catch (const std::bad_alloc&)
    {
        throw Error(c_outOfMemory);
    }
    catch (const std::length_error&) // more than an array can ever hold
    {
        throw Error(c_outOfMemory);
    }
}

} // namespace farfield

#endif
