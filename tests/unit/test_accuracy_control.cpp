/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How many operators are built until their error suffices, or nothing will.
 */
#include "choice/accuracy_control.h"

#include <cmath>

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fake_backend.h"
#include "plan/error_estimate.h"
#include "plan/operator_limits.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_edge      = 6; //!< of the box, nm
constexpr int c_particles    = 3000;
constexpr double c_request   = 1e-5;
constexpr double c_forceSize = 1e4; //!< kJ/mol/nm

//! Gives forces of the error that is predicted for its operators, times a factor, and rounding.
class ErringBackend : public FakeBackend
{
public:
    void build(const Discretisation& d) override
    {
        FakeBackend::build(d);
        predictions.push_back(estimatedError(d, d.leafGrid(d.referenceBox)));
        errors.push_back(error());
        setUp += partOfLongestSetUp(d);
    }
    Totals collect() override
    {
        const Totals totals = FakeBackend::collect();
        std::mt19937 random(static_cast<unsigned>(1e6 * (offset[0] + offset[1] + offset[2])));
        std::normal_distribution<double> normal(0, error() * c_forceSize);
        for (size_t i = 0; i < 3 * charges.size(); i++)
        {
            task_.forces[i] = c_forceSize + normal(random);
        }
        return totals;
    }
    //! Of forces of the last attempt.
    double error() const
    {
        const bool isRough = predictions.back() > roughFrom;
        return std::hypot((isRough ? 1 : factor) * predictions.back(), rounding());
    }
    //! Of an attempt; each one changes it by a factor.
    double rounding() const
    {
        return floor * std::pow(change, static_cast<double>(predictions.size()));
    }

    double factor = 1, floor = 0, change = 1;
    double roughFrom = 1; //!< errors that are predicted beyond this come out as predicted
    std::vector<double> predictions; //!< errors predicted for what was built
    std::vector<double> errors;      //!< those of what was built
    double setUp = 0;                //!< of all that was built, see partOfLongestSetUp()
};

class Search : public ::testing::Test
{
protected:
    Search() { options.accuracy = c_request; }
    //! Lets operators be chosen and built. \returns the choice
    Setting search(WhereMissed whereMissed = WhereMissed::Refuse)
    {
        std::mt19937 random(3);
        std::uniform_real_distribution<double> uniform(0, c_edge);
        std::vector<double> x(3 * c_particles), q(c_particles, 1.0);
        std::generate(x.begin(), x.end(), [&] { return uniform(random); });
        ChargeSet<double> charges(&backend);
        charges.setCharges(q.data(), c_particles);
        OperatorsInUse<double> operators(&backend);
        StageTimes times;
        Pipeline<double> pipeline(&backend, nullptr, &operators, &times);
        Chosen<double> chosen(options, device, &operators);
        AccuracyControl<double> accuracy(options, device, &charges, &chosen, &pipeline);
        chosen.change(
                [&] {
                    accuracy.buildSufficient(
                            c_edge * Mat3::Identity(), x.data(), Vec3::Zero(), whereMissed);
                });
        return chosen.inUse();
    }
    ErringBackend backend;
    Options options;
    Device device = Device::Cpu; //!< whose costs decide
};

TEST_F(Search, EndsWithTheFirstChoiceWhereErrorsAreThoseOfWater)
{
    backend.factor = 0.5;
    search();
    EXPECT_EQ(backend.predictions.size(), 1U);
}

//! A droplet: the first choice does, a cheaper one may. If it does not the first is built again.
TEST_F(Search, TriesOneCheaperChoice)
{
    backend.factor = 0.01;
    search();
    EXPECT_EQ(backend.predictions.size(), 2U);
    EXPECT_GT(backend.predictions.back(), c_request);
}

//! A crystal, whose error depends on the cells by orders of magnitude: what was measured at one
//! setting says little of another. There are settings between.
TEST_F(Search, TriesOneBetweenACheaperChoiceThatFailsAndTheFirst)
{
    backend.factor    = 1e-3;
    backend.roughFrom = 30 * c_request;
    search();
    EXPECT_LE(backend.predictions.size(), 5U);
    EXPECT_GT(backend.predictions.back(), 3 * c_request);
    EXPECT_LE(backend.predictions.back(), backend.roughFrom);
}

TEST_F(Search, FollowsWhatWasMeasured)
{
    backend.factor = 30;
    search();
    EXPECT_LE(backend.predictions.size(), 3U);
    EXPECT_LT(backend.factor * backend.predictions.back(), c_request);
}

/*! Rounding in cells that are large, or of forces that cancel: it stays however small the error is
 *  that is predicted. A hundred times less and hardly any gain is proof enough. */
TEST_F(Search, GivesUpWhereOnlyRoundingIsLeft)
{
    for (const double change : { 1.0, 0.95 })
    {
        for (const double floor : { 1.5, 4.0, 40.0 })
        {
            backend.predictions.clear();
            backend.floor  = floor * c_request;
            backend.change = change;
            EXPECT_THROW(search(), Error);
            // the first whose error is rounding
            const auto& all  = backend.predictions;
            const auto first = std::find_if(
                    all.begin(), all.end(), [&](double p) { return p < 0.1 * backend.floor; });
            ASSERT_NE(first, all.end());
            EXPECT_LE(std::count_if(first, all.end(), [&](double p) { return p < 1e-2 * *first; }),
                      1)
                    << "rounding of " << floor << " requests: " << ::testing::PrintToString(all);
        }
    }
}

//! A run that has begun goes on with what comes closest, and not with what was tried last.
TEST_F(Search, TakesTheBestInARunThatHasBegun)
{
    backend.floor  = 4 * c_request;
    backend.change = 1.2;
    EXPECT_THROW(search(), Error);
    backend.predictions.clear();
    backend.errors.clear();
    const Setting taken         = search(WhereMissed::TakeBest);
    const std::vector<double> e = backend.errors; // the last is that of what is taken
    const auto best             = std::min_element(e.begin(), e.end() - 1) - e.begin();
    EXPECT_TRUE(taken.chosenFor.isBestEffort);
    EXPECT_EQ(backend.predictions.back(), backend.predictions[best]);
    EXPECT_LT(backend.predictions[e.size() - 2], backend.predictions[best]);
}

/*! Each attempt may take minutes, of a GPU without a bound on memory: all together take no longer
 *  than one may. */
TEST_F(Search, GivesUpBeforeItTakesTooLong)
{
    device           = Device::Gpu;
    options.m2l      = M2lEngine::Fft;
    options.cellSize = 0.06;
    backend.floor    = 10 * c_request;
    backend.change   = 0.69;
    EXPECT_THROW(search(), Error);
    EXPECT_GT(backend.predictions.size(), 2U);
    EXPECT_GT(backend.setUp, 0.2);
    EXPECT_LE(backend.setUp, 1);
}

} // namespace
} // namespace test
} // namespace farfield
