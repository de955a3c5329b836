/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/solid_harmonics.h"

#include <cmath>
#include <cstdlib>

#include "base/log_gamma.h"
#include "operators/monic_recurrence.h"

namespace farfield
{
namespace
{

//! Nodes and weights of Gauss-Legendre quadrature on [-1, 1], by Newton iteration.
void gaussLegendre(int n, std::vector<double>* x, std::vector<double>* w)
{
    x->resize(n);
    w->resize(n);
    for (int i = 0; i < n; i++)
    {
        double node       = std::cos(M_PI * (i + 0.75) / (n + 0.5));
        double derivative = 0;
        for (int iteration = 0; iteration < 100; iteration++)
        {
            double previous = 1;
            double current  = node;
            for (int k = 2; k <= n; k++)
            {
                const double next = ((2 * k - 1) * node * current - (k - 1) * previous) / k;
                previous          = current;
                current           = next;
            }
            if (n == 1)
            {
                previous = 1;
            }
            derivative        = n * (node * current - previous) / (node * node - 1);
            const double step = current / derivative;
            node -= step;
            if (std::abs(step) < 1e-16)
            {
                break;
            }
        }
        (*x)[i] = node;
        (*w)[i] = 2 / ((1 - node * node) * derivative * derivative);
    }
}

} // namespace

int degreeOf(int i)
{
    int l = static_cast<int>(std::sqrt(static_cast<double>(i)));
    while (l * l > i)
    {
        l--;
    }
    while ((l + 1) * (l + 1) <= i)
    {
        l++;
    }
    return l;
}

void solidHarmonics(int p, const Vec3& r, double* u)
{
    const double r2 = r.squaredNorm();
    double c        = 1; // r^m C_mm = c + i s
    double s        = 0;
    for (int m = 0; m <= p; m++)
    {
        if (m > 0)
        {
            const double f  = -std::sqrt((2 * m - 1) / (2.0 * m));
            const double c1 = f * (r[0] * c - r[1] * s);
            s               = f * (r[0] * s + r[1] * c);
            c               = c1;
        }
        const double root2 = (m > 0) ? std::sqrt(2.0) : 1.0;
        double current     = root2; // r^l C_lm = current (c + i s) / root2
        double previous    = 0;
        for (int l = m; l <= p; l++)
        {
            u[coefficientIndex(l, m)] = current * c;
            if (m > 0)
            {
                u[coefficientIndex(l, -m)] = current * s;
            }
            const double s0   = std::sqrt(static_cast<double>(l * l - m * m));
            const double s1   = std::sqrt(static_cast<double>((l + 1) * (l + 1) - m * m));
            const double next = ((2 * l + 1) * r[2] * current - s0 * r2 * previous) / s1;
            previous          = current;
            current           = next;
        }
    }
}

void irregularHarmonics(int p, const Vec3& r, double* v)
{
    solidHarmonics(p, r, v);
    const double inverse2 = 1 / r.squaredNorm();
    double factor         = std::sqrt(inverse2);
    for (int l = 0; l <= p; l++)
    {
        for (int i = l * l; i < (l + 1) * (l + 1); i++)
        {
            v[i] *= factor;
        }
        factor *= inverse2;
    }
}

MonicRecurrence::MonicRecurrence(int p) : scale(coefficientCount(p)), beta((p + 1) * (p + 1), 0)
{
    double diagonal = 1;
    for (int m = 0; m <= p; m++)
    {
        diagonal *= (m > 0) ? -std::sqrt((2 * m - 1) / (2.0 * m)) : 1;
        double lambda = diagonal * ((m > 0) ? std::sqrt(2.0) : 1);
        for (int l = m; l <= p; l++)
        {
            scale[coefficientIndex(l, m)]  = lambda;
            scale[coefficientIndex(l, -m)] = lambda;
            beta[l * (p + 1) + m]          = monicBeta(l, m);
            lambda *= (2 * l + 1) / std::sqrt(static_cast<double>((l + 1) * (l + 1) - m * m));
        }
    }
}

std::vector<DerivativeTerm> derivativeTerms(int p)
{
    // With R_lm = r^l P_lm e^(im phi) / (l+m)!: dR_lm/dz = R_l-1,m,
    // dR_lm/dx = (R_l-1,m+1 - R_l-1,m-1) / 2, dR_lm/dy = -i (R_l-1,m+1 + R_l-1,m-1) / 2.
    std::vector<DerivativeTerm> terms;
    const auto add = [&terms](int axis, int from, int l, int m, double value)
    {
        // m < 0 here stands for the imaginary part; a vanishing function adds nothing
        if (std::abs(m) <= l && value != 0)
        {
            terms.push_back({ axis, from, coefficientIndex(l, m), value });
        }
    };
    // r^l C_lm = n_lm R_lm; u carries sqrt(2) unless m = 0
    const auto weight = [](int l, int m)
    { return rootOfFactorials(l, m) * (m > 0 ? std::sqrt(2.0) : 1.0); };
    for (int l = 1; l <= p; l++)
    {
        for (int m = 0; m <= l; m++)
        {
            const int ci   = coefficientIndex(l, m);
            const int si   = coefficientIndex(l, -m);
            const double w = weight(l, m);
            if (m <= l - 1)
            {
                add(2, ci, l - 1, m, w / weight(l - 1, m));
                if (m > 0)
                {
                    add(2, si, l - 1, -m, w / weight(l - 1, m));
                }
            }
            if (m == 0)
            {
                if (l >= 2)
                {
                    add(0, ci, l - 1, 1, w / weight(l - 1, 1));
                    add(1, ci, l - 1, -1, w / weight(l - 1, 1));
                }
                continue;
            }
            if (m + 1 <= l - 1)
            {
                const double up = 0.5 * w / weight(l - 1, m + 1);
                add(0, ci, l - 1, m + 1, up);
                add(0, si, l - 1, -(m + 1), up);
                add(1, ci, l - 1, -(m + 1), up);
                add(1, si, l - 1, m + 1, -up);
            }
            const double down = 0.5 * w / weight(l - 1, m - 1);
            add(0, ci, l - 1, m - 1, -down);
            add(1, si, l - 1, m - 1, -down);
            if (m - 1 > 0)
            {
                add(0, si, l - 1, -(m - 1), -down);
                add(1, ci, l - 1, -(m - 1), down);
            }
        }
    }
    return terms;
}

std::vector<M2lEntry> m2lEntries(int p)
{
    const int n = coefficientCount(p);
    std::vector<M2lEntry> entries(static_cast<size_t>(n) * n);
    // With I = P + iQ the irregular harmonic of degree J = l + l', and "+" and "-" standing for
    // k = m + m' and k = m - m', the four real blocks are (-1)^l' / (n_lm n_l'm') times
    //   cc: P+ + (-1)^m' P-   ss: -P+ + (-1)^m' P-   cs: Q+ + (-1)^m' Q-   sc: Q+ - (-1)^m' Q-
    // (first letter: target). A factor sqrt(1/2) for each m = 0, and P- = P+, Q- = Q+ then.
    const auto set = [](M2lEntry* entry, int slot, int J, int k, bool imaginary, double value)
    {
        // v_J,+-k = sqrt(2) (Re, Im) of I_Jk / n_Jk, and I_J,-k = (-1)^k conj(I_Jk)
        const int kAbs = std::abs(k);
        double f       = value * rootOfFactorials(J, kAbs);
        if (k < 0)
        {
            f *= ((kAbs % 2) ? -1 : 1) * (imaginary ? -1 : 1);
        }
        if (imaginary && kAbs == 0)
        {
            f = 0;
        }
        if (kAbs > 0)
        {
            f /= std::sqrt(2.0);
        }
        entry->index[slot] = coefficientIndex(J, imaginary ? -kAbs : kAbs);
        entry->value[slot] = f;
    };
    for (int lt = 0; lt <= p; lt++)
    {
        for (int ls = 0; ls <= p; ls++)
        {
            const int J       = lt + ls;
            const double sign = (lt % 2) ? -1 : 1;
            for (int mt = 0; mt <= lt; mt++)
            {
                for (int ms = 0; ms <= ls; ms++)
                {
                    const double norm =
                            sign / (rootOfFactorials(lt, mt) * rootOfFactorials(ls, ms));
                    const double odd = (mt % 2) ? -1 : 1;
                    const auto at    = [&](int st, int ss) -> M2lEntry*
                    {
                        const size_t row = coefficientIndex(lt, st * mt);
                        return &entries[row * n + coefficientIndex(ls, ss * ms)];
                    };
                    if (mt == 0 || ms == 0)
                    {
                        // one of the two sums over +-m collapses
                        const int k    = mt + ms;
                        const double f = norm * ((k > 0) ? std::sqrt(2.0) : 1.0);
                        set(at(1, 1), 0, J, k, false, f);
                        if (mt > 0)
                        {
                            set(at(-1, 1), 0, J, k, true, f);
                        }
                        if (ms > 0)
                        {
                            set(at(1, -1), 0, J, k, true, f);
                        }
                        continue;
                    }
                    set(at(1, 1), 0, J, mt + ms, false, norm);
                    set(at(1, 1), 1, J, ms - mt, false, norm * odd);
                    set(at(-1, -1), 0, J, mt + ms, false, -norm);
                    set(at(-1, -1), 1, J, ms - mt, false, norm * odd);
                    set(at(1, -1), 0, J, mt + ms, true, norm);
                    set(at(1, -1), 1, J, ms - mt, true, norm * odd);
                    set(at(-1, 1), 0, J, mt + ms, true, norm);
                    set(at(-1, 1), 1, J, ms - mt, true, -norm * odd);
                }
            }
        }
    }
    return entries;
}

Matrix m2lMatrix(const std::vector<M2lEntry>& entries, int p, const double* v)
{
    const int n = coefficientCount(p);
    Matrix T(n, n);
    for (size_t e = 0; e < entries.size(); e++)
    {
        const M2lEntry& entry = entries[e];
        T.data()[e] = entry.value[0] * v[entry.index[0]] + entry.value[1] * v[entry.index[1]];
    }
    return T;
}

Matrix translation(int p, const Vec3& s)
{
    const int n      = coefficientCount(p);
    const int rings  = p + 1;
    const int points = 2 * p + 2;
    std::vector<double> z, w;
    gaussLegendre(rings, &z, &w);
    Matrix shifted(rings * points, n);
    Matrix centred(rings * points, n);
    for (int i = 0; i < rings; i++)
    {
        for (int j = 0; j < points; j++)
        {
            const double phi = 2 * M_PI * j / points;
            const double rho = std::sqrt(1 - z[i] * z[i]);
            const Vec3 a(rho * std::cos(phi), rho * std::sin(phi), z[i]);
            const int row = i * points + j;
            solidHarmonics(p, a + s, shifted.row(row).data());
            solidHarmonics(p, a, centred.row(row).data());
            centred.row(row) *= w[i] / (2.0 * points);
        }
    }
    Matrix S = shifted.transpose() * centred;
    for (int i = 0; i < n; i++)
    {
        for (int j = 0; j < n; j++)
        {
            // a shift never raises the degree; what the quadrature leaves there is rounding
            S(i, j) *= (degreeOf(j) <= degreeOf(i)) ? 2 * degreeOf(j) + 1 : 0;
        }
    }
    return S;
}

Matrix leastSquaresReduction(int p, int high, const Eigen::Matrix3d& cell)
{
    const int n = coefficientCount(p);
    const int N = coefficientCount(high);
    std::vector<double> x, w;
    gaussLegendre(high + 1, &x, &w);
    const int nodes = static_cast<int>(x.size());
    Matrix values(nodes * nodes * nodes, N);
    int row = 0;
    for (int i = 0; i < nodes; i++)
    {
        for (int j = 0; j < nodes; j++)
        {
            for (int k = 0; k < nodes; k++, row++)
            {
                const Vec3 a = cell.transpose() * (0.5 * Vec3(x[i], x[j], x[k]));
                solidHarmonics(high, a, values.row(row).data());
                values.row(row) *= std::sqrt(w[i] * w[j] * w[k]);
            }
        }
    }
    // Gram matrices: columns scaled to unit norm first, for the condition of the system
    Eigen::VectorXd norm = values.colwise().norm();
    for (int i = 0; i < N; i++)
    {
        values.col(i) /= norm[i];
    }
    const Matrix low  = values.leftCols(n);
    const Matrix gram = low.transpose() * low;
    const Matrix rhs  = low.transpose() * values.rightCols(N - n);
    Matrix C          = gram.ldlt().solve(rhs);
    for (int i = 0; i < n; i++)
    {
        for (int j = 0; j < N - n; j++)
        {
            // inversion symmetry of the cell separates even from odd degrees
            const bool sameParity = (degreeOf(i) - degreeOf(n + j)) % 2 == 0;
            C(i, j) *= sameParity ? norm[n + j] / norm[i] : 0;
        }
    }
    return C;
}

} // namespace farfield
