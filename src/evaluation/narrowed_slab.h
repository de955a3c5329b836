/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Slabs with wide empty layers, as if these were narrower.
 *
 *  A charge at a height z above a layer feels its wave vectors G of the plane by exp(-|G| z), and its
 *  net charge by a force that does not depend on z: far enough away nothing else is left. So the width
 *  of an empty layer changes no force, and the energy, by -2 pi |z| times charges over the area, in
 *  proportion. What has evaporated then costs no cells in between.
 */
#ifndef FARFIELD_EVALUATION_NARROWED_SLAB_H
#define FARFIELD_EVALUATION_NARROWED_SLAB_H

#include <vector>

#include "farfield/farfield.h"

#include "base/vectors.h"
#include "evaluation/charge_set.h"

namespace farfield
{

/*! \brief Width, nm, that an empty layer has to keep: what it changes is a thousandth of the accuracy.
 *  \param[in] box  whose first two vectors count */
double keptWidth(const Mat3& box, const Options& options);

//! What is to be added to a result for positions in which empty layers have another width.
template<class Real>
struct SlabCorrection
{
    double energy = 0;
    Mat3 virial   = Mat3::Zero();
    std::vector<Real> potentials; //!< [n]
    std::vector<Real> forces;     //!< [n][3], of excluded pairs; empty if none are in two layers

    void addTo(Totals* totals, bool energyIsWanted, bool virialIsWanted) const;
    //! \param[in,out] to, toPotentials  forces and potentials in host memory; the latter may be null
    void addTo(Real* to, Real* toPotentials) const;
};

//! Positions in which empty layers have a given width, and what that changes.
template<class Real>
class NarrowedSlab
{
public:
    //! Nothing is narrowed.
    NarrowedSlab() = default;
    /*! \param[in] x       [n][3], nm
     *  \param[in] counts  [n], whether a particle takes part, so that its position is finite
     *  \param[in] kept    see keptWidth() */
    NarrowedSlab(const Real* x, const std::vector<char>& counts, double kept);

    //! Whether there is anything that was narrowed.
    bool any() const { return layers_.size() > 1; }
    //! [n][3], nm. Differences within a layer are those that were given, to the last bit.
    const Real* x() const { return x_.data(); }
    //! Of all layers, nm.
    double height() const;

    //! What is to be added to a result for these positions. \param[in] box  whose first two vectors count
    SlabCorrection<Real> correction(const ChargeSet<Real>& charges,
                                    const Mat3& box,
                                    double coulombConstant) const;

private:
    struct Layer
    {
        double first, last; //!< heights of its particles, nm
        double lowered;     //!< by so much, nm
    };
    std::vector<Layer> layers_; //!< from below
    std::vector<size_t> layer_; //!< [n]
    std::vector<Real> x_;
};

} // namespace farfield

#endif
