/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sites on the device: charges with dipoles and quadrupoles, and potentials with their derivatives.
 *
 *  Near field and excluded pairs in one launch, local expansions and the multipoles of moments in one each.
 *  Expansions between these are those of charges, see SiteFields.
 */
#ifndef FARFIELD_KERNELS_SITES_SITES_H
#define FARFIELD_KERNELS_SITES_SITES_H

#include <vector>

#include "backend/backend.h"
#include "expansions/expansions.h"
#include "near/near.h"
#include "near_field.h"
#include "operators/site_values.h"
#include "runtime/layout.h"
#include "runtime/ordered_sums.h"

namespace farfield
{

namespace siteDetail
{

//! Coefficients that a first derivative takes of an expansion, at most.
constexpr int c_terms = 2;

//! First derivatives of expansions in solid harmonics; others are derivatives of these.
template<class Real>
struct SiteTables
{
    int order;
    const Real *scale, *beta; //!< see MonicRecurrence
    const int* sources;       //!< [order^2][3][c_terms] coefficients that are added up
    const Real* factors;      //!< the same

    FARFIELD_HD int placeOf(int i, int axis) const { return (3 * i + axis) * c_terms; }
};

//! Moments of sorted particles in the frame of the cells; null: there are none.
template<class Real>
struct SortedMoments
{
    const Real4<Real>* dipoles;     //!< x y z, and xx of theta
    const Real4<Real>* quadrupoles; //!< yy xy xz yz of theta, see Site
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
    double *energy = nullptr, *timesDegree = nullptr; //!< see StageSums
    double* virial       = nullptr;                   //!< xx yy zz xy xz yz
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
    Real* torques;    //!< [n][3], or null
};

//! Values of sites on their way to the host.
template<class Real>
class SiteResult
{
public:
    //! \param[in] each  values of a site
    SiteResult(int each) : each_(each) {}

    int each() const { return each_; }
    //! Room for n sites.
    Real* onDevice(int n);
    void fetch(int n, cudaStream_t stream);
    void deliver(Real* to, int n) const;

private:
    int each_;
    DeviceBuffer<Real> onDevice_;
    PinnedBuffer<Real> onHost_;
};

//! Moments, and what is computed of sites.
template<class Real>
class DeviceSites
{
public:
    //! As Backend::setMoments(). \param[in] n  particles \returns whether there were as many before, so that
    //! what was recorded with them may run on
    bool setMoments(const Moments<Real>& moments,
                    const Real* strengths,
                    int n,
                    double rootCoulomb,
                    cudaStream_t stream);
    bool anyMoments() const { return degree_ > 0; }
    //! Takes dipoles in device memory, scaled, [n][3], where there are no moments, and gives what it had room in;
    //! fields at the particles do not count.
    void lendDipoles(DeviceBuffer<Real>* dipoles, int n, cudaStream_t stream);
    //! There are none any more.
    void handBack() { degree_ = 0; }
    //! Tables of an order. \param[in] order  of the expansions
    void setOrder(int order, cudaStream_t stream);
    //! Brings moments into the order of sorted particles, and into their frame.
    void sort(const SortedParticles<Real>& particles, const Mat3& rotation, cudaStream_t stream);
    //! Adds the multipoles of moments to those of charges. \param[in] inverseUnit  1/nm, of the leaves
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

    //! \name What goes to the host
    //!@{
    SiteResult<Real>& gradients() { return gradients_; }
    SiteResult<Real>& hessians() { return hessians_; }
    SiteResult<Real>& torques() { return torques_; }
    //! Copies those that a task wants; they are there when the stream has come to its end.
    void fetch(const Task<Real>& task, int n, cudaStream_t stream);
    //! Gives them to the caller.
    void deliver(const Task<Real>& task, int n) const;
    //!@}

private:
    siteDetail::SiteTables<Real> tables() const
    {
        return { order_, scale_.data(), beta_.data(), sources_.data(), factors_.data() };
    }
    siteDetail::SortedMoments<Real> sorted() const
    {
        return { degree_ > 0 ? dipolesOfCells_.data() : nullptr,
                 degree_ > 1 ? quadrupolesOfCells_.data() : nullptr };
    }
    //! Sets far_. \param[in] isCurved  whether second derivatives are wanted
    void evaluate(const SiteInput<Real>& input, bool isCurved, cudaStream_t stream);

    int degree_ = 0; //!< of the moments, see SiteFields
    int order_  = -1;
    DeviceBuffer<Real> dipoles_, quadrupoles_; //!< scaled, [n][3] and theta, [n][6]
    DeviceBuffer<Real> strengths_;             //!< e, [n]
    DeviceBuffer<Real4<Real>> dipolesOfCells_, quadrupolesOfCells_; //!< see SortedMoments
    DeviceBuffer<Real> scale_, beta_;                               //!< see MonicRecurrence
    DeviceBuffer<int> sources_;                                     //!< see SiteTables
    DeviceBuffer<Real> factors_;                                    //!< the same
    DeviceBuffer<int> rows_, targets_;                              //!< see MomentTask
    DeviceBuffer<Real> values_;                                     //!< the same
    DeviceBuffer<Real> far_;       //!< of local expansions, [value][sorted particles]
    DeviceBuffer<double> squares_; //!< see sumSquares()
    SiteResult<Real> gradients_ = { 3 }, hessians_ = { 6 }, torques_ = { 3 };
};

} // namespace farfield

#endif
