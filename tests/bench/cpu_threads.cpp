/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu_threads.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>

#include "farfield/farfield.h"

#include "bench_machine.h"
#include "bench_systems.h"

namespace farfield
{
namespace bench
{
namespace
{

//! Name of the time from call to return.
const std::string c_whole = "Evaluation";

//! What a number of threads took, by stage.
struct Measured
{
    Setup setup;
    std::map<std::string, std::vector<double>> seconds; //!< of each evaluation
};

double median(std::vector<double> samples)
{
    std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
    return samples[samples.size() / 2];
}

//! Evaluations of forces in single precision, as a step of molecular dynamics has them.
class Evaluations
{
public:
    Evaluations(const System& system, int threads, const std::vector<double>& state) :
        system_(system), solver_(optionsFor(threads)), x_(converted<float>(system.x)),
        forces_(system.x.size())
    {
        load(solver_, system);
        if (!state.empty())
        {
            solver_.restore(state);
        }
        solver_.prepare(x_.data(), system.box);
    }
    std::vector<double> state() const { return solver_.state(); }

    Measured measure(int evaluations, std::vector<std::string>* stages)
    {
        Measured result;
        result.setup = solver_.setup();
        Request request;
        request.energy = request.virial = false;
        for (int i = -evaluations / 10 - 2; i < evaluations; i++)
        {
            request.step = i + evaluations; // the cells move, as they do in a run
            solver_.resetTimings();
            const auto begin = std::chrono::steady_clock::now();
            solver_.evaluate(x_.data(), system_.box, forces_.data(), request);
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
            for (const StageTime& stage : solver_.timings())
            {
                if (std::find(stages->begin(), stages->end(), stage.name) == stages->end())
                {
                    stages->push_back(stage.name);
                }
                if (i >= 0)
                {
                    result.seconds[stage.name].push_back(stage.seconds);
                }
            }
            if (i >= 0)
            {
                result.seconds[c_whole].push_back(spent.count());
            }
        }
        return result;
    }

private:
    static Options optionsFor(int threads)
    {
        Options options;
        options.device  = Device::Cpu;
        options.threads = threads;
        return options;
    }

    const System& system_;
    Solver<float> solver_;
    std::vector<float> x_, forces_;
};

void printTable(const std::vector<std::string>& stages, const std::vector<Measured>& all)
{
    const auto cell = [](const Measured& m, const std::string& stage)
    {
        const auto found = m.seconds.find(stage);
        return found == m.seconds.end() ? 0.0 : 1e3 * median(found->second);
    };
    std::printf("%-12s", "threads");
    for (const Measured& m : all)
    {
        std::printf(" %8d      ", m.setup.threads);
    }
    std::printf("\n");
    for (const std::string& stage : stages)
    {
        std::printf("%-12s", stage.c_str());
        const double first = cell(all.front(), stage) * all.front().setup.threads;
        for (const Measured& m : all)
        {
            const double ms = cell(m, stage);
            if (ms > 0 && first > 0)
            {
                std::printf(" %8.3f %4.0f%%", ms, 100 * first / (ms * m.setup.threads));
            }
            else
            {
                std::printf(" %8.3f      ", ms);
            }
        }
        std::printf("\n");
    }
    std::fflush(stdout);
}

std::string quoted(const std::string& text)
{
    std::string result = "\"";
    for (const char c : text)
    {
        result += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return result + "\"";
}

//! A case of the JSON file.
std::string jsonOf(const System& system, const Measured& m, const std::vector<std::string>& stages)
{
    char line[256];
    std::snprintf(line,
                  sizeof(line),
                  "{\"system\": \"%s\", \"atoms\": %d, \"threads\": %d, \"order\": %d, "
                  "\"leaf_cells\": %lld, \"cell_size\": %.4f, \"stages\": [",
                  system.name.c_str(),
                  system.size(),
                  m.setup.threads,
                  m.setup.order,
                  m.setup.leafCells,
                  m.setup.cellSize);
    std::string text      = line;
    const char* separator = "";
    for (const std::string& stage : stages)
    {
        const auto found = m.seconds.find(stage);
        if (found == m.seconds.end())
        {
            continue;
        }
        std::vector<double> samples = found->second;
        std::sort(samples.begin(), samples.end());
        const auto at = [&](double fraction) {
            return samples[static_cast<size_t>(fraction * static_cast<double>(samples.size() - 1))];
        };
        std::snprintf(
                line,
                sizeof(line),
                "%s{\"name\": \"%s\", \"median\": %.4g, \"lower_quartile\": %.4g, "
                "\"upper_quartile\": %.4g, \"minimum\": %.4g, \"maximum\": %.4g, \"samples\": %zu}",
                separator,
                stage.c_str(),
                at(0.5),
                at(0.25),
                at(0.75),
                at(0),
                at(1),
                samples.size());
        text += line;
        separator = ", ";
    }
    return text + "]}";
}

void writeJson(const ThreadsCase& what, const std::vector<std::string>& cases)
{
    const char* revision = std::getenv("FARFIELD_REVISION");
    std::ofstream file(what.json);
    file << "{\n\"benchmark\": \"farfield_cpu_benchmark --threads\",\n\"farfield\": "
         << quoted(version()) << ",\n\"revision\": " << quoted(revision ? revision : "unknown")
         << ",\n\"command\": " << quoted(what.command)
         << ",\n\"machine\": {\"processor\": " << quoted(processorName())
         << ", \"threads\": " << std::thread::hardware_concurrency() << "},\n\"cases\": [";
    const char* separator = "\n";
    for (const std::string& entry : cases)
    {
        file << separator << entry;
        separator = ",\n";
    }
    file << "\n]\n}\n";
    if (!file.flush())
    {
        throw std::runtime_error("The file " + what.json + " cannot be written.");
    }
}

} // namespace

void measureThreads(const ThreadsCase& what)
{
    std::vector<System> systems;
    for (const int atoms : what.water)
    {
        systems.push_back(waterBox(atoms, 1));
    }
    for (const int atoms : what.protein)
    {
        systems.push_back(proteinInWater(atoms, 0.4, 1));
    }
    std::vector<std::string> cases;
    for (const System& system : systems)
    {
        std::vector<double> state;
        std::vector<std::string> stages;
        std::vector<Measured> all;
        for (const int threads : what.threads)
        {
            Evaluations evaluations(system, threads, state);
            state = evaluations.state();
            all.push_back(evaluations.measure(what.evaluations, &stages));
        }
        const Setup& setup = all.front().setup;
        std::printf("%s, %d atoms, %zu excluded pairs; order %d, %lld cells of %.3f nm; median ms "
                    "per evaluation of forces, and efficiency\n",
                    system.name.c_str(),
                    system.size(),
                    system.partners.size() / 2,
                    setup.order,
                    setup.leafCells,
                    setup.cellSize);
        stages.push_back(c_whole);
        printTable(stages, all);
        for (const Measured& m : all)
        {
            cases.push_back(jsonOf(system, m, stages));
        }
        if (!what.json.empty())
        {
            writeJson(what, cases);
        }
    }
}

} // namespace bench
} // namespace farfield
