/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "backend/gpu_backend.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <memory>

#include "cells/excluded_pairs.h"
#include "expansions/expansions.h"
#include "m2l/m2l.h"
#include "near/near.h"
#include "runtime/device.h"
#include "runtime/devices.h"
#include "runtime/graph_recording.h"
#include "runtime/stage_clock.h"
#include "sort/cell_list.h"
#include "tree/families.h"
#include "tree/family_reach.h"

namespace farfield
{
namespace
{

//! Room for families beyond those that particles may come to, as a factor: some move far.
constexpr double c_familyReserve = 1.02;
//! Motion that room is made for, and motion that must be left: leaf cells. What lies between keeps
//! room from being made at every look.
constexpr double c_reserveMargin = 0.25, c_leastMargin = 0.1;
static_assert(c_reserveMargin <= c_largestReachMargin, "counts are right up to that margin");
//! The near field visits a list of the cells that hold particles if they are fewer than this part.
constexpr double c_sparse = 0.5;

int roundUp(long long count, int multiple)
{
    return static_cast<int>((count + multiple - 1) / multiple * multiple);
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
        totals_.clear(far_); // they are copied to the host even where nothing was added up
        status_.resize(1);
        nearSums_.resize(far_);
        farSums_.resize(far_);
    }

    void setCharges(const Real* q, int n) override
    {
        std::vector<Real> scaled(n);
        double net = 0;
        for (int i = 0; i < n; i++)
        {
            // forces and energies come out in kJ/mol
            scaled[i] = static_cast<Real>(rootCoulomb_ * static_cast<double>(q[i]));
            net += static_cast<double>(scaled[i]);
        }
        if (n != n_)
        {
            // what has no memory leaves all as it was
            nearForces_.resize(n);
            farForces_.resize(n);
            resizeCells(n);
        }
        q_.upload(scaled.data(), n, far_);
        n_         = n;
        netCharge_ = net;
    }

    void setExclusions(const int* offsets, const int* partners, int n) override
    {
        exclusions_.set(offsets, partners, n, far_);
    }

    void build(const Discretisation& d) override
    {
        // launches that were recorded, or that nobody has waited for, use what is freed now
        check(cudaDeviceSynchronize(), "waiting for the GPU");
        now_    = Built();
        unsure_ = true;
        generation_++;
        try
        {
            buildAll(d);
        }
        catch (...)
        {
            now_ = Built();
            throw;
        }
    }

    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) override
    {
        if (box != now_.box)
        {
            now_.box      = box;
            now_.rotation = rotation;
            setGrids(box * rotation.transpose());
        }
        if (strain != now_.strain)
        {
            double s[3][3];
            copyTo(strain, s);
            now_.periodicM2l->setStrain(s, far_);
            if (now_.operators)
            {
                setTranslations(now_.operators->edges() * (Mat3::Identity() + strain));
                now_.operators->setStrain(strain);
                now_.engine->setOperators(*now_.operators, far_);
            }
            now_.strain = strain;
        }
    }

    void sort(const Real* x) override
    {
        mustRepeat_          = false;
        const bool recording = isCapturing(far_);
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
        Sums wanted = { this->request_.energy, this->request_.virial, {} };
        copyTo(now_.rotation, wanted.rotation);
        cells_.sort(now_.levels.back().grid,
                    now_.frame,
                    gridPosition(this->request_.gridOffset, this->request_.step, far_),
                    wanted,
                    positions_,
                    q_.data(),
                    reproducible_,
                    far_);
        particles_ = cells_.particles();
        if (!occupancyKnown_ && !recording)
        {
            findOccupancy();
        }
        sorted_.record(far_); // the near field needs no tree
        if (now_.levels.size() > 1)
        {
            if (!recording)
            {
                ensureRoom();
            }
            now_.room->lists.build(particles_, far_);
            watchRoom();
        }
        lastStep_ = recording ? c_noStep : this->request_.step;
        if (recording && measuring_ == Measure::None)
        {
            recorded_ = generation_;
        }
    }

    void exclusions(const Real* /*x*/) override
    {
        double box[3][3];
        copyTo(now_.box, box);
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
                      now_.levels.back().grid,
                      now_.frame.edges,
                      now_.discretisation.ws,
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

    void p2m() override
    {
        farfield::p2m(
                now_.tables, particles_, view(static_cast<int>(now_.levels.size()) - 1), far_);
    }

    void m2m(int level) override
    {
        now_.translations.m2m(view(level), now_.room->lists.families(level), view(level - 1), far_);
    }

    void m2l(int level) override
    {
        double* virial     = this->request_.virial ? totals_.data()->deviatoric : nullptr;
        const double scale = 1 / now_.levels[level].unit;
        if (level == 0)
        {
            now_.periodicM2l->apply(view(0), scale, virial, far_);
            return;
        }
        now_.engine->apply(view(level), now_.room->lists.families(level), far_);
        if (virial != nullptr)
        {
            if (!now_.virial)
            {
                now_.virial = std::make_unique<DeviceM2lVirial<Real>>();
                now_.virial->setOperators(*now_.operators, far_);
            }
            now_.virial->apply(
                    view(level), now_.room->lists.families(level), scale, virial, &farSums_, far_);
        }
    }

    void l2l(int level) override
    {
        now_.translations.l2l(view(level),
                              view(level + 1),
                              now_.room->lists.families(level + 1),
                              background(level + 1),
                              1 / now_.levels[level + 1].unit,
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
        copyTo(now_.rotation, arrays.rotation);
        // what comes to the host is added there
        arrays.replace = this->request_.replaceForces || !onDevice_;
        if (!onDevice_)
        {
            out_.resize(3 * static_cast<size_t>(n_));
        }
        arrays.all        = onDevice_ ? forces : out_.data();
        arrays.far        = this->request_.virial ? farForces_.data() : nullptr;
        arrays.poison     = now_.room ? now_.room->lists.poison() : nullptr;
        const int leaf    = static_cast<int>(now_.levels.size()) - 1;
        const double unit = now_.levels[leaf].unit;
        // the uniform background pulls with -2 (2 pi / 3V) Q q b
        const double pull = -2 * background(leaf) / (unit * unit * unit);
        farfield::l2p(now_.tables, particles_, view(leaf), static_cast<Real>(pull), arrays, far_);
        if (sums() != NearSums::None)
        {
            sumFarField(leaf);
        }
        if (now_.levels.size() > 1 && !inTurn())
        {
            watched_.holdBack(far_);
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
        mustRepeat_ = overflowed();
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
        // an evaluation may be part of a set-up
        if (timed_ && stage != Stage::SetUp)
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
        return byCell(level, expansions(level).M);
    }
    std::vector<double> locals(int level) const override
    {
        return byCell(level, expansions(level).L);
    }

    void await(void* stream) override
    {
        const cudaStream_t s = static_cast<cudaStream_t>(stream);
        if (!isCapturing(s))
        {
            throwIfOverflowed();
        }
        entered_.record(s);
        entered_.holdBack(far_);
    }

    void enter(void* stream) override
    {
        if (measuring_ == Measure::None)
        {
            await(stream);
            usedOnDevice_ = usedOnDevice_ || !isCapturing(far_);
            stream_       = static_cast<cudaStream_t>(stream);
        }
        else
        {
            stream_ = far_;
        }
        onDevice_ = true;
    }

    void leave() override { onDevice_ = false; }

    void settle() override
    {
        // replays are not seen here
        if (usedOnDevice_ || recorded_ != c_notRecorded)
        {
            check(cudaDeviceSynchronize(), "waiting for the GPU");
            usedOnDevice_ = false;
        }
    }

    Totals wait() override
    {
        settle();
        readStatus();
        throwIfOverflowed();
        return totals();
    }

    bool mustRecordAgain() const override
    {
        return (recorded_ != c_notRecorded && recorded_ != generation_) || isTight()
               || (now_.room && now_.room->lists.hasOverflow());
    }

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
    struct Expansions
    {
        int stride = 0;
        DeviceBuffer<Real> M, L;
    };
    //! The cells of a level.
    struct LevelStore
    {
        CellGrid grid = {};
        double unit   = 0;                //!< size of a cell, nm
        Expansions expansions;            //!< of level 0; those of other levels are in TreeRoom
        DeviceBuffer<int> cellOf, slotOf; //!< the same
    };
    //! What has the length of the lists of families: a recorded evaluation holds on to it.
    struct TreeRoom
    {
        FamilyLists<Real> lists;
        std::vector<Expansions> expansions; //!< per level, element 0 unused
    };
    //! All that build() makes.
    struct Built
    {
        Discretisation discretisation;
        Mat3 box    = Mat3::Zero();
        Mat3 strain = Mat3::Zero();
        //! From the frame of the operators, in which near and far field are computed, to the
        //! caller's.
        Mat3 rotation             = Mat3::Identity();
        BinFrame frame            = {};
        double inverseEdges[3][3] = {}; //!< of a leaf cell, in the frame of the operators, 1/nm
        double surelyNear         = 0;  //!< nm, see excluded_pairs.h
        std::vector<LevelStore> levels;
        FamilyReach<Real> reach;
        std::unique_ptr<TreeRoom> room, formerRoom;
        DeviceExpansionTables<Real> tables;
        DeviceTranslations<Real> translations;
        std::unique_ptr<DevicePeriodicM2l<Real>> periodicM2l;
        std::unique_ptr<ListM2lOperators<Real>> operators;
        std::unique_ptr<DeviceM2l<Real>> engine;
        std::unique_ptr<DeviceM2lVirial<Real>> virial; //!< made when first needed
    };

    //! What the host has to know about an evaluation.
    struct Status
    {
        DeviceTotals totals;
        typename DeviceCells<Real>::Evaluation evaluation;
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

    double closeDistance() const { return std::min(this->exclusionRange_, now_.surelyNear); }

    //! (2 pi / 3V) Q times the volume of a cell of the level.
    double background(int level) const
    {
        return 2 * M_PI / 3 * netCharge_ / static_cast<double>(now_.levels[level].grid.cells);
    }

    const Expansions& expansions(int level) const
    {
        return level == 0 ? now_.levels[0].expansions : now_.room->expansions[level];
    }

    LevelView<Real> view(int level)
    {
        LevelStore& l   = now_.levels[level];
        const bool top  = level == 0;
        Expansions& own = top ? l.expansions : now_.room->expansions[level];
        return { l.grid,
                 own.stride,
                 own.M.data(),
                 own.L.data(),
                 top ? l.cellOf.data() : now_.room->lists.cellOf(level),
                 top ? l.slotOf.data() : now_.room->lists.slotOf(level) };
    }

    void resizeCells(int n)
    {
        if (!now_.levels.empty() && n > 0)
        {
            const int cells = now_.levels.back().grid.cells;
            cells_.resize(n, cells);
            occupancyKnown_ = false;
            occupancy_      = { cells, n / cells };
            unsure_         = true;
        }
    }

    void buildAll(const Discretisation& d)
    {
        now_.discretisation = d;
        const Grid coarse(d.coarseCells(), d.referenceBox);
        const Mat3 edges = coarse.scaledEdges();
        const Reduction reduction(d.order, d.leastSquares, edges);
        now_.levels = std::vector<LevelStore>(d.levels);
        setLevel0(coarse);
        now_.periodicM2l = std::make_unique<DevicePeriodicM2l<Real>>(
                PeriodicM2lOperators<Real>(
                        coarse, d.ws, reduction, 2 * reduction.highOrder(), threads_),
                now_.levels[0].expansions.stride,
                far_);
        if (d.levels > 1)
        {
            now_.operators =
                    std::make_unique<ListM2lOperators<Real>>(edges, d.ws, reduction, threads_);
            now_.engine = makeEngine();
            now_.engine->setOperators(*now_.operators, far_);
        }
        setTranslations(edges);
        now_.box = d.referenceBox;
        setGrids(now_.box);
        if (d.levels > 1)
        {
            now_.reach.resize(grids());
        }
        resizeCells(n_);
    }

    void setLevel0(const Grid& coarse)
    {
        LevelStore& top = now_.levels[0];
        const int cells = static_cast<int>(coarse.count());
        std::vector<int> cellOf(roundUp(cells, c_warp), -1), slotOf(cells);
        for (int cell = 0; cell < cells; cell++)
        {
            slotOf[cell]         = coarse.slot(coarse.cell(cell));
            cellOf[slotOf[cell]] = cell;
        }
        top.cellOf.upload(cellOf.data(), cellOf.size(), far_);
        top.slotOf.upload(slotOf.data(), slotOf.size(), far_);
        top.expansions = expansionsFor(static_cast<int>(cellOf.size()));
    }

    Expansions expansionsFor(int stride)
    {
        Expansions result;
        result.stride = stride;
        const size_t size =
                static_cast<size_t>(stride) * coefficientCount(now_.discretisation.order);
        result.M.resize(size);
        result.L.resize(size);
        // padding is read by transforms and products, and must be finite
        result.M.clear(far_);
        result.L.clear(far_);
        return result;
    }

    std::unique_ptr<DeviceM2l<Real>> makeEngine() const
    {
        switch (now_.discretisation.engine)
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
        const Discretisation& d = now_.discretisation;
        const double truncation = estimatedError(d, d.leafGrid(d.referenceBox));
        return d.accuracy > truncation
                       ? std::sqrt(d.accuracy * d.accuracy - truncation * truncation)
                       : 0;
    }

    void setTranslations(const Mat3& edges)
    {
        if (now_.levels.size() > 1)
        {
            double e[3][3];
            copyTo(edges, e);
            now_.translations.set(now_.discretisation.order, e, far_);
        }
    }

    void setGrids(const Mat3& box)
    {
        Grid grid(now_.discretisation.coarseCells(), box);
        for (auto& level : now_.levels)
        {
            level.grid = grid.plain();
            level.unit = grid.unit();
            now_.frame = BinFrame::of(grid.edges(), grid.inverseEdges(), now_.rotation);
            copyTo(grid.inverseEdges(), now_.inverseEdges);
            now_.surelyNear = surelyNear(grid, now_.discretisation.ws);
            grid            = grid.refined();
        }
        now_.tables.set(now_.discretisation.order, now_.levels.back().unit, far_);
    }

    std::vector<CellGrid> grids() const
    {
        std::vector<CellGrid> result;
        for (const auto& level : now_.levels)
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
            nullptr, nullptr, now_.levels.back().grid.cells, occupancy_.cells, occupancy_.usual
        };
        if (result.expected < result.all)
        {
            cells_.listOccupied(nearStream());
            result.cells = cells_.occupied();
            result.count = cells_.occupiedCount();
        }
        return result;
    }

    //! Whether particles may soon come to more families than there is room for, by the last count.
    bool isTight() const
    {
        bool tight = false;
        for (int level = 1; now_.room && level < static_cast<int>(now_.levels.size()); level++)
        {
            tight = tight || now_.reach.families(level) > now_.room->lists.capacity(level);
        }
        return tight;
    }

    //! Counts the families that particles may come to, and waits.
    void countFamilies(double margin)
    {
        now_.reach.count(
                particles_, now_.inverseEdges, margin, cells_.evaluation()->origin, nullptr, far_);
        far_.synchronize();
    }

    /*! \brief Sees to room for the families of the particles that have just been sorted.
     *
     *  Where they may be anywhere, the host waits for a count. In a motion that goes on, the last
     *  count is looked at, which is at most so many steps old that the margin covers them. */
    void ensureRoom()
    {
        // host arrays: the host looks at the end, and repeats the evaluation if it must
        const bool continues = !unsure_
                               && (!onDevice_
                                   || (!this->request_.mayHaveJumped && this->request_.step >= 0
                                       && this->request_.step == lastStep_ + 1));
        if (now_.room && !continues)
        {
            countFamilies(c_leastMargin);
        }
        if (!now_.room || isTight() || now_.room->lists.hasOverflow())
        {
            makeRoom();
        }
        unsure_ = false;
    }

    //! Lists and expansions anew. Those before last are freed: see farfield_cuda.h.
    void makeRoom()
    {
        check(cudaDeviceSynchronize(), "waiting for the GPU");
        now_.formerRoom.reset();
        countFamilies(c_reserveMargin);
        auto room = std::make_unique<TreeRoom>();
        std::vector<int> capacities(now_.levels.size(), 0);
        room->expansions.resize(now_.levels.size());
        for (int level = 1; level < static_cast<int>(now_.levels.size()); level++)
        {
            const double wanted =
                    std::min<double>(now_.levels[level - 1].grid.cells,
                                     c_familyReserve * now_.reach.families(level) + c_warp);
            capacities[level]       = roundUp(static_cast<long long>(wanted), c_warp);
            room->expansions[level] = expansionsFor(8 * capacities[level]);
        }
        room->lists.resize(
                grids(), now_.discretisation.ws, capacities, now_.levels[0].slotOf.data(), far_);
        now_.formerRoom = std::exchange(now_.room, std::move(room));
        generation_++;
    }

    //! Counts beside the evaluation, every few of them.
    void watchRoom()
    {
        const cudaStream_t stream = inTurn() ? far_ : watch_;
        if (!inTurn())
        {
            sorted_.holdBack(stream);
        }
        now_.reach.count(particles_,
                         now_.inverseEdges,
                         c_leastMargin,
                         cells_.evaluation()->origin,
                         &cells_.evaluation()->number,
                         stream);
        if (!inTurn())
        {
            watched_.record(stream);
        }
    }

    //! Whether families had no room since this was asked last: forces were not numbers.
    bool overflowed()
    {
        bool any = false;
        for (TreeRoom* room : { now_.room.get(), now_.formerRoom.get() })
        {
            any = (room != nullptr && room->lists.overflow()) || any;
        }
        if (any)
        {
            unsure_ = true;
        }
        return any;
    }

    void throwIfOverflowed()
    {
        if (overflowed())
        {
            throw Error(ErrorCode::DeviceFailure,
                        "Particles have moved farther since the evaluation before than cells had "
                        "room for, and the forces of that evaluation are not numbers. Say "
                        "Request::mayHaveJumped where positions do not follow from those before.");
        }
    }

    //! 1/2 sum q phi of the far field, and the virial of its forces about the centres of leaves.
    void sumFarField(int leaf)
    {
        double* energy    = &totals_.data()->energy;
        const double unit = now_.levels[leaf].unit;
        // uniform background: (2 pi / 3V) Q sum q r^2, half of it about the centres of leaves, half
        // of it about those of level 0
        const double half = 0.5 * background(leaf) / (unit * unit * unit);
        farTotals(now_.discretisation.order,
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
            const double u = now_.levels[level].unit;
            now_.translations.traceShift(view(level),
                                         now_.room->lists.families(level),
                                         half * u * u,
                                         energy,
                                         &farSums_,
                                         far_);
        }
    }

    //! Waits for the evaluation; throws what it met.
    void readStatus()
    {
        Status* status = status_.data();
        const auto get = [&](void* to, const void* from, size_t bytes) {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, far_),
                  "copying from the GPU");
        };
        get(&status->totals, totals_.data(), sizeof(DeviceTotals));
        get(&status->evaluation, cells_.evaluation(), sizeof(status->evaluation));
        far_.synchronize();
        const auto& evaluation = status->evaluation;
        if (evaluation.number > 0 && evaluation.invalid != INT_MAX)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The position of particle " + std::to_string(evaluation.invalid)
                                + " is not finite or lies more than a billion cells outside the "
                                  "box.");
        }
    }

    //! Those of the last evaluation that has run, as its own request says.
    Totals totals() const
    {
        const Sums& wanted = status_.data()->evaluation.sums;
        if (!wanted.energy)
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
        Mat3 rotation;
        for (int i = 0; i < 9; i++)
        {
            rotation(i / 3, i % 3) = wanted.rotation[i / 3][i % 3];
        }
        Request request;
        request.energy = wanted.energy;
        request.virial = wanted.virial;
        return sums.totals(request, rotation);
    }

    //! [cells in storage order][coefficients] of a coefficient-major array.
    std::vector<double> byCell(int level, const DeviceBuffer<Real>& values) const
    {
        const LevelStore& l = now_.levels[level];
        const int n         = coefficientCount(now_.discretisation.order);
        const int stride    = expansions(level).stride;
        std::vector<Real> all(static_cast<size_t>(stride) * n);
        std::vector<int> slotOf(l.grid.cells);
        values.download(all.data(), all.size(), far_);
        const int* slots = level == 0 ? l.slotOf.data() : now_.room->lists.slotOf(level);
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
                        all[static_cast<size_t>(i) * stride + slotOf[cell]];
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
    Stream watch_;      //!< see watchRoom()
    Event entered_, placed_, sorted_, watched_, nearDone_, done_;
    cudaStream_t stream_ = nullptr; //!< of the caller
    bool onDevice_       = false;   //!< the arrays of this evaluation are in device memory
    Measure measuring_   = Measure::None;
    bool timed_          = false;
    bool mustRepeat_     = false;
    StageClock clock_;

    Built now_;
    static constexpr long long c_notRecorded = -1, c_noStep = -2;
    long long generation_ = 0;             //!< of what recorded evaluations hold on to
    long long recorded_   = c_notRecorded; //!< that of the last recording
    long long lastStep_   = c_noStep;      //!< of the last evaluation, unless it was recorded
    bool unsure_          = true;          //!< particles may be anywhere
    bool usedOnDevice_    = false;         //!< there may be evaluations that nobody has waited for
    //! All cells, and the mean of them, unless the near field visits a list.
    typename DeviceCells<Real>::Occupancy occupancy_ = { 0, 0 };
    bool occupancyKnown_                             = false;

    DeviceCells<Real> cells_;
    SortedParticles<Real> particles_ = {};
    DeviceExclusions<Real> exclusions_;

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
