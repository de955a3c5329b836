/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Several solvers that live at once: none changes what another computes.
 */
#include <memory>
#include <string>
#include <vector>

#include "test_support.h"

namespace farfield
{
namespace test
{
namespace
{

template<class Config>
class LiveSolvers : public ReproducibleTest<Config>
{
public:
    using typename ReproducibleTest<Config>::Real;

    struct Live
    {
        std::unique_ptr<Solver<Real>> solver;
        Evaluation first; //!< of its first evaluation
    };
    //! A solver of that order and engine that has been evaluated.
    static Live live(const System& system, M2lEngine engine, int order)
    {
        Options options      = LiveSolvers::options();
        options.m2l          = engine;
        options.order        = order;
        options.cellSize     = 0.25;
        options.directRange  = 1;
        options.leastSquares = false;
        Live result{ std::make_unique<Solver<Real>>(options), {} };
        load(*result.solver, system);
        result.first = evaluate(*result.solver, system);
        EXPECT_EQ(result.solver->setup().m2l, engine);
        return result;
    }
};
TYPED_TEST_SUITE(LiveSolvers, Configurations);

/*! \brief Those of one engine share its kernels, and what is set for a kernel, but differ in the
 *         work that they cut for it.
 *
 *  The symmetric engine has one kernel for orders 5 and 6 and one for 7 to 9, each with shared
 *  memory of another size, which falls with the order or rises. */
TYPED_TEST(LiveSolvers, OfOneEngineKeepTheirBitsInAnyOrderOfEvaluations)
{
    using Real = typename TypeParam::Real;
    for (const char* box : { "cube", "triclinic" })
    {
        if (TypeParam::device == Device::Cpu && std::string(box) == "cube" && !isLong())
        {
            continue; // only on a GPU is there anything that is set for a kernel
        }
        const System system = rounded<Real>(randomCharges(namedBox(box, 8.0), 300, 101));
        for (const M2lEngine engine : enginesOf(TypeParam::device))
        {
            SCOPED_TRACE(std::string(box) + ", " + nameOf(engine));
            std::vector<typename TestFixture::Live> all;
            for (const int order : { 5, 6, 7, 8, 9 })
            {
                all.push_back(this->live(system, engine, order));
            }
            for (const auto& one : all)
            {
                expectSameBits(evaluate(*one.solver, system), one.first);
            }
            for (auto one = all.rbegin(); one != all.rend(); ++one)
            {
                expectSameBits(evaluate(*one->solver, system), one->first);
            }
            // one is made anew while the others live, and one goes
            all.push_back(this->live(system, engine, 7));
            expectSameBits(all.back().first, all[2].first);
            all.erase(all.begin() + 2);
            for (const auto& one : all)
            {
                expectSameBits(evaluate(*one.solver, system), one.first);
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
