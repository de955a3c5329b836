/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The charges and the excluded pairs that a caller has set.
 */
#ifndef FARFIELD_EVALUATION_CHARGE_SET_H
#define FARFIELD_EVALUATION_CHARGE_SET_H

#include <cmath>

#include <functional>
#include <vector>

#include "backend/gpu_backend.h"
#include "cells/excluded_pairs.h"
#include "operators/charge_sums.h"
#include "plan/occupancy.h"

namespace farfield
{

//! What cells are chosen for, besides where particles are.
struct ParticleNumbers
{
    long long takingPart   = 0; //!< those with a charge, or all if none has one
    long long acting       = 0; //!< those whose charge does something, see c_idleCharge
    long long withPartners = 0; //!< those with a charge that have an excluded partner with a charge
    long long inExcess     = 0; //!< charges of one sign that none of the other sign balances
    long long wide         = 0; //!< those that have a width, see NearPairs
    double nearRange       = 0; //!< nm, of near functions

    ParticleNumbers() = default;
    ParticleNumbers(long long ofChoice, const ChargeSums& sums, long long ofPairs);

    /*! \brief Whether cells that were chosen for these are still chosen for others.
     *
     *  Numbers are within a factor of 1.5 of each other. What is left of forces without the excluded
     *  pairs may be far less than they were, and the same error then more of them. The error of a few
     *  charges, or of charges of one sign, says little about that of many, or of both signs. Near
     *  functions change the forces that the error is a part of. Particles without a charge have no
     *  forces at all: any choice does for them, and theirs says nothing about charges. */
    bool standFor(const ParticleNumbers& now) const;
};

//! So few particles that sums over all pairs are no great expense, nor are some more evaluations.
constexpr int c_fewParticles = 20000;

//! Owns Moments of all particles; empty: there are none.
template<class Real>
struct OwnMoments
{
    std::vector<Real> dipoles, quadrupoles;
    bool any() const { return !dipoles.empty() || !quadrupoles.empty(); }
    Moments<Real> view() const
    {
        return { dipoles.empty() ? nullptr : dipoles.data(),
                 quadrupoles.empty() ? nullptr : quadrupoles.data() };
    }
};

/*! \brief How strong a particle with multipoles is, e: what they and its charge have at this distance
 *         add up to. Errors are judged by it as by a charge. */
template<class Real>
Real strengthOf(Real charge, const Moments<Real>& moments, size_t particle)
{
    constexpr double c_distance = 0.1; // nm, of a bond
    double square               = static_cast<double>(charge) * static_cast<double>(charge);
    const auto add              = [&](const Real* values, size_t each, double unit)
    {
        for (size_t k = 0; values != nullptr && k < each; k++)
        {
            const double component = static_cast<double>(values[each * particle + k]) / unit;
            square += component * component;
        }
    };
    add(moments.dipoles, 3, c_distance);
    add(moments.quadrupoles, 6, c_distance * c_distance);
    return static_cast<Real>(std::sqrt(square));
}

/*! \brief What is remembered of them.
 *
 *  Particles with a charge take part. Once potentials of all particles are wanted, the others take
 *  part, too: the backend gets c_idleCharge for them. It gets those excluded pairs of which both
 *  particles take part. */
template<class Real>
class ChargeSet
{
public:
    explicit ChargeSet(Backend<Real>* backend) : backend_(backend) {}

    //! Sets the charges, [n], and gives up exclusions and near functions if the number has changed.
    //! Nothing has changed if it throws.
    void setCharges(const Real* q, int n);
    /*! \brief The same of charges in device memory, in order with a stream; waits.
     *  \returns false, and nothing has changed: there were not as many, one of those or of these is zero or not legal,
     *           or there are moments */
    bool replaceOnDevice(GpuBackend<Real>* gpu, const Real* q, int n, void* stream);
    //! Sets dipoles, e nm, [n][3], for as many particles as there are; null: there are none. Nothing has
    //! changed if it throws.
    void setDipoles(const Real* dipoles);
    //! The same of quadrupoles, e nm^2, [n][6], as Moments has them; what they have of a trace is taken off.
    void setQuadrupoles(const Real* quadrupoles);
    //! Sets the excluded pairs, for as many particles as there are. Nothing has changed if it
    //! throws.
    void setExclusions(const int* offsets, const int* partners);
    //! Sets near functions, for as many particles as there are. Nothing has changed if it throws.
    void setNearPairs(const NearPairs<Real>& pairs);
    /*! \brief Lets the backend have other sources, for all particles, and all excluded pairs; until
     *         handBack().
     *  \param[in] charges, dipoles  [n] and [n][3] */
    void lend(const std::vector<Real>& charges, const std::vector<Real>& dipoles);
    void handBack();
    //! Gives the backend what it lacks: the excluded pairs if charges have changed what counts of them, and
    //! charges where giving them has failed.
    void complete();
    //! Lets particles without a charge take part, from here on. Nothing has changed if it throws.
    void letAllTakePart();

    int count() const { return count_; } //!< particles
    //! [count()], whether a particle has a charge or another multipole.
    const std::vector<char>& isCharged() const { return isCharged_; }
    const ChargeSums& sums() const { return sums_; }
    long long charged() const { return sums_.charged; }
    long long acting() const { return sums_.acting; }
    bool isActing(int i) const
    {
        return std::abs(strengths()[i]) > static_cast<Real>(c_idleCharge<Real>);
    }
    //! Particles that cells are chosen for: those that take part, or all if none has a charge.
    long long takingPart() const { return charged() > 0 && !allTakePart_ ? charged() : count_; }
    //! [count()], whether the position of a particle matters: it takes part, and some have a charge.
    const std::vector<char>& takesPart() const { return takesPart_; }
    //! [count()], whether a particle is one of those that cells are chosen for.
    std::vector<char> areChosenFor() const
    {
        return charged() > 0 ? takesPart_ : std::vector<char>(count_, 1);
    }
    //! Whether particles without a charge have one that does nothing.
    bool hasIdle() const { return allTakePart_ && isMixed(); }
    //! Whether particles without a charge are to take part.
    bool allTakePart() const { return allTakePart_; }
    //! Whether letAllTakePart() changes who takes part.
    bool wouldTakePart() const { return !allTakePart_ && isMixed(); }
    double squaredCharges() const { return sums_.squared; }
    bool hasExclusions() const { return !excluded_.partners.empty(); }
    //! What cells are chosen for, once the pairs are complete.
    ParticleNumbers numbers() const
    {
        ParticleNumbers numbers(takingPart(), sums_, withPartners_);
        numbers.wide      = nearPairs_.wide;
        numbers.nearRange = nearPairs_.range;
        return numbers;
    }
    //! The excluded pairs as they were set.
    const ExcludedPairs& excluded() const { return excluded_; }
    const NearPairs<Real>& nearPairs() const { return nearPairs_; }
    //! The charges, e, [count()].
    const std::vector<Real>& charges() const
    {
        if (fetch_)
        {
            fetch_(&charges_);
            fetch_ = nullptr;
        }
        return charges_;
    }
    bool hasMoments() const { return moments_.any(); }
    bool hasQuadrupoles() const { return !moments_.quadrupoles.empty(); }
    Moments<Real> moments() const { return moments_.view(); }
    //! [count()], e: of particles with multipoles as strengthOf(), else the charges.
    const std::vector<Real>& strengths() const { return hasMoments() ? strengths_ : charges(); }
    //! Whether all particles, those that do not act included, are at most c_fewParticles.
    bool areFew() const;
    //! Where they are. \param[in] x  [n][3], nm, any image
    Occupancy occupancy(const Real* x, const Mat3& box) const;
    /*! \brief How far apart particles that take part are in each dimension, nm.
     *  \param[in] x  [n][3], nm, without images
     *  \throws Error  InvalidArgument: one of them is not finite, or too far away */
    Vec3 extent(const Real* x) const;
    /*! \brief How far those with a charge are spread along axes without images, nm: the RMS distance
     *         from their median, but for the farthest tenth, which may have flown away. */
    double spread(const Real* x, Boundary boundary) const;
    //! Excluded pairs of charged particles.
    struct PairsApart
    {
        long long count = 0; //!< pairs, twice if they are listed both ways
        double shortest = 0; //!< distance of the closest two, nm; 0 if there are none
    };
    //! \param[in] x  [n][3], nm, any image
    PairsApart pairsApart(const Real* x, const Mat3& box) const;

private:
    //! Whether some particles have a charge, and some none.
    bool isMixed() const { return charged() > 0 && charged() < count_; }
    void set(std::vector<Real> charges, OwnMoments<Real> moments);
    //! Gives the backend charges, with idle ones where there are none but something takes part.
    void giveToBackend(const std::vector<Real>& charges,
                       const Moments<Real>& moments,
                       const std::vector<Real>& strengths,
                       const std::vector<char>& takesPart);
    //! Gives it those of this set.
    void giveOwn() { giveToBackend(charges(), moments(), strengths_, takesPart_); }
    //! Gives the backend those pairs that count.
    void handOver(const ExcludedPairs& pairs);

    Backend<Real>* backend_;
    int count_        = 0;
    bool allTakePart_ = false;
    std::vector<char> isCharged_, takesPart_; //!< [count_]
    ExcludedPairs excluded_ = { { 0 }, {} };  //!< all of them; the backend has those that count
    bool pairsStand_        = true;           //!< whether it has
    long long withPartners_ = 0;
    NearPairs<Real> nearPairs_;
    mutable std::vector<Real> charges_;
    mutable std::function<void(std::vector<Real>*)>
            fetch_; //!< brings them from there; null: they are here
    OwnMoments<Real> moments_;
    std::vector<Real> strengths_;   //!< empty: there are no moments
    bool isGiven_           = true; //!< whether the backend has these charges and moments
    bool backendHasMoments_ = false;
    ChargeSums sums_;
};

} // namespace farfield

#endif
