/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The forces of few particles without an expansion: what their error is told by.
 */
#ifndef FARFIELD_CHOICE_EXACT_FORCES_H
#define FARFIELD_CHOICE_EXACT_FORCES_H

#include <array>
#include <vector>

#include "farfield/options.h"

#include "base/vectors.h"
#include "cells/excluded_pairs.h"

namespace farfield
{

//! Charged particles and their excluded pairs.
template<class Real>
struct PointCharges
{
    const Real* x; //!< [n][3], nm, any image
    const Real* q; //!< [n], e
    int n;
    const ExcludedPairs& excluded;
};

/*! \brief An Ewald sum for one box, in double precision, over every pair.
 *
 *  Ewald, Ann. Phys. 369, 253 (1921), doi:10.1002/andp.19213690304, without the energies. Both
 *  parts are carried to 1e-5 of the errors that are told by it, or to exp(-36), for single precision to
 *  1e-10. A net charge has no part in forces. */
class ExactForces
{
public:
    //! That particles without images along z fill, nm.
    struct Heights
    {
        double all, most; //!< most of them, where some are far from the others
    };
    /*! \param[in] boundary   of a slab, 1/r is cut off along z, see slab_sums.h
     *  \param[in] box        rows, nm; of a slab the third has no meaning
     *  \param[in] heights    of a slab
     *  \param[in] charged    number of particles with a charge
     *  \param[in] accuracy   of the forces that are judged, relative to their RMS
     *  \param[in] realSize   of these forces, bytes */
    ExactForces(Boundary boundary,
                const Mat3& box,
                const Heights& heights,
                long long charged,
                double accuracy,
                int realSize);

    //! Whether the sum takes less than about a tenth of a second of one core; half of that in single
    //! precision, and less at low accuracies.
    bool areCheap() const;
    //! Predicted, ns of one core.
    double cost() const { return cost_; }

    /*! \brief The forces, kJ/mol/nm, [n][3].
     *
     *  Of an excluded pair the shortest image is left out. */
    template<class Real>
    std::vector<double> operator()(const PointCharges<Real>& particles,
                                   double coulombConstant) const;

    //! Those without images, whatever the box.
    template<class Real>
    static std::vector<double> ofOpen(const PointCharges<Real>& particles, double coulombConstant);

private:
    struct Sources;
    struct Images;
    //! Those of a pair. \param[in] shortest  the displacement to find them from, itself left out if excluded
    void findImages(const std::array<double, 3>& shortest,
                    int of,
                    bool isExcluded,
                    Images* images) const;
    void addReal(const Sources& s, std::vector<double>* forces) const;
    void addReciprocal(const Sources& s, std::vector<double>* forces) const;

    bool isSlab_;
    Mat3 box_;             //!< of a slab, whose height is twice where 1/r is cut off
    double digits_;        //!< both sums end at exp(-digits_^2)
    double longest_;       //!< see areCheap(), ns of one core
    double splitting_ = 0; //!< 1/nm
    double cost_      = 0; //!< ns of one core
};

} // namespace farfield

#endif
