/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
// The tables of the symmetric M2L engine: what its kernel does with them, done on the host, against
// the sum over displacements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "m2l/symmetric_tables.h"

namespace farfield
{
namespace
{

//! Families of a periodic box, some parents absent.
struct Tree
{
    Grid parents;
    int ws, capacity;
    std::vector<Int3> parentOf;  //!< per family
    std::vector<int> familyOf;   //!< per parent cell, -1 for none
    std::vector<int> neighbours; //!< as Families::neighbours

    Tree(const IntMat& H, const Mat3& edges, int range, int every) :
        parents(H, hToBox(H, edges)), ws(range), familyOf(parents.count(), -1)
    {
        for (int cell = 0; cell < parents.count(); cell++)
        {
            if (every == 1 || cell % every != 1)
            {
                familyOf[cell] = static_cast<int>(parentOf.size());
                parentOf.push_back(parents.cell(cell));
            }
        }
        capacity    = (static_cast<int>(parentOf.size()) + c_warp - 1) / c_warp * c_warp;
        const int w = 2 * ws + 1;
        neighbours.assign(static_cast<size_t>(w) * w * w * capacity, -1);
        for (size_t f = 0; f < parentOf.size(); f++)
        {
            for (int x = -ws; x <= ws; x++)
            {
                for (int y = -ws; y <= ws; y++)
                {
                    for (int z = -ws; z <= ws; z++)
                    {
                        neighbours[neighbourIndex(ws, x, y, z) * capacity + f] =
                                neighbour(static_cast<int>(f), { x, y, z });
                    }
                }
            }
        }
    }
    static Mat3 hToBox(const IntMat& H, const Mat3& edges)
    {
        Mat3 h;
        h << H[0][0], H[0][1], H[0][2], H[1][0], H[1][1], H[1][2], H[2][0], H[2][1], H[2][2];
        return 2 * h * edges;
    }
    //! Family of the parent at -E.
    int neighbour(int family, const Int3& E) const
    {
        const Int3& p = parentOf[family];
        return familyOf[parents.index(parents.reduce({ p[0] - E[0], p[1] - E[1], p[2] - E[2] }))];
    }
};

//! L of all slots by the definition, [coefficient][8 capacity].
template<class Real>
std::vector<double> direct(const Tree& tree,
                           const ListM2lOperators<Real>& operators,
                           const std::vector<Real>& M)
{
    const int n      = coefficientCount(operators.order());
    const int stride = 8 * tree.capacity;
    std::vector<double> L(static_cast<size_t>(n) * stride, 0.0);
    for (size_t f = 0; f < tree.parentOf.size(); f++)
    {
        for (const auto& op : operators.operators())
        {
            for (int o = 0; o < 8; o++)
            {
                if (!op.from[o])
                {
                    continue;
                }
                const Int3 s = { (o & 1) - op.D[0], ((o >> 1) & 1) - op.D[1], (o >> 2) - op.D[2] };
                const int g  = tree.neighbour(
                        static_cast<int>(f),
                        { -floorDivide(s[0], 2), -floorDivide(s[1], 2), -floorDivide(s[2], 2) });
                if (g < 0)
                {
                    continue;
                }
                const int source =
                        ((s[0] & 1) | ((s[1] & 1) << 1) | ((s[2] & 1) << 2)) * tree.capacity + g;
                const int target = o * tree.capacity + static_cast<int>(f);
                for (int i = 0; i < n; i++)
                {
                    double sum = 0;
                    for (int j = 0; j < n; j++)
                    {
                        sum += static_cast<double>(op.T[static_cast<size_t>(i) * n + j])
                               * static_cast<double>(M[static_cast<size_t>(j) * stride + source]);
                    }
                    L[static_cast<size_t>(i) * stride + target] += sum;
                }
            }
        }
    }
    return L;
}

//! Chunk buffers and sums of a block of the kernel, one family at a time.
template<class Real>
class Emulation
{
public:
    Emulation(const Tree& tree, const ListM2lOperators<Real>& operators, size_t bytes) :
        tree_(tree), tables_(operators.order(), operators.ws(), operators.reflections()),
        plan_(tables_, bytes), operators_(plan_.pack(operators))
    {
    }

    std::vector<double> run(const std::vector<Real>& M, int splits)
    {
        const int n = plan_.coefficients;
        L_.assign(static_cast<size_t>(n) * 8 * tree_.capacity, 0.0);
        M_              = &M;
        const int units = plan_.columnGroups() * plan_.chunks();
        for (int family = 0; family < static_cast<int>(tree_.parentOf.size()); family++)
        {
            for (int octant = 0; octant < 8; octant++)
            {
                for (int split = 0; split < splits; split++)
                {
                    block(family, octant, units * split / splits, units * (split + 1) / splits);
                }
            }
        }
        return L_;
    }
    const SymmetricPlan<Real>& plan() const { return plan_; }

private:
    Packet<Real> multipoles(int group, SourceWord source, int family) const
    {
        Packet<Real> m  = {};
        const int e     = source.place() / c_warp;
        const int other = e < plan_.neighbours ? tree_.neighbours[e * tree_.capacity + family] : -1;
        for (int c = 0; c < Packet<Real>::c_size; c++)
        {
            const int column = plan_.columns[group * Packet<Real>::c_size + c];
            if (other >= 0 && column >= 0)
            {
                m.v[c] = (*M_)[static_cast<size_t>(column) * 8 * tree_.capacity
                               + source.octant() * tree_.capacity + other];
            }
        }
        return m;
    }

    template<int Bits>
    void transform(int group, const int* sources, int family, Packet<Real>* values) const
    {
        Packet<Real> m[1 << Bits];
        for (int k = 0; k < (1 << Bits); k++)
        {
            m[k] = multipoles(group, SourceWord{ sources[k] }, family);
        }
        hadamard<Bits>(m);
        std::copy(m, m + (1 << Bits), values);
    }

    void block(int family, int octant, int begin, int end)
    {
        constexpr int c_size = Packet<Real>::c_size;
        const int tiles      = static_cast<int>(plan_.tileClass.size());
        const int rows       = plan_.rowsPerTile;
        const int padded     = (rows + c_size - 1) / c_size * c_size;
        std::vector<Real> sum(static_cast<size_t>(tiles) * rows, Real(0));
        std::vector<Packet<Real>> W(plan_.maxValues);
        int columnClass = 0;
        for (int unit = begin; unit < end; unit++)
        {
            const int group = unit / plan_.chunks();
            const int chunk = unit % plan_.chunks();
            for (int orbit = plan_.chunkStart[chunk]; orbit < plan_.chunkStart[chunk + 1]; orbit++)
            {
                const OrbitRecord record(plan_.records[orbit]);
                const int* sources = plan_.sources.data() + (orbit * 8 + octant) * 8;
                ASSERT_LE(record.firstValue() + (1 << record.bits()), plan_.maxValues);
                Packet<Real>* values = W.data() + record.firstValue();
                switch (record.bits())
                {
                    case 0:
                        transform<0>(group, sources, family, values);
                        break;
                    case 1:
                        transform<1>(group, sources, family, values);
                        break;
                    case 2:
                        transform<2>(group, sources, family, values);
                        break;
                    default:
                        transform<3>(group, sources, family, values);
                        break;
                }
            }
            const int change = plan_.columnClass[group] ^ columnClass;
            columnClass ^= change;
            for (Real& s : sum)
            {
                s *= changesSign(change, octant, plan_.frameBits) ? Real(-1) : Real(1);
            }
            for (int tile = 0; tile < tiles; tile++)
            {
                if (plan_.tileClass[tile] < 0)
                {
                    continue;
                }
                const int kappa = plan_.tileClass[tile] ^ columnClass;
                const int word  = compressed(kappa);
                for (int orbit = plan_.chunkStart[chunk]; orbit < plan_.chunkStart[chunk + 1];
                     orbit++)
                {
                    const OrbitRecord record(plan_.records[orbit]);
                    if ((record.zeros() & kappa) != 0)
                    {
                        continue;
                    }
                    const Packet<Real>& w = W[valueIndex(word, record)];
                    const size_t position =
                            ((static_cast<size_t>(tile / plan_.tilesPerBlock) * plan_.columnGroups()
                              + group)
                                     * plan_.orbits
                             + orbit)
                                    * plan_.tilesPerBlock
                            + tile % plan_.tilesPerBlock;
                    const Real* T = operators_.data() + position * c_size * padded;
                    for (int c = 0; c < plan_.columnCount[group]; c++)
                    {
                        for (int r = 0; r < rows; r++)
                        {
                            sum[static_cast<size_t>(tile) * rows + r] += T[c * padded + r] * w.v[c];
                        }
                    }
                }
            }
        }
        for (int tile = 0; tile < tiles; tile++)
        {
            for (int r = 0; r < rows; r++)
            {
                const size_t k = static_cast<size_t>(tile) * rows + r;
                if (plan_.tileRows[k] >= 0)
                {
                    const bool minus = changesSign(
                            plan_.tileClass[tile] ^ columnClass, octant, plan_.frameBits);
                    L_[static_cast<size_t>(plan_.tileRows[k]) * 8 * tree_.capacity
                       + octant * tree_.capacity + family] += minus ? -sum[k] : sum[k];
                }
            }
        }
    }

    const Tree& tree_;
    SymmetryTables tables_;
    SymmetricPlan<Real> plan_;
    std::vector<Real> operators_;
    const std::vector<Real>* M_ = nullptr;
    std::vector<double> L_;
};

struct Case
{
    const char* name;
    int order, ws;
    IntMat H;
    Mat3 edges;
    int every; //!< one parent in so many is absent; 1: none
    int splits;
    size_t bytes;
};

Mat3 edgesOf(double xx, double yx, double yy, double zx, double zy, double zz)
{
    Mat3 e;
    e << xx, 0, 0, yx, yy, 0, zx, zy, zz;
    return e / std::cbrt(e.determinant());
}

template<class Real>
void expectSumOverDisplacements(const Case& c)
{
    const Reduction reduction(c.order, c.ws == 1, c.edges);
    const ListM2lOperators<Real> operators(c.edges, c.ws, reduction, 2);
    const Tree tree(c.H, c.edges, c.ws, c.every);
    const int n      = coefficientCount(c.order);
    const int stride = 8 * tree.capacity;
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<Real> M(static_cast<size_t>(n) * stride, Real(0));
    for (int j = 0; j < n; j++)
    {
        for (int o = 0; o < 8; o++)
        {
            for (size_t f = 0; f < tree.parentOf.size(); f++)
            {
                M[static_cast<size_t>(j) * stride + o * tree.capacity + f] =
                        static_cast<Real>(uniform(random) * std::pow(0.5, degreeOf(j)));
            }
        }
    }
    const std::vector<double> expected = direct(tree, operators, M);
    Emulation<Real> emulation(tree, operators, c.bytes);
    const std::vector<double> found = emulation.run(M, c.splits);
    // rounding of sums of some thousand terms; each row has its own scale
    const double epsilon = std::numeric_limits<Real>::epsilon();
    for (int i = 0; i < n; i++)
    {
        double scale = 0;
        for (int s = 0; s < stride; s++)
        {
            scale = std::max(scale, std::abs(expected[static_cast<size_t>(i) * stride + s]));
        }
        for (int s = 0; s < stride; s++)
        {
            ASSERT_NEAR(found[static_cast<size_t>(i) * stride + s],
                        expected[static_cast<size_t>(i) * stride + s],
                        200 * epsilon * (scale + 1e-30))
                    << c.name << " coefficient " << i << " slot " << s;
        }
    }
}

const Mat3 c_brick   = edgesOf(1, 0, 1.1, 0, 0, 0.93);
const Mat3 c_sheared = edgesOf(1, 0.07, 1.04, -0.05, 0.06, 0.98);

const IntMat c_two     = { Int3{ 2, 0, 0 }, Int3{ 0, 2, 0 }, Int3{ 0, 0, 2 } };
const IntMat c_one     = { Int3{ 1, 0, 0 }, Int3{ 0, 1, 0 }, Int3{ 0, 0, 1 } };
const IntMat c_uneven  = { Int3{ 5, 0, 0 }, Int3{ 0, 3, 0 }, Int3{ 0, 0, 1 } };
const IntMat c_slanted = { Int3{ 3, 0, 0 }, Int3{ 1, 3, 0 }, Int3{ -1, 1, 2 } };

class SymmetricM2lTables : public ::testing::TestWithParam<Case>
{
};

TEST_P(SymmetricM2lTables, GiveTheSumOverDisplacements)
{
    expectSumOverDisplacements<double>(GetParam());
    expectSumOverDisplacements<float>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
        Shapes,
        SymmetricM2lTables,
        ::testing::Values(Case{ "charges", 0, 1, c_uneven, c_brick, 1, 1, 72 * 1024 },
                          Case{ "dipoles", 1, 1, c_two, c_brick, 1, 3, 72 * 1024 },
                          Case{ "gaps", 3, 1, c_uneven, c_brick, 3, 2, 72 * 1024 },
                          Case{ "standard", 8, 1, c_two, c_brick, 5, 5, 72 * 1024 },
                          Case{ "one parent", 5, 1, c_one, c_brick, 1, 2, 48 * 1024 },
                          Case{ "wide", 3, 2, c_uneven, c_brick, 4, 7, 72 * 1024 },
                          Case{ "sheared", 3, 1, c_slanted, c_sheared, 4, 3, 72 * 1024 },
                          Case{ "sheared standard", 8, 1, c_one, c_sheared, 1, 4, 49 * 1024 },
                          Case{ "sheared wide", 2, 2, c_slanted, c_sheared, 5, 2, 72 * 1024 },
                          Case{ "sheared one parent", 0, 1, c_one, c_sheared, 1, 1, 1 }),
        [](const auto& info)
        {
            std::string name = info.param.name;
            std::replace(name.begin(), name.end(), ' ', '_');
            return name;
        });

TEST(SymmetryTables, LeaveFewerProductsThanDisplacements)
{
    EXPECT_EQ(56u, SymmetryTables(2, 1, true).orbits().size());
    EXPECT_EQ(189u, SymmetryTables(2, 2, true).orbits().size());
    EXPECT_EQ(158u, SymmetryTables(2, 1, false).orbits().size());
    // a target has 189 sources in either case
    for (bool reflections : { true, false })
    {
        const SymmetryTables tables(2, 1, reflections);
        for (int octant = 0; octant < 8; octant++)
        {
            int sources = 0;
            for (const Orbit& orbit : tables.orbits())
            {
                for (int k = 0; k < (1 << orbit.bits); k++)
                {
                    sources += (orbit.sources[octant][k] >> 3) < tables.neighbours() ? 1 : 0;
                }
            }
            EXPECT_EQ(189, sources) << "octant " << octant;
        }
    }
}

TEST(SymmetricPlan, StaysWithinSharedMemory)
{
    for (int order = 0; order <= 20; order++)
    {
        for (int ws : { 1, 2 })
        {
            for (bool reflections : { true, false })
            {
                const SymmetryTables tables(order, ws, reflections);
                const SymmetricPlan<float> single(tables, 72 * 1024);
                EXPECT_LE(single.sharedBytes(), 72u * 1024u) << "order " << order << " ws " << ws;
                // the smallest GPUs
                const SymmetricPlan<double> twofold(tables, 64 * 1024);
                EXPECT_LE(twofold.sharedBytes(), 64u * 1024u) << "order " << order << " ws " << ws;
                EXPECT_LE(single.tilesPerBlock, c_maxTilesPerBlock);
            }
        }
    }
}

/*! \brief Plans of one kernel need shared memory of different sizes: how much a kernel may have is
 *         not a matter of one plan. LiveSolvers has solvers of these orders at once. */
TEST(SymmetricPlan, SharesItsKernelWithPlansOfOtherSizes)
{
    const auto expectOneKernel = [](auto real, int order, int other)
    {
        using Real = decltype(real);
        const SymmetricPlan<Real> a(SymmetryTables(order, 1, true), 72 * 1024);
        const SymmetricPlan<Real> b(SymmetryTables(other, 1, true), 72 * 1024);
        EXPECT_EQ(a.rowsPerTile, b.rowsPerTile) << "orders " << order << " and " << other;
        EXPECT_NE(a.sharedBytes(), b.sharedBytes()) << "orders " << order << " and " << other;
    };
    for (const auto& [order, other] : { std::pair(5, 6), std::pair(7, 8), std::pair(8, 9) })
    {
        expectOneKernel(float(), order, other);
        expectOneKernel(double(), order, other);
    }
}

} // namespace
} // namespace farfield
