/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Work that is cut into equal parts, one for each rank.
 */
#ifndef FARFIELD_PARALLEL_SHARE_H
#define FARFIELD_PARALLEL_SHARE_H

namespace farfield
{

//! A part of what is cut into equal ones.
struct Share
{
    int part = 0, parts = 1;

    //! First of count items that are in this part; the next one begins where it ends.
    int begin(int count) const { return static_cast<int>(1LL * count * part / parts); }
    int end(int count) const { return static_cast<int>(1LL * count * (part + 1) / parts); }
};

} // namespace farfield

#endif
