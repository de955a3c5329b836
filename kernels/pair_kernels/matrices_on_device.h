/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Operators as cell_products.h takes them.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_MATRICES_ON_DEVICE_H
#define FARFIELD_KERNELS_PAIR_KERNELS_MATRICES_ON_DEVICE_H

#include <vector>

#include "base/team.h"
#include "pair_kernels/cell_products.h"

namespace farfield
{

//! Matrices in device memory, [matrices][stride][rows]: the transposed ones, padded with zeros.
template<class Real>
class MatricesOnDevice
{
public:
    //! \param[in] element  element(matrix, row, column)
    template<class Element>
    void set(const ProductShape& shape,
             int count,
             const Element& element,
             Team* team,
             cudaStream_t stream)
    {
        std::vector<Real> all(count * shape.size(), Real(0));
        team->forTasks(count,
                       [&](int matrix, int /*thread*/)
                       {
                           Real* to = all.data() + matrix * shape.size();
                           for (int column = 0; column < shape.coefficients; column++)
                           {
                               for (int row = 0; row < shape.coefficients; row++)
                               {
                                   to[static_cast<size_t>(column) * shape.rows + row] =
                                           static_cast<Real>(element(matrix, row, column));
                               }
                           }
                       });
        elements_.upload(all.data(), all.size(), stream);
    }
    //! Room for as many as others have.
    void resizeAs(const MatricesOnDevice& other) { elements_.resize(other.elements_.size()); }
    Real* data() { return elements_.data(); }
    const Real* data() const { return elements_.data(); }
    size_t size() const { return elements_.size(); }

private:
    DeviceBuffer<Real> elements_;
};

} // namespace farfield

#endif
