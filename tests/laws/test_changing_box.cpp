/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Boxes that change between evaluations.
 */
#include "accuracy_case.h"
#include "fast_ewald.h"
#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class ChangingBox : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(ChangingBox, Configurations);

TYPED_TEST(ChangingBox, KeepsAccuracy)
{
    using Real = typename TypeParam::Real;
    for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
    {
        System system   = pseudoWater(namedBox("triclinic", 8.0), 51);
        Options options = TypeParam::options();
        options.order   = 10; // so that truncation does not hide what the strain does
        options.m2l     = engine;
        Solver<Real> solver(options);
        load(solver, system);

        Matrix scaled = unitMatrix(), slight = unitMatrix(), small = unitMatrix(),
               big = unitMatrix();
        for (int k = 0; k < 3; ++k)
        {
            scaled[k][k] = 1.03;
        }
        slight[0][0] = 1.0001;
        slight[1][1] = 0.9999;
        small[2][2]  = 1.005;
        small[1][0]  = -0.005;
        big[0][0]    = 1.05;
        big[2][1]    = 0.04;
        struct Change
        {
            std::string name;
            Matrix deformation;
            double strain; //!< largest departure from a scaled box
        };
        double followed = 0; // since operators were certainly built for the present shape
        for (const Change& change : { Change{ "start", unitMatrix(), 0 },
                                      Change{ "scaled by 3 %", scaled, 0 },
                                      Change{ "0.01 %", slight, 0.0002 },
                                      Change{ "0.5 %", small, 0.005 },
                                      Change{ "scaled again", scaled, 0 },
                                      Change{ "5 %", big, 0 },
                                      Change{ "0.01 % after that", slight, 0.0002 } })
        {
            system                     = deformed(system, change.deformation);
            followed                   = change.name == "5 %" ? 0 : followed + change.strain;
            const System input         = rounded<Real>(system);
            const Evaluation reference = ewald(input);
            const Evaluation result    = evaluate(solver, input);
            SCOPED_TRACE(change.name + ": " + describe(input, solver.setup()));
            Bounds bounds = boundsFor<Real>(input, solver.setup(), reference);
            // Operators followed to first order: a term of degree j = l + l' has the remainder
            // 1/2 (j+1)(j+2) strain^2 in forces and energies and (j+1)(j+2) strain in the virial;
            // j = 2 (dipole-dipole) matters most. The far potential of a particle is about force
            // times cell edge, its sign random.
            const double rms = rootMeanSquare(reference.forces);
            const double far = 0.5 * std::sqrt(input.size()) * rms * solver.setup().cellSize;
            bounds.force += 6 * followed * followed * rms;
            bounds.energy += 6 * followed * followed * far;
            bounds.virial += 12 * followed * far;
            expectClose(result, reference, bounds);
        }
    }
}

TYPED_TEST(ChangingBox, HasTheVirialOfNewOperators)
{
    using Real         = typename TypeParam::Real;
    const System start = pseudoWater(namedBox("rectangular", 12.0), 54);
    Options options    = TypeParam::options();
    options.order      = 11;
    options.m2l        = M2lEngine::Fft; // whose whole virial is a derivative
    Solver<Real> following(options);
    load(following, start);
    evaluate(following, rounded<Real>(start));
    // Energies and forces allow strains whose square is a tenth of the error. The virial is a
    // derivative: if it were off by the strain itself, that would be 0.3 / sqrt(error) times the
    // error. The last two strains have another direction, and are beyond what is followed.
    const double most = std::sqrt(0.1 * following.setup().estimatedError);
    struct Strain
    {
        double part, x, y, z;
    };
    for (const Strain& strain : { Strain{ 0.05, 1, -0.9, -0.1 },
                                  Strain{ 0.8, 1, -0.9, -0.1 },
                                  Strain{ -0.4, 1, -0.9, -0.1 },
                                  Strain{ 0.8, 0.4, 0.6, -1 },
                                  Strain{ 2, 1, -0.9, -0.1 } })
    {
        Matrix change = unitMatrix();
        change[0][0] += most * strain.part * strain.x;
        change[1][1] += most * strain.part * strain.y;
        change[2][2] += most * strain.part * strain.z;
        const System system        = rounded<Real>(deformed(start, change));
        const Evaluation reference = fastEwald(system);
        Solver<Real> begun(options);
        load(begun, system);
        const double error = largestDifference(evaluate(begun, system).virial, reference.virial);
        const double kept = largestDifference(evaluate(following, system).virial, reference.virial);
        EXPECT_LE(kept, 6 * error + pairRounding<Real>(system))
                << "strain " << strain.part << " * " << most << ", error of new operators " << error
                << ": " << describe(system, begun.setup());
    }
}

TYPED_TEST(ChangingBox, MayFlip)
{
    using Real = typename TypeParam::Real;
    // Shear until the box vector flips by a whole lattice vector: the same lattice, another box.
    System system    = pseudoWater(namedBox("triclinic", 8.0), 52);
    system.box[1][0] = 0.5 * system.box[0][0];
    Options options  = TypeParam::options();
    options.order    = 8;
    Solver<Real> solver(options);
    load(solver, system);
    const Evaluation before = evaluate(solver, rounded<Real>(system));
    const System start      = rounded<Real>(system);
    system.box[1][0] -= system.box[0][0];
    const System input         = rounded<Real>(system);
    const Evaluation reference = ewald(input);
    const Evaluation after     = evaluate(solver, input);
    SCOPED_TRACE(describe(input, solver.setup()));
    const Bounds bounds = boundsFor<Real>(input, solver.setup(), reference);
    expectClose(after, reference, bounds);
    // Same lattice, same particles: the same answer, and back again.
    expectClose(before, reference, bounds);
    const Evaluation back = evaluate(solver, start);
    expectClose(back, reference, bounds);
}

TYPED_TEST(ChangingBox, ScalingNeedsNoNewOperators)
{
    using Real          = typename TypeParam::Real;
    const System system = rounded<Real>(pseudoWater(namedBox("cube", 8.0), 53));
    Options options     = TypeParam::options();
    options.order       = 12;
    Solver<Real> solver(options);
    load(solver, system);
    evaluate(solver, system);
    const auto states = solver.state();
    Matrix scale      = unitMatrix();
    for (int k = 0; k < 3; ++k)
    {
        scale[k][k] = 1.01;
    }
    // Twice: what a scaled box gives must not depend on where the solver started.
    const System larger   = rounded<Real>(deformed(system, scale));
    const Evaluation kept = evaluate(solver, larger);
    EXPECT_EQ(solver.state().size(), states.size());
    const Evaluation reference = ewald(larger);
    expectClose(kept, reference, boundsFor<Real>(larger, solver.setup(), reference));
}

/*! Where operators are built for the same cells in a box of another shape, their error is another one: in
 *  one cell of 64 ions it grows by factors of ten. */
TYPED_TEST(ChangingBox, MeetsTheRequestInAnotherShape)
{
    using Real         = typename TypeParam::Real;
    Matrix deformation = unitMatrix();
    deformation[0][0]  = 1.08;
    deformation[1][1]  = 0.93;
    deformation[1][0]  = 0.06;
    deformation[2][1]  = -0.05;
    for (const double accuracy : { 1e-2, 1e-3, 3e-4 })
    {
        for (const System& start :
             { rockSalt(4, 0.28), randomCharges(namedBox("cube", 8), 64, 59, 0.0) })
        {
            const System crystal   = rounded<Real>(start);
            const System sheared   = rounded<Real>(deformed(start, deformation));
            const Evaluation exact = fastEwald(sheared);
            Options options        = TypeParam::options();
            options.accuracy       = accuracy;
            options.threads        = 1;
            Solver<Real> solver(options);
            load(solver, crystal);
            evaluate(solver, crystal);
            for (int k = 0; k < 20; ++k)
            {
                Request request;
                request.gridOffset = gridPosition(k);
                const Evaluation f = evaluate(solver, sheared, request);
                EXPECT_LE(relativeError(f.forces, exact.forces) * rootMeanSquare(exact.forces),
                          accuracy
                                  * forceScale(sheared,
                                               exact.forces,
                                               partOfTypicalForce<Real>(accuracy)))
                        << describe(sheared, solver.setup()) << ", " << accuracy;
            }
            EXPECT_LE(solver.setup().largestError, 1.05 * accuracy);
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
