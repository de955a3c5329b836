/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/field_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farfield
{
namespace
{

//! Sums of squares over all places.
struct SumsOfSquares
{
    double differences = 0, fields = 0;
};

//! The sums of one set of charges at n places, with large fields counted as errorOf says.
SumsOfSquares sumsOf(const std::vector<double>& fields,
                     const std::vector<double>& better,
                     int set,
                     size_t n,
                     double perPotential)
{
    constexpr double c_most  = 10; // medians
    constexpr double c_early = 0.4;
    const auto component     = [n, set](const std::vector<double>& of, int k, size_t i)
    { return of[(static_cast<size_t>(set) * 4 + k) * n + i]; };
    std::vector<double> sizes(n), differences(n);
    for (size_t i = 0; i < n; i++)
    {
        double size = 0, difference = 0;
        for (int k = 1; k < 4; k++)
        {
            const double is = component(better, k, i);
            size += is * is;
            difference += std::pow(component(fields, k, i) - is, 2);
        }
        sizes[i]       = size;
        differences[i] = difference;
    }
    std::vector<double> sorted = sizes;
    // of a sample the median may be off: where there are two kinds of fields, that would be the other kind
    const auto early = static_cast<size_t>(c_early * static_cast<double>(n));
    std::nth_element(sorted.begin(), sorted.begin() + early, sorted.end());
    const double median = sorted[early];
    for (size_t i = 0; i < n; i++)
    {
        sorted[i] = std::abs(component(better, 0, i));
    }
    std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.end());
    const double least = static_cast<double>(n) * std::pow(perPotential * sorted[n / 2], 2);
    const double most =
            median > 0 ? c_most * c_most * median : std::numeric_limits<double>::infinity();
    double total = 0, error = 0;
    for (size_t i = 0; i < n; i++)
    {
        // a large field may have the error of its pairs
        const double counted = std::min(sizes[i], most);
        total += counted;
        error += sizes[i] > 0 ? differences[i] * counted / sizes[i] : differences[i];
    }
    return { error, std::max(total, least) };
}

//! What is no number is too large: infinity.
double relativeError(const SumsOfSquares& sums)
{
    const double relative = sums.differences > 0 ? std::sqrt(sums.differences / sums.fields) : 0;
    const bool isNumber   = std::isfinite(relative) && std::isfinite(sums.differences);
    return isNumber ? relative : std::numeric_limits<double>::infinity();
}

} // namespace

double errorOf(const std::vector<double>& fields,
               const std::vector<double>& better,
               int sets,
               bool areTogether,
               double perPotential)
{
    const size_t n = fields.size() / (4 * static_cast<size_t>(sets));
    SumsOfSquares together;
    double worst = 0;
    for (int set = 0; set < sets; set++)
    {
        const SumsOfSquares ofSet = sumsOf(fields, better, set, n, perPotential);
        together.differences += ofSet.differences;
        together.fields += ofSet.fields;
        worst = std::max(worst, relativeError(ofSet));
    }
    return areTogether ? relativeError(together) : worst;
}

} // namespace farfield
