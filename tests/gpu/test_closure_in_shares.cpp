/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The steps of the device's periodic M2L for shares, one after another on one GPU, against all of
 *         it at once: what ranks do, without the messages.
 */
#include <cmath>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "m2l/m2l.h"
#include "operators/product_table.h"
#include "stage_pair.h"

namespace farfield
{
namespace test
{
namespace
{

//! Cells of a box.
struct Cells
{
    const char* name;
    IntMat H;
    Mat3 edges; //!< of a cell
    int order;
};

std::vector<Cells> cellsToShare()
{
    const Mat3 cube = Mat3::Identity();
    Mat3 brick      = Mat3::Zero(), skewed;
    brick.diagonal() << 1, 1.3, 0.8;
    skewed << 1, 0, 0, 0.21, 1.1, 0, -0.37, 0.29, 0.9;
    return { { "one cell", { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } }, cube, 4 },
             { "monopoles", { { { 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 4 } } }, brick, 0 },
             { "even", { { { 6, 0, 0 }, { 0, 4, 0 }, { 0, 0, 8 } } }, brick, 5 },
             { "odd", { { { 5, 0, 0 }, { 0, 3, 0 }, { 0, 0, 7 } } }, brick, 6 },
             { "by cuFFT", { { { 25, 0, 0 }, { 0, 3, 0 }, { 0, 0, 4 } } }, brick, 3 },
             { "skewed", { { { 3, 0, 0 }, { 1, 2, 0 }, { -1, 1, 5 } } }, skewed, 5 },
             { "skewed, by cuFFT", { { { 3, 0, 0 }, { 0, 25, 0 }, { 0, 0, 3 } } }, skewed, 3 } };
}

Grid gridOf(const Cells& c)
{
    Mat3 rows;
    for (int k = 0; k < 9; k++)
    {
        rows(k / 3, k % 3) = c.H[k / 3][k % 3];
    }
    return Grid(c.H, rows * c.edges);
}

//! Local expansions, [coefficients][stride], and what the virial has become after each share.
template<class Real>
struct Closed
{
    std::vector<Real> L;
    std::vector<std::vector<double>> virials;
};

template<class Real>
class GpuClosureInShares : public ::testing::Test
{
protected:
    void SetUp() override
    {
        if (const std::string why = whyUnavailable(Device::Gpu); !why.empty())
        {
            GTEST_SKIP() << why;
        }
    }
    //! Step by step for all shares in turn; for one, apply().
    static Closed<Real>
    close(DevicePeriodicM2l<Real>* m2l, const std::vector<Real>& M, int stride, int parts)
    {
        const Stream stream;
        const int n = m2l->coefficients();
        DeviceBuffer<Real> multipoles, locals;
        DeviceBuffer<double> virial;
        multipoles.upload(M.data(), M.size(), stream);
        locals.resize(M.size());
        virial.resize(StrainCount);
        virial.clear(stream);
        Closed<Real> result;
        const auto note = [&]
        {
            result.virials.emplace_back(StrainCount);
            virial.download(result.virials.back().data(), StrainCount, stream);
        };
        const auto forShares = [&](const auto& use)
        {
            for (int r = 0; r < parts; r++)
            {
                const Share share{ r, parts };
                m2l->prepare(share);
                use(share, static_cast<size_t>(share.begin(n)) * stride);
                stream.synchronize(); // the transforms of the next share take the place of these
            }
        };
        if (parts == 1)
        {
            LevelView<Real> level = {};
            level.stride          = stride;
            level.M               = multipoles.data();
            level.L               = locals.data();
            m2l->apply(level, 1, virial.data(), stream);
            note();
        }
        else
        {
            forShares([&](const Share& share, size_t first)
                      { m2l->forward(multipoles.data() + first, share, stream); });
            forShares(
                    [&](const Share& share, size_t /*first*/)
                    {
                        m2l->contract(share, 1, virial.data(), stream);
                        note();
                    });
            forShares([&](const Share& share, size_t /*first*/) { m2l->multiply(share, stream); });
            forShares([&](const Share& share, size_t first)
                      { m2l->backward(locals.data() + first, share, stream); });
        }
        result.L.resize(M.size());
        locals.download(result.L.data(), result.L.size(), stream);
        return result;
    }
};
TYPED_TEST_SUITE(GpuClosureInShares, Precisions);

/*! \brief Products are the same; transforms of fewer fields may add up in another order, and the virial
 *         does.
 *
 *  A transform adds up in as many stages as the number of cells has factors of two, at most, each of which
 *  rounds twice; there are two of them. Errors of n terms that do not depend on each other are as of one,
 *  relative to the sum; eight times as much is for the largest among all cells. */
TYPED_TEST(GpuClosureInShares, IsThatOfTheWhole)
{
    using Real = TypeParam;
    for (const Cells& c : chosen(cellsToShare()))
    {
        const Grid grid = gridOf(c);
        const Reduction reduction(c.order, true, grid.scaledEdges());
        const int cells  = static_cast<int>(grid.count());
        const int stride = (cells + c_warp - 1) / c_warp * c_warp;
        const int n      = coefficientCount(c.order);
        const Stream stream;
        DevicePeriodicM2l<Real> m2l(
                PeriodicM2lOperators<Real>(
                        grid, Boundary::Periodic, 1, reduction, 2 * virialOrder(reduction), 1),
                stride,
                stream);
        std::mt19937 random(23);
        std::uniform_real_distribution<Real> uniform(-1, 1);
        std::vector<Real> M(static_cast<size_t>(n) * stride, Real(0));
        for (int i = 0; i < n; i++)
        {
            std::generate_n(M.begin() + static_cast<size_t>(i) * stride,
                            cells,
                            [&] { return uniform(random); });
        }
        const Closed<Real> whole = TestFixture::close(&m2l, M, stride, 1);
        const double rounding    = std::numeric_limits<Real>::epsilon();
        const double relative    = 8 * rounding * 2 * 2 * (1 + std::log2(cells));
        for (const int parts : { 2, 3, 40 })
        {
            SCOPED_TRACE(std::string(c.name) + ", parts " + std::to_string(parts));
            const Closed<Real> shared = TestFixture::close(&m2l, M, stride, parts);
            for (int i = 0; i < n; i++)
            {
                const auto begin = whole.L.begin() + static_cast<size_t>(i) * stride;
                double largest   = 0;
                std::for_each(begin,
                              begin + cells,
                              [&](Real value) {
                                  largest = std::max(largest, static_cast<double>(std::abs(value)));
                              });
                for (int cell = 0; cell < cells; cell++)
                {
                    EXPECT_NEAR(shared.L[static_cast<size_t>(i) * stride + cell],
                                begin[cell],
                                relative * largest)
                            << "coefficient " << i << ", cell " << cell;
                }
            }
            for (int k = 0; k < StrainCount; k++)
            {
                double sum = 0; // of what the shares add, without signs
                for (int r = 0; r < parts; r++)
                {
                    sum += std::abs(shared.virials[r][k] - (r > 0 ? shared.virials[r - 1][k] : 0));
                }
                EXPECT_NEAR(shared.virials.back()[k], whole.virials[0][k], relative * sum)
                        << "component " << k;
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
