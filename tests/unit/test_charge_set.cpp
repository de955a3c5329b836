/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Charges and excluded pairs on their way to a backend.
 */
#include <cmath>

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "evaluation/charge_set.h"
#include "fake_backend.h"
#include "operators/scaled_charges.h"

namespace farfield
{
namespace test
{
namespace
{

using Ints = std::vector<int>;

class Charges : public ::testing::Test
{
protected:
    void set(const std::vector<double>& q)
    {
        charges.setCharges(q.data(), static_cast<int>(q.size()));
    }
    FakeBackend backend;
    ChargeSet<double> charges{ &backend };
    //! 0-1, 1-2 and 2-3, one way
    Ints offsets = { 0, 1, 2, 3, 3 }, partners = { 1, 2, 3 };
};

TEST_F(Charges, AreCountedAndSummed)
{
    set({ 1, 0, -2, 0 });
    EXPECT_EQ(charges.count(), 4);
    EXPECT_EQ(charges.charged(), 2);
    EXPECT_EQ(charges.squaredCharges(), 5);
    EXPECT_EQ(backend.charges, std::vector<double>({ 1, 0, -2, 0 }));
}

//! One that has flown away changes hardly anything; two particles are all that there are.
TEST_F(Charges, AreSpreadAsMostOfThem)
{
    std::vector<double> q(100, 1), x;
    for (int i = 0; i < 100; ++i)
    {
        x.insert(x.end(), { 0.1 * (i % 10), 0.1 * (i / 10), 0.0 });
    }
    set(q);
    const double before = charges.spread(x.data(), Boundary::Open);
    EXPECT_GT(before, 0.3);
    EXPECT_LT(before, 0.5);
    x[3 * 57 + 2] = 12000;
    EXPECT_NEAR(charges.spread(x.data(), Boundary::Open), before, 0.03 * before);
    for (double& coordinate : x)
    {
        coordinate *= 2;
    }
    EXPECT_NEAR(charges.spread(x.data(), Boundary::Open), 2 * before, 0.06 * before);
    EXPECT_EQ(charges.spread(x.data(), Boundary::Periodic), 0);
    set({ 1, -1 });
    const double two[] = { 0, 0, 0, 0, 3, 4 };
    EXPECT_DOUBLE_EQ(charges.spread(two, Boundary::Open), std::sqrt(12.5));
}

TEST_F(Charges, DecideWhoTakesPart)
{
    const auto expect = [](const std::vector<double>& q, int takingPart, const Ints& order)
    {
        const ScaledCharges<double> scaled(q.data(), static_cast<int>(q.size()), 1);
        EXPECT_EQ(scaled.count(), takingPart);
        EXPECT_EQ(scaled.order(), order);
    };
    expect({ 0, 1, 0, 0, -2, 3, 0 }, 3, { 1, 4, 5, 0, 2, 3, 6 });
    expect({ 1, 0, 2 }, 2, { 0, 2, 1 });
    expect({ 1, 2 }, 2, { 0, 1 });
    expect({ 0, 0 }, 2, { 0, 1 });
    expect({}, 0, {});
}

TEST_F(Charges, DecideWhichExcludedPairsTheBackendGets)
{
    set({ 1, 1, 0, 1 });
    charges.setExclusions(offsets.data(), partners.data());
    EXPECT_TRUE(charges.hasExclusions());
    EXPECT_EQ(backend.rows, Ints({ 0, 1, 1, 1, 1 }));
    EXPECT_EQ(backend.partnersOf, Ints({ 1 }));
    // a particle is charged: its pairs come back
    set({ 1, 1, 1, 1 });
    EXPECT_EQ(backend.rows, offsets);
    EXPECT_EQ(backend.partnersOf, partners);
}

//! With the excluded pairs of those without a charge, whatever charges come later.
TEST_F(Charges, LetAllTakePartOncePotentialsAreWanted)
{
    set({ 1, 0, -2, 0 });
    charges.setExclusions(offsets.data(), partners.data());
    EXPECT_EQ(charges.takingPart(), 2);
    EXPECT_EQ(charges.takesPart(), std::vector<char>({ 1, 0, 1, 0 }));
    charges.letAllTakePart();
    charges.complete();
    EXPECT_EQ(backend.charges,
              std::vector<double>({ 1, c_idleCharge<double>, -2, c_idleCharge<double> }));
    EXPECT_EQ(backend.partnersOf, partners);
    EXPECT_EQ(charges.takingPart(), 4);
    EXPECT_EQ(charges.takesPart(), std::vector<char>({ 1, 1, 1, 1 }));
    EXPECT_TRUE(charges.hasIdle());
    // what forces and their errors are made of is as before
    EXPECT_EQ(charges.charged(), 2);
    EXPECT_EQ(charges.acting(), 2);
    EXPECT_EQ(charges.charges(), std::vector<double>({ 1, 0, -2, 0 }));
    set({ 0, 0, 3, 1 });
    EXPECT_EQ(backend.charges,
              std::vector<double>({ c_idleCharge<double>, c_idleCharge<double>, 3, 1 }));
    EXPECT_EQ(backend.partnersOf, partners);
    set({ 0, 0, 0, 0 });
    EXPECT_EQ(backend.charges, std::vector<double>({ 0, 0, 0, 0 }));
    EXPECT_FALSE(charges.hasIdle());
    EXPECT_EQ(charges.takingPart(), 4);
}

//! However the pairs are listed.
TEST_F(Charges, CountThoseWithExcludedPartners)
{
    set({ 1, 0, 1, 1 });
    EXPECT_EQ(charges.numbers().withPartners, 0);
    charges.setExclusions(offsets.data(), partners.data());
    EXPECT_EQ(charges.numbers().withPartners, 2); // 2 and 3
    const Ints both = { 0, 1, 3, 5, 6 }, ofBoth = { 1, 0, 2, 1, 3, 2 };
    charges.setExclusions(both.data(), ofBoth.data());
    EXPECT_EQ(charges.numbers().withPartners, 2);
    set({ 1, 1, 1, 1 });
    charges.complete();
    EXPECT_EQ(charges.numbers().withPartners, 4);
    set({ 1, 1, 1 });
    EXPECT_EQ(charges.numbers().withPartners, 0);
}

//! Wherever those without a charge are, the first among them.
TEST_F(Charges, AreAsFarApartAsThoseWithACharge)
{
    const double nowhere = std::numeric_limits<double>::quiet_NaN();
    const double x[]     = { nowhere, nowhere, nowhere, 1, 2, 3, 1e30, 0, 0, 3, 2, 7 };
    set({ 0, 1, 0, -1 });
    // from the second, along the axes without images: the mean of 20 and 0, and of 16 and 0
    EXPECT_DOUBLE_EQ(charges.spread(x, Boundary::Open), std::sqrt(10.0));
    EXPECT_DOUBLE_EQ(charges.spread(x, Boundary::Slab), std::sqrt(8.0));
    set({ 0, 0, 0, 0 });
    EXPECT_EQ(charges.spread(x, Boundary::Open), 0);
}

TEST_F(Charges, OfAnotherNumberOfParticlesHaveNoExclusions)
{
    set({ 1, 1, 1, 1 });
    charges.setExclusions(offsets.data(), partners.data());
    set({ 1, 1, 1 });
    EXPECT_FALSE(charges.hasExclusions());
    EXPECT_EQ(backend.rows, Ints({ 0, 0, 0, 0 }));
}

TEST_F(Charges, GiveTheirPairsLaterWhereMemoryIsMissing)
{
    set({ 1, 1, 0, 1 });
    charges.setExclusions(offsets.data(), partners.data());
    backend.failing = "setExclusions";
    set({ 1, 1, 1, 1 });
    EXPECT_EQ(backend.partnersOf, Ints({ 1 }));
    EXPECT_THROW(charges.complete(), Error);
    backend.failing = "";
    charges.complete();
    EXPECT_EQ(backend.partnersOf, partners);
}

//! The error of a choice for particles without a charge was never measured.
TEST_F(Charges, HaveNoChoiceThatWasMadeForNone)
{
    set({ 1, 1, 1, 1 });
    const ParticleNumbers some = charges.numbers();
    set({ 0, 0, 0, 0 });
    const ParticleNumbers none = charges.numbers();
    EXPECT_EQ(none.takingPart, some.takingPart);
    EXPECT_TRUE(none.standFor(none));
    EXPECT_FALSE(none.standFor(some));
    // a choice for charges stands while there are none
    EXPECT_TRUE(some.standFor(none));
    EXPECT_TRUE(some.standFor(some));
}

//! All take part, so that the pairs of the backend stay, and others of them have charges.
TEST_F(Charges, HavePartnersThatAreCountedAnew)
{
    set({ 1, 0, 1, 0 });
    charges.setExclusions(offsets.data(), partners.data());
    charges.letAllTakePart();
    EXPECT_EQ(charges.numbers().withPartners, 0);
    set({ 1, -1, 0, 0 });
    EXPECT_EQ(charges.numbers().withPartners, 2);
}

//! Charges that do nothing are none that cells are chosen for.
TEST_F(Charges, CountWhereTheyDoSomething)
{
    set({ 1, -1, c_idleCharge<double>, c_idleCharge<double> });
    EXPECT_EQ(charges.numbers().acting, 2);
    EXPECT_EQ(charges.numbers().takingPart, 4);
}

//! Potentials of all particles are wanted, so that all take part: the choice is for charges all the same.
TEST_F(Charges, HaveTheChoiceOfAboutAsManyAndOfTheSameSigns)
{
    charges.letAllTakePart();
    const auto numbersOf = [&](const std::vector<double>& q)
    {
        set(q);
        return charges.numbers();
    };
    const ParticleNumbers balanced = numbersOf({ 1, -1, 1, -1, 1, -1, 1, -1 });
    const ParticleNumbers few      = numbersOf({ 1, -1, 1, -1, 0, 0, 0, 0 });
    const ParticleNumbers most     = numbersOf({ 1, -1, 1, -1, 1, -1, 1, 0 });
    const ParticleNumbers ofOne    = numbersOf({ 3, 3, 3, 3, 3, 3, 3, 3 });
    const ParticleNumbers ofOther  = numbersOf({ -1, -1, -1, -1, -1, -1, -1, -1 });
    EXPECT_EQ(balanced.takingPart, few.takingPart);
    EXPECT_TRUE(balanced.standFor(most));
    EXPECT_FALSE(balanced.standFor(few));
    EXPECT_FALSE(few.standFor(balanced));
    EXPECT_FALSE(balanced.standFor(ofOne));
    EXPECT_FALSE(ofOne.standFor(balanced));
    EXPECT_TRUE(ofOne.standFor(ofOther));
}

TEST_F(Charges, KeepNearFunctionsUntilTheirNumberChanges)
{
    const NearFunction smeared       = { PairFunction::Gaussian, WidthRule::Larger };
    const std::vector<double> widths = { 0.1, 0, 0.2, 0 };
    set({ 1, 1, 1, 1 });
    charges.setNearPairs({ smeared, widths.data(), 4, 1e-3 });
    set({ 1, 1, 1, 2 });
    EXPECT_TRUE(backend.hasFunctions);
    EXPECT_EQ(charges.nearPairs().width(0, 2), 0.2);
    backend.failing = "setNearPairs";
    EXPECT_THROW(charges.setNearPairs({}), Error);
    EXPECT_TRUE(charges.nearPairs().any());
    backend.failing = "";
    set({ 1, 1, 1 });
    EXPECT_FALSE(backend.hasFunctions);
    EXPECT_FALSE(charges.nearPairs().any());
}

//! As those of several ranks.
TEST_F(Charges, HaveNoNearFunctionsOnBackendsWithoutThem)
{
    const std::vector<double> widths = { 0.1, 0 };
    const NearPairs<double> pairs(
            { PairFunction::Gaussian, WidthRule::Larger }, widths.data(), 2, 1e-3);
    EXPECT_NO_THROW(backend.Backend<double>::setNearPairs({}));
    try
    {
        backend.Backend<double>::setNearPairs(pairs);
        FAIL() << "accepted";
    }
    catch (const Error& error)
    {
        EXPECT_EQ(error.code(), ErrorCode::Unsupported);
        EXPECT_NE(std::string(error.what()).find("on several ranks"), std::string::npos);
    }
}

TEST_F(Charges, HaveTheChoiceOfAboutTheSameWidths)
{
    set({ 1, -1, 1, -1 });
    const auto numbersOf = [&](PairFunction function, const std::vector<double>& widths)
    {
        charges.setNearPairs({ { function, WidthRule::Larger }, widths.data(), 4, 1e-3 });
        return charges.numbers();
    };
    const ParticleNumbers smeared = numbersOf(PairFunction::Gaussian, { 0.1, 0.1, 0.1, 0.1 });
    const ParticleNumbers alike   = numbersOf(PairFunction::Gaussian, { 0.1, 0.12, 0, 0.1 });
    const ParticleNumbers wider   = numbersOf(PairFunction::Gaussian, { 0.1, 0.1, 0.1, 0.2 });
    const ParticleNumbers fewer   = numbersOf(PairFunction::Gaussian, { 0.1, 0, 0, 0 });
    const ParticleNumbers damped  = numbersOf(PairFunction::Thole, { 0.1, 0.1, 0.1, 0.1 });
    const ParticleNumbers none    = numbersOf(PairFunction::Coulomb, { 0.1, 0.1, 0.1, 0.1 });
    EXPECT_TRUE(smeared.standFor(alike));
    for (const ParticleNumbers& other : { wider, fewer, damped, none })
    {
        EXPECT_FALSE(smeared.standFor(other));
        EXPECT_FALSE(other.standFor(smeared));
    }
    EXPECT_TRUE(none.standFor(none));
}

} // namespace
} // namespace test
} // namespace farfield
