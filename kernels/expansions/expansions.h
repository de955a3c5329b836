/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief P2M, L2P and the translations M2M and L2L on the device.
 */
#ifndef FARFIELD_KERNELS_EXPANSIONS_EXPANSIONS_H
#define FARFIELD_KERNELS_EXPANSIONS_EXPANSIONS_H

#include <vector>

#include "base/vectors.h"
#include "runtime/device.h"
#include "runtime/layout.h"
#include "runtime/ordered_sums.h"

namespace farfield
{

//! What P2M and L2P need to know besides the particles, see MonicRecurrence.
template<class Real>
class DeviceExpansionTables
{
public:
    //! \param[in] unit  size of a leaf cell, nm; another unit with the same order costs nothing
    void set(int order, double unit, cudaStream_t stream);

    int order() const { return order_; }
    Real inverseUnit() const { return inverseUnit_; }
    //! [order + 1][order + 1] device memory: scale for (m, l - m).
    const Real* scale() const { return scale_.data(); }

private:
    int order_        = -1;
    Real inverseUnit_ = 0;
    DeviceBuffer<Real> scale_;
};

//! Multipoles of the leaves; sets M of all slots (zero where there is no particle).
template<class Real>
void p2m(const DeviceExpansionTables<Real>& tables,
         const SortedParticles<Real>& particles,
         const LevelView<Real>& leaves,
         cudaStream_t stream);

//! How strong fields at charges were: sums over evaluations, exact in any order.
struct FieldSums
{
    //! One in these sums.
    static constexpr double c_one = 1 << 20;
    unsigned long long capped;      //!< of squared fields over the squared cap, each at most one
    unsigned long long evaluations; //!< how many
};

//! Where forces come from and go to; device memory, kJ/mol/nm.
template<class Real>
struct ForceArrays
{
    const Real4<Real>* near; //!< of sorted particles, in the frame of the cells
    //! Where a particle is in it, by its index before sorting; null: in their own order
    const int* nearPlace;
    const Real* excluded; //!< [n][3] in the caller's order and frame; null for none
    Real rotation[3][3];  //!< frame of the cells to the caller's: row vectors times this
    bool replace;         //!< write the sum over what 'all' holds instead of adding it
    Real* all;            //!< [n][3] in the caller's order and frame; null: the far part alone
    const Real* poison;   //!< [1] added to every force, see FamilyLists; null for zero
    Real4<Real>* far;     //!< [n] set to the far part as 'near', w unused; null if not wanted
    FieldSums* fields;    //!< [1] added to; null if not wanted
    Real chargePerCap; //!< one over the field that counts most, for charges as those of particles
    Real largestIdle;  //!< charges up to this do nothing, and their fields do not count
};

/*! \brief Far-field forces, added to those of the near field and of excluded pairs.
 *
 *  Particles of a cell without slot get none.
 *  \param[in] pull  an additional force q pull b (uniform background) */
template<class Real>
void l2p(const DeviceExpansionTables<Real>& tables,
         const SortedParticles<Real>& particles,
         const LevelView<Real>& leaves,
         Real pull,
         const ForceArrays<Real>& forces,
         cudaStream_t stream);

//! Sets the forces on some particles to zero. \param[in] particles  [count] device memory
//! \param[out] forces  [...][3] in the order that particles refer to
template<class Real>
void clearForces(const int* particles, int count, Real* forces, cudaStream_t stream);

//! Sums that a stage adds to, device memory; null for those that are not wanted.
struct FarSums
{
    double* energy       = nullptr;
    double* virial       = nullptr; //!< xx yy zz xy xz yz
    double* deviatoric   = nullptr; //!< as StageSums::deviatoric
    OrderedSums* scratch = nullptr;
};

/*! \brief Adds up energy and virial of the far field, in an order that does not depend on the run.
 *
 *  \param[in]  forces      the far part of l2p(); needed for the virial
 *  \param[in]  scale       1/2 / unit: times sum M_i L_i of all slots that have a cell
 *  \param[in]  traceScale  times sum q b^2, b from the centre of the cell: uniform background
 *  \param[in]  sums        both are added to the energy, -1/2 sum b (x) f to the virial if wanted
 */
template<class Real>
void farTotals(int order,
               const SortedParticles<Real>& particles,
               const LevelView<Real>& leaves,
               const Real4<Real>* forces,
               double scale,
               double traceScale,
               const FarSums& sums,
               cudaStream_t stream);

//! One term of a gradient, see DerivativeTerm.
struct TranslationGradient
{
    int from, to;
    double value;
};

//! M2M and L2L between a level and the next coarser one.
template<class Real>
class DeviceTranslations
{
public:
    //! \param[in] edges  edges of a cell (any level) in units of its size, rows
    void set(int order, const Mat3& edges, cudaStream_t stream);

    //! M of the parents that have a family; all other slots of the coarser level are set to zero.
    void m2m(const LevelView<Real>& child,
             const Families& families,
             const LevelView<Real>& parent,
             cudaStream_t stream) const;
    /*! \brief Sets L of the children.
     *
     *  \param[in] background  backgroundStrength() of the children
     *  \param[in] virialScale 1 / unit of the children
     *  \param[in] sums        the virial as Tree::l2l() is added to if wanted, in an order that
     *         does not depend on the run */
    void l2l(const LevelView<Real>& parent,
             const LevelView<Real>& child,
             const Families& families,
             double background,
             double virialScale,
             const FarSums& sums,
             cudaStream_t stream) const;
    //! Adds scale * Tree::traceShift() to a sum, in an order that does not depend on the run.
    void traceShift(const LevelView<Real>& child,
                    const Families& families,
                    double scale,
                    double* sum,
                    OrderedSums* scratch,
                    cudaStream_t stream) const;

    //! Rows of operators that lie side by side in memory.
    static constexpr int c_tile = 8;

private:
    void setGradient(int order, cudaStream_t stream);

    int order_           = -1;
    double shifts_[8][3] = {}; //!< centre of a child relative to its parent's, child units
    // Opposite octants o and 7 - o share an operator but for signs (-1)^(l_i + l_j), in any box.
    //! [tiles][4 octants][n][c_tile]: M2M; the rows are those of even degree, then those of odd
    //! degree
    DeviceBuffer<Real> up_;
    DeviceBuffer<int> upRows_;  //!< [tiles][c_tile] coefficient of each row, -1 for none
    DeviceBuffer<int> upTerms_; //!< [tiles] columns up to here are not all zero
    int upTiles_ = 0, upEvenTiles_ = 0;
    //! [4 octants][tiles][n][c_tile]: L2L; the columns are those of even degree, then odd degree
    DeviceBuffer<Real> down_;
    DeviceBuffer<int> downColumns_; //!< [n] coefficient of each column
    DeviceBuffer<int> downFirst_;   //!< [tiles][2] columns of each parity before these are zero
    int downTiles_ = 0, downEvenColumns_ = 0;
    DeviceBuffer<TranslationGradient> gradient_; //!< by axis
    int gradientEnd_[3] = { 0, 0, 0 };
};

} // namespace farfield

#endif
