/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sites on the device: charges with dipoles, and potentials with their derivatives.
 *
 *  Near field and excluded pairs in one launch, local expansions and the multipoles of dipoles in one each.
 *  Expansions between these are those of charges, see SiteFields.
 */
#ifndef FARFIELD_KERNELS_SITES_SITES_H
#define FARFIELD_KERNELS_SITES_SITES_H

#include <vector>

#include "backend/task.h"
#include "expansions/expansions.h"
#include "near/near.h"
#include "near_field.h"
#include "runtime/layout.h"
#include "runtime/ordered_sums.h"

namespace farfield
{

namespace siteDetail
{

//! Values of a site: potential, gradient, second derivatives xx yy zz xy xz yz; those without the latter.
constexpr int c_values = 10, c_flat = 4;
//! Coefficients that a derivative takes of an expansion, at most.
constexpr int c_first = 2, c_second = 4;

/*! \brief Derivatives of monic functions: coefficients of the local expansion that each multiplies.
 *
 *  [order^2][3][c_first] of first derivatives, and behind them [(order - 1)^2][6][c_second] of second ones. */
template<class Real>
struct SiteTables
{
    int order;
    const Real *scale, *beta; //!< see MonicRecurrence
    const int* sources;
    const Real* factors;

    FARFIELD_HD int inner() const { return order * order; }
    FARFIELD_HD int core() const { return order > 0 ? (order - 1) * (order - 1) : 0; }
    FARFIELD_HD int placeOf(int i, int axis) const { return (3 * i + axis) * c_first; }
    FARFIELD_HD int secondPlaceOf(int i, int component) const
    {
        return 3 * c_first * inner() + (6 * i + component) * c_second;
    }
};

} // namespace siteDetail

//! What the values of sites are computed from.
template<class Real>
struct SiteInput
{
    SortedParticles<Real> particles;
    SortedParticles<Real> ofPairs; //!< see DeviceCells
    NearGrid where;
    typename DeviceExclusions<Real>::View exclusions;
    const Real* x; //!< [n][3], in the caller's order
    const Real* q; //!< [n] scaled charges, the same
    LevelView<Real> leaves;
    double unit;                      //!< size of a leaf cell, nm
    double netCharge;                 //!< scaled
    double background;                //!< strength per charge, of the leaves
    Mat3 rotation;                    //!< from the frame of the cells to the caller's
    const Real* poison;               //!< see ForceArrays
    NearFunctionView<Real> functions; //!< in the order of the particles
    FartherCells farther;
};

//! Where sums of sites are added to, device memory; null for those that are not wanted.
struct SiteSums
{
    double *energy = nullptr, *ofDipoles = nullptr; //!< see StageSums
    double* virial       = nullptr;                 //!< xx yy zz xy xz yz
    OrderedSums* scratch = nullptr;
    FieldSums* fields    = nullptr;
    double perCap        = 0; //!< one over the field that counts most
};

//! Where results go to, device memory, in the caller's order.
template<class Real>
struct SiteOutput
{
    Real* forces;     //!< [n][3], or null
    bool replace;     //!< write forces instead of adding them
    Real* potentials; //!< [n], or null
    Real* gradients;  //!< [n][3], or null
    Real* hessians;   //!< [n][6], or null
};

//! Dipoles, and what is computed of sites.
template<class Real>
class DeviceSites
{
public:
    //! As Backend::setMoments(), of dipoles. \param[in] n  particles \returns whether there were as many before, so that
    //! what was recorded with them may run on
    bool setDipoles(const Real* dipoles,
                    const Real* strengths,
                    int n,
                    double rootCoulomb,
                    cudaStream_t stream);
    bool anyDipoles() const { return anyDipoles_; }
    //! Tables of an order. \param[in] order  of the expansions
    void setOrder(int order, cudaStream_t stream);
    //! Brings dipoles into the order of sorted particles, and into their frame.
    void sort(const SortedParticles<Real>& particles, const Mat3& rotation, cudaStream_t stream);
    //! Adds the multipoles of dipoles to those of charges. \param[in] inverseUnit  1/nm, of the leaves
    void addMultipoles(const SortedParticles<Real>& particles,
                       const LevelView<Real>& leaves,
                       Real inverseUnit,
                       cudaStream_t stream);
    /*! \brief Sum of q |b|^2 + 2 mu.b about the centres of leaves, nm^2: compute() needs it about those of
     *         level 0, the caller adds what is missing.
     *  \returns where it is in device memory */
    double* sumSquares(const SortedParticles<Real>& particles,
                       OrderedSums* scratch,
                       cudaStream_t stream);
    //! All that is wanted, of the sites that take part.
    void compute(const SiteInput<Real>& input,
                 double rootCoulomb,
                 const SiteSums& sums,
                 const SiteOutput<Real>& output,
                 cudaStream_t stream);

    //! \name Room for derivatives that go to the host
    //!@{
    Real* gradients(int n);
    Real* hessians(int n);
    //! Copies those that a task wants; they are there when the stream has come to its end.
    void fetch(const Task<Real>& task, int n, cudaStream_t stream);
    //! Gives them to the caller.
    void deliver(const Task<Real>& task, int n) const;
    //!@}

private:
    siteDetail::SiteTables<Real> tables() const;
    //! Sets far_. \param[in] isCurved  whether second derivatives are wanted
    void evaluate(const SiteInput<Real>& input, bool isCurved, cudaStream_t stream);

    bool anyDipoles_ = false;
    int order_       = -1;
    DeviceBuffer<Real> dipoles_;       //!< scaled, [n][3]
    DeviceBuffer<Real> strengths_;     //!< e, [n]
    DeviceBuffer<Real4<Real>> sorted_; //!< dipoles in the frame of the cells
    DeviceBuffer<Real> scale_, beta_;  //!< see MonicRecurrence
    DeviceBuffer<int> sources_;        //!< of first and second derivatives, see SiteTables
    DeviceBuffer<Real> factors_;       //!< the same
    DeviceBuffer<int> rows_, targets_; //!< of multipoles, see addMultipoles()
    DeviceBuffer<Real> values_;        //!< the same
    DeviceBuffer<Real> far_;           //!< of local expansions, [value][sorted particles]
    DeviceBuffer<double> squares_;     //!< see sumSquares()
    DeviceBuffer<Real> gradients_, hessians_;
    PinnedBuffer<Real> gradientsOnHost_, hessiansOnHost_;
};

} // namespace farfield

#endif
