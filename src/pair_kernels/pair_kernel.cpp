/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/pair_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "farfield/farfield_kernels.h"

#include "base/text.h"

namespace farfield
{
namespace
{

Error refused(const std::string& text, const char* parameter)
{
    return { ErrorCode::InvalidArgument, text, parameter };
}

//! Both precisions by one template law<Real>(unit).
template<class Derived>
class WithLaws : public PairKernel
{
public:
    PairLaw<float> lawFloat(double unit) const override
    {
        return static_cast<const Derived*>(this)->template law<float>(unit);
    }
    PairLaw<double> lawDouble(double unit) const override
    {
        return static_cast<const Derived*>(this)->template law<double>(unit);
    }

private:
    friend Derived;
    WithLaws() = default;
};

/*! \brief exp(-k r)/r.
 *
 *  Its sums over images as G. Salin and J.-M. Caillol, J. Chem. Phys. 113, 10459 (2000),
 *  doi:10.1063/1.1326477. */
class Yukawa final : public WithLaws<Yukawa>
{
public:
    explicit Yukawa(double kappa) : kappa_(kappa) {}

    PairLawKind kind() const override { return PairLawKind::Yukawa; }
    std::string name() const override { return "exp(-" + text(kappa_) + " r)/r"; }
    double value(double r) const override { return std::exp(-kappa_ * r) / r; }
    double slope(double r) const override { return -value(r) * (kappa_ + 1 / r); }
    bool hasPeriodicSum() const override { return true; }
    double sharp(double r, double b) const override
    {
        const double c = kappa_ / (2 * b);
        return (std::exp(-kappa_ * r) * std::erfc(b * r - c) + growing(r, b)) / (2 * r);
    }
    double smooth(double r, double b) const override
    {
        const double c     = kappa_ / (2 * b);
        const double gauss = 2 * b / std::sqrt(M_PI) * std::exp(-c * c);
        if (r * std::max(kappa_, b) < 1e-3)
        {
            // the first two terms of an even function; off by less than 1e-11
            const double first = gauss - kappa_ * std::erfc(c);
            const double third = kappa_ * kappa_ * first - 2 * b * b * gauss;
            return first + third * r * r / 6;
        }
        return (std::exp(-kappa_ * r) * std::erfc(c - b * r) - growing(r, b)) / (2 * r);
    }
    double smoothTransform(double k, double b) const override
    {
        const double square = k * k + kappa_ * kappa_;
        return 4 * M_PI / square * std::exp(-square / (4 * b * b));
    }
    template<class Real>
    PairLaw<Real> law(double unit) const
    {
        PairLaw<Real> law;
        law.kind   = kind();
        law.decay  = static_cast<Real>(kappa_ * unit);
        law.factor = 1 / unit;
        return law;
    }

private:
    //! exp(k r) erfc(b r + k / 2b). With x what erfc is of, k r is at most x^2/2.
    double growing(double r, double b) const
    {
        constexpr double c_nothing = 26;
        const double x             = b * r + kappa_ / (2 * b);
        return x < c_nothing ? std::exp(kappa_ * r) * std::erfc(x) : 0;
    }

    double kappa_;
};

/*! \brief r^-n.
 *
 *  1/r^n is an integral over Gaussians u^(n/2-1) exp(-u r^2), those with u < b^2 the smooth part: D. E. Williams,
 *  Acta Cryst. A27, 452 (1971), doi:10.1107/S0567739471000998. */
class InversePower final : public WithLaws<InversePower>
{
public:
    explicit InversePower(int n) : n_(n) {}

    PairLawKind kind() const override { return PairLawKind::InversePower; }
    std::string name() const override { return n_ == 1 ? "1/r" : "1/r^" + text(n_); }
    double value(double r) const override { return std::pow(r, -n_); }
    double slope(double r) const override { return -n_ * std::pow(r, -n_ - 1); }
    int exponent() const override { return n_; }
    //! Others converge for some orders of summation only, or have other special functions.
    bool hasPeriodicSum() const override { return n_ >= 4 && n_ % 2 == 0; }
    double sharp(double r, double b) const override
    {
        const double t = b * b * r * r;
        double term = 1, sum = 1;
        for (int j = 1; j < n_ / 2; j++)
        {
            term *= t / j;
            sum += term;
        }
        return std::exp(-t) * sum * value(r);
    }
    double smooth(double r, double b) const override
    {
        const double t = b * b * r * r;
        if (t > n_)
        {
            return value(r) - sharp(r, b);
        }
        // b^n exp(-t) sum_m t^m / (m + n/2)!
        double term = 1;
        for (int j = 2; j <= n_ / 2; j++)
        {
            term /= j;
        }
        double sum = term;
        for (int m = 1; term > 1e-17 * sum; m++)
        {
            term *= t / (m + n_ / 2);
            sum += term;
        }
        return std::pow(b, n_) * std::exp(-t) * sum;
    }
    double smoothTransform(double k, double b) const override
    {
        // pi^(3/2) / Gamma(n/2) b^(n-3) E, E = s^(-2a) Gamma(a, s^2), a = (3-n)/2, s = k/2b;
        // a Gamma(a, x) = Gamma(a+1, x) - x^a exp(-x), down from a = 1/2
        const double s     = k / (2 * b);
        const double gauss = std::exp(-s * s);
        double E           = (s * std::sqrt(M_PI) * std::erfc(s) - gauss) / -0.5;
        for (double a = -1.5; a > 0.5 * (3 - n_) - 0.25; a -= 1)
        {
            E = (s * s * E - gauss) / a;
        }
        return std::pow(M_PI, 1.5) / std::tgamma(0.5 * n_) * std::pow(b, n_ - 3) * E;
    }
    template<class Real>
    PairLaw<Real> law(double unit) const
    {
        PairLaw<Real> law;
        law.kind     = kind();
        law.exponent = n_;
        law.factor   = std::pow(unit, -n_);
        return law;
    }

private:
    int n_;
};

class Table final : public WithLaws<Table>
{
public:
    Table(double first,
          double last,
          const std::vector<double>& values,
          const std::vector<double>& slopes) :
        first_(first),
        last_(last), step_((last - first) / static_cast<double>(values.size() - 1)),
        endsAtZero_(values.back() == 0 && slopes.back() == 0)
    {
        // Hermite's polynomials
        for (size_t k = 0; k + 1 < values.size(); k++)
        {
            const double up    = values[k + 1] - values[k];
            const double begin = step_ * slopes[k], end = step_ * slopes[k + 1];
            polynomials_.push_back(
                    { values[k], begin, 3 * up - 2 * begin - end, begin + end - 2 * up });
        }
    }

    PairLawKind kind() const override { return PairLawKind::Table; }
    std::string name() const override
    {
        return "the table from " + text(first_) + " to " + text(last_);
    }
    double value(double r) const override
    {
        double t;
        const auto* c = polynomial(r, &t);
        return c == nullptr ? outside(r) : (*c)[0] + t * ((*c)[1] + t * ((*c)[2] + t * (*c)[3]));
    }
    double slope(double r) const override
    {
        double t;
        const auto* c = polynomial(r, &t);
        return c == nullptr ? outside(r) : ((*c)[1] + t * (2 * (*c)[2] + t * 3 * (*c)[3])) / step_;
    }
    double first() const override { return first_; }
    double last() const override { return last_; }
    bool endsAtZero() const override { return endsAtZero_; }
    bool hasPeriodicSum() const override { return endsAtZero_; }
    bool isSplit() const override { return false; }
    template<class Real>
    PairLaw<Real> law(double unit) const
    {
        PairLaw<Real> law;
        law.kind    = kind();
        law.first   = static_cast<Real>(first_ / unit);
        law.perStep = static_cast<Real>(unit / step_);
        law.steps   = static_cast<int>(polynomials_.size());
        law.beyond  = endsAtZero_ ? 0 : std::numeric_limits<Real>::quiet_NaN();
        for (const auto& c : polynomials_)
        {
            law.polynomials.insert(law.polynomials.end(), c.begin(), c.end());
        }
        return law;
    }

private:
    //! The polynomial of a distance, null outside of the table. \param[out] t  fraction of its step
    const std::array<double, 4>* polynomial(double r, double* t) const
    {
        const double at = (r - first_) / step_;
        if (!(at >= 0 && at <= static_cast<double>(polynomials_.size())))
        {
            return nullptr;
        }
        const size_t k = std::min(static_cast<size_t>(at), polynomials_.size() - 1);
        *t             = at - static_cast<double>(k);
        return &polynomials_[k];
    }
    double outside(double r) const
    {
        return r > last_ && endsAtZero_ ? 0 : std::numeric_limits<double>::quiet_NaN();
    }

    double first_, last_, step_;
    bool endsAtZero_;
    std::vector<std::array<double, 4>> polynomials_;
};

} // namespace

Kernel Kernel::yukawa(double kappa)
{
    if (!(kappa > 0 && std::isfinite(kappa)))
    {
        throw refused("The decay of a Yukawa kernel, " + text(kappa)
                              + ", must be finite and above 0. For 1/r use inversePower(1).",
                      "kappa");
    }
    return Kernel(std::make_shared<Yukawa>(kappa));
}

Kernel Kernel::inversePower(int n)
{
    constexpr int c_most = 12;
    if (n < 1 || n > c_most)
    {
        throw refused("The exponent " + text(n) + " is outside its range, 1 to " + text(c_most)
                              + ".",
                      "n");
    }
    return Kernel(std::make_shared<InversePower>(n));
}

Kernel
Kernel::table(double first, double last, std::vector<double> values, std::vector<double> slopes)
{
    if (!(first >= 0 && first < last && std::isfinite(last)))
    {
        throw refused("The table from " + text(first) + " to " + text(last)
                              + " must begin at 0 or above and end farther.",
                      "first");
    }
    if (values.size() < 3 || values.size() != slopes.size())
    {
        throw refused("The table has " + std::to_string(values.size()) + " values and "
                              + std::to_string(slopes.size())
                              + " slopes, but must have as many of both, and at least 3.",
                      "values");
    }
    for (const auto* numbers : { &values, &slopes })
    {
        if (!std::all_of(
                    numbers->begin(), numbers->end(), [](double v) { return std::isfinite(v); }))
        {
            throw refused(std::string("The table has ")
                                  + (numbers == &values ? "a value" : "a slope")
                                  + " that is not finite.",
                          "values");
        }
    }
    return Kernel(std::make_shared<Table>(first, last, values, slopes));
}

double Kernel::value(double r) const
{
    return kernel_->value(r);
}
double Kernel::slope(double r) const
{
    return kernel_->slope(r);
}
std::string Kernel::name() const
{
    return kernel_->name();
}

} // namespace farfield
