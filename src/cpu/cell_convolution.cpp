/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/cell_convolution.h"

namespace farfield
{

template<class Real>
CellConvolution<Real>::CellConvolution(const Grid& grid,
                                       const WaveVectors& waves,
                                       std::vector<int> degrees,
                                       std::array<std::vector<Real>, 4> signs,
                                       Team* team,
                                       const Share& share) :
    waves_(waves),
    degrees_(std::move(degrees)), signs_(std::move(signs)), team_(*team), scratch_(team->threads()),
    lanes_(cpuKernels<Real>().lanes), share_(share), transform_(grid.lengths())
{
    listBlocks();
    spectrum_.assign(2 * static_cast<size_t>(transform_.spectrumStride()) * degrees_.size(),
                     Real(0));
}

template<class Real>
void CellConvolution<Real>::listBlocks()
{
    first_          = share_.begin(allBlocks()) * lanes_;
    const int count = waves_.representatives() - first_;
    blocks_.resize(share_.end(allBlocks()) - share_.begin(allBlocks()));
    for (int b = 0; b < static_cast<int>(blocks_.size()); b++)
    {
        Block& block  = blocks_[b];
        block.members = std::min(lanes_, count - b * lanes_);
        std::fill_n(&block.waves[0][0], 4 * 16, -1);
        for (int lane = 0; lane < block.members; lane++)
        {
            for (int copy = 0; copy < waves_.copies(); copy++)
            {
                block.waves[copy][lane] = waves_.wave(first_ + b * lanes_ + lane, copy);
            }
        }
    }
}

template<class Real>
std::vector<int> CellConvolution<Real>::waves(const Share& share) const
{
    std::vector<int> all;
    const int end = std::min(share.end(allBlocks()) * lanes_, waves_.representatives());
    for (int k = share.begin(allBlocks()) * lanes_; k < end; k++)
    {
        for (int copy = 0; copy < waves_.copies(); copy++)
        {
            const int wave = waves_.wave(k, copy);
            if (wave >= 0)
            {
                all.push_back(wave);
            }
        }
    }
    return all;
}

template<class Real>
bool CellConvolution<Real>::take(int block, int copy, Scratch* scratch) const
{
    const int* waves = blocks_[block].waves[copy];
    if (std::all_of(waves, waves + lanes_, [](int w) { return w < 0; }))
    {
        return false;
    }
    scratch->x.resize(2 * degrees_.size() * lanes_);
    scratch->y.resize(scratch->x.size());
    gather(blocks_[block], copy, scratch->x.data());
    return true;
}

template<class Real>
void CellConvolution<Real>::gather(const Block& block, int copy, Real* x) const
{
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    const int* waves   = block.waves[copy];
    const auto& signs  = signs_[copy];
    // for lanes without a wave vector: one that no other thread writes
    const int any = *std::find_if(waves, waves + lanes_, [](int w) { return w >= 0; });
    for (int j = 0; j < coefficients(); j++)
    {
        const int l       = degrees_[j];
        const bool swap   = l % 2;
        const Real signRe = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
        const Real signIm = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
        const Real* field = spectrum_.data() + j * width;
        Real* re          = x + 2 * lanes_ * j;
        const Real fRe    = signRe * signs[j];
        const Real fIm    = signIm * signs[j];
        for (int lane = 0; lane < lanes_; lane++)
        {
            const int w       = waves[lane] < 0 ? any : waves[lane];
            const Real a      = field[2 * w];
            const Real c      = field[2 * w + 1];
            re[lane]          = fRe * (swap ? c : a);
            re[lanes_ + lane] = fIm * (swap ? a : c);
        }
    }
}

template<class Real>
void CellConvolution<Real>::scatter(const Block& block, int copy, const Real* y)
{
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    const int* waves   = block.waves[copy];
    const auto& signs  = signs_[copy];
    for (int j = 0; j < coefficients(); j++)
    {
        const int l       = degrees_[j];
        const bool swap   = l % 2;
        const Real signRe = (l % 4 == 0 || l % 4 == 3) ? 1 : -1;
        const Real signIm = (l % 4 == 0 || l % 4 == 1) ? 1 : -1;
        Real* field       = spectrum_.data() + j * width;
        const Real* re    = y + 2 * lanes_ * j;
        const Real fRe    = signRe * signs[j];
        const Real fIm    = signIm * signs[j];
        for (int lane = 0; lane < lanes_; lane++)
        {
            const int w = waves[lane];
            if (w >= 0)
            {
                field[2 * w]     = fRe * (swap ? re[lanes_ + lane] : re[lane]);
                field[2 * w + 1] = fIm * (swap ? re[lane] : re[lanes_ + lane]);
            }
        }
    }
}

template<class Real>
void CellConvolution<Real>::forward(const Real* fields, int stride, int first, int last)
{
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    team_.forTasks(last - first,
                   [&](int i, int /*thread*/)
                   {
                       transform_.forward(fields + static_cast<size_t>(i) * stride,
                                          spectrum_.data() + (first + i) * width);
                   });
}

template<class Real>
void CellConvolution<Real>::backward(Real* fields, int stride, int first, int last)
{
    const size_t width = 2 * static_cast<size_t>(transform_.spectrumStride());
    team_.forTasks(last - first,
                   [&](int i, int /*thread*/)
                   {
                       transform_.backward(spectrum_.data() + (first + i) * width,
                                           fields + static_cast<size_t>(i) * stride);
                   });
}

template<class Real>
void CellConvolution<Real>::pack(int representative,
                                 const Matrix& K,
                                 AlignedVector<Real>* packed) const
{
    // What symmetry makes zero comes out as products of roundings. In single precision its products
    // with multipoles would be subnormal numbers, which processors are slow with.
    constexpr double c_nothing = 1e-25;
    const int k                = representative - first_;
    Real* out                  = packed->data() + k / lanes_ * pairs() * lanes_ + k % lanes_;
    forPackedPairs(coefficients(),
                   [&](int i, int j)
                   {
                       const double value = K(i, j);
                       *out = static_cast<Real>(std::abs(value) < c_nothing ? 0 : value);
                       out += lanes_;
                   });
}

template<class Real>
std::vector<double>
CellConvolution<Real>::products(const std::vector<const AlignedVector<Real>*>& packed,
                                const Grid& grid,
                                const std::vector<std::array<int, 4>>& signs)
{
    const int copies = waves_.copies();
    const int tasks  = static_cast<int>(blocks_.size()) * copies;
    std::vector<double> ofTasks(packed.size() * tasks, 0);
    const auto work = [&](int task, int thread)
    {
        const int b = task / copies, copy = task % copies;
        const int* waves = blocks_[b].waves[copy];
        Scratch& scratch = scratch_[thread];
        if (!take(b, copy, &scratch))
        {
            return;
        }
        for (size_t set = 0; set < packed.size(); set++)
        {
            cpuKernels<Real>().multiply(packed[set]->data() + b * pairs() * lanes_,
                                        coefficients(),
                                        scratch.x.data(),
                                        scratch.y.data());
            double sum = 0;
            for (int lane = 0; lane < lanes_; lane++)
            {
                if (waves[lane] < 0)
                {
                    continue;
                }
                double ofLane = 0;
                for (size_t i = lane; i < scratch.x.size(); i += lanes_)
                {
                    ofLane += static_cast<double>(scratch.x[i]) * static_cast<double>(scratch.y[i]);
                }
                sum += grid.multiplicity(waves[lane]) * ofLane;
            }
            ofTasks[set * tasks + task] = signs[set][copy] * sum;
        }
    };
    team_.forTasks(tasks, work);
    // in an order that does not depend on threads
    std::vector<double> sums(packed.size(), 0);
    for (size_t i = 0; i < ofTasks.size(); i++)
    {
        sums[i / tasks] += ofTasks[i];
    }
    return sums;
}

template<class Real>
void CellConvolution<Real>::multiply()
{
    const int copies = waves_.copies();
    // copies of a block, which share its operators, stand side by side
    team_.forTasks(
            static_cast<int>(blocks_.size()) * copies,
            [&](int task, int thread) {
                multiply(task / copies, task % copies, &scratch_[thread], [](const Real* /*x*/) {});
            });
}

template class CellConvolution<float>;
template class CellConvolution<double>;

} // namespace farfield
