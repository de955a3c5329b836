/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Vectorised inner loops of the CPU backend; the instruction set is chosen at run time.
 *
 *  Particles are sorted by cell and stored as structures of arrays; positions are relative to the
 *  centre of the particle's own cell. Expansions are stored coefficient-major over slots of cells.
 */
#ifndef FARFIELD_CPU_CPU_KERNELS_H
#define FARFIELD_CPU_CPU_KERNELS_H

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "cells/grid.h"
#include "cpu/particle_views.h"
#include "cpu/site_kernels.h"
#include "operators/lattice_sums.h"
#include "operators/near_function.h"
#include "operators/product_table.h"
#include "operators/solid_harmonics.h"

namespace farfield
{

//! Tables that P2M and L2P share; see MonicRecurrence.
template<class Real>
struct ExpansionTables
{
    ExpansionTables() = default;
    ExpansionTables(int p, double unit);

    int order        = 0;
    Real inverseUnit = 0;
    std::vector<Real> scale;
    std::vector<Real> beta; //!< [(p+1)(p+1)], element l (p+1) + m
    //! grad phi / unit in monic functions: coefficient index of gradient[axis], two sources each.
    struct GradientEntry
    {
        int source[2];
        Real value[2];
    };
    std::vector<GradientEntry> gradient[3]; //!< [p^2], order of coefficientIndex
    //! The gradient of what gradient[] gives: [(p - 1)^2], in monic functions, too; after addCurvature().
    std::vector<GradientEntry> curvature[3];
    //! Makes these where they are missing: charges alone do without.
    void addCurvature();
};

//! An occupied cell, and which part of its particles are targets, of how many.
struct NearItem
{
    int cell, part, parts;
};

//! What a near-field pass needs.
template<class Real>
struct NearTask
{
    Particles<Real> particles;
    const Grid* grid;
    int ws;
    bool isRelative; //!< positions are relative to the centres of cells, not as they were given
    const NearItem* items;
    ClosePartners close;
    //! nm^2: the image of a partner that is nearer is left out, those beyond are other ones.
    Real imageDistance2 = 0;
    bool energy;
    bool virial;
    bool potentials; //!< implies the energy
};

//! What a pass of near functions needs.
template<class Real>
struct NearFunctionTask
{
    Particles<Real> particles; //!< as in NearTask
    const Real* width;         //!< [sorted] of each what inverseWidth() takes; 0: has none
    const int* wide;           //!< [cells] particles whose width is not 0
    const int* cells;          //!< those that are occupied
    const Grid* grid;
    bool isRelative; //!< as in NearTask
    //! Of the cells within the range: the cell itself, a half, and its mirror images.
    const std::vector<Int3>* displacements;
    ClosePartners excluded; //!< of each particle, before sorting; null if there are none
    NearFunction function;
    Real range2; //!< nm^2
    Real whole;  //!< in widths of a pair: nearer pairs are listed,
    Real whole2; //!< nm^2: if they are nearer than this
    bool virial;
    bool potentials;

    //! The cell itself, and the half that the third law leaves.
    int forward() const { return 1 + (static_cast<int>(displacements->size()) - 1) / 2; }
};

//! A pair of sorted particles for which P2P has to leave out 1/r.
struct WholePair
{
    int target, source;
    double d[3]; //!< from source to target, nm
};

//! What a range of cells needs for near functions, and the pairs that it lists.
template<class Real>
struct NearFunctionRoom
{
    //! As wide as a lane.
    using Index = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
    std::vector<WholePair> whole;
    std::vector<Index> index; //!< of what is staged: sorted particles
    //! Where particles before sorting are staged: the last of its images, and the one before of each; -1.
    std::vector<int> place, before;
    std::vector<std::pair<int, Real>> away; //!< staged sources that are left out, and their x

    //! Notes where what is staged is. \param[in] atom  of sorted particles
    void enter(const int* atom, int count)
    {
        before.resize(count);
        for (int i = 0; i < count; i++)
        {
            before[i] = std::exchange(place[atom[index[i]]], i);
        }
    }
    //! Forgets it.
    void leave(const int* atom, int count)
    {
        for (int i = 0; i < count; i++)
        {
            place[atom[index[i]]] = -1;
        }
    }
    //! Calls a function for the places of a particle.
    template<class Function>
    void forPlaces(int particle, const Function& function) const
    {
        for (int i = place[particle]; i >= 0; i = before[i])
        {
            function(i);
        }
    }
};

//! A target and a source among the staged ones of a cell that must not interact.
struct ClosePair
{
    int target, source;
};

/*! \brief Forces of a range of items on all particles, and potentials; chunks are zeroed when first
 *         touched.
 *
 *  Its cells and their neighbours are a part of the box: the rest of the arrays is never
 *  written to, and takes no physical memory, apart from whole pages. */
template<class Real>
struct NearForces
{
    static constexpr int c_chunk = 256;
    std::unique_ptr<Real[]> x, y, z;   //!< not initialised
    std::unique_ptr<Real[]> potential; //!< the same; null before it is asked for
    std::vector<char> touched;
    double energy    = 0;
    double virial[6] = { 0, 0, 0, 0, 0, 0 }; //!< -1/2 sum r (x) f: xx yy zz xy xz yz
    std::vector<Real> staging;
    std::vector<ClosePair> closePairs; //!< of the cell at hand, by target
    std::vector<int> closePairsOf;     //!< [own + 1] where those of a target begin

    void resize(int n, bool potentials);
    void touch(int begin, int end);

private:
    //! Those in use.
    template<class Function>
    void forComponents(const Function& f);

    int size_           = 0; //!< of x, y and z
    int potentialsSize_ = 0;
    bool potentials_    = false; //!< in use
};

//! The kernels of one instruction set.
template<class Real>
struct CpuKernels
{
    //! Vector lanes of Real.
    int lanes;
    //! Multipoles of slots [begin, end), multiples of c_slotPadding; M is [coefficients][padded].
    void (*p2m)(const Particles<Real>& particles,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                Real* M);
    /*! \brief Forces from local expansions of slots [begin, end), written to fx, fy, fz.
     *  \param[in] pull  factor of the position in an additional force q pull b (uniform background)
     *  \param[out] virial  if not null, -1/2 sum b (x) f is added: xx yy zz xy xz yz */
    void (*l2p)(const Particles<Real>& particles,
                const LeafSlots& slots,
                const ExpansionTables<Real>& tables,
                int begin,
                int end,
                const Real* L,
                Real pull,
                Real* fx,
                Real* fy,
                Real* fz,
                double* virial);
    //! Potentials of local expansions and of strength |b|^2 (uniform background, 1/nm^3) at the
    //! particles of slots [begin, end), written to potential.
    void (*potentials)(const Particles<Real>& particles,
                       const LeafSlots& slots,
                       const ExpansionTables<Real>& tables,
                       int begin,
                       int end,
                       const Real* L,
                       Real strength,
                       Real* potential);
    //! Near-field forces of the items [begin, end) with third law.
    void (*p2p)(const NearTask<Real>& task, int begin, int end, NearForces<Real>* forces);
    /*! \brief Near-field forces of ghosts, particles of other ranks, on those of items [begin, end).
     *
     *  Energy and virial are half of those of the pairs.
     *  \param[in] task    its close partners are ghosts
     *  \param[in] ghosts  sorted by the cells of the same grid */
    void (*p2pOfGhosts)(const NearTask<Real>& task,
                        const Particles<Real>& ghosts,
                        int begin,
                        int end,
                        NearForces<Real>* forces);
    /*! \brief What pairs have beyond 1/r, of the cells [begin, end) of a task, with third law.
     *  \param[in,out] room  pairs that are so near that 1/r would cancel the function are left out, and
     *                       are listed there */
    void (*nearFunction)(const NearFunctionTask<Real>& task,
                         int begin,
                         int end,
                         NearFunctionRoom<Real>* room,
                         NearForces<Real>* forces);
    //! As p2m, of charges and moments: at least dipoles.
    void (*p2mOfSites)(const Particles<Real>& particles,
                       const SortedMoments<Real>& moments,
                       const LeafSlots& slots,
                       const ExpansionTables<Real>& tables,
                       int begin,
                       int end,
                       Real* M);
    //! Adds what local expansions and strength |b|^2 (uniform background, 1/nm^3) have at the particles of
    //! slots [begin, end). \param[out] virial  as l2p
    void (*l2pOfSites)(const Particles<Real>& particles,
                       const SortedMoments<Real>& moments,
                       const LeafSlots& slots,
                       const ExpansionTables<Real>& tables,
                       int begin,
                       int end,
                       const Real* L,
                       Real strength,
                       const SiteArrays<Real>& values,
                       double* virial);
    //! Sets the near field at the particles of the cells [begin, end) of a task.
    void (*p2pOfSites)(const SiteTask<Real>& task, int begin, int end);
    /*! \brief y = kappa x for as many wave vectors as there are lanes, kappa real and symmetric.
     *  \param[in]  kappa  in the order of forPackedPairs(), [n (n+1) / 2][lanes]
     *  \param[in]  x      [n][2][lanes]: real and imaginary parts
     *  \param[out] y      the same */
    void (*multiply)(const Real* kappa, int n, const Real* x, Real* y);
    /*! \brief Products of the coefficients of as many wave vectors as there are lanes, summed by
     *         the harmonics that they multiply: sum_ij Re(x_i* T_ij x_j) = sum_h products_h v_h.
     *  \param[in]  x         as in multiply()
     *  \param      placed    work space, [places][2][lanes], zero at first
     *  \param[out] products  without harmonicScale, [coefficientCount(2 order)][lanes] */
    void (*products)(const ProductTable<Real>& table, const Real* x, Real* placed, Real* products);
    /*! \brief Sums over harmonics of products and strain derivatives, for four mirrored copies.
     *
     *  A copy has the derivatives of the first, with other signs: see c_copyReflectsZ.
     *  \param[in]  products     of each copy
     *  \param[in]  weights      of each copy and lane, [4][lanes]
     *  \param[in]  derivatives  [coefficientCount(2 order)][StrainCount][lanes]
     *  \param[out] sums         over copies, [StrainCount][lanes] */
    void (*contract)(const ProductTable<Real>& table,
                     const std::array<const Real*, 4>& products,
                     const Real* weights,
                     const Real* derivatives,
                     Real* sums);
    /*! \brief Y = T X, all row-major.
     *  \param[in] T        [rows][n]
     *  \param[in] X        [n][columns]
     *  \param[in] columns  of X and Y, a multiple of c_slotPadding; rows aligned to vectors
     *  \param[out] Y       [rows][columns] */
    void (*transform)(const Real* T, int rows, int n, const Real* X, int columns, Real* Y);
    //! Scalar product of aligned vectors; count is a multiple of c_slotPadding.
    Real (*dot)(const Real* a, const Real* b, int count);
    //! The same, summed in double precision.
    double (*exactDot)(const Real* a, const Real* b, int count);
};

//! The kernels for this processor, for float and double.
template<class Real>
const CpuKernels<Real>& cpuKernels();

//! Rows of the symmetric operators that multiply() takes at a time.
constexpr int c_rowBlock = 3;

//! Calls f(i, j) for all i <= j < n in the order in which multiply() reads them.
template<class Function>
void forPackedPairs(int n, const Function& f)
{
    for (int first = 0; first < n; first += c_rowBlock)
    {
        const int last = (first + c_rowBlock <= n) ? first + c_rowBlock : n;
        for (int i = first; i < last; i++)
        {
            for (int j = i; j < last; j++)
            {
                f(i, j);
            }
        }
        for (int j = last; j < n; j++)
        {
            for (int i = first; i < last; i++)
            {
                f(i, j);
            }
        }
    }
}

} // namespace farfield

#endif
