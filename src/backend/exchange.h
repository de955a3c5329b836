/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the ranks of a system send each other, so that each can evaluate its own particles.
 */
#ifndef FARFIELD_BACKEND_EXCHANGE_H
#define FARFIELD_BACKEND_EXCHANGE_H

#include "base/vectors.h"
#include "parallel/own_particles.h"
#include "plan/discretisation.h"

namespace farfield
{

//! What an evaluation sends to others.
struct SentPerEvaluation
{
    long long messages = 0, bytes = 0;
};

/*! \brief Plans exchanges, which the stages of a backend do then.
 *
 *  Hosts and GPUs implement it, each for its backend: Backend::exchange(). */
template<class Real>
class Exchange
{
public:
    virtual ~Exchange() = default;

    //! Takes the whole system, of which each rank has a part.
    virtual void setSystem(const WholeSystem<Real>& system) = 0;
    //! Takes the particles of this rank. \param[in,out] own  get what plans need of them
    virtual void setLocal(OwnParticles<Real>* own, const WholeSystem<Real>& system) = 0;
    /*! \brief Finds out where they are.
     *  \param[in] x  positions, nm, [own][3], host memory, or device memory in order with await()
     *  \returns the number of one that is nowhere: not finite, or too far away; or -1 */
    virtual int locate(const OwnParticles<Real>& own,
                       const Real* x,
                       const Discretisation& d,
                       const Mat3& box) = 0;
    //! Whether those that were located have moved so far since they were planned for that it is time
    //! for a plan.
    virtual bool haveLeftPlan(const Discretisation& d) const = 0;
    /*! \brief Plans what is exchanged, for the particles where they were located. All ranks together;
     *         waits.
     *  \param[in] net  charge of the system, e */
    virtual void plan(const OwnParticles<Real>& own, double net) = 0;
    /*! \brief Whether exchanges should be planned anew before the next evaluation on arrays in device
     *         memory, as particles have moved far; the same on all ranks.
     *
     *  Waits for an evaluation some steps ago. */
    virtual bool needsPlan(void* /*stream*/) { return false; }
    //! Whether no evaluation has been begun since the last plan; the same on all ranks.
    virtual bool isUntried() const { return false; }
    //! An evaluation of the plan, in a stream: this rank owes others its messages from here on.
    virtual void begin(void* /*stream*/) {}
    /*! \brief This rank gives up the evaluation at hand: it still sends what devices of others wait for.
     *
     *  A device that waits for a message cannot be told, nor can the host that waits for it. What is sent
     *  makes the forces of those others no numbers. Then the plan is forgotten.
     *  \returns whether all of it could be sent; else others may wait for ever */
    virtual bool sendRest() { return true; }
    //! What an evaluation of the last plan sends beside what goes through the hosts.
    virtual SentPerEvaluation sentPerEvaluation() const { return {}; }
};

} // namespace farfield

#endif
