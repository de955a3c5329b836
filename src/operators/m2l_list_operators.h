/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The M2L operators of the levels below the periodic M2L.
 *
 *  In units of the cell size they are the same on every level. A target child exchanges with the
 *  children of the near neighbours of its parent that are not near itself.
 */
#ifndef FARFIELD_OPERATORS_M2L_LIST_OPERATORS_H
#define FARFIELD_OPERATORS_M2L_LIST_OPERATORS_H

#include <array>
#include <vector>

#include "base/aligned_vector.h"
#include "cells/interaction_list.h"
#include "operators/lattice_sums.h"
#include "operators/reduction.h"

namespace farfield
{

/*! \brief Signs of the coefficients under reflections.
 *
 *  u_i(sigma r) = sign_i u_i(r), and so T(sigma D)_ij = sign_i T(D)_ij sign_j where the cell has
 *  that symmetry; the inversion (axes = 7) is one of every cell.
 *  \param[in] axes  bits of the mirrored axes: 1 x, 2 y, 4 z */
std::vector<int> reflectionSigns(int order, int axes);

//! Dense operators L += T(D) M for every displacement D of the interaction lists.
template<class Real>
class ListM2lOperators
{
public:
    struct Operator : ListDisplacement
    {
        AlignedVector<Real> T; //!< row-major
        //! Truncated operators: the rows of degree order + 1, without strain; else empty.
        AlignedVector<Real> next;
    };
    //! \param[in] scaledEdges  edges of a cell of any level, in units of its size
    ListM2lOperators(const Mat3& scaledEdges, int ws, const Reduction& reduction, int threads);

    int order() const { return reduction_.order(); }
    int ws() const { return ws_; }
    bool leastSquares() const { return reduction_.leastSquares(); }
    //! The vector of a displacement, in units of the cell size, with strain.
    Vec3 displacement(const Int3& D) const
    {
        return strained_.transpose() * Vec3(D[0], D[1], D[2]);
    }
    //! Threads of the set-up.
    int threads() const { return threads_; }
    //! Edges of a cell in units of its size, without strain.
    const Mat3& edges() const { return edges_; }
    const std::vector<Operator>& operators() const { return operators_; }
    //! Position of the operator of a displacement, -1 for none.
    int find(const Int3& D) const;
    //! Whether T(sigma D) = S T(D) S under reflection of any axis (else under inversion only).
    bool reflections() const;
    //! As PeriodicM2l::setStrain().
    void setStrain(const Mat3& strain);
    /*! \brief For the GPU: derivatives of operator k with respect to the components of Strain,
     *         without strain.
     *
     *  The first call builds those of all operators, and must not run beside others. */
    const std::array<AlignedVector<Real>, StrainCount>& strainDerivatives(int k) const;

private:
    //! A displacement that follows from another by mirroring axes.
    struct Image
    {
        int k;    //!< operator
        int axes; //!< as for reflectionSigns()
    };
    void listDisplacements();
    void buildNextRows();
    void listImages();
    //! Calls build(D, matrices) for the first displacement of every set of images, and
    //! take(image, c, signs, matrix) for each of the matrices and every image.
    template<class Build, class Take>
    void forAllImages(int matrices, const Build& build, const Take& take) const;

    Mat3 edges_;
    Mat3 strained_; //!< edges with the strain that the operators follow
    int ws_;
    Reduction reduction_;
    int threads_;
    std::vector<M2lEntry> entries_;
    std::vector<Operator> operators_;
    std::vector<int> position_;              //!< see find()
    std::vector<std::vector<Image>> images_; //!< sets related by symmetry, itself first
    //! Derivatives of the operators, built when first needed.
    mutable std::vector<std::array<AlignedVector<Real>, StrainCount>> strain_;
    std::vector<AlignedVector<Real>> unstrained_;
};

} // namespace farfield

#endif
