/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The CUDA backend: which stage runs in which stream, on whose arrays.
 *
 *  cuda_stages.cpp has the stages, cuda_sites.cpp what sites have in their place, cuda_helpers.cpp what is
 *  done for helpers, cuda_backend.cpp what is around them.
 */
#ifndef FARFIELD_KERNELS_CUDA_BACKEND_H
#define FARFIELD_KERNELS_CUDA_BACKEND_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/gpu_backend.h"
#include "charges/given_charges.h"
#include "device_totals.h"
#include "far_field.h"
#include "helpers/near_field_helpers.h"
#include "near_field.h"
#include "particle_arrays.h"
#include "potentials/potentials.h"
#include "ranks/ranks_on_device.h"
#include "runtime/devices.h"
#include "runtime/evaluation_history.h"
#include "runtime/evaluation_streams.h"
#include "runtime/repeated_evaluation.h"
#include "runtime/stage_clock.h"
#include "sites/device_tangent.h"
#include "sites/sites.h"
#include "sort/extent.h"

namespace farfield
{

template<class Real>
class CudaBackend final : public GpuBackend<Real>, private Exchange<Real>
{
public:
    using typename GpuBackend<Real>::Measure;

    //! \param[in] ranks    of a system on several ranks, or null
    //! \param[in] helpers  none with ranks
    CudaBackend(double coulombConstant,
                int threads,
                bool reproducible,
                int device,
                const DeviceRanks<Real>* ranks,
                const HelpersWanted& helpers);

    void setCharges(const Real* q, int n) override;
    std::optional<ChargeSums> replaceCharges(const Real* q, void* stream) override;
    std::vector<Real> replacedCharges() const override { return given_.onHost(far()); }
    void setExclusions(const int* offsets, const int* partners, int n) override;
    void setNearPairs(const NearPairs<Real>& pairs) override;
    bool hasNearFunction() const override { return nearField_.functions().any(); }
    void setMoments(const Moments<Real>& moments, const Real* strengths) override;
    void setFieldCap(double cap) override;
    void build(const Discretisation& d) override;
    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) override;
    void setVirialStrain(const Mat3& strain) override;
    void sort() override;
    void exclusions() override;
    void nearFunction() override;
    void p2p() override;
    void p2m() override;
    void m2m(int level) override { farField_.m2m(level, far()); }
    void m2l(int level) override;
    void l2l(int level) override { farField_.l2l(level, netCharge_, farSums(), far()); }

    void l2p() override;
    Totals collect() override;
    bool mustRepeat() const override { return mustRepeat_; }

    void beginStage(Stage stage) override;
    void endStage(Stage stage) override;
    bool measured(double* seconds) override;
    std::vector<double> multipoles(int level) const override;
    std::vector<double> locals(int level) const override { return tree().locals(level, far()); }

    void await(void* stream) override;
    void enter(void* stream) override;
    void leave() override { onDevice_ = false; }
    void repeat(const Task<Real>& task, const std::function<void()>& evaluate) override;
    void settle() override;
    Totals wait() override;
    bool isRecording(void* stream) const override
    {
        return isCapturing(static_cast<cudaStream_t>(stream));
    }
    bool mustRecordAgain() const override { return history_.isOutdated() || tree().needsRoom(); }

    bool mayUpdateGraphs() const override { return tree().levels() == 1; }
    Exchange<Real>* exchange() override { return ranks_ ? this : nullptr; }
    void setSystem(const WholeSystem<Real>& system) override;
    void setLocal(OwnParticles<Real>* /*own*/, const WholeSystem<Real>& /*system*/) override {}
    int locate(const OwnParticles<Real>& own,
               const Real* x,
               const Discretisation& d,
               const Mat3& box) override;
    bool haveLeftPlan(const Discretisation& /*d*/) const override { return ranks_->haveLeftPlan(); }
    void plan(const OwnParticles<Real>& own, double net) override;
    bool needsPlan(void* stream) override
    {
        return !isCapturing(static_cast<cudaStream_t>(stream)) && ranks_->needsPlan();
    }
    bool isUntried() const override { return ranks_->isUntried(); }
    void begin(void* stream) override
    {
        // what is not recorded goes where exchanges do, after those before
        ranks_->begin(isRecording(stream) ? static_cast<cudaStream_t>(stream) : sorting());
    }
    bool sendRest() override { return ranks_->sendRest(); }
    SentPerEvaluation sentPerEvaluation() const override { return ranks_->sentPerEvaluation(); }

    std::vector<Real> copyToHost(const Real* values, size_t count, void* stream) override;
    void clear(Real* vectors, int n, void* stream) override;
    Vec3 extent(const Real* x, void* stream) override;
    void add(const std::vector<Real>& values, Real* to, void* stream) override;

    typename GpuBackend<Real>::DeviceArrays place(const Real* x) override;
    typename GpuBackend<Real>::TangentRoom tangentRoom(int n) override { return tangent_.room(n); }
    double lendSources(const Direction<Real>& direction, void* stream) override;
    void handBack() override;
    void combine(const Direction<Real>& direction,
                 double unit,
                 const Tangent<Real>& tangent,
                 void* stream) override;
    std::vector<double> measure(Measure what,
                                int repeats,
                                const std::function<void()>& evaluate) override;

    std::unique_ptr<PerturbedOnDevice<Real>> makePerturbed() const override
    {
        return farfield::makePerturbed<Real>();
    }
    std::unique_ptr<PointsOnDevice<Real>> makePoints() const override
    {
        return farfield::makePoints<Real>();
    }

    std::string deviceName() const override { return name_; }
    int deviceId() const override { return device_; }
    int helperCount() const override { return helpers_ ? helpers_->available() : 0; }
    void useHelpers(int count) override;
    void loseHelpers(const std::string& why) override;
    std::vector<HelperDevice> helpers() const override;
    std::string helpersLost() const override { return helpersLost_; }

    int makeCurrent() const override { return exchangeDevice(device_); }
    void restoreCurrent(int device) const noexcept override { returnToDevice(device, device_); }

private:
    cudaStream_t far() const { return streams_.far(); }
    //! Whether DeviceSites has near field, excluded pairs and L2P.
    bool areSites() const { return sites_.anyMoments() || this->task_.wantsDerivatives(); }
    //! Adds all that sites have to what is put into the stream of the far field.
    void computeSites();
    //! Waits for sums of evaluations.
    void readTotals();
    //! In which the particles of the near field are sorted.
    cudaStream_t sorting() const { return ranks_ ? streams_.ahead() : far(); }
    //! The particles of the far field, which has no ghosts.
    SortedParticles<Real> ours() const { return ranks_ ? ours_.particles() : cells_.particles(); }
    DeviceTree<Real>& tree() { return farField_.tree(); }
    const DeviceTree<Real>& tree() const { return farField_.tree(); }
    const CellGrid& leafGrid() const { return tree().grid(tree().leaf()); }
    //! 0: there are no cells yet.
    int leafCells() const { return tree().levels() > 0 ? leafGrid().cells : 0; }

    NearSums wantedSums() const
    {
        return this->task_.request.virial   ? NearSums::EnergyAndVirial
               : this->task_.request.energy ? NearSums::Energy
                                            : NearSums::None;
    }
    NearResults nearResults() { return { wantedSums(), totals_.near(), totals_.nearScratch() }; }
    FarSums farSums();

    NearGrid nearGrid() const;
    //! The cells beyond near ones that near functions reach.
    FartherCells fartherCells() const;

    //! The helpers of the evaluation at hand, or null.
    NearFieldHelpers<Real>* activeHelpers()
    {
        return helpers_ && helpers_->used() > 0 && arrays_.takingPart() > 0 && !streams_.inTurn()
                               && !areSites()
                       ? helpers_.get()
                       : nullptr;
    }
    //! Does what gives helpers something. Helpers that need not be had are left out if it fails, unless
    //! the evaluation at hand is recorded.
    void giveHelpers(const std::function<void(NearFieldHelpers<Real>&)>& give);
    //! Loses helpers that need not be had and gain nothing any more; nothing may run, so that reading the
    //! shares waits for nothing.
    void loseLateHelpers();
    //! What helpers need for the particles that there are.
    HelperRoom roomOnHelpers() const
    {
        return { arrays_.takingPart(),
                 leafCells(),
                 nearField_.exclusions().any(),
                 nearField_.functions().any() };
    }
    //! As NearFieldHelpers::reserve().
    void makeRoomOnHelpers(const HelperRoom& room);
    void makeRoomOnHelpers() { makeRoomOnHelpers(roomOnHelpers()); }
    //! Has them fetch their cells.
    void startHelpers();

    //! Whether somebody else will replay what is put into streams now.
    bool isRecordedByCaller() const { return measuring_ == Measure::None && isCapturing(far()); }
    //! Has an evaluation put its work into the stream of the far field, which is recorded.
    void record(Measure what, const std::function<void()>& evaluate);
    //! Whether a graph may take the place of an evaluation of this request.
    bool mayRepeat(const Request& request, cudaStream_t stream) const;

    /*! \brief Makes room for particles here; where there is no memory for them, all stays as it was.
     *  \param[in] net  charge of all particles that there are, scaled
     *  \returns whether there were others before */
    bool makeRoom(const ParticleCounts& counts, double net);
    //! With ranks: an evaluation has been put into a stream.
    void noteEvaluation(cudaStream_t stream)
    {
        if (ranks_ && !isCapturing(stream))
        {
            ranks_->noteEvaluation(stream);
        }
    }
    //! Makes room for sorting.
    void resizeCells(const ParticleCounts& counts);
    //! How full cells are is to be found out by the next evaluation.
    void forgetOccupancy();
    //! Says which these are.
    void setParticles();

    //! Brings the positions of an evaluation to device memory, where they are not there.
    void setPositions();
    //! Sorts particles by the grid of an evaluation. \param x, cleared  see DeviceCells::sort()
    void
    sortInto(DeviceCells<Real>* cells, const Real* x, Real4<Real>* cleared, cudaStream_t stream);
    //! Gets the positions of ghosts.
    void exchangePositions();
    //! Lists the cells that the near field visits.
    void listCells();
    //! Where forces go to in device memory, and whether they replace what is there: what comes to
    //! the host is added there.
    Real* forces() { return onDevice_ ? this->task_.forces : arrays_.forces(); }
    //! Where potentials go to in device memory.
    Real* potentials() { return onDevice_ ? this->task_.potentials : arrays_.potentials(); }
    //! Adds the potentials to what is put into the stream of the far field.
    void addPotentials();
    bool replacesForces() const { return this->task_.request.replaceForces || !onDevice_; }

    //! Lists of the families of the sorted particles.
    void listFamilies(bool recording);

    //! Whether families had no room since this was asked last: forces were not numbers.
    bool overflowed();

    void throwIfOverflowed();

    int device_; //!< current in every call: see DeviceScope
    double rootCoulomb_;
    int threads_; //!< of the set-up
    bool reproducible_;
    std::string name_ = gpuName(device_);
    double netCharge_ = 0;

    EvaluationStreams streams_;
    cudaStream_t stream_ = nullptr; //!< of the caller
    bool onDevice_       = false;   //!< the arrays of this evaluation are in device memory
    Measure measuring_   = Measure::None;
    bool timed_          = false;
    bool mustRepeat_     = false;
    StageClock clock_;
    EvaluationHistory history_;
    RepeatedEvaluation repeated_;

    DeviceFarField<Real> farField_;
    DeviceNearField<Real> nearField_;
    DeviceCells<Real> cells_; //!< of the near field, with ghosts
    DeviceCells<Real> ours_;  //!< with ranks: without them
    DeviceExtent<Real> extent_;
    DeviceBuffer<Real> added_; //!< see add()

    ParticleArrays<Real> arrays_;
    DeviceBuffer<Real4<Real>> farForces_;
    DeviceTotals<Real> totals_;
    DevicePotentials<Real> potentials_;
    DeviceSites<Real> sites_;
    GivenCharges<Real> given_;
    DeviceTangent<Real> tangent_;
    double ownNetCharge_ = 0;                         //!< of the charges, while sources are lent
    std::unique_ptr<RanksOnDevice<Real>> ranks_;      //!< null: all particles are here
    std::unique_ptr<NearFieldHelpers<Real>> helpers_; //!< or null
    bool helpersIfFaster_;
    int lateWaits_ = 0;       //!< calls of wait(), up to the last one, in which helpers were late
    std::string helpersLost_; //!< as Setup
};

} // namespace farfield

#endif
