/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ranks/field_blocks.h"

namespace farfield
{

FieldBlocks fieldsOfOthers(const Share& own,
                           int me,
                           int count,
                           const std::vector<std::vector<int>>& places,
                           size_t elementSize,
                           size_t behind)
{
    const int ranks = static_cast<int>(places.size());
    FieldBlocks blocks(ranks, elementSize, behind);
    const int first = blocks.addPlaces(places[me]);
    const auto add  = [&](const Share& share)
    { blocks.add(share.begin(count), share.end(count), first, places[me].size()); };
    if (own.parts == 1)
    {
        add(own);
    }
    for (int r = 0; r < ranks; r++)
    {
        if (r == me)
        {
            continue;
        }
        if (own.parts > 1)
        {
            add({ r, own.parts });
        }
        blocks.passes(r);
    }
    return blocks;
}

FieldBlocks placesOfOthers(const Share& own,
                           int me,
                           int count,
                           const std::vector<std::vector<int>>& places,
                           size_t elementSize,
                           size_t behind)
{
    const int ranks = static_cast<int>(places.size());
    FieldBlocks blocks(ranks, elementSize, behind);
    for (int r = 0; r < ranks; r++)
    {
        if (r != me)
        {
            const int first = blocks.addPlaces(places[r]);
            blocks.add(own.begin(count), own.end(count), first, places[r].size());
            blocks.passes(r);
        }
    }
    return blocks;
}

} // namespace farfield
