/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The promise of Options::accuracy, for every kind of system: the short form of
 *         farfield_accuracy_suite.
 */
#include "accuracy_case.h"

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

// Larger ones are left to the long form.
constexpr int c_mostInReference = 2000;
constexpr int c_mostParticles   = 20000;

template<class Config>
class RequestedAccuracy : public ConfiguredTest<Config>
{
};
TYPED_TEST_SUITE(RequestedAccuracy, Configurations);

TYPED_TEST(RequestedAccuracy, IsMetOrRefusedInEveryKindOfSystem)
{
    using Real = typename TypeParam::Real;
    // Rounding of single precision is a part of any error near its limit.
    const double rounding              = 20 * std::numeric_limits<Real>::epsilon();
    const std::vector<double> requests = sizeof(Real) == 4 ? std::vector<double>{ 1e-2, 3e-4, 1e-5 }
                                                           : std::vector<double>{ 3e-4, 1e-8 };
    int met = 0, tried = 0;
    for (const SystemKind& kind : systemKinds())
    {
        const Sample sample = kind.make();
        if (sample.system.size() > c_mostParticles
            || (sample.copies == 1 ? sample.system : sample.unit).size() > c_mostInReference)
        {
            continue;
        }
        const ReferenceSystem reference = withReference<Real>(sample);
        for (const double request : requests)
        {
            std::ostringstream trace;
            trace << kind.name << ", " << request;
            SCOPED_TRACE(trace.str());
            Options options  = TypeParam::options();
            options.accuracy = request;
            options.threads  = 2;
            // few particles meet few of the places in a cell at one position of the grid
            const int size      = reference.system.size();
            const int positions = size > 1000 ? 2 : size > 100 ? 8 : 24;
            const Accuracy a    = measureAccuracy<Real>(reference, options, positions);
            ++tried;
            if (!a.refusal.empty())
            {
                EXPECT_EQ(a.refusedOption, "accuracy") << a.refusal;
                continue;
            }
            ++met;
            // what is asked for is a mean over particles: with few of them, over positions as well
            EXPECT_LE(size > 100 ? a.worst : a.measured, request + a.floor)
                    << describe(reference.system, a.setup);
            // an error far below the request decides nothing, and is that of rare places in a cell
            const bool matters = size > 100 && a.measured > 0.1 * request;
            if (matters && a.measured > 10 * a.floor && a.measured > rounding)
            {
                EXPECT_LE(a.setup.estimatedError, 2 * a.measured)
                        << describe(reference.system, a.setup);
                EXPECT_GE(a.setup.estimatedError, a.measured / 2)
                        << describe(reference.system, a.setup);
            }
        }
    }
    // To refuse everything is no way to keep a promise.
    EXPECT_GE(met, tried / 2);
}

} // namespace
} // namespace test
} // namespace farfield
