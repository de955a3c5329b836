/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief All images of particles that pairs within a cut-off can have, in bins.
 */
#ifndef FARFIELD_BATCH_IMAGES_H
#define FARFIELD_BATCH_IMAGES_H

#include <vector>

#include "base/vectors.h"
#include "batch/batch_kernels.h"
#include "batch/reduced_box.h"

namespace farfield
{

//! \throws Error  InvalidArgument, of boxes: more than c_mostImages are within the cut-off around the box
void checkImages(const ReducedBox& box, double cutoff, int n);

/*! \brief Images in the bins of a region: the box, and what is within the cut-off around it.
 *
 *  Bins are parts of the box vectors. Those along the third one follow each other, so that the partners
 *  of a target in a row of bins stand together. */
template<class Real>
class Images
{
public:
    using Place = typename PlaceOfImage<Real>::Type;

    /*! \brief Takes the particles of a system.
     *  \param[in] f         fractional coordinates, 0 to 1, [n][3]
     *  \param[in] carried   what images carry, see PairTask, [n][columns]
     *  \param[in] cutoff    nm
     *  \throws Error  InvalidArgument: more than c_mostImages */
    void build(const ReducedBox& box,
               const double* f,
               const Real* carried,
               int n,
               int columns,
               double cutoff);
    //! Pairs of a target, but for what decides on their function.
    PairTask<Real, Place> task() const;
    //! The particle itself among the images.
    int placeOf(int particle) const { return home_[particle]; }
    //! Where partners of a particle are, without itself.
    void findRows(int particle, std::vector<PairRow>* rows) const;
    int size() const { return count_; }
    //! Distances below this are rounding of coordinates, nm.
    double rounding() const { return rounding_; }

private:
    //! A row of bins beside that of a target, and how far partners are along it.
    struct Stencil
    {
        int a, b, reach;
    };
    //! Bins of a cut-off this large, and which of them have partners.
    void layOut(const ReducedBox& box, double cutoff, int n);
    //! The bin of a fractional coordinate along an axis.
    int binOf(int axis, double f) const
    {
        const int bin = static_cast<int>((f + margin_[axis]) * binsPerUnit_[axis]);
        return bin < 0 ? 0 : (bin < bins_[axis] ? bin : bins_[axis] - 1);
    }
    //! Calls use(shift, bin) for all images of a particle.
    template<class Use>
    void forImages(const double* f, const Use& use) const;

    Int3 bins_             = { 1, 1, 1 };
    double margin_[3]      = {}; //!< the cut-off in box vectors
    double binsPerUnit_[3] = {};
    double unit_           = 1; //!< nm
    double rounding_       = 0; //!< nm
    int columns_           = 1;
    int count_             = 0;
    std::vector<Stencil> stencil_;
    std::vector<int> start_; //!< [bins + 1]
    std::vector<int> next_;  //!< [bins] where the next image goes
    std::vector<int> home_, homeBin_;
    AlignedVector<Place> x_, y_, z_;
    AlignedVector<Real> carried_; //!< [columns][padded]
    int stride_ = 0;
};

} // namespace farfield

#endif
