/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What ranks would send each other in systems that fit no machine at hand.
 */
#ifndef FARFIELD_TESTS_BENCH_RANKS_AT_SCALE_H
#define FARFIELD_TESTS_BENCH_RANKS_AT_SCALE_H

namespace farfield
{
namespace bench
{

/*! \brief Prints messages and bytes per rank and evaluation, by the library's cost model and by an
 *         estimate for PME, and their times on the networks that the model takes as usual.
 *
 *  Tables of docs/ranks.md, in single precision, for water in a cube. */
void printRanksAtScale();

} // namespace bench
} // namespace farfield

#endif
