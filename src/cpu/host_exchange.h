/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What ranks exchange through their hosts.
 */
#ifndef FARFIELD_CPU_HOST_EXCHANGE_H
#define FARFIELD_CPU_HOST_EXCHANGE_H

#include "backend/backend.h"
#include "backend/exchange.h"
#include "parallel/partition.h"

namespace farfield
{

//! Plans with a Partition, and tells the CPU backend which ghosts it gets.
template<class Real>
class HostExchange final : public Exchange<Real>
{
public:
    HostExchange(Partition<Real>* partition, Backend<Real>* backend) :
        partition_(partition), backend_(backend)
    {
    }
    void setSystem(const WholeSystem<Real>& /*system*/) override {}
    void setLocal(OwnParticles<Real>* own, const WholeSystem<Real>& system) override
    {
        own->lookUp(system, partition_->threads());
    }
    int locate(const OwnParticles<Real>& own,
               const Real* x,
               const Discretisation& d,
               const Mat3& box) override
    {
        return partition_->locate(own, x, d, box);
    }
    bool haveLeftPlan(const Discretisation& d) const override { return partition_->needsPlan(d); }
    void plan(const OwnParticles<Real>& own, double net) override
    {
        partition_->plan(own);
        const Ghosts<Real>& ghosts = partition_->ghosts();
        const ExcludedPairs& pairs = ghosts.excluded();
        const int n                = own.count() + ghosts.count();
        backend_->setCharges(own.charges.data(), own.count());
        backend_->setGhosts(ghosts.charges().data(), ghosts.count(), net);
        backend_->setExclusions(pairs.offsets.data(), pairs.partners.data(), n);
    }

private:
    Partition<Real>* partition_;
    Backend<Real>* backend_;
};

} // namespace farfield

#endif
