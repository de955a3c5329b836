/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "gpu_backend.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <memory>

#include "cells.h"
#include "device.h"
#include "exclusions.h"
#include "expansions.h"
#include "families.h"
#include "gpu_devices.h"
#include "graph_recording.h"
#include "m2l.h"
#include "near.h"
#include "stage_clock.h"

namespace farfield
{
namespace
{

//! Room for families beyond those that were found, as a factor: particles move between cells.
constexpr double c_familyReserve = 1.25;
//! The near field visits a list of the cells that hold particles if they are fewer than this part.
constexpr double c_sparse = 0.5;
//! Part of the room that, once it is used, asks for more.
constexpr double c_tightFamilies = 0.9;

int roundUp(long long count, int multiple)
{
    return static_cast<int>((count + multiple - 1) / multiple * multiple);
}

CellGrid cellGrid(const Grid& grid)
{
    CellGrid result;
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            result.H[i][j] = grid.H()[i][j];
        }
    }
    result.cells = static_cast<int>(grid.count());
    return result;
}

template<class T>
void copyTo(const Mat3& from, T (&to)[3][3])
{
    for (int i = 0; i < 3; i++)
    {
        for (int j = 0; j < 3; j++)
        {
            to[i][j] = static_cast<T>(from(i, j));
        }
    }
}

//! Sums of an evaluation in device memory.
struct DeviceTotals
{
    NearTotals near;
    double energy;        //!< of the far field
    double virial[6];     //!< of the far field: xx yy zz xy xz yz
    double deviatoric[5]; //!< as StageSums::deviatoric
};

template<class Real>
class CudaBackend final : public GpuBackend<Real>
{
public:
    using typename GpuBackend<Real>::Measure;

    CudaBackend(double coulombConstant, int threads, bool reproducible, int device) :
        device_(device), rootCoulomb_(std::sqrt(coulombConstant)), threads_(threads),
        reproducible_(reproducible), far_(true), near_(false)
    {
        totals_.resize(1);
        status_.resize(1);
        nearSums_.resize(far_);
        farSums_.resize(far_);
    }

    void setCharges(const Real* q, int n) override
    {
        std::vector<Real> scaled(n);
        netCharge_ = 0;
        for (int i = 0; i < n; i++)
        {
            // forces and energies come out in kJ/mol
            scaled[i] = static_cast<Real>(rootCoulomb_ * static_cast<double>(q[i]));
            netCharge_ += static_cast<double>(scaled[i]);
        }
        q_.upload(scaled.data(), n, far_);
        if (n != n_)
        {
            n_ = n;
            nearForces_.resize(n);
            farForces_.resize(n);
            resizeCells();
        }
    }

    void setExclusions(const int* offsets, const int* partners, int n) override
    {
        exclusions_.set(offsets, partners, n, far_);
    }

    void build(const Discretisation& d) override
    {
        closure_.reset();
        engine_.reset();
        virial_.reset();
        operators_.reset();
        discretisation_ = d;
        const Grid coarse(d.coarseCells(), d.referenceBox);
        const Mat3 edges = coarse.scaledEdges();
        const Reduction reduction(d.order, d.leastSquares, edges);
        levels_ = std::vector<LevelStore>(d.levels);
        setLevel0(coarse);
        closure_ = std::make_unique<DeviceClosure<Real>>(
                ClosureOperators<Real>(
                        coarse, d.ws, reduction, 2 * reduction.highOrder(), threads_),
                levels_[0].stride,
                far_);
        if (d.levels > 1)
        {
            operators_ =
                    std::make_unique<HierarchyOperators<Real>>(edges, d.ws, reduction, threads_);
            engine_ = makeEngine();
            engine_->setOperators(*operators_, far_);
        }
        setTranslations(edges);
        familiesKnown_ = false;
        box_           = d.referenceBox;
        strain_        = Mat3::Zero();
        rotation_      = Mat3::Identity();
        setGrids(box_);
        resizeCells();
    }

    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) override
    {
        if (box != box_)
        {
            box_      = box;
            rotation_ = rotation;
            setGrids(box * rotation.transpose());
        }
        if (strain != strain_)
        {
            double s[3][3];
            copyTo(strain, s);
            closure_->setStrain(s, far_);
            if (operators_)
            {
                setTranslations(operators_->edges() * (Mat3::Identity() + strain));
                operators_->setStrain(strain);
                engine_->setOperators(*operators_, far_);
            }
            strain_ = strain;
        }
    }

    void sort(const Real* x) override
    {
        mustRepeat_ = false;
        if (sums() != NearSums::None)
        {
            totals_.clear(far_);
        }
        positions_ = x;
        if (!onDevice_)
        {
            x_.resize(3 * static_cast<size_t>(n_));
            check(cudaMemcpyAsync(x_.data(), x, x_.size() * sizeof(Real), cudaMemcpyDefault, far_),
                  "copying positions to the GPU");
            positions_ = x_.data();
        }
        if (!inTurn())
        {
            placed_.record(far_);
            placed_.holdBack(near_);
        }
        nearForces_.clear(nearStream());
        cells_.sort(levels_.back().grid,
                    frame_,
                    gridPosition(this->request_.gridOffset, this->request_.step, far_),
                    positions_,
                    q_.data(),
                    reproducible_,
                    far_);
        particles_ = cells_.particles();
        if (!occupancyKnown_ && !isCapturing(far_))
        {
            findOccupancy();
        }
        sorted_.record(far_); // the near field needs no tree
        if (levels_.size() > 1)
        {
            if (!familiesKnown_ && !isCapturing(far_))
            {
                makeRoomForFamilies();
            }
            lists_.build(particles_, far_);
        }
    }

    void exclusions(const Real* /*x*/) override
    {
        double box[3][3];
        copyTo(box_, box);
        exclusions_.subtract(box,
                             closeDistance(),
                             positions_,
                             q_.data(),
                             n_,
                             sums(),
                             &totals_.data()->near,
                             &nearSums_,
                             nearStream());
    }

    void p2p() override
    {
        if (!inTurn())
        {
            sorted_.holdBack(near_);
        }
        farfield::p2p(particles_,
                      levels_.back().grid,
                      frame_.edges,
                      discretisation_.ws,
                      occupiedCells(),
                      exclusions_.view(),
                      closeDistance(),
                      reproducible_,
                      sums(),
                      nearForces_.data(),
                      &totals_.data()->near,
                      &nearSums_,
                      nearStream());
        if (!inTurn())
        {
            nearDone_.record(near_);
        }
    }

    void p2m() override { farfield::p2m(tables_, particles_, view(levels_.size() - 1), far_); }

    void m2m(int level) override
    {
        translations_.m2m(view(level), lists_.families(level), view(level - 1), far_);
    }

    void m2l(int level) override
    {
        double* virial     = this->request_.virial ? totals_.data()->deviatoric : nullptr;
        const double scale = 1 / levels_[level].unit;
        if (level == 0)
        {
            closure_->apply(view(0), scale, virial, far_);
            return;
        }
        engine_->apply(view(level), lists_.families(level), far_);
        if (virial != nullptr)
        {
            if (!virial_)
            {
                virial_ = std::make_unique<DeviceM2lVirial<Real>>();
                virial_->setOperators(*operators_, far_);
            }
            virial_->apply(view(level), lists_.families(level), scale, virial, &farSums_, far_);
        }
    }

    void l2l(int level) override
    {
        translations_.l2l(view(level),
                          view(level + 1),
                          lists_.families(level + 1),
                          background(level + 1),
                          1 / levels_[level + 1].unit,
                          this->request_.virial ? totals_.data()->virial : nullptr,
                          &farSums_,
                          far_);
    }

    void l2p(Real* forces) override
    {
        if (!inTurn())
        {
            nearDone_.holdBack(far_);
        }
        ForceArrays<Real> arrays;
        arrays.near     = nearForces_.data();
        arrays.excluded = exclusions_.forces();
        copyTo(rotation_, arrays.rotation);
        // what comes to the host is added there
        arrays.replace = this->request_.replaceForces || !onDevice_;
        if (!onDevice_)
        {
            out_.resize(3 * static_cast<size_t>(n_));
        }
        arrays.all        = onDevice_ ? forces : out_.data();
        arrays.far        = this->request_.virial ? farForces_.data() : nullptr;
        const int leaf    = static_cast<int>(levels_.size()) - 1;
        const double unit = levels_[leaf].unit;
        // the uniform background pulls with -2 (2 pi / 3V) Q q b
        const double pull = -2 * background(leaf) / (unit * unit * unit);
        farfield::l2p(tables_, particles_, view(leaf), static_cast<Real>(pull), arrays, far_);
        if (sums() != NearSums::None)
        {
            sumFarField(leaf);
        }
    }

    Totals collect(Real* forces) override
    {
        if (onDevice_)
        {
            done_.record(far_);
            done_.holdBack(stream_);
            onDevice_ = false;
            return {};
        }
        onHost_.resize(3 * static_cast<size_t>(n_));
        check(cudaMemcpyAsync(onHost_.data(),
                              out_.data(),
                              3 * static_cast<size_t>(n_) * sizeof(Real),
                              cudaMemcpyDeviceToHost,
                              far_),
              "copying forces from the GPU");
        readStatus();
        if (mustRepeat_)
        {
            return {};
        }
        const bool add = !this->request_.replaceForces;
        for (size_t i = 0; i < 3 * static_cast<size_t>(n_); i++)
        {
            forces[i] = (add ? forces[i] : Real(0)) + onHost_.data()[i];
        }
        return totals();
    }

    bool mustRepeat() const override { return mustRepeat_; }

    void beginStage(Stage stage) override
    {
        if (stage == Stage::Sort && !inTurn())
        {
            clock_.reset();
        }
        // inside somebody else's capture nothing can be timed, and nothing is collected from arrays
        // on the device
        timed_ = stage != Stage::SetUp && (!onDevice_ || (inTurn() && stage != Stage::Collect));
        if (timed_)
        {
            clock_.begin(stage, streamOf(stage), inTurn());
        }
    }
    void endStage(Stage stage) override
    {
        if (timed_)
        {
            clock_.end(streamOf(stage), inTurn());
        }
    }
    bool measured(double* seconds) override
    {
        std::fill_n(seconds, static_cast<int>(Stage::Count), 0.0);
        clock_.addTo(seconds);
        return true;
    }

    std::vector<double> multipoles(int level) const override
    {
        return byCell(level, levels_[level].M);
    }
    std::vector<double> locals(int level) const override { return byCell(level, levels_[level].L); }

    void enter(void* stream) override
    {
        onDevice_ = true;
        if (measuring_ != Measure::None)
        {
            stream_ = far_;
            return;
        }
        stream_ = static_cast<cudaStream_t>(stream);
        entered_.record(stream_);
        entered_.holdBack(far_);
    }

    void leave() override { onDevice_ = false; }

    Totals wait() override
    {
        readStatus();
        if (mustRepeat_)
        {
            throw Error(ErrorCode::DeviceFailure,
                        "Particles have spread over more cells than there is room for within one "
                        "evaluation; its forces are wrong.");
        }
        return totals();
    }

    bool mustRecordAgain() const override { return !familiesKnown_ && levels_.size() > 1; }

    std::vector<Real> positions(const Real* x, int n, void* stream) override
    {
        std::vector<Real> result(3 * static_cast<size_t>(n));
        const cudaStream_t s = static_cast<cudaStream_t>(stream);
        check(cudaMemcpyAsync(
                      result.data(), x, result.size() * sizeof(Real), cudaMemcpyDeviceToHost, s),
              "copying positions from the GPU");
        check(cudaStreamSynchronize(s), "waiting for the positions");
        return result;
    }

    typename GpuBackend<Real>::DeviceArrays place(const Real* x) override
    {
        x_.upload(x, 3 * static_cast<size_t>(n_), far_);
        out_.resize(3 * static_cast<size_t>(n_));
        far_.synchronize();
        return { x_.data(), out_.data() };
    }

    std::vector<double> measure(Measure what,
                                int repeats,
                                const std::function<void()>& evaluate) override
    {
        check(cudaDeviceSynchronize(), "waiting for the GPU");
        clock_.reset();
        GraphRecording recording(far_);
        measuring_ = what;
        try
        {
            evaluate();
        }
        catch (...)
        {
            measuring_ = Measure::None;
            throw;
        }
        measuring_ = Measure::None;
        recording.finish();
        const bool stages = what == Measure::Stages;
        std::vector<std::vector<double>> samples(stages ? static_cast<int>(Stage::Count) : 1);
        for (int repeat = -3; repeat < repeats; repeat++)
        {
            std::vector<double> seconds(samples.size(), 0.0);
            if (stages)
            {
                recording.launch();
                far_.synchronize();
                clock_.addTo(seconds.data());
            }
            else
            {
                seconds[0] = recording.secondsPerLaunch();
            }
            for (size_t k = 0; k < samples.size() && repeat >= 0; k++)
            {
                samples[k].push_back(seconds[k]);
            }
        }
        std::vector<double> medians;
        for (std::vector<double>& sample : samples)
        {
            std::sort(sample.begin(), sample.end());
            medians.push_back(sample.empty() ? 0.0 : sample[sample.size() / 2]);
        }
        return medians;
    }

    std::string deviceName() const override { return name_; }

    int makeCurrent() const override
    {
        int before = 0;
        check(cudaGetDevice(&before), "finding the device");
        if (before != device_)
        {
            check(cudaSetDevice(device_), "changing the device");
        }
        return before;
    }
    void restoreCurrent(int device) const noexcept override
    {
        if (device != device_)
        {
            (void)cudaSetDevice(device);
        }
    }

private:
    //! The cells of a level and their expansions.
    struct LevelStore
    {
        CellGrid grid = {};
        double unit   = 0; //!< size of a cell, nm
        int stride    = 0;
        DeviceBuffer<Real> M, L;
        DeviceBuffer<int> cellOf, slotOf; //!< of level 0; those of other levels are in lists_
    };

    //! What the host has to know about an evaluation.
    struct Status
    {
        DeviceTotals totals;
        int invalid;
        std::array<int, 32> needed;
    };

    //! Whether stages are measured one after the other.
    bool inTurn() const { return measuring_ == Measure::Stages; }
    cudaStream_t nearStream() const { return inTurn() ? far_ : near_; }
    cudaStream_t streamOf(Stage stage) const
    {
        return stage == Stage::Exclusions || stage == Stage::P2p ? nearStream()
                                                                 : static_cast<cudaStream_t>(far_);
    }

    NearSums sums() const
    {
        return this->request_.virial   ? NearSums::EnergyAndVirial
               : this->request_.energy ? NearSums::Energy
                                       : NearSums::None;
    }

    double closeDistance() const
    {
        return std::min(Exclusions<Real>::c_closeDistance, 0.4 * levels_.back().unit);
    }

    //! (2 pi / 3V) Q times the volume of a cell of the level.
    double background(int level) const
    {
        return 2 * M_PI / 3 * netCharge_ / static_cast<double>(levels_[level].grid.cells);
    }

    LevelView<Real> view(size_t level)
    {
        LevelStore& l  = levels_[level];
        const bool top = level == 0;
        return { l.grid,
                 l.stride,
                 l.M.data(),
                 l.L.data(),
                 top ? l.cellOf.data() : lists_.cellOf(static_cast<int>(level)),
                 top ? l.slotOf.data() : lists_.slotOf(static_cast<int>(level)) };
    }

    void resizeCells()
    {
        if (!levels_.empty() && n_ > 0)
        {
            const int cells = levels_.back().grid.cells;
            cells_.resize(n_, cells);
            // a cell of few particles may need more families than before
            familiesKnown_  = false;
            occupancyKnown_ = false;
            occupancy_      = { cells, n_ / cells };
        }
    }

    void setLevel0(const Grid& coarse)
    {
        LevelStore& top = levels_[0];
        const int cells = static_cast<int>(coarse.count());
        top.stride      = roundUp(cells, c_warp);
        std::vector<int> cellOf(top.stride, -1), slotOf(cells);
        for (int cell = 0; cell < cells; cell++)
        {
            slotOf[cell]         = coarse.slot(coarse.cell(cell));
            cellOf[slotOf[cell]] = cell;
        }
        top.cellOf.upload(cellOf.data(), cellOf.size(), far_);
        top.slotOf.upload(slotOf.data(), slotOf.size(), far_);
        resizeExpansions(&top);
    }

    void resizeExpansions(LevelStore* level)
    {
        const size_t size =
                static_cast<size_t>(level->stride) * coefficientCount(discretisation_.order);
        level->M.resize(size);
        level->L.resize(size);
        // padding is read by transforms and products, and must be finite
        level->M.clear(far_);
        level->L.clear(far_);
    }

    std::unique_ptr<DeviceM2l<Real>> makeEngine() const
    {
        switch (discretisation_.engine)
        {
            case M2lEngine::Naive:
                return makeNaiveM2l<Real>();
            case M2lEngine::Dynamic:
                if (reproducible_)
                {
                    throw Error(ErrorCode::Unsupported,
                                "The M2L engine 'dynamic' adds up expansions in an order that "
                                "differs from run to run, which Options::reproducible forbids: use "
                                "'auto' or another engine.");
                }
                return makeDynamicM2l<Real>();
            case M2lEngine::Symmetric:
                return makeSymmetricM2l<Real>();
            default:
                return makeGemmM2l<Real>(roomForRounding());
        }
    }

    //! What the accuracy leaves beside the truncation error; the two add in squares.
    double roomForRounding() const
    {
        const Discretisation& d = discretisation_;
        const double truncation = estimatedError(d, d.leafGrid(d.referenceBox));
        return d.accuracy > truncation
                       ? std::sqrt(d.accuracy * d.accuracy - truncation * truncation)
                       : 0;
    }

    void setTranslations(const Mat3& edges)
    {
        if (levels_.size() > 1)
        {
            double e[3][3];
            copyTo(edges, e);
            translations_.set(discretisation_.order, e, far_);
        }
    }

    void setGrids(const Mat3& box)
    {
        Grid grid(discretisation_.coarseCells(), box);
        for (auto& level : levels_)
        {
            level.grid = cellGrid(grid);
            level.unit = grid.unit();
            copyTo(grid.edges(), frame_.edges);
            copyTo(rotation_.transpose() * grid.inverseEdges(), frame_.toCells);
            grid = grid.refined();
        }
        tables_.set(discretisation_.order, levels_.back().unit, far_);
    }

    std::vector<CellGrid> grids() const
    {
        std::vector<CellGrid> result;
        for (const auto& level : levels_)
        {
            result.push_back(level.grid);
        }
        return result;
    }

    /*! \brief Finds out how full the cells are, for the near field.
     *
     *  Where the order of summation is fixed it does not follow from the first positions, which are
     *  others after a restart. */
    void findOccupancy()
    {
        const auto now  = cells_.occupancy(far_);
        occupancyKnown_ = true;
        if (now.cells < c_sparse * occupancy_.cells)
        {
            occupancy_ = { now.cells, reproducible_ ? occupancy_.usual : now.usual };
            cells_.makeRoomForList();
        }
    }

    //! The cells that the near field visits, after sorting; a list is made in its stream.
    OccupiedCells occupiedCells()
    {
        OccupiedCells result = {
            nullptr, nullptr, levels_.back().grid.cells, occupancy_.cells, occupancy_.usual
        };
        if (result.expected < result.all)
        {
            cells_.listOccupied(nearStream());
            result.cells = cells_.occupied();
            result.count = cells_.occupiedCount();
        }
        return result;
    }

    //! Finds how many families every level has, and makes room for them and some more.
    void makeRoomForFamilies()
    {
        std::vector<int> capacities(levels_.size(), c_warp);
        lists_.resize(grids(), discretisation_.ws, capacities, levels_[0].slotOf.data());
        lists_.build(particles_, far_);
        std::vector<int> needed(levels_.size());
        check(cudaMemcpyAsync(needed.data(),
                              lists_.needed(),
                              needed.size() * sizeof(int),
                              cudaMemcpyDeviceToHost,
                              far_),
              "copying from the GPU");
        far_.synchronize();
        for (size_t level = 1; level < levels_.size(); level++)
        {
            const int all    = levels_[level - 1].grid.cells;
            const int wanted = static_cast<int>(
                    std::min<double>(all, c_familyReserve * needed[level] + c_warp));
            capacities[level]     = roundUp(wanted, c_warp);
            levels_[level].stride = 8 * capacities[level];
            resizeExpansions(&levels_[level]);
        }
        lists_.resize(grids(), discretisation_.ws, capacities, levels_[0].slotOf.data());
        familiesKnown_ = true;
    }

    //! 1/2 sum q phi of the far field, and the virial of its forces about the centres of leaves.
    void sumFarField(int leaf)
    {
        double* energy    = &totals_.data()->energy;
        const double unit = levels_[leaf].unit;
        // uniform background: (2 pi / 3V) Q sum q r^2, half of it about the centres of leaves, half
        // of it about those of level 0
        const double half = 0.5 * background(leaf) / (unit * unit * unit);
        farTotals(discretisation_.order,
                  particles_,
                  view(leaf),
                  farForces_.data(),
                  0.5 / unit,
                  2 * half,
                  energy,
                  this->request_.virial ? totals_.data()->virial : nullptr,
                  &farSums_,
                  far_);
        for (int level = 1; level <= leaf && netCharge_ != 0; level++)
        {
            const double u = levels_[level].unit;
            translations_.traceShift(
                    view(level), lists_.families(level), half * u * u, energy, &farSums_, far_);
        }
    }

    //! Waits for the evaluation; throws what it met, and sees to room if it had too little.
    void readStatus()
    {
        Status* status = status_.data();
        const auto get = [&](void* to, const void* from, size_t bytes) {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, far_),
                  "copying from the GPU");
        };
        if (this->request_.energy)
        {
            get(&status->totals, totals_.data(), sizeof(DeviceTotals));
        }
        get(&status->invalid, cells_.invalid(), sizeof(int));
        if (levels_.size() > 1)
        {
            get(status->needed.data(), lists_.needed(), levels_.size() * sizeof(int));
        }
        far_.synchronize();
        if (status->invalid != INT_MAX)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The position of particle " + std::to_string(status->invalid)
                                + " is not finite or lies more than a billion cells outside the "
                                  "box.");
        }
        mustRepeat_ = false;
        for (size_t level = 1; level < levels_.size(); level++)
        {
            const int room = levels_[level].stride / 8;
            const int used = status->needed[level];
            mustRepeat_    = mustRepeat_ || used > room;
            // more room before it is too late: recorded steps cannot ask for it
            const bool isTight =
                    used > c_tightFamilies * room && room < levels_[level - 1].grid.cells;
            familiesKnown_ = familiesKnown_ && !isTight && !mustRepeat_;
        }
    }

    Totals totals() const
    {
        if (!this->request_.energy)
        {
            return {};
        }
        const DeviceTotals& t = status_.data()->totals;
        StageSums sums;
        sums.energy = t.near.energy + t.energy;
        for (int c = 0; c < 6; c++)
        {
            sums.virial[c]         = t.near.virial[c] + t.virial[c];
            sums.excludedVirial[c] = t.near.excludedVirial[c];
        }
        std::copy(std::begin(t.deviatoric), std::end(t.deviatoric), sums.deviatoric.begin());
        return sums.totals(this->request_, rotation_);
    }

    //! [cells in storage order][coefficients] of a coefficient-major array.
    std::vector<double> byCell(int level, const DeviceBuffer<Real>& values) const
    {
        const LevelStore& l = levels_[level];
        const int n         = coefficientCount(discretisation_.order);
        std::vector<Real> all(static_cast<size_t>(l.stride) * n);
        std::vector<int> slotOf(l.grid.cells);
        values.download(all.data(), all.size(), far_);
        const int* slots = level == 0 ? l.slotOf.data() : lists_.slotOf(level);
        check(cudaMemcpyAsync(slotOf.data(),
                              slots,
                              slotOf.size() * sizeof(int),
                              cudaMemcpyDeviceToHost,
                              far_),
              "copying from the GPU");
        far_.synchronize();
        std::vector<double> result(static_cast<size_t>(l.grid.cells) * n, 0.0);
        for (int cell = 0; cell < l.grid.cells; cell++)
        {
            for (int i = 0; i < n && slotOf[cell] >= 0; i++)
            {
                result[static_cast<size_t>(cell) * n + i] =
                        all[static_cast<size_t>(i) * l.stride + slotOf[cell]];
            }
        }
        return result;
    }

    int device_; //!< current in every call: see DeviceScope
    double rootCoulomb_;
    int threads_; //!< of the set-up
    bool reproducible_;
    std::string name_ = gpuName(device_);
    int n_            = 0;
    double netCharge_ = 0;

    Stream far_, near_; //!< the far field is the longer chain: its kernels go first
    Event entered_, placed_, sorted_, nearDone_, done_;
    cudaStream_t stream_ = nullptr; //!< of the caller
    bool onDevice_       = false;   //!< the arrays of this evaluation are in device memory
    Measure measuring_   = Measure::None;
    bool timed_          = false;
    bool mustRepeat_     = false;
    StageClock clock_;

    Discretisation discretisation_;
    Mat3 box_    = Mat3::Zero();
    Mat3 strain_ = Mat3::Zero();
    //! From the frame of the operators, in which near and far field are computed, to the caller's.
    Mat3 rotation_  = Mat3::Identity();
    BinFrame frame_ = {};
    std::vector<LevelStore> levels_;
    bool familiesKnown_ = false; //!< there is room for the families of all levels
    //! All cells, and the mean of them, unless the near field visits a list.
    typename DeviceCells<Real>::Occupancy occupancy_ = { 0, 0 };
    bool occupancyKnown_                             = false;

    DeviceCells<Real> cells_;
    FamilyLists<Real> lists_;
    SortedParticles<Real> particles_ = {};
    DeviceExclusions<Real> exclusions_;
    DeviceExpansionTables<Real> tables_;
    DeviceTranslations<Real> translations_;
    std::unique_ptr<DeviceClosure<Real>> closure_;
    std::unique_ptr<HierarchyOperators<Real>> operators_;
    std::unique_ptr<DeviceM2l<Real>> engine_;
    std::unique_ptr<DeviceM2lVirial<Real>> virial_; //!< made when first needed

    const Real* positions_ = nullptr; //!< of this evaluation, device memory
    DeviceBuffer<Real> q_, x_, out_;
    DeviceBuffer<Real4<Real>> nearForces_, farForces_;
    DeviceBuffer<DeviceTotals> totals_;
    OrderedSums nearSums_, farSums_; //!< near and far field may run at the same time
    PinnedBuffer<Status> status_;
    PinnedBuffer<Real> onHost_;
};

} // namespace

template<class Real>
std::unique_ptr<GpuBackend<Real>>
makeGpuBackend(double coulombConstant, int threads, bool reproducible, int deviceId)
{
    const int device = requireUsableGpu(deviceId);
    int before       = 0;
    check(cudaGetDevice(&before), "finding the device");
    check(cudaSetDevice(device), "changing the device");
    std::unique_ptr<GpuBackend<Real>> backend;
    try
    {
        backend =
                std::make_unique<CudaBackend<Real>>(coulombConstant, threads, reproducible, device);
    }
    catch (...)
    {
        (void)cudaSetDevice(before);
        throw;
    }
    check(cudaSetDevice(before), "changing the device");
    return backend;
}

template std::unique_ptr<GpuBackend<float>> makeGpuBackend<float>(double, int, bool, int);
template std::unique_ptr<GpuBackend<double>> makeGpuBackend<double>(double, int, bool, int);

} // namespace farfield
