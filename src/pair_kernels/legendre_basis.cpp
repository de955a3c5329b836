/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/legendre_basis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace farfield
{
namespace
{

//! P_0 to P_p at xi.
std::vector<double> legendre(int p, double xi)
{
    std::vector<double> values(p + 1, 1);
    const double t = 2 * xi;
    double before = 0, last = 1; // without their factors
    for (int k = 0; k < p; k++)
    {
        const double next = ((2 * k + 1) * t * last - k * before) / (k + 1);
        before            = std::exchange(last, next);
        values[k + 1]     = std::sqrt(2.0 * k + 3) * next;
    }
    return values;
}

struct Quadrature
{
    std::vector<double> nodes, weights;
};

//! Gauss's, on [0, 1]: the eigenvalues of a matrix (G. H. Golub and J. H. Welsch, Math. Comp. 23, 221 (1969),
//! doi:10.1090/S0025-5718-69-99647-1).
Quadrature gauss(int count)
{
    Matrix jacobi = Matrix::Zero(count, count);
    for (int k = 1; k < count; k++)
    {
        jacobi(k, k - 1) = jacobi(k - 1, k) = k / std::sqrt(4.0 * k * k - 1);
    }
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(jacobi);
    Quadrature result;
    for (int k = 0; k < count; k++)
    {
        result.nodes.push_back(0.5 + 0.5 * solver.eigenvalues()[k]);
        result.weights.push_back(solver.eigenvectors()(0, k) * solver.eigenvectors()(0, k));
    }
    return result;
}

//! j_0 to j_p of spherical Bessel functions: the recurrence downwards, from where they are nothing (J. C. P. Miller).
std::vector<double> sphericalBessel(int p, double x)
{
    std::vector<double> values(p + 1, 0);
    const double size = std::abs(x);
    if (size < 1e-8)
    {
        values[0] = 1;
        if (p > 0)
        {
            values[1] = x / 3;
        }
        return values;
    }
    const int start = p + 20 + static_cast<int>(2 * size);
    double above = 0, at = 1e-300;
    for (int k = start; k > 0; k--)
    {
        const double below = (2 * k + 1) / size * at - above;
        above              = std::exchange(at, below);
        if (k - 1 <= p)
        {
            values[k - 1] = at;
        }
        if (std::abs(at) > 1e200)
        {
            for (double* value : { &at, &above })
            {
                *value *= 1e-200;
            }
            for (int m = k - 1; m <= p; m++)
            {
                values[m] *= 1e-200;
            }
        }
    }
    // at and above are j_0 and j_1 without their factor: the larger one sets it
    const double j0     = std::sin(size) / size;
    const double j1     = (j0 - std::cos(size)) / size;
    const double factor = std::abs(j0) > std::abs(j1) ? j0 / at : j1 / above;
    for (int m = 0; m <= p; m++)
    {
        values[m] *= x < 0 && m % 2 == 1 ? -factor : factor;
    }
    return values;
}

} // namespace

LegendreBasis::LegendreBasis(int degree) : degree_(degree)
{
    for (int i = 0; i <= degree; i++)
    {
        for (int j = 0; j <= degree - i; j++)
        {
            for (int k = 0; k <= degree - i - j; k++)
            {
                powers_.push_back({ i, j, k });
            }
        }
    }
    // products are polynomials of degree 2 p + 1 on either side of w = 0; the rest is for the kernel
    const int more             = 5;
    const int perAxis          = degree + 1;
    const Quadrature ofHalf    = gauss(degree + 1 + more);
    const Quadrature ofProduct = gauss(perAxis);
    const int half             = static_cast<int>(ofHalf.nodes.size());
    products_                  = Matrix::Zero(perAxis * perAxis, 2 * half);
    for (int node = 0; node < 2 * half; node++)
    {
        const double w = node < half ? -ofHalf.nodes[node] : ofHalf.nodes[node - half];
        nodes_.push_back(w);
        const double length = 1 - std::abs(w);
        const double begin  = std::max(-0.5, w - 0.5);
        for (int m = 0; m < perAxis; m++)
        {
            const double xi = begin + length * ofProduct.nodes[m];
            const auto a = legendre(degree, xi), b = legendre(degree, xi - w);
            const double weight = length * ofProduct.weights[m] * ofHalf.weights[node % half];
            for (int i = 0; i < perAxis; i++)
            {
                for (int j = 0; j < perAxis; j++)
                {
                    products_(i * perAxis + j, node) += weight * a[i] * b[j];
                }
            }
        }
    }
}

std::vector<int> LegendreBasis::degrees() const
{
    std::vector<int> result;
    for (const Int3& a : powers_)
    {
        result.push_back(a[0] + a[1] + a[2]);
    }
    return result;
}

std::vector<int> LegendreBasis::permuted(const Int3& axes) const
{
    std::vector<int> result;
    for (const Int3& a : powers_)
    {
        const Int3 image = { a[axes[0]], a[axes[1]], a[axes[2]] };
        result.push_back(static_cast<int>(std::lower_bound(powers_.begin(), powers_.end(), image)
                                          - powers_.begin()));
    }
    return result;
}

std::vector<int> LegendreBasis::signs(int axes) const
{
    std::vector<int> result;
    for (const Int3& a : powers_)
    {
        int odd = 0;
        for (int k = 0; k < 3; k++)
        {
            odd += (axes >> k) & 1 ? a[k] : 0;
        }
        result.push_back(odd % 2 == 0 ? 1 : -1);
    }
    return result;
}

Matrix LegendreBasis::interaction(const Mat3& edges,
                                  const Int3& D,
                                  const std::function<double(double)>& function) const
{
    return interactions(
                   edges, D, 1, [&](const Vec3& d, double* value) { *value = function(d.norm()); })
            .front();
}

std::vector<Matrix>
LegendreBasis::interactions(const Mat3& edges,
                            const Int3& D,
                            int count,
                            const std::function<void(const Vec3&, double*)>& functions) const
{
    const int nodes = static_cast<int>(nodes_.size());
    std::vector<Matrix> values(count, Matrix(nodes, nodes * nodes)); // [x][y, z]
    std::vector<double> here(count);
    for (int x = 0; x < nodes; x++)
    {
        for (int y = 0; y < nodes; y++)
        {
            for (int z = 0; z < nodes; z++)
            {
                const Vec3 d(D[0] + nodes_[x], D[1] + nodes_[y], D[2] + nodes_[z]);
                functions(edges.transpose() * d, here.data());
                for (int k = 0; k < count; k++)
                {
                    values[k](x, y * nodes + z) = here[k];
                }
            }
        }
    }
    for (Matrix& of : values)
    {
        of = projected(of);
    }
    return values;
}

Matrix LegendreBasis::projected(const Matrix& values) const
{
    const int nodes   = static_cast<int>(nodes_.size());
    const int perAxis = degree_ + 1;
    // axis by axis; of a total degree p, powers along y and z are at most p - i where that along x is i
    const Matrix alongX = products_ * values; // [i i'][y, z]
    Matrix result(count(), count());
    int a = 0; // the first coefficient with this i
    for (int i = 0; i < perAxis; i++)
    {
        int b = 0;
        for (int i2 = 0; i2 < perAxis; i2++)
        {
            const int rows = perAxis - i, columns = perAxis - i2;
            Matrix own(rows * columns, nodes); // c_jj' of these
            for (int j = 0; j < rows; j++)
            {
                own.middleRows(j * columns, columns) = products_.middleRows(j * perAxis, columns);
            }
            const Eigen::Map<const Matrix> plane(
                    alongX.row(i * perAxis + i2).data(), nodes, nodes); // [y][z]
            const Matrix all = (own * plane) * own.transpose();         // [j j'][k k']
            for (int a2 = a; a2 < count() && powers_[a2][0] == i; a2++)
            {
                for (int b2 = b; b2 < count() && powers_[b2][0] == i2; b2++)
                {
                    result(a2, b2) = all(powers_[a2][1] * columns + powers_[b2][1],
                                         powers_[a2][2] * columns + powers_[b2][2]);
                }
            }
            b += columns * (columns + 1) / 2;
        }
        a += (perAxis - i) * (perAxis - i + 1) / 2;
    }
    return result;
}

Matrix LegendreBasis::childToParent(int octant) const
{
    const int perAxis           = degree_ + 1;
    const Quadrature quadrature = gauss(perAxis);
    std::array<Matrix, 2> along; // of the lower and the upper child
    for (int upper = 0; upper < 2; upper++)
    {
        along[upper] = Matrix::Zero(perAxis, perAxis);
        for (size_t m = 0; m < quadrature.nodes.size(); m++)
        {
            const double xi   = quadrature.nodes[m] - 0.5;
            const auto parent = legendre(degree_, (xi + upper - 0.5) / 2);
            const auto child  = legendre(degree_, xi);
            for (int i = 0; i < perAxis; i++)
            {
                for (int j = 0; j < perAxis; j++)
                {
                    along[upper](i, j) += quadrature.weights[m] * parent[i] * child[j];
                }
            }
        }
    }
    Matrix result = Matrix::Ones(count(), count());
    for (int a = 0; a < count(); a++)
    {
        for (int b = 0; b < count(); b++)
        {
            for (int k = 0; k < 3; k++)
            {
                result(a, b) *= along[(octant >> k) & 1](powers_[a][k], powers_[b][k]);
            }
        }
    }
    return result;
}

std::vector<double> LegendreBasis::transformsAlong(double k) const
{
    std::vector<double> along = sphericalBessel(degree_, k / 2);
    for (int m = 0; m <= degree_; m++)
    {
        along[m] *= std::sqrt(2.0 * m + 1);
    }
    return along;
}

std::vector<double> LegendreBasis::transforms(const Vec3& k) const
{
    std::array<std::vector<double>, 3> along;
    for (int axis = 0; axis < 3; axis++)
    {
        along[axis] = transformsAlong(k[axis]);
    }
    std::vector<double> result;
    for (const Int3& a : powers_)
    {
        result.push_back(along[0][a[0]] * along[1][a[1]] * along[2][a[2]]);
    }
    return result;
}

} // namespace farfield
