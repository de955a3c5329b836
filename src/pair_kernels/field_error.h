/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The error of fields beside better ones.
 */
#ifndef FARFIELD_PAIR_KERNELS_FIELD_ERROR_H
#define FARFIELD_PAIR_KERNELS_FIELD_ERROR_H

#include <vector>

namespace farfield
{

/*! \brief The RMS difference of fields from better ones, relative to the RMS of those.
 *
 *  Fields above ten times the median count as that.
 *  \param[in] fields, better  potentials and fields, [sets][4][n]
 *  \param[in] areTogether  of all sets of charges together; else of the worst of them
 *  \param[in] perPotential  errors are relative to no less than this times the median of the potentials
 *  \returns infinity if something is no number */
double errorOf(const std::vector<double>& fields,
               const std::vector<double>& better,
               int sets,
               bool areTogether,
               double perPotential);

} // namespace farfield

#endif
