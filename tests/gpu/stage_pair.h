/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The stages of both backends side by side: cases, what every stage left behind, and what
 *         results may differ by.
 */
#ifndef FARFIELD_TESTS_GPU_STAGE_PAIR_H
#define FARFIELD_TESTS_GPU_STAGE_PAIR_H

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <algorithm>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>

#include "backend/gpu_backend.h"
#include "box_matrix.h"
#include "cells/cell_shape.h"
#include "reference.h"
#include "test_support.h"

namespace farfield
{
namespace test
{

//! Particles in a box and how it is divided.
struct Case
{
    std::string box; //!< see allBoxes(); 8 nm^3
    int n;           //!< particles
    double edge;     //!< wanted edge of a leaf cell, nm
    int levels;      //!< 1: no hierarchy
    int order;       //!< p
    int ws         = 1;
    bool reduced   = true; //!< least-squares operators
    double droplet = 0;    //!< if > 0: all particles within this distance of a point, nm
    double charge  = 0;    //!< net charge, e
};

inline std::string describe(const Case& c)
{
    std::ostringstream text;
    text << c.box << ", N = " << c.n << ", edge " << c.edge << ", levels " << c.levels
         << ", p = " << c.order << ", ws = " << c.ws
         << (c.reduced ? ", least squares" : ", truncated") << (c.droplet > 0 ? ", droplet" : "")
         << (c.charge != 0 ? ", charged" : "");
    return text.str();
}

/*! \brief The cases to run: all, or every n-th from the k-th with FARFIELD_TEST_SHARD=k/n.
 *
 *  compute-sanitizer makes kernels slow by up to a thousand times: shards can run side by side. */
template<class T>
std::vector<T> chosen(const std::vector<T>& cases)
{
    const char* shard = std::getenv("FARFIELD_TEST_SHARD");
    int first = 0, count = 1;
    if (shard == nullptr)
    {
        return cases;
    }
    if (std::sscanf(shard, "%d/%d", &first, &count) != 2 || first < 0 || count < 1)
    {
        ADD_FAILURE() << "FARFIELD_TEST_SHARD=" << shard << " is not k/n";
        return {};
    }
    std::vector<T> result;
    for (size_t k = first; k < cases.size(); k += count)
    {
        result.push_back(cases[k]);
    }
    EXPECT_FALSE(result.empty()) << "none of " << cases.size() << " cases is in shard " << shard;
    return result;
}

//! Random particles of a case; without exclusions they may be as close as they happen to be.
inline System particlesOf(const Case& c, unsigned seed = 1)
{
    System system;
    system.box = namedBox(c.box, 8.0);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    while (system.size() < c.n)
    {
        Vector r = { uniform(random), uniform(random), uniform(random) };
        if (c.droplet > 0)
        {
            if (r[0] * r[0] + r[1] * r[1] + r[2] * r[2] > 1)
            {
                continue;
            }
            // around the corner of the box, so that it is in pieces
            r = { c.droplet * r[0], c.droplet * r[1], c.droplet * r[2] };
        }
        else
        {
            // images other than the first one are legal
            const Vector f = { 1.5 * r[0], 1.5 * r[1], 1.5 * r[2] };
            for (int k = 0; k < 3; ++k)
            {
                r[k] = f[0] * system.box[0][k] + f[1] * system.box[1][k] + f[2] * system.box[2][k];
            }
        }
        system.positions.push_back(r);
        system.charges.push_back(uniform(random));
    }
    const double net = system.netCharge();
    for (double& q : system.charges)
    {
        q += (c.charge - net) / c.n;
    }
    return system;
}

inline Discretisation discretisationOf(const Case& c, const System& system, M2lEngine engine)
{
    Discretisation d;
    d.order        = c.order;
    d.ws           = c.ws;
    d.levels       = c.levels;
    d.leastSquares = c.reduced;
    d.engine       = engine;
    d.referenceBox = matrixOf(system.box);
    d.leafCells    = chooseCells(d.referenceBox, c.edge, c.ws, 1 << (c.levels - 1));
    return d;
}

//! What every stage left behind.
struct Record
{
    std::vector<std::vector<double>> multipoles; //!< per level
    std::vector<std::vector<double>> handedDown; //!< locals after L2L, per level (0: none)
    std::vector<std::vector<double>> locals;     //!< after M2L, per level
    std::vector<double> forces;                  //!< on particles
    Totals totals;
};

//! Runs the stages in the order of the solver and looks at the expansions in between.
template<class Real>
Record record(Backend<Real>& backend, const System& system, int levels, const Request& request)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    Record r;
    do
    {
        r = Record();
        r.multipoles.resize(levels);
        r.handedDown.resize(levels);
        r.locals.resize(levels);
        std::vector<Real> f(x.size(), Real(0));
        backend.setTask({ x.data(), nullptr, f.data(), nullptr, request });
        backend.sort();
        backend.exclusions();
        if (backend.hasNearFunction())
        {
            backend.nearFunction();
        }
        backend.p2p();
        backend.p2m();
        r.multipoles[levels - 1] = backend.multipoles(levels - 1);
        for (int level = levels - 1; level > 0; --level)
        {
            backend.m2m(level);
            r.multipoles[level - 1] = backend.multipoles(level - 1);
        }
        backend.m2l(0);
        r.locals[0] = backend.locals(0);
        for (int level = 1; level < levels; ++level)
        {
            backend.l2l(level - 1);
            r.handedDown[level] = backend.locals(level);
            backend.m2l(level);
            r.locals[level] = backend.locals(level);
        }
        backend.l2p();
        r.totals = backend.collect();
        r.forces.assign(f.begin(), f.end());
    } while (backend.mustRepeat());
    return r;
}

//! Both backends with the same particles and operators.
template<class Real>
class Pair
{
public:
    Pair(const Case& c,
         const System& system,
         M2lEngine engine  = M2lEngine::Hierarchy,
         bool reproducible = false) :
        case_(c),
        system_(rounded<Real>(system))
    {
        backends_[0] = makeCpuBackend<Real>(c_coulomb, 2);
        backends_[1] = makeGpuBackend<Real>(c_coulomb, omp_get_max_threads(), reproducible, -1);
        const std::vector<Real> q(system_.charges.begin(), system_.charges.end());
        std::vector<int> offsets, partners;
        compressedRows(system_, true, &offsets, &partners);
        for (auto& backend : backends_)
        {
            backend->setCharges(q.data(), system_.size());
            backend->setExclusions(offsets.data(), partners.data(), system_.size());
            // the CPU does not know the engines of the GPU
            backend->build(discretisationOf(
                    c, system_, backend == backends_[0] ? M2lEngine::Hierarchy : engine));
        }
    }
    Backend<Real>& cpu() { return *backends_[0]; }
    Backend<Real>& gpu() { return *backends_[1]; }
    const System& system() const { return system_; }
    void setSystem(const System& system) { system_ = rounded<Real>(system); }

    //! Runs both.
    void run(const Request& request = {})
    {
        onCpu = record(cpu(), system_, case_.levels, request);
        onGpu = record(gpu(), system_, case_.levels, request);
    }

    Record onCpu, onGpu;

private:
    Case case_;
    System system_;
    std::unique_ptr<Backend<Real>> backends_[2];
};

inline double largest(const std::vector<double>& values)
{
    double result = 0;
    for (const double v : values)
    {
        result = std::max(result, std::abs(v));
    }
    return result;
}

/*! \brief Expects equal arrays up to rounding.
 *
 *  Both sides round sums of \p terms products in different order; roundings are independent, so
 *  their sum grows with the root of their number.
 *  \param[in] size  of a term; at least the largest element */
template<class Real>
void expectSame(const std::vector<double>& gpu,
                const std::vector<double>& cpu,
                double terms,
                const char* what,
                double size = 0)
{
    ASSERT_EQ(gpu.size(), cpu.size()) << what;
    const double bound = roundingFloor<Real>() * std::sqrt(terms) * std::max(size, largest(cpu));
    size_t worst       = 0;
    double difference  = 0;
    for (size_t i = 0; i < gpu.size(); ++i)
    {
        const double d = std::abs(gpu[i] - cpu[i]);
        if (!(d <= difference)) // so that NaN is the worst
        {
            difference = d;
            worst      = i;
        }
    }
    EXPECT_LE(difference, bound) << what << ": element " << worst << " of " << gpu.size() << " is "
                                 << gpu[worst] << " on the GPU and " << cpu[worst] << " on the CPU";
}

/*! \brief Leaves out the cells that the CPU does not keep.
 *
 *  Their local expansions are zero there; the GPU keeps all eight children of an occupied cell. */
inline std::vector<double> onlyPresent(std::vector<double> gpu,
                                       const std::vector<double>& cpu,
                                       int order)
{
    const size_t n = coefficientCount(order);
    for (size_t cell = 0; cell + n <= std::min(gpu.size(), cpu.size()); cell += n)
    {
        if (std::all_of(&cpu[cell], &cpu[cell] + n, [](double v) { return v == 0; }))
        {
            std::fill(&gpu[cell], &gpu[cell] + n, 0.0);
        }
    }
    return gpu;
}

//! Elementwise a - b.
inline std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b)
{
    std::vector<double> result(a);
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    {
        result[i] -= b[i];
    }
    return result;
}

/*! \brief Expects equal energies up to rounding, and virials as near as their truncation errors.
 *
 *  The far potential at a particle and its pair energies are of the size of the interaction with a
 *  neighbour; the roundings of all particles may add up, see boundsFor(). The virial of cells that
 *  are far from each other is truncated in other places by the backends: the GPU takes the strain
 *  derivative of the operators, the CPU forces on cells and operators of a lower order. Either is
 *  within the bound on the truncation error; traces follow from the energies. */
template<class Real>
void expectSameTotals(const Record& gpu, const Record& cpu, const System& system, const Case& c)
{
    double squares = 0;
    for (const double q : system.charges)
    {
        squares += q * q;
    }
    const double pairs = c_coulomb * squares / 0.2;
    // close random pairs dominate the energy that is summed
    const double size  = pairs + std::abs(cpu.totals.energy);
    const double bound = roundingFloor<Real>() * size;
    EXPECT_NEAR(gpu.totals.energy, cpu.totals.energy, bound);
    const Discretisation d = discretisationOf(c, system, M2lEngine::Hierarchy);
    Setup setup;
    setup.order       = c.order;
    setup.directRange = c.ws;
    setup.levels      = c.levels;
    setup.cells       = d.leafCells;
    setup.leafCells   = d.leafGrid(d.referenceBox).count();
    Evaluation none;
    none.forces.resize(system.size(), { 0, 0, 0 });
    const double truncation = boundsFor<Real>(system, setup, none).virial;
    double trace            = 0;
    for (int i = 0; i < 9; ++i)
    {
        trace += i % 4 == 0 ? gpu.totals.virial[i / 3][i % 3] : 0;
        // the strain derivative of a term of degree l + l' has up to as many times its size
        EXPECT_NEAR(gpu.totals.virial[i / 3][i % 3],
                    cpu.totals.virial[i / 3][i % 3],
                    (2 * c.order + 3) * bound + 2 * truncation)
                << "virial " << i / 3 << i % 3;
    }
    EXPECT_NEAR(trace, -0.5 * gpu.totals.energy, bound);
}

//! Expects equal forces, as expectSame(), and totals.
template<class Real>
void expectSameResults(const Pair<Real>& pair, const Case& c, double terms, double size = 0)
{
    expectSame<Real>(pair.onGpu.forces, pair.onCpu.forces, terms, "forces", size);
    expectSameTotals<Real>(pair.onGpu, pair.onCpu, pair.system(), c);
}

template<class Real>
class GpuStages : public ::testing::Test
{
protected:
    void SetUp() override
    {
        static const std::string c_reason = whyNot();
        if (!c_reason.empty())
        {
            GTEST_SKIP() << c_reason;
        }
    }

private:
    static std::string whyNot()
    {
        try
        {
            makeGpuBackend<Real>(c_coulomb, 1, false, -1);
            return {};
        }
        catch (const Error& error)
        {
            if (error.code() != ErrorCode::DeviceFailure)
            {
                throw;
            }
            return error.what();
        }
    }
};

using Precisions = ::testing::Types<float, double>;

//! Sizes around those of a warp and of blocks, and the shapes of boxes.
inline const std::vector<Case> c_sizes = {
    { "cube", 1, 0.6, 1, 5 },
    { "cube", 2, 0.6, 2, 5 },
    { "triclinic", 31, 0.4, 1, 2 },
    { "cube", 32, 0.5, 2, 1 },
    { "rectangular", 33, 0.3, 2, 8 },
    { "octahedron", 1000, 0.3, 2, 8 },
    { "dodecahedron_hexagon", 4097, 0.25, 2, 5 },
    { "flat", 4097, 0.2, 1, 8 },
    { "cube", 4097, 1.0, 1, 3 },  // 512 particles in a cell
    { "cube", 2500, 1.9, 1, 4 },  // one cell
    { "long", 1000, 0.15, 3, 5 }, // mostly empty cells
};

//! Hierarchies of every kind.
inline const std::vector<Case> c_trees = {
    { "cube", 500, 0.9, 2, 0 },
    { "cube", 500, 0.25, 2, 1 },
    { "rectangular", 1000, 0.25, 2, 2 },
    { "triclinic", 1000, 0.25, 2, 5 },
    { "octahedron", 2000, 0.25, 3, 5 },
    { "dodecahedron_square", 1000, 0.25, 2, 8 },
    { "cube", 1000, 0.25, 3, 8, 1, false },
    { "cube", 1000, 0.25, 2, 5, 2 },
    { "triclinic", 1000, 0.2, 2, 3, 2 },
    { "cube", 300, 1.0, 2, 8 }, // 2 x 2 x 2 cells below a single one
    { "cube", 50, 0.06, 4, 4 }, // few occupied cells
    { "triclinic", 500, 0.1, 4, 5, 1, true, 0.3 },
    { "cube", 777, 0.06, 5, 3, 1, true, 0.2 },
    { "flat", 500, 0.25, 2, 13, 1, false },
    { "cube", 300, 0.5, 2, 20, 1, false },
};

} // namespace test
} // namespace farfield

#endif
