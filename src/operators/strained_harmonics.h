/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Solid harmonics with radial factors, and their derivatives under strain.
 */
#ifndef FARFIELD_OPERATORS_STRAINED_HARMONICS_H
#define FARFIELD_OPERATORS_STRAINED_HARMONICS_H

#include <array>
#include <vector>

#include "operators/solid_harmonics.h"

namespace farfield
{

/*! \brief The strain components whose derivatives are kept: those that leave the volume as it is.
 *
 *  Isotropic scaling changes nothing in units of Grid::unit(). */
enum Strain
{
    StrainXXminusZZ,
    StrainYYminusZZ,
    StrainXY,
    StrainXZ,
    StrainYZ,
    StrainCount
};
//! Axes of a strain component.
constexpr std::array<std::array<int, 2>, StrainCount> c_strainAxes = {
    { { 0, 0 }, { 1, 1 }, { 0, 1 }, { 0, 2 }, { 1, 2 } }
};

/*! \brief One function f(D) on displacements, and its derivatives under strain up to a degree.
 *
 *  [coefficientCount(degree)], and behind it [StrainCount][coefficientCount(strainDegree)]. */
class StrainedHarmonics
{
public:
    StrainedHarmonics(int degree, int strainDegree);

    /*! \brief Evaluates u_i(r) radial[l] and its derivatives.
     *
     *  \param[in]  r        argument
     *  \param[in]  radial   factor per degree
     *  \param[in]  slope    d radial / d(r^2) per degree
     *  \param[in]  dual     false: r is a vector, r -> (1 + e) r. true: a wave vector, r -> (1 -
     *         e^T) r
     *  \param[out] out      [size()], added to */
    void add(const Vec3& r, const double* radial, const double* slope, bool dual, double* out);

    /*! \brief Adds u_i(r) times a factor and a derivative of its own to one strain component, r
     *         being that of the last add().
     *  \param[in]  slope  per degree */
    void addStrain(Strain component, const double* slope, double* out) const;

    int size() const { return n_ + StrainCount * strained_; }
    //! Whether a field changes its sign where one component of the argument does.
    bool isOdd(int field, int axis) const;

private:
    //! Along an axis: a sum of two harmonics.
    struct Derivative
    {
        int to[2]       = { 0, 0 };
        double value[2] = { 0, 0 };
    };
    int coefficientOfField(int field) const
    {
        return field < n_ ? field : (field - n_) % strained_;
    }

    int n_, strained_;
    std::vector<int> degrees_;
    std::vector<Derivative> derivatives_; //!< [3][strained_]
    std::vector<double> u_, gradient_;
};

/*! \brief Irregular harmonics of a displacement and their derivatives under strain.
 *  \param[out] out  [1 + StrainCount][coefficientCount(degree)] */
void irregularStrain(int degree, const Vec3& D, double* out);

} // namespace farfield

#endif
