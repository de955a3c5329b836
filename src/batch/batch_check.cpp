/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "batch/batch_check.h"

#include <cmath>

#include "base/text.h"
#include "batch/legal_box.h"
#include "evaluation/charge_limits.h"
#include "evaluation/input_check.h"

namespace farfield
{
namespace
{

void checkLength(double value, const char* option, const char* unit)
{
    // written so that NaN fails
    if (!(value >= 0 && std::isfinite(value)))
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The option " + std::string(option) + " = " + text(value) + " " + unit
                            + " must be finite and not negative.",
                    option);
    }
}

} // namespace

Error inSystem(int system, const std::string& text, const char* parameter)
{
    return Error(
            ErrorCode::InvalidArgument, "System " + std::to_string(system) + " " + text, parameter);
}

template<class Real>
void checkBatchOptions(const BatchOptions& options)
{
    Options shared;
    detail::forSharedOptions(shared, options, [](auto& to, const auto& from) { to = from; });
    checkOptions<Real>(shared);
    if (options.channels < 1 || options.channels > c_mostChannels)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The option channels = " + text(options.channels)
                            + " is outside its range, 1 to " + text(c_mostChannels) + ".",
                    "channels");
    }
    checkLength(options.smearing, "smearing", "nm");
    checkLength(options.waveCutoff, "waveCutoff", "1/nm");
    if (options.waveCutoff > 0 && options.smearing == 0)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The option waveCutoff is for Gaussian charges: set smearing, or leave it out.",
                    "waveCutoff");
    }
    if (options.smearing > 0 && options.boundary != Boundary::Periodic)
    {
        throw Error(ErrorCode::Unsupported,
                    "Gaussian charges need the boundary 'periodic': with 'slab' and 'open' use "
                    "point charges.",
                    "smearing");
    }
}

template void checkBatchOptions<float>(const BatchOptions&);
template void checkBatchOptions<double>(const BatchOptions&);

void checkOffsets(const int* offsets, int systems, int particles)
{
    checkNumber(systems, "systems");
    if (systems > 0 && offsets[0] != 0)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The first offset of the systems, " + text(offsets[0]) + ", must be 0.");
    }
    for (int s = 0; s < systems; s++)
    {
        if (offsets[s + 1] < offsets[s])
        {
            throw inSystem(s,
                           "ends at particle " + text(offsets[s + 1]) + " and begins at particle "
                                   + text(offsets[s]) + ": offsets must ascend.");
        }
    }
    if (systems > 0 && particles >= 0 && offsets[systems] != particles)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "The last offset of the systems, " + text(offsets[systems])
                            + ", must be the number of particles, " + text(particles) + ".");
    }
}

void checkBoxes(const double* boxes, int systems, Boundary boundary)
{
    for (int s = 0; s < systems; s++)
    {
        const double* const box = boxes + 9 * static_cast<size_t>(s);
        if (boundary == Boundary::Slab ? isLegalPlane(box) : isLegalBox(box))
        {
            continue;
        }
        throw boxNotLegal(s, box, boundary);
    }
}

Error boxNotLegal(int system, const double* box, Boundary boundary)
{
    const bool isSlab = boundary == Boundary::Slab;
    std::string all;
    for (int k = 0; k < (isSlab ? 6 : 9); k++)
    {
        all += (k == 0 ? "" : k % 3 ? " " : "; ") + text(box[k]);
    }
    return inSystem(system,
                    "has the box vectors (" + all
                            + ") nm, which must be finite, of 1e-6 to 1e8 nm, and span a "
                            + (isSlab ? "plane." : "volume."),
                    "boxes");
}

void checkErrors(const double* errors, int systems)
{
    for (int s = 0; s < systems; s++)
    {
        if (!(errors[s] >= 0 && std::isfinite(errors[s])))
        {
            throw inSystem(s,
                           "has an error that is not finite or is negative: pass those of "
                           "evaluate().");
        }
    }
}

Error positionNotFinite(int system, int particle)
{
    return inSystem(system,
                    "has a position that is not finite, of particle " + text(particle) + ".");
}

Error chargeNotFinite(int system, int particle)
{
    return inSystem(system,
                    "has a charge that is not finite or above " + text(c_largestCharge)
                            + " e, of particle " + text(particle) + ".");
}

} // namespace farfield
