/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What pairs have in place of 1/r, on the device.
 *
 *  Of near cells P2P computes the function itself (p2p_functions.cu), so that nothing cancels however
 *  close a pair is. For pairs of other cells within the range, which the far field has as 1/r,
 *  addFarther() adds the difference. Excluded pairs have the function like others, and it is
 *  subtracted.
 */
#ifndef FARFIELD_KERNELS_NEAR_NEAR_FUNCTIONS_H
#define FARFIELD_KERNELS_NEAR_NEAR_FUNCTIONS_H

#include <algorithm>
#include <cmath>

#include "base/vectors.h"
#include "cells/cell_index.h"
#include "operators/near_pairs.h"
#include "runtime/device.h"
#include "runtime/layout.h"

namespace farfield
{

//! A near function and the widths of particles, as kernels take them.
template<class Real>
struct NearFunctionView
{
    PairFunction function;
    WidthRule rule;
    Real range2; //!< nm^2: pairs that are farther apart have 1/r
    //! [n] of each particle what inverseWidth() takes, device memory; null: all pairs have 1/r.
    const Real* terms;

    FARFIELD_HD bool any() const { return terms != nullptr; }
    //! The term of a particle without a width: inverse widths of its pairs are beyond any range.
    FARFIELD_HD Real narrow() const
    {
        return rule == WidthRule::RootSumSquare ? Real(0) : Real(1e15);
    }
    //! That of a width, nm. Widths below 1e-10 nm are those of no pair, and would overflow.
    Real term(Real width) const
    {
        const Real w = std::max(width, Real(1e-10));
        return width == 0                         ? narrow()
               : rule == WidthRule::RootSumSquare ? w * w
               : rule == WidthRule::GeometricMean ? 1 / std::sqrt(w)
                                                  : 1 / w;
    }
    FARFIELD_HD bool isWide(Real ofParticle) const { return ofParticle != narrow(); }
    //! Whether a pair has another function than 1/r within the range. \param[in] a, b  which are wide
    FARFIELD_HD bool isOfPair(bool a, bool b) const
    {
        return rule == WidthRule::GeometricMean ? a && b : a || b;
    }
};

/*! \brief The cells within the range of those of a cell that are not among its near cells. */
struct FartherCells
{
    CellGrid grid;
    int ws;
    int reach[3];      //!< cells along each axis
    float edges[3][3]; //!< of a cell, rows, nm
    float farthest2;   //!< nm^2, of centres: others have no pair within the range

    /*! \param[in] edges     of a cell, nm
     *  \param[in] boundary  along axes without images a displacement beyond mostApart() leads to other
     *                       particles
     *  \param[in] range     nm, at most half of the box along axes with images */
    static FartherCells
    of(const CellGrid& grid, const Mat3& edges, Boundary boundary, int ws, double range);

    //! Whether there are any.
    FARFIELD_HD bool any() const { return reach[0] > ws || reach[1] > ws || reach[2] > ws; }
    //! Displacements to look at.
    FARFIELD_HD int count() const
    {
        return (2 * reach[0] + 1) * (2 * reach[1] + 1) * (2 * reach[2] + 1);
    }
    //! One of them. \returns whether it leads to such a cell
    FARFIELD_HD bool displacement(int number, int* D) const
    {
        const int row = number / (2 * reach[0] + 1);
        D[0]          = number - row * (2 * reach[0] + 1) - reach[0];
        D[2]          = row / (2 * reach[1] + 1);
        D[1]          = row - D[2] * (2 * reach[1] + 1) - reach[1];
        D[2] -= reach[2];
        bool isNear     = true;
        float distance2 = 0;
        for (int k = 0; k < 3; k++)
        {
            const float along = static_cast<float>(D[0]) * edges[0][k]
                                + static_cast<float>(D[1]) * edges[1][k]
                                + static_cast<float>(D[2]) * edges[2][k];
            distance2 += along * along;
            isNear = isNear && D[k] >= -ws && D[k] <= ws;
        }
        return !isNear && distance2 < farthest2;
    }
};

//! The near function of a system and the widths of its particles in device memory.
template<class Real>
class DeviceNearFunctions
{
public:
    //! As Backend::setNearPairs(); waits.
    void set(const NearPairs<Real>& pairs, cudaStream_t stream);
    bool any() const { return range_ > 0; }
    double range() const { return range_; } //!< nm, 0 if there is none
    //! Brings widths into the order of sorted particles.
    void sort(const SortedParticles<Real>& particles, cudaStream_t stream);
    //! With the terms in the order of the caller.
    const NearFunctionView<Real>& given() const { return given_; }
    //! With those of sort().
    NearFunctionView<Real> sorted() const
    {
        NearFunctionView<Real> view = given_;
        view.terms                  = any() ? sorted_.data() : nullptr;
        return view;
    }

private:
    double range_                 = 0;
    NearFunctionView<Real> given_ = {};
    DeviceBuffer<Real> terms_, sorted_;
};

template<class Real>
struct DeviceNearTask;

/*! \brief Adds what pairs of farther cells have beyond 1/r to forces, [n] of sorted particles, and to
 *         the sums of a task. What else adds to forces must be before or after it in the stream. */
template<class Real>
void addFarther(const DeviceNearTask<Real>& task,
                const FartherCells& cells,
                Real4<Real>* forces,
                cudaStream_t stream);

} // namespace farfield

#endif
