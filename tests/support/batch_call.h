/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Systems of many kinds in the layout of a Batch, for its tests.
 */
#ifndef FARFIELD_TESTS_BATCH_CALL_H
#define FARFIELD_TESTS_BATCH_CALL_H

#include "farfield/farfield_batch.h"

#include <random>

#include "geometry.h"
#include "systems.h"

#include "test_support.h"

namespace farfield
{
namespace test
{

//! Systems in the layout of Batch::evaluate(), and what it gives.
template<class Real>
struct Call
{
    explicit Call(const std::vector<System>& systems, int sets = 1) : channels(sets)
    {
        for (const System& system : systems)
        {
            add(system);
        }
    }
    void add(const System& system)
    {
        const std::vector<Real> flat = flatPositions<Real>(system);
        x.insert(x.end(), flat.begin(), flat.end());
        q.insert(q.end(), system.charges.begin(), system.charges.end());
        offsets.push_back(offsets.back() + system.size());
        for (const Vector& row : system.box)
        {
            boxes.insert(boxes.end(), row.begin(), row.end());
        }
    }
    Call& by(Batch<Real>& batch)
    {
        const size_t n = x.size() / 3;
        energies.resize(input().systems);
        errors.resize(input().systems);
        forces.resize(3 * n);
        potentials.resize(n * channels);
        virials.resize(9 * offsets.size() - 9);
        batch.evaluate(input(),
                       { energies.data(),
                         forces.data(),
                         potentials.data(),
                         virials.data(),
                         errors.data() });
        return *this;
    }
    BatchInput<Real> input() const
    {
        return {
            x.data(), q.data(), offsets.data(), boxes.data(), static_cast<int>(offsets.size()) - 1
        };
    }
    Call& by(const BatchOptions& options)
    {
        Batch<Real> batch(options);
        return by(batch);
    }
    Evaluation of(int s) const
    {
        Evaluation result;
        result.energy = energies[s];
        result.forces = vectorsOf(std::vector<Real>(forces.begin() + 3L * offsets[s],
                                                    forces.begin() + 3L * offsets[s + 1]));
        for (int k = 0; k < 9; ++k)
        {
            result.virial[k / 3][k % 3] = virials[9L * s + k];
        }
        return result;
    }

    int channels;
    std::vector<Real> x, q;
    std::vector<int> offsets = { 0 };
    std::vector<double> boxes;
    std::vector<double> energies, virials, errors;
    std::vector<Real> forces, potentials;
};

//! Options of a configuration of test_support.h.
template<class Config>
BatchOptions withAccuracy(double accuracy)
{
    BatchOptions options;
    options.accuracy = accuracy;
    options.device   = Config::device;
    options.threads  = 1;
    return options;
}

//! 100 charges/nm^3 in a box of a shape.
inline System ofShape(const Matrix& shape, int n, unsigned seed, double net = 0)
{
    const double scale = std::cbrt(n / 100.0 / std::abs(determinant(shape)));
    Matrix box         = shape;
    for (Vector& row : box)
    {
        for (double& component : row)
        {
            component *= scale;
        }
    }
    return rounded<float>(randomCharges(box, n, seed, net, 0.05));
}

inline const Matrix c_cube   = { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
inline const Matrix c_skew   = { { { 1, 0, 0 }, { 0.45, 0.9, 0 }, { -0.4, 0.5, 1.1 } } };
inline const Matrix c_long   = { { { 1, 0, 0 }, { 0, 1.2, 0 }, { 0.2, 0.1, 20 } } };
inline const Matrix c_tilted = { { { 1, 0, 0 }, { 3.3, 0.9, 0 }, { -5.4, 2.5, 0.8 } } };

//! Boxes and sizes of all kinds, one of them nearly a crystal, where forces cancel.
inline std::vector<System> someSystems()
{
    System crystal = rockSalt(2, 0.28);
    crystal.positions[3][1] += 0.01;
    return { ofShape(c_cube, 1, 11, 1), ofShape(c_skew, 2, 12),       ofShape(c_cube, 7, 13, 3),
             ofShape(c_tilted, 33, 14), ofShape(c_long, 130, 15, -2), ofShape(c_skew, 301, 16),
             rounded<float>(crystal) };
}

//! Energies and virials are sums over as many terms as forces, over the distance of neighbours.
inline double energyBound(const System& system, double accuracy, double scale)
{
    return accuracy * scale * system.size() * std::cbrt(std::abs(system.volume()) / system.size());
}

//! Directions at random, for the systems of a call.
template<class Real>
struct Direction
{
    Direction(const Call<Real>& call, unsigned seed)
    {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> between(-1, 1);
        const auto fill = [&](auto* to, size_t size, double scale)
        {
            using Value = typename std::decay_t<decltype(*to)>::value_type;
            to->resize(size);
            std::generate(to->begin(),
                          to->end(),
                          [&] { return static_cast<Value>(scale * between(random)); });
        };
        fill(&x, call.x.size(), 0.1);
        fill(&q, call.q.size(), 1);
        fill(&boxes, call.boxes.size(), 0.1);
    }
    //! What evaluateTangent() gives along the direction.
    Direction& by(Batch<Real>& batch, const Call<Real>& call)
    {
        forces.resize(call.x.size());
        potentials.resize(call.q.size());
        virials.resize(call.boxes.size());
        batch.evaluateTangent(call.input(),
                              { x.data(), q.data(), boxes.data() },
                              call.errors.data(),
                              { forces.data(), potentials.data(), virials.data() });
        return *this;
    }

    std::vector<Real> x, q;
    std::vector<double> boxes;
    std::vector<Real> forces, potentials;
    std::vector<double> virials;
};

//! RMS of the difference, relative to that of what is expected.
template<class Values>
double relativeDifference(const Values& found, const Values& expected)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < found.size(); ++i)
    {
        const auto e = static_cast<double>(expected[i]);
        error += (static_cast<double>(found[i]) - e) * (static_cast<double>(found[i]) - e);
        size += e * e;
    }
    return std::sqrt(error / size);
}

} // namespace test
} // namespace farfield

#endif
