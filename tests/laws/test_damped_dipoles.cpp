/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Dipoles with near functions, against charges close to each other, which have them, too.
 */
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

//! Charges, dipoles, e nm, and widths, nm, of which some are 0.
struct Damped
{
    NearFunction function;
    Boundary boundary;
    System system;
    std::vector<Vector> dipoles;
    std::vector<double> widths;
};

template<class Real>
Damped damped(const NearFunction& function, Boundary boundary, double width, double volume)
{
    Damped d;
    d.function = function;
    d.boundary = boundary;
    d.system   = randomCharges(namedBox("cube", volume), 60, 921, 1.0, 0.15);
    std::mt19937 generator(922);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int i = 0; i < d.system.size(); ++i)
    {
        Vector mu;
        for (int k = 0; k < 3; ++k)
        {
            mu[k] = static_cast<double>(static_cast<Real>(0.04 * uniform(generator)));
        }
        d.dipoles.push_back(mu);
        d.widths.push_back(i % 5 == 0 ? 0
                                      : static_cast<double>(static_cast<Real>(
                                              width * (0.75 + 0.25 * uniform(generator)))));
    }
    for (int i = 0; i < d.system.size(); i += 2)
    {
        for (int k = 0; k < 3; ++k)
        {
            d.system.positions[i + 1][k] = d.system.positions[i][k] + 0.05 * uniform(generator);
        }
    }
    d.system.exclusions = { { 0, 1 }, { 2, 3 }, { 5, 9 } };
    d.system            = rounded<Real>(d.system);
    return d;
}

//! Forces and fields along the dipoles.
struct Found
{
    std::vector<Vector> forces;
    std::vector<Vector> fields; //!< their first component
};

Found ofCloseCharges(const Damped& d, double delta)
{
    const int n = d.system.size();
    System all;
    all.box = d.system.box;
    std::vector<double> widths;
    std::vector<double> lengths;
    for (int i = 0; i < n; ++i)
    {
        const Vector& mu = d.dipoles[i];
        lengths.push_back(std::sqrt(mu[0] * mu[0] + mu[1] * mu[1] + mu[2] * mu[2]));
        for (const int part : { 0, 1, -1 })
        {
            Vector x = d.system.positions[i];
            for (int k = 0; k < 3; ++k)
            {
                x[k] += part * delta * mu[k] / lengths.back();
            }
            all.positions.push_back(x);
            all.charges.push_back(part == 0 ? d.system.charges[i]
                                            : part * lengths.back() / (2 * delta));
            widths.push_back(d.widths[i]);
        }
        all.exclusions.emplace_back(3 * i, 3 * i + 1);
        all.exclusions.emplace_back(3 * i, 3 * i + 2);
        all.exclusions.emplace_back(3 * i + 1, 3 * i + 2);
    }
    for (const auto& [i, j] : d.system.exclusions)
    {
        for (int k = 0; k < 9; ++k)
        {
            all.exclusions.emplace_back(3 * i + k / 3, 3 * j + k % 3);
        }
    }
    Options options;
    options.boundary = d.boundary;
    options.accuracy = 1e-9;
    options.device   = Device::Cpu;
    options.threads  = 1;
    Solver<double> solver(options);
    load(solver, all);
    solver.setNearFunction(d.function, widths.data(), all.size());
    const Evaluation of = evaluate(solver, all);
    Found found;
    for (int i = 0; i < n; ++i)
    {
        const Vector &f = of.forces[3 * i], &up = of.forces[3 * i + 1],
                     &down = of.forces[3 * i + 2];
        Vector force;
        double field = 0;
        for (int k = 0; k < 3; ++k)
        {
            force[k] = f[k] + up[k] + down[k];
            field += (up[k] - down[k]) * delta / lengths[i] * d.dipoles[i][k];
        }
        found.forces.push_back(force);
        found.fields.push_back({ field, 0, 0 });
    }
    return found;
}

Found reference(const Damped& d)
{
    Found near      = ofCloseCharges(d, 2.5e-4);
    const Found far = ofCloseCharges(d, 5e-4);
    for (size_t i = 0; i < near.forces.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            near.forces[i][k] = (4 * near.forces[i][k] - far.forces[i][k]) / 3;
            near.fields[i][k] = (4 * near.fields[i][k] - far.fields[i][k]) / 3;
        }
    }
    return near;
}

template<class Config>
class DampedDipoles : public ReproducibleTest<Config>
{
};
TYPED_TEST_SUITE(DampedDipoles, Configurations);

//! Near and beyond near cells.
TYPED_TEST(DampedDipoles, AreThoseOfChargesCloseToEachOther)
{
    using Real                  = typename TypeParam::Real;
    const NearFunction gaussian = { PairFunction::Gaussian, WidthRule::RootSumSquare };
    const NearFunction thole    = { PairFunction::Thole, WidthRule::GeometricMean };
    size_t number               = 0;
    for (const Boundary boundary : { Boundary::Periodic, Boundary::Slab, Boundary::Open })
    {
        ++number;
        for (const Damped& d : { damped<Real>(gaussian, boundary, 0.08, 10.6),
                                 damped<Real>(thole, boundary, 0.04, 64.0) })
        {
            if (!isTurnOf<Real>(number + (d.function.function == PairFunction::Thole ? 1 : 0)))
            {
                continue;
            }
            const Found expected = reference(d);
            Options options      = this->options();
            options.boundary     = boundary;
            options.order        = 10;
            options.cellSize     = 0.6;
            Solver<Real> solver(options);
            load(solver, d.system);
            const auto n = static_cast<size_t>(d.system.size());
            std::vector<Real> dipoles;
            for (const Vector& mu : d.dipoles)
            {
                dipoles.insert(dipoles.end(), mu.begin(), mu.end());
            }
            const std::vector<Real> widths(d.widths.begin(), d.widths.end());
            solver.setDipoles(dipoles.data(), d.system.size());
            solver.setNearFunction(d.function, widths.data(), d.system.size());
            const std::vector<Real> x = flatPositions<Real>(d.system);
            std::vector<Real> forces(3 * n, Real(0)), gradients(3 * n);
            Request request;
            request.virial = false;
            solver.evaluate(x.data(),
                            Box(d.system.box).rows,
                            forces.data(),
                            request,
                            Outputs<Real>{ nullptr, gradients.data(), nullptr });
            SCOPED_TRACE(describe(d.system, solver.setup()));
            std::vector<Vector> fields;
            for (size_t i = 0; i < n; ++i)
            {
                double along = 0;
                for (size_t k = 0; k < 3; ++k)
                {
                    along -= static_cast<double>(gradients[3 * i + k]) * d.dipoles[i][k];
                }
                fields.push_back({ along, 0, 0 });
            }
            EXPECT_LE(relativeError(vectorsOf(forces), expected.forces), 2e-5);
            EXPECT_LE(relativeError(fields, expected.fields), 2e-5);
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
