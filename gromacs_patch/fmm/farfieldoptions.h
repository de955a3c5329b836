/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \libinternal \file
 * \brief The mdp options of the farfield FMM backend.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDOPTIONS_H
#define GMX_FMM_FARFIELDOPTIONS_H

#include "fmmoptions.h"

namespace gmx
{

//! How multipoles become local expansions, see farfield::M2lEngine.
enum class FarfieldM2l
{
    Auto,
    Hierarchy,
    Fft,
    Naive,
    Dynamic,
    Symmetric,
    Gemm,
    Count
};

//! Where the FMM runs, see farfield::Device.
enum class FarfieldDevice
{
    Auto,
    Cpu,
    Gpu,
    Count
};

/*! \brief The options fmm-farfield-..., with their defaults.
 *
 * The defaults and limits are those of farfield::Options. They are repeated here, so that grompp
 * can check its input in builds without the library.
 */
struct FarfieldOptions : IFmmOptions
{
    //! Wanted relative RMS error of the total force, 1e-10 to 1e-1
    double accuracy = 3e-4;
    //! Multipole order, 0 to 20; -1 lets the accuracy decide
    int order = -1;
    //! Direct range in cells, 1 or 2; 0 lets the cost decide
    int directRange = 0;
    //! Edge of a leaf cell in nm; 0 lets the cost decide
    double cellSize = 0;
    //! M2L engine
    FarfieldM2l m2l = FarfieldM2l::Auto;
    //! Backend
    FarfieldDevice device = FarfieldDevice::Auto;
    //! Whether the settings that are left open are timed before the first step, on a GPU
    bool tune = true;

    void initMdpOptionsFmm(OptionSectionHandle& section) override;
    void initMdpTransformFmm(IKeyValueTreeTransformRules* rules) override;
    void buildMdpOutputFmm(KeyValueTreeObjectBuilder* builder) const override;
    //! Reports each option that is out of range to \p wi
    void validateMdpOptions(WarningHandler* wi) const override;
};

} // namespace gmx

#endif
