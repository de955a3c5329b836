/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The operators that a backend has, and what they were built for.
 */
#ifndef FARFIELD_EVALUATION_OPERATORS_IN_USE_H
#define FARFIELD_EVALUATION_OPERATORS_IN_USE_H

#include <optional>

#include "backend/backend.h"
#include "plan/discretisation.h"

namespace farfield
{

//! How the operators of the reference box are adapted to a box, see Backend::setBox().
struct OperatorFrame
{
    Mat3 box          = Mat3::Zero();
    Mat3 strain       = Mat3::Zero();
    Mat3 rotation     = Mat3::Identity();
    Mat3 virialStrain = Mat3::Zero(); //!< of Backend::setVirialStrain(), if it was called
};

/*! \brief Builds and adapts the operators of a backend, and puts back what was in use where that
 *         fails.
 *
 *  The old operators make room for the new ones, as memory may not suffice for both. So all that
 *  can be kept is what they were; rebuild() builds them again when they are needed. */
template<class Real>
class OperatorsInUse
{
public:
    explicit OperatorsInUse(Backend<Real>* backend) : backend_(backend) {}

    //! Whether operators were ever built.
    bool exist() const { return discretisation_.has_value(); }
    //! What they were built for; only if they exist.
    const Discretisation& discretisation() const { return *discretisation_; }
    const Mat3& box() const { return frame_.box; }
    const OperatorFrame& frame() const { return frame_; }
    //! What of Setup follows from them; only if they exist.
    Setup setup() const;

    //! \name Only in the work of change()
    //!@{
    //! \throws Error  OutOfMemory: they do not fit
    void build(const Discretisation& discretisation);
    //! The same, adapted to a box.
    void build(const Discretisation& discretisation, const OperatorFrame& frame);
    void setBox(const OperatorFrame& frame);
    //! Pairs nearer than this, nm, are left out of the near field instead of being subtracted.
    void setExclusionRange(double range);
    //! As Backend::setFieldCap().
    void setFieldCap(double cap);
    //!@}

    //! Does what builds or changes the operators; if it fails, what was in use is in use.
    template<class Work>
    void change(const Work& work)
    {
        const OperatorsInUse before = *this;
        try
        {
            work();
            stand_ = true;
        }
        catch (...)
        {
            const bool stand       = stand_; // not if something was built
            const long long builds = builds_;
            *this                  = before;
            stand_                 = stand;
            builds_                = builds;
            throw;
        }
    }
    //! Builds the operators in use again if a failure has cost them.
    void rebuild();
    //! How often operators were built: what depends on those of the backend is of one build.
    long long builds() const { return builds_; }
    //! An evaluation has failed: what the backend has may be half made.
    void giveUp() { stand_ = false; }

private:
    Backend<Real>* backend_;
    std::optional<Discretisation> discretisation_;
    OperatorFrame frame_;
    double fieldCap_  = 0;     //!< kJ/mol/nm/e
    bool stand_       = false; //!< whether the backend has these operators
    long long builds_ = 0;
};

} // namespace farfield

#endif
