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
#include "m2l/gemm_kernels.cuh"
#include "runtime/blas.h"

namespace farfield
{
namespace
{

using namespace gemmDetail;

template<class Real>
class GemmM2l final : public DeviceM2l<Real>
{
public:
    //! \param[in] remainders  so many coefficients keep theirs
    GemmM2l(Format format, int remainders) : format_(format), wantedRemainders_(remainders)
    {
        multiprocessors_ = deviceAttribute(cudaDevAttrMultiProcessorCount);
        if (deviceAttribute(cudaDevAttrComputeCapabilityMajor) < 8)
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
    //! The families, in parts that fit.
    std::vector<Chunk> chunksOf(int capacity) const;
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
std::vector<Chunk> GemmM2l<Real>::chunksOf(int capacity) const
{
    const int columns = chooseColumns(capacity);
    std::vector<Chunk> chunks;
    for (int first = 0; first < capacity; first += columns)
    {
        Chunk chunk;
        chunk.first        = first;
        chunk.columns      = std::min(columns, capacity - first);
        chunk.parts        = chooseParts(chunk.columns);
        chunk.unitsPerPart = chunk.parts == 1 ? basis_.units : basis_.paddedUnits / chunk.parts;
        chunks.push_back(chunk);
    }
    return chunks;
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
    const std::vector<Chunk> chunks = chunksOf(capacity);
    // the largest of what full chunks and the last one need
    size_t needUnits = 0, needL = 0;
    for (const Chunk& chunk : chunks)
    {
        const size_t columns = static_cast<size_t>(basis_.classes) * chunk.parts * chunk.columns;
        needUnits            = std::max(needUnits, columns * chunk.unitsPerPart);
        needL                = std::max(needL, columns * basis_.rows);
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
std::unique_ptr<DeviceM2l<Real>> makeGemmM2l(double rounding)
{
    const int remainders = rounding >= c_tf32Rounding        ? 0
                           : rounding >= c_lowDegreeRounding ? c_lowDegree
                                                             : INT_MAX;
    return std::make_unique<GemmM2l<Real>>(
            std::is_same<Real, float>::value ? Format::Tf32 : Format::Native, remainders);
}

template std::unique_ptr<DeviceM2l<float>> makeGemmM2l<float>(double);
template std::unique_ptr<DeviceM2l<double>> makeGemmM2l<double>(double);

} // namespace farfield
