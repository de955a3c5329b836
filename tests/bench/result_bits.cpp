/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Prints a hash of the CPU's results for every kind of system, to compare two builds bit
 *         for bit.
 */
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <algorithm>
#include <string>
#include <vector>

#include "farfield/farfield.h"

#include "command_line.h"
#include "solver_input.h"
#include "systems.h"

namespace farfield
{
namespace test
{
namespace
{

//! The hash FNV-1a of everything that is added.
class Hash
{
public:
    template<class T>
    void add(const T* values, size_t count)
    {
        std::vector<unsigned char> bytes(count * sizeof(T));
        if (count > 0)
        {
            std::memcpy(bytes.data(), values, bytes.size());
        }
        for (unsigned char byte : bytes)
        {
            value_ = (value_ ^ byte) * 0x100000001b3ULL;
        }
    }
    unsigned long long value() const { return value_; }

private:
    uint64_t value_ = 0xcbf29ce484222325ULL;
};

//! Results in the box, in a box that is strained, one that is larger, and in the first again.
template<class Real>
Hash resultsOf(const System& system, const Options& options)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    Solver<Real> solver(options);
    load(solver, system, false);
    Hash hash;
    int step = 0;
    for (const auto& [scale, strain] :
         { std::make_pair(1.0, 0.0), { 1.0, 0.001 }, { 1.01, 0.0 }, { 1.0, 0.0 } })
    {
        double box[3][3];
        for (int i = 0; i < 3; i++)
        {
            for (int j = 0; j < 3; j++)
            {
                box[i][j] = scale * system.box[i][j] * (j == 0 ? 1 + strain : 1);
            }
        }
        std::vector<Real> forces(x.size(), Real(0));
        Request request;
        request.step        = step++;
        const Totals totals = solver.evaluate(x.data(), box, forces.data(), request);
        hash.add(forces.data(), forces.size());
        hash.add(&totals.energy, 1);
        hash.add(&totals.virial[0][0], 9);
    }
    return hash;
}

template<class Real>
void print(const SystemKind& kind)
{
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        for (const bool leastSquares : { true, false })
        {
            Options options;
            options.device       = Device::Cpu;
            options.threads      = 2;
            options.m2l          = engine;
            options.accuracy     = 1e-3;
            options.leastSquares = leastSquares;
            std::string result;
            try
            {
                char text[32];
                std::snprintf(text,
                              sizeof(text),
                              "%016llx",
                              resultsOf<Real>(kind.make().system, options).value());
                result = text;
            }
            catch (const Error& error)
            {
                result = error.what();
            }
            std::printf("%-28s %-6s %-9s %-13s %s\n",
                        kind.name.c_str(),
                        precisionName<Real>(),
                        nameOf(engine),
                        leastSquares ? "least-squares" : "truncated",
                        result.c_str());
            std::fflush(stdout);
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield

int main(int argc, char** argv)
{
    using namespace farfield::test;
    if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
    {
        std::fprintf(stderr, "Usage: %s [part of the names of the systems]\n", argv[0]);
        return 2;
    }
    for (const SystemKind& kind : systemKinds())
    {
        if (argc < 2 || kind.name.find(argv[1]) != std::string::npos)
        {
            print<float>(kind);
            print<double>(kind);
        }
    }
    return 0;
}
