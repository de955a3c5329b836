/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "sequence.h"

#include <cmath>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <omp.h>

#include "systems.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr double c_nan = std::numeric_limits<double>::quiet_NaN();

double uniform(std::mt19937& random, double low = 0, double high = 1)
{
    return std::uniform_real_distribution<double>(low, high)(random);
}
bool chance(std::mt19937& random, double p)
{
    return uniform(random) < p;
}
double logUniform(std::mt19937& random, double low, double high)
{
    return low * std::pow(high / low, uniform(random));
}
int below(std::mt19937& random, int n)
{
    return static_cast<int>(random() % static_cast<unsigned>(n));
}

//! A box in the layout of the interface.
struct BoxArray
{
    explicit BoxArray(const Matrix& matrix)
    {
        for (int i = 0; i < 3; ++i)
        {
            std::copy(matrix[i].begin(), matrix[i].end(), rows[i]);
        }
    }
    double rows[3][3];
};

//! Totals that are equal bit by bit.
bool areEqual(const Totals& a, const Totals& b)
{
    return a.energy == b.energy
           && std::equal(&a.virial[0][0], &a.virial[0][0] + 9, &b.virial[0][0]);
}

/*! \brief Longest diagonal of a cell over the distance of the nearest cell of the far field.
 *
 *  |a| + |b| over |D| at worst: expansions of charges in corners converge only below 1. */
double convergenceRatio(const Matrix& box, const Setup& setup)
{
    const auto length = [](const Vector& v)
    { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); };
    const auto& h = setup.cells;
    Matrix cell   = box; // H^-1 B by forward substitution
    for (int i = 0; i < 3; ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            for (int j = 0; j < i; ++j)
            {
                cell[i][k] -= h[i][j] * cell[j][k];
            }
            cell[i][k] /= std::max(1, h[i][i]);
        }
    }
    const auto combined = [&](int a, int b, int c)
    {
        Vector v;
        for (int k = 0; k < 3; ++k)
        {
            v[k] = a * cell[0][k] + b * cell[1][k] + c * cell[2][k];
        }
        return length(v);
    };
    const double diagonal = std::max(
            { combined(1, 1, 1), combined(1, 1, -1), combined(1, -1, 1), combined(1, -1, -1) });
    const int far  = setup.directRange + 1;
    double nearest = std::numeric_limits<double>::max();
    for (int a = -far; a <= far; ++a)
    {
        for (int b = -far; b <= far; ++b)
        {
            for (int c = -far; c <= far; ++c)
            {
                if (std::max({ std::abs(a), std::abs(b), std::abs(c) }) == far)
                {
                    nearest = std::min(nearest, combined(a, b, c));
                }
            }
        }
    }
    return diagonal / nearest;
}

//! What an evaluation has to give, and what rounding may do to it.
struct Expectation
{
    Evaluation value;
    double scale          = 0; //!< of the accuracy, kJ/mol/nm
    double forceError     = 0; //!< of the reference, RMS, kJ/mol/nm
    double forceMagnitude = 0; //!< RMS of the sums of |force| of pairs, kJ/mol/nm
    double pairEnergies   = 0; //!< sum of |energy| of near and excluded pairs, kJ/mol
};

Expectation expectationFor(const System& system)
{
    Expectation result;
    std::vector<double> magnitudes;
    result.value   = fastEwald(system, 0, &magnitudes);
    const int n    = system.size();
    double squares = 0;
    for (const auto& [i, j] : system.exclusions)
    {
        // What a solver may add and take away again; closer pairs it has to leave out.
        const Vector& a = system.positions[i];
        const Vector& b = system.positions[j];
        const double r =
                std::max(0.03,
                         std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])
                                   + (a[2] - b[2]) * (a[2] - b[2])));
        const double qq = c_coulomb * std::abs(system.charges[i] * system.charges[j]);
        magnitudes[i] += qq / (r * r);
        magnitudes[j] += qq / (r * r);
        result.pairEnergies += qq / r;
    }
    for (const double m : magnitudes)
    {
        squares += m * m;
    }
    result.forceMagnitude = n == 0 ? 0 : std::sqrt(squares / n);
    result.pairEnergies += n * c_coulomb * system.meanSquareCharge() / 0.2;
    result.pairEnergies += std::abs(result.value.energy);
    result.scale = forceScale(system, result.value.forces);
    // Two splittings agree to this, see FastEwald.BoundsItsOwnErrorInEveryKindOfSystem.
    result.forceError = 64 * std::numeric_limits<double>::epsilon() * result.forceMagnitude;
    return result;
}

//! A kind of call and how often it is made; the weights add up to 1.
struct WeightedCall
{
    const char* name;
    double weight;
};
constexpr WeightedCall c_calls[] = {
    { "evaluate", 0.20 }, { "move", 0.10 },    { "scale", 0.06 },     { "deform", 0.10 },
    { "jump", 0.05 },     { "restore", 0.06 }, { "foreign", 0.03 },   { "spoiled", 0.03 },
    { "moved", 0.04 },    { "invalid", 0.12 }, { "parallel", 0.01 },  { "threads", 0.01 },
    { "queries", 0.03 },  { "repeat", 0.04 },  { "options", 0.03 },   { "prepare", 0.03 },
    { "load", 0.02 },     { "charges", 0.02 }, { "exclusions", 0.02 }
};

template<class Real>
class Sequence
{
public:
    Sequence(unsigned seed,
             const FuzzSettings& settings,
             const std::function<void(int, const std::string&)>& report) :
        seed_(seed),
        settings_(settings), report_(report)
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
            std::string name = pick(own);
            if (isKept(call) && settings_.without.count(name) == 0)
            {
                begin(call, name);
                make(name, own);
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
    std::mt19937 generator(int call) const
    {
        std::seed_seq seeds = { seed_, static_cast<unsigned>(call + 1) };
        return std::mt19937(seeds);
    }

    static std::string pick(std::mt19937& random)
    {
        double rest = uniform(random);
        for (const WeightedCall& call : c_calls)
        {
            rest -= call.weight;
            if (rest < 0)
            {
                return call.name;
            }
        }
        return "evaluate";
    }

    void begin(int call, const std::string& name)
    {
        call_   = name;
        number_ = call;
        std::ostringstream text;
        text << name << " (" << describe() << ")";
        report_(call, text.str());
    }

    //! Precision, options and system on one line.
    std::string describe() const
    {
        std::ostringstream text;
        text << (sizeof(Real) == 4 ? "float" : "double") << ", accuracy " << options_.accuracy
             << ", order " << options_.order << ", ws " << options_.directRange << ", cell "
             << options_.cellSize << ", " << nameOf(options_.m2l)
             << (options_.leastSquares ? "" : ", truncated") << ", threads " << options_.threads
             << (options_.reproducible ? ", reproducible" : "") << "; " << system_.name << ", N "
             << system_.size() << ", box";
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j <= i; ++j)
            {
                text << " " << system_.box[i][j];
            }
        }
        return text.str();
    }

    [[noreturn]] void fail(const std::string& kind, const std::string& text) const
    {
        std::string setUp;
        if (solver_)
        {
            const Setup s = solver_->setup();
            std::ostringstream out;
            out << "; in use: p " << s.order << ", ws " << s.directRange << ", levels " << s.levels
                << ", cells " << s.leafCells << " of " << s.cellSize
                << " nm, diagonal over far cell " << convergenceRatio(system_.box, s)
                << ", estimate " << s.estimatedError;
            setUp = out.str();
        }
        throw Failure(kind, call_ + ": " + text + setUp);
    }

    Options randomOptions(std::mt19937& random) const
    {
        Options o;
        o.device   = settings_.device;
        o.threads  = 1 + below(random, settings_.mostThreads);
        o.accuracy = logUniform(random, sizeof(Real) == 4 ? 2.1e-6 : 1e-9, 0.09);
        if (chance(random, 0.02))
        {
            o.accuracy = sizeof(Real) == 4 ? 2e-6 : 1e-11;
        }
        if (chance(random, 0.25))
        {
            o.order = chance(random, 0.1) ? below(random, c_maxOrder + 1) : below(random, 13);
        }
        if (chance(random, 0.3))
        {
            o.directRange = 1 + below(random, 2);
        }
        if (chance(random, 0.2))
        {
            o.cellSize = logUniform(random, 0.2, 3);
        }
        if (chance(random, 0.4))
        {
            // those for a GPU only come last
            const auto engines = std::count_if(std::begin(c_m2lEngines),
                                               std::end(c_m2lEngines),
                                               [&](const M2lEngineDescription& engine) {
                                                   return !engine.isForGpuOnly
                                                          || settings_.device == Device::Gpu;
                                               });
            o.m2l              = c_m2lEngines[below(random, static_cast<int>(engines))].value;
        }
        o.leastSquares = chance(random, 0.7);
        o.reproducible = chance(random, 0.3);
        return o;
    }

    //! Whether what the solver does is up to the accuracy alone.
    bool isLeftToTheAccuracy() const { return options_.order < 0 && options_.cellSize == 0; }

    void setSystem(System system)
    {
        system_  = rounded<Real>(std::move(system));
        isKnown_ = false;
    }

    void load(std::mt19937& random)
    {
        setSystem(randomSystem(random, settings_.most));
        begin(number_, call_); // again, now that the system is known
        sendCharges();
        sendExclusions(chance(random, 0.5));
    }

    void sendCharges()
    {
        const std::vector<Real> q(system_.charges.begin(), system_.charges.end());
        solver_->setCharges(q.data(), system_.size());
    }

    void sendExclusions(bool bothWays)
    {
        std::vector<std::vector<int>> rows(system_.size());
        for (const auto& [i, j] : system_.exclusions)
        {
            rows[i].push_back(j);
            if (bothWays)
            {
                rows[j].push_back(i);
            }
        }
        std::vector<int> offsets = { 0 }, partners;
        for (const auto& row : rows)
        {
            partners.insert(partners.end(), row.begin(), row.end());
            offsets.push_back(static_cast<int>(partners.size()));
        }
        solver_->setExclusions(offsets.data(), partners.data(), system_.size());
    }

    std::vector<Real> positions() const
    {
        std::vector<Real> x;
        for (const Vector& r : system_.positions)
        {
            for (const double component : r)
            {
                x.push_back(static_cast<Real>(component));
            }
        }
        return x;
    }

    static Request randomRequest(std::mt19937& random)
    {
        Request request;
        request.energy        = chance(random, 0.7);
        request.virial        = chance(random, 0.4);
        request.replaceForces = chance(random, 0.5);
        if (chance(random, 0.5))
        {
            request.gridOffset = { uniform(random), uniform(random), uniform(random) };
        }
        if (chance(random, 0.1))
        {
            request.gridOffset = { 1, 0, 1 };
        }
        if (chance(random, 0.3))
        {
            request.step = below(random, 1000000);
        }
        return request;
    }

    //! Legal errors for legal input: no memory, or what only other options can mend.
    void acceptOrFail(const Error& error) const
    {
        const std::string option = error.parameter();
        const std::string text   = error.what();
        if (text.empty())
        {
            fail("error without text", "an error has no text");
        }
        const bool isLegal =
                error.code() == ErrorCode::OutOfMemory
                || (error.code() == ErrorCode::InvalidArgument
                    && (option == "accuracy" || (option == "cellSize" && options_.cellSize > 0)
                        || (option == "order" && options_.order >= 0)));
        if (!isLegal)
        {
            fail("refused", "legal input gives \"" + text + "\" [" + option + "]");
        }
    }

    /*! Evaluates and checks; false if the library refused it legally. \p totals and \p forces
     *  receive the result. */
    bool evaluateAndCheck(const Request& request,
                          std::vector<Real>* forces,
                          Totals* totals,
                          bool isInParallel = false)
    {
        const std::vector<Real> x = positions();
        const std::vector<Real> before(*forces);
        try
        {
            if (isInParallel)
            {
                std::exception_ptr caught;
#pragma omp parallel num_threads(2)
#pragma omp single
                {
                    try
                    {
                        *totals = solver_->evaluate(
                                x.data(), BoxArray(system_.box).rows, forces->data(), request);
                    }
                    catch (...)
                    {
                        caught = std::current_exception();
                    }
                }
                if (caught)
                {
                    std::rethrow_exception(caught);
                }
            }
            else
            {
                *totals = solver_->evaluate(
                        x.data(), BoxArray(system_.box).rows, forces->data(), request);
            }
        }
        catch (const Error& error)
        {
            if (*forces != before)
            {
                fail("forces after error", "forces have changed although evaluate() threw");
            }
            acceptOrFail(error);
            return false;
        }
        check(request, before, *forces, *totals);
        return true;
    }

    const Expectation& expected()
    {
        if (!isKnown_)
        {
            expectation_ = expectationFor(system_);
            isKnown_     = true;
        }
        return expectation_;
    }

    void check(const Request& request,
               const std::vector<Real>& before,
               const std::vector<Real>& forces,
               const Totals& totals)
    {
        const Expectation& e = expected();
        const int n          = system_.size();
        const double unit    = std::numeric_limits<Real>::epsilon();
        const Setup s        = solver_->setup();
        double squares = 0, old = 0;
        for (int i = 0; i < n; ++i)
        {
            for (int k = 0; k < 3; ++k)
            {
                const size_t at     = 3 * static_cast<size_t>(i) + k;
                const double start  = request.replaceForces ? 0 : before[at];
                const double result = forces[at] - start;
                squares += std::pow(result - e.value.forces[i][k], 2);
                old += start * start;
            }
        }
        const double error = n == 0 ? 0 : std::sqrt(squares / n);
        // Forces are added to what is there, which rounds the sum.
        const double adding = n == 0 ? 0 : 4 * unit * std::sqrt(old / n);
        std::ostringstream numbers;
        numbers << "RMS force error " << error << " of " << e.scale << " kJ/mol/nm ("
                << error / (e.scale > 0 ? e.scale : 1) << "), magnitude of the pairs "
                << e.forceMagnitude;
        const double floor = e.forceError + adding;
        // No matter of accuracy: neither beside the result nor beside what it is the sum of.
        if (!(error <= 1e-2 * e.forceMagnitude + floor) && !(error <= 0.3 * e.scale + floor)
            && isLeftToTheAccuracy())
        {
            fail("forces are wrong", numbers.str());
        }
        if (isLeftToTheAccuracy()
            && !(error <= settings_.slack * options_.accuracy * e.scale + floor))
        {
            fail("accuracy is missed", numbers.str());
        }
        // An explicit order or cell size stands: then the estimate has to say what it costs. It
        // is a mean over positions of the grid, of which few particles sample one.
        const double spread = 4 + 8 / std::sqrt(std::max(n, 1));
        if (!isLeftToTheAccuracy()
            && !(error
                 <= settings_.slack * spread * (s.estimatedError + 100 * unit) * e.scale + floor))
        {
            fail("estimate is too low", numbers.str());
        }
        // Energy. The error of q phi is at most that of the force times the length over which it
        // acts, the edge of a cell of the coarsest level; at worst all particles agree in sign.
        const double allowed = std::max(options_.accuracy, spread * s.estimatedError);
        const double length  = 2 * s.cellSize * std::exp2(std::max(0, s.levels - 1));
        const double energyBound =
                settings_.slack * 2 * allowed * e.scale * length * n + 64 * unit * e.pairEnergies;
        const bool hasEnergy = request.energy || request.virial;
        if (!hasEnergy && totals.energy != 0)
        {
            fail("energy unasked", "an energy that was not asked for is not 0");
        }
        if (hasEnergy && !(std::abs(totals.energy - e.value.energy) <= energyBound))
        {
            std::ostringstream text;
            text << "energy " << totals.energy << " instead of " << e.value.energy << ", bound "
                 << energyBound;
            fail("energy is wrong", text.str());
        }
        const double rounding = 64 * unit * e.pairEnergies;
        for (int i = 0; i < 3; ++i)
        {
            for (int j = 0; j < 3; ++j)
            {
                const double entry = totals.virial[i][j];
                if (!request.virial && entry != 0)
                {
                    fail("virial unasked", "a virial that was not asked for is not 0");
                }
                // A strain multiplies a term of degree l + l' by at most l + l' + 1.
                if (request.virial
                    && !(std::abs(entry - e.value.virial[i][j])
                         <= (2 * s.order + 3) * energyBound + rounding))
                {
                    std::ostringstream text;
                    text << "virial " << i << " " << j << " is " << entry << " instead of "
                         << e.value.virial[i][j] << ", bound "
                         << (2 * s.order + 3) * energyBound + rounding;
                    fail("virial is wrong", text.str());
                }
                if (request.virial && !(std::abs(entry - totals.virial[j][i]) <= rounding))
                {
                    fail("virial is not symmetric", "virial is not symmetric");
                }
            }
        }
        if (request.virial)
        {
            const double trace = totals.virial[0][0] + totals.virial[1][1] + totals.virial[2][2];
            if (!(std::abs(trace + 0.5 * totals.energy)
                  <= rounding + 1e-3 * (2 * s.order + 3) * energyBound))
            {
                std::ostringstream text;
                text << "trace of the virial " << trace << ", -E/2 " << -0.5 * totals.energy;
                fail("trace is not -E/2", text.str());
            }
        }
    }

    std::vector<Real> randomForces(std::mt19937& random)
    {
        // About as large as the result, so that adding rounds no more than the result itself.
        const double size = chance(random, 0.5) ? 0 : expected().scale;
        std::vector<Real> forces(3 * static_cast<size_t>(system_.size()));
        for (Real& f : forces)
        {
            f = static_cast<Real>(uniform(random, -size, size));
        }
        return forces;
    }

    bool evaluate(std::mt19937& random)
    {
        const Request request    = randomRequest(random);
        std::vector<Real> forces = randomForces(random);
        Totals totals;
        return evaluateAndCheck(request, &forces, &totals);
    }

    bool isReproducible() const
    {
        return settings_.device == Device::Cpu || options_.reproducible;
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

    void restore(std::mt19937& random)
    {
        const Request request         = randomRequest(random);
        const std::vector<Real> start = randomForces(random);
        std::vector<Real> one(start), two(start);
        Totals first, second;
        if (!evaluateAndCheck(request, &one, &first))
        {
            return;
        }
        const std::vector<double> state = solver_->state();
        if (state.empty())
        {
            return; // without particles nothing is chosen
        }
        auto other = std::make_unique<Solver<Real>>(options_);
        other->restore(state);
        solver_ = std::move(other);
        sendCharges();
        sendExclusions(false);
        if (solver_->state() != state)
        {
            fail("state changed", "a restored solver has another state");
        }
        if (evaluateAndCheck(request, &two, &second) && isReproducible()
            && (one != two || !areEqual(first, second)))
        {
            fail("restored differs", "a restored solver gives another result");
        }
    }

    //! A state of other options or with changed numbers: refused, or no worse than promised.
    void restoreAnother(std::mt19937& random, bool isSpoiled)
    {
        std::vector<double> state;
        if (isSpoiled)
        {
            evaluate(random);
            state = solver_->state();
            for (int changes = 1 + below(random, 2); changes > 0 && !state.empty(); --changes)
            {
                // one of the whole numbers more often than the reals that follow
                double& entry          = state[below(random,
                                            chance(random, 0.7) ? std::min<int>(state.size(), 14)
                                                                         : state.size())];
                const double factors[] = { 0, -1, 2, 0.5, 3, 1e6, c_nan };
                entry = chance(random, 0.5) ? entry + (chance(random, 0.5) ? 1 : -1)
                                            : entry * factors[below(random, 7)];
            }
        }
        else
        {
            Options others      = randomOptions(random);
            const bool isNearby = chance(random, 0.5);
            if (isNearby)
            {
                const double accuracy = others.accuracy;
                others                = options_;
                others.accuracy       = accuracy;
            }
            Solver<Real> source(others);
            const std::vector<Real> q(system_.charges.begin(), system_.charges.end());
            source.setCharges(q.data(), system_.size());
            try
            {
                source.prepare(positions().data(), BoxArray(system_.box).rows);
            }
            catch (const Error&)
            {
                return;
            }
            state = source.state();
        }
        try
        {
            solver_->restore(state);
        }
        catch (const Error& error)
        {
            if ((error.code() != ErrorCode::InvalidArgument
                 && error.code() != ErrorCode::OutOfMemory)
                || std::string(error.what()).empty())
            {
                fail("error of restore", error.what());
            }
        }
        evaluate(random);
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

    //! Expects an InvalidArgument from \p call.
    void expectInvalid(const std::string& what, const std::function<void()>& call)
    {
        try
        {
            call();
        }
        catch (const Error& error)
        {
            if (error.code() != ErrorCode::InvalidArgument
                && error.code() != ErrorCode::Unsupported)
            {
                fail("wrong code", what + ": " + error.what());
            }
            if (std::string(error.what()).empty())
            {
                fail("error without text", what);
            }
            return;
        }
        fail("accepted", what + " is accepted");
    }

    void invalid(std::mt19937& random)
    {
        const int n         = system_.size();
        std::vector<Real> x = positions();
        BoxArray box(system_.box);
        const std::vector<Real> start = randomForces(random);
        std::vector<Real> forces(start);
        const auto evaluateNow = [&] { solver_->evaluate(x.data(), box.rows, forces.data()); };
        const double bad[]     = { c_nan,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity() };
        switch (below(random, 9))
        {
            case 0:
                if (n > 0)
                {
                    x[below(random, 3 * n)] = static_cast<Real>(bad[below(random, 3)]);
                    expectInvalid("a position that is not finite", evaluateNow);
                }
                break;
            case 1:
                box.rows[below(random, 3)][2] = -1;
                expectInvalid("a box that is not lower triangular", evaluateNow);
                break;
            case 2:
            {
                const int k    = below(random, 3);
                box.rows[k][k] = chance(random, 0.5) ? 0 : bad[below(random, 3)];
                expectInvalid("a box without a volume", evaluateNow);
                break;
            }
            case 3:
            {
                std::vector<int> offsets(n + 2, 0), partners = { n };
                expectInvalid("exclusions of another number of particles",
                              [&]
                              { solver_->setExclusions(offsets.data(), partners.data(), n + 1); });
                std::fill(offsets.begin() + 1, offsets.end(), 1);
                if (n > 0)
                {
                    expectInvalid("a partner that does not exist",
                                  [&]
                                  { solver_->setExclusions(offsets.data(), partners.data(), n); });
                }
                break;
            }
            case 4:
            {
                std::vector<Real> q(n + 1, 0);
                q[below(random, n + 1)] = static_cast<Real>(bad[below(random, 3)]);
                expectInvalid("a charge that is not finite",
                              [&] { solver_->setCharges(q.data(), n + 1); });
                expectInvalid("a negative number of particles",
                              [&] { solver_->setCharges(q.data(), -1); });
                break;
            }
            case 5:
            {
                Request request;
                request.gridOffset[below(random, 3)] =
                        chance(random, 0.5) ? -0.1 : bad[below(random, 3)];
                if (n > 0)
                {
                    expectInvalid(
                            "a position of the grid outside the cell",
                            [&] { solver_->evaluate(x.data(), box.rows, forces.data(), request); });
                }
                break;
            }
            case 6:
                expectInvalid("a state of nothing",
                              [&] { solver_->restore(std::vector<double>(below(random, 60), 0)); });
                break;
            case 7:
            {
                // finite, but without a meaning: an error or numbers, no crash
                if (n > 0)
                {
                    x[below(random, 3 * n)] = static_cast<Real>(
                            logUniform(random, 1e6, sizeof(Real) == 4 ? 1e38 : 1e308));
                    try
                    {
                        evaluateNow();
                        forces = start;
                    }
                    catch (const Error& error)
                    {
                        if (error.code() != ErrorCode::InvalidArgument)
                        {
                            acceptOrFail(error);
                        }
                    }
                }
                break;
            }
            default:
            {
                Options options = options_;
                switch (below(random, 6))
                {
                    case 0:
                        options.accuracy = chance(random, 0.5) ? 0 : c_nan;
                        break;
                    case 1:
                        options.order = chance(random, 0.5) ? -2 : 21;
                        break;
                    case 2:
                        options.directRange = 3;
                        break;
                    case 3:
                        options.cellSize = bad[below(random, 3)];
                        break;
                    case 4:
                        options.threads = -1;
                        break;
                    default:
                        options.coulombConstant = chance(random, 0.5) ? 0 : c_nan;
                        break;
                }
                expectInvalid("an option out of range", [&] { Solver<Real> solver(options); });
            }
        }
        if (forces != start)
        {
            fail("forces after error", "forces have changed although evaluate() threw");
        }
        evaluate(random);
    }

    //! Two solvers in two threads, which share nothing that the caller sees.
    void inThreads()
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
                    const std::vector<Real> q(system_.charges.begin(), system_.charges.end());
                    solver.setCharges(q.data(), system_.size());
                    Request request;
                    request.replaceForces = true;
                    solver.evaluate(positions().data(),
                                    BoxArray(system_.box).rows,
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

    void make(const std::string& name, std::mt19937& random)
    {
        if (name == "evaluate")
        {
            evaluate(random);
        }
        else if (name == "move")
        {
            move(random);
        }
        else if (name == "scale")
        {
            deform(random, logUniform(random, 1e-7, 0.1), true);
        }
        else if (name == "deform")
        {
            deform(random, logUniform(random, 1e-8, 0.2), false);
        }
        else if (name == "jump")
        {
            Matrix f = unitMatrix();
            for (int k = 0; k < 3; ++k)
            {
                f[k][k] = logUniform(random, 0.6, 12);
            }
            setSystem(deformed(system_, f));
            evaluate(random);
        }
        else if (name == "restore")
        {
            restore(random);
        }
        else if (name == "foreign" || name == "spoiled")
        {
            restoreAnother(random, name == "spoiled");
        }
        else if (name == "moved")
        {
            moved(random);
        }
        else if (name == "invalid")
        {
            invalid(random);
        }
        else if (name == "parallel")
        {
            evaluate(random);
            std::vector<Real> forces = randomForces(random);
            Totals totals;
            evaluateAndCheck(randomRequest(random), &forces, &totals, true);
        }
        else if (name == "threads")
        {
            inThreads();
        }
        else if (name == "queries")
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
        else if (name == "repeat")
        {
            repeat(random);
        }
        else if (name == "options")
        {
            options_ = randomOptions(random);
            solver_  = std::make_unique<Solver<Real>>(options_);
            sendCharges();
            sendExclusions(false);
        }
        else if (name == "prepare")
        {
            try
            {
                solver_->prepare(positions().data(), BoxArray(system_.box).rows);
            }
            catch (const Error& error)
            {
                acceptOrFail(error);
            }
        }
        else if (name == "load")
        {
            load(random);
        }
        else if (name == "charges")
        {
            System next         = system_;
            const double factor = chance(random, 0.2) ? 0 : uniform(random, -3, 3);
            for (double& q : next.charges)
            {
                q *= factor;
            }
            setSystem(next);
            sendCharges();
        }
        else if (name == "exclusions")
        {
            System next = system_;
            if (chance(random, 0.5))
            {
                next.exclusions.clear();
            }
            for (int pairs = below(random, 20); pairs > 0 && next.size() > 1; --pairs)
            {
                next.exclusions.emplace_back(below(random, next.size()),
                                             below(random, next.size()));
            }
            setSystem(next);
            sendExclusions(chance(random, 0.5));
        }
    }

    unsigned seed_;
    const FuzzSettings& settings_;
    const std::function<void(int, const std::string&)>& report_;
    std::string call_; //!< the present one
    int number_ = 0;   //!< of the present call
    Options options_;
    System system_;
    std::unique_ptr<Solver<Real>> solver_;
    Expectation expectation_;
    bool isKnown_ = false;
};

} // namespace

std::set<std::string> callNames()
{
    std::set<std::string> names;
    for (const WeightedCall& call : c_calls)
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
