/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What the generated systems have in common: random numbers, cubes, single precision.
 */
#ifndef FARFIELD_BENCH_RANDOM_H
#define FARFIELD_BENCH_RANDOM_H

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "bench_systems.h"

namespace farfield
{
namespace bench
{

constexpr double c_pi = 3.14159265358979323846;

using Point = std::array<double, 3>;

//! Uniform numbers that are the same with every standard library.
class Random
{
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    //! In [low, high).
    double uniform(double low, double high)
    {
        return low + (high - low) * (engine_() / 4294967296.0);
    }
    //! In [0, count).
    int below(int count) { return static_cast<int>(uniform(0, count)); }
    //! Puts any of the elements to the first places.
    template<class T>
    void draw(std::vector<T>* elements, int places)
    {
        for (int size = static_cast<int>(elements->size()), k = 0; k < places; k++)
        {
            std::swap((*elements)[k], (*elements)[k + below(size - k)]);
        }
    }
    //! Uniform on the unit sphere.
    Point direction()
    {
        const double z   = uniform(-1, 1);
        const double phi = uniform(0, 2 * c_pi);
        const double r   = std::sqrt(std::max(0.0, 1 - z * z));
        return { r * std::cos(phi), r * std::sin(phi), z };
    }

private:
    std::mt19937 engine_;
};

//! The nearest number that single precision holds.
inline double single(double value)
{
    return static_cast<double>(static_cast<float>(value));
}

//! An empty cube. \param[in] edge  nm
inline void setCube(double edge, System* system)
{
    for (int k = 0; k < 3; k++)
    {
        system->box[k][k] = edge;
    }
    system->offsets.assign(1, 0);
}

} // namespace bench
} // namespace farfield

#endif
