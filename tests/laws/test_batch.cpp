/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Many systems in one call: each as if it were alone, and as Ewald's sum has it.
 */
#include <type_traits>

#include "accuracy_case.h"
#include "batch_call.h"
#include "fast_ewald.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class Batches : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(Batches, Configurations);

template<class Config>
class DoubleBatches : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(DoubleBatches, DoubleConfigurations);

template<class Config>
void expectEwald(const std::vector<System>& systems,
                 const std::vector<Evaluation>& expected,
                 double accuracy)
{
    using Real = typename Config::Real;
    Batch<Real> batch(withAccuracy<Config>(accuracy));
    const Call<Real> call = Call<Real>(systems).by(batch);
    EXPECT_LE(batch.setup().measuredError, accuracy);
    EXPECT_EQ(batch.setup().tightening, 1);
    for (size_t s = 0; s < systems.size(); ++s)
    {
        SCOPED_TRACE(std::to_string(systems[s].size()) + " particles, accuracy "
                     + std::to_string(accuracy));
        const Evaluation found = call.of(static_cast<int>(s));
        const double scale =
                forceScale(systems[s], expected[s].forces, partOfTypicalForce<Real>(accuracy));
        const double error = std::sqrt(
                meanSquareError(std::vector<Real>(call.forces.begin() + 3L * call.offsets[s],
                                                  call.forces.begin() + 3L * call.offsets[s + 1]),
                                expected[s].forces));
        EXPECT_LE(error, accuracy * scale);
        const double bound = energyBound(systems[s], accuracy, scale);
        EXPECT_NEAR(found.energy, expected[s].energy, bound);
        // On a GPU in double precision cut-offs are farthest: what is left out of the pairs is there, some
        // three distances of neighbours away
        const double ofPairs = std::is_same<Config, GpuDouble>::value ? 3 : 1;
        EXPECT_LE(largestDifference(found.virial, expected[s].virial), ofPairs * bound);
    }
}

TYPED_TEST(Batches, MatchEwaldInEveryBox)
{
    using Real                        = typename TypeParam::Real;
    const std::vector<System> systems = someSystems();
    std::vector<Evaluation> expected;
    std::transform(systems.begin(),
                   systems.end(),
                   std::back_inserter(expected),
                   [](const System& system) { return ewald(system); });
    const auto accuracies = sizeof(Real) == 4 ? std::vector<double>{ 1e-3, 1e-4, 1e-5, 3e-6 }
                                              : std::vector<double>{ 1e-3, 1e-6, 1e-9 };
    for (const double accuracy : accuracies)
    {
        expectEwald<TypeParam>(systems, expected, accuracy);
    }
}

TYPED_TEST(Batches, MatchEwaldWithThousandsOfParticles)
{
    const std::vector<System> systems = { ofShape(c_skew, 2000, 21, 5) };
    expectEwald<TypeParam>(systems, { fastEwald(systems[0]) }, 3e-4);
}

TYPED_TEST(Batches, DoNotDependOnTheSystemsAround)
{
    using Real                        = typename TypeParam::Real;
    const std::vector<System> systems = someSystems();
    BatchOptions options              = withAccuracy<TypeParam>(1e-4);
    options.threads                   = 2;
    const Call<Real> all              = Call<Real>(systems).by(options);
    for (size_t s = 0; s < systems.size(); ++s)
    {
        const Call<Real> one = Call<Real>({ systems[s] }).by(withAccuracy<TypeParam>(1e-4));
        expectSameBits(all.of(static_cast<int>(s)), one.of(0));
        EXPECT_TRUE(std::equal(one.potentials.begin(),
                               one.potentials.end(),
                               all.potentials.begin() + all.offsets[s]));
    }
}

TYPED_TEST(Batches, PotentialsAddUpToTwiceTheEnergy)
{
    using Real           = typename TypeParam::Real;
    const Call<Real> all = Call<Real>(someSystems()).by(withAccuracy<TypeParam>(1e-5));
    for (size_t s = 0; s < all.energies.size(); ++s)
    {
        double sum = 0, magnitude = 0;
        for (int i = all.offsets[s]; i < all.offsets[s + 1]; ++i)
        {
            sum += static_cast<double>(all.q[i]) * static_cast<double>(all.potentials[i]);
            magnitude += std::abs(static_cast<double>(all.q[i])
                                  * static_cast<double>(all.potentials[i]));
        }
        EXPECT_NEAR(
                sum, 2 * all.energies[s], 16 * std::numeric_limits<Real>::epsilon() * magnitude);
        const Evaluation one = all.of(static_cast<int>(s));
        const double trace   = one.virial[0][0] + one.virial[1][1] + one.virial[2][2];
        EXPECT_NEAR(trace, -0.5 * one.energy, 1e-5 * magnitude);
    }
}

TYPED_TEST(Batches, DoNotDependOnTheBoxOfALattice)
{
    using Real    = typename TypeParam::Real;
    System system = ofShape(c_skew, 40, 31, 1);
    System other  = system;
    // a left-handed box of the same lattice, that is turned with the particles
    for (int k = 0; k < 3; ++k)
    {
        other.box[0][k] = system.box[1][k] - 2 * system.box[0][k];
        other.box[1][k] = system.box[0][k];
        other.box[2][k] = system.box[2][k] + 3 * system.box[1][k];
    }
    const auto turned = [](const Vector& r) { return Vector{ r[2], r[0], r[1] }; };
    std::transform(other.box.begin(), other.box.end(), other.box.begin(), turned);
    std::transform(other.positions.begin(), other.positions.end(), other.positions.begin(), turned);
    const Call<Real> call = Call<Real>({ system, other }).by(withAccuracy<TypeParam>(1e-5));
    const Evaluation a = call.of(0), b = call.of(1);
    const double scale = forceScale(system, a.forces);
    EXPECT_NEAR(a.energy, b.energy, 2 * energyBound(system, 1e-5, scale));
    std::vector<Vector> back = a.forces;
    std::transform(back.begin(), back.end(), back.begin(), turned);
    EXPECT_LE(relativeError(b.forces, back), 2e-5);
}

TYPED_TEST(Batches, OpenSystemsAreSumsOverPairs)
{
    using Real           = typename TypeParam::Real;
    BatchOptions options = withAccuracy<TypeParam>(1e-4);
    options.boundary     = Boundary::Open;
    System system        = ofShape(c_cube, 60, 41, 2);
    // particles in contact far from the origin
    system.positions[1] = system.positions[0];
    system.positions[1][0] += 1e-3;
    system                 = rounded<float>(shifted(system, { 100, 0, 0 }));
    const Evaluation found = Call<Real>({ system, ofShape(c_cube, 1, 1) }).by(options).of(0);
    Evaluation expected;
    expected.forces.resize(system.size());
    for (int i = 0; i < system.size(); ++i)
    {
        for (int j = 0; j < i; ++j)
        {
            Vector d;
            for (int k = 0; k < 3; ++k)
            {
                d[k] = system.positions[i][k] - system.positions[j][k];
            }
            const double energy = c_coulomb * system.charges[i] * system.charges[j] / norm(d);
            expected.energy += energy;
            for (int k = 0; k < 3; ++k)
            {
                const double f = energy / dot(d, d) * d[k];
                expected.forces[i][k] += f;
                expected.forces[j][k] -= f;
                for (int m = 0; m < 3; ++m)
                {
                    expected.virial[m][k] -= 0.5 * d[m] * f;
                }
            }
        }
    }
    const double rounding = 32 * std::numeric_limits<Real>::epsilon();
    EXPECT_LE(relativeError(found.forces, expected.forces), rounding);
    EXPECT_NEAR(found.energy, expected.energy, rounding * std::abs(expected.energy));
    EXPECT_LE(largestDifference(found.virial, expected.virial),
              rounding * std::abs(expected.energy));
}

TYPED_TEST(Batches, ChannelsAddUp)
{
    using Real        = typename TypeParam::Real;
    const System one  = ofShape(c_skew, 50, 51);
    System other      = one;
    other.charges     = ofShape(c_skew, 50, 52, 2).charges;
    BatchOptions both = withAccuracy<TypeParam>(1e-5);
    both.channels     = 2;
    Call<Real> call({ one }, 2);
    call.q.clear();
    for (int i = 0; i < one.size(); ++i)
    {
        call.q.push_back(static_cast<Real>(one.charges[i]));
        call.q.push_back(static_cast<Real>(other.charges[i]));
    }
    call.by(both);
    const Call<Real> single = Call<Real>({ one, other }).by(withAccuracy<TypeParam>(1e-5));
    const Evaluation a = single.of(0), b = single.of(1);
    std::vector<Vector> sum = a.forces;
    for (int i = 0; i < one.size(); ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            sum[i][k] += b.forces[i][k];
        }
        for (int c = 0; c < 2; ++c)
        {
            const auto expected = static_cast<double>(single.potentials[c * one.size() + i]);
            EXPECT_NEAR(static_cast<double>(call.potentials[2 * i + c]), expected, 1e-4 * 1000);
        }
    }
    EXPECT_LE(relativeError(call.of(0).forces, sum), 3e-5);
    const double bound = energyBound(one, 3e-5, rootMeanSquare(sum));
    EXPECT_NEAR(call.of(0).energy, a.energy + b.energy, bound);
    for (int k = 0; k < 9; ++k)
    {
        EXPECT_NEAR(call.virials[k], a.virial[k / 3][k % 3] + b.virial[k / 3][k % 3], bound);
    }
}

//! Two particles of system 1 where they are, and moved by a step along an axis.
TYPED_TEST(DoubleBatches, HaveForcesThatAreMinusTheGradient)
{
    const System system     = ofShape(c_tilted, 20, 61, 1);
    constexpr double c_step = 1e-4;
    for (const double smearing : { 0.0, 0.1 })
    {
        std::vector<System> systems = { system };
        for (int i = 0; i < 4; ++i)
        {
            for (const double sign : { -1, 1 })
            {
                systems.push_back(system);
                systems.back().positions[i][i % 3] += sign * c_step;
            }
        }
        BatchOptions options    = withAccuracy<TypeParam>(1e-10);
        options.smearing        = smearing;
        const Call<double> call = Call<double>(systems).by(options);
        const Evaluation at     = call.of(0);
        for (int i = 0; i < 4; ++i)
        {
            const double gradient =
                    (call.energies[2 * i + 2] - call.energies[2 * i + 1]) / (2 * c_step);
            // third derivatives of neighbours at 0.05 nm times a sixth of the squared step
            EXPECT_NEAR(at.forces[i][i % 3], -gradient, 2e-5 * rootMeanSquare(at.forces));
        }
    }
}

TYPED_TEST(DoubleBatches, HaveTheVirialOfAStrain)
{
    const System system     = ofShape(c_skew, 30, 71, 2);
    constexpr double c_step = 1e-5;
    for (const double smearing : { 0.0, 0.1 })
    {
        std::vector<System> systems = { system };
        for (int k = 0; k < 9; ++k)
        {
            for (const double sign : { -1, 1 })
            {
                Matrix strain = c_cube;
                strain[k / 3][k % 3] += sign * c_step;
                systems.push_back(deformed(system, strain));
            }
        }
        BatchOptions options    = withAccuracy<TypeParam>(1e-10);
        options.smearing        = smearing;
        const Call<double> call = Call<double>(systems).by(options);
        for (int k = 0; k < 9; ++k)
        {
            const double slope =
                    (call.energies[2 * k + 2] - call.energies[2 * k + 1]) / (2 * c_step);
            EXPECT_NEAR(call.virials[k], 0.5 * slope, 1e-6 * std::abs(call.energies[0]));
        }
    }
}

//! 2 pi / V sum over k != 0 of exp(-k^2 s^2 / 2) / k^2 |S|^2, and without erf at r = 0.
TYPED_TEST(Batches, GaussianChargesHaveTheSumOverWaves)
{
    using Real                = typename TypeParam::Real;
    constexpr double c_width  = 0.1;
    const System system       = ofShape(c_skew, 12, 81, 1);
    const Matrix g            = reciprocal(system.box);
    double energy             = 0;
    double within             = 0; // a cut-off
    constexpr double c_cutoff = 30;
    constexpr int c_range     = 14; // exp(-36) at the shortest side
    for (int h = -c_range; h <= c_range; ++h)
    {
        for (int k = -c_range; k <= c_range; ++k)
        {
            for (int l = -c_range; l <= c_range; ++l)
            {
                const Vector wave = combine(g, 2 * c_pi * h, 2 * c_pi * k, 2 * c_pi * l);
                const double k2   = dot(wave, wave);
                double re = 0, im = 0;
                for (int i = 0; k2 > 0 && k2 * c_width * c_width < 80 && i < system.size(); ++i)
                {
                    re += system.charges[i] * std::cos(dot(wave, system.positions[i]));
                    im += system.charges[i] * std::sin(dot(wave, system.positions[i]));
                }
                const double term =
                        k2 > 0 ? std::exp(-0.5 * k2 * c_width * c_width) / k2 * (re * re + im * im)
                               : 0;
                energy += term;
                within += k2 < c_cutoff * c_cutoff ? term : 0;
            }
        }
    }
    energy *= c_coulomb * 2 * c_pi / system.volume();
    within *= c_coulomb * 2 * c_pi / system.volume();
    const double self =
            c_coulomb / (std::sqrt(2 * c_pi) * c_width) * system.meanSquareCharge() * system.size();
    BatchOptions options = withAccuracy<TypeParam>(1e-5);
    options.smearing     = c_width;
    EXPECT_NEAR(Call<Real>({ system }).by(options).energies[0], energy - self, 1e-5 * energy);
    options.selfEnergy = true;
    EXPECT_NEAR(Call<Real>({ system }).by(options).energies[0], energy, 1e-5 * energy);
    EXPECT_GT(energy, 1.001 * within);
    options.waveCutoff = c_cutoff;
    EXPECT_NEAR(Call<Real>({ system }).by(options).energies[0], within, 1e-6 * within);
}

TYPED_TEST(Batches, HaveMadelungEnergyAndThatOfALatticeOfCharges)
{
    using Real        = typename TypeParam::Real;
    const System salt = rockSalt(2, 0.28);
    System one;
    one.box               = { { { 2, 0, 0 }, { 0, 2, 0 }, { 0, 0, 2 } } };
    one.positions         = { { -7.3, 0.1, 40 } };
    one.charges           = { 1 };
    const Call<Real> call = Call<Real>({ salt, one }).by(withAccuracy<TypeParam>(1e-5));
    const double madelung = -c_coulomb * c_madelungRockSalt / 0.28 * salt.size() / 2;
    EXPECT_NEAR(call.energies[0], madelung, 1e-6 * std::abs(madelung));
    // a charge in a cube with its background: -2.8372974795 / 2 q^2 / L
    EXPECT_NEAR(call.energies[1], -0.5 * 2.8372974795 * c_coulomb / 2, 1e-4);
    EXPECT_LE(rootMeanSquare(call.of(1).forces), 1e-5 * c_coulomb);
}

TYPED_TEST(Batches, MayBeEmpty)
{
    using Real = typename TypeParam::Real;
    Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
    batch.evaluate({}, {});
    System neutral = ofShape(c_cube, 5, 91);
    System empty   = neutral;
    empty.positions.clear();
    empty.charges.clear();
    neutral.charges.assign(5, 0);
    for (const Boundary boundary : { Boundary::Periodic, Boundary::Open })
    {
        BatchOptions options  = withAccuracy<TypeParam>(1e-4);
        options.boundary      = boundary;
        const Call<Real> call = Call<Real>({ empty, neutral, empty }).by(options);
        EXPECT_EQ(call.energies, std::vector<double>(3, 0.0));
        EXPECT_EQ(call.forces, std::vector<Real>(15, Real(0)));
        EXPECT_EQ(call.virials, std::vector<double>(27, 0.0));
    }
}

TYPED_TEST(Batches, MayHaveNeutralParticlesAtOnePlace)
{
    using Real          = typename TypeParam::Real;
    System system       = ofShape(c_cube, 6, 2);
    system.positions[3] = system.positions[1];
    system.charges[3]   = 0;
    Call<Real> call({ system });
    Batch<Real> batch(withAccuracy<TypeParam>(1e-4));
    std::vector<Real> forces(18);
    batch.evaluate({ call.x.data(), call.q.data(), call.offsets.data(), call.boxes.data(), 1 },
                   { nullptr, forces.data(), nullptr, nullptr });
    // to the others it is not there
    std::vector<Vector> found = vectorsOf(forces);
    EXPECT_EQ(norm(found[3]), 0);
    found.erase(found.begin() + 3);
    system.positions.erase(system.positions.begin() + 3);
    system.charges.erase(system.charges.begin() + 3);
    EXPECT_LE(relativeError(found, ewald(system).forces), 1e-4);
    // but the potential there is infinite
    expectError(ErrorCode::InvalidArgument, { "particles 1 and 3" }, [&] { call.by(batch); });
}

} // namespace
} // namespace test
} // namespace farfield
