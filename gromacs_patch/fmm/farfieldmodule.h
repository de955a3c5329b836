/*
 * This file is part of the GROMACS molecular simulation package.
 *
 * Copyright 2026- The GROMACS Authors
 * and the project initiators Erik Lindahl, Berk Hess and David van der Spoel.
 * Consult the AUTHORS/COPYING files and https://www.gromacs.org for details.
 *
 * GROMACS is free software; you can redistribute it and/or
 * modify it under the terms of the GNU Lesser General Public License
 * as published by the Free Software Foundation; either version 2.1
 * of the License, or (at your option) any later version.
 *
 * GROMACS is distributed in the hope that it will be useful,
 * but WITHOUT ANY WARRANTY; without even the implied warranty of
 * MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
 * Lesser General Public License for more details.
 *
 * You should have received a copy of the GNU Lesser General Public
 * License along with GROMACS; if not, see
 * https://www.gnu.org/licenses, or write to the Free Software Foundation,
 * Inc., 51 Franklin Street, Fifth Floor, Boston, MA  02110-1301  USA.
 *
 * If you want to redistribute modifications to GROMACS, please
 * consider that scientific software is very special. Version
 * control is crucial - bugs must be traceable. We will be happy to
 * consider code for inclusion in the official distribution, but
 * derived work must not be called official GROMACS. Details are found
 * in the README & COPYING files - if they are missing, get the
 * official version at https://www.gromacs.org.
 *
 * To help us fund GROMACS development, we humbly ask that you cite
 * the research papers on the package. Check out https://www.gromacs.org.
 */

/*! \libinternal \file
 * \brief What the FMM module does for its backend "farfield": one call per hook of the module.
 *
 * Keeps the changes to FmmMDModule at one line per hook.
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FARFIELDMODULE_H
#define GMX_FMM_FARFIELDMODULE_H

#include <memory>

namespace gmx
{

class FmmBackend;
class FmmMdpOptions;
class ForceProviders;
class IMDOutputProvider;
struct MDModulesNotifiers;

/*! \brief The farfield part of the FMM module.
 *
 * All functions may be called whatever backend is active. With another backend, or with none,
 * only coulombtype = FMM is checked: without farfield nothing would compute Coulomb interactions.
 */
class FarfieldModule
{
public:
    //! \param[in] options  the options of the FMM module; must outlive this object
    explicit FarfieldModule(const FmmMdpOptions& options);
    ~FarfieldModule();

    //! grompp: refuses what is not supported, warns of what is odd.
    void subscribeToPreProcessingNotifications(MDModulesNotifiers* notifiers);
    //! mdrun: collects what the force provider needs; reads and writes the checkpoint.
    void subscribeToSimulationSetupNotifications(MDModulesNotifiers* notifiers);
    //! mdrun: follows the redistribution of atoms.
    void subscribeToSimulationRunNotifications(MDModulesNotifiers* notifiers);
    /*! \brief Builds the force provider and adds it to \p forceProviders.
     *
     * \returns whether farfield is the active backend
     */
    bool initForceProviders(ForceProviders* forceProviders);
    //! Writes the timings to the log at the end of the run; nullptr without a force provider.
    IMDOutputProvider* outputProvider();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

//! What this backend can do.
const FmmBackend& farfieldBackend();

} // namespace gmx

#endif
