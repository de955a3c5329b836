/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Many slabs in one call: each as the Ewald sum in two dimensions has it.
 */
#include "accuracy_case.h"
#include "batch_call.h"
#include "slab_sum.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class BatchSlabs : public ConfiguredTest<Config>
{
public:
    static BatchOptions withAccuracy(double accuracy)
    {
        BatchOptions options = test::withAccuracy<Config>(accuracy);
        options.boundary     = Boundary::Slab;
        return options;
    }
    //! Slabs of all kinds: one charge, net charges, a sheet, one with a far particle, one with a dipole.
    static std::vector<System> slabs()
    {
        System sheet = ofShape(c_skew, 40, 24);
        for (Vector& r : sheet.positions)
        {
            r[2] *= 0.01;
        }
        System far = ofShape(c_cube, 30, 25, 1);
        far.positions.back()[2] += 4 * far.box[0][0];
        System polar = ofShape(c_skew, 60, 26);
        for (int i = 0; i < polar.size(); ++i)
        {
            polar.positions[i][2] += polar.charges[i] > 0 ? 0.3 : 0;
        }
        std::vector<System> all = { ofShape(c_cube, 1, 21, 1),
                                    ofShape(c_skew, 2, 22),
                                    ofShape(c_cube, 7, 23, 3),
                                    sheet,
                                    far,
                                    polar,
                                    ofShape(c_long, 130, 27, -2) };
        for (System& system : all)
        {
            // nothing reads the third vector, which the sums of slabs take to be along z
            system.box[1][2] = system.box[0][2] = system.box[0][1] = 0;
            system                                                 = rounded<float>(system);
        }
        return all;
    }
};
TYPED_TEST_SUITE(BatchSlabs, Configurations);

TYPED_TEST(BatchSlabs, MatchTheSumInTwoDimensions)
{
    using Real                        = typename TypeParam::Real;
    const std::vector<System> systems = this->slabs();
    std::vector<Evaluation> expected;
    for (const System& system : systems)
    {
        expected.push_back(slabSum(system, 2));
        expected.back().virial = virialOfSlab(system, 2);
    }
    const auto accuracies = sizeof(Real) == 4 ? std::vector<double>{ 1e-3, 1e-4, 1e-5 }
                                              : std::vector<double>{ 1e-3, 1e-6, 1e-9 };
    for (const double accuracy : accuracies)
    {
        Batch<Real> batch(this->withAccuracy(accuracy));
        const Call<Real> call = Call<Real>(systems).by(batch);
        EXPECT_LE(batch.setup().measuredError, accuracy);
        EXPECT_EQ(batch.setup().tightening, 1);
        for (size_t s = 0; s < systems.size(); ++s)
        {
            SCOPED_TRACE("system " + std::to_string(s) + ", accuracy " + std::to_string(accuracy));
            const System edges     = withEdges(systems[s], 2);
            const Evaluation found = call.of(static_cast<int>(s));
            const double scale =
                    forceScale(edges, expected[s].forces, partOfTypicalForce<Real>(accuracy));
            const double square = meanSquareError(
                    std::vector<Real>(call.forces.begin() + 3L * call.offsets[s],
                                      call.forces.begin() + 3L * call.offsets[s + 1]),
                    expected[s].forces);
            EXPECT_LE(std::sqrt(square), accuracy * scale);
            const double bound = energyBound(edges, accuracy, scale);
            EXPECT_NEAR(found.energy, expected[s].energy, bound);
            // from differences of energies
            const double ofDifferences = 1e-6 * std::abs(expected[s].energy);
            EXPECT_LE(largestDifference(found.virial, expected[s].virial), bound + ofDifferences);
            double sum = 0;
            for (int i = call.offsets[s]; i < call.offsets[s + 1]; ++i)
            {
                sum += static_cast<double>(call.q[i]) * static_cast<double>(call.potentials[i]);
            }
            EXPECT_NEAR(sum, 2 * found.energy, bound);
        }
    }
}

//! In any plane: all that is turned with it, from a left-handed or a skewed pair of its vectors, too.
TYPED_TEST(BatchSlabs, DoNotDependOnTheirOrientation)
{
    using Real         = typename TypeParam::Real;
    const System plain = this->slabs()[4];
    System turned      = plain;
    const auto turn    = [](const Vector& r)
    {
        constexpr double c = 0.6, s = 0.8;
        const Vector about = { c * r[0] - s * r[1], s * r[0] + c * r[1], r[2] };
        return Vector{ about[2], s * about[0] + c * about[1], -c * about[0] + s * about[1] };
    };
    for (int k = 0; k < 3; ++k)
    {
        turned.box[0][k] = plain.box[1][k] + 3 * plain.box[0][k];
        turned.box[1][k] = plain.box[0][k];
        turned.box[2][k] = std::numeric_limits<double>::quiet_NaN();
    }
    std::transform(turned.box.begin(), turned.box.end(), turned.box.begin(), turn);
    std::transform(
            turned.positions.begin(), turned.positions.end(), turned.positions.begin(), turn);
    const double accuracy = 1e-4;
    const Call<Real> call = Call<Real>({ plain, turned }).by(this->withAccuracy(accuracy));
    Evaluation here = call.of(0), there = call.of(1);
    EXPECT_NEAR(here.energy, there.energy, 1e-3 * std::abs(here.energy));
    std::transform(here.forces.begin(), here.forces.end(), here.forces.begin(), turn);
    EXPECT_LE(relativeError(there.forces, here.forces), accuracy);
    // turned from both sides
    Matrix virial = here.virial;
    for (int side = 0; side < 2; ++side)
    {
        std::transform(virial.begin(), virial.end(), virial.begin(), turn);
        Matrix transposed;
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j < 3; ++j)
            {
                transposed[i][j] = virial[j][i];
            }
        }
        virial = transposed;
    }
    EXPECT_LE(largestDifference(there.virial, virial), 1e-3 * std::abs(here.energy));
}

//! Places are near the middle of a high box, where single precision is coarse.
TYPED_TEST(BatchSlabs, KeepTheAccuracyInLongPlanes)
{
    using Real            = typename TypeParam::Real;
    const double accuracy = sizeof(Real) == 4 ? 2e-6 : 1e-9;
    const Matrix shape    = { { { 1, 0, 0 }, { 0, 30, 0 }, { 0, 0, 0.4 } } };
    Batch<Real> batch(this->withAccuracy(accuracy));
    Call<Real>({ ofShape(shape, 500, 28) }).by(batch);
    EXPECT_LE(batch.setup().measuredError, accuracy);
    EXPECT_EQ(batch.setup().tightening, 1);
}

TYPED_TEST(BatchSlabs, RefuseWhatIsTooHigh)
{
    using Real = typename TypeParam::Real;
    Call<Real> call({ ofShape(c_cube, 5, 1), ofShape(c_cube, 6, 2) });
    call.x[3 * 7 + 2] = 1000;
    expectError(ErrorCode::InvalidArgument,
                { "System 1", "100 times", "Solver" },
                [&] { call.by(this->withAccuracy(1e-4)); });
}

TYPED_TEST(BatchSlabs, RefuseWhatIsNoPlane)
{
    using Real = typename TypeParam::Real;
    Call<Real> call({ ofShape(c_cube, 5, 1), ofShape(c_cube, 6, 2) });
    for (int k = 0; k < 3; ++k)
    {
        call.boxes[9 + 3 + k] = 2 * call.boxes[9 + k];
    }
    expectError(ErrorCode::InvalidArgument,
                { "System 1", "box vectors", "plane" },
                [&] { call.by(this->withAccuracy(1e-4)); });
    BatchOptions options = this->withAccuracy(1e-4);
    options.smearing     = 0.1;
    expectError(ErrorCode::Unsupported,
                { "Gaussian", "periodic" },
                [&] { Batch<Real> batch(options); });
}

} // namespace
} // namespace test
} // namespace farfield
