/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/strained_harmonics.h"

#include <algorithm>
#include <cmath>

namespace farfield
{

StrainedHarmonics::StrainedHarmonics(int degree, int strainDegree) :
    n_(coefficientCount(degree)), strained_(coefficientCount(strainDegree)), degrees_(n_), u_(n_),
    gradient_(3 * strained_)
{
    for (int i = 0; i < n_; i++)
    {
        degrees_[i] = degreeOf(i);
    }
    std::vector<int> used(gradient_.size(), 0);
    derivatives_.resize(gradient_.size());
    for (const DerivativeTerm& t : derivativeTerms(strainDegree))
    {
        const int place                        = t.axis * strained_ + t.from;
        derivatives_[place].to[used[place]]    = t.to;
        derivatives_[place].value[used[place]] = t.value;
        used[place]++;
    }
}

void StrainedHarmonics::add(const Vec3& r,
                            const double* radial,
                            const double* slope,
                            bool dual,
                            double* out)
{
    const int degree   = degrees_[n_ - 1];
    double* const g[3] = { gradient_.data(),
                           gradient_.data() + strained_,
                           gradient_.data() + 2 * static_cast<size_t>(strained_) };
    solidHarmonics(degree, r, u_.data());
    for (size_t place = 0; place < derivatives_.size(); place++)
    {
        const Derivative& of = derivatives_[place];
        gradient_[place]     = of.value[0] * u_[of.to[0]] + of.value[1] * u_[of.to[1]];
    }
    for (int l = 0; l <= degree; l++)
    {
        for (int i = l * l; i < (l + 1) * (l + 1); i++)
        {
            out[i] += u_[i] * radial[l];
        }
    }
    for (int l = 0; l <= degrees_[strained_ - 1]; l++)
    {
        for (int axis = 0; axis < 3; axis++)
        {
            for (int i = l * l; i < (l + 1) * (l + 1); i++)
            {
                g[axis][i] = g[axis][i] * radial[l] + 2 * u_[i] * slope[l] * r[axis];
            }
        }
    }
    for (int c = 0; c < StrainCount; c++)
    {
        const int a         = c_strainAxes[c][0];
        const int b         = c_strainAxes[c][1];
        const double factor = (a == b ? 1 : 0.5) * (dual ? -1 : 1);
        const double ofA    = a == b ? r[a] : r[b];
        const double ofB    = a == b ? -r[2] : r[a];
        const double *ga = g[a], *gb = a == b ? g[2] : g[b];
        double* const to = out + n_ + static_cast<size_t>(c) * strained_;
        for (int i = 0; i < strained_; i++)
        {
            to[i] += factor * (ofA * ga[i] + ofB * gb[i]);
        }
    }
}

void StrainedHarmonics::addStrain(Strain component, const double* slope, double* out) const
{
    double* const to = out + n_ + static_cast<size_t>(component) * strained_;
    for (int l = 0; l <= degrees_[strained_ - 1]; l++)
    {
        for (int i = l * l; i < (l + 1) * (l + 1); i++)
        {
            to[i] += u_[i] * slope[l];
        }
    }
}

bool StrainedHarmonics::isOdd(int field, int axis) const
{
    // along x and y by the multiple of the angle in the plane: a cosine, or for m < 0 a sine
    const int i       = coefficientOfField(field);
    const int l       = degrees_[i];
    const int m       = i - l * l - l;
    const bool sine   = m < 0;
    const bool odds[] = { (m % 2 != 0) != sine, sine, (l + m) % 2 != 0 };
    bool isOdd        = odds[axis];
    for (const int of : c_strainAxes[field < n_ ? 0 : (field - n_) / strained_])
    {
        isOdd = isOdd != (field >= n_ && of == axis);
    }
    return isOdd;
}

void irregularStrain(int degree, const Vec3& D, double* out)
{
    StrainedHarmonics terms(degree, degree);
    std::vector<double> radial(degree + 1), slope(degree + 1);
    const double r2 = D.squaredNorm();
    double power    = 1 / std::sqrt(r2);
    for (int l = 0; l <= degree; l++)
    {
        radial[l] = power;
        power /= r2;
        slope[l] = -(l + 0.5) * power;
    }
    std::fill_n(out, terms.size(), 0.0);
    terms.add(D, radial.data(), slope.data(), false, out);
}

} // namespace farfield
