/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief M2L over interaction lists as matrix products, families as columns.
 *
 *  Four steps, see family_basis.h for the symmetries that they use:
 *      transform  multipoles of a family to X^, one row per family
 *      gather     X^ of the families displaced by an orbit to Y, the operand of the product
 *      product    L^ = T^ Y, one per class of rows; parts of the inner dimension are products of
 *                 their own where there are few columns, so that all multiprocessors have work
 *      scatter    sums the parts and transforms back to the octants.
 *
 *  With n coefficients the product takes 2 (8n)^2 / classes operations per family and displacement
 *  of parents. Y is written and read once and is of the size of all multipoles times the number of
 *  displacements: columns are taken in chunks for which it stays in the L2 cache.
 */
#include <climits>

#include <algorithm>

#include "m2l/engines.h"
#include "m2l/family_basis.h"
#include "runtime/blas.h"

namespace farfield
{
namespace
{

/*! \brief How operands are given to the product.
 *
 *  Tensor cores read 11 significant bits of a float (TF32). Rounding to them is off by 2e-4
 *  (2^-11 / sqrt(3), averaged over mantissas), in both operands and independently, so L by 3e-4 of
 *  the root of the sum of its squared contributions. Forces, to which near cells and finer levels
 *  contribute as well, are off by 1e-4; energies, in which multipoles of low degree weigh more, by
 *  up to 5e-3 of ions without order.
 *
 *  What rounding leaves is multiplied too, by twice the work for as many coefficients: for all of
 *  them, 2^-22 is left, or only for those of low degree, which are most of an expansion: every
 *  degree adds a factor of about a half. */
enum class Format
{
    Native, //!< the arithmetic of Real
    Tf32    //!< rounded, with the remainders of some coefficients
};

//! Without remainders where rounding may cause this relative error of forces: five times what it
//! does, for the sake of energies.
constexpr double c_tf32Rounding = 5e-4;
//! With those of the coefficients of low degree where it may cause this.
constexpr double c_lowDegreeRounding = 5e-5;
//! Coefficients of low degree: 0 to 3.
constexpr int c_lowDegree = 16;

/*! \brief Longest sum of products of rounded operands.
 *
 *  Tensor cores cut off what does not fit into the sum (Ootomo and Yokota, Int. J. High Perform.
 *  Comput. Appl. 36, 475 (2022), doi:10.1177/10943420221090256). Every eight terms that costs up to
 *  2^-24 of the sum, always towards zero: 1e-5 in all here, 4e-5 measured at four times the length,
 *  in the potential of ions with a net charge. Parts are added by rounding. */
constexpr int c_longestSum = 2560;

//! Operands that should stay in the cache, and that have to fit into memory.
constexpr size_t c_cachedBytes = size_t(48) << 20;
constexpr size_t c_mostBytes   = size_t(256) << 20;
constexpr int c_fewColumns     = 256; //!< too few columns cost more than the cache gains

//! The columns of one product and the parts into which its inner dimension is split.
struct Chunk
{
    int first;   //!< family of the first column
    int columns; //!< a multiple of c_warp
    int parts;
    int unitsPerPart;
};

//! The nearest number with 11 significant bits.
__device__ __forceinline__ float roundToTf32(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned int bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
#else
    return x; // never used, see GemmM2l()
#endif
}

//! The remainders of an operand, [...][units][2 rows]: behind each other those of a unit that are
//! kept and the rounded numbers that they are multiplied with, in either order.
template<class Real>
struct Remainders
{
    int coefficients; //!< of each character, those of the lowest degrees; 0: none
    int rows;         //!< of a unit, a multiple of 4
    Real* Y;
    Real* T;

    FARFIELD_HD int stretch() const { return 2 * rows; }
};

//! A number as tensor cores read it, and what that leaves.
template<Format format, class Real>
struct Rounded
{
    Real high, rest;

    __device__ explicit Rounded(Real value)
    {
        if constexpr (format == Format::Native)
        {
            high = value;
            rest = 0;
        }
        else
        {
            high = roundToTf32(value);
            rest = roundToTf32(value - high);
        }
    }
};

//! The operators of an orbit from those of its first displacement, T [27][n][n]: a thread makes
//! the 64 blocks of one pair of coefficients.
template<Format format, class Real>
__global__ void operatorKernel(FamilyBasis basis,
                               FamilyOrbit orbit,
                               const unsigned char* bits,
                               const Real* T,
                               Real* to,
                               Remainders<Real> remainders)
{
    const int size    = basis.n * basis.n;
    const int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= size)
    {
        return;
    }
    const int i = element / basis.n;
    const int j = element % basis.n;
    // differences of neighbouring operators: in double, once per set-up
    double v[27];
    for (int d = 0; d < 27; d++)
    {
        v[d] = T[static_cast<size_t>(d) * size + element];
    }
    for (int a = 0; a < 8; a++)
    {
        // units of this row
        const size_t units = (static_cast<size_t>(basis.memberOf(a) * basis.n + i) * basis.classes
                              + basis.classOf(a))
                             * basis.paddedUnits;
        for (int source = 0; source < 8; source++)
        {
            const int shift = basis.classOf(a) ^ basis.classOf(source);
            for (int g = 0; g < (1 << orbit.bits); g++)
            {
                if (orbit.shift[g] == shift)
                {
                    const double value = basisElement(v, a ^ bits[i], source ^ bits[j]);
                    const size_t unit  = units + orbit.unit + g;
                    const Rounded<format, Real> rounded(static_cast<Real>(value));
                    to[unit * basis.padded + basis.memberOf(source) * basis.n + j] = rounded.high;
                    if (j < remainders.coefficients)
                    {
                        Real* own = remainders.T + unit * remainders.stretch()
                                    + basis.memberOf(source) * remainders.coefficients + j;
                        own[0]               = rounded.high;
                        own[remainders.rows] = rounded.rest;
                    }
                }
            }
        }
    }
}

//! Coefficients of a block of transformKernel().
constexpr int c_transformRows = 8;

//! X^ [families][basis.width()] from M; blocks of (c_warp, c_transformRows).
template<class Real>
__global__ void __launch_bounds__(c_warp* c_transformRows)
        transformKernel(FamilyBasis basis,
                        const Real* M,
                        int stride,
                        int capacity,
                        const int* count,
                        const unsigned char* bits,
                        Real* X)
{
    __shared__ Real tile[8][c_warp][c_transformRows + 1];
    const int family0 = blockIdx.x * c_warp;
    if (family0 >= *count)
    {
        return;
    }
    const int row0 = blockIdx.y * c_transformRows;
    {
        const int row    = row0 + threadIdx.y;
        const int family = family0 + threadIdx.x;
        Real v[8];
#pragma unroll
        for (int o = 0; o < 8; o++)
        {
            v[o] = (row < basis.n && family < *count)
                           ? M[static_cast<size_t>(row) * stride + o * capacity + family]
                           : Real(0);
        }
        walsh<3>(v);
        const int b = row < basis.n ? bits[row] : 0;
#pragma unroll
        for (int c = 0; c < 8; c++)
        {
            tile[c ^ b][threadIdx.x][threadIdx.y] = v[c];
        }
    }
    __syncthreads();
    // rows of X become the fast index
    const int thread = threadIdx.y * c_warp + threadIdx.x;
    const int row    = row0 + thread % c_transformRows;
    const int family = thread / c_transformRows;
    if (row < basis.paddedMember() && family0 + family < *count)
    {
        for (int a = 0; a < 8; a++)
        {
            X[static_cast<size_t>(family0 + family) * basis.width() + basis.position(a, row)] =
                    tile[a][family][thread % c_transformRows];
        }
    }
}

//! Stores what four rows of a unit leave to be multiplied.
template<class Real>
__device__ __forceinline__ void storeRemainders(const FamilyBasis& basis,
                                                const Remainders<Real>& remainders,
                                                int row,
                                                const Real4<Real>& high,
                                                const Real4<Real>& rest,
                                                size_t unit)
{
    Real* own = remainders.Y + unit * remainders.stretch();
    if (basis.classes == 8)
    {
        if (row < remainders.rows)
        {
            *reinterpret_cast<Real4<Real>*>(own + row)                   = rest;
            *reinterpret_cast<Real4<Real>*>(own + remainders.rows + row) = high;
        }
        return;
    }
    const Real ofHigh[4] = { high.x, high.y, high.z, high.w };
    const Real ofRest[4] = { rest.x, rest.y, rest.z, rest.w };
#pragma unroll
    for (int k = 0; k < 4; k++)
    {
        const int member = (row + k) / basis.n;
        const int i      = row + k - member * basis.n;
        if (row + k < basis.rows && i < remainders.coefficients)
        {
            const int to              = member * remainders.coefficients + i;
            own[to]                   = ofRest[k];
            own[remainders.rows + to] = ofHigh[k];
        }
    }
}

//! Y of one family and orbit: a thread takes four rows of X^.
template<Format format, int bits, class Real>
__device__ __forceinline__ void gatherOrbit(const FamilyBasis& basis,
                                            const FamilyOrbit& orbit,
                                            const Chunk& chunk,
                                            int column,
                                            const int* neighbours,
                                            int capacity,
                                            const Real* X,
                                            Real* Y,
                                            const Remainders<Real>& remainders)
{
    int from[1 << bits];
#pragma unroll
    for (int g = 0; g < (1 << bits); g++)
    {
        from[g] = neighbours[static_cast<size_t>(orbit.neighbour[g]) * capacity + chunk.first
                             + column];
    }
    for (int position = 4 * threadIdx.x; position < basis.width(); position += 4 * blockDim.x)
    {
        Real4<Real> v[1 << bits];
#pragma unroll
        for (int g = 0; g < (1 << bits); g++)
        {
            v[g] = { 0, 0, 0, 0 };
            if (from[g] >= 0)
            {
                v[g] = *reinterpret_cast<const Real4<Real>*>(
                        X + static_cast<size_t>(from[g]) * basis.width() + position);
            }
        }
        walsh<bits>(v);
        const int source = position / basis.padded;
        const int row    = position - source * basis.padded;
#pragma unroll
        for (int g = 0; g < (1 << bits); g++)
        {
            const int unit  = orbit.unit + g;
            const int part  = unit / chunk.unitsPerPart;
            const int batch = (source ^ orbit.shift[g]) * chunk.parts + part;
            const size_t at =
                    (static_cast<size_t>(batch) * chunk.columns + column) * chunk.unitsPerPart
                    + (unit - part * chunk.unitsPerPart);
            const Rounded<format, Real> x(v[g].x), y(v[g].y), z(v[g].z), w(v[g].w);
            const Real4<Real> high = { x.high, y.high, z.high, w.high };
            const Real4<Real> rest = { x.rest, y.rest, z.rest, w.rest };
            *reinterpret_cast<Real4<Real>*>(Y + at * basis.padded + row) = high;
            if (remainders.coefficients > 0)
            {
                storeRemainders(basis, remainders, row, high, rest, at);
            }
        }
    }
}

//! Y [classes][parts][columns][inner]; blocks (column, orbit), a last one for the padding.
template<Format format, class Real>
__global__ void gatherKernel(FamilyBasis basis,
                             const FamilyOrbit* orbits,
                             Chunk chunk,
                             const int* neighbours,
                             int capacity,
                             const int* count,
                             const Real* X,
                             Real* Y,
                             Remainders<Real> remainders)
{
    const int column = blockIdx.x;
    if (chunk.first + column >= *count)
    {
        return; // a column affects its own results only, and nobody reads these
    }
    if (static_cast<int>(blockIdx.y) < basis.orbits)
    {
        const FamilyOrbit& orbit = orbits[blockIdx.y];
        switch (orbit.bits)
        {
            case 1:
                gatherOrbit<format, 1>(
                        basis, orbit, chunk, column, neighbours, capacity, X, Y, remainders);
                break;
            case 2:
                gatherOrbit<format, 2>(
                        basis, orbit, chunk, column, neighbours, capacity, X, Y, remainders);
                break;
            default:
                gatherOrbit<format, 3>(
                        basis, orbit, chunk, column, neighbours, capacity, X, Y, remainders);
        }
        return;
    }
    // units of the last part that no displacement has: their operators are zero
    const int unit0  = basis.units - (chunk.parts - 1) * chunk.unitsPerPart;
    const auto empty = [&](Real* operand, int stretch)
    {
        for (int c = 0; c < basis.classes; c++)
        {
            Real* to = operand
                       + (static_cast<size_t>((c + 1) * chunk.parts - 1) * chunk.columns + column)
                                 * chunk.unitsPerPart * stretch;
            for (int k = unit0 * stretch + threadIdx.x; k < chunk.unitsPerPart * stretch;
                 k += blockDim.x)
            {
                to[k] = 0;
            }
        }
    };
    empty(Y, basis.padded);
    if (remainders.coefficients > 0)
    {
        empty(remainders.Y, remainders.stretch());
    }
}

//! Adds L^ [classes][parts][rows][columns], transformed back, to L; blocks of (c_warp, any).
template<class Real>
__global__ void scatterKernel(FamilyBasis basis,
                              Chunk chunk,
                              const Real* Lhat,
                              const int* count,
                              const unsigned char* bits,
                              Real* L,
                              int stride,
                              int capacity)
{
    const int column = blockIdx.x * c_warp + threadIdx.x;
    const int i      = blockIdx.y * blockDim.y + threadIdx.y;
    const int family = chunk.first + column;
    if (i >= basis.n || family >= *count)
    {
        return;
    }
    const int b = bits[i];
    Real v[8];
#pragma unroll
    for (int c = 0; c < 8; c++)
    {
        const int a      = c ^ b;
        const Real* from = Lhat
                           + (static_cast<size_t>(basis.classOf(a)) * chunk.parts * basis.rows
                              + basis.memberOf(a) * basis.n + i)
                                     * chunk.columns
                           + column;
        v[c] = 0;
        for (int part = 0; part < chunk.parts; part++)
        {
            v[c] += from[static_cast<size_t>(part) * basis.rows * chunk.columns];
        }
    }
    walsh<3>(v);
#pragma unroll
    for (int o = 0; o < 8; o++)
    {
        L[static_cast<size_t>(i) * stride + o * capacity + family] += v[o];
    }
}

template<class Real>
class GemmM2l final : public DeviceM2l<Real>
{
public:
    //! \param[in] remainders  so many coefficients keep theirs
    GemmM2l(Format format, int remainders) : format_(format), wantedRemainders_(remainders)
    {
        int device = 0;
        check(cudaGetDevice(&device), "finding the device");
        check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device),
              "reading the number of multiprocessors");
        int major = 0;
        check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "reading the architecture");
        if (major < 8)
        {
            format_ = Format::Native; // tensor cores do not read floats
        }
    }

    /*! \brief Assembles the operators.
     *
     *  Whether reflections hold decides the shapes of the products: where a strain has changed
     *  that, launches captured in a graph have to be captured anew. */
    void setOperators(const ListM2lOperators<Real>& operators, cudaStream_t stream) override;
    /*! Room is made by the first call for a capacity, which so cannot be captured. */
    void apply(const LevelView<Real>& level,
               const Families& families,
               cudaStream_t stream) override;

private:
    //! Calls use(format) with the format as a constant.
    template<class Use>
    void withFormat(const Use& use)
    {
        if constexpr (std::is_same<Real, float>::value)
        {
            if (format_ == Format::Tf32)
            {
                return use(std::integral_constant<Format, Format::Tf32>());
            }
        }
        use(std::integral_constant<Format, Format::Native>());
    }
    //! Elements of a unit of an operand.
    int unitSize() const { return basis_.padded + remainders_.stretch(); }
    //! The units of a row of the operators.
    size_t unitsOfRow() const { return static_cast<size_t>(basis_.classes) * basis_.paddedUnits; }
    int chooseColumns(int capacity) const;
    int chooseParts(int columns) const;
    void multiply(const Chunk& chunk);

    Format format_;
    int multiprocessors_ = 0;
    Blas blas_;
    FamilyBasis basis_ = {};
    DeviceBuffer<FamilyOrbit> orbits_;
    DeviceBuffer<unsigned char> bits_; //!< reflectionBits()
    DeviceBuffer<Real> T_;             //!< operators, and their remainders
    DeviceBuffer<Real> X_, Y_, Lhat_;
    int wantedRemainders_;
    Remainders<Real> remainders_ = {};
};

template<class Real>
void GemmM2l<Real>::setOperators(const ListM2lOperators<Real>& operators, cudaStream_t stream)
{
    std::vector<FamilyOrbit> orbits;
    basis_ = makeFamilyBasis(operators.order(), operators.ws(), operators.reflections(), &orbits);
    orbits_.upload(orbits.data(), orbits.size(), stream);
    const std::vector<unsigned char> bits = reflectionBits(operators.order());
    bits_.upload(bits.data(), bits.size(), stream);
    if (format_ != Format::Native)
    {
        remainders_.coefficients = std::min(wantedRemainders_, basis_.n);
        remainders_.rows         = (8 / basis_.classes * remainders_.coefficients + 3) / 4 * 4;
    }
    T_.resize(basis_.rows * unitsOfRow() * unitSize());
    T_.clear(stream);
    remainders_.T = T_.data() + basis_.rows * unitsOfRow() * basis_.padded;
    // one orbit at a time: all operators at once would take twice the memory
    std::vector<Real> staging;
    DeviceBuffer<Real> children;
    for (const FamilyOrbit& orbit : orbits)
    {
        childOperators(operators, orbit.E, &staging);
        children.upload(staging.data(), staging.size(), stream);
        withFormat(
                [&](auto format)
                {
                    constexpr int c_threads = 128;
                    operatorKernel<decltype(format)::value>
                            <<<blocksFor(static_cast<long long>(basis_.n) * basis_.n, c_threads),
                               c_threads,
                               0,
                               stream>>>(basis_,
                                         orbit,
                                         bits_.data(),
                                         children.data(),
                                         T_.data(),
                                         remainders_);
                    checkLaunch("assembling the operators");
                });
    }
    check(cudaStreamSynchronize(stream), "assembling the operators");
}

template<class Real>
int GemmM2l<Real>::chooseColumns(int capacity) const
{
    const size_t perColumn = unitsOfRow() * unitSize() * sizeof(Real);
    size_t most            = std::max<size_t>(c_cachedBytes / perColumn, c_fewColumns);
    most                   = std::max<size_t>(std::min(most, c_mostBytes / perColumn), c_warp);
    // products come in tiles
    const size_t tile = most < 128 ? c_warp : 128;
    most              = most / tile * tile;
    const size_t many = capacity;
    if (many <= most)
    {
        return capacity;
    }
    const size_t chunks = (many + most - 1) / most;
    return static_cast<int>(((many + chunks - 1) / chunks + tile - 1) / tile * tile);
}

template<class Real>
int GemmM2l<Real>::chooseParts(int columns) const
{
    const int tiles   = basis_.classes * blocksFor(columns, 128) * blocksFor(basis_.rows, 128);
    const int longest = format_ == Format::Native ? INT_MAX : c_longestSum;
    int best          = basis_.paddedUnits; // a unit each, should none of the following do
    double bestGain   = 0;
    for (int parts = 1; parts <= basis_.paddedUnits; parts++)
    {
        const int inner      = basis_.paddedUnits / parts * basis_.padded;
        const bool tooMany   = parts > 1 && (parts > 16 || inner < 256);
        const bool needsThem = parts > 1 && inner * 2 > longest;
        if (basis_.paddedUnits % parts != 0 || inner > longest || (tooMany && !needsThem))
        {
            continue;
        }
        // multiprocessors at work; every part is one more set of results to sum
        const int waves   = blocksFor(static_cast<long long>(tiles) * parts, multiprocessors_);
        const double gain = static_cast<double>(tiles) * parts / waves * (1 - 0.02 * parts);
        if (gain > bestGain)
        {
            bestGain = gain;
            best     = parts;
        }
    }
    return best;
}

template<class Real>
void GemmM2l<Real>::multiply(const Chunk& chunk)
{
    const auto add = [&](const Real* ofY, const Real* ofT, int stretch, Real beta)
    {
        const int inner                   = chunk.unitsPerPart * stretch;
        const BatchedMatrix<const Real> Y = { ofY,
                                              inner,
                                              static_cast<long long>(inner) * chunk.columns };
        // a single part leaves out the padding, and the classes lie no closer for that
        const BatchedMatrix<const Real> T = {
            ofT,
            static_cast<int>(unitsOfRow() * stretch),
            chunk.parts == 1 ? static_cast<long long>(basis_.paddedUnits) * stretch : inner
        };
        const BatchedMatrix<Real> L = { Lhat_.data(),
                                        chunk.columns,
                                        static_cast<long long>(basis_.rows) * chunk.columns };
        blas_.multiply<Real>(chunk.columns,
                             basis_.rows,
                             inner,
                             Y,
                             T,
                             beta,
                             L,
                             basis_.classes * chunk.parts,
                             format_ != Format::Native);
    };
    // small ones first
    const bool some = remainders_.coefficients > 0;
    if (some)
    {
        add(remainders_.Y, remainders_.T, remainders_.stretch(), 0);
    }
    add(Y_.data(), T_.data(), basis_.padded, some ? 1 : 0);
}

template<class Real>
void GemmM2l<Real>::apply(const LevelView<Real>& level,
                          const Families& families,
                          cudaStream_t stream)
{
    const int capacity = families.capacity;
    if (capacity == 0)
    {
        return;
    }
    const int columns = chooseColumns(capacity);
    // the largest of what full chunks and the last one need
    size_t needUnits = 0, needL = 0;
    std::vector<Chunk> chunks;
    for (int first = 0; first < capacity; first += columns)
    {
        Chunk chunk;
        chunk.first        = first;
        chunk.columns      = std::min(columns, capacity - first);
        chunk.parts        = chooseParts(chunk.columns);
        chunk.unitsPerPart = chunk.parts == 1 ? basis_.units : basis_.paddedUnits / chunk.parts;
        chunks.push_back(chunk);
        needUnits = std::max(needUnits,
                             static_cast<size_t>(basis_.classes) * chunk.parts * chunk.columns
                                     * chunk.unitsPerPart);
        needL     = std::max(needL,
                         static_cast<size_t>(basis_.classes) * chunk.parts * chunk.columns
                                 * basis_.rows);
    }
    X_.resize(std::max(X_.size(), static_cast<size_t>(capacity) * basis_.width()));
    if (Lhat_.size() < needL)
    {
        Lhat_.resize(needL);
        Lhat_.clear(stream); // initcheck does not see that cuBLAS writes what it adds to later
    }
    if (Y_.size() < needUnits * unitSize())
    {
        Y_.resize(needUnits * unitSize());
        Y_.clear(stream); // columns of absent families are multiplied as well
    }
    remainders_.Y = Y_.data() + needUnits * basis_.padded;

    const dim3 transformBlocks(capacity / c_warp,
                               blocksFor(basis_.paddedMember(), c_transformRows));
    transformKernel<<<transformBlocks, dim3(c_warp, c_transformRows), 0, stream>>>(
            basis_, level.M, level.stride, capacity, families.count, bits_.data(), X_.data());
    checkLaunch("transforming multipoles");
    blas_.use(stream);
    for (const Chunk& chunk : chunks)
    {
        withFormat(
                [&](auto format)
                {
                    const int threads = std::min(256, (basis_.width() / 4 + 31) / 32 * 32);
                    gatherKernel<decltype(format)::value>
                            <<<dim3(chunk.columns, basis_.orbits + 1), threads, 0, stream>>>(
                                    basis_,
                                    orbits_.data(),
                                    chunk,
                                    families.neighbours,
                                    capacity,
                                    families.count,
                                    X_.data(),
                                    Y_.data(),
                                    remainders_);
                    checkLaunch("gathering multipoles");
                });
        multiply(chunk);
        constexpr int c_rows = 8;
        scatterKernel<<<dim3(chunk.columns / c_warp, blocksFor(basis_.n, c_rows)),
                        dim3(c_warp, c_rows),
                        0,
                        stream>>>(basis_,
                                  chunk,
                                  Lhat_.data(),
                                  families.count,
                                  bits_.data(),
                                  level.L,
                                  level.stride,
                                  capacity);
        checkLaunch("adding local expansions");
    }
}

} // namespace

template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeGemmM2l(const EngineDemands& demands)
{
    const double rounding = demands.rounding;
    const int remainders  = rounding >= c_tf32Rounding        ? 0
                            : rounding >= c_lowDegreeRounding ? c_lowDegree
                                                              : INT_MAX;
    return std::make_unique<GemmM2l<Real>>(
            std::is_same<Real, float>::value ? Format::Tf32 : Format::Native, remainders);
}

template std::unique_ptr<DeviceM2l<float>> makeGemmM2l<float>(const EngineDemands&);
template std::unique_ptr<DeviceM2l<double>> makeGemmM2l<double>(const EngineDemands&);

} // namespace farfield
