/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Requested against measured accuracy for every kind of system: one line a case.
 *
 *  Each system and precision runs in a process of its own, so that a crash, a stall or a lack of
 *  memory costs one case. Exit status: 0 if every request is met or refused.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accuracy_case.h"
#include "changing_systems.h"
#include "command_line.h"
#include "open_systems.h"
#include "slab_sum.h"

namespace
{

using namespace farfield;
using namespace farfield::test;

const char* const c_usage =
        R"(Compares the accuracy that is asked for with the accuracy that is measured.

  farfield_accuracy_suite [options]
    --device cpu|gpu      where the solver works                                    [cpu]
    --precision both|float|double                                                   [both]
    --kinds systems|changing|large   single configurations, or those that one solver meets in turn:
                          bad starts, far particles, charges of zero; and crystals; or bad starts
                          of 65 000 and 197 000 particles                           [systems]
    --system TEXT         only the system of this name, or else those whose name contains TEXT
    --request X           only this accuracy                  [1e-2 to 1e-11]
    --threads N           OpenMP threads                                            [2]
    --limit S             seconds a case may take                                   [120]
    --memory G            GiB of address space a case may take, on the CPU          [8]
    --list                prints the names of all systems
    --help                prints this

Columns: system, particles, box edges (nm), precision, requested accuracy, the estimate of
Solver::setup(), the measured error (RMS over positions of the grid, and the worst of them),
measured / requested, estimate / measured, order, ws, levels, cell size (nm), seconds of prepare()
and of an evaluation, verdict:
  met      the error is at most the request at every position of the grid
  WORST    met on the average, missed at some position of the grid
  MISSED   missed
  refused  the library says that it cannot; its words follow
  CRASHED, STALLED
  ENDED    refused after the first configuration of several
Of configurations that one solver meets in turn there is a line for each. Errors of the last one are those of
all particles, of others those of particles that are not in contact, in units of their own RMS force,
at the worse of two positions of the grid; behind
'contacts' is how many particles are (ten times the median force), and their error relative to the
force of each. 'contact' notes that this is more than the request and what rounding of positions does.
Further notes: 'estimate' if it is off by more than a factor of 2 where the measured error is above the
rounding of reference and solver; 'idle' if the error is below a tenth of the request.
)";

struct Settings
{
    Device device         = Device::Cpu;
    std::string precision = "both", system, kinds = "systems";
    double request = 0;
    int threads    = 2;
    int limit      = 120;
    double memory  = 8;
};

//! What the children count; shared memory.
struct Tally
{
    int next; //!< request that is being tried
    int met, worst, missed, refused, ended, crashed, stalled;
    int estimates, idle, compared, contacts;
};

//! Relative rounding that a measurement in single or double precision cannot fall below.
template<class Real>
double unitRounding()
{
    return std::numeric_limits<Real>::epsilon();
}

std::string edges(const Matrix& box)
{
    char text[80];
    std::snprintf(text, sizeof(text), "%.4gx%.4gx%.4g", box[0][0], box[1][1], box[2][2]);
    return text;
}

template<class Real>
std::vector<double> requestsFor(const Settings& settings)
{
    std::vector<double> requests, all = { 1e-2, 1e-3, 3e-4, 1e-5, 1e-7, 1e-9, 1e-11 };
    if (settings.kinds == "changing")
    {
        all = { 1e-2, 1e-3, 3e-4, 1e-4, 5e-5, 1e-5, 1e-7, 1e-9 };
    }
    else if (settings.kinds == "large")
    {
        all = { 1e-3, 3e-4, 5e-5 };
    }
    for (const double request : all)
    {
        if ((sizeof(Real) == 8 || request >= 2e-6)
            && (settings.request == 0 || settings.request == request))
        {
            requests.push_back(request);
        }
    }
    return requests;
}

void printHead(const ReferenceSystem& reference,
               const std::string& name,
               const char* precision,
               double request)
{
    std::printf("%-34s %6d %-18s %-6s %7.0e ",
                name.c_str(),
                reference.system.size(),
                edges(reference.system.box).c_str(),
                precision,
                request);
}

template<class Real>
void runCase(const std::string& name,
             const ReferenceSystem& reference,
             double request,
             const Settings& settings,
             Tally* tally)
{
    Options options;
    options.accuracy = request;
    options.threads  = settings.threads;
    options.device   = settings.device;
    // rare positions have most of the error of few particles, and of crystals, whose planes meet
    // those of the cells
    constexpr int c_most = 20000;
    const int positions =
            std::clamp(c_enoughSamples / std::max(1, reference.system.size()), 4, 240);
    const Accuracy a = measureAccuracy<Real>(reference, options, positions, c_most);
    printHead(reference, name, precisionName<Real>(), request);
    if (!a.refusal.empty())
    {
        std::printf("refused: %s [%s]\n", a.refusal.c_str(), a.refusedOption.c_str());
        ++tally->refused;
        return;
    }
    const Setup& s      = a.setup;
    const char* verdict = "met";
    // What the reference may be off cannot be held against the solver.
    if (!(a.measured <= request + a.floor))
    {
        verdict = "MISSED";
        ++tally->missed;
    }
    else if (!(a.worst <= request + a.floor))
    {
        verdict = "WORST";
        ++tally->worst;
    }
    else
    {
        ++tally->met;
    }
    std::string notes;
    // Rounding is a part of the error that no truncation estimate sees.
    const bool isResolved = a.measured > 10 * a.floor && a.measured > 20 * unitRounding<Real>();
    if (isResolved)
    {
        ++tally->compared;
        if (s.estimatedError > 2 * a.measured || s.estimatedError < a.measured / 2)
        {
            notes += " estimate";
            ++tally->estimates;
        }
    }
    if (a.measured < 0.1 * request)
    {
        notes += " idle";
        ++tally->idle;
    }
    std::printf("%8.2e %8.2e %8.2e %9.3g %9.3g %2d %d %d %7.4g %8.3f %9.6f %s%s\n",
                s.estimatedError,
                a.measured,
                a.worst,
                a.measured / request,
                a.measured > 0 ? s.estimatedError / a.measured : 0.0,
                s.order,
                s.directRange,
                s.levels,
                s.cellSize,
                a.prepareSeconds,
                a.evaluateSeconds,
                verdict,
                notes.c_str());
}

//! Exact forces of a configuration.
std::vector<Vector> exactForces(const System& system, Boundary boundary)
{
    return boundary == Boundary::Periodic ? fastEwald(system, 0).forces
           : boundary == Boundary::Slab   ? slabSum(system, 2).forces
                                          : allPairs(system).forces;
}

//! Configurations that one solver meets in turn, and their forces.
template<class Real>
struct Frames
{
    Boundary boundary;
    std::vector<System> systems;
    std::vector<std::vector<Vector>> exact;

    explicit Frames(const ChangingKind& kind) :
        boundary(kind.images == Images::Everywhere   ? Boundary::Periodic
                 : kind.images == Images::InThePlane ? Boundary::Slab
                                                     : Boundary::Open)
    {
        for (System& system : kind.make())
        {
            systems.push_back(rounded<Real>(std::move(system)));
            exact.push_back(exactForces(systems.back(), boundary));
        }
    }
};

template<class Real>
JudgedForces judgedEvaluation(Solver<Real>* solver,
                              const System& system,
                              const std::vector<Vector>& exact,
                              double accuracy)
{
    const std::vector<Real> x = flatPositions<Real>(system);
    JudgedForces worst;
    for (int k = 0; k < 2; ++k)
    {
        Request request;
        request.energy = request.virial = false;
        request.gridOffset              = gridPosition(k);
        std::vector<Real> f(x.size());
        solver->evaluate(x.data(), Box(system.box).rows, f.data(), request);
        const JudgedForces own = judgedForces(system,
                                              std::vector<double>(f.begin(), f.end()),
                                              exact,
                                              partOfTypicalForce<Real>(accuracy));
        // a NaN must not pass
        worst = k > 0 && own.error <= worst.error && own.ofAll <= worst.ofAll ? worst : own;
    }
    return worst;
}

template<class Real>
void runFrames(const std::string& name,
               const Frames<Real>& frames,
               double request,
               const Settings& settings,
               Tally* tally)
{
    Options options;
    options.accuracy = request;
    options.threads  = settings.threads;
    options.device   = settings.device;
    options.boundary = frames.boundary;
    Solver<Real> solver(options);
    bool isMissed = false;
    for (size_t k = 0; k < frames.systems.size(); ++k)
    {
        const System& system = frames.systems[k];
        printHead({ system, {} }, name, precisionName<Real>(), request);
        JudgedForces judged;
        const auto begin = std::chrono::steady_clock::now();
        try
        {
            if (k == 0 || system.charges != frames.systems[k - 1].charges)
            {
                load(solver, system, false);
            }
            judged = judgedEvaluation(&solver, system, frames.exact[k], request);
        }
        catch (const Error& error)
        {
            std::printf(
                    "%s: %s [%s]\n", k == 0 ? "refused" : "ENDED", error.what(), error.parameter());
            ++(k == 0 ? tally->refused : tally->ended);
            return;
        }
        const Setup s = solver.setup();
        const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        // what a run comes to has no contacts, be its forces even or not
        const bool isLast  = k + 1 == frames.systems.size();
        const double error = isLast ? judged.ofAll : judged.error;
        const bool isMet   = error <= request + 20 * unitRounding<double>();
        isMissed           = isMissed || !isMet;
        // positions are rounded in their cells, by half a unit in the last place of half an edge
        const double nearest = std::sqrt(c_coulomb * system.meanSquareCharge() / judged.strongest);
        const double roundings = 2 * unitRounding<Real>() * s.cellSize / nearest;
        const bool isContact =
                !isLast && judged.inContact > 0 && !(judged.contacts <= request + roundings);
        tally->contacts += isContact ? 1 : 0;
        std::printf("%zu of %zu: %8.2e %8.2e %9.3g %2d %d %d %7.4g %8.3f contacts %d %8.2e %s%s\n",
                    k + 1,
                    frames.systems.size(),
                    s.estimatedError,
                    error,
                    error / request,
                    s.order,
                    s.directRange,
                    s.levels,
                    s.cellSize,
                    seconds,
                    judged.inContact,
                    judged.contacts,
                    isMet ? "met" : "MISSED",
                    isContact ? " contact" : "");
    }
    ++(isMissed ? tally->missed : tally->met);
}

//! Runs one request; made in the process in which it runs.
using RunRequest = std::function<void(double)>;

template<class Real>
RunRequest runnerOf(const SystemKind& kind, const Settings& settings, Tally* tally)
{
    const auto reference = std::make_shared<ReferenceSystem>(withReference<Real>(kind.make()));
    return [=, &settings](double request)
    { runCase<Real>(kind.name, *reference, request, settings, tally); };
}

template<class Real>
RunRequest runnerOf(const ChangingKind& kind, const Settings& settings, Tally* tally)
{
    const auto frames = std::make_shared<Frames<Real>>(kind);
    return [=, &settings](double request)
    { runFrames<Real>(kind.name, *frames, request, settings, tally); };
}

//! All requests of a system from the one that is next, in this process.
template<class Real, class Kind>
void runSystem(const Kind& kind, const Settings& settings, Tally* tally)
{
    const RunRequest run               = runnerOf<Real>(kind, settings, tally);
    const std::vector<double> requests = requestsFor<Real>(settings);
    while (tally->next < static_cast<int>(requests.size()))
    {
        alarm(settings.limit);
        run(requests[tally->next]);
        std::fflush(stdout);
        ++tally->next;
    }
}

template<class Real, class Kind>
void runInProcesses(const Kind& kind, const Settings& settings, Tally* tally)
{
    const std::vector<double> requests = requestsFor<Real>(settings);
    tally->next                        = 0;
    while (tally->next < static_cast<int>(requests.size()))
    {
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0)
        {
            if (settings.device == Device::Cpu)
            {
                rlimit limit;
                limit.rlim_cur = limit.rlim_max =
                        static_cast<rlim_t>(settings.memory * (1ULL << 30));
                setrlimit(RLIMIT_AS, &limit);
            }
            alarm(settings.limit); // for the reference
            try
            {
                runSystem<Real>(kind, settings, tally);
            }
            catch (const std::exception& error)
            {
                std::printf("%s\n", error.what());
                std::fflush(stdout);
                _exit(1);
            }
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        {
            continue;
        }
        const bool isStalled = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        std::printf("%-34s %-6s %7.0e %s (%s)\n",
                    kind.name.c_str(),
                    precisionName<Real>(),
                    requests[tally->next],
                    isStalled ? "STALLED" : "CRASHED",
                    WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exception");
        ++(isStalled ? tally->stalled : tally->crashed);
        ++tally->next;
    }
}

bool parse(int argc, char** argv, Settings* settings)
{
    return parseOptions(argc,
                        argv,
                        { { "--device", setDevice(&settings->device) },
                          { "--precision", setText(&settings->precision) },
                          { "--kinds", setText(&settings->kinds) },
                          { "--system", setText(&settings->system) },
                          { "--request", setNumber(&settings->request) },
                          { "--threads", setNumber(&settings->threads) },
                          { "--limit", setNumber(&settings->limit) },
                          { "--memory", setNumber(&settings->memory) } })
           && std::set<std::string>{ "systems", "changing", "large" }.count(settings->kinds) > 0;
}

//! Runs those that are asked for, in the precisions that are.
template<class Kind>
void runAll(const std::vector<Kind>& kinds, const Settings& settings, Tally* tally)
{
    const std::string& wanted = settings.system;
    const bool isName         = std::any_of(
            kinds.begin(), kinds.end(), [&](const Kind& kind) { return kind.name == wanted; });
    for (const Kind& kind : kinds)
    {
        if (isName ? kind.name != wanted : kind.name.find(wanted) == std::string::npos)
        {
            continue;
        }
        if (settings.precision != "double")
        {
            runInProcesses<float>(kind, settings, tally);
        }
        if (settings.precision != "float")
        {
            runInProcesses<double>(kind, settings, tally);
        }
    }
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0)
    {
        for (const SystemKind& kind : systemKinds())
        {
            std::printf("%s\n", kind.name.c_str());
        }
        for (const auto& kinds : { changingKinds(), largeKinds() })
        {
            for (const ChangingKind& kind : kinds)
            {
                std::printf("%s\n", kind.name.c_str());
            }
        }
        return 0;
    }
    Settings settings;
    const bool asksForHelp = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    if (asksForHelp || !parse(argc, argv, &settings))
    {
        std::fputs(c_usage, asksForHelp ? stdout : stderr);
        return asksForHelp ? 0 : 2;
    }
    void* const shared =
            mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
    {
        std::perror("mmap");
        return 2;
    }
    Tally* const tally = new (shared) Tally();
    std::printf("%-34s %6s %-18s %-6s %7s %8s %8s %8s %9s %9s %2s %s %s %7s %8s %9s\n",
                "system",
                "N",
                "box",
                "real",
                "request",
                "estimate",
                "measured",
                "worst",
                "meas/req",
                "est/meas",
                "p",
                "w",
                "l",
                "cell",
                "prepare",
                "evaluate");
    if (settings.kinds != "systems")
    {
        runAll(settings.kinds == "large" ? largeKinds() : changingKinds(), settings, tally);
        std::printf("contacts beyond the request and rounding: %d, ended %d; ",
                    tally->contacts,
                    tally->ended);
    }
    else
    {
        runAll(systemKinds(), settings, tally);
    }
    std::printf("met %d, missed at some positions of the grid %d, missed %d, refused %d, crashed "
                "%d, stalled %d; estimates off by more than 2: %d of %d; below a tenth of the "
                "request: %d\n",
                tally->met,
                tally->worst,
                tally->missed,
                tally->refused,
                tally->crashed,
                tally->stalled,
                tally->estimates,
                tally->compared,
                tally->idle);
    return tally->worst + tally->missed + tally->ended + tally->crashed + tally->stalled == 0 ? 0
                                                                                              : 1;
}
