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
    const Mat3& box() const { return box_; }
    //! For which the operators of the reference box are corrected; see Backend::setBox().
    const Mat3& strain() const { return strain_; }
    //! Relative error of the forces: measured, or as predicted for water.
    double error(const Grid& leaf) const;
    //! What of Setup follows from them; only if they exist.
    Setup setup() const;

    //! How the operators of the reference box are adapted to the box, see Backend::setBox().
    struct Frame
    {
        Mat3 box = Mat3::Zero(), strain = Mat3::Zero(), rotation = Mat3::Identity();
    };
    Frame frame() const { return { box_, strain_, rotation_ }; }

    //! \name Only in the work of change()
    //!@{
    //! \throws Error  OutOfMemory: they do not fit
    void build(const Discretisation& discretisation);
    //! The same, adapted to a box.
    void build(const Discretisation& discretisation, const Frame& frame);
    //! The same, corrected for a strain of the reference box.
    void build(const Discretisation& discretisation, const Mat3& strain);
    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation);
    //! Pairs nearer than this, nm, are left out of the near field instead of being subtracted.
    void setExclusionRange(double range);
    //! Notes what the error of these operators is here. \param[in] measured  0: it is not known
    void setError(double measured, double systemFactor);
    //! Notes how far apart particles without images were then, nm.
    void setMeasuredExtent(const Vec3& extent) { discretisation_->measuredExtent = extent; }
    //! Notes how strong the fields at charges were then.
    void setMeasuredField(const MeasuredField& field);
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
    Mat3 box_         = Mat3::Zero();
    Mat3 strain_      = Mat3::Zero();
    Mat3 rotation_    = Mat3::Identity(); //!< of box_, see Backend::setBox()
    bool stand_       = false;            //!< whether the backend has these operators
    long long builds_ = 0;
};

} // namespace farfield

#endif
