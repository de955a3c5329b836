/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Near functions with arrays in device memory, also in CUDA graphs: what the CPU gives, and
 *         what arrays of the host give.
 */
#include "farfield/farfield_cuda.h"

#include <cmath>

#include <memory>
#include <vector>

#include "device_caller.h"
#include "near_systems.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class DeviceNearFunctions : public ConfiguredTest<Config>
{
protected:
    using Real = typename Config::Real;

    //! Smeared charges. Near cells hold the range of 0.3 nm, or not the one of 0.6 nm.
    static Options options(double cellSize = 0.5)
    {
        Options options     = Config::options();
        options.cellSize    = cellSize;
        options.directRange = 1;
        options.order       = 8;
        return options;
    }
    static constexpr double width(double cellSize) { return cellSize < 0.5 ? 0.1 : 0.05; }
    //! Charges at random places, some of which are at one place, after so many steps.
    static System systemAt(int step, double cellSize, std::vector<double>* widths)
    {
        System system     = overlapping(namedBox("triclinic", 8.0), width(cellSize), widths, 300);
        system.exclusions = { { 4, 5 }, { 6, 100 }, { 1, 35 }, { 20, 21 } };
        for (int i = 0; i < system.size(); ++i)
        {
            for (int k = 0; k < 3; ++k)
            {
                system.positions[i][k] += 0.001 * step * std::sin(0.1 * i + k);
            }
        }
        *widths = roundedWidths<Real>(*widths);
        return rounded<Real>(system);
    }
    //! Of sums in another order.
    static void expectForces(const std::vector<Vector>& forces, const std::vector<Vector>& wanted)
    {
        EXPECT_LE(relativeError(forces, wanted), 4 * roundingFloor<Real>());
    }
};
TYPED_TEST_SUITE(DeviceNearFunctions, GpuConfigurations);

//! Steps one by one, and as a graph; totals now and then; other widths on the way.
TYPED_TEST(DeviceNearFunctions, GiveTheForcesOfTheCpu)
{
    using Real = typename TypeParam::Real;
    for (const Law& law : laws())
    {
        if (law.function.function != PairFunction::Gaussian)
        {
            continue;
        }
        for (const double cellSize : { 0.5, 0.25 })
        {
            SCOPED_TRACE(law.name + ", cells of " + std::to_string(cellSize) + " nm");
            std::vector<double> widths;
            System system         = this->systemAt(0, cellSize, &widths);
            const Options options = this->options(cellSize);
            Caller<Real> caller(system, options);
            Solver<Real> cpu(optionsOnCpu(options)), onHost(options);
            load(cpu, system);
            load(onHost, system);
            const auto setAll = [&](double factor)
            {
                std::vector<double> scaled = widths;
                for (double& w : scaled)
                {
                    w *= factor;
                }
                for (Solver<Real>* solver : { &caller.solver(), &cpu, &onHost })
                {
                    setWidths(*solver, law.function, scaled);
                }
            };
            setAll(1);
            std::unique_ptr<Graph> graph;
            for (int step = 0; step < 16; ++step)
            {
                SCOPED_TRACE(step);
                if (step == 12)
                {
                    setAll(0.7);
                }
                std::vector<double> unused;
                system = this->systemAt(step, cellSize, &unused);
                caller.put(system);
                Request request = forcesAt(step);
                request.energy = request.virial = step % 4 == 3;
                if (step >= 6 && step != 12 && !request.energy)
                {
                    if (!graph || mustRecordAgain(caller.solver()))
                    {
                        graph = caller.record(request);
                    }
                    caller.launch(*graph);
                }
                else
                {
                    caller.enqueue(request);
                }
                const std::vector<Vector> forces = caller.forces();
                const Totals totals              = caller.wait();
                Request ofAll                    = request;
                ofAll.energy = ofAll.virial = true;
                this->expectForces(forces, evaluate(cpu, system, ofAll).forces);
                if (request.energy)
                {
                    const Evaluation expected = evaluate(onHost, system, ofAll);
                    const double rounding     = 4 * pairRounding<Real>(system);
                    EXPECT_NEAR(totals.energy, expected.energy, rounding);
                    EXPECT_LE(largestDifference(evaluationOf(totals, std::vector<Real>()).virial,
                                                expected.virial),
                              rounding);
                }
            }
        }
    }
}

TYPED_TEST(DeviceNearFunctions, GiveThePotentialsOfTheCpu)
{
    using Real    = typename TypeParam::Real;
    const Law law = laws()[0];
    for (const double cellSize : { 0.5, 0.25 })
    {
        std::vector<double> widths;
        const System system   = this->systemAt(0, cellSize, &widths);
        const Options options = this->options(cellSize);
        Solver<Real> gpu(options), cpu(optionsOnCpu(options));
        for (Solver<Real>* solver : { &gpu, &cpu })
        {
            load(*solver, system);
            setWidths(*solver, law.function, widths);
        }
        const std::vector<Real> x = flatPositions<Real>(system);
        const Box box(system.box);
        std::vector<Real> forces(x.size()), wanted(system.size());
        cpu.evaluate(x.data(), box.rows, forces.data(), {}, wanted.data());
        // at a site where there are four particles, beside another, and between
        std::vector<Real> at = { x[3], x[4], x[5], x[9] + Real(0.03), x[10], x[11], 1, 1, 1 };
        std::vector<Real> wantedAt(3), wantedFields(9);
        cpu.evaluateAt(x.data(), box.rows, at.data(), 3, wantedAt.data(), wantedFields.data());

        DeviceArray<Real> there(x), f(x.size()), potentials(system.size());
        DeviceArray<Real> points(at), atPoints(3), fields(9);
        const Clock clock;
        const auto* positions = static_cast<const Real*>(there.data());
        Request request;
        request.replaceForces = true;
        enqueue(gpu,
                positions,
                box.rows,
                f.data(),
                request,
                clock.stream(),
                Outputs<Real>{ potentials.data() });
        wait(gpu);
        const auto expectSame =
                [&](const std::vector<Real>& values, const std::vector<Real>& expected, double size)
        {
            for (size_t k = 0; k < expected.size(); ++k)
            {
                EXPECT_NEAR(values[k], expected[k], 10 * roundingFloor<Real>() * size) << k;
            }
        };
        // of neighbours at 0.05 nm
        expectSame(potentials.get(), wanted, c_coulomb / 0.05);
        evaluateAt(gpu,
                   positions,
                   box.rows,
                   static_cast<const Real*>(points.data()),
                   3,
                   atPoints.data(),
                   fields.data(),
                   Request(),
                   clock.stream());
        expectSame(atPoints.get(), wantedAt, c_coulomb / 0.03);
        expectSame(fields.get(), wantedFields, c_coulomb / (0.03 * 0.03));
    }
}

} // namespace
} // namespace test
} // namespace farfield
