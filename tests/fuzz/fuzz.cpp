/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Runs random sequences of calls for a time, and reports those whose results are wrong.
 *
 *  Sequences run in a child process, so that a crash or a stall ends one of them only. The first
 *  failure of each kind is reduced: calls without which it still happens are left out.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command_line.h"
#include "sequence.h"

namespace
{

using namespace farfield;
using namespace farfield::test;
using Clock = std::chrono::steady_clock;

const char* const c_usage =
        R"(Runs random sequences of calls of the library and checks each result.

  farfield_fuzz [options]
    --seconds S        how long                                                   [60]
    --seed N           first seed; even ones are in single precision              [1]
    --one N            only this seed; prints its calls
    --keep 2,5,...     with --one: only these calls, besides those that set up
    --device cpu|gpu   where the solvers work                                     [cpu]
    --most N           particles                                                  [3000]
    --threads N        OpenMP threads of a solver, at most                        [4]
    --slack X          errors may be X times what was asked for                   [1]
    --without A,B,...  calls that are left out; --without help lists them
    --limit S          seconds of work before a call is called stalled            [600]
    --memory G         GiB of address space on the CPU; 0: no limit               [8]

Exit status: 0 if nothing failed, 1 if something did, 2 for a wrong command line.
)";

struct Settings
{
    FuzzSettings fuzz;
    double seconds = 60;
    unsigned seed  = 1;
    bool isOne     = false;
    std::vector<int> keep;
    bool hasKeep   = false;
    bool isVerbose = true; //!< with isOne: prints each call
    int limit      = 600;  //!< set-up takes about five minutes at most
    double memory  = 8;
};

//! What a child tells its parent; shared memory.
struct Report
{
    unsigned seed;   //!< that runs
    int calls;       //!< made so far in it
    char call[1024]; //!< the last one
    bool isFailed;   //!< the child found a failure
    char kind[64];   //!< of failure
    char text[1024];
    long long finished; //!< sequences without failure
    long long made;     //!< calls
};

void copyText(const std::string& text, char* out, size_t size)
{
    std::strncpy(out, text.c_str(), size - 1);
    out[size - 1] = '\0';
}

//! Ends the process after so many seconds of work, or ten times as many without any.
void limitTime(int seconds)
{
    itimerval timer       = {};
    timer.it_value.tv_sec = seconds;
    setitimer(ITIMER_PROF, &timer, nullptr);
    alarm(10 * static_cast<unsigned>(seconds));
}

//! Runs sequences from a seed on until one fails or the time is over; does not return.
[[noreturn]] void runChild(const Settings& settings,
                           unsigned seed,
                           const std::vector<int>* kept,
                           Clock::time_point end,
                           Report* report)
{
    if (settings.fuzz.device == Device::Cpu && settings.memory > 0)
    {
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(settings.memory * (1ULL << 30));
        setrlimit(RLIMIT_AS, &limit);
    }
    const rlimit noCore = { 0, 0 };
    setrlimit(RLIMIT_CORE, &noCore);
    const auto isKept = [&](int call)
    { return kept == nullptr || std::find(kept->begin(), kept->end(), call) != kept->end(); };
    const auto note = [&](int call, const std::string& text)
    {
        limitTime(settings.limit);
        report->calls = call;
        ++report->made;
        if (settings.isOne && settings.isVerbose)
        {
            std::printf("  call %d: %s\n", call, text.c_str());
            std::fflush(stdout);
        }
        copyText(text, report->call, sizeof(report->call));
    };
    do
    {
        report->seed  = seed;
        report->calls = 0;
        try
        {
            runSequence(seed, settings.fuzz, isKept, note);
            ++report->finished;
        }
        catch (const Failure& failure)
        {
            report->isFailed = true;
            copyText(failure.kind(), report->kind, sizeof(report->kind));
            copyText(failure.what(), report->text, sizeof(report->text));
            std::fflush(stdout);
            _exit(1);
        }
        catch (const std::exception& error)
        {
            report->isFailed = true;
            copyText("foreign exception", report->kind, sizeof(report->kind));
            copyText(error.what(), report->text, sizeof(report->text));
            _exit(1);
        }
        ++seed;
    } while (kept == nullptr && !settings.isOne && Clock::now() < end);
    std::fflush(stdout);
    _exit(0);
}

//! Runs a child to its end; true if something failed, which the report then says.
bool fails(const Settings& settings,
           unsigned seed,
           const std::vector<int>* kept,
           Clock::time_point end,
           Report* report)
{
    report->isFailed = false;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0)
    {
        runChild(settings, seed, kept, end, report);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (report->isFailed)
    {
        return true;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    {
        return false;
    }
    const bool isStalled =
            WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM);
    copyText(isStalled ? "stalled" : "crash", report->kind, sizeof(report->kind));
    copyText(WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the process ended",
             report->text,
             sizeof(report->text));
    return true;
}

std::string listOf(const std::vector<int>& calls)
{
    std::ostringstream text;
    for (size_t k = 0; k < calls.size(); ++k)
    {
        text << (k > 0 ? "," : "") << calls[k];
    }
    return text.str();
}

//! Leaves out what the failure does not need. The last call is kept: it shows it.
std::vector<int> reducedCalls(const Settings& settings, const Report& failed, Report* scratch)
{
    Settings quick  = settings;
    quick.isOne     = true;
    quick.isVerbose = false;
    std::vector<int> calls;
    for (int call = 2; call <= failed.calls; ++call)
    {
        calls.push_back(call);
    }
    for (int call = 2; call < failed.calls; ++call)
    {
        std::vector<int> fewer;
        std::copy_if(calls.begin(),
                     calls.end(),
                     std::back_inserter(fewer),
                     [&](int other) { return other != call; });
        if (fails(quick, failed.seed, &fewer, Clock::now(), scratch)
            && std::strcmp(scratch->kind, failed.kind) == 0)
        {
            calls = fewer;
        }
    }
    return calls;
}

std::vector<std::string> split(const std::string& list)
{
    std::vector<std::string> parts;
    std::istringstream stream(list);
    for (std::string part; std::getline(stream, part, ',');)
    {
        parts.push_back(part);
    }
    return parts;
}

//! Names of calls to leave out; lists them all and fails if one is not known.
bool parseWithout(const std::string& list, std::set<std::string>* without)
{
    for (const std::string& part : split(list))
    {
        if (callNames().count(part) == 0)
        {
            for (const std::string& name : callNames())
            {
                std::printf("%s\n", name.c_str());
            }
            return false;
        }
        without->insert(part);
    }
    return true;
}

bool parse(int argc, char** argv, Settings* settings)
{
    const auto setSeed = [settings](bool isOne)
    {
        return [settings, isOne](const std::string& value)
        {
            settings->seed  = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
            settings->isOne = isOne;
            return true;
        };
    };
    const auto setKept = [settings](const std::string& value)
    {
        settings->hasKeep = true;
        for (const std::string& part : split(value))
        {
            settings->keep.push_back(std::atoi(part.c_str()));
        }
        return true;
    };
    return parseOptions(argc,
                        argv,
                        { { "--seconds", setNumber(&settings->seconds) },
                          { "--seed", setSeed(false) },
                          { "--one", setSeed(true) },
                          { "--keep", setKept },
                          { "--device", setDevice(&settings->fuzz.device) },
                          { "--most", setNumber(&settings->fuzz.most) },
                          { "--threads", setNumber(&settings->fuzz.mostThreads) },
                          { "--slack", setNumber(&settings->fuzz.slack) },
                          { "--without",
                            [settings](const std::string& value)
                            { return parseWithout(value, &settings->fuzz.without); } },
                          { "--limit", setNumber(&settings->limit) },
                          { "--memory", setNumber(&settings->memory) } });
}

//! The options that the sequences depend on, for the line that reproduces one.
std::string commonOptions(const Settings& settings)
{
    std::ostringstream text;
    text << (settings.fuzz.device == Device::Gpu ? " --device gpu" : "") << " --most "
         << settings.fuzz.most << " --threads " << settings.fuzz.mostThreads << " --slack "
         << settings.fuzz.slack;
    std::string separator = " --without ";
    for (const std::string& name : settings.fuzz.without)
    {
        text << separator << name;
        separator = ",";
    }
    return text.str();
}

} // namespace

int main(int argc, char** argv)
{
    Settings settings;
    if (!parse(argc, argv, &settings))
    {
        std::fputs(c_usage, stderr);
        return 2;
    }
    void* const memory = mmap(
            nullptr, 2 * sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
    {
        std::perror("mmap");
        return 2;
    }
    Report* const report  = new (memory) Report();
    Report* const scratch = new (report + 1) Report();
    const auto end        = Clock::now()
                     + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(settings.seconds));
    std::map<std::string, int> failures;
    unsigned seed = settings.seed;
    do
    {
        if (!fails(settings, seed, settings.hasKeep ? &settings.keep : nullptr, end, report))
        {
            break; // the time is over
        }
        std::printf("%s: seed %u, call %d: %s\n    %s\n",
                    report->kind,
                    report->seed,
                    report->calls,
                    report->call,
                    report->text);
        std::fflush(stdout); // what follows may take minutes
        if (++failures[report->kind] == 1 && !settings.hasKeep)
        {
            const std::string calls = listOf(reducedCalls(settings, *report, scratch));
            std::printf("    farfield_fuzz --one %u --keep %s%s\n",
                        report->seed,
                        calls.empty() ? "0" : calls.c_str(),
                        commonOptions(settings).c_str());
        }
        std::fflush(stdout);
        seed = report->seed + 1;
    } while (!settings.isOne && Clock::now() < end);

    std::printf("%lld sequences passed, %lld calls;", report->finished, report->made);
    int total = 0;
    for (const auto& [kind, count] : failures)
    {
        std::printf(" %s: %d;", kind.c_str(), count);
        total += count;
    }
    std::printf(" seeds %u to %u\n", settings.seed, report->seed);
    return total == 0 ? 0 : 1;
}
