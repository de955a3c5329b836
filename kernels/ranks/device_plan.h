/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Plans of what GPUs exchange, made on them: who is a ghost of whom, and the excluded pairs.
 *
 *  Every GPU has the charges and the excluded pairs of the whole system, so that a plan looks them up
 *  there, and the hosts exchange little more than the indices of ghosts.
 */
#ifndef FARFIELD_KERNELS_RANKS_DEVICE_PLAN_H
#define FARFIELD_KERNELS_RANKS_DEVICE_PLAN_H

#include <vector>

#include "parallel/own_particles.h"
#include "parallel/partition.h"
#include "runtime/device.h"
#include "runtime/particle_counts.h"

namespace farfield
{

//! The rows of excluded partners of the whole system, and who is here; device memory.
template<class Real>
struct SystemRows
{
    const Real* q;
    const int* offsets;
    const int* partners;
    const int* localOf;
};

template<class Real>
class DevicePlan
{
public:
    //! Takes the whole system. \param[in] rootCoulomb  that charges are scaled by
    void setSystem(const WholeSystem<Real>& system, double rootCoulomb, cudaStream_t stream);
    /*! \brief Finds out where our particles are; waits.
     *  \param[in] index  of each in the system
     *  \param[in] x      nm, [index][3], host or device memory
     *  \returns the number of the first that is nowhere, or -1 */
    int locate(const std::vector<int>& index,
               const Real* x,
               const Discretisation& d,
               const Mat3& box,
               const Partition<Real>& partition,
               cudaStream_t stream);
    //! How far one of ours that were located is from where it was at the time of the plan, cells; only
    //! where they are the same ones.
    float farthest() const { return farthest_; }
    //! Plans for where they were located, and tells the partition the cells. All ranks together; waits.
    void make(Partition<Real>* partition, cudaStream_t stream);

    int own() const { return own_; }
    int ghosts() const { return static_cast<int>(ghostOffsets_.back()); }
    int count() const { return own() + ghosts(); } //!< ghosts are behind ours
    //! Those with a charge take part.
    ParticleCounts counts() const { return { count(), own(), takingPart_ }; }
    //! [own()][3] cell coordinates at the time of the plan, not numbers for those that do not take part; device memory.
    const Real* where() const { return where_.data(); }
    //! Our particles that are ghosts elsewhere, rank by rank; device memory.
    const DeviceBuffer<int>& sent() const { return sent_; }
    const std::vector<size_t>& sentOffsets() const { return sentOffsets_; }   //!< [ranks + 1]
    const std::vector<size_t>& ghostOffsets() const { return ghostOffsets_; } //!< [ranks + 1]
    const Real* q() const { return q_.data(); }        //!< scaled, [count()], device memory
    const int* order() const { return order_.data(); } //!< as ParticleArrays::order()

    //! Rows of excluded pairs of which both have a charge, of ours with all, and back; device memory.
    const int* excludedOffsets() const { return rowEnds_.data(); } //!< [count() + 1]
    const int* excludedPartners() const { return partners_.data(); }
    int excludedPairs() const { return pairs_; } //!< length of the rows together
    int longestRow() const { return longestRow_; }

private:
    SystemRows<Real> systemRows() const
    {
        return { systemQ_.data(), systemOffsets_.data(), systemPartners_.data(), localOf_.data() };
    }
    //! Partners of ours that are on other ranks, by their index in the system, ascending.
    std::vector<int> partnersElsewhere(cudaStream_t stream);
    //! Lists our particles that a rank needs: near its cells, or wanted as partners. \returns how many
    int listSent(const std::vector<char>& placesNear,
                 const int* wanted,
                 size_t wantedCount,
                 DeviceBuffer<int>* sentTo,
                 cudaStream_t stream);
    //! Tells other ranks who is sent to them, and takes the charges of those that are sent to us.
    void introduceGhosts(Ranks* ranks, cudaStream_t stream);
    void orderParticles(cudaStream_t stream);
    void listExcluded(cudaStream_t stream);
    //! Lists the numbers below count that are flagged, ascending. \returns how many are
    int select(const char* flags, int count, int* list, cudaStream_t stream);
    //! Calls a function of CUB, (space, bytes), for the space that it takes, and with that.
    template<class Function>
    void withScratch(const Function& function)
    {
        size_t bytes = 0;
        function(nullptr, bytes);
        scratch_.resize(bytes);
        function(scratch_.data(), bytes);
    }
    //! A number that a kernel has left.
    int numberAt(int which, cudaStream_t stream) const;

    //! Numbers that kernels leave behind.
    enum Number
    {
        Lost,     //!< the first particle that is nowhere
        Farthest, //!< see farthest(), as bits
        Found,    //!< partners that others want and are here
        Selected, //!< see select()
        Longest,  //!< row of excluded pairs
        NumberCount
    };

    // the whole system
    int system_ = 0;
    DeviceBuffer<Real> systemQ_;
    DeviceBuffer<int> systemOffsets_, systemPartners_;
    DeviceBuffer<int> localOf_;  //!< [system] number among ours and the ghosts, -1: not here
    DeviceBuffer<char> wanted_;  //!< [system] partners of ours that are elsewhere
    DeviceBuffer<int> wantedBy_; //!< those of all ranks, one after the other

    // the plan
    Discretisation d_;
    Mat3 box_       = Mat3::Zero();
    float farthest_ = 0;
    int own_ = 0, takingPart_ = 0, pairs_ = 0, longestRow_ = 0;
    std::vector<size_t> sentOffsets_ = { 0 }, ghostOffsets_ = { 0 };
    DeviceBuffer<int> index_; //!< [own] in the system
    DeviceBuffer<int> all_;   //!< the same with those of ghosts
    DeviceBuffer<Real> x_, located_, where_, q_;
    DeviceBuffer<int> place_;            //!< [own] see Reach, -1: in no cell
    DeviceBuffer<char> isHeld_, isNear_; //!< [places]
    DeviceBuffer<char> flags_;
    std::vector<DeviceBuffer<int>> sentTo_; //!< each rank, with room to spare
    DeviceBuffer<int> sent_, list_, order_, rowLengths_, rowEnds_, partners_;
    DeviceBuffer<int> numbers_;           //!< [NumberCount]
    DeviceBuffer<unsigned char> scratch_; //!< of CUB
};

} // namespace farfield

#endif
