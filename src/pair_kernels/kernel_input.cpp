/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "pair_kernels/kernel_input.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/text.h"
#include "batch/reduced_box.h"
#include "cells/position_error.h"
#include "evaluation/input_check.h"
#include "pair_kernels/pair_kernel.h"

namespace farfield
{
namespace
{

//! A periodic box is at most so many times as long as it is high.
constexpr double c_longestBox = 1000;

void refuseUnless(bool isFine, const std::string& text, const char* parameter)
{
    if (!isFine)
    {
        throw Error(ErrorCode::InvalidArgument, text, parameter);
    }
}

void take(const double* x, int n, const char* what, Extent* extent)
{
    for (int i = 0; i < n; i++)
    {
        const Vec3 at(x[3 * static_cast<size_t>(i)],
                      x[3 * static_cast<size_t>(i) + 1],
                      x[3 * static_cast<size_t>(i) + 2]);
        if (!at.allFinite())
        {
            throw notFinitePosition(what, i, x + 3 * static_cast<size_t>(i));
        }
        extent->low  = extent->low.cwiseMin(at);
        extent->high = extent->high.cwiseMax(at);
    }
}

} // namespace

template<class Real>
void checkKernelOptions(const Kernel& kernel, const KernelOptions& options)
{
    Options shared;
    shared.accuracy = options.accuracy;
    shared.device   = options.device;
    shared.deviceId = options.deviceId;
    shared.threads  = options.threads;
    checkOptions<Real>(shared);
    if (options.boundary == Boundary::Slab)
    {
        throw Error(
                ErrorCode::Unsupported,
                "Sums of other kernels than 1/r have no slabs: boundary must be Open or Periodic.",
                "boundary");
    }
    if (options.boundary == Boundary::Periodic && !kernel.pairKernel().hasPeriodicSum())
    {
        throw Error(ErrorCode::Unsupported,
                    "The kernel " + kernel.name()
                            + " has no sum over periodic images here: use exp(-kappa r)/r, an even "
                              "power from 1/r^4 on, or a table that ends at 0.",
                    "kernel");
    }
}

template<class Real>
void checkKernelInput(const KernelInput<Real>& input, Boundary boundary)
{
    refuseUnless(input.n >= 0 && input.points >= -1 && input.sets >= 1,
                 "There are " + text(input.n) + " charges in " + text(input.sets) + " sets and "
                         + text(input.points)
                         + " points: no number may be negative, and there must be a set.",
                 "n");
    refuseUnless((input.n == 0 || (input.x != nullptr && input.q != nullptr))
                         && (input.points <= 0 || input.at != nullptr),
                 "Positions or charges are missing: a pointer is null.",
                 "x");
    refuseUnless(
            boundary == Boundary::Periodic || input.box == nullptr,
            "A box is given, but the boundary is open: make the sum for a periodic one, or leave "
            "the box out.",
            "box");
}

template<class Real>
void checkCharges(const KernelInput<Real>& input)
{
    const size_t charges = static_cast<size_t>(input.n) * input.sets;
    for (size_t i = 0; i < charges; i++)
    {
        if (!std::isfinite(input.q[i]))
        {
            throw notFiniteCharge(static_cast<int>(i / input.sets));
        }
    }
}

Error notFiniteCharge(int particle)
{
    return Error(ErrorCode::InvalidArgument,
                 "A charge of particle " + std::to_string(particle) + " is not finite.",
                 "charges");
}

Error notFinitePosition(const char* what, int index, const double* x)
{
    return Error(ErrorCode::InvalidArgument,
                 "The position of " + nameOfPlace(what, index, x) + " is not finite.",
                 "positions");
}

template<class Real>
void checkExcludedCharges(const KernelInput<Real>& input, int n)
{
    refuseUnless(input.n == n,
                 "Exclusions are set for " + text(n) + " charges, but there are " + text(input.n)
                         + ": set them again, or take them back.",
                 "exclusions");
}

template<class Real>
void checkVirials(const KernelInput<Real>& input)
{
    refuseUnless(
            input.points < 0,
            "Virials are those of charges: they cannot be computed with results at other points.",
            "virials");
}

Mat3 reducedPeriodicBox(const double (*box)[3])
{
    refuseUnless(box != nullptr, "A periodic sum needs a box.", "box");
    Mat3 given;
    for (int i = 0; i < 9; i++)
    {
        given(i / 3, i % 3) = box[i / 3][i % 3];
    }
    refuseUnless(given.allFinite()
                         && std::abs(given.determinant()) > 1e-10 * std::pow(given.norm(), 3),
                 "The box is not finite or has no volume.",
                 "box");
    const ReducedBox reduced(given);
    Mat3 result = reduced.vectors;
    refuseUnless(result.rowwise().norm().maxCoeff() <= c_longestBox * reduced.heights.minCoeff(),
                 "The box is more than " + text(c_longestBox) + " times as long as it is high.",
                 "box");
    if (result.determinant() < 0)
    {
        result.row(2) *= -1; // the same lattice
    }
    return result;
}

template<class Real>
Extent Extent::of(const KernelInput<Real>& input)
{
    Extent extent;
    extent.low  = Vec3::Constant(std::numeric_limits<double>::infinity());
    extent.high = -extent.low;
    take(input.x, input.n, "particle", &extent);
    take(input.at, std::max(input.points, 0), "point", &extent);
    return extent.low.allFinite() ? extent : Extent();
}

double Extent::edge() const
{
    const double far  = std::max(low.cwiseAbs().maxCoeff(), high.cwiseAbs().maxCoeff());
    const double edge = std::max(lengths().maxCoeff(), 1e-12 * far);
    return edge > 0 ? edge : 1;
}

template void checkKernelOptions<float>(const Kernel&, const KernelOptions&);
template void checkKernelOptions<double>(const Kernel&, const KernelOptions&);
template void checkKernelInput(const KernelInput<float>&, Boundary);
template void checkKernelInput(const KernelInput<double>&, Boundary);
template void checkCharges(const KernelInput<float>&);
template void checkCharges(const KernelInput<double>&);
template void checkExcludedCharges(const KernelInput<float>&, int);
template void checkExcludedCharges(const KernelInput<double>&, int);
template void checkVirials(const KernelInput<float>&);
template void checkVirials(const KernelInput<double>&);
template Extent Extent::of(const KernelInput<float>&);
template Extent Extent::of(const KernelInput<double>&);

} // namespace farfield
