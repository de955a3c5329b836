/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/strained_harmonics.h"

#include <algorithm>
#include <cmath>

namespace farfield
{

StrainedHarmonics::StrainedHarmonics(int degree, int strainDegree) :
    n_(coefficientCount(degree)), strained_(coefficientCount(strainDegree)), degrees_(n_),
    derivatives_(derivativeTerms(strainDegree)), u_(n_), gradient_(3 * strained_)
{
    for (int i = 0; i < n_; i++)
    {
        degrees_[i] = degreeOf(i);
    }
}

void StrainedHarmonics::add(const Vec3& r,
                            const double* radial,
                            const double* slope,
                            bool dual,
                            double* out)
{
    int degree = degrees_[n_ - 1];
    solidHarmonics(degree, r, u_.data());
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    for (const DerivativeTerm& t : derivatives_)
    {
        gradient_[3 * t.from + t.axis] += t.value * u_[t.to];
    }
    for (int i = 0; i < n_; i++)
    {
        out[i] += u_[i] * radial[degrees_[i]];
    }
    for (int i = 0; i < strained_; i++)
    {
        const int l = degrees_[i];
        double g[3];
        for (int axis = 0; axis < 3; axis++)
        {
            g[axis] = gradient_[3 * i + axis] * radial[l] + 2 * u_[i] * slope[l] * r[axis];
        }
        for (int c = 0; c < StrainCount; c++)
        {
            const int a = c_strainAxes[c][0];
            const int b = c_strainAxes[c][1];
            const double d =
                    (a == b) ? r[a] * g[a] - r[2] * g[2] : 0.5 * (r[a] * g[b] + r[b] * g[a]);
            out[n_ + c * strained_ + i] += dual ? -d : d;
        }
    }
}

void StrainedHarmonics::addStrain(Strain component, const double* slope, double* out) const
{
    for (int i = 0; i < strained_; i++)
    {
        out[n_ + component * strained_ + i] += u_[i] * slope[degrees_[i]];
    }
}

bool StrainedHarmonics::isOddInZ(int field) const
{
    const int i         = coefficientOfField(field);
    const int l         = degrees_[i];
    const int component = field < n_ ? -1 : (field - n_) / strained_;
    const bool mixesZ   = component == StrainXZ || component == StrainYZ;
    return ((i - l * l + mixesZ) % 2) != 0; // l + m, which the index counts from l^2
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
