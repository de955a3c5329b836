/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "evaluation/input_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/text.h"
#include "cells/binning.h"
#include "cells/position_error.h"
#include "evaluation/charge_limits.h"

namespace farfield
{
namespace
{

//! That an option is not legal, and what is.
Error outOfRange(const OptionDescription& option, double value)
{
    std::string unit = option.unit;
    if (!unit.empty())
    {
        unit.insert(0, " ");
    }
    std::string message = "The option ";
    message += option.name;
    message += " = " + text(value) + unit;
    message += " is outside its range, " + text(option.smallest) + " to ";
    message += text(option.largest) + unit;
    if (!std::isnan(option.open))
    {
        message += ", or " + text(option.open) + ": then ";
        message += option.whenOpen;
    }
    return Error(ErrorCode::InvalidArgument, message + ".", option.name);
}

} // namespace

template<class Real>
void checkOptions(const Options& options)
{
    for (const OptionDescription& option : c_options<Real>)
    {
        const double value = valueOf(option, options);
        if (!isLegal(option, value))
        {
            throw outOfRange(option, value);
        }
    }
}

void checkEngine(M2lEngine engine, Device device)
{
    if (device == Device::Cpu && descriptionOf(engine).isForGpuOnly)
    {
        throw Error(ErrorCode::Unsupported,
                    "The M2L engine '" + std::string(nameOf(engine))
                            + "' exists on the device 'gpu' only: use 'auto', 'hierarchy' or 'fft' "
                              "on the CPU.",
                    "m2l");
    }
}

void checkHelpers(const DeviceList& helpers, Device device, bool onRanks)
{
    if (helpers.size() > c_maxHelperDevices)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "There are " + std::to_string(helpers.size()) + " helper devices: at most "
                            + std::to_string(c_maxHelperDevices) + " can be used.",
                    "helperDevices");
    }
    if (!helpers.empty() && (device == Device::Cpu || onRanks))
    {
        throw Error(ErrorCode::Unsupported,
                    std::string("Helper devices need a solver with the device 'gpu' on one rank; "
                                "this one ")
                            + (device == Device::Cpu ? "has 'cpu'." : "is on several ranks."),
                    "helperDevices");
    }
}

void checkOnGpu(bool isOnGpu)
{
    if (!isOnGpu)
    {
        throw Error(ErrorCode::Unsupported,
                    "Arrays in device memory need a solver with the device 'gpu'; this one has "
                    "'cpu'.",
                    "device");
    }
}

Mat3 checkedBox(const double box[3][3], Boundary boundary)
{
    Mat3 B = Mat3::Identity();
    std::string all;
    bool valid = true;
    for (int i = 0; i < 3 && !isOpenAlong(boundary, i); i++)
    {
        all += (i ? "; " : "");
        for (int j = 0; j < 3; j++)
        {
            B(i, j) = box[i][j];
            // written so that NaN fails
            valid = valid && std::abs(box[i][j]) <= c_largestBox && (j <= i || box[i][j] == 0)
                    && (j != i || box[i][j] >= c_smallestBox);
            all += (j ? " " : "") + text(box[i][j]);
        }
    }
    if (!valid)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The box vectors (" + all
                            + ") nm must be finite and lower triangular with a positive diagonal, "
                            + text(c_smallestBox) + " to " + text(c_largestBox) + " nm.");
    }
    return B;
}

void checkNumber(long long n, const char* of)
{
    if (n < 0 || n > c_mostParticles)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The number of " + std::string(of) + ", " + std::to_string(n)
                            + ", is outside its range, 0 to " + std::to_string(c_mostParticles)
                            + ".");
    }
}

template<class Real>
void checkCharges(const Real* q, int n)
{
    checkNumber(n, "particles");
    for (int i = 0; i < n; i++)
    {
        if (!isLegalCharge(q[i]))
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The charge of particle " + text(i) + ", " + text(static_cast<double>(q[i]))
                                + " e, must be finite and at most " + text(c_largestCharge)
                                + " e.");
        }
    }
}

void checkExclusions(const int* offsets, const int* partners, int n, int count)
{
    if (n != count)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The exclusions are for " + text(n) + " particles, the charges for "
                            + text(count) + ": set the charges first.");
    }
    if (offsets[0] != 0)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The first offset of the exclusions, " + text(offsets[0]) + ", must be 0.");
    }
    for (int i = 0; i < n; i++)
    {
        if (offsets[i + 1] < offsets[i])
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The offsets of the exclusions must ascend; those of particle " + text(i)
                                + " are " + text(offsets[i]) + " and " + text(offsets[i + 1])
                                + ".");
        }
        for (int k = offsets[i]; k < offsets[i + 1]; k++)
        {
            if (partners[k] < 0 || partners[k] >= n)
            {
                throw Error(ErrorCode::InvalidArgument,
                            "The excluded partner " + text(partners[k]) + " of particle " + text(i)
                                    + " is outside the range 0 to " + text(n - 1) + " of the "
                                    + text(n) + " particles.");
            }
        }
    }
}

template<class Real>
void checkWidths(const NearFunction& function, const Real* widths, int n, int count)
{
    if (n != count)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The widths are for " + text(n) + " particles, the charges for " + text(count)
                            + ": set the charges first.");
    }
    for (int i = 0; function.function != PairFunction::Coulomb && i < n; i++)
    {
        if (!std::isfinite(widths[i]) || widths[i] < 0)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The width of particle " + text(i) + ", "
                                + text(static_cast<double>(widths[i]))
                                + " nm, must be finite and not negative.");
        }
    }
}

namespace
{

//! \param[in] what  one of them \param[in] each  components \param[in] unit  of them, behind a space
template<class Real>
void checkMoments(const Real* moments,
                  size_t each,
                  const char* what,
                  const char* unit,
                  int n,
                  int count)
{
    if (n != count)
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::string("There are ") + what + "s of " + text(n)
                            + " particles, but charges of " + text(count)
                            + ": set the charges first.");
    }
    for (size_t k = 0; k < each * static_cast<size_t>(n) && moments != nullptr; k++)
    {
        const double component = std::abs(static_cast<double>(moments[k]));
        if (!(component <= c_largestCharge)) // NaN is refused, too
        {
            throw Error(ErrorCode::InvalidArgument,
                        std::string("The ") + what + " of particle " + text(k / each)
                                + " has a component of " + text(static_cast<double>(moments[k]))
                                + unit + ", which must be finite and at most "
                                + text(c_largestCharge) + unit + ".");
        }
    }
}

} // namespace

template<class Real>
void checkDipoles(const Real* dipoles, int n, int count)
{
    checkMoments(dipoles, 3, "dipole", " e nm", n, count);
}

template<class Real>
void checkQuadrupoles(const Real* quadrupoles, int n, int count)
{
    constexpr double c_rounding = 1e-5; // also of values with six digits
    checkMoments(quadrupoles, 6, "quadrupole", " e nm^2", n, count);
    for (int i = 0; i < n && quadrupoles != nullptr; i++)
    {
        const Real* own    = quadrupoles + 6 * static_cast<size_t>(i);
        const auto largest = [own](int k) { return std::abs(static_cast<double>(own[k])); };
        const double trace = static_cast<double>(own[0]) + static_cast<double>(own[1])
                             + static_cast<double>(own[2]);
        if (std::abs(trace) > c_rounding * std::max({ largest(0), largest(1), largest(2) }))
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The quadrupole of particle " + text(i) + " has the trace " + text(trace)
                                + " e nm^2, which must be 0: subtract a third of it from xx, yy "
                                  "and zz.");
        }
    }
}

template<class Real>
void checkInduction(const Real* polarisabilities, const Real* dipoles, int n, double tolerance)
{
    // less is lost in rounding
    constexpr double c_least = sizeof(Real) == 4 ? 1e-6 : 1e-13;
    if (!(tolerance >= c_least && tolerance < 1))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The tolerance of induced dipoles is " + text(tolerance)
                            + ", but must be between " + text(c_least)
                            + " and 1 in this precision.",
                    "tolerance");
    }
    for (int i = 0; i < n; i++)
    {
        const auto alpha = static_cast<double>(polarisabilities[i]);
        if (!(alpha >= 0 && std::isfinite(alpha)))
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The polarisability of particle " + text(i) + " is " + text(alpha)
                                + " nm^3, but must be finite and not negative.",
                        "polarisabilities");
        }
    }
    checkDipoles(dipoles, n, n);
}

void checkSites(const char* what, bool twoStates, PairFunction function, bool virial)
{
    const auto refuse = [what](const std::string& instead)
    { throw Error(ErrorCode::Unsupported, std::string(what) + " " + instead); };
    if (twoStates)
    {
        refuse("need charges of one state: call setCharges().");
    }
    if (function == PairFunction::SoftCore)
    {
        refuse("do not go with soft cores: set another near function.");
    }
    if (function != PairFunction::Coulomb && virial)
    {
        refuse("with near functions have no virial: leave it out.");
    }
}

void checkNearRange(double range, const Mat3& box, Boundary boundary)
{
    if (range == 0)
    {
        return;
    }
    const Mat3 inverse = box.inverse();
    double width       = std::numeric_limits<double>::infinity();
    for (int k = 0; k < 3; k++)
    {
        width = isOpenAlong(boundary, k) ? width : std::min(width, 1 / inverse.col(k).norm());
    }
    if (!(range <= 0.5 * width))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The near function differs from 1/r within " + text(range)
                            + " nm, which is more than half of the smallest distance of opposite "
                              "faces of the box, "
                            + text(width) + " nm: smaller widths need less.");
    }
}

void checkGroups(const int* group, int n, int groups)
{
    if (groups < 1)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The number of groups, " + text(groups) + ", must be at least 1.");
    }
    for (int i = 0; i < n; i++)
    {
        if (group[i] < 0 || group[i] >= groups)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The group " + text(group[i]) + " of particle " + text(i)
                                + " is outside the range 0 to " + text(groups - 1) + ".");
        }
    }
}

template<class Real>
void checkPositions(const Real* x,
                    const std::vector<char>& isCharged,
                    const Mat3& box,
                    const char* what)
{
    const Mat3 inverse = box.inverse();
    for (int i = 0; i < static_cast<int>(isCharged.size()); i++)
    {
        const Real* r              = x + 3 * static_cast<size_t>(i);
        const Eigen::RowVector3d f = Eigen::RowVector3d(static_cast<double>(r[0]),
                                                        static_cast<double>(r[1]),
                                                        static_cast<double>(r[2]))
                                     * inverse;
        // so many boxes are more cells, of which the sorting has the limit; written so that NaN fails
        if (isCharged[i] && (!(f.cwiseAbs().maxCoeff() < c_farthestCell) || f.hasNaN()))
        {
            throw positionError(what, i, r);
        }
    }
}

void checkPoints(int points, int particles, bool twoStates)
{
    if (twoStates)
    {
        throw Error(ErrorCode::Unsupported,
                    "Potentials at points need charges of one state: call setCharges().");
    }
    checkNumber(points, "points");
    checkNumber(static_cast<long long>(points) + particles, "points and particles");
}

template<class Real>
Vec3 checkedExtent(const Real* x, const std::vector<char>& counts, const char* what)
{
    constexpr double c_infinity = std::numeric_limits<double>::infinity();
    Vec3 least = Vec3::Constant(c_infinity), most = -least;
    for (int i = 0; i < static_cast<int>(counts.size()); i++)
    {
        const Real* r = x + 3 * static_cast<size_t>(i);
        const Vec3 place(r[0], r[1], r[2]);
        if (!counts[i])
        {
            continue;
        }
        least = least.cwiseMin(place);
        most  = most.cwiseMax(place);
        // written so that NaN fails
        if (!(place.cwiseAbs().maxCoeff() < c_infinity) || place.hasNaN())
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The position of " + nameOfPlace(what, i, r) + " is not finite.",
                        "positions");
        }
    }
    const Vec3 extent = most - least;
    checkExtent(extent);
    return extent;
}

void checkExtent(const Vec3& extent)
{
    if (extent.maxCoeff() > c_largestBox)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "Particles are " + text(extent.maxCoeff())
                            + " nm apart. Without images at most " + text(c_largestBox)
                            + " nm are allowed: leave out particles that have flown away.",
                    "positions");
    }
}

void checkOpenVirialOnDevice(const Request& request)
{
    if (request.virial && !request.replaceForces)
    {
        throw Error(ErrorCode::Unsupported,
                    "With the boundary 'open' the virial of device arrays needs "
                    "Request::replaceForces: set it, or leave Request::virial out.",
                    "boundary");
    }
}

void checkRequest(const Request& request)
{
    for (double offset : request.gridOffset)
    {
        const bool isInCell = offset >= 0 && offset <= 1; // not if it is not a number
        if (!isInCell)
        {
            throw Error(ErrorCode::InvalidArgument,
                        "The grid offset, " + text(offset) + ", is outside its range, 0 to 1.");
        }
    }
    if (!std::isfinite(request.lambda))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "Lambda, " + text(request.lambda) + ", is not finite.");
    }
}

template void checkOptions<float>(const Options&);
template void checkOptions<double>(const Options&);
template void checkCharges(const float*, int);
template void checkCharges(const double*, int);
template void checkDipoles(const float*, int, int);
template void checkDipoles(const double*, int, int);
template void checkQuadrupoles(const float*, int, int);
template void checkQuadrupoles(const double*, int, int);
template void checkInduction(const float*, const float*, int, double);
template void checkInduction(const double*, const double*, int, double);
template void checkWidths(const NearFunction&, const float*, int, int);
template void checkWidths(const NearFunction&, const double*, int, int);
template Vec3 checkedExtent(const float*, const std::vector<char>&, const char*);
template Vec3 checkedExtent(const double*, const std::vector<char>&, const char*);
template void checkPositions(const float*, const std::vector<char>&, const Mat3&, const char*);
template void checkPositions(const double*, const std::vector<char>&, const Mat3&, const char*);

} // namespace farfield
