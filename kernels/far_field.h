/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The far field on the device: operators, expansions, and the stages P2M to L2P.
 */
#ifndef FARFIELD_KERNELS_FAR_FIELD_H
#define FARFIELD_KERNELS_FAR_FIELD_H

#include <memory>

#include "expansions/expansions.h"
#include "m2l/m2l.h"
#include "plan/discretisation.h"
#include "tree/device_tree.h"

namespace farfield
{

/*! \brief All that a discretisation makes.
 *
 *  Everything is computed in the frame of the operators; the rotation of setBox() leads from it to
 *  that of the caller. Launches go to the stream that is given. */
template<class Real>
class DeviceFarField
{
public:
    explicit DeviceFarField(bool reproducible) : tree_(reproducible) {}

    /*! \brief Builds the operators.
     *  \param[in] threads  OpenMP threads */
    void build(const Discretisation& discretisation, int threads, cudaStream_t stream);
    //! As Backend::setBox().
    void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation, cudaStream_t stream);
    //! As Backend::setVirialStrain().
    void setVirialStrain(const Mat3& strain, cudaStream_t stream);

    const Discretisation& discretisation() const { return discretisation_; }
    const Mat3& box() const { return box_; }
    const Mat3& rotation() const { return rotation_; }
    const BinFrame& frame() const { return frame_; }
    //! Of leaves, rows, nm, in the frame of the operators.
    const Mat3& edges() const { return edges_; }
    //! Strength of the background of a level.
    double background(int level, double netCharge) const;
    double surelyNear() const { return surelyNear_; } //!< nm, see excluded_pairs.h
    DeviceTree<Real>& tree() { return tree_; }
    const DeviceTree<Real>& tree() const { return tree_; }

    void p2m(const SortedParticles<Real>& particles, cudaStream_t stream);
    void m2m(int level, cudaStream_t stream);
    //! \param[in] multipoles  if not null, those of level 0, instead of ours
    void m2l(int level, Real* multipoles, const FarSums& sums, cudaStream_t stream);
    void l2l(int level, double netCharge, const FarSums& sums, cudaStream_t stream);
    void l2p(const SortedParticles<Real>& particles,
             double netCharge,
             const ForceArrays<Real>& forces,
             cudaStream_t stream);
    /*! \brief 1/2 sum q phi, and the virial of the forces about the centres of leaves.
     *  \param[in] forces  the far part of l2p(), needed for the virial */
    void sum(const SortedParticles<Real>& particles,
             double netCharge,
             const Real4<Real>* forces,
             const FarSums& sums,
             cudaStream_t stream);
    /*! \brief Adds factor times what sum q |b|^2, nm^2, about the cells of level 0 is more than
     *         about the leaves. */
    void traceShifts(double factor, double* sum, OrderedSums* scratch, cudaStream_t stream);

private:
    void setCells(const Mat3& box, cudaStream_t stream);
    void interpolate(cudaStream_t stream);
    void setTranslations(const Mat3& edges, cudaStream_t stream);
    double roomForRounding() const;

    Discretisation discretisation_;
    Mat3 box_          = Mat3::Zero();
    Mat3 strain_       = Mat3::Zero();
    Mat3 virialStrain_ = Mat3::Zero();
    Mat3 rotation_     = Mat3::Identity();
    Mat3 edges_        = Mat3::Zero();
    BinFrame frame_    = {};
    double surelyNear_ = 0;
    DeviceTree<Real> tree_;
    DeviceExpansionTables<Real> tables_;
    DeviceTranslations<Real> translations_;
    std::unique_ptr<PeriodicM2lOperators<Real>> periodic_; //!< without its sums
    std::unique_ptr<DevicePeriodicM2l<Real>> periodicM2l_;
    std::unique_ptr<ListM2lOperators<Real>> operators_;
    std::unique_ptr<DeviceM2l<Real>> engine_;
    std::unique_ptr<DeviceM2lVirial<Real>> virial_; //!< made when first needed
};

} // namespace farfield

#endif
