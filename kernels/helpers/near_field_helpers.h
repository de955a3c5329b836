/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief GPUs that compute parts of the near field for the GPU of a solver.
 *
 *  In an evaluation the solver's GPU sorts the particles. Each helper fetches some of the cells with
 *  what is around them, computes their pairs, which nobody else computes, and writes its forces into
 *  the memory of the solver's GPU, which adds them in a fixed order. Events lead from one to the other,
 *  so that an evaluation may be captured into a graph. Which cells a helper has lies in device memory
 *  and follows the times of the evaluation before, without the host.
 */
#ifndef FARFIELD_KERNELS_HELPERS_NEAR_FIELD_HELPERS_H
#define FARFIELD_KERNELS_HELPERS_NEAR_FIELD_HELPERS_H

#include <memory>
#include <string>
#include <vector>

#include "helpers/near_field_part.h"
#include "runtime/evaluation_streams.h"

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

    //! Makes room on those in use. Unless nothing is lacking it waits, and what was recorded before cannot
    //! be launched any more.
    void reserve(const HelperRoom& room);
    //! Frees the memory of those that are not in use; what was recorded with them cannot be launched.
    void releaseOthers();

    //! How many there are.
    int available() const { return available_; }
    //! How many of them are in use.
    int used() const { return used_; }
    //! Uses so many, with the shares of firstShares(), before reserve(); nothing may run.
    void use(int count);
    //! Uses none from now on. Their memory stays until releaseOthers(): what was recorded may be launched.
    void dismiss();
    //! Throws what has gone wrong on helpers; waits.
    void synchronize() const;

    /*! \brief Has helpers fetch their cells, once these are listed.
     *  \param[in] all  the near field of all cells, as the solver's GPU has it */
    void start(const DeviceNearTask<Real>& all, const EvaluationStreams& streams);
    /*! \brief Has them compute, once excluded pairs are known.
     *  \param[in] all  as start()
     *  \returns the part of the solver's GPU, for the stream of the near field */
    DeviceNearTask<Real> compute(const DeviceNearTask<Real>& all, const EvaluationStreams& streams);
    /*! \brief Puts the sum of all parts and of the far field into the stream of the far field.
     *  \param[in] all  as start()
     *  \param[in] out  as combineForces() */
    void combine(const DeviceNearTask<Real>& all,
                 const ForceArrays<Real>& out,
                 const EvaluationStreams& streams);

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
    //! \param[in] share  0: that of the solver's GPU, then those of the helpers
    DeviceNearTask<Real> part(const DeviceNearTask<Real>& all, int share) const;

    bool reproducible_;
    int available_ = 0, used_ = 0;
    HelperRoom room_ = {};
    bool haveRoom_   = false;
    std::vector<std::unique_ptr<Connection>> connections_;
    DeviceBuffer<ShareState> state_;
    DeviceBuffer<int> bounds_; //!< of the evaluation at hand, as ShareState::bounds
    Stream read_;              //!< of shares()
    Stream watch_{ Priority::Highest };
    //! Of the lowest priority: comes to its turn when other work of the GPU, such as that of mdrun, lets it.
    Stream idle_;
    Event begun_, farReady_, adjusted_;
    bool measured_ = false; //!< shares follow the evaluation at hand
};

} // namespace farfield

#endif
