/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A charge or a dipole, places all over the box, and the expansions that the stages of the
 *         CPU's far field make of them.
 */
#ifndef FARFIELD_TESTS_UNIT_FAR_FIELD_CHAIN_H
#define FARFIELD_TESTS_UNIT_FAR_FIELD_CHAIN_H

#include <cmath>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "backend/backend.h"
#include "operators/solid_harmonics.h"

namespace farfield
{
namespace test
{

//! How a box is divided and what is in it.
struct ChainCase
{
    const char* name;
    Mat3 edges;       //!< of a leaf cell, nm
    IntMat leafCells; //!< H
    int levels;       //!< 1: the periodic M2L acts on the leaves
    int ws;
    bool isDipole;
};

inline std::vector<ChainCase> chainCases()
{
    const Mat3 cube = 0.3 * Mat3::Identity();
    Mat3 brick      = Mat3::Zero(), skewed;
    brick.diagonal() << 0.3, 0.35, 0.27;
    skewed << 0.3, 0, 0, 0.06, 0.31, 0, -0.08, 0.07, 0.28;
    const IntMat five    = { { { 5, 0, 0 }, { 0, 5, 0 }, { 0, 0, 5 } } };
    const IntMat eight   = { { { 8, 0, 0 }, { 0, 8, 0 }, { 0, 0, 8 } } };
    const IntMat flat    = { { { 8, 0, 0 }, { 0, 12, 0 }, { 0, 0, 4 } } };
    const IntMat oblique = { { { 8, 0, 0 }, { 4, 8, 0 }, { -4, 4, 12 } } };
    return { { "periodic M2L", cube, five, 1, 1, false },
             { "periodic M2L, dipole", skewed, oblique, 1, 1, true },
             { "periodic M2L, wide", brick, eight, 1, 2, false },
             { "two levels", brick, flat, 2, 1, false },
             { "three levels", cube, eight, 3, 1, false },
             { "three levels, dipole", skewed, oblique, 3, 1, true },
             { "three levels, wide", skewed, oblique, 3, 2, false } };
}

//! A particle: its leaf cell and where in it, in edges of a leaf cell from the origin.
struct Place
{
    Vec3 t;
    double charge;
};

//! The charge of places that only listen: it adds nothing to any sum, but without one they would
//! have no cells.
constexpr double c_noCharge = 1e-30;

//! Source charges in one cell, then places that listen in all of the box.
inline std::vector<Place> placesOf(const ChainCase& c)
{
    std::mt19937 random(41);
    std::uniform_real_distribution<double> uniform(0.1, 0.9);
    const auto anywhere = [&]
    {
        Vec3 t;
        for (int k = 0; k < 3; ++k)
        {
            t[k] = static_cast<double>(random() % c.leafCells[k][k]) + uniform(random);
        }
        return t;
    };
    std::vector<Place> places = { { anywhere(), c.isDipole ? 5.0 : 1.0 } };
    if (c.isDipole)
    {
        const Vec3 centre = places[0].t.array().floor() + 0.5;
        places.push_back({ places[0].t + 0.3 * (centre - places[0].t), -5.0 });
    }
    for (int i = 0; i < 40; ++i)
    {
        places.push_back({ anywhere(), c_noCharge });
    }
    return places;
}

//! A place seen from a level: its cell and the vector from the cell's centre, nm.
struct InCell
{
    Int3 cell;
    Vec3 r;
};

//! A backend that has worked through all stages, and what they left behind.
template<class Real>
struct Chain
{
    Chain(const ChainCase& c,
          const std::vector<Place>& placesAndCharges,
          int order,
          bool leastSquares) :
        setting(c),
        places(placesAndCharges), order(order)
    {
        Mat3 rows;
        for (int k = 0; k < 9; ++k)
        {
            rows(k / 3, k % 3) = c.leafCells[k / 3][k % 3];
        }
        box = rows * c.edges;
        Discretisation d;
        d.order        = order;
        d.ws           = c.ws;
        d.levels       = c.levels;
        d.leastSquares = leastSquares;
        d.leafCells    = c.leafCells;
        d.referenceBox = box;
        std::vector<Real> x, q;
        for (const Place& place : places)
        {
            const Vec3 r = c.edges.transpose() * place.t;
            x.insert(x.end(),
                     { static_cast<Real>(r[0]), static_cast<Real>(r[1]), static_cast<Real>(r[2]) });
            q.push_back(static_cast<Real>(place.charge));
        }
        const int n = static_cast<int>(q.size());
        const std::vector<int> none(n + 1, 0);
        const auto backend = makeCpuBackend<Real>(1.0, 2);
        backend->setCharges(q.data(), n);
        backend->setExclusions(none.data(), nullptr, n);
        backend->build(d);
        std::vector<Real> f(x.size(), Real(0));
        backend->setTask({ x.data(), nullptr, f.data(), nullptr, {} });
        backend->sort();
        backend->exclusions();
        backend->p2p();
        backend->p2m();
        multipoles.resize(c.levels);
        handedDown.resize(c.levels);
        locals.resize(c.levels);
        for (int level = c.levels - 1; level > 0; --level)
        {
            backend->m2m(level);
        }
        for (int level = 0; level < c.levels; ++level)
        {
            multipoles[level] = backend->multipoles(level);
            handedDown[level].assign(multipoles[level].size(), 0.0);
            if (level > 0)
            {
                backend->l2l(level - 1);
                handedDown[level] = backend->locals(level);
            }
            backend->m2l(level);
            locals[level] = backend->locals(level);
        }
        backend->l2p();
        backend->collect();
        forces.assign(f.begin(), f.end());
        Grid grid(d.coarseCells(), box);
        for (int level = 0; level < c.levels; ++level)
        {
            grids.push_back(grid);
            grid = grid.refined();
        }
    }

    InCell inCell(const Place& place, int level) const
    {
        const Vec3 t = place.t / (1 << (setting.levels - 1 - level));
        InCell result;
        Vec3 centre;
        for (int k = 0; k < 3; ++k)
        {
            result.cell[k] = static_cast<int>(std::floor(t[k]));
            centre[k]      = result.cell[k] + 0.5;
        }
        result.r = grids[level].edges().transpose() * (t - centre);
        return result;
    }
    //! Coefficients of a cell, which has to be in the box.
    const double* of(const std::vector<double>& all, int level, const Int3& cell) const
    {
        return &all[static_cast<size_t>(grids[level].index(cell)) * coefficientCount(order)];
    }
    /*! \brief Potential of expansions at r from the centre of the cell.
     *  \param[in,out] size  the magnitudes of the terms are added */
    double potential(const double* coefficients,
                     int level,
                     const Vec3& r,
                     bool isLocal,
                     double* size) const
    {
        const double unit = grids[level].unit();
        std::vector<double> u(coefficientCount(order));
        isLocal ? solidHarmonics(order, r / unit, u.data())
                : irregularHarmonics(order, r / unit, u.data());
        double sum = 0;
        for (size_t i = 0; i < u.size(); ++i)
        {
            sum += coefficients[i] * u[i] / unit;
            *size += std::abs(coefficients[i] * u[i] / unit);
        }
        return sum;
    }
    double netCharge() const
    {
        double sum = 0;
        for (const Place& place : places)
        {
            sum += place.charge;
        }
        return sum;
    }
    std::vector<Place> sources() const
    {
        return { places.begin(), places.begin() + (setting.isDipole ? 2 : 1) };
    }
    std::vector<Place> targets() const
    {
        return { places.begin() + (setting.isDipole ? 2 : 1), places.end() };
    }

    ChainCase setting;
    std::vector<Place> places;
    int order;
    Mat3 box;
    std::vector<Grid> grids;                     //!< of the levels
    std::vector<std::vector<double>> multipoles; //!< of the levels
    std::vector<std::vector<double>> handedDown; //!< local expansions after L2L
    std::vector<std::vector<double>> locals;     //!< local expansions after M2L
    std::vector<double> forces;
};

inline bool isNear(const Int3& D, int ws)
{
    return std::max({ std::abs(D[0]), std::abs(D[1]), std::abs(D[2]) }) <= ws;
}

} // namespace test
} // namespace farfield

#endif
