/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "m2l/engines.h"

#include <string>

namespace farfield
{
namespace
{

template<class Real>
struct Engine
{
    M2lEngine name;
    std::unique_ptr<DeviceM2l<Real>> (*make)(double rounding);
};

//! The engines. A new one has its factory declared in engines.h, its name in farfield/options.h,
//! and a row here.
template<class Real>
constexpr Engine<Real> c_engines[] = {
    { M2lEngine::Hierarchy, makeGemmM2l<Real> }, // the fastest way
    { M2lEngine::Symmetric, makeSymmetricM2l<Real> },
    { M2lEngine::Gemm, makeGemmM2l<Real> },
};

template<class Real>
std::string namesOfEngines()
{
    std::string names = "'auto'";
    for (const Engine<Real>& engine : c_engines<Real>)
    {
        names += std::string(", '") + nameOf(engine.name) + "'";
    }
    return names;
}

} // namespace

template<class Real>
std::unique_ptr<DeviceM2l<Real>> makeDeviceM2l(M2lEngine name, double rounding)
{
    for (const Engine<Real>& engine : c_engines<Real>)
    {
        if (engine.name == name)
        {
            return engine.make(rounding);
        }
    }
    throw Error(ErrorCode::Unsupported,
                std::string("The GPU has no M2L engine '") + nameOf(name)
                        + "' for interaction lists, but it has " + namesOfEngines<Real>() + ".",
                "m2l");
}

template std::unique_ptr<DeviceM2l<float>> makeDeviceM2l<float>(M2lEngine, double);
template std::unique_ptr<DeviceM2l<double>> makeDeviceM2l<double>(M2lEngine, double);

} // namespace farfield
