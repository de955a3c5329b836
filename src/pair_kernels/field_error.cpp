/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/field_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farfield
{

double errorOf(const std::vector<double>& fields,
               const std::vector<double>& better,
               int sets,
               bool areTogether,
               double perPotential)
{
    constexpr double c_most  = 10; // medians
    constexpr double c_early = 0.4;
    const size_t n           = fields.size() / (4 * static_cast<size_t>(sets));
    double worst             = 0;
    double allErrors = 0, all = 0; // of the sets up to one
    for (int s = 0; s < sets; s++)
    {
        const auto component = [n, s](const std::vector<double>& of, int k, size_t i)
        { return of[(static_cast<size_t>(s) * 4 + k) * n + i]; };
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
        allErrors             = error + (areTogether ? allErrors : 0);
        all                   = std::max(total, least) + (areTogether ? all : 0);
        const double relative = allErrors > 0 ? std::sqrt(allErrors / all) : 0;
        // what is no number is too large
        const bool isNumber = std::isfinite(relative) && std::isfinite(allErrors);
        worst               = !isNumber     ? std::numeric_limits<double>::infinity()
                              : areTogether ? relative
                                            : std::max(worst, relative);
    }
    return worst;
}

} // namespace farfield
