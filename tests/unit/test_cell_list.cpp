/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Invariants of the cell list of the CPU.
 */
#include "cpu/cell_list.h"

#include <cmath>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "farfield/farfield.h"

namespace farfield
{
namespace test
{
namespace
{

//! Cells of a box in the frame of the operators, and where they lie.
struct Cells
{
    const char* name;
    IntMat H;
    Mat3 edges; //!< nm
    std::array<double, 3> offset;
    double turn; //!< angle of the rotation to the caller's frame
    int particles;
    int images; //!< positions are up to so many boxes away
};

std::vector<Cells> cases()
{
    Mat3 cube = 0.4 * Mat3::Identity(), skewed;
    skewed << 0.5, 0, 0, 0.2, 0.4, 0, -0.23, 0.19, 0.45;
    const IntMat one      = { { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } };
    const IntMat straight = { { { 4, 0, 0 }, { 0, 5, 0 }, { 0, 0, 3 } } };
    const IntMat oblique  = { { { 4, 0, 0 }, { -2, 5, 0 }, { 1, 2, 3 } } };
    return { { "one cell", one, cube, { 0, 0, 0 }, 0, 50, 1 },
             { "no particles", straight, cube, { 0, 0, 0 }, 0, 0, 1 },
             { "few particles", oblique, skewed, { 0.3, 0.9, 0.1 }, 0, 3, 1 },
             { "straight", straight, cube, { 0, 0, 0 }, 0, 1000, 0 },
             { "oblique", oblique, skewed, { 0, 0, 0 }, 0, 1000, 1 },
             { "offset", oblique, skewed, { 0.25, 0.999, 0.5 }, 0, 1000, 1 },
             { "rotated", oblique, skewed, { 0.25, 0.1, 0.5 }, 0.02, 1000, 1 },
             { "far images", oblique, skewed, { 0.25, 0.1, 0.5 }, 0.02, 1000, 100000 } };
}

Grid gridOf(const Cells& c)
{
    Mat3 rows;
    for (int k = 0; k < 9; ++k)
    {
        rows(k / 3, k % 3) = c.H[k / 3][k % 3];
    }
    return Grid(c.H, rows * c.edges);
}

Mat3 rotationOf(const Cells& c)
{
    return Eigen::AngleAxisd(c.turn, Vec3(1, 2, -2).normalized()).toRotationMatrix();
}

//! Positions in the caller's frame, [n][3].
template<class Real>
std::vector<Real> positionsOf(const Cells& c)
{
    std::mt19937 random(23);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::uniform_int_distribution<int> image(-c.images, c.images);
    const Mat3 box = gridOf(c).box() * rotationOf(c);
    std::vector<Real> x;
    for (int i = 0; i < c.particles; ++i)
    {
        Vec3 s;
        for (int k = 0; k < 3; ++k)
        {
            // some on faces of cells
            const double inside =
                    i % 7 == k ? (random() % c.H[k][k]) / double(c.H[k][k]) : uniform(random);
            s[k] = inside + image(random);
        }
        const Vec3 r = box.transpose() * s;
        x.insert(x.end(),
                 { static_cast<Real>(r[0]), static_cast<Real>(r[1]), static_cast<Real>(r[2]) });
    }
    return x;
}

//! Those of a particle tell its number.
template<class Real>
ScaledCharges<Real> chargesOf(const Cells& c)
{
    std::vector<Real> q(c.particles);
    for (int i = 0; i < c.particles; ++i)
    {
        q[i] = static_cast<Real>(i + 1);
    }
    return ScaledCharges<Real>(q.data(), c.particles, 1.0);
}

template<class Real>
class CellLists : public testing::Test
{
public:
    static CellList<Real> listOf(const Cells& c, int threads)
    {
        CellList<Real> list;
        Team team(threads);
        list.sort(gridOf(c),
                  c.offset,
                  rotationOf(c),
                  positionsOf<Real>(c).data(),
                  chargesOf<Real>(c),
                  &team);
        return list;
    }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(CellLists, Reals);

TYPED_TEST(CellLists, HoldEveryParticleOnceInItsOrder)
{
    for (const Cells& c : cases())
    {
        SCOPED_TRACE(c.name);
        const Grid grid = gridOf(c);
        const auto list = this->listOf(c, 2);
        ASSERT_EQ(static_cast<long long>(list.start().size()), grid.count() + 1);
        EXPECT_EQ(list.start().front(), 0);
        EXPECT_EQ(list.start().back(), c.particles);
        std::vector<int> occupied, seen(c.particles, 0);
        for (int cell = 0; cell < grid.count(); ++cell)
        {
            const int begin = list.start()[cell], end = list.start()[cell + 1];
            ASSERT_LE(begin, end);
            if (end > begin)
            {
                occupied.push_back(cell);
            }
            EXPECT_TRUE(std::is_sorted(list.atom().begin() + begin, list.atom().begin() + end));
        }
        EXPECT_EQ(list.occupied(), occupied);
        for (int to = 0; to < c.particles; ++to)
        {
            ++seen.at(list.atom()[to]);
            EXPECT_EQ(list.particles().q[to], TypeParam(list.atom()[to] + 1));
        }
        EXPECT_EQ(seen, std::vector<int>(c.particles, 1));
    }
}

//! Cell centre + relative position + offset is the input but for box vectors.
TYPED_TEST(CellLists, ReproducePositionsModuloTheBox)
{
    using Real = TypeParam;
    for (const Cells& c : cases())
    {
        SCOPED_TRACE(c.name);
        const Grid grid           = gridOf(c);
        const Mat3 rotation       = rotationOf(c);
        const std::vector<Real> x = positionsOf<Real>(c);
        const auto list           = this->listOf(c, 1);
        const auto p              = list.particles();
        const Mat3 inverseBox     = grid.box().inverse();
        for (int cell = 0; cell < grid.count(); ++cell)
        {
            const Int3 index = grid.cell(cell);
            for (int to = list.start()[cell]; to < list.start()[cell + 1]; ++to)
            {
                const int i = list.atom()[to];
                const Eigen::RowVector3d input(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
                const Eigen::RowVector3d inFrame = input * rotation.transpose();
                const Eigen::RowVector3d relative(p.x[to], p.y[to], p.z[to]);
                const Eigen::RowVector3d inCell = relative * grid.inverseEdges();
                // rounding of the relative position, and of a position in double precision in cells
                const double unit = 4 * std::numeric_limits<Real>::epsilon()
                                    + 16 * std::numeric_limits<double>::epsilon()
                                              * (1 + inFrame.norm() / grid.unit());
                Eigen::RowVector3d sum;
                for (int k = 0; k < 3; ++k)
                {
                    EXPECT_LE(std::abs(inCell[k]), 0.5 + unit) << "particle " << i;
                    sum[k] = index[k] + 0.5 + c.offset[k] + inCell[k];
                }
                const Eigen::RowVector3d turns = (sum * grid.edges() - inFrame) * inverseBox;
                for (int k = 0; k < 3; ++k)
                {
                    EXPECT_NEAR(turns[k], std::round(turns[k]), unit) << "particle " << i;
                }
            }
        }
    }
}

TYPED_TEST(CellLists, DoNotDependOnTheNumberOfThreads)
{
    for (const Cells& c : cases())
    {
        SCOPED_TRACE(c.name);
        const auto one = this->listOf(c, 1);
        for (const int threads : { 2, 3, 7 })
        {
            const auto many = this->listOf(c, threads);
            EXPECT_EQ(many.start(), one.start());
            EXPECT_EQ(many.atom(), one.atom());
            EXPECT_EQ(many.occupied(), one.occupied());
            const auto a = one.particles(), b = many.particles();
            EXPECT_TRUE(std::equal(a.x, a.x + c.particles, b.x));
            EXPECT_TRUE(std::equal(a.y, a.y + c.particles, b.y));
            EXPECT_TRUE(std::equal(a.z, a.z + c.particles, b.z));
            EXPECT_TRUE(std::equal(a.q, a.q + c.particles, b.q));
        }
    }
}

//! A list that was used before, for more particles in more cells.
TYPED_TEST(CellLists, MayBeSortedAgain)
{
    using Real             = TypeParam;
    std::vector<Cells> all = cases();
    std::reverse(all.begin(), all.end());
    CellList<Real> used;
    for (const Cells& c : all)
    {
        SCOPED_TRACE(c.name);
        const std::vector<Real> x = positionsOf<Real>(c);
        Team team(2);
        used.sort(gridOf(c), c.offset, rotationOf(c), x.data(), chargesOf<Real>(c), &team);
        const auto fresh = this->listOf(c, 2);
        EXPECT_EQ(used.start(), fresh.start());
        EXPECT_EQ(used.atom(), fresh.atom());
        EXPECT_EQ(used.occupied(), fresh.occupied());
    }
}

//! Positions as they were given, to the last bit, beside those in cells.
TYPED_TEST(CellLists, KeepWhatIsGiven)
{
    using Real = TypeParam;
    for (const Cells& c : cases())
    {
        SCOPED_TRACE(c.name);
        const std::vector<Real> x = positionsOf<Real>(c);
        Team team(2);
        CellList<Real> list;
        list.keepGiven(true);
        list.sort(gridOf(c), c.offset, rotationOf(c), x.data(), chargesOf<Real>(c), &team);
        const auto plain = this->listOf(c, 2);
        ASSERT_EQ(list.atom(), plain.atom());
        const auto a = list.particles(), b = plain.particles(), given = list.given();
        EXPECT_TRUE(std::equal(a.x, a.x + list.atom().size(), b.x));
        for (size_t to = 0; to < list.atom().size(); ++to)
        {
            const Real* r = &x[3 * static_cast<size_t>(list.atom()[to])];
            EXPECT_TRUE(given.x[to] == r[0] && given.y[to] == r[1] && given.z[to] == r[2]);
            EXPECT_EQ(given.q[to], plain.particles().q[to]);
        }
    }
}

//! Particles without a charge are not there, wherever they are.
TYPED_TEST(CellLists, HoldChargesAlone)
{
    using Real = TypeParam;
    for (const Cells& c : cases())
    {
        if (c.particles == 0)
        {
            continue; // where none has a charge, all take part
        }
        SCOPED_TRACE(c.name);
        // neutral particles between the others, before the first and behind the last
        std::vector<Real> x, q;
        std::vector<int> charged;
        const auto addNeutral = [&]
        {
            q.push_back(0);
            x.insert(x.end(), 3, std::numeric_limits<Real>::quiet_NaN());
        };
        const std::vector<Real> alone = positionsOf<Real>(c);
        for (int i = 0; i < c.particles; ++i)
        {
            if (i % 3 == 0)
            {
                addNeutral();
            }
            charged.push_back(static_cast<int>(q.size()));
            q.push_back(static_cast<Real>(i + 1));
            x.insert(x.end(), &alone[3 * i], &alone[3 * i] + 3);
        }
        addNeutral();
        const ScaledCharges<Real> charges(q.data(), static_cast<int>(q.size()), 1.0);
        for (const int threads : { 1, 3 })
        {
            CellList<Real> list;
            Team team(threads);
            list.sort(gridOf(c), c.offset, rotationOf(c), x.data(), charges, &team);
            const auto expected = this->listOf(c, threads);
            EXPECT_EQ(list.start(), expected.start());
            EXPECT_EQ(list.occupied(), expected.occupied());
            ASSERT_EQ(list.atom().size(), expected.atom().size());
            const auto a = list.particles(), b = expected.particles();
            for (int to = 0; to < c.particles; ++to)
            {
                EXPECT_EQ(list.atom()[to], charged[expected.atom()[to]]);
            }
            EXPECT_TRUE(std::equal(a.x, a.x + c.particles, b.x));
            EXPECT_TRUE(std::equal(a.q, a.q + c.particles, b.q));
        }
    }
}

TYPED_TEST(CellLists, NameTheFirstPositionThatIsNotFinite)
{
    using Real    = TypeParam;
    const Cells c = cases()[4];
    for (const Real bad : { std::numeric_limits<Real>::quiet_NaN(),
                            std::numeric_limits<Real>::infinity(),
                            static_cast<Real>(1e30) })
    {
        std::vector<Real> x = positionsOf<Real>(c);
        x[3 * 900 + 1] = x[3 * 77 + 2] = bad;
        CellList<Real> list;
        for (const int threads : { 1, 3 })
        {
            try
            {
                Team team(threads);
                list.sort(gridOf(c), c.offset, rotationOf(c), x.data(), chargesOf<Real>(c), &team);
                ADD_FAILURE() << "no error";
            }
            catch (const Error& error)
            {
                EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
                EXPECT_NE(std::string(error.what()).find("particle 77 "), std::string::npos)
                        << error.what();
            }
        }
    }
}

} // namespace
} // namespace test
} // namespace farfield
