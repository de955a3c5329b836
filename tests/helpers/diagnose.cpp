/*
 * Not to stay: says which evaluations differ, and where.
 */
#include <cmath>
#include <cstdio>

#include <algorithm>
#include <map>

#include "backend/gpu_backend.h"
#include "device_caller.h"
#include "test_support.h"

using namespace farfield;
using namespace farfield::test;

namespace
{

template<class Real>
void compare(const char* what,
             const System& w,
             const Setup& setup,
             const std::vector<Vector>& a,
             const std::vector<Vector>& b)
{
    const double rms = rootMeanSquare(b);
    int wrong = 0, odd[3] = { 0, 0, 0 };
    double largest = 0;
    int worst      = -1;
    std::map<int, int> layers;
    double dot = 0, bb = 0, dd = 0;
    for (int i = 0; i < w.size(); i++)
    {
        double d2 = 0;
        for (int k = 0; k < 3; k++)
        {
            const double d = a[i][k] - b[i][k];
            d2 += d * d;
            dot += d * b[i][k];
            bb += b[i][k] * b[i][k];
        }
        dd += d2;
        if (!(d2 < 1e-6 * rms * rms))
        {
            wrong++;
            odd[i % 3]++;
            const double z = w.positions[i][2] / w.box[2][2];
            layers[static_cast<int>(std::floor((z - std::floor(z)) * setup.cells[2][2]))]++;
            if (!(d2 <= largest))
            {
                largest = d2;
                worst   = i;
            }
        }
    }
    std::printf("%-44s rel %.3e wrong %d (O %d H %d %d) of %d, projection on right %.3f, worst %d: got %g %g %g, "
                "right %g %g %g; shares",
                what,
                std::sqrt(dd / bb),
                wrong,
                odd[0],
                odd[1],
                odd[2],
                w.size(),
                dot / bb,
                worst,
                worst >= 0 ? a[worst][0] : 0,
                worst >= 0 ? a[worst][1] : 0,
                worst >= 0 ? a[worst][2] : 0,
                worst >= 0 ? b[worst][0] : 0,
                worst >= 0 ? b[worst][1] : 0,
                worst >= 0 ? b[worst][2] : 0);
    for (const HelperDevice& helper : setup.helpers)
    {
        std::printf(" %.4f", helper.share);
    }
    std::printf("; layers (of %d)", setup.cells[2][2]);
    for (const auto& [layer, count] : layers)
    {
        std::printf(" %d:%d", layer, count);
    }
    std::printf("\n");
    std::fflush(stdout);
}

template<class Real>
void run(const std::string& box, double volume, const DeviceList& helpers, bool reproducible)
{
    const System w = rounded<Real>(pseudoWater(namedBox(box, volume), 31));
    Options options;
    options.device       = Device::Gpu;
    options.deviceId     = 0;
    options.order        = 8;
    options.directRange  = 1;
    options.cellSize     = 0.5;
    options.m2l          = M2lEngine::Fft;
    options.reproducible = reproducible;
    Options reference       = options;
    reference.reproducible  = false;
    Solver<Real> alone(reference);
    load(alone, w);
    Request all = forcesAt(0);
    all.energy = all.virial = true;
    const Evaluation right  = evaluate(alone, w, all);
    options.helperDevices   = helpers;
    std::printf("== %s %g nm^3, n %d, %s, helpers %d%s\n",
                box.c_str(),
                volume,
                w.size(),
                sizeof(Real) == 4 ? "float" : "double",
                helpers.size(),
                reproducible ? ", reproducible" : "");
    Caller<Real> one(w, options);
    for (int k = 0; k < 4; k++)
    {
        Request request = forcesAt(0);
        request.energy = request.virial = k == 2;
        one.enqueue(request);
        compare<Real>(k == 2 ? "device arrays, totals" : "device arrays, forces", w, one.setup(), one.forces(), right.forces);
        one.wait();
    }
    Solver<Real> host(options);
    load(host, w);
    for (int k = 0; k < 3; k++)
    {
        Request request = forcesAt(0);
        request.energy = request.virial = k == 1;
        const Evaluation result = evaluate(host, w, request);
        compare<Real>(k == 1 ? "host arrays, totals" : "host arrays, forces", w, host.setup(), result.forces, right.forces);
    }
    one.enqueue(forcesAt(0));
    const auto graph = one.record(forcesAt(1));
    for (int step = 1; step < 30; step++)
    {
        one.launch(*graph);
        if (step % 10 == 1)
        {
            Request request = all;
            request.step    = step;
            compare<Real>(("replay " + std::to_string(step)).c_str(),
                          w,
                          one.setup(),
                          one.forces(),
                          evaluate(alone, w, request).forces);
        }
    }
    one.wait();
}

} // namespace

int main(int argc, char** argv)
{
    if (argc > 1 && std::string(argv[1]) == "small")
    {
        letDevicesHelpThemselves(true);
        run<float>("cube", 8.0, { 0 }, false);
        return 0;
    }
    const auto each = [](auto what)
    {
        try
        {
            what();
        }
        catch (const std::exception& error)
        {
            std::printf("threw: %s\n", error.what());
        }
    };
    for (const char* box : { "cube", "triclinic" })
    {
        each([&] { run<float>(box, 64.0, {}, false); });
    }
    letDevicesHelpThemselves(true);
    for (const char* box : { "cube", "triclinic" })
    {
        each([&] { run<float>(box, 64.0, { 0 }, true); });
        each([&] { run<float>(box, 64.0, { 0 }, false); });
        each([&] { run<float>(box, 64.0, { 0, 0, 0 }, false); });
        each([&] { run<double>(box, 64.0, { 0 }, false); });
        each([&] { run<double>(box, 64.0, { 0, 0 }, false); });
    }
    return 0;
}
