/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief GPUs that compute parts of the near field for the GPU of a solver.
 *
 *  In an evaluation the solver's GPU sends them the positions; each of them bins all particles,
 *  visits its cells, whose pairs nobody else computes, and writes its forces into the memory of the
 *  solver's GPU, which adds them in a fixed order. Events lead from one to the other, so that an
 *  evaluation may be captured into a graph. Which cells they visit lies in device memory and follows
 *  the times of the last evaluation there, without the host.
 */
#ifndef FARFIELD_KERNELS_HELPERS_NEAR_FIELD_HELPERS_H
#define FARFIELD_KERNELS_HELPERS_NEAR_FIELD_HELPERS_H

#include <memory>
#include <string>
#include <vector>

#include "helpers/near_field_part.h"

namespace farfield
{

/*! \brief The helpers of a solver, and what its own GPU does for them.
 *
 *  The solver's GPU is current in every call. */
template<class Real>
class NearFieldHelpers
{
public:
    /*! \brief Connects them, and uses them, unless they need not be had.
     *  \param[in] home          the solver's GPU
     *  \param[in] reproducible  shares are fixed
     *  \param[in,out] lost      gets why devices are left out that cannot help; null: all have to be had
     *  \throws Error  InvalidArgument: one does not exist, is home, or is given twice; Unsupported: one is
     *                 another kind of GPU, or out of reach */
    NearFieldHelpers(const DeviceList& devices, int home, bool reproducible, std::string* lost);
    ~NearFieldHelpers();

    /*! \name What the solver's GPU has
     *
     *  Helpers in use get it; catchUp() brings it to those that use() adds.
     *  Room comes first, so that nothing has changed there if a helper has no memory for it: what is on
     *  the helpers may then be lost, and catchUp() brings it again. All wait. */
    //!@{
    //! \param[in] cells  leaf cells; 0: there are none yet
    void reserve(const ParticleCounts& counts, int cells);
    void setParticles(const ParticleArrays<Real>& home, const DeviceCells<Real>& sorted, int cells);
    void reserveExclusions(int n, size_t partners);
    void setExclusions(const DeviceExclusions<Real>& home, int n);
    //! Takes what has been lost, if anything, and what the solver's GPU knows of the cells; before start().
    void catchUp(const ParticleArrays<Real>& particles,
                 const DeviceCells<Real>& sorted,
                 const DeviceNearField<Real>& home,
                 int cells);
    /*! \brief Has grids that advance in replays follow those of the solver's GPU, which has evaluated
     *         without helpers; nothing may run. */
    void adoptEvaluation(const DeviceCells<Real>& home);
    //!@}

    //! How many there are.
    int available() const { return available_; }
    //! How many of them are in use.
    int used() const { return used_; }
    //! Uses so many, with the shares of firstShares(); nothing may run.
    void use(int count);
    //! Frees the memory of those that are not in use; what was recorded with them cannot be launched.
    void releaseOthers();
    //! Uses none from now on. Their memory stays until reserve(): what was recorded may still be
    //! launched, and the solver's GPU computes everything then.
    void dismiss();
    //! Throws what has gone wrong on helpers; waits.
    void synchronize() const;

    //! The stream in which positions have to be there before start().
    cudaStream_t placed() const { return send_; }
    /*! \brief Puts an evaluation into the streams of the helpers.
     *  \param[in] x  [n][3], device memory */
    void start(const NearEvaluation& evaluation, const Real* x);
    //! The part of the solver's GPU.
    CellShare ownShare() const { return { state_.data()->bounds, 1 }; }
    /*! \brief Adds what the helpers have computed, after what the solver's GPU has put into the stream.
     *  \param[in,out] home     its near field
     *  \param[in]     results  its sums */
    void add(const DeviceCells<Real>& cells,
             const NearResults& results,
             DeviceNearField<Real>* home,
             cudaStream_t near);
    /*! \brief Has shares follow times, where the evaluation is one to be measured by; beside what the
     *         stream gets next.
     *  \param[in] far  which has come to where it waits for the near field */
    void adjust(cudaStream_t far);
    //! The stream waits for that.
    void finish(cudaStream_t far);

    //! As areAllLate(), now; waits.
    bool areLate() const;
    //! As Setup::helpers.
    std::vector<HelperDevice> describe() const;

private:
    //! A helper, and what it writes to.
    struct Connection
    {
        int device = -1;
        std::unique_ptr<NearFieldPart<Real>> part; //!< null if it is not in use
        DeviceBuffer<Real4<Real>> forces;
        DeviceBuffer<NearTotals> totals;
        Stream arrival{ Priority::Highest };
        Event arrived;

        HelperOutput<Real> output() { return { forces.data(), totals.data() }; }
    };

    ShareState shares() const;

    bool reproducible_;
    int available_ = 0, used_ = 0;
    ParticleCounts counts_; //!< where haveRoom_, there is room for these
    int cells_     = 0;     //!< likewise
    bool haveRoom_ = false, haveParticles_ = false, haveExclusions_ = false;
    std::vector<std::unique_ptr<Connection>> connections_;
    DeviceBuffer<ShareState> state_;
    Stream read_; //!< of shares()
    Stream send_{ Priority::Highest }, watch_{ Priority::Highest };
    Event placed_, sent_, nearOwn_, nearAll_, farReady_, adjusted_;
    NearEvaluation evaluation_ = {};
    bool measured_             = false; //!< shares follow the evaluation at hand
};

} // namespace farfield

#endif
