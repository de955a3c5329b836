/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Sums over pairs of points on the device: those of near leaves, and those of all points.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_POINT_PAIRS_H
#define FARFIELD_KERNELS_PAIR_KERNELS_POINT_PAIRS_H

#include "cells/minimum_image.h"
#include "pair_kernels/pair_law_on_device.h"
#include "pair_kernels/points_in_leaves.h"

namespace farfield
{

//! Near cells of a cell, the cell itself first. Plain data.
template<class Real>
struct NearCells
{
    static constexpr int c_most = 125;

    int count;
    CellsOfBox box;
    int displacement[c_most][3];
    Real shift[c_most][3]; //!< of the sources there, in units of leaves
};

//! Pairs that do not act on each other. Plain data.
struct LeftOutOnDevice
{
    const int *offsets,
            *partners;   //!< by index before sorting, each pair at both; null: there are none
    const int* sortedOf; //!< where a charge is among the sorted ones
    int* away;           //!< [offsets[n] + n] room
    const double* x;     //!< [n][3]
    MinimumImage image;  //!< of displacements that are turned
    double turn[3][3];   //!< of rows, to axes along which the box is triangular
    bool isPeriodic;
};

//! What a launch of pairs is given. Plain data.
template<class Real>
struct PairLaunch
{
    LeavesView<Real> targets, sources;
    bool areOwn; //!< targets are the sources
    NearCells<Real> near;
    const Real* q; //!< [n][sets] by index before sorting
    int sets;
    PairLawNumbers<Real> law;
    PairLawNumbers<double> exactLaw; //!< for far pairs that are left out, in units of length
    double factor;                   //!< of potentials; that of fields is divided by the unit
    double exactFactor;
    double unit; //!< of length, a leaf
    LeftOutOnDevice leftOut;
    double* sums;    //!< [sets][4][targets] sorted; set
    double* strains; //!< [sets][6][targets]; null: they are not wanted
};

/*! \brief Potentials and fields that near sources make, of all sets of charges.
 *
 *  Strains are q times sums of q' f d_a d_b, of c_strains, such that the virial is -1/4 of their sum. */
template<class Real>
void sumNearPairs(const PairLaunch<Real>& launch, cudaStream_t stream);

//! Sums over all pairs for some results.
template<class Real>
struct DirectLaunch
{
    const double *x, *at; //!< [n][3], and positions of results
    const Real* q;        //!< [n][sets]
    int n, sets;
    const int* some; //!< [count] which results
    int count;
    bool areOwn; //!< results are those of charges
    double origin[3], unit;
    PairLawNumbers<double> law;    //!< in this unit
    const int *offsets, *partners; //!< see LeftOutOnDevice
    double* partial;               //!< [stripes][sets][4][count], set
    int stripes;                   //!< parts of the sources
};
template<class Real>
void sumAllPairs(const DirectLaunch<Real>& launch, cudaStream_t stream);

} // namespace farfield

#endif
