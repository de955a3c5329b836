/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batches/batch_records.h"

#include <string>

#include "farfield/error.h"

namespace farfield
{

void throwRefusal(const BatchStatus& status)
{
    const struct
    {
        int system;
        const char* reason;
    } refusals[] = {
        { status.badInput, "an offset or box vectors that make no sense" },
        { status.badParticle, "a position or a charge that is not finite or too large" },
        { status.tooHigh, "box vectors for which its slab is too high" },
        { status.badError, "an error that is not finite or is negative" },
        { status.tooLong, "a box that is too flat or too long" },
        { status.contact, "two charges at one place" },
    };
    for (const auto& refusal : refusals)
    {
        if (refusal.system != c_noSystem)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "An earlier call of this asynchronous batch is refused: system "
                                + std::to_string(refusal.system) + " has " + refusal.reason
                                + ". All results of that call are not a number. A batch that is "
                                  "not asynchronous says more of it.");
        }
    }
}

} // namespace farfield
