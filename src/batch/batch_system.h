/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief One system of a batch, and why it may be refused.
 */
#ifndef FARFIELD_BATCH_BATCH_SYSTEM_H
#define FARFIELD_BATCH_BATCH_SYSTEM_H

#include <string>

#include "base/vectors.h"
#include "batch/reduced_box.h"

namespace farfield
{

//! A system, in the arrays of the caller.
template<class Real>
struct BatchSystem
{
    const Real* x;     //!< [n][3], nm
    const Real* q;     //!< [n][channels], e
    const double* box; //!< [3][3], nm; null without images
    int n;
};

/*! \brief Refuses charges at one place.
 *  \param[in] box         null without images
 *  \param[in] rounding    nm
 *  \param[in] potentials  whether that of a neutral particle matters
 *  \throws Error  InvalidArgument: the target and another particle are at one place, and it matters; the
 *                 text follows "System n " */
template<class Real>
void refuseContact(const BatchSystem<Real>& system,
                   const ReducedBox* box,
                   int channels,
                   int target,
                   double rounding,
                   bool potentials);

//! The text that follows "System n " where a particle is more than a billion box vectors away.
std::string tooFarMessage(int particle);

//! The same where a slab is too high, nm.
std::string tooHighMessage(double thickness);

//! A symmetric tensor from its components xx yy zz xy xz yz.
Mat3 tensorOf(const double components[6]);

} // namespace farfield

#endif
