/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The part of a system that a rank has, and what it exchanges with others.
 */
#ifndef FARFIELD_PARALLEL_PARTITION_H
#define FARFIELD_PARALLEL_PARTITION_H

#include <array>
#include <vector>

#include "parallel/ghosts.h"
#include "parallel/regions.h"

namespace farfield
{

//! Plans exchanges, and tells when they have to be planned anew.
template<class Real>
class Partition
{
public:
    //! \param[in] drift  how far particles may move before exchanges are planned anew, cells
    Partition(Ranks* ranks, double drift, int threads) :
        ranks_(ranks), drift_(drift), threads_(threads)
    {
    }
    Partition(const Partition&)            = delete;
    Partition& operator=(const Partition&) = delete;

    Ranks& ranks() { return *ranks_; }
    const Ranks& ranks() const { return *ranks_; }
    double drift() const { return drift_; }
    //! How far particles may have moved for a plan to hold, cells: a hundredth of the drift is left for
    //! rounding, as cells are found from positions in another way.
    double limit() const { return 0.99 * drift_; }
    int threads() const { return threads_; }
    Ghosts<Real>& ghosts() { return ghosts_; }
    //! The cells of all ranks, of the last plan.
    const Regions& regions() const { return regions_; }
    /*! \brief Looks where our particles are, in cells; to be called before every evaluation.
     *  \param[in] own  those with a charge take part
     *  \param[in] x    positions, nm, [own][3], which stay until plan()
     *  \returns the number of the first that is nowhere: not finite, or too far away; or -1 */
    int
    locate(const OwnParticles<Real>& own, const Real* x, const Discretisation& d, const Mat3& box);
    //! Whether there is no plan, or one for other cells, or a particle has moved too far.
    bool needsPlan(const Discretisation& d) const;
    //! Plans for the particles where they were located. All ranks together.
    void plan(const OwnParticles<Real>& own);
    //! Takes the cells of a plan that a device has made: it has the ghosts.
    void adopt(Regions regions, const Discretisation& d);
    //! Whether there is a plan for these cells.
    bool isPlannedFor(const Discretisation& d) const
    {
        return isPlanned_ && planned_.hasSettingOf(d);
    }
    //! Gives the plan up: other particles will come.
    void forget() { isPlanned_ = false; }

private:
    //! Cell coordinates of positions.
    struct Cells
    {
        Mat3 toCells;
        std::array<double, 3> of(const Real* x) const;
    };
    //! Whether those that take part are where they were at the time of the plan, up to limit().
    bool areNearPlan(const OwnParticles<Real>& own) const;
    //! Finds who takes part, and where_. \returns as locate()
    int find(const OwnParticles<Real>& own);

    Ranks* ranks_;
    double drift_;
    int threads_;
    Ghosts<Real> ghosts_;
    Regions regions_;
    bool isPlanned_ = false;
    bool hasLeft_   = true;            //!< at the time of locate(): somebody has left the plan
    Discretisation planned_, located_; //!< cells of the plan, and of locate()
    Mat3 box_      = Mat3::Zero();
    const Real* x_ = nullptr; //!< of locate()
    std::vector<int> takePart_;
    //! Cell coordinates of those that take part, [takePart_][3]: at the time of the plan, and of
    //! locate(), where somebody had left the plan.
    std::vector<double> plannedWhere_, where_;
    std::vector<Real> plannedX_; //!< positions of all at the time of the plan, nm, [own][3]
    Mat3 plannedBox_ = Mat3::Zero();
};

} // namespace farfield

#endif
