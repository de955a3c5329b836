/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Algorithms of CUB with the room that they work in.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_CUB_ROOM_H
#define FARFIELD_KERNELS_PAIR_KERNELS_CUB_ROOM_H

#include "runtime/device.h"

namespace farfield
{

class CubRoom
{
public:
    //! Runs an algorithm. \param[in] call  call(room, bytes), which without room sets the bytes that it needs
    template<class Call>
    void run(const char* action, const Call& call)
    {
        size_t bytes = 0;
        check(call(static_cast<void*>(nullptr), bytes), action);
        room_.resize(bytes + 1); // a null pointer would ask again
        check(call(static_cast<void*>(room_.data()), bytes), action);
    }

private:
    DeviceBuffer<unsigned char> room_;
};

} // namespace farfield

#endif
