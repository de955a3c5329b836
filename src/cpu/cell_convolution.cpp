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
