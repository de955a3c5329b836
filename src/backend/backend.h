/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The stages of an evaluation, declared once; every backend implements them.
 */
#ifndef FARFIELD_BACKEND_BACKEND_H
#define FARFIELD_BACKEND_BACKEND_H

#include <functional>
#include <memory>
#include <vector>

#include "backend/exchange.h"
#include "backend/task.h"
#include "operators/lattice_sums.h"
#include "operators/near_pairs.h"
#include "plan/discretisation.h"

namespace farfield
{

//! What Solver::timings() tells apart.
enum class Stage
{
    SetUp,
    Sort,
    Exclusions,
    NearFunction, //!< what pairs have in place of 1/r
    P2p,
    P2m,
    M2m,
    M2l,
    L2l,
    L2p,
    Collect,
    Waiting,      //!< of threads of the CPU backend, for each other
    Perturbation, //!< of the particles whose charges differ between two states
    Groups,       //!< energies between groups of particles
    Count
};

//! Sums that the stages of an evaluation leave behind.
struct StageSums
{
    double energy            = 0;
    double virial[6]         = { 0, 0, 0, 0, 0, 0 }; //!< xx yy zz xy xz yz
    double excludedVirial[6] = { 0, 0, 0, 0, 0, 0 }; //!< the same, in the frame of the caller
    //! What near functions add to 1/r: the trace of the virial does not follow from the energy.
    double energyOfFunctions    = 0;
    double virialOfFunctions[6] = { 0, 0, 0, 0, 0, 0 };
    //! Energies of multipoles times their degree: 1/2 sum mu.grad phi, and twice those of quadrupoles.
    double energyTimesDegree = 0;
    //! Displacements of cells contribute a deviatoric part; the trace of 1/r follows from the energy.
    std::array<double, StrainCount> deviatoric = {};

    /*! \brief The totals that were asked for.
     *  \param[in] rotation  from the frame of the operators to the one of the caller */
    Totals totals(const Request& request, const Mat3& rotation) const;
};

template<class Real>
class Partition;

//! Multipoles of particles beside their charges; null: there are none.
template<class Real>
struct Moments
{
    const Real* dipoles     = nullptr; //!< e nm, [n][3]
    const Real* quadrupoles = nullptr; //!< traceless, e nm^2, [n][6]: xx yy zz xy xz yz
    bool any() const { return dipoles != nullptr || quadrupoles != nullptr; }
};

/*! \brief Stages of the FMM, in the order in which Solver::evaluate() calls them; the near field
 *         (exclusions, p2p) does not depend on the far field.
 *
 *  Level 0 is the coarsest; levels() - 1 holds the leaves. Arguments are validated by the caller.
 */
template<class Real>
class Backend
{
public:
    virtual ~Backend() = default;

    //! Charges, e, [n]. Nothing has changed if it throws.
    virtual void setCharges(const Real* q, int n) = 0;
    //! Excluded pairs as compressed rows, for the number of particles of the charges. Nothing has
    //! changed if it throws.
    virtual void setExclusions(const int* offsets, const int* partners, int n) = 0;
    //! Near functions of as many particles as there are charges. Nothing has changed if it throws.
    //! \throws Error  Unsupported: there are some, and the backend has a part of the particles
    virtual void setNearPairs(const NearPairs<Real>& pairs)
    {
        if (pairs.any())
        {
            throw Error(ErrorCode::Unsupported,
                        "Near functions are not available on several ranks: one rank must have "
                        "all particles.");
        }
    }
    /*! \brief Multipoles of as many particles as there are charges. Nothing has changed if it throws.
     *  \param[in] strengths  of the particles for cappedFields(), e, [n]
     *  \throws Error  Unsupported: there are some, and the backend knows none */
    virtual void setMoments(const Moments<Real>& moments, const Real* /*strengths*/)
    {
        if (moments.any())
        {
            throw Error(ErrorCode::Unsupported,
                        "Dipoles and quadrupoles are not available on several ranks: one rank must "
                        "have all "
                        "particles.");
        }
    }
    //! Whether nearFunction() has anything to do.
    virtual bool hasNearFunction() const { return false; }
    /*! \brief With a Partition, whenever it has planned: the ghosts, which act on the particles of
     *         setCharges() and get no forces. Excluded pairs, to be set after it, count them behind
     *         the particles.
     *  \param[in] q    charges, e, [n]
     *  \param[in] net  charge of all particles on all ranks, e */
    virtual void setGhosts(const Real* /*q*/, int /*n*/, double /*net*/) {}
    //! With ranks: what they exchange; else null.
    virtual Exchange<Real>* exchange() { return nullptr; }
    //! Excluded pairs closer than this, nm, are left out where the near field meets them, others
    //! are subtracted; surelyNear() bounds it.
    virtual void setExclusionRange(double range) { exclusionRange_ = range; }
    //! Fields at charges above this, kJ/mol/nm/e, are counted as this by cappedFields(); 0: none are
    //! counted.
    virtual void setFieldCap(double cap)
    {
        fieldCap_     = cap;
        cappedFields_ = c_notSummed;
    }
    //! Builds the operators. If it throws, or one of the next two does, it has to be called again before the
    //! next evaluation.
    virtual void build(const Discretisation& discretisation) = 0;
    /*! \brief Adapts to a box.
     *
     *  Edges of cells are those of the reference box, in units of their size, times (1 + strain)
     *  rotation.
     *  \param[in] box       current box
     *  \param[in] strain    symmetric and traceless: the operators follow it to first order
     *  \param[in] rotation  exact: everything is computed in a rotated frame */
    virtual void setBox(const Mat3& box, const Mat3& strain, const Mat3& rotation) = 0;
    /*! \brief Makes the virial right to second order along a strain.
     *
     *  The derivatives of the operators of level 0, which the virial needs, are computed for edges
     *  of the reference box times (1 + strain). From there to those of the reference box they are
     *  interpolated for the strains of setBox(). After build() they are those of the reference box.
     *  \param[in] strain  symmetric and traceless, not zero */
    virtual void setVirialStrain(const Mat3& strain) = 0;

    //! What pairs have in place of 1/r: between exclusions() and p2p(), where hasNearFunction().
    virtual void nearFunction() {}
    //! Calls stages(), which runs the stages of an evaluation.
    virtual void together(const std::function<void()>& stages) { stages(); }
    virtual void sort()       = 0; //!< wraps and bins the particles
    virtual void exclusions() = 0; //!< subtracts excluded pairs; ends sort()
    virtual void p2p()        = 0; //!< near field
    virtual void p2m()        = 0; //!< particles to multipoles of the leaves; ends p2p() on the CPU
    virtual void m2m(int level) = 0; //!< multipoles of a level to those of the next coarser one
    virtual void m2l(int level) = 0; //!< multipoles to local expansions; level 0: periodic M2L
    virtual void l2l(int level) = 0; //!< local expansions to the next finer level
    virtual void l2p()          = 0; //!< local expansions to forces
    //! Adds the forces to the caller's array and returns the totals.
    virtual Totals collect() = 0;
    //! Sum over charges that do something of squared fields over the squared cap, each at most 1, of the last
    //! evaluation that was collected or waited for; negative if there is none with this cap.
    double cappedFields() const { return cappedFields_; }
    //! Whether the last evaluation has come to nothing, because lists had no room, and must be
    //! repeated: there is room now.
    virtual bool mustRepeat() const { return false; }

    //! \name Times that the caller cannot measure
    //!@{
    virtual void beginStage(Stage /*stage*/) {}
    virtual void endStage(Stage /*stage*/) {}
    //! Whether the backend measures its stages; seconds, [Stage::Count], gets the last evaluation's.
    virtual bool measured(double* /*seconds*/) { return false; }
    //!@}

    //! \name For tests: [cells of the level in storage order][coefficients], 0 for absent cells
    //!@{
    virtual std::vector<double> multipoles(int level) const = 0;
    virtual std::vector<double> locals(int level) const     = 0;
    //!@}

    //! What the following stages have to compute. Forces are not written before l2p(), potentials
    //! by collect().
    void setTask(const Task<Real>& task)
    {
        task_                = task;
        task_.request.energy = task.sumsEnergy();
    }

protected:
    Task<Real> task_                    = {};
    double exclusionRange_              = c_exclusionRange; //!< nm
    double fieldCap_                    = 0;                //!< kJ/mol/nm/e
    static constexpr double c_notSummed = -1;
    double cappedFields_                = c_notSummed;
};

//! The CPU backend. \param[in] partition  of a system on several ranks, or null
template<class Real>
std::unique_ptr<Backend<Real>> makeCpuBackend(double coulombConstant,
                                              int threads,
                                              Partition<Real>* partition = nullptr);

//! Name of the instruction set that the CPU backend uses.
const char* cpuTargetName();

} // namespace farfield

#endif
