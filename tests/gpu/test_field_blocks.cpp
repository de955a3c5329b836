/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// What ranks send each other of fields and spectra that are dealt out; runs on the host.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "m2l_periodic/index.h"
#include "ranks/field_blocks.h"

namespace farfield
{
namespace
{

//! Grids with representatives as PeriodicM2lOperators has them: odd, even and flat ones.
std::vector<WaveGrid> waveGrids()
{
    std::vector<WaveGrid> grids;
    for (const Int3& N : { Int3{ 8, 6, 4 },
                           Int3{ 7, 5, 9 },
                           Int3{ 5, 8, 1 },
                           Int3{ 6, 1, 1 },
                           Int3{ 1, 1, 5 },
                           Int3{ 2, 3, 2 },
                           Int3{ 1, 1, 1 } })
    {
        const int half = N[2] / 2 + 1;
        grids.push_back(waveGrid(N, { N[0] / 2 + 1, N[1] / 2 + 1, half }, 4));
        grids.push_back(waveGrid(N, { N[0], N[1], half }, 1));
    }
    return grids;
}

std::string nameOf(const WaveGrid& w)
{
    std::string name = "copies " + std::to_string(w.copies) + ", cells";
    for (const int length : w.lengths)
    {
        name += " " + std::to_string(length);
    }
    return name;
}

//! The representatives of a share, with all copies, are stored where storedWaves() says, once each.
TEST(GpuSharedClosure, WaveVectorsOfASlabAreThoseOfItsRepresentatives)
{
    for (const WaveGrid& w : waveGrids())
    {
        for (const int ranks : { 1, 2, 3, 5 })
        {
            SCOPED_TRACE(nameOf(w) + ", ranks " + std::to_string(ranks));
            std::vector<int> all;
            for (int r = 0; r < ranks; r++)
            {
                const Share share{ r, ranks };
                const int first = share.begin(w.ranges[0]), last = share.end(w.ranges[0]);
                std::vector<int> expected;
                for (int z = first; z < last; z++)
                {
                    for (int y = 0; y < w.ranges[1]; y++)
                    {
                        for (int x = 0; x < w.ranges[2]; x++)
                        {
                            for (int copy = 0; copy < w.copies; copy++)
                            {
                                if (const int wave = w.wave(z, y, x, copy); wave >= 0)
                                {
                                    expected.push_back(wave);
                                }
                            }
                        }
                    }
                }
                std::sort(expected.begin(), expected.end());
                EXPECT_EQ(storedWaves(w, first, last), expected);
                all.insert(all.end(), expected.begin(), expected.end());
            }
            std::sort(all.begin(), all.end());
            std::vector<int> once(w.stored[0] * w.stored[1] * w.stored[2]);
            std::iota(once.begin(), once.end(), 0);
            EXPECT_EQ(all, once);
        }
    }
}

//! Blocks of the launches for all slabs are those of all representatives.
TEST(GpuSharedClosure, BlocksOfSlabsAreThoseOfTheWhole)
{
    for (const WaveGrid& w : waveGrids())
    {
        for (int width = 1; width <= 4; width++)
        {
            const int ofPlane = w.ranges[1] * ((w.ranges[2] + width - 1) / width);
            std::vector<int> seen;
            for (int z = 0; z < w.ranges[0]; z++)
            {
                for (int b = 0; b < ofPlane; b++)
                {
                    const BlockOfWaves block(w, width, z * ofPlane + b);
                    for (int member = 0; member < width; member++)
                    {
                        if (block.has(member))
                        {
                            seen.push_back(block.representative(member));
                            EXPECT_EQ(seen.back() / (w.ranges[1] * w.ranges[2]), z);
                        }
                    }
                }
            }
            std::vector<int> once(w.ranges[0] * w.ranges[1] * w.ranges[2]);
            std::iota(once.begin(), once.end(), 0);
            EXPECT_EQ(seen, once) << nameOf(w) << ", width " << width;
        }
    }
}

//! Takes blocks out of fields, [fields][stride], as packFields() does.
std::vector<int> packed(const FieldBlocks& blocks, const std::vector<int>& fields, int stride)
{
    std::vector<int> buffer(blocks.size(), -1);
    for (const FieldBlock& b : blocks.blocks())
    {
        for (int f = 0; f < b.fields; f++)
        {
            for (int k = 0; k < b.places; k++)
            {
                buffer[b.at(f, k)] =
                        fields[(b.first + f) * stride + blocks.places()[b.firstPlace + k]];
            }
        }
    }
    return buffer;
}

//! Puts them back.
void unpack(const FieldBlocks& blocks,
            const std::vector<int>& buffer,
            int stride,
            std::vector<int>* fields)
{
    for (const FieldBlock& b : blocks.blocks())
    {
        for (int f = 0; f < b.fields; f++)
        {
            for (int k = 0; k < b.places; k++)
            {
                (*fields)[(b.first + f) * stride + blocks.places()[b.firstPlace + k]] =
                        buffer[b.at(f, k)];
            }
        }
    }
}

//! Fields and places of ranks; places may overlap, and a rank may have none.
struct Dealt
{
    int count; //!< fields
    int stride;
    std::vector<std::vector<int>> places;
    std::vector<Share> shares; //!< of the fields

    FieldBlocks theirs(int r) const
    {
        return fieldsOfOthers(shares[r], r, count, places, sizeof(int), 1);
    }
    FieldBlocks ours(int r) const
    {
        return placesOfOthers(shares[r], r, count, places, sizeof(int), 1);
    }
    bool has(int rank, int field) const
    {
        return field >= shares[rank].begin(count) && field < shares[rank].end(count);
    }
};

//! \param[in] inShares  of the fields, otherwise all ranks have them all
Dealt dealt(int ranks, int count, bool inShares, unsigned int seed)
{
    std::mt19937 random(seed);
    std::bernoulli_distribution isThere(0.6);
    Dealt all = { count, 37, {}, {} };
    for (int r = 0; r < ranks; r++)
    {
        all.places.emplace_back();
        for (int place = 0; place < 33 && r != 1; place++) // the second has none
        {
            if (isThere(random))
            {
                all.places.back().push_back(place);
            }
        }
        all.shares.push_back(inShares ? Share{ r, ranks } : Share{});
    }
    return all;
}

//! Sends the blocks of all ranks. \returns [ranks] what each has received
std::vector<std::vector<int>> exchanged(const std::vector<FieldBlocks>& sent,
                                        const std::vector<std::vector<int>>& buffers,
                                        const std::vector<FieldBlocks>& received)
{
    const int ranks = static_cast<int>(sent.size());
    std::vector<std::vector<int>> result;
    for (int to = 0; to < ranks; to++)
    {
        result.emplace_back(received[to].size(), -1);
        for (int from = 0; from < ranks; from++)
        {
            if (from == to)
            {
                EXPECT_EQ(sent[from].stretches()[to].size, 0U);
                continue;
            }
            const Stretch out = sent[from].stretches()[to], in = received[to].stretches()[from];
            EXPECT_EQ(out.size, in.size);
            EXPECT_EQ(out.begin % 16, 0U);
            EXPECT_EQ(in.begin % 16, 0U);
            std::copy_n(buffers[from].begin() + out.begin / sizeof(int),
                        out.size / sizeof(int),
                        result[to].begin() + in.begin / sizeof(int));
        }
    }
    return result;
}

//! Of every rank, field and place another number.
int numberOf(int rank, int field, int place)
{
    return 100000 * rank + 100 * field + place;
}

//! What ranks have of fields goes to those that have these, and back, whole on all or dealt out.
TEST(GpuSharedClosure, FieldsPassToThoseThatHaveThemAndBack)
{
    for (const bool inShares : { true, false })
    {
        for (const int ranks : { 2, 3, 8 })
        {
            for (const int count : { 1, 4, 25 })
            {
                SCOPED_TRACE(std::to_string(count) + " fields, ranks " + std::to_string(ranks)
                             + (inShares ? " in shares" : " whole"));
                const Dealt all = dealt(ranks, count, inShares, 7 * ranks + count);
                std::vector<FieldBlocks> theirs, ours;
                std::vector<std::vector<int>> fields, buffers;
                for (int r = 0; r < ranks; r++)
                {
                    theirs.push_back(all.theirs(r));
                    ours.push_back(all.ours(r));
                    fields.emplace_back(count * all.stride);
                    for (int f = 0; f < count; f++)
                    {
                        for (int k = 0; k < all.stride; k++)
                        {
                            fields[r][f * all.stride + k] = numberOf(r, f, k);
                        }
                    }
                    buffers.push_back(packed(theirs[r], fields[r], all.stride));
                    for (const FieldBlock& b : theirs[r].blocks())
                    {
                        buffers[r][b.end()] = -2 - r; // goes along
                    }
                }
                // to those that have the fields: all places of all ranks come
                const auto received = exchanged(theirs, buffers, ours);
                for (int r = 0; r < ranks; r++)
                {
                    int other = 0;
                    for (const FieldBlock& b : ours[r].blocks())
                    {
                        other += other == r ? 1 : 0;
                        EXPECT_EQ(received[r][b.end()], -2 - other);
                        ASSERT_EQ(b.first, all.shares[r].begin(count));
                        ASSERT_EQ(b.fields, all.shares[r].end(count) - b.first);
                        ASSERT_EQ(b.places, static_cast<int>(all.places[other].size()));
                        for (int f = 0; f < b.fields; f++)
                        {
                            for (int k = 0; k < b.places; k++)
                            {
                                EXPECT_EQ(received[r][b.at(f, k)],
                                          numberOf(other, b.first + f, all.places[other][k]));
                            }
                        }
                        other++;
                    }
                }
                if (!inShares)
                {
                    continue;
                }
                // and back: each gets its places of all fields from those that have these
                for (int r = 0; r < ranks; r++)
                {
                    buffers[r] = packed(ours[r], fields[r], all.stride);
                }
                const auto returned = exchanged(ours, buffers, theirs);
                for (int r = 0; r < ranks; r++)
                {
                    unpack(theirs[r], returned[r], all.stride, &fields[r]);
                    for (int f = 0; f < count; f++)
                    {
                        int owner = 0;
                        while (!all.has(owner, f))
                        {
                            owner++;
                        }
                        for (int k = 0; k < all.stride; k++)
                        {
                            const auto& own   = all.places[r];
                            const bool isOurs = std::find(own.begin(), own.end(), k) != own.end();
                            EXPECT_EQ(fields[r][f * all.stride + k],
                                      numberOf(isOurs ? owner : r, f, k));
                        }
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace farfield
