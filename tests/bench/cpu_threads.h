/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How the stages of the CPU backend scale with threads.
 */
#ifndef FARFIELD_BENCH_CPU_THREADS_H
#define FARFIELD_BENCH_CPU_THREADS_H

#include <string>
#include <vector>

namespace farfield
{
namespace bench
{

//! What to measure.
struct ThreadsCase
{
    std::vector<int> threads; //!< numbers of threads, the first is what others compare with
    std::vector<int> water;   //!< atoms of each box of water
    std::vector<int> protein; //!< atoms of each protein in water
    int evaluations = 200;    //!< that count
    std::string json;         //!< file to write; empty: none
    std::string command;      //!< how the program was called
};

/*! \brief Prints a table for each system, and writes all of them to the JSON file.
 *
 *  Cells and order are those that are chosen with the first number of threads. */
void measureThreads(const ThreadsCase& what);

} // namespace bench
} // namespace farfield

#endif
