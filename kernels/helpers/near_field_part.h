/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A part of the near field on a GPU that helps another.
 */
#ifndef FARFIELD_KERNELS_HELPERS_NEAR_FIELD_PART_H
#define FARFIELD_KERNELS_HELPERS_NEAR_FIELD_PART_H

#include "helpers/links.h"
#include "near_field.h"
#include "particle_arrays.h"
#include "runtime/devices.h"
#include "runtime/evaluation_streams.h"

namespace farfield
{

//! What an evaluation asks of all parts.
struct NearEvaluation
{
    NearGrid where;
    GridPosition position;
    NearSums wanted;
    int parts = 1; //!< into about so many the near field is divided
};

/*! \brief All particles, binned on another GPU, and the near field of some of the cells.
 *
 *  About 100 bytes for a particle; there are no operators. Functions make the GPU current. */
template<class Real>
class NearFieldPart
{
public:
    //! The GPU is the current one.
    NearFieldPart(int device, bool reproducible);

    /*! \brief Makes room for particles and cells; those before are lost.
     *  \param[in] cells  leaf cells; 0: there are none yet */
    void resize(const ParticleCounts& counts, int cells);
    //! Takes particles, for whom there is room; waits. \param[in] home  of the solver's GPU
    void setParticles(const ParticleArrays<Real>& home);
    //! As DeviceCells::adoptEvaluation().
    void adoptEvaluation(const DeviceCells<Real>& home);
    //! As DeviceExclusions.
    void reserveExclusions(int n, size_t partners);
    void setExclusions(const DeviceExclusions<Real>& home, int n);
    //! Makes room for what the solver's GPU knows of the cells, before evaluate().
    void makeReady(const DeviceNearField<Real>& home);

    //! What the solver's GPU writes to before an evaluation.
    HelperInput<Real> input();
    /*! \brief Puts an evaluation into the streams of the part.
     *  \param[in] sent  input() is complete
     *  \param[in] to    in the memory of the solver's GPU */
    void evaluate(const NearEvaluation& evaluation,
                  const Event& sent,
                  const HelperOutput<Real>& to);
    //! Throws what has gone wrong on the device; waits.
    void synchronize() const;
    //! What evaluate() has last put into streams is done.
    const Event& done() const { return done_; }

private:
    int device_;
    bool reproducible_;
    Stream main_{ Priority::Second }, excluded_{ Priority::Second };
    Event placed_, marked_, done_;
    ParticleCounts counts_;
    bool isSorted_ = false; //!< there are cells, and particles in them
    DeviceBuffer<Real> q_, x_;
    DeviceBuffer<int> order_; //!< as ParticleArrays::order()
    DeviceCells<Real> cells_;
    DeviceNearField<Real> nearField_;
    DeviceBuffer<int> bounds_;
    DeviceBuffer<NearTotals> totals_;
    OrderedSums scratch_;
};

} // namespace farfield

#endif
