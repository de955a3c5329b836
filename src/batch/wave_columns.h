/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Which waves are within a cut-off.
 */
#ifndef FARFIELD_BATCH_WAVE_COLUMNS_H
#define FARFIELD_BATCH_WAVE_COLUMNS_H

#include <array>
#include <vector>

#include "base/vectors.h"
#include "batch/wave_terms.h"

namespace farfield
{

//! The columns within a cut-off.
struct WaveColumns
{
    std::vector<WaveColumn> columns;
    int count                = 0;           //!< (h, k, l) of all columns
    std::array<int, 3> range = { 0, 0, 0 }; //!< largest h, k and l

    /*! \brief Finds them.
     *  \param[in] waves   rows are reciprocal vectors, 1/nm
     *  \param[in] cutoff  1/nm
     *  \throws Error  InvalidArgument: too many waves */
    void find(const Mat3& waves, double cutoff);
};

} // namespace farfield

#endif
