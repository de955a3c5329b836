/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/kernel_operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/threads.h"

namespace farfield
{
namespace
{

//! A displacement that follows from another one by the symmetry of a cell.
struct SymmetryImage
{
    Int3 root; //!< the other one
    int axes;  //!< that are mirrored: bits 1 x, 2 y, 4 z
    Int3 order{ 0,
                1,
                2 }; //!< component k is that of order[k] of the root, before they are mirrored
};

SymmetryImage imageOf(const Int3& D, bool isRectangular, bool isCube)
{
    SymmetryImage image{ D, 0 };
    if (!isRectangular)
    {
        image.axes = D < Int3{ 0, 0, 0 } ? 7 : 0;
        image.root = mirrored(D, image.axes);
        return image;
    }
    for (int k = 0; k < 3; k++)
    {
        image.axes |= D[k] < 0 ? 1 << k : 0;
    }
    const Int3 size = mirrored(D, image.axes);
    image.root      = size;
    if (isCube)
    {
        Int3 by = { 0, 1, 2 }; // the axes by the size of the component
        std::stable_sort(by.begin(), by.end(), [&](int a, int b) { return size[a] < size[b]; });
        for (int k = 0; k < 3; k++)
        {
            image.root[k]      = size[by[k]];
            image.order[by[k]] = k;
        }
    }
    return image;
}

//! Which derivative of the root that of an image is, and its sign.
std::pair<int, double> derivativeOfRoot(const SymmetryImage& image, int derivative)
{
    if (derivative == 0)
    {
        return { 0, 1 };
    }
    const auto [a, b] = c_strains[derivative - 1];
    const std::array<int, 2> ofRoot{ std::min(image.order[a], image.order[b]),
                                     std::max(image.order[a], image.order[b]) };
    const auto* place = std::find(c_strains.begin(), c_strains.end(), ofRoot);
    return { 1 + static_cast<int>(place - c_strains.begin()),
             signOfDerivative(derivative, image.axes) };
}

/*! \brief Makes K(D) of displacements, by several threads; those that symmetry relates share the work.
 *  \param[in] choose  choose(D): what G is at a displacement, a function that gives G and, for derivatives, dG/dr / r
 *  \param[in] take    take(place, derivative, K), place in the list */
template<class Choose, class Take>
void forDisplacements(const LegendreBasis& basis,
                      const Mat3& edges,
                      const std::vector<Int3>& displacements,
                      int derivatives,
                      int threads,
                      const Choose& choose,
                      const Take& take)
{
    const bool isRectangular = areRectangular(edges);
    const Vec3 lengths       = edges.diagonal();
    const bool isCube =
            isRectangular && (lengths.array() - lengths[0]).abs().maxCoeff() <= 1e-12 * lengths[0];
    std::vector<std::pair<Int3, int>> sets; // root and place
    for (size_t i = 0; i < displacements.size(); i++)
    {
        sets.emplace_back(imageOf(displacements[i], isRectangular, isCube).root,
                          static_cast<int>(i));
    }
    std::sort(sets.begin(), sets.end());
    std::vector<size_t> first;
    for (size_t i = 0; i < sets.size(); i++)
    {
        if (i == 0 || sets[i].first != sets[i - 1].first)
        {
            first.push_back(i);
        }
    }
    first.push_back(sets.size());
    const int n        = basis.count();
    const auto makeSet = [&](size_t set)
    {
        const Int3& D       = sets[first[set]].first;
        const auto function = choose(D);
        const auto ofPlace  = [&](const Vec3& d, double* values)
        {
            const std::array<double, 2> g = function(d.norm());
            values[0]                     = g[0];
            for (int k = 1; k < derivatives; k++)
            {
                values[k] = g[1] * d[c_strains[k - 1][0]] * d[c_strains[k - 1][1]];
            }
        };
        const std::vector<Matrix> K = basis.interactions(edges, D, derivatives, ofPlace);
        Matrix image(n, n);
        for (size_t i = first[set]; i < first[set + 1]; i++)
        {
            const SymmetryImage to = imageOf(displacements[sets[i].second], isRectangular, isCube);
            const std::vector<int> signs = basis.signs(to.axes);
            // P_a of mirrored and exchanged coordinates is another polynomial, with a sign
            Int3 back;
            for (int k = 0; k < 3; k++)
            {
                back[to.order[k]] = k;
            }
            const std::vector<int> from = basis.permuted(back);
            for (int derivative = 0; derivative < derivatives; derivative++)
            {
                const auto [ofRoot, sign] = derivativeOfRoot(to, derivative);
                for (int a = 0; a < n; a++)
                {
                    for (int b = 0; b < n; b++)
                    {
                        image(a, b) = sign * signs[a] * signs[b] * K[ofRoot](from[a], from[b]);
                    }
                }
                take(sets[i].second, derivative, image);
            }
        }
    };
    FirstException failure;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (size_t set = 0; set < first.size() - 1; set++)
    {
        failure.run([&] { makeSet(set); });
    }
    failure.rethrow();
}

} // namespace

template<class Real>
std::vector<std::vector<KernelOperator<Real>>> kernelOperators(const LegendreBasis& basis,
                                                               const PairKernel& kernel,
                                                               double scale,
                                                               const Mat3& edges,
                                                               int ws,
                                                               int derivatives,
                                                               int threads)
{
    std::vector<KernelOperator<Real>> operators;
    std::vector<Int3> displacements;
    for (const ListDisplacement& next : interactionList(ws))
    {
        operators.push_back({ next, {} });
        displacements.push_back(next.D);
    }
    std::vector<std::vector<KernelOperator<Real>>> all(derivatives, operators);
    const auto function = [&](double r) {
        return std::array<double, 2>{ scale * kernel.value(r), scale * kernel.slope(r) / r };
    };
    forDisplacements(
            basis,
            edges,
            displacements,
            derivatives,
            threads,
            [&](const Int3& /*D*/) { return function; },
            [&](int place, int derivative, const Matrix& K)
            { all[derivative][place].T.assign(K.data(), K.data() + K.size()); });
    return all;
}

PeriodicKernelSums::PeriodicKernelSums(const LegendreBasis& basis,
                                       const PairKernel& kernel,
                                       const Grid& grid,
                                       int ws,
                                       double scale,
                                       double accuracy,
                                       int derivatives,
                                       int threads) :
    basis_(basis),
    kernel_(kernel), grid_(grid), scale_(scale), derivatives_(derivatives), threads_(threads),
    degrees_(basis.degrees())
{
    // to this distance of points in cells, beyond the near ones
    constexpr double c_cellsBeyond = 1;
    const double digits            = std::sqrt(-std::log(accuracy));
    double reach                   = kernel.last();
    if (kernel.isSplit())
    {
        reach        = (ws + c_cellsBeyond) * grid.unit();
        splitting_   = digits / reach;
        longestWave_ = 2 * splitting_ * digits;
    }
    // heights of a cell: how many cells a distance spans
    const Mat3& inverse = grid.inverseEdges();
    Int3 most;
    for (int k = 0; k < 3; k++)
    {
        most[k] = std::max(ws, static_cast<int>(std::ceil(reach * inverse.col(k).norm())) + 1);
    }
    const auto isNear = [ws](const Int3& D) {
        return std::max({ std::abs(D[0]), std::abs(D[1]), std::abs(D[2]) }) <= ws;
    };
    // the nearest that points of two cells may be, at least
    const double diagonal = grid.edges().cwiseAbs().colwise().sum().norm();
    for (int x = 0; x <= most[0]; x++)
    {
        for (int y = x == 0 ? 0 : -most[1]; y <= most[1]; y++)
        {
            for (int z = x == 0 && y == 0 ? 0 : -most[2]; z <= most[2]; z++)
            {
                const Int3 D = { x, y, z };
                if (isNear(D) ? kernel.isSplit() : grid.displacement(D).norm() - diagonal < reach)
                {
                    displacements_.push_back(D);
                }
            }
        }
    }
    terms_.assign(derivatives, std::vector<Matrix>(displacements_.size()));
    const auto ofDisplacement = [&](const Int3& D)
    {
        const auto own    = [this](double r) { return -kernel_.smooth(r, splitting_); };
        const auto others = [this](double r) { return kernel_.sharp(r, splitting_); };
        return [this, own, others, isOwn = isNear(D)](double r) -> std::array<double, 2>
        {
            if (derivatives_ == 1)
            {
                return { isOwn ? own(r) : others(r), 0 };
            }
            if (!isOwn)
            {
                return { others(r), slopeOf(others, r, r) / r };
            }
            // even, and as wide as 1 / b
            return { own(r), slopeOf(own, r, std::max(r, 1 / splitting_)) / std::max(r, 1e-100) };
        };
    };
    forDisplacements(basis,
                     grid.edges(),
                     displacements_,
                     derivatives,
                     threads,
                     ofDisplacement,
                     [&](int place, int derivative, const Matrix& K)
                     { terms_[derivative][place] = K; });
}

std::vector<PeriodicKernelSums::Row> PeriodicKernelSums::rowsOf(const WaveVectors& waves,
                                                                int first,
                                                                int end) const
{
    std::map<std::pair<int, int>, Row> rows;
    for (int k = first; k < end; k++)
    {
        const Vec3 phases = grid_.phases(waves.wave(k, 0));
        const auto index  = [&](int axis) {
            return static_cast<int>(std::lround(phases[axis] * grid_.H()[axis][axis] / (2 * M_PI)));
        };
        rows[{ index(0), index(1) }].push_back(k);
    }
    std::vector<Row> result;
    for (auto& row : rows)
    {
        result.push_back(std::move(row.second));
    }
    return result;
}

std::vector<Matrix> PeriodicKernelSums::sumsOverWaves(const Vec3& phases) const
{
    const int n = basis_.count();
    std::vector<Matrix> sums(derivatives_, Matrix::Zero(n, n));
    const Mat3& edges   = grid_.edges();
    const Mat3& inverse = grid_.inverseEdges();
    const double volume = std::abs(edges.determinant());
    // waves along each axis, and their transforms
    Int3 most;
    std::array<std::vector<std::vector<double>>, 3> along;
    for (int k = 0; k < 3; k++)
    {
        most[k] = static_cast<int>(std::ceil(longestWave_ * edges.row(k).norm() / (2 * M_PI))) + 1;
        for (int m = -most[k]; m <= most[k]; m++)
        {
            along[k].push_back(basis_.transformsAlong(phases[k] + 2 * M_PI * m));
        }
    }
    const auto smooth = [&](double k) { return kernel_.smoothTransform(k, splitting_); };
    Eigen::VectorXd transform(n);
    for (int x = -most[0]; x <= most[0]; x++)
    {
        for (int y = -most[1]; y <= most[1]; y++)
        {
            for (int z = -most[2]; z <= most[2]; z++)
            {
                const Vec3 wave = inverse * (phases + 2 * M_PI * Vec3(x, y, z));
                const double k  = wave.norm();
                if (k > longestWave_)
                {
                    continue;
                }
                const auto &ofX = along[0][x + most[0]], &ofY = along[1][y + most[1]],
                           &ofZ = along[2][z + most[2]];
                for (int a = 0; a < n; a++)
                {
                    const Int3& powers = basis_.powers()[a];
                    transform[a]       = ofX[powers[0]] * ofY[powers[1]] * ofZ[powers[2]];
                }
                const double weight = smooth(k) / volume;
                // where places are strained, wave vectors become shorter as they become longer
                const double slope =
                        derivatives_ > 1 && k > 0 ? slopeOf(smooth, k, k) / (k * volume) : 0;
                for (int derivative = 0; derivative < derivatives_; derivative++)
                {
                    double factor = weight;
                    if (derivative > 0)
                    {
                        const auto [a, b] = c_strains[derivative - 1];
                        factor            = -slope * wave[a] * wave[b] - (a == b ? weight : 0);
                    }
                    sums[derivative].selfadjointView<Eigen::Upper>().rankUpdate(transform, factor);
                }
            }
        }
    }
    for (Matrix& sum : sums)
    {
        sum.triangularView<Eigen::StrictlyLower>() = sum.transpose();
    }
    return sums;
}

void PeriodicKernelSums::kappas(const WaveVectors& waves, const Row& row, const Use& use) const
{
    const int n          = basis_.count();
    const double perCell = scale_ / static_cast<double>(grid_.count());
    // sums over two components of D; D and -D have the same and the opposite terms
    using EvenAndOdd = std::array<Matrix, 2>;
    std::map<int, std::vector<EvenAndOdd>> ofLast; // by the last component
    const Vec3 shared = grid_.phases(waves.wave(row.front(), 0));
    for (size_t i = 0; i < displacements_.size(); i++)
    {
        const Int3& D      = displacements_[i];
        const double phase = shared[0] * D[0] + shared[1] * D[1];
        const double pair  = D == Int3{ 0, 0, 0 } ? 1 : 2;
        auto& sums         = ofLast[D[2]];
        if (sums.empty())
        {
            sums.assign(derivatives_, { Matrix::Zero(n, n), Matrix::Zero(n, n) });
        }
        for (int k = 0; k < derivatives_; k++)
        {
            sums[k][0] += pair * std::cos(phase) * terms_[k][i];
            sums[k][1] += pair * std::sin(phase) * terms_[k][i];
        }
    }
    std::vector<Matrix> kappas(derivatives_, Matrix(n, n));
    for (const int wave : row)
    {
        const Vec3 phases = grid_.phases(waves.wave(wave, 0));
        const std::vector<Matrix> ofWaves =
                kernel_.isSplit() ? sumsOverWaves(phases)
                                  : std::vector<Matrix>(derivatives_, Matrix::Zero(n, n));
        for (int k = 0; k < derivatives_; k++)
        {
            Matrix even = Matrix::Zero(n, n), odd = Matrix::Zero(n, n);
            for (const auto& [last, sums] : ofLast)
            {
                const double c = std::cos(phases[2] * last), s = std::sin(phases[2] * last);
                even += c * sums[k][0] - s * sums[k][1];
                odd += s * sums[k][0] + c * sums[k][1];
            }
            for (int a = 0; a < n; a++)
            {
                for (int b = 0; b < n; b++)
                {
                    // times (-i)^la i^lb: K is even in D where la + lb is, and else gives -i times the sum of sines
                    const int turns    = degrees_[b] - degrees_[a];
                    const bool isEven  = turns % 2 == 0;
                    const int quarters = ((isEven ? turns : turns - 1) % 4 + 4) % 4;
                    const double term =
                            (quarters == 0 ? 1 : -1) * (isEven ? even(a, b) : odd(a, b));
                    kappas[k](a, b) = perCell * (term + ofWaves[k](a, b));
                }
            }
        }
        use(wave, kappas);
    }
}

void PeriodicKernelSums::forEach(const WaveVectors& waves, int first, int end, const Use& use) const
{
    const std::vector<Row> rows = rowsOf(waves, first, end);
    FirstException failure;
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
    for (size_t row = 0; row < rows.size(); row++)
    {
        failure.run([&] { kappas(waves, rows[row], use); });
    }
    failure.rethrow();
}

template std::vector<std::vector<KernelOperator<float>>>
kernelOperators(const LegendreBasis&, const PairKernel&, double, const Mat3&, int, int, int);
template std::vector<std::vector<KernelOperator<double>>>
kernelOperators(const LegendreBasis&, const PairKernel&, double, const Mat3&, int, int, int);

} // namespace farfield
