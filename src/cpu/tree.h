/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The levels of a tree below the grid on which the periodic M2L acts, with expansions in solid
 *         harmonics.
 *
 *  Virial: with D the displacement of two cells and F the force on the target from the source,
 *  found from the gradient of the local expansion as that on a particle is, displacements
 *  contribute -1/2 D (x) F over pairs of cells. This costs a few products per coefficient where
 *  the operators cost as many as there are coefficients. The gradient of an expansion of order p
 *  lacks the degree p; with truncated operators it is taken from an expansion of order p + 1, and
 *  the virial is then the strain derivative of the energy exactly. Least-squares operators put
 *  into the lower degrees what they know of the higher ones, so forces on cells are as accurate as
 *  those on particles: on water at orders 4 to 12 the virial is 1.0 to 1.3 times as far from the
 *  exact one as with derivatives of the operators.
 */
#ifndef FARFIELD_CPU_TREE_H
#define FARFIELD_CPU_TREE_H

#include <array>
#include <vector>

#include "cpu/cell_tree.h"
#include "operators/m2l_list_operators.h"

namespace farfield
{

//! M2M, M2L and L2L between the levels of a tree, and their virials.
template<class Real>
class Tree
{
public:
    //! \param[in] scaledEdges  edges of a cell of any level, in units of its size
    //! \param[in] team         does the work
    Tree(const Mat3& scaledEdges, int ws, const Reduction& reduction, Team* team);

    //! M of the parents, all of its slots set, from M of the children.
    void m2m(const Level<Real>& child, Level<Real>* parent) const { cells_.m2m(child, parent); }
    /*! \brief L of a level from the multipoles of sources, over the interaction lists; adds to L.
     *  \param[in]  sources  the same cells; with several ranks those of others, too, and complete
     *  \param[out] virial  as PeriodicM2l::apply() */
    void m2l(const Level<Real>& sources,
             Level<Real>* level,
             std::array<double, StrainCount>* virial) const;
    /*! \brief Sets L of the children from L of the parents.
     *  \param[in] background  backgroundStrength() of the children
     *  \param[out] virial     if not null, -1/2 s (x) F of the children, s their centres
     *         relative to the parents' and F the force on them from coarser levels, is added, in
     *         1 / child unit: xx yy zz xy xz yz */
    void
    l2l(const Level<Real>& parent, Level<Real>* child, double background, double* virial) const;
    //! As PeriodicM2l::setStrain().
    void setStrain(const Mat3& strain);

    //! What M2M adds to sum q r^2 about cell centres: 2 s.dipole + s^2 q of all children, in child
    //! units.
    double traceShift(const Level<Real>& child) const;

private:
    //! M2M and L2L for cells with these edges.
    void setTranslations(const Mat3& edges);

    ListM2lOperators<Real> operators_;
    CellTree<Real> cells_;
    Team& team_;
    std::vector<DerivativeTerm> gradient_;     //!< of the order of the expansions
    std::vector<DerivativeTerm> nextGradient_; //!< of that which the force on a cell needs
    std::array<Vec3, 8> shifts_; //!< centre of a child relative to its parent's, child units
};

} // namespace farfield

#endif
