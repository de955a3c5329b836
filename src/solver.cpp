/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "farfield/farfield.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <optional>

#include <omp.h>

#include "backend.h"
#include "cpu_kernels.h"
#include "device_entry.h"
#include "discretisation.h"
#include "gpu_backend.h"

namespace farfield
{

const char* version()
{
    return FARFIELD_VERSION;
}

namespace
{

template<class T>
std::string text(const T& value)
{
    return std::to_string(value);
}
std::string text(double value)
{
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%g", value);
    return buffer;
}

template<class T>
void requireRange(const char* name,
                  T value,
                  T low,
                  T high,
                  const char* unit,
                  const char* parameter = "")
{
    // written so that NaN fails
    if (!(value >= low && value <= high))
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::string(name) + " = " + text(value) + unit + " is outside its range, "
                            + text(low) + " to " + text(high) + unit + ".",
                    parameter);
    }
}

//! The best accuracy that rounding allows.
template<class Real>
constexpr double c_bestAccuracy = sizeof(Real) == 4 ? 2e-6 : 1e-11;

template<class Real>
void checkOptions(const Options& o)
{
    const double most = std::numeric_limits<double>::max();
    requireRange("The Coulomb constant",
                 o.coulombConstant,
                 std::numeric_limits<double>::min(),
                 most,
                 " kJ nm/(mol e^2)",
                 "coulombConstant");
    requireRange("The accuracy", o.accuracy, c_bestAccuracy<Real>, 0.1, "", "accuracy");
    requireRange("The order", o.order, -1, c_maxOrder, "", "order");
    requireRange("The direct range", o.directRange, 0, 2, "", "directRange");
    requireRange("The cell size", o.cellSize, 0.0, 1e6, " nm", "cellSize");
    requireRange("The number of threads", o.threads, 0, 4096, "", "threads");
    requireRange("The number of the CUDA device", o.deviceId, -1, 1 << 16, "", "deviceId");
}

Mat3 checkedBox(const double box[3][3])
{
    Mat3 B;
    std::string all;
    bool valid = true;
    for (int i = 0; i < 3; i++)
    {
        all += (i ? "; " : "");
        for (int j = 0; j < 3; j++)
        {
            B(i, j) = box[i][j];
            valid   = valid && std::isfinite(box[i][j]) && (j <= i || box[i][j] == 0)
                    && (j != i || box[i][j] > 0);
            all += (j ? " " : "") + text(box[i][j]);
        }
    }
    if (!valid || !(B.determinant() > 0))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The box vectors (" + all
                            + ") nm must be finite and lower triangular with a positive diagonal.");
    }
    return B;
}

bool isForGpuOnly(M2lEngine engine)
{
    return engine != M2lEngine::Auto && engine != M2lEngine::Hierarchy && engine != M2lEngine::Fft;
}

//! A state is an array of doubles: this number, then the fields of Discretisation, then the strain.
constexpr double c_stateVersion = 1;
constexpr size_t c_stateSize    = 5 + 9 + 9 + 9;

//! Settings that were timed differ if their times differ by more than this.
constexpr double c_timingNoise = 0.03;
//! No further setting is timed after so many seconds.
constexpr double c_longestTuning = 20;

} // namespace

template<class Real>
class Solver<Real>::Impl
{
public:
    explicit Impl(const Options& options) : options_(options)
    {
        checkOptions<Real>(options_);
        threads_ = options_.threads > 0 ? options_.threads : omp_get_max_threads();
        if (options_.device == Device::Gpu
            || (options_.device == Device::Auto && gpuIsUsable(options_.deviceId)))
        {
            auto backend = makeGpuBackend<Real>(
                    options_.coulombConstant, threads_, options_.reproducible, options_.deviceId);
            gpu_     = backend.get();
            backend_ = std::move(backend);
            device_  = Device::Gpu;
        }
        else
        {
            if (isForGpuOnly(options_.m2l))
            {
                throw Error(ErrorCode::Unsupported,
                            "The M2L engine asked for exists on the device 'gpu' only: use 'auto', "
                            "'hierarchy' or 'fft' on the CPU.",
                            "m2l");
            }
            backend_ = makeCpuBackend<Real>(options_.coulombConstant, threads_);
            device_  = Device::Cpu;
        }
        resetTimings();
    }

    void setCharges(const Real* q, int n)
    {
        const DeviceScope<Real> scope(gpu_);
        if (n < 0)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The number of particles, " + text(n) + ", must not be negative.");
        }
        for (int i = 0; i < n; i++)
        {
            if (!std::isfinite(q[i]))
            {
                throw Error(ErrorCode::InvalidArgument,
                            "The charge of particle " + text(i) + ", "
                                    + text(static_cast<double>(q[i])) + " e, must be finite.");
            }
        }
        backend_->setCharges(q, n);
        if (n != count_)
        {
            count_ = n;
            const std::vector<int> none(static_cast<size_t>(n) + 1, 0);
            backend_->setExclusions(none.data(), nullptr, n);
        }
    }

    void setExclusions(const int* offsets, const int* partners, int n)
    {
        const DeviceScope<Real> scope(gpu_);
        if (n != count_)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The exclusions are for " + text(n) + " particles, the charges for "
                                + text(count_) + ": set the charges first.");
        }
        if (offsets[0] != 0)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The first offset of the exclusions, " + text(offsets[0]) + ", must be 0.");
        }
        for (int i = 0; i < n; i++)
        {
            if (offsets[i + 1] < offsets[i])
            {
                throw Error(ErrorCode::InvalidArgument,
                            "The offsets of the exclusions must ascend; those of particle "
                                    + text(i) + " are " + text(offsets[i]) + " and "
                                    + text(offsets[i + 1]) + ".");
            }
            for (int k = offsets[i]; k < offsets[i + 1]; k++)
            {
                if (partners[k] < 0 || partners[k] >= n)
                {
                    throw Error(ErrorCode::InvalidArgument,
                                "The excluded partner " + text(partners[k]) + " of particle "
                                        + text(i) + " is outside the range 0 to " + text(n - 1)
                                        + ".");
                }
            }
        }
        backend_->setExclusions(offsets, partners, n);
    }

    void prepare(const Real* x, const double boxVectors[3][3])
    {
        const DeviceScope<Real> scope(gpu_);
        checkPositions(x);
        timed(Stage::SetUp, [&] { follow(checkedBox(boxVectors), [x] { return x; }); });
        if (gpu_ != nullptr && count_ > 0)
        {
            notCounted([&] { rehearse(x); });
        }
    }

    Totals
    evaluate(const Real* x, const double boxVectors[3][3], Real* forces, const Request& request)
    {
        const DeviceScope<Real> scope(gpu_);
        if (count_ == 0)
        {
            checkedBox(boxVectors);
            return {};
        }
        if (!discretisation_)
        {
            checkPositions(x);
        }
        timed(Stage::SetUp, [&] { follow(checkedBox(boxVectors), [x] { return x; }); });
        double before[static_cast<int>(Stage::Count)];
        std::copy(std::begin(seconds_), std::end(seconds_), std::begin(before));
        Totals totals = run(x, forces, request);
        while (backend_->mustRepeat())
        {
            totals = run(x, forces, request);
        }
        double measured[static_cast<int>(Stage::Count)];
        if (backend_->measured(measured))
        {
            // what the host saw is how long it took to launch
            for (int stage = static_cast<int>(Stage::Sort); stage < static_cast<int>(Stage::Count);
                 stage++)
            {
                seconds_[stage] = before[stage] + measured[stage];
            }
        }
        evaluations_++;
        return totals;
    }

    void enqueue(const Real* x,
                 const double boxVectors[3][3],
                 Real* forces,
                 const Request& request,
                 void* stream)
    {
        const Mat3 box = checkedBox(boxVectors);
        requireGpu();
        const DeviceScope<Real> scope(gpu_);
        if (count_ == 0)
        {
            return;
        }
        std::vector<Real> onHost;
        follow(box,
               [&]
               {
                   onHost = gpu_->positions(x, count_, stream);
                   checkPositions(onHost.data());
                   return static_cast<const Real*>(onHost.data());
               });
        runOnDevice(x, forces, request, stream);
    }

    Totals wait()
    {
        requireGpu();
        const DeviceScope<Real> scope(gpu_);
        return count_ == 0 ? Totals{} : gpu_->wait();
    }

    bool mustRecordAgain() const
    {
        requireGpu();
        return gpu_->mustRecordAgain();
    }

    std::vector<StageTime> measureStages(const Real* x,
                                         const double boxVectors[3][3],
                                         Real* forces,
                                         const Request& request,
                                         int repeats)
    {
        const DeviceScope<Real> scope(gpu_);
        // the first evaluation sets up what must not happen while recording
        enqueue(x, boxVectors, forces, request, nullptr);
        wait();
        const auto evaluation = [&] { runOnDevice(x, forces, request, nullptr); };
        const std::vector<double> seconds =
                gpu_->measure(GpuBackend<Real>::Measure::Stages, repeats, evaluation);
        std::vector<StageTime> times;
        for (size_t stage = 0; stage < seconds.size(); stage++)
        {
            if (seconds[stage] > 0)
            {
                times.push_back({ c_stageNames[stage], 1, seconds[stage] });
            }
        }
        return times;
    }

    Setup setup() const
    {
        Setup s;
        s.device     = device_;
        s.threads    = threads_;
        s.timed      = timed_;
        s.deviceName = gpu_ != nullptr ? gpu_->deviceName() : cpuTargetName();
        if (discretisation_)
        {
            const Discretisation& d = *discretisation_;
            const Grid leaf         = d.leafGrid(box_);
            s.order                 = d.order;
            s.directRange           = d.ws;
            s.m2l                   = d.levels == 1 ? M2lEngine::Fft : d.engine;
            s.leastSquares          = d.leastSquares;
            s.cells                 = d.leafCells;
            s.levels                = d.levels;
            s.leafCells             = leaf.count();
            s.cellSize              = leaf.unit();
            s.estimatedError        = error(leaf);
        }
        return s;
    }

    std::vector<double> state() const
    {
        std::vector<double> s;
        if (discretisation_)
        {
            const Discretisation& d = *discretisation_;
            s                       = { c_stateVersion,
                                        double(d.order),
                                        double(d.ws),
                                        double(d.levels),
                                        double(d.leastSquares) };
            for (int i = 0; i < 9; i++)
            {
                s.push_back(d.leafCells[i / 3][i % 3]);
            }
            for (const Mat3* m : { &d.referenceBox, &strain_ })
            {
                for (int i = 0; i < 9; i++)
                {
                    s.push_back((*m)(i / 3, i % 3));
                }
            }
        }
        return s;
    }

    void restore(const std::vector<double>& s)
    {
        const DeviceScope<Real> scope(gpu_);
        const auto refuse = [](const std::string& why) {
            throw Error(ErrorCode::InvalidArgument,
                        "The saved FMM state cannot be used: " + why + ".");
        };
        if (s.size() != c_stateSize || s[0] != c_stateVersion)
        {
            refuse("it has " + text(static_cast<int>(s.size()))
                   + " numbers, not those of this version");
        }
        if (!std::all_of(s.begin(),
                         s.end(),
                         [](double v) { return std::isfinite(v) && std::abs(v) < 1e9; }))
        {
            refuse("it holds a value that is not finite");
        }
        if (!std::all_of(s.begin(), s.begin() + 14, [](double v) { return v == std::floor(v); }))
        {
            refuse("an integer in it is none");
        }
        Discretisation d;
        d.order        = static_cast<int>(s[1]);
        d.ws           = static_cast<int>(s[2]);
        d.levels       = static_cast<int>(s[3]);
        d.leastSquares = s[4] != 0;
        double reference[3][3];
        Mat3 strain;
        for (int i = 0; i < 9; i++)
        {
            d.leafCells[i / 3][i % 3] = static_cast<int>(s[5 + i]);
            reference[i / 3][i % 3]   = s[14 + i];
            strain(i / 3, i % 3)      = s[23 + i];
        }
        d.engine       = engineOfLevels(options_);
        d.accuracy     = options_.accuracy;
        d.referenceBox = checkedBox(reference);
        if (d.order < 0 || d.order > c_maxOrder || d.ws < 1 || d.ws > 2 || d.levels < 1
            || d.levels > 20)
        {
            refuse("order " + text(d.order) + ", direct range " + text(d.ws) + " or levels "
                   + text(d.levels) + " is out of range");
        }
        if ((options_.order >= 0 && options_.order != d.order)
            || (options_.directRange > 0 && options_.directRange != d.ws)
            || options_.leastSquares != d.leastSquares)
        {
            refuse("it was written with order " + text(d.order) + ", direct range " + text(d.ws)
                   + " and least squares " + (d.leastSquares ? "on" : "off")
                   + ", other than the options say");
        }
        const IntMat& H = d.leafCells;
        bool valid      = H[0][1] == 0 && H[0][2] == 0 && H[1][2] == 0;
        for (int i = 0; i < 9; i++)
        {
            valid = valid && H[i / 3][i % 3] % (1 << (d.levels - 1)) == 0
                    && (i % 4 != 0 || H[i / 3][i % 3] > 0);
        }
        if (!valid || static_cast<double>(H[0][0]) * H[1][1] * H[2][2] > c_maxCells
            || strain.cwiseAbs().maxCoeff() > 0.1)
        {
            refuse("its cells or its strain are not legal");
        }
        build(d);
        setBox(d.referenceBox, strain, Mat3::Identity());
    }

    std::vector<StageTime> timings() const
    {
        std::vector<StageTime> all;
        for (int stage = 0; stage < static_cast<int>(Stage::Count); stage++)
        {
            if (seconds_[stage] > 0)
            {
                all.push_back({ c_stageNames[stage], evaluations_, seconds_[stage] });
            }
        }
        return all;
    }

    void resetTimings()
    {
        std::fill(std::begin(seconds_), std::end(seconds_), 0.0);
        evaluations_ = 0;
    }

private:
    static constexpr const char* c_stageNames[] = {
        "Set-up", "Sort", "Exclusions", "P2P", "P2M", "M2M", "M2L", "L2L", "L2P", "Collect"
    };

    //! The pipeline. The near field comes first so that a GPU has it beside the far field.
    Totals run(const Real* x, Real* forces, Request request)
    {
        for (int k = 0; k < 3; k++)
        {
            requireRange("The grid offset", request.gridOffset[k], 0.0, 1.0, " cells");
            if (request.step >= 0)
            {
                const double product  = c_offsetSteps[k] * static_cast<double>(request.step);
                request.gridOffset[k] = product - std::floor(product);
            }
        }
        backend_->setRequest(request);
        const int leaf = discretisation_->levels - 1;

        timed(Stage::Sort, [&] { backend_->sort(x); });
        timed(Stage::Exclusions, [&] { backend_->exclusions(x); });
        timed(Stage::P2p, [&] { backend_->p2p(); });
        timed(Stage::P2m, [&] { backend_->p2m(); });
        for (int level = leaf; level > 0; level--)
        {
            timed(Stage::M2m, [&] { backend_->m2m(level); });
        }
        timed(Stage::M2l, [&] { backend_->m2l(0); });
        for (int level = 0; level < leaf; level++)
        {
            timed(Stage::L2l, [&] { backend_->l2l(level); });
            timed(Stage::M2l, [&] { backend_->m2l(level + 1); });
        }
        timed(Stage::L2p, [&] { backend_->l2p(forces); });
        Totals totals;
        timed(Stage::Collect, [&] { totals = backend_->collect(forces); });
        return totals;
    }

    //! The pipeline on arrays in device memory.
    void runOnDevice(const Real* x, Real* forces, const Request& request, void* stream)
    {
        gpu_->enter(stream);
        try
        {
            run(x, forces, request);
        }
        catch (...)
        {
            gpu_->leave();
            throw;
        }
    }

    void requireGpu() const
    {
        if (gpu_ == nullptr)
        {
            throw Error(ErrorCode::Unsupported,
                        "Arrays in device memory need a solver with the device 'gpu'; this one "
                        "has 'cpu'.",
                        "device");
        }
    }

    template<class Work>
    void timed(Stage stage, const Work& work)
    {
        backend_->beginStage(stage);
        const auto begin = std::chrono::steady_clock::now();
        work();
        backend_->endStage(stage);
        seconds_[static_cast<int>(stage)] +=
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    double error(const Grid& leaf) const
    {
        return std::max(estimatedError(*discretisation_, leaf), c_bestAccuracy<Real>);
    }

    void checkPositions(const Real* x) const
    {
        for (int i = 0; i < count_; i++)
        {
            for (int k = 0; k < 3; k++)
            {
                if (!std::isfinite(x[3 * static_cast<size_t>(i) + k]))
                {
                    throw Error(ErrorCode::InvalidArgument,
                                "The position of particle " + text(i) + " is not finite.");
                }
            }
        }
    }

    Discretisation choose(const Mat3& box, const Real* x) const
    {
        return chooseDiscretisation(
                options_, device_, box, count_, Occupancy(x, count_, box), sizeof(Real));
    }

    //! Builds the operators for the first time.
    void buildFirst(const Mat3& box, const Real* x)
    {
        if (gpu_ == nullptr || !options_.tune)
        {
            build(choose(box, x));
            return;
        }
        const std::vector<Discretisation> settings = discretisationsToTime(
                options_, device_, box, count_, Occupancy(x, count_, box), sizeof(Real));
        if (settings.size() == 1)
        {
            build(settings.front());
            return;
        }
        notCounted([&] { tune(settings, x); });
    }

    //! Times the settings and builds the operators of the fastest.
    void tune(const std::vector<Discretisation>& settings, const Real* x)
    {
        const auto arrays = gpu_->place(x);
        const auto begin  = std::chrono::steady_clock::now();
        const auto spent  = [&]
        { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
        timed_.clear();
        size_t best = 0, built = 0;
        for (size_t k = 0; k < settings.size() && (k == 0 || spent() < c_longestTuning); k++)
        {
            built = k;
            try
            {
                build(settings[k]);
                const Setup s        = setup();
                const double seconds = secondsOf(arrays);
                timed_.push_back({ s.order,
                                   s.directRange,
                                   s.levels,
                                   s.m2l,
                                   s.leafCells,
                                   s.cellSize,
                                   seconds });
            }
            catch (const Error& error)
            {
                if (k == 0 || error.code() != ErrorCode::OutOfMemory)
                {
                    throw;
                }
                break; // the first one fitted
            }
            if (timed_[k].seconds < (1 - c_timingNoise) * timed_[best].seconds)
            {
                best = k;
            }
        }
        timed_[best].isInUse = true;
        if (built != best)
        {
            build(settings[best]);
        }
    }

    //! Does what is no evaluation of the caller's.
    template<class Work>
    void notCounted(const Work& work)
    {
        double before[static_cast<int>(Stage::Count)];
        std::copy(std::begin(seconds_), std::end(seconds_), std::begin(before));
        work();
        std::copy(std::begin(before), std::end(before), std::begin(seconds_));
    }

    /*! \brief Evaluates on the GPU once with totals and once without: what is missing, memory above
     *         all, is missed now, and all kernels are loaded when the first is recorded. */
    void rehearse(const Real* x)
    {
        const auto arrays = gpu_->place(x);
        Request request;
        for (const bool totals : { true, false })
        {
            request.energy = request.virial = totals;
            runOnDevice(arrays.x, arrays.forces, request, nullptr);
            gpu_->wait();
        }
    }

    //! Time of an evaluation of forces with the operators that are built.
    double secondsOf(const typename GpuBackend<Real>::DeviceArrays& arrays)
    {
        constexpr int c_repeats = 15;
        Request request;
        request.energy        = false;
        request.virial        = false;
        request.replaceForces = true;
        request.step          = 0; // the grid moves as it does later
        const auto evaluation = [&] { runOnDevice(arrays.x, arrays.forces, request, nullptr); };
        evaluation();
        gpu_->wait();
        return gpu_->measure(GpuBackend<Real>::Measure::Whole, c_repeats, evaluation).front();
    }

    //! Builds the operators, with a clear error if they do not fit into memory.
    void build(const Discretisation& d)
    {
        try
        {
            backend_->build(d);
        }
        catch (const std::bad_alloc&)
        {
            throw Error(ErrorCode::OutOfMemory,
                        "The operators of order " + text(d.order) + " for "
                                + text(d.leafGrid(d.referenceBox).count())
                                + " cells do not fit into memory; larger cells or a lower order "
                                  "need less.",
                        "cellSize");
        }
        discretisation_ = d;
        strain_         = Mat3::Zero();
        box_            = d.referenceBox;
    }

    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation)
    {
        backend_->setBox(box, strain, rotation);
        box_    = box;
        strain_ = strain;
    }

    //! How the cells of a box differ from those of the reference box.
    struct Deformation
    {
        Mat3 rotation, strain; //!< strain: traceless
        double tolerance;      //!< error of the operators
        bool sheared, resized; //!< too much for the operators
    };
    Deformation deformation(const Mat3& box) const
    {
        const Discretisation& d = *discretisation_;
        const Grid then         = d.leafGrid(d.referenceBox);
        const Grid now          = d.leafGrid(box);
        // Edges of cells transform as r -> r (1 + strain) rotation; isotropic scaling is divided
        // out.
        const Mat3 F = then.scaledEdges().inverse() * now.scaledEdges();
        Eigen::JacobiSVD<Mat3> svd(F, Eigen::ComputeFullU | Eigen::ComputeFullV);
        Deformation result;
        result.rotation = svd.matrixU() * svd.matrixV().transpose();
        result.strain =
                svd.matrixU() * svd.singularValues().asDiagonal() * svd.matrixU().transpose()
                - Mat3::Identity();
        result.strain -= result.strain.trace() / 3 * Mat3::Identity();
        result.tolerance = error(then);
        // second-order terms are about the square of the strain; operators of rectangular cells
        // rely on reflections, which a shear breaks
        const double shear = std::max({ std::abs(result.strain(0, 1)),
                                        std::abs(result.strain(0, 2)),
                                        std::abs(result.strain(1, 2)) });
        result.sheared     = result.strain.cwiseAbs().maxCoeff() > std::sqrt(0.1 * result.tolerance)
                         || (then.edges().isDiagonal(1e-10) && shear > 2e-3 * result.tolerance);
        result.resized = std::abs(std::log(now.unit() / then.unit())) > 0.15;
        return result;
    }

    /*! \brief Makes the operators those of a box: as they are, corrected to first order, or anew.
     *  \param[in] positions  returns those in host memory; called if something has to be built */
    template<class Positions>
    void follow(const Mat3& box, const Positions& positions)
    {
        if (!discretisation_)
        {
            buildFirst(box, positions());
            return;
        }
        if (box == box_)
        {
            return;
        }
        const Discretisation& d  = *discretisation_;
        const Deformation change = deformation(box);
        if (change.sheared || change.resized)
        {
            const Grid then     = d.leafGrid(d.referenceBox);
            const Grid now      = d.leafGrid(box);
            Discretisation next = d;
            const double best   = shapeRatio(
                    Grid(chooseCells(box, then.unit(), d.ws, 1 << (d.levels - 1)), box).edges(),
                    d.ws);
            if (change.resized || shapeRatio(now.edges(), d.ws) > 1.05 * best)
            {
                next = choose(box, positions());
            }
            next.referenceBox = box;
            build(next);
            return;
        }
        // rounding of the box vectors alone is no reason for new operators
        const bool changed =
                (change.strain - strain_).cwiseAbs().maxCoeff() > 2e-3 * change.tolerance;
        const bool unrotated = (change.rotation - Mat3::Identity()).cwiseAbs().maxCoeff() < 1e-12;
        setBox(box,
               changed ? change.strain : strain_,
               unrotated ? Mat3::Identity() : change.rotation);
    }

    Options options_;
    int threads_   = 1;
    Device device_ = Device::Cpu;
    int count_     = 0;
    std::unique_ptr<Backend<Real>> backend_;
    GpuBackend<Real>* gpu_ = nullptr; //!< the same, if it is one
    std::optional<Discretisation> discretisation_;
    std::vector<TimedSetting> timed_;
    Mat3 box_    = Mat3::Zero();
    Mat3 strain_ = Mat3::Zero();
    double seconds_[static_cast<int>(Stage::Count)];
    long long evaluations_ = 0;
};

template<class Real>
Solver<Real>::Solver(const Options& options) : impl_(std::make_unique<Impl>(options))
{
}
template<class Real>
Solver<Real>::~Solver() = default;
template<class Real>
Solver<Real>::Solver(Solver&&) noexcept = default;
template<class Real>
Solver<Real>& Solver<Real>::operator=(Solver&&) noexcept = default;

template<class Real>
void Solver<Real>::setCharges(const Real* q, int n)
{
    impl_->setCharges(q, n);
}
template<class Real>
void Solver<Real>::setExclusions(const int* offsets, const int* partners, int n)
{
    impl_->setExclusions(offsets, partners, n);
}
template<class Real>
Totals
Solver<Real>::evaluate(const Real* x, const double box[3][3], Real* forces, const Request& request)
{
    return impl_->evaluate(x, box, forces, request);
}
template<class Real>
void Solver<Real>::prepare(const Real* x, const double box[3][3])
{
    impl_->prepare(x, box);
}
template<class Real>
Setup Solver<Real>::setup() const
{
    return impl_->setup();
}
template<class Real>
std::vector<double> Solver<Real>::state() const
{
    return impl_->state();
}
template<class Real>
void Solver<Real>::restore(const std::vector<double>& state)
{
    impl_->restore(state);
}
template<class Real>
std::vector<StageTime> Solver<Real>::timings() const
{
    return impl_->timings();
}
template<class Real>
void Solver<Real>::resetTimings()
{
    impl_->resetTimings();
}

template<class Real>
void DeviceEntry<Real>::enqueue(Solver<Real>& solver,
                                const Real* x,
                                const double box[3][3],
                                Real* forces,
                                const Request& request,
                                void* stream)
{
    solver.impl_->enqueue(x, box, forces, request, stream);
}
template<class Real>
Totals DeviceEntry<Real>::wait(Solver<Real>& solver)
{
    return solver.impl_->wait();
}
template<class Real>
bool DeviceEntry<Real>::mustRecordAgain(const Solver<Real>& solver)
{
    return solver.impl_->mustRecordAgain();
}
template<class Real>
std::vector<StageTime> DeviceEntry<Real>::measureStages(Solver<Real>& solver,
                                                        const Real* x,
                                                        const double box[3][3],
                                                        Real* forces,
                                                        const Request& request,
                                                        int repeats)
{
    return solver.impl_->measureStages(x, box, forces, request, repeats);
}

template class Solver<float>;
template class Solver<double>;
template struct DeviceEntry<float>;
template struct DeviceEntry<double>;

} // namespace farfield
