/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sequence.h"

#include <cmath>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "draw_exclusions.h"
#include "ranks_call.h"
#include "saved_states.h"
#include "systems.h"

namespace farfield
{
namespace test
{

namespace
{

template<class Real>
class Sequence : public SavedStates<Real>
{
public:
    //! A kind of call and how often it is made; the weights add up to 1.
    struct Call
    {
        const char* name;
        double weight;
        void (Sequence::*make)(std::mt19937&);
    };
    static const std::vector<Call>& calls()
    {
        static const std::vector<Call> c_calls = {
            { "evaluate", 0.11, &Sequence::evaluateOnce },
            { "move", 0.10, &Sequence::move },
            { "scale", 0.06, &Sequence::scale },
            { "deform", 0.10, &Sequence::deformAnyhow },
            { "jump", 0.05, &Sequence::jump },
            { "restore", 0.06, &Sequence::restored },
            { "foreign", 0.03, &Sequence::foreign },
            { "spoiled", 0.03, &Sequence::spoiled },
            { "moved", 0.04, &Sequence::moved },
            { "invalid", 0.09, &Sequence::invalidOnce },
            { "parallel", 0.01, &Sequence::inParallel },
            { "threads", 0.01, &Sequence::inThreads },
            { "queries", 0.03, &Sequence::queries },
            { "repeat", 0.04, &Sequence::repeat },
            { "options", 0.03, &Sequence::otherOptions },
            { "prepare", 0.03, &Sequence::prepare },
            { "load", 0.02, &Sequence::load },
            { "charges", 0.02, &Sequence::otherCharges },
            { "exclusions", 0.02, &Sequence::otherExclusions },
            { "ranks", 0.02, &Sequence::onSomeRanks },
            { "contacts", 0.04, &Sequence::contacts },
            { "scatter", 0.02, &Sequence::scatter },
            { "far", 0.02, &Sequence::farParticle },
            { "zeros", 0.01, &Sequence::zeros },
            { "signs", 0.01, &Sequence::signs }
        };
        return c_calls;
    }

    Sequence(unsigned seed,
             const FuzzSettings& settings,
             const std::function<void(int, const std::string&)>& report) :
        SavedStates<Real>(settings),
        seed_(seed), report_(report)
    {
    }

    int run(const std::function<bool(int)>& isKept)
    {
        std::mt19937 random = generator(-1);
        const int calls     = 2 + below(random, 12);
        begin(0, "construct");
        std::mt19937 first = generator(0);
        options_           = randomOptions(first);
        solver_            = std::make_unique<Solver<Real>>(options_);
        begin(1, "load");
        std::mt19937 second = generator(1);
        load(second);
        for (int call = 2; call < calls; ++call)
        {
            std::mt19937 own = generator(call);
            const Call& next = pick(own);
            if (isKept(call) && settings_.without.count(next.name) == 0)
            {
                begin(call, next.name);
                (this->*next.make)(own);
            }
        }
        if (isKept(calls))
        {
            begin(calls, "evaluate");
            std::mt19937 last = generator(calls);
            evaluate(last);
        }
        return calls + 1;
    }

private:
    using Base = CheckedSolver<Real>;
    using Base::call_;
    using Base::evaluate;
    using Base::evaluateAndCheck;
    using Base::fail;
    using Base::isReproducible;
    using Base::options_;
    using Base::randomForces;
    using SavedStates<Real>::randomOptions;
    using Base::randomRequest;
    using Base::setSystem;
    using Base::settings_;
    using Base::solver_;
    using Base::system_;

    std::mt19937 generator(int call) const
    {
        std::seed_seq seeds = { seed_, static_cast<unsigned>(call + 1) };
        return std::mt19937(seeds);
    }

    static const Call& pick(std::mt19937& random)
    {
        double rest = uniform(random);
        for (const Call& call : calls())
        {
            rest -= call.weight;
            if (rest < 0)
            {
                return call;
            }
        }
        return calls().front();
    }

    void begin(int call, const std::string& name)
    {
        call_   = name;
        number_ = call;
        std::ostringstream text;
        text << name << " (" << this->describe() << ")";
        report_(call, text.str());
    }

    void load(std::mt19937& random)
    {
        setSystem(randomSystem(random, settings_.most));
        begin(number_, call_); // again, now that the system is known
        loadCharges(*solver_, system_);
        loadExclusions(*solver_, system_, chance(random, 0.5));
    }

    void repeat(std::mt19937& random)
    {
        const Request request         = randomRequest(random);
        const std::vector<Real> start = randomForces(random);
        std::vector<Real> one(start), two(start);
        Totals first, second;
        if (evaluateAndCheck(request, &one, &first) && evaluateAndCheck(request, &two, &second)
            && isReproducible() && (one != two || !areEqual(first, second)))
        {
            fail("not reproducible", "the same evaluation gives another result");
        }
    }

    void move(std::mt19937& random)
    {
        System next       = system_;
        const double step = logUniform(random, 1e-4, 0.05);
        for (Vector& x : next.positions)
        {
            for (double& component : x)
            {
                component += uniform(random, -step, step);
            }
        }
        setSystem(next);
        evaluate(random);
    }

    void deform(std::mt19937& random, double amount, bool isIsotropic)
    {
        Matrix f = unitMatrix();
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j <= i; ++j)
            {
                f[i][j] += amount * uniform(random, -1, 1);
            }
        }
        if (isIsotropic)
        {
            f       = unitMatrix();
            f[0][0] = f[1][1] = f[2][2] = 1 + amount * uniform(random, -1, 1);
        }
        setSystem(deformed(system_, f));
        evaluate(random);
    }

    //! A bad start or a particle that flies away, and what was there before.
    void visit(std::mt19937& random, const System& bad, bool isFar, double closest = 1)
    {
        const System settled = system_;
        this->setAsItIs(bad);
        this->evaluateAndJudge(isFar, closest);
        setSystem(settled);
        evaluate(random);
    }
    void contacts(std::mt19937& random)
    {
        const int pairs       = 1 + below(random, chance(random, 0.5) ? 3 : 100);
        const double distance = logUniform(random, 1e-5, 0.1);
        visit(random, withContacts(system_, pairs, distance, random), false, distance);
    }
    void scatter(std::mt19937& random) { visit(random, scattered(system_, random), false); }
    void farParticle(std::mt19937& random)
    {
        //! Sums over all pairs and their images take long.
        constexpr int c_most = 400;
        const int n          = system_.size();
        if (n == 0 || n > c_most || !isOpenAlong(options_.boundary, 2))
        {
            return;
        }
        System bad    = system_;
        double& place = bad.positions[below(random, n)][2];
        place += logUniform(random, 10, 2e4) * (chance(random, 0.5) ? 1 : -1);
        visit(random, bad, true);
    }
    void zeros(std::mt19937& random)
    {
        const double part = chance(random, 0.5) ? 0.02 : uniform(random);
        System next       = system_;
        for (double& q : next.charges)
        {
            q = chance(random, part) ? q : 0;
        }
        visitCharges(random, next);
    }
    void signs(std::mt19937& random)
    {
        System next = system_;
        for (double& q : next.charges)
        {
            q = std::abs(q);
        }
        visitCharges(random, next);
    }
    //! Other charges, and those that were there before.
    void visitCharges(std::mt19937& random, const System& next)
    {
        const System all = system_;
        for (const System& system : { next, all })
        {
            setSystem(system);
            loadCharges(*solver_, system_);
            evaluate(random);
        }
    }

    void moved(std::mt19937& random)
    {
        Solver<Real> other(std::move(*solver_));
        if (chance(random, 0.5))
        {
            Solver<Real> third(options_);
            third    = std::move(other);
            *solver_ = std::move(third);
        }
        else
        {
            solver_ = std::make_unique<Solver<Real>>(std::move(other));
        }
        evaluate(random);
    }

    //! Two solvers in two threads, which share nothing that the caller sees.
    void inThreads(std::mt19937& /*random*/)
    {
        if (system_.size() == 0)
        {
            return;
        }
        std::vector<std::vector<Real>> results(2, std::vector<Real>(3 * system_.size()));
        const auto work = [&](int t)
        {
            try
            {
                for (int repeat = 0; repeat < 20; ++repeat)
                {
                    // quick to set up: what may go wrong between threads is there
                    Options options;
                    options.device       = settings_.device;
                    options.order        = 3 + t;
                    options.m2l          = options_.m2l;
                    options.reproducible = true;
                    options.threads      = 1;
                    Solver<Real> solver(options);
                    loadCharges(solver, system_);
                    Request request;
                    request.replaceForces = true;
                    solver.evaluate(flatPositions<Real>(system_).data(),
                                    Box(system_.box).rows,
                                    results[t].data(),
                                    request);
                }
            }
            catch (const Error&)
            {
                // what is refused here is refused below as well
            }
        };
        std::thread one(work, 0), two(work, 1);
        one.join();
        two.join();
        const std::vector<std::vector<Real>> inThreads = results;
        work(0);
        work(1);
        if (results != inThreads)
        {
            fail("threads differ", "two solvers in two threads give other forces than one by one");
        }
    }

    void evaluateOnce(std::mt19937& random) { evaluate(random); }
    void invalidOnce(std::mt19937& random) { this->invalid(random); }
    void scale(std::mt19937& random) { deform(random, logUniform(random, 1e-7, 0.1), true); }
    void deformAnyhow(std::mt19937& random)
    {
        deform(random, logUniform(random, 1e-8, 0.2), false);
    }
    void jump(std::mt19937& random)
    {
        Matrix f = unitMatrix();
        for (int k = 0; k < 3; ++k)
        {
            f[k][k] = logUniform(random, 0.6, 12);
        }
        setSystem(deformed(system_, f));
        evaluate(random);
    }
    void restored(std::mt19937& random) { this->restore(random); }
    void foreign(std::mt19937& random) { this->restoreAnother(random, false); }
    void spoiled(std::mt19937& random) { this->restoreAnother(random, true); }
    void inParallel(std::mt19937& random)
    {
        evaluate(random);
        std::vector<Real> forces = randomForces(random);
        Totals totals;
        evaluateAndCheck(this->randomRequest(random), &forces, &totals, true);
    }
    void queries(std::mt19937& /*random*/)
    {
        solver_->setup();
        solver_->state();
        solver_->timings();
        solver_->resetTimings();
        if (!solver_->timings().empty())
        {
            fail("timings", "times are not 0 after they were reset");
        }
    }
    void otherOptions(std::mt19937& random)
    {
        options_ = randomOptions(random);
        solver_  = std::make_unique<Solver<Real>>(options_);
        setSystem(system_); // which may have other boundaries
        loadCharges(*solver_, system_);
        loadExclusions(*solver_, system_, false);
    }
    void onSomeRanks(std::mt19937& random)
    {
        RanksCall<Real>(&random, settings_, options_)
                .make([this](const Error& error) { this->acceptOrFail(error); });
    }
    void prepare(std::mt19937& /*random*/)
    {
        try
        {
            solver_->prepare(flatPositions<Real>(system_).data(), Box(system_.box).rows);
        }
        catch (const Error& error)
        {
            this->acceptOrFail(error);
        }
    }
    void otherCharges(std::mt19937& random)
    {
        System next         = system_;
        const double factor = chance(random, 0.2) ? 0 : uniform(random, -3, 3);
        for (double& q : next.charges)
        {
            q *= factor;
        }
        setSystem(next);
        loadCharges(*solver_, system_);
    }
    void otherExclusions(std::mt19937& random)
    {
        System next = system_;
        if (chance(random, 0.5))
        {
            excludeNoPairs(&next);
        }
        excludePairs(&next, options_.boundary, 20, random);
        setSystem(next);
        loadExclusions(*solver_, system_, chance(random, 0.5));
    }

    unsigned seed_;
    const std::function<void(int, const std::string&)>& report_;
    int number_ = 0; //!< of the present call
};

} // namespace

std::set<std::string> callNames()
{
    std::set<std::string> names;
    for (const auto& call : Sequence<float>::calls())
    {
        names.insert(call.name);
    }
    return names;
}

int runSequence(unsigned seed,
                const FuzzSettings& settings,
                const std::function<bool(int)>& isKept,
                const std::function<void(int, const std::string&)>& report)
{
    try
    {
        return seed % 2 == 0 ? Sequence<float>(seed, settings, report).run(isKept)
                             : Sequence<double>(seed, settings, report).run(isKept);
    }
    catch (const Error& error)
    {
        throw Failure("refused", std::string("legal input gives \"") + error.what() + "\"");
    }
}

} // namespace test
} // namespace farfield
