/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Checks of what a caller hands to a Batch. Each throws Error, InvalidArgument unless said.
 */
#ifndef FARFIELD_BATCH_BATCH_CHECK_H
#define FARFIELD_BATCH_BATCH_CHECK_H

#include <string>

#include "farfield/farfield_batch.h"

namespace farfield
{

/*! \brief An InvalidArgument that names a system.
 *  \param[in] text       follows "System n "
 *  \param[in] parameter  a literal, see Error::parameter() */
Error inSystem(int system, const std::string& text, const char* parameter = "");
//! Returns work(), of a system that errors name.
template<class Work>
auto withSystemNamed(int system, const Work& work) -> decltype(work())
{
    try
    {
        return work();
    }
    catch (const Error& error)
    {
        if (error.code() != ErrorCode::InvalidArgument)
        {
            throw;
        }
        throw inSystem(system, error.what(), error.parameter());
    }
}

//! Ranges of all options; Unsupported: charges that are not periodic are Gaussian.
//! \tparam Real  decides on the best accuracy
template<class Real>
void checkBatchOptions(const BatchOptions& options);
//! \param[in] offsets    [systems + 1], ascending from 0
//! \param[in] particles  the last one, or -1: any
void checkOffsets(const int* offsets, int systems, int particles);
//! \param[in] boxes  [systems][3][3]: finite, with a volume; of a slab the third vector is not read, and the
//!                   others span a plane
void checkBoxes(const double* boxes, int systems, Boundary boundary);
//! What is thrown for the box of a system.
Error boxNotLegal(int system, const double* box, Boundary boundary);
//! \param[in] errors  [systems]: finite, not negative
void checkErrors(const double* errors, int systems);
//! A position of a particle of a system is not finite.
Error positionNotFinite(int system, int particle);
//! A charge is not.
Error chargeNotFinite(int system, int particle);

} // namespace farfield

#endif
