/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief farfield_gpu_benchmark accuracy: errors against double-precision PME or the CPU.
 */
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "farfield/farfield.h"

#include "bench_systems.h"
#include "command_line.h"
#include "gpu_benchmarks.h"

namespace farfield
{
namespace bench
{
namespace
{

using nlohmann::json;

//! Charges and exclusions must have been loaded.
template<class Real>
Totals evaluate(Solver<Real>& solver,
                const System& system,
                const Request& request,
                std::vector<double>* forces)
{
    const std::vector<Real> x = converted<Real>(system.x);
    std::vector<Real> f(x.size(), Real(0));
    const Totals totals = solver.evaluate(x.data(), system.box, f.data(), request);
    forces->assign(f.begin(), f.end());
    return totals;
}

//! Forces of the CPU backend in double precision at a high order.
Reference converge(const System& system, int order)
{
    Options options;
    options.device      = Device::Cpu;
    options.order       = order;
    options.directRange = 2;
    options.accuracy    = 1e-10;
    Reference r;
    r.system = system;
    Solver<double> solver(options);
    load(solver, system);
    const Totals totals = evaluate(solver, system, Request(), &r.forces);
    r.energy            = totals.energy;
    std::copy_n(&totals.virial[0][0], 9, &r.virial[0][0]);
    r.rmsTotalForce = rms(r.forces, system.size());
    return r;
}

//! Errors over positions of the grid.
struct Errors
{
    double force  = 0; //!< RMS over particles and positions, relative to Reference::rmsTotalForce
    double energy = 0; //!< the largest, kJ/mol
    double virial = 0; //!< the largest of an element, kJ/mol
};

template<class Real>
Errors errorsOf(Solver<Real>& solver, const Reference& reference, int shifts)
{
    const System& system = reference.system;
    load(solver, system);
    Errors errors;
    double square = 0;
    for (int k = 0; k < shifts; k++)
    {
        Request request;
        // places of the grid that fill the cell evenly
        const double step[3] = { 0.8191725134, 0.6710436067, 0.5497004779 };
        for (int axis = 0; axis < 3; axis++)
        {
            request.gridOffset[axis] = k * step[axis] - std::floor(k * step[axis]);
        }
        std::vector<double> f;
        const Totals totals = evaluate(solver, system, request, &f);
        for (size_t i = 0; i < f.size(); i++)
        {
            f[i] -= reference.forces[i];
        }
        square += std::pow(rms(f, system.size()) / reference.rmsTotalForce, 2) / shifts;
        errors.energy = std::max(errors.energy, std::abs(totals.energy - reference.energy));
        for (int i = 0; i < 9; i++)
        {
            errors.virial = std::max(
                    errors.virial,
                    std::abs(totals.virial[i / 3][i % 3] - reference.virial[i / 3][i % 3]));
        }
    }
    errors.force = std::sqrt(square);
    return errors;
}

//! The cases of one system.
class AccuracyCases
{
public:
    //! \param[in] norm  what Reference::rmsTotalForce is
    AccuracyCases(const AccuracyBenchmark& benchmark,
                  const CommonOptions& common,
                  Report* report,
                  const Reference& reference,
                  const char* norm) :
        benchmark_(benchmark),
        common_(common), report_(report), reference_(reference), norm_(norm)
    {
    }

    void addAll() const
    {
        for (const std::string& engine : benchmark_.engines)
        {
            for (int ws : benchmark_.ranges)
            {
                for (int order : benchmark_.orders)
                {
                    for (bool leastSquares : { true, false })
                    {
                        if (!report_->timeLeft())
                        {
                            return;
                        }
                        Options options;
                        options.order        = order;
                        options.directRange  = order < 0 ? 0 : ws;
                        options.cellSize     = benchmark_.cellSize;
                        options.accuracy     = benchmark_.accuracy;
                        options.leastSquares = leastSquares;
                        options.m2l          = engineNamed(engine);
                        addBackends(options);
                    }
                }
            }
        }
    }

private:
    void addBackends(Options options) const
    {
        options.device = Device::Gpu;
        add<float>(options);
        if (common_.doublePrecision)
        {
            add<double>(options);
        }
        if (benchmark_.cpu)
        {
            options.device = Device::Cpu;
            add<float>(options);
        }
    }

    template<class Real>
    void add(const Options& options) const
    {
        const System& system = reference_.system;
        const char* device   = options.device == Device::Gpu ? "GPU" : "CPU";
        const json entry     = { { "system", system.name },
                                 { "atoms", system.size() },
                                 { "relative_to", norm_ },
                                 { "backend", device },
                                 { "precision", test::precisionName<Real>() },
                                 { "engine", nameOf(options.m2l) },
                                 { "wanted_order", options.order },
                                 { "wanted_range", options.directRange },
                                 { "least_squares", options.leastSquares } };
        const std::string label =
                system.name + " " + device + " " + test::precisionName<Real>() + " "
                + nameOf(options.m2l)
                + (options.order < 0 ? " default" : " p " + std::to_string(options.order))
                + (options.leastSquares ? " least squares: " : " truncated: ");
        runCase(report_,
                entry,
                label,
                [&](json* result)
                {
                    Solver<Real> solver(options);
                    const Errors errors      = errorsOf(solver, reference_, benchmark_.shifts);
                    const Setup setup        = solver.setup();
                    (*result)["setup"]       = describe(setup);
                    (*result)["force_error"] = errors.force;
                    (*result)["energy_error_per_atom"] = errors.energy / system.size();
                    (*result)["virial_error_per_atom"] = errors.virial / system.size();
                    return text("force %.2e, ", errors.force)
                           + text("energy %.1e kJ/mol per atom, ", errors.energy / system.size())
                           + text("virial %.1e; ", errors.virial / system.size())
                           + std::to_string(setup.order) + "/" + std::to_string(setup.directRange)
                           + text(" %.3f nm ", setup.cellSize) + nameOf(setup.m2l);
                });
    }

    const AccuracyBenchmark& benchmark_;
    const CommonOptions& common_;
    Report* report_;
    const Reference& reference_;
    const char* norm_;
};

} // namespace

void AccuracyBenchmark::run(const CommonOptions& common, Report* report) const
{
    for (const std::string& path : references)
    {
        AccuracyCases(*this, common, report, readReference(path), "total force").addAll();
    }
    for (size_t k = 0; k < (references.empty() ? sizes.size() : 0); k++)
    {
        const System system = waterBox(sizes[k], common.seed);
        AccuracyCases(*this, common, report, converge(system, referenceOrder), "Coulomb force")
                .addAll();
    }
}

} // namespace bench
} // namespace farfield
