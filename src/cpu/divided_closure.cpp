/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cpu/divided_closure.h"

#include <algorithm>

namespace farfield
{

template<class Real>
void DividedClosure<Real>::plan(const std::vector<Places>* slots,
                                size_t fieldStride,
                                int coefficients)
{
    slots_        = slots;
    fieldStride_  = fieldStride;
    coefficients_ = coefficients;
    waves_.clear();
}

template<class Real>
void DividedClosure<Real>::close(Level<Real>* own,
                                 PeriodicM2l<Real>* m2l,
                                 std::array<double, StrainCount>* virial,
                                 Ranks* ranks)
{
    ranks_ = ranks;
    for (int r = static_cast<int>(waves_.size()); r < ranks->size(); r++)
    {
        waves_.emplace_back(m2l->waves(Share{ r, ranks->size() }));
    }
    const int begin  = first(ranks->rank());
    const int end    = begin + static_cast<int>(number(ranks->rank()));
    const int stride = static_cast<int>(fieldStride_);
    passMultipoles(*own);
    m2l->forward(fields_.data(), stride, begin, end);
    passSpectra(m2l, false);
    m2l->multiply(virial);
    passSpectra(m2l, true);
    m2l->backward(fields_.data(), stride, begin, end);
    passLocals(own);
}

template<class Real>
template<class Sent, class Received, class Pack, class Unpack>
void DividedClosure<Real>::pass(const Sent& sent,
                                const Received& received,
                                const Pack& pack,
                                const Unpack& unpack)
{
    const int me         = ranks_->rank();
    const auto forOthers = [&](const auto& f)
    {
        for (int r = 0; r < ranks_->size(); r++)
        {
            if (r != me)
            {
                f(r);
            }
        }
    };
    out_.resize(ranks_->size(), [&](int r) { return r == me ? 0 : sent(r); });
    in_.resize(ranks_->size(), [&](int r) { return r == me ? 0 : received(r); });
    forOthers([&](int r) { pack(r, out_.begin(r)); });
    ranks_->exchange(out_, &in_);
    forOthers([&](int r) { unpack(r, static_cast<const Real*>(in_.begin(r))); });
}

template<class Real>
void DividedClosure<Real>::passMultipoles(const Level<Real>& own)
{
    const int me          = ranks_->rank();
    const size_t stride   = own.padded;
    const size_t cells    = (*slots_)[me].count();
    const auto addToField = [&](const Real* from, size_t i, int cellsOf)
    { return (*slots_)[cellsOf].add(from, fields_.data() + i * fieldStride_); };
    fields_.assign(number(me) * fieldStride_, Real(0));
    for (size_t i = 0; i < number(me); i++)
    {
        addToField(own.M.data() + (first(me) + i) * stride, i, me);
    }
    pass([&](int r) { return number(r) * cells; },
         [&](int r) { return number(me) * (*slots_)[r].count(); },
         [&](int r, Real* to)
         {
             for (size_t i = 0; i < number(r); i++)
             {
                 to = std::copy_n(own.M.data() + (first(r) + i) * stride, cells, to);
             }
         },
         [&](int r, const Real* from)
         {
             for (size_t i = 0; i < number(me); i++)
             {
                 from = addToField(from, i, r);
             }
         });
}

template<class Real>
void DividedClosure<Real>::passSpectra(PeriodicM2l<Real>* m2l, bool areProducts)
{
    const int me       = ranks_->rank();
    const size_t width = 2 * static_cast<size_t>(m2l->spectrumStride());
    const auto row     = [&](int coefficientsOf, size_t i)
    { return m2l->spectrum() + (first(coefficientsOf) + i) * width; };
    // the coefficients of one rank at the wave vectors of another
    const auto size = [&](int coefficientsOf, int wavesOf)
    { return 2 * number(coefficientsOf) * waves_[wavesOf].count(); };
    const auto sent     = [&](int r) { return areProducts ? size(r, me) : size(me, r); };
    const auto received = [&](int r) { return areProducts ? size(me, r) : size(r, me); };
    pass(
            sent,
            received,
            [&](int r, Real* to)
            {
                const int from = areProducts ? r : me, at = areProducts ? me : r;
                for (size_t i = 0; i < number(from); i++)
                {
                    to = waves_[at].pack(row(from, i), 2, to);
                }
            },
            [&](int r, const Real* from)
            {
                const int of = areProducts ? me : r, at = areProducts ? r : me;
                for (size_t i = 0; i < number(of); i++)
                {
                    from = waves_[at].unpack(from, 2, row(of, i));
                }
            });
}

template<class Real>
void DividedClosure<Real>::passLocals(Level<Real>* own)
{
    const int me        = ranks_->rank();
    const size_t stride = own->padded;
    const size_t cells  = (*slots_)[me].count();
    const auto packRow  = [&](size_t i, int cellsOf, Real* to)
    { return (*slots_)[cellsOf].pack(fields_.data() + i * fieldStride_, 1, to); };
    for (size_t i = 0; i < number(me); i++)
    {
        packRow(i, me, own->L.data() + (first(me) + i) * stride);
    }
    pass([&](int r) { return number(me) * (*slots_)[r].count(); },
         [&](int r) { return number(r) * cells; },
         [&](int r, Real* to)
         {
             for (size_t i = 0; i < number(me); i++)
             {
                 to = packRow(i, r, to);
             }
         },
         [&](int r, const Real* from)
         {
             for (size_t i = 0; i < number(r); i++)
             {
                 std::copy_n(from + i * cells, cells, own->L.data() + (first(r) + i) * stride);
             }
         });
}

template class DividedClosure<float>;
template class DividedClosure<double>;

} // namespace farfield
