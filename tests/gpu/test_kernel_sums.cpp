/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums of kernels on a GPU: the same as those of the CPU with the same degree and cells, and errors met.
 */
#include <cmath>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cuda_runtime.h>

#include "farfield/farfield_cuda.h"
#include "farfield/farfield_kernels.h"

#include "backend/gpu_backend.h"
#include "base/vectors.h"
#include "pair_kernels/ewald_sums.h"
#include "pair_kernels/field_error.h"
#include "pair_kernels/left_out_pairs.h"
#include "pair_kernels/pair_kernel.h"
#include "runtime/search.h"

#include "on_device.h"

namespace farfield
{
namespace test
{
namespace
{

//! What is summed.
struct Case
{
    std::string name;
    Kernel kernel;
    double accuracy; //!< of double precision
    bool isPeriodic;
    Mat3 box;            //!< where it is periodic
    int n, sets, points; //!< points: -1 for none
    bool hasExclusions = false, wantsVirials = false;
    bool isClustered = false;
};

Mat3 rectangular(double x, double y, double z)
{
    return Vec3(x, y, z).asDiagonal();
}

Mat3 skewed()
{
    Mat3 box;
    box << 3, 0, 0, 0.7, 2.8, 0, -0.9, 1.1, 3.3;
    return box;
}

std::vector<Case> cases()
{
    const Kernel yukawa = Kernel::yukawa(0.8), dispersion = Kernel::inversePower(6);
    const Kernel coulomb = Kernel::inversePower(1), quartic = Kernel::inversePower(4);
    // ends at 0 with no slope
    std::vector<double> values, slopes;
    for (int i = 0; i <= 256; i++)
    {
        const double r = i / 256.0;
        values.push_back(std::pow(1 - r * r, 4));
        slopes.push_back(-8 * r * std::pow(1 - r * r, 3));
    }
    const Kernel table = Kernel::table(0, 1, values, slopes);
    const Mat3 none = Mat3::Zero(), cube = rectangular(3, 3, 3), flat = rectangular(5, 3, 2);
    return {
        { "few", yukawa, 1e-7, false, none, 60, 1, -1 },
        { "cube", coulomb, 1e-7, false, none, 20'000, 1, -1 },
        { "clusters", yukawa, 1e-6, false, none, 30'000, 1, -1, false, false, true },
        { "points", quartic, 1e-6, false, none, 8000, 2, 5000 },
        { "clustersAndPoints", coulomb, 1e-5, false, none, 9000, 1, 700, false, false, true },
        { "five", dispersion, 1e-6, false, none, 9000, 5, -1 },
        { "table", table, 3e-4, false, none, 6000, 3, -1 },
        { "excluded", coulomb, 1e-6, false, none, 9000, 2, -1, true, true },
        { "periodic", dispersion, 1e-6, true, cube, 6000, 1, -1, true, true },
        { "flat", yukawa, 1e-6, true, flat, 5000, 2, -1, false, true },
        { "skewed", dispersion, 1e-5, true, skewed(), 5000, 3, -1, true, true },
        { "skewedPoints", quartic, 1e-6, true, skewed(), 3000, 1, 2000 },
        { "periodicTable", table, 3e-4, true, cube, 4000, 1, -1, false, true },
        { "rounded", coulomb, 1e-3, false, none, 20'000, 1, -1, true, true },
        { "oneCell", dispersion, 1e-6, true, rectangular(1, 1.1, 1), 40, 1, -1, true, true },
    };
}

//! Points of a case, with results.
template<class Real>
struct Run
{
    const Case& c;
    Mat3 box;
    std::vector<double> x, at;
    std::vector<Real> q;
    std::vector<int> offsets, partners;
    std::vector<Real> potentials, fields;
    std::vector<double> virials;

    explicit Run(const Case& of) : c(of), box(of.box)
    {
        std::mt19937_64 random(11);
        std::uniform_real_distribution<double> uniform(0, 1);
        std::normal_distribution<double> normal(0, 1e-3);
        const auto place = [&](std::vector<double>* to)
        {
            Vec3 at(uniform(random), uniform(random), uniform(random));
            if (c.isPeriodic)
            {
                // at some distance of each other, in any image
                constexpr int c_along = 20;
                const int k           = static_cast<int>(to->size() / 3);
                const Vec3 site(k % c_along, k / c_along % c_along, k / c_along / c_along);
                at = (site + 0.5 * at) / c_along;
                at += Vec3(k % 3 - 1, 0, k % 2);
                at = c.box.transpose() * at;
            }
            else if (c.isClustered)
            {
                at = (at * 4).array().floor().matrix();
                at += Vec3(normal(random), normal(random), normal(random));
            }
            to->insert(to->end(), at.data(), at.data() + 3);
        };
        for (int i = 0; i < c.n; i++)
        {
            place(&x);
            // partners stand together, some far apart
            if (c.hasExclusions && i % 3 == 1)
            {
                for (int k = 0; k < 3; k++)
                {
                    x[3 * i + k] = x[3 * i - 3 + k] + 0.02 * uniform(random);
                }
            }
            for (int s = 0; s < c.sets; s++)
            {
                q.push_back(static_cast<Real>(2 * uniform(random) - 1));
            }
        }
        for (int i = 0; i < c.points; i++)
        {
            place(&at);
        }
        offsets.push_back(0);
        for (int i = 0; i < c.n; i++)
        {
            for (const int j : { i - i % 3, i - i % 3 + 1, (i + c.n / 2) % c.n })
            {
                if (j != i && j < c.n)
                {
                    partners.push_back(j);
                }
            }
            offsets.push_back(static_cast<int>(partners.size()));
        }
        const size_t results = static_cast<size_t>(c.points < 0 ? c.n : c.points) * c.sets;
        potentials.resize(results);
        fields.resize(3 * results);
        virials.resize(c.wantsVirials ? 9 * c.sets : 0);
    }

    KernelOptions options(Device device) const
    {
        KernelOptions options;
        options.accuracy = sizeof(Real) == 4 ? std::max(3e-5, c.accuracy) : c.accuracy;
        options.boundary = c.isPeriodic ? Boundary::Periodic : Boundary::Open;
        options.device   = device;
        return options;
    }
    KernelInput<Real> input(double (*rows)[3]) const
    {
        KernelInput<Real> input;
        input.x      = x.data();
        input.q      = q.data();
        input.n      = c.n;
        input.sets   = c.sets;
        input.at     = at.data();
        input.points = c.points;
        for (int k = 0; k < 9; k++)
        {
            rows[k / 3][k % 3] = box(k / 3, k % 3);
        }
        input.box = c.isPeriodic ? rows : nullptr;
        return input;
    }
    KernelOutput<Real> output()
    {
        KernelOutput<Real> output;
        output.potentials = potentials.data();
        output.fields     = fields.data();
        output.virials =
                c.wantsVirials ? reinterpret_cast<double(*)[3][3]>(virials.data()) : nullptr;
        return output;
    }
    //! [sets][4][some]
    std::vector<double> results(const std::vector<int>& some) const
    {
        std::vector<double> results;
        for (int s = 0; s < c.sets; s++)
        {
            for (int k = 0; k < 4; k++)
            {
                for (const int i : some)
                {
                    const size_t place = static_cast<size_t>(i) * c.sets + s;
                    results.push_back(k == 0 ? potentials[place] : fields[3 * place + k - 1]);
                }
            }
        }
        return results;
    }
    std::vector<double> exact(const std::vector<int>& some) const;
    //! The error of fields as KernelOptions::accuracy has it. \param[in] cell  of the setup
    double error(double cell) const
    {
        std::vector<int> some;
        const int all = static_cast<int>(potentials.size()) / c.sets;
        for (int i = 0; i < all; i += 1 + all / 300)
        {
            some.push_back(i);
        }
        return errorOf(results(some), exact(some), c.sets, false, c.isPeriodic ? 0.1 / cell : 0);
    }
    void evaluate(KernelSum<Real>* sum)
    {
        double rows[3][3];
        sum->setExclusions(c.hasExclusions ? offsets.data() : nullptr, partners.data(), c.n);
        sum->evaluate(input(rows), output());
    }
};

//! Potentials and fields at some results, [sets][4][some], by sums over all pairs, and where there are images those of
//! the nearest boxes, or by Ewald sums.
template<class Real>
std::vector<double> Run<Real>::exact(const std::vector<int>& some) const
{
    std::vector<double> sums(4 * some.size() * c.sets, 0);
    if (c.isPeriodic && !c.kernel.pairKernel().endsAtZero())
    {
        Team team(usableThreads());
        const ExcludedPairs pairs = c.hasExclusions
                                            ? pairsOnBothSides(offsets.data(), partners.data(), c.n)
                                            : ExcludedPairs();
        PointSystem<Real> system;
        system.n       = c.n;
        system.sets    = c.sets;
        system.points  = c.points;
        system.x       = x.data();
        system.q       = q.data();
        system.at      = at.data();
        system.leftOut = c.hasExclusions ? &pairs : nullptr;
        return ewaldSums(
                c.kernel.pairKernel(), system, { Vec3::Zero(), c.box, true }, some, 1e-10, &team);
    }
    const int images  = c.isPeriodic ? 2 : 0;
    const bool areOwn = c.points < 0;
    for (size_t k = 0; k < some.size(); k++)
    {
        const int i         = some[k];
        const double* place = (areOwn ? x : at).data() + 3 * i;
        for (int j = 0; j < c.n; j++)
        {
            const bool isExcluded =
                    c.hasExclusions
                    && std::count(
                               partners.begin() + offsets[i], partners.begin() + offsets[i + 1], j)
                                       + std::count(partners.begin() + offsets[j],
                                                    partners.begin() + offsets[j + 1],
                                                    i)
                               > 0;
            if (areOwn && (i == j || isExcluded) && images == 0)
            {
                continue;
            }
            Vec3 d =
                    Vec3(place[0], place[1], place[2]) - Vec3(x[3 * j], x[3 * j + 1], x[3 * j + 2]);
            if (images > 0)
            {
                const Vec3 turns = c.box.transpose().inverse() * d;
                d -= c.box.transpose() * turns.array().round().matrix();
            }
            for (int image = 0; image < std::pow(2 * images + 1, 3); image++)
            {
                const int side = 2 * images + 1;
                const Vec3 n(image % side - images,
                             image / side % side - images,
                             image / side / side - images);
                const Vec3 to  = d + c.box.transpose() * n;
                const double r = to.norm();
                if ((images > 0 && (r > c.kernel.pairKernel().last() || (i == j && r < 1e-9))))
                {
                    continue;
                }
                const double g = c.kernel.value(r), f = -c.kernel.slope(r) / r;
                for (int s = 0; s < c.sets; s++)
                {
                    const double charge = static_cast<double>(q[j * c.sets + s]);
                    double* sum         = sums.data() + 4 * s * some.size() + k;
                    sum[0] += charge * g;
                    for (int m = 0; m < 3; m++)
                    {
                        sum[(1 + m) * some.size()] += charge * f * to[m];
                    }
                }
            }
        }
    }
    return sums;
}

//! RMS difference over the RMS of the second.
template<class A, class B>
double difference(const std::vector<A>& a, const std::vector<B>& b)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < a.size(); i++)
    {
        error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
        size += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(error / std::max(size, 1e-300));
}

template<class Real>
class DeviceKernelSums : public ::testing::Test
{
protected:
    void SetUp() override
    {
        if (!gpuIsUsable(-1))
        {
            GTEST_SKIP() << "There is no GPU.";
        }
    }
};

struct PrecisionNames
{
    template<class Real>
    static std::string GetName(int /*index*/)
    {
        return sizeof(Real) == 4 ? "float" : "double";
    }
};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(DeviceKernelSums, Precisions, PrecisionNames);

TYPED_TEST(DeviceKernelSums, AreThoseOfTheCpu)
{
    using Real = TypeParam;
    for (const Case& c : cases())
    {
        SCOPED_TRACE(c.name);
        Run<Real> onCpu(c), onGpu(c);
        KernelSum<Real> ofCpu(c.kernel, onCpu.options(Device::Cpu));
        onCpu.evaluate(&ofCpu);
        KernelSum<Real> ofGpu(c.kernel, onCpu.options(Device::Gpu));
        ofGpu.resume(ofCpu.state());
        onGpu.evaluate(&ofGpu);
        ASSERT_EQ(ofGpu.setup().device, Device::Gpu);
        ASSERT_EQ(ofGpu.setup().degree, ofCpu.setup().degree);
        ASSERT_EQ(ofGpu.setup().levels, ofCpu.setup().levels);
        // rounding of high powers and of many terms; where little is asked, of operands to 11 bits
        const double bound = sizeof(Real) == 8 ? 1e-12 : c.accuracy >= 1e-3 ? 1e-3 : 1e-5;
        EXPECT_LT(difference(onGpu.potentials, onCpu.potentials), bound);
        EXPECT_LT(difference(onGpu.fields, onCpu.fields), bound);
        EXPECT_LT(difference(onGpu.virials, onCpu.virials), bound);
        printf("%-18s degree %2d range %d levels %2d: potentials %.1e fields %.1e virials %.1e\n",
               c.name.c_str(),
               ofCpu.setup().degree,
               ofCpu.setup().directRange,
               ofCpu.setup().levels,
               difference(onGpu.potentials, onCpu.potentials),
               difference(onGpu.fields, onCpu.fields),
               difference(onGpu.virials, onCpu.virials));
    }
}

TYPED_TEST(DeviceKernelSums, HaveTheErrorThatIsAsked)
{
    using Real = TypeParam;
    for (const Case& c : cases())
    {
        SCOPED_TRACE(c.name);
        Run<Real> onGpu(c);
        KernelSum<Real> ofGpu(c.kernel, onGpu.options(Device::Gpu));
        onGpu.evaluate(&ofGpu);
        EXPECT_LT(onGpu.error(ofGpu.setup().cell), onGpu.options(Device::Gpu).accuracy);
        // the same bits again, in arrays of the device
        const std::vector<Real> before = onGpu.fields;
        onGpu.evaluate(&ofGpu);
        Run<Real> again = onGpu;
        double* x;
        Real *q, *fields;
        ASSERT_EQ(cudaMalloc(&x, onGpu.x.size() * sizeof(double)), cudaSuccess);
        ASSERT_EQ(cudaMalloc(&q, onGpu.q.size() * sizeof(Real)), cudaSuccess);
        ASSERT_EQ(cudaMalloc(&fields, onGpu.fields.size() * sizeof(Real)), cudaSuccess);
        cudaMemcpy(x, onGpu.x.data(), onGpu.x.size() * sizeof(double), cudaMemcpyDefault);
        cudaMemcpy(q, onGpu.q.data(), onGpu.q.size() * sizeof(Real), cudaMemcpyDefault);
        double rows[3][3];
        KernelInput<Real> input   = onGpu.input(rows);
        KernelOutput<Real> output = again.output();
        input.x                   = x;
        input.q                   = q;
        output.fields             = fields;
        ofGpu.evaluate(input, output);
        cudaMemcpy(
                again.fields.data(), fields, again.fields.size() * sizeof(Real), cudaMemcpyDefault);
        EXPECT_EQ(again.fields, onGpu.fields);
        EXPECT_EQ(again.potentials, onGpu.potentials);
        EXPECT_EQ(again.virials, onGpu.virials);
        for (void* array :
             { static_cast<void*>(x), static_cast<void*>(q), static_cast<void*>(fields) })
        {
            cudaFree(array);
        }
    }
}

TYPED_TEST(DeviceKernelSums, GoOnInStrainedBoxes)
{
    using Real = TypeParam;
    const Case c{ "strained",
                  Kernel::inversePower(6),
                  1e-4,
                  true,
                  rectangular(3, 3.1, 2.9),
                  4000,
                  1,
                  -1,
                  false,
                  true };
    Run<Real> onCpu(c), onGpu(c);
    KernelSum<Real> ofCpu(c.kernel, onCpu.options(Device::Cpu));
    onCpu.evaluate(&ofCpu);
    KernelSum<Real> ofGpu(c.kernel, onCpu.options(Device::Gpu));
    ofGpu.resume(ofCpu.state());
    onGpu.evaluate(&ofGpu);
    Case other = c;
    other.box  = rectangular(3.002, 3.098, 2.901);
    Run<Real> strainedOnCpu(other), strainedOnGpu(other);
    strainedOnCpu.evaluate(&ofCpu);
    strainedOnGpu.evaluate(&ofGpu);
    const double bound = sizeof(Real) == 4 ? 1e-5 : 1e-12;
    EXPECT_LT(difference(strainedOnGpu.fields, strainedOnCpu.fields), bound);
    EXPECT_LT(difference(strainedOnGpu.virials, strainedOnCpu.virials), bound);
}

//! Charges of a run as atoms among others, whose forces a GPU adds to what is there.
template<class Real>
struct Sites
{
    static constexpr Real c_before = 7; //!< a force that is there

    explicit Sites(Run<Real>* of) :
        run(*of), x(3 * count()), forces(3 * count()), sum(run.c.kernel, run.options(Device::Gpu)),
        beside(run.c.kernel, run.options(Device::Cpu))
    {
        for (int i = 0; i < run.c.n; i++)
        {
            atoms.push_back(2 * i + 1);
        }
        for (int s = 0; s < run.c.sets; s++)
        {
            factors.push_back(s - 1.5);
        }
        for (KernelSum<Real>* on : { &sum, &beside })
        {
            on->setExclusions(run.c.hasExclusions ? run.offsets.data() : nullptr,
                              run.partners.data(),
                              run.c.n);
        }
        KernelSites<Real> sites;
        sites.atoms   = atoms.data();
        sites.q       = run.q.data();
        sites.factors = factors.data();
        sites.n       = run.c.n;
        sites.sets    = run.c.sets;
        setSites(sum, sites);
    }
    size_t count() const { return 2 * static_cast<size_t>(run.c.n) + 3; }

    //! Moves all charges a little, to positions of this precision.
    void move(double by)
    {
        std::mt19937_64 random(5);
        std::normal_distribution<double> normal(0, by);
        std::vector<Real> all(3 * count(), 0);
        for (size_t k = 0; k < run.x.size(); k++)
        {
            const auto moved              = static_cast<Real>(run.x[k] + normal(random));
            run.x[k]                      = static_cast<double>(moved);
            all[3 * atoms[k / 3] + k % 3] = moved;
        }
        x.put(all);
        forces.put(std::vector<Real>(3 * count(), c_before));
    }
    Totals enqueue(const KernelRequest& request)
    {
        double rows[3][3];
        const Totals totals =
                farfield::enqueue(sum, x.data(), run.input(rows).box, request, clock.stream());
        addForces(sum, forces.data(), clock.stream());
        return totals;
    }
    //! Forces that were added. That those of others stay is tested.
    std::vector<double> added()
    {
        checkCuda(cudaStreamSynchronize(clock.stream()), "waiting");
        const std::vector<Real> all = forces.get();
        std::vector<double> added;
        for (size_t k = 0; k < all.size(); k++)
        {
            const size_t atom = k / 3;
            if (atom % 2 == 1 && atom / 2 < atoms.size())
            {
                added.push_back(static_cast<double>(all[k] - c_before));
            }
            else
            {
                EXPECT_EQ(all[k], c_before);
            }
        }
        return added;
    }
    //! Forces by the CPU, with the same degree and cells. \param[out] totals  energy and virial
    std::vector<double> expected(Totals* totals)
    {
        beside.resume(sum.state());
        double rows[3][3];
        std::vector<double> virials(9 * run.c.sets);
        KernelOutput<Real> output = run.output();
        output.virials            = reinterpret_cast<double(*)[3][3]>(virials.data());
        beside.evaluate(run.input(rows), output);
        *totals  = {};
        energies = 0;
        std::vector<double> forces(3 * run.c.n, 0);
        for (size_t k = 0; k < run.q.size(); k++)
        {
            const int s      = static_cast<int>(k) % run.c.sets;
            const double w   = factors[s] * static_cast<double>(run.q[k]);
            const double own = 0.5 * w * static_cast<double>(run.potentials[k]);
            totals->energy += own;
            energies += std::abs(own);
            for (size_t m = 0; m < 3; m++)
            {
                forces[k / run.c.sets * 3 + m] += w * static_cast<double>(run.fields[3 * k + m]);
            }
        }
        for (size_t k = 0; k < virials.size(); k++)
        {
            (&totals->virial[0][0])[k % 9] += factors[k / 9] * virials[k];
        }
        return forces;
    }

    Run<Real>& run;
    Clock clock;
    DeviceArray<Real> x, forces;
    std::vector<int> atoms;
    std::vector<double> factors;
    double energies = 0; //!< the sum of what charges have of the energy, without signs
    KernelSum<Real> sum, beside;
};

TYPED_TEST(DeviceKernelSums, AddForcesOfSites)
{
    using Real = TypeParam;
    for (Case c : cases())
    {
        if (c.name != "excluded" && c.name != "periodic" && c.name != "skewed"
            && c.name != "oneCell")
        {
            continue;
        }
        SCOPED_TRACE(c.name);
        // as above; forces are written beside one of 7
        const double bound = sizeof(Real) == 8 ? 1e-12 : c.accuracy >= 1e-3 ? 1e-3 : 2e-5;
        c.wantsVirials     = true;
        Run<Real> run(c);
        Sites<Real> sites(&run);
        EXPECT_TRUE(mustRecordAgain(sites.sum));
        for (const bool wantsTotals : { true, false, false, true, false })
        {
            sites.move(1e-4);
            KernelRequest request;
            request.energy = request.virial = wantsTotals;
            const Totals totals             = sites.enqueue(request);
            Totals expected;
            const std::vector<double> forces = sites.expected(&expected);
            EXPECT_LT(difference(sites.added(), forces), bound);
            if (wantsTotals)
            {
                const auto virial = [](const Totals& of)
                { return std::vector<double>(&of.virial[0][0], &of.virial[0][0] + 9); };
                EXPECT_NEAR(totals.energy, expected.energy, bound * sites.energies);
                EXPECT_LT(difference(virial(totals), virial(expected)), bound);
            }
        }
        if (!c.isPeriodic)
        {
            EXPECT_TRUE(mustRecordAgain(sites.sum));
            EXPECT_THROW(Graph(sites.clock.stream(), [&] { sites.enqueue({}); }), Error);
            continue;
        }
        // in a graph that is replayed
        EXPECT_FALSE(mustRecordAgain(sites.sum));
        const Graph graph(sites.clock.stream(), [&] { sites.enqueue({}); });
        Totals unused;
        for (int k = 0; k < 3; k++)
        {
            sites.move(1e-4);
            graph.launch(sites.clock.stream());
            const std::vector<double> forces = sites.expected(&unused);
            EXPECT_LT(difference(sites.added(), forces), bound);
        }
        // in another box
        run.box *= 1.001;
        sites.move(1e-4);
        sites.enqueue({});
        const std::vector<double> forces = sites.expected(&unused);
        EXPECT_LT(difference(sites.added(), forces), bound);
        // what is not finite makes no force that looks like one
        sites.run.x[1] = std::numeric_limits<double>::quiet_NaN();
        sites.move(1e-4);
        sites.enqueue({});
        for (const double force : sites.added())
        {
            ASSERT_TRUE(std::isnan(force));
        }
        KernelRequest request;
        request.energy = true;
        EXPECT_THROW(sites.enqueue(request), Error);
    }
}

TYPED_TEST(DeviceKernelSums, RefuseWhatTheCpuRefuses)
{
    using Real = TypeParam;
    const auto message =
            [](const Case& c, Device device, const std::function<void(Run<Real>*)>& spoil)
    {
        Run<Real> run(c);
        spoil(&run);
        KernelSum<Real> sum(c.kernel, run.options(device));
        try
        {
            run.evaluate(&sum);
        }
        catch (const Error& error)
        {
            return std::string(error.what());
        }
        return std::string("none");
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Case open  = cases()[1];
    Case others      = cases()[3];
    const std::vector<std::pair<Case, std::function<void(Run<Real>*)>>> spoiled = {
        { open, [&](Run<Real>* run) { run->x[3 * 77 + 1] = nan; } },
        { open, [&](Run<Real>* run) { run->q[12]                                = static_cast<Real>(nan); } },
        { others, [&](Run<Real>* run) { run->at[3 * 5]                          = nan; } },
        // two at one place
        { open, [&](Run<Real>* run) { std::copy_n(run->x.data(), 3, run->x.data() + 30); } },
        { others, [&](Run<Real>* run) { std::copy_n(run->x.data(), 3, run->at.data()); } },
    };
    for (const auto& [c, spoil] : spoiled)
    {
        const std::string expected = message(c, Device::Cpu, spoil);
        EXPECT_NE(expected, "none");
        EXPECT_EQ(message(c, Device::Gpu, spoil), expected);
    }
}

TYPED_TEST(DeviceKernelSums, TakeNoPoints)
{
    using Real          = TypeParam;
    const auto evaluate = [](Case c)
    {
        Run<Real> run(c);
        KernelSum<Real> sum(c.kernel, run.options(Device::Gpu));
        run.evaluate(&sum);
        return run.potentials;
    };
    Case c = cases()[1];
    c.n    = 0;
    EXPECT_TRUE(evaluate(c).empty());
    c.points = 3;
    EXPECT_EQ(evaluate(c), std::vector<Real>(3, 0));
    c.n = c.points = 1;
    EXPECT_EQ(evaluate(c).size(), 1U);
    c.points = -1;
    EXPECT_EQ(evaluate(c), std::vector<Real>(1, 0));
}

TEST(PartitionPoint, IsThatOfTheStandardLibrary)
{
    for (const std::vector<int>& sorted :
         { std::vector<int>{}, { 3 }, { 1, 1, 4, 4, 4, 9 }, { 0, 2, 5, 7, 8, 11, 12 } })
    {
        for (int value = -1; value < 14; value++)
        {
            const auto expected = std::lower_bound(sorted.begin(), sorted.end(), value);
            EXPECT_EQ(partitionPoint(static_cast<int>(sorted.size()),
                                     [&](int k) { return sorted[k] < value; }),
                      expected - sorted.begin());
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
