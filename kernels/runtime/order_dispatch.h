/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief From an order known at run time to code compiled for it.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_ORDER_DISPATCH_H
#define FARFIELD_KERNELS_RUNTIME_ORDER_DISPATCH_H

#include <type_traits>

#include "farfield/farfield.h"

namespace farfield
{

//! Calls work(std::integral_constant<int, order>()), 0 <= order <= c_maxOrder.
template<int P = 0, class Work>
void dispatchOrder(int order, const Work& work)
{
    if (order == P)
    {
        work(std::integral_constant<int, P>());
    }
    else if constexpr (P < c_maxOrder)
    {
        dispatchOrder<P + 1>(order, work);
    }
}

} // namespace farfield

#endif
