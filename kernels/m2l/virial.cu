/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The virial of M2L over interaction lists.
 *
 *  sum M(target) dT_c(D) M(source) over all pairs is, for five derivatives dT_c of every operator,
 *  five times the work of M2L. Summed over families first, it is one product: with X the 8 x n rows
 *  of M and X_E those of the families whose parents are displaced by E,
 *
 *      G_E = X X_E^T,      sum_c = sum_E sum_(o,s) sum_ij (G_E)_(o,i),(s,j) dT_c(2E + o - s)_ij.
 *
 *  dT_c(-D)_ij = (-1)^(l_i + l_j) dT_c(D)_ij = dT_c(D)_ji: half of the displacements are stored,
 *  and half of the E suffice.
 */
#include "m2l/m2l.h"

#include <algorithm>
#include <vector>

#include "m2l/family_basis.h"
#include "runtime/blas.h"

namespace farfield
{
namespace
{

//! Gathered multipoles, and G, of this many displacements of parents at a time.
constexpr size_t c_groupBytes = size_t(256) << 20;
constexpr int c_threads       = 256;
//! Parts of the elements of one displacement.
constexpr int c_shares = 4;

//! One of the E, and where dT of 2E + d are found.
struct ParentDisplacement
{
    int neighbour;     //!< neighbourIndex()
    int operators[27]; //!< of d, d_x fastest; -1 for near cells
    int inverted;      //!< bits: whether the opposite displacement is stored
};

//! Rows [octant][coefficient] of M of displaced families, zero where there are none; in blockIdx.z
//! the displacement, with none at all for the last.
template<class Real>
__global__ void displaceKernel(int n,
                               const ParentDisplacement* displacements,
                               int displacementCount,
                               const Real* M,
                               int stride,
                               int capacity,
                               const int* count,
                               const int* neighbours,
                               Real* to)
{
    const int family = blockIdx.x * blockDim.x + threadIdx.x;
    if (family >= capacity)
    {
        return;
    }
    const int z = blockIdx.z;
    int from    = -1;
    if (family < *count)
    {
        from = family;
        if (z < displacementCount)
        {
            from = neighbours[static_cast<size_t>(displacements[z].neighbour) * capacity + family];
        }
    }
    const int row    = blockIdx.y;
    const int octant = row / n;
    const int i      = row - octant * n;
    to[(static_cast<size_t>(z) * gridDim.y + row) * capacity + family] =
            from >= 0 ? M[static_cast<size_t>(i) * stride + octant * capacity + from] : Real(0);
}

/*! \brief Adds scale sum G dT; blocks take shares of the 27 d of all displacements.
 *
 *  \param[in] G  [8 n][displacements][8 n], rows target */
template<class Real>
__global__ void __launch_bounds__(c_threads) contractKernel(int n,
                                                            const ParentDisplacement* displacements,
                                                            int displacementCount,
                                                            int shares,
                                                            const unsigned char* bits,
                                                            const Real* G,
                                                            const Real* derivatives,
                                                            double scale,
                                                            double* virial,
                                                            OrderedSums::View sums)
{
    const int size            = n * n;
    const size_t stride       = static_cast<size_t>(displacementCount) * 8 * n;
    double total[StrainCount] = {};
    for (int part = blockIdx.x; part < shares * 27 * displacementCount; part += gridDim.x)
    {
        const int share  = part % shares;
        const int d      = part / shares % 27;
        const int k      = part / shares / 27;
        const int stored = displacements[k].operators[d];
        if (stored < 0)
        {
            continue;
        }
        const bool inverted   = (displacements[k].inverted >> d) & 1;
        const int step[3]     = { d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1 };
        const Real* own       = derivatives + static_cast<size_t>(stored) * StrainCount * size;
        Real sum[StrainCount] = {};
        for (int element = share * c_threads + threadIdx.x; element < size;
             element += shares * c_threads)
        {
            const int i = element / n;
            const int j = element - i * n;
            Real g      = 0;
            for (int o = 0; o < 8; o++)
            {
                // source octant o - d, if there is one
                const int x = (o & 1) - step[0], y = ((o >> 1) & 1) - step[1],
                          z = (o >> 2) - step[2];
                if (((x | y | z) & ~1) == 0)
                {
                    const int s = x | (y << 1) | (z << 2);
                    g += G[(static_cast<size_t>(o) * n + i) * stride
                           + (static_cast<size_t>(k) * 8 + s) * n + j];
                }
            }
            if (inverted && FamilyBasis::parity(bits[i] ^ bits[j]))
            {
                g = -g;
            }
            for (int c = 0; c < StrainCount; c++)
            {
                sum[c] += g * own[static_cast<size_t>(c) * size + element];
            }
        }
        for (int c = 0; c < StrainCount; c++)
        {
            total[c] += scale * static_cast<double>(sum[c]);
        }
    }
    double* to[StrainCount];
    for (int c = 0; c < StrainCount; c++)
    {
        to[c] = virial + c;
    }
    addInOrder<StrainCount>(total, sums, to);
}

} // namespace

template<class Real>
struct DeviceM2lVirial<Real>::Impl
{
    int n = 0;
    Blas blas;
    int displacementCount = 0;
    DeviceBuffer<ParentDisplacement> displacements;
    DeviceBuffer<unsigned char> bits; //!< reflectionBits()
    DeviceBuffer<Real> derivatives;   //!< [half of the operators][StrainCount][n][n]
    DeviceBuffer<Real> gathered;      //!< [displacements of a group + 1][8 n][capacity]
    DeviceBuffer<Real> G;             //!< [8 n][displacements of a group][8 n]
};

template<class Real>
DeviceM2lVirial<Real>::DeviceM2lVirial() = default;
template<class Real>
DeviceM2lVirial<Real>::~DeviceM2lVirial() = default;

template<class Real>
void DeviceM2lVirial<Real>::setOperators(const ListM2lOperators<Real>& operators,
                                         cudaStream_t stream)
{
    if (!impl_)
    {
        impl_ = std::make_unique<Impl>();
    }
    impl_->n                              = coefficientCount(operators.order());
    const std::vector<unsigned char> bits = reflectionBits(operators.order());
    impl_->bits.upload(bits.data(), bits.size(), stream);

    // of two opposite displacements the one found later stands for both
    const auto& all = operators.operators();
    std::vector<int> stored(all.size(), -1), kept;
    for (size_t k = 0; k < all.size(); k++)
    {
        const Int3& D = all[k].D;
        if (operators.find({ -D[0], -D[1], -D[2] }) < static_cast<int>(k))
        {
            stored[k] = static_cast<int>(kept.size());
            kept.push_back(static_cast<int>(k));
        }
    }
    const size_t size = static_cast<size_t>(impl_->n) * impl_->n;
    impl_->derivatives.resize(kept.size() * StrainCount * size);
    Real* to = impl_->derivatives.data();
    for (int k : kept)
    {
        for (const auto& derivative : operators.strainDerivatives(k))
        {
            copyAsync(to, derivative.data(), size, stream, "copying to the GPU");
            to += size;
        }
    }

    std::vector<ParentDisplacement> displacements;
    const int ws    = operators.ws();
    const int width = 2 * ws + 1;
    // neighbourIndex() counts up, and 0 is in the middle
    for (int index = width * width * width / 2 + 1; index < width * width * width; index++)
    {
        const int E[3]                  = { index % width - ws,
                                            index / width % width - ws,
                                            index / width / width - ws };
        ParentDisplacement displacement = {};
        displacement.neighbour          = neighbourIndex(ws, E[0], E[1], E[2]);
        for (int d = 0; d < 27; d++)
        {
            const Int3 D = { 2 * E[0] + d % 3 - 1, 2 * E[1] + d / 3 % 3 - 1, 2 * E[2] + d / 9 - 1 };
            const int k  = operators.find(D);
            displacement.operators[d] = -1;
            if (k >= 0 && stored[k] >= 0)
            {
                displacement.operators[d] = stored[k];
            }
            else if (k >= 0)
            {
                displacement.operators[d] = stored[operators.find({ -D[0], -D[1], -D[2] })];
                displacement.inverted |= 1 << d;
            }
        }
        displacements.push_back(displacement);
    }
    impl_->displacementCount = static_cast<int>(displacements.size());
    impl_->displacements.upload(displacements.data(), displacements.size(), stream);
}

template<class Real>
void DeviceM2lVirial<Real>::apply(const LevelView<Real>& level,
                                  const Families& families,
                                  double scale,
                                  double* virial,
                                  OrderedSums* scratch,
                                  cudaStream_t stream)
{
    const int capacity = families.capacity;
    if (capacity == 0)
    {
        return;
    }
    Impl& my          = *impl_;
    const size_t rows = 8 * static_cast<size_t>(my.n);
    const size_t each = rows * (rows + capacity) * sizeof(Real);
    const int group   = static_cast<int>(
            std::min<size_t>(std::max<size_t>(c_groupBytes / each, 1), my.displacementCount));
    my.gathered.resize(std::max(my.gathered.size(), (group + 1) * rows * capacity));
    my.G.resize(std::max(my.G.size(), group * rows * rows));
    my.blas.use(stream);
    for (int first = 0; first < my.displacementCount; first += group)
    {
        const int count                         = std::min(group, my.displacementCount - first);
        const ParentDisplacement* displacements = my.displacements.data() + first;
        const dim3 blocks(
                blocksFor(capacity, c_threads), static_cast<unsigned int>(rows), count + 1);
        displaceKernel<<<blocks, c_threads, 0, stream>>>(my.n,
                                                         displacements,
                                                         count,
                                                         level.M,
                                                         level.stride,
                                                         capacity,
                                                         families.count,
                                                         families.neighbours,
                                                         my.gathered.data());
        checkLaunch("gathering multipoles for the virial");
        const int leading = static_cast<int>(count * rows);
        my.blas.template multiply<Real>(
                leading,
                static_cast<int>(rows),
                capacity,
                { my.gathered.data(), capacity, 0 },
                { my.gathered.data() + count * rows * capacity, capacity, 0 },
                Real(0),
                { my.G.data(), leading, 0 },
                1,
                false);
        // the E left out contribute the same again
        const int shares =
                std::min(c_shares, blocksFor(static_cast<long long>(my.n) * my.n, c_threads));
        contractKernel<<<std::min(shares * 27 * count, OrderedSums::c_maxBlocks),
                         c_threads,
                         0,
                         stream>>>(my.n,
                                   displacements,
                                   count,
                                   shares,
                                   my.bits.data(),
                                   my.G.data(),
                                   my.derivatives.data(),
                                   0.5 * scale,
                                   virial,
                                   scratch->view());
        checkLaunch("virial of M2L");
    }
}

template class DeviceM2lVirial<float>;
template class DeviceM2lVirial<double>;

} // namespace farfield
