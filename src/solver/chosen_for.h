/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What order and cells were chosen for, and whether they still are for what there is.
 */
#ifndef FARFIELD_SOLVER_CHOSEN_FOR_H
#define FARFIELD_SOLVER_CHOSEN_FOR_H

#include "farfield/options.h"

namespace farfield
{

//! What a choice depends on, besides where particles are.
struct ParticleNumbers
{
    long long takingPart = 0; //!< those with a charge, or all if none has one
    //! Those with a charge that have an excluded partner with a charge.
    long long withPartners = 0;
    bool areCharged        = false; //!< whether any of them has a charge
};

/*! \brief The one rule for Solver and DistributedSolver.
 *
 *  Ranks of a system have the same numbers of it, and so come to the same answers. */
class ChosenFor
{
public:
    //! The device whose costs decided; Auto: nothing has been chosen.
    Device device() const { return device_; }
    //! The number of particles, which is saved with the cells.
    long long takingPart() const { return numbers_.takingPart; }
    //! Order and cells have been chosen.
    void set(Device device, const ParticleNumbers& numbers)
    {
        device_  = device;
        numbers_ = numbers;
    }
    //! They are those of a saved state, which does not say how many particles had partners.
    //! \param[in] areCharged  whether the error was measured, see ParticleNumbers
    void restore(Device device, long long takingPart, bool areCharged)
    {
        set(device, { takingPart, c_notKnown, areCharged });
    }
    /*! \brief Whether they were chosen for about so many particles, and as many excluded ones.
     *
     *  What is left of forces without the excluded pairs may be far less than they were, and the
     *  same error then more of them. Particles without a charge have no forces whose error could
     *  be measured, so a choice for them says nothing about charges. */
    bool isStillFor(const ParticleNumbers& now) const
    {
        return (numbers_.areCharged || !now.areCharged)
               && isLike(now.takingPart, numbers_.takingPart)
               && (numbers_.withPartners == c_notKnown
                   || isLike(now.withPartners, numbers_.withPartners));
    }
    //! Takes what is not known from the run that is continued; they are still for these.
    void complete(const ParticleNumbers& now)
    {
        numbers_.areCharged = numbers_.areCharged || now.areCharged;
        if (numbers_.withPartners == c_notKnown)
        {
            numbers_.withPartners = now.withPartners;
        }
    }

private:
    static constexpr long long c_notKnown = -1;

    //! Whether a number is within a factor of 1.5 of what it was.
    static bool isLike(long long now, long long then)
    {
        constexpr double c_other = 1.5;
        return static_cast<double>(now) <= c_other * static_cast<double>(then)
               && static_cast<double>(then) <= c_other * static_cast<double>(now);
    }

    Device device_ = Device::Auto;
    ParticleNumbers numbers_;
};

} // namespace farfield

#endif
