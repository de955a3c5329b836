/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sites on the CPU: charges with dipoles and quadrupoles, and potentials with their derivatives.
 *
 *  They take the place of near field, P2M, L2P and collection of charges; between these, expansions hold
 *  all that sites have. Each target gathers what all others have at it, without the third law, so that
 *  no thread waits for another one.
 */
#ifndef FARFIELD_CPU_SITE_FIELDS_H
#define FARFIELD_CPU_SITE_FIELDS_H

#include <array>
#include <vector>

#include "backend/backend.h"
#include "base/team.h"
#include "base/vectors.h"
#include "cpu/cell_list.h"
#include "cpu/cpu_kernels.h"
#include "cpu/exclusions.h"
#include "cpu/leaf_ranges.h"

namespace farfield
{

//! Those of one site, see SiteArrays.
using SiteValues = std::array<double, c_siteValues>;

//! The stages of sites, and what they compute.
template<class Real>
class SiteFields
{
public:
    //! \param[in] team  does the work
    explicit SiteFields(Team* team) : team_(*team) {}

    //! As Backend::setMoments(). \param[in] n  particles
    void setMoments(const Moments<Real>& moments, const Real* strengths, int n, double rootCoulomb);
    bool anyMoments() const { return !dipoles_.empty(); }

    /*! \brief Begins an evaluation of sorted particles: values of excluded pairs, and which of them P2P leaves
     *         out.
     *  \param[in] rotation  from the frame of the operators to the one of x
     *  \param[in] x, q      [n][3] and scaled charges [n], before sorting
     *  \param[in] functions      what pairs have in place of 1/r
     *  \param[in] closeDistance  nm: nearer pairs are left out
     *  \param[in] isCurved  whether second derivatives are needed: with moments forces do
     *  \param[in] virial    whether it is wanted */
    void begin(const CellList<Real>& list,
               const Exclusions<Real>& exclusions,
               const Mat3& box,
               const Mat3& rotation,
               const Real* x,
               const std::vector<Real>& q,
               const NearPairs<Real>& functions,
               double closeDistance,
               bool isCurved,
               bool virial);
    /*! \brief Sets the values of the near field, by the next run of the team.
     *  \param[in] grid, functions  outlive the run; the latter may be null */
    void addP2p(const CellList<Real>& list,
                const Grid& grid,
                int ws,
                double closeDistance,
                const NearFunctionTask<Real>* functions);
    //! Multipoles of slots [begin, end).
    void p2m(const CellList<Real>& list,
             const LeafSlots& slots,
             const ExpansionTables<Real>& tables,
             int begin,
             int end,
             Real* M) const;
    //! Adds the values of local expansions in slots [begin, end), after addP2p() has run.
    //! \param[in] curvature  backgroundCurvature() \param[out] virial  as that of CpuKernels, or null
    void l2p(const CellList<Real>& list,
             const LeafSlots& slots,
             const ExpansionTables<Real>& tables,
             int begin,
             int end,
             const Real* L,
             double curvature,
             double* virial) const;
    //! 2 sum of mu.b over the particles, b from the centre of their cell, nm^2: what moments add to q |b|^2.
    double squaredDistances(const Particles<Real>& particles) const;

    //! Adds the virials of the near field and of excluded pairs, after their runs.
    void addVirials(StageSums* sums) const;

    //! Sums over sites.
    struct Sums
    {
        double energy = 0, timesDegree = 0; //!< see StageSums
        double capped = 0;                  //!< see Backend::cappedFields()
    };
    //! What is the same for all sites.
    struct Common
    {
        Mat3 rotation; //!< from the frame of the operators to the one of x
        double rootCoulomb;
        double potentialOfBackground; //!< that it adds everywhere
        double perCap;                //!< 1/Backend::setFieldCap(), or 0
    };
    //! Hands forces and what else is wanted over. \param[in] q  scaled charges, [n], before sorting
    Sums collect(const CellList<Real>& list,
                 const Task<Real>& task,
                 const std::vector<Real>& q,
                 const Common& common);

private:
    SortedMoments<Real> sorted() const;
    int degree() const { return !anyMoments() ? 0 : quadrupoles_.empty() ? 1 : 2; }
    SiteArrays<Real> arrays() const;
    //! Moments in the order of the list, in the frame of the operators.
    void sortMoments(const CellList<Real>& list, const Mat3& rotation);
    //! Subtracts the excluded pairs of particles [begin, end) that are not close, and marks those that are.
    void subtract(const ExcludedPairs& excluded,
                  const Mat3& box,
                  const Real* x,
                  const std::vector<Real>& q,
                  const NearPairs<Real>& functions,
                  double closeDistance,
                  int begin,
                  int end);
    //! The theta of a particle, scaled.
    Mat3 thetaOf(size_t particle) const;
    //! The force of a site that has these values.
    Vec3 forceOn(size_t particle, const std::vector<Real>& q, const SiteValues& v) const;
    /*! \brief -mu x g - 2 eps (theta H), eps(A)_k = sum eps_kij A_ij: Stone, The Theory of Intermolecular Forces,
     *         Oxford University Press (2013), chapter 3. */
    Vec3 torqueOn(size_t particle, const SiteValues& v) const;
    void listClosePairs(const ExcludedPairs& excluded, const CellList<Real>& list);
    //! collect() of sorted sites [begin, end).
    Sums collectRange(const CellList<Real>& list,
                      const Task<Real>& task,
                      const std::vector<Real>& q,
                      const Common& common,
                      int begin,
                      int end);

    Team& team_;
    std::vector<Real> dipoles_;     //!< scaled, [n][3]; empty: there are no moments
    std::vector<Real> quadrupoles_; //!< theta, scaled, [n][6]; empty: there are none
    std::vector<Real> strengths_;   //!< e, [n]; empty: those of the charges
    std::array<std::vector<Real>, momentCount(2)> sortedMoments_;
    bool isCurved_ = false;
    std::array<std::vector<Real>, c_siteValues> values_; //!< sorted, in the frame of the operators

    std::vector<char> isClose_;    //!< of each entry of excluded pairs, both ways
    std::vector<Real> subtracted_; //!< [n][c_siteValues], in the caller's frame
    bool wantsVirial_ = false;
    std::vector<std::array<double, 6>> virials_;           //!< of cells, see SiteTask
    std::vector<std::array<double, 6>> subtractedVirials_; //!< of particles
    std::vector<int> rank_;                         //!< of each particle, among the sorted ones
    std::vector<int> closeOffsets_, closePartners_; //!< of sorted particles
    std::vector<Int3> farther_;                     //!< see SiteTask
    SiteTask<Real> task_;
};

} // namespace farfield

#endif
