/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// What cutting expansions at an order costs: in the mean over random charges, and in a system.
#include <cmath>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "bipolar.h"
#include "geometry.h"
#include "reference.h"

namespace farfield
{
namespace test
{

namespace
{

//! G = H^-1 B; H is lower triangular.
Matrix cellVectors(const std::array<std::array<int, 3>, 3>& cells, const Matrix& box)
{
    Matrix cell;
    for (int i = 0; i < 3; ++i)
    {
        cell[i] = box[i];
        for (int j = 0; j < i; ++j)
        {
            for (int k = 0; k < 3; ++k)
            {
                cell[i][k] -= cells[i][j] * cell[j][k];
            }
        }
        for (int k = 0; k < 3; ++k)
        {
            cell[i][k] /= cells[i][i];
        }
    }
    return cell;
}

//! Far displacements, grouped by the cell of the box that they lead to.
std::vector<std::vector<Vector>> farGroups(const std::array<std::array<int, 3>, 3>& cells,
                                           const Matrix& cell,
                                           int directRange)
{
    std::map<std::array<int, 3>, std::vector<Vector>> classes;
    const int reach = directRange + 3;
    for (int i = -reach; i <= reach; ++i)
    {
        for (int j = -reach; j <= reach; ++j)
        {
            for (int k = -reach; k <= reach; ++k)
            {
                if (std::max({ std::abs(i), std::abs(j), std::abs(k) }) > directRange)
                {
                    std::array<int, 3> index = { i, j, k };
                    for (int r = 2; r >= 0; --r)
                    {
                        const int turns =
                                static_cast<int>(std::floor(double(index[r]) / cells[r][r]));
                        for (int s = 0; s <= r; ++s)
                        {
                            index[s] -= turns * cells[r][s];
                        }
                    }
                    classes[index].push_back(combine(cell, i, j, k));
                }
            }
        }
    }
    std::vector<std::vector<Vector>> groups;
    for (auto& entry : classes)
    {
        groups.push_back(std::move(entry.second));
    }
    return groups;
}

//! Adds the errors of potential and gradient at b from a charge at a in all cells of a group.
void addErrors(const std::vector<Vector>& group,
               const Vector& a,
               const Vector& b,
               int maxOrder,
               std::vector<double>* potentials,
               std::vector<Vector>* gradients)
{
    const int n = maxOrder + 1;
    std::vector<double> phi(n);
    std::vector<Vector> grad(n);
    for (const auto& d : group)
    {
        const Matrix frame = frameAlong(d);
        const Vector ra = rotated(frame, a), rb = rotated(frame, b);
        const double length = norm(d);
        bipolarAlongZ(length, ra, rb, maxOrder, phi.data(), grad.data());
        const Vector r  = { rb[0] - ra[0], rb[1] - ra[1], length + rb[2] - ra[2] };
        const double r1 = norm(r);
        for (int p = 0; p < n; ++p)
        {
            (*potentials)[p] += phi[p] - 1 / r1;
            // Images have different frames: back to the box axes before adding.
            const Vector e    = { grad[p][0] + r[0] / (r1 * r1 * r1),
                                  grad[p][1] + r[1] / (r1 * r1 * r1),
                                  grad[p][2] + r[2] / (r1 * r1 * r1) };
            const Vector back = combine(frame, e[0], e[1], e[2]);
            for (int k = 0; k < 3; ++k)
            {
                (*gradients)[p][k] += back[k];
            }
        }
    }
}

//! predictTruncation() for one particle per cell.
Truncation computeTruncation(const std::array<std::array<int, 3>, 3>& cells,
                             const Matrix& box,
                             int directRange,
                             int maxOrder)
{
    const Matrix cell                             = cellVectors(cells, box);
    const std::vector<std::vector<Vector>> groups = farGroups(cells, cell, directRange);
    double nearest                                = 1e300;
    for (const auto& group : groups)
    {
        for (const auto& d : group)
        {
            nearest = std::min(nearest, dot(d, d));
        }
    }
    const int n = maxOrder + 1;
    std::vector<double> force(n), potential(n), mean(n);
    std::mt19937 seeds(20240607);
    std::vector<unsigned> seed(groups.size());
    for (auto& s : seed)
    {
        s = seeds();
    }
    double* const force0     = force.data();
    double* const potential0 = potential.data();
    double* const mean0      = mean.data();
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : force0[:n], potential0[:n], mean0[:n])
    for (size_t c = 0; c < groups.size(); ++c)
    {
        // Random pairs (a, b). Rare pairs in corners of the nearest far cells make most of the
        // error: sampled more often than they occur, by a density 1 / (2 v) at 1/2 (1 - v^2).
        double shortest = 1e300;
        for (const auto& d : groups[c])
        {
            shortest = std::min(shortest, dot(d, d));
        }
        const int tier    = shortest < 1.15 * nearest ? 768 : shortest < 1.6 * nearest ? 192 : 6;
        const int members = static_cast<int>(groups[c].size());
        // With many images in a group there are few groups, and the images sample each other.
        const int samples = members == 1 ? tier : std::max(96, tier / members);
        std::mt19937 random(seed[c]);
        std::uniform_real_distribution<double> uniform(-1, 1);
        std::vector<double> sumPhi(n);
        std::vector<Vector> sumGrad(n);
        for (int s = 0; s < samples; ++s)
        {
            double u[6];
            double weight = 1.0 / samples;
            for (double& coordinate : u)
            {
                const double v = uniform(random);
                coordinate     = std::copysign(0.5 * (1 - v * v), v);
                weight *= 2 * std::abs(v);
            }
            const Vector a = combine(cell, u[0], u[1], u[2]);
            const Vector b = combine(cell, u[3], u[4], u[5]);
            std::fill(sumPhi.begin(), sumPhi.end(), 0);
            std::fill(sumGrad.begin(), sumGrad.end(), Vector{});
            addErrors(groups[c], a, b, maxOrder, &sumPhi, &sumGrad);
            for (int p = 0; p < n; ++p)
            {
                force0[p] += weight * dot(sumGrad[p], sumGrad[p]);
                potential0[p] += weight * sumPhi[p] * sumPhi[p];
                mean0[p] += weight * sumPhi[p];
            }
        }
    }
    Truncation result;
    for (int p = 0; p < n; ++p)
    {
        result.force.push_back(std::sqrt(force[p]));
        result.potential.push_back(std::sqrt(potential[p]));
        result.meanPotential.push_back(mean[p]);
    }
    return result;
}

} // namespace

Truncation predictTruncation(const std::array<std::array<int, 3>, 3>& cells,
                             const Matrix& box,
                             int directRange,
                             double perCell,
                             int maxOrder)
{
    // Many evaluations share their cells; a computation holds for all lower orders.
    static std::map<std::tuple<std::array<std::array<int, 3>, 3>, Matrix, int>, Truncation> known;
    Truncation& entry = known[std::make_tuple(cells, box, directRange)];
    if (static_cast<int>(entry.force.size()) <= maxOrder)
    {
        entry = computeTruncation(cells, box, directRange, maxOrder);
    }
    Truncation result = entry;
    for (int p = 0; p <= maxOrder; ++p)
    {
        result.force[p] *= std::sqrt(perCell);
        result.potential[p] *= std::sqrt(perCell);
        result.meanPotential[p] *= perCell;
    }
    return result;
}

Evaluation truncationError(const System& system,
                           const std::array<std::array<int, 3>, 3>& cells,
                           int directRange,
                           int order)
{
    const int n       = system.size();
    const int reach   = directRange + 4;
    const Matrix cell = cellVectors(cells, system.box);
    const Matrix g    = reciprocal(cell);
    std::vector<std::array<int, 3>> index(n);
    std::vector<Vector> offset(n);
    for (int i = 0; i < n; ++i)
    {
        for (int k = 0; k < 3; ++k)
        {
            index[i][k] = static_cast<int>(std::floor(dot(g[k], system.positions[i])));
        }
        const Vector centre =
                combine(cell, index[i][0] + 0.5, index[i][1] + 0.5, index[i][2] + 0.5);
        for (int k = 0; k < 3; ++k)
        {
            offset[i][k] = system.positions[i][k] - centre[k];
        }
    }
    Evaluation result;
    result.forces.assign(n, Vector{});
    double energy = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : energy)
    for (int i = 0; i < n; ++i)
    {
        for (int j = 0; j < n; ++j)
        {
            // All images of j's cell within reach of i's: D = c_i - c_j + n H.
            const std::array<int, 3> d0 = { index[i][0] - index[j][0],
                                            index[i][1] - index[j][1],
                                            index[i][2] - index[j][2] };
            for (int d2 = -reach; d2 <= reach; ++d2)
            {
                if ((d2 - d0[2]) % cells[2][2] != 0)
                {
                    continue;
                }
                const int n2 = (d2 - d0[2]) / cells[2][2];
                for (int d1 = -reach; d1 <= reach; ++d1)
                {
                    const int rest1 = d1 - d0[1] - n2 * cells[2][1];
                    if (rest1 % cells[1][1] != 0)
                    {
                        continue;
                    }
                    const int n1 = rest1 / cells[1][1];
                    for (int dd = -reach; dd <= reach; ++dd)
                    {
                        const int rest0 = dd - d0[0] - n2 * cells[2][0] - n1 * cells[1][0];
                        if (rest0 % cells[0][0] != 0
                            || std::max({ std::abs(dd), std::abs(d1), std::abs(d2) })
                                       <= directRange)
                        {
                            continue;
                        }
                        const Vector d = combine(cell, dd, d1, d2);
                        Vector gradient;
                        const double phi = bipolar(d, offset[j], offset[i], order, &gradient);
                        Vector r;
                        for (int k = 0; k < 3; ++k)
                        {
                            r[k] = d[k] + offset[i][k] - offset[j][k];
                        }
                        const double r1 = norm(r);
                        const double qq = c_coulomb * system.charges[i] * system.charges[j];
                        energy += 0.5 * qq * (phi - 1 / r1);
                        for (int k = 0; k < 3; ++k)
                        {
                            result.forces[i][k] -= qq * (gradient[k] + r[k] / (r1 * r1 * r1));
                        }
                    }
                }
            }
        }
    }
    result.energy = energy;
    return result;
}

} // namespace test
} // namespace farfield
