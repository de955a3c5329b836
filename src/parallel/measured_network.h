/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What messages between the ranks at hand cost.
 */
#ifndef FARFIELD_PARALLEL_MEASURED_NETWORK_H
#define FARFIELD_PARALLEL_MEASURED_NETWORK_H

#include "parallel/ranks.h"
#include "plan/network.h"

namespace farfield
{

/*! \brief Times messages through the hosts, for less than a tenth of a second. All ranks together.
 *
 *  \param[in] realSize  bytes of a number
 *  \returns the same on all ranks: of the slowest; without domains and threads */
Network measuredNetwork(Ranks* ranks, int realSize);

//! The same of a usual network, where nothing may depend on timings.
Network usualNetwork(int realSize);

//! Of GPUs that pass messages by themselves. \param[in] cost  of DeviceCommunicator
Network networkOfGpus(const MessageCost& cost, int realSize);

} // namespace farfield

#endif
