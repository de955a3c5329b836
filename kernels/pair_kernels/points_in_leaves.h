/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Points sorted by leaf cells, on the device.
 */
#ifndef FARFIELD_KERNELS_PAIR_KERNELS_POINTS_IN_LEAVES_H
#define FARFIELD_KERNELS_PAIR_KERNELS_POINTS_IN_LEAVES_H

#include <cstdint>
#include <vector>

#include "pair_kernels/cell_hash_on_device.h"
#include "pair_kernels/cub_room.h"
#include "pair_kernels/leaf_frame.h"
#include "runtime/layout.h"

namespace farfield
{

//! Sorted keys: where runs of equal ones begin, and runs of their ancestors in a tree.
class KeyRuns
{
public:
    //! Looks for them. The host waits. \param[in] levels  of ancestors, the keys themselves included
    void find(const std::uint64_t* keys, int n, int levels, cudaStream_t stream);
    //! Runs of each level, the coarsest first.
    const std::vector<int>& counts() const { return counts_; }
    //! Writes the first element of each run. \param[in] above  levels between these and the last ones
    void writeStarts(int above, int* starts, CubRoom* room, cudaStream_t stream);

private:
    int n_ = 0;
    std::vector<int> counts_;
    DeviceBuffer<unsigned char> heads_; //!< of how many levels an element is the first of a run
    DeviceBuffer<int> histogram_, selected_;
};

//! Points of a leaf that a block of threads takes together.
constexpr int c_pointsTogether = 64;

//! Plain data for kernels.
template<class Real>
struct LeavesView
{
    int n, leaves;
    const Real4<Real>*
            at; //!< [n] relative to the centre of the leaf, in units of a leaf; w is a charge, see setCharges()
    const int* order;          //!< [n] index before sorting
    const int* start;          //!< [leaves + 1] first point of each leaf
    const std::uint64_t* keys; //!< [leaves] Morton keys
    CellHashView hash;         //!< of the leaves
    //! [leaves] groups of at most c_pointsTogether points in all leaves so far; none has points of two leaves.
    const int* groupsEnd;

    int mostGroups() const { return n / c_pointsTogether + leaves; }
};

template<class Real>
class PointsInLeaves
{
public:
    /*! \brief Sorts them; the order of points in a leaf is that in which they are given.
     *  \param[in] x       [n][3] device memory
     *  \param[in] q       [n] charges, put beside the positions; null: zeros
     *  \param[in] levels  of the tree
     *  \param[in] all     whether all cells of the box are leaves, with or without points. The host waits for nothing
     *                     then, but where the cells are others than before; else for their number */
    void sort(const double* x,
              const Real* q,
              int n,
              const LeafFrame& frame,
              int levels,
              bool all,
              cudaStream_t stream);
    //! The first point that is not finite or a billion cells away, n if there is none. The host waits.
    int firstInvalid(cudaStream_t stream);
    //! 0 if there is no such point, in device memory.
    const int* invalid() const { return invalid_.data(); }
    //! Puts the charges of a set beside the positions. \param[in] q  [n][sets] in the order before sorting
    void setCharges(const Real* q, int sets, int set, cudaStream_t stream);

    //! Cells of all levels that hold points, or all cells, the coarsest first.
    const std::vector<int>& cells() const { return cells_; }
    //! A number that all cells of a box have until there are others; 0: they are those that hold points.
    long long generation() const { return areAll_ ? generation_ : 0; }
    LeavesView<Real> view();
    //! Writes the first point of each cell. \param[in] above  levels between these and the leaves
    void writeStarts(int above, int* starts, cudaStream_t stream)
    {
        runs_.writeStarts(above, starts, &room_, stream);
    }
    //! The leaf of each point, [n], where leaves are those that hold points.
    const std::uint64_t* sortedKeys() const { return sortedKeys_.data(); }
    //! The keys of the leaves, [cells().back()].
    const std::uint64_t* keys() const { return leafKeys_.data(); }

private:
    //! Sorts by keys, and finds leaves that hold points.
    void sortByKeys(const double* x,
                    const Real* q,
                    const LeafFrame& frame,
                    int levels,
                    cudaStream_t stream);
    //! Sorts into the cells that listAll() has listed, by their numbers of points.
    void sortIntoAll(const double* x, const Real* q, const LeafFrame& frame, cudaStream_t stream);
    //! Lists all cells of a box.
    void listAll(const LeafFrame& frame, int levels, cudaStream_t stream);

    CubRoom room_;
    KeyRuns runs_;
    CellHashOnDevice hash_;
    std::vector<int> cells_;
    bool areAll_          = false;
    long long generation_ = 0;
    Int3 allOf_           = {}; //!< leaves of the box whose cells were listed last
    DeviceBuffer<std::uint64_t> keys_, sortedKeys_, leafKeys_;
    DeviceBuffer<int> index_, order_, start_, groups_, groupsEnd_;
    DeviceBuffer<int> invalid_; //!< n less the first point in no cell; 0: there is none
    DeviceBuffer<int> counts_;  //!< zeros between two sorts into all cells
    DeviceBuffer<int> leafOf_, next_;
    DeviceBuffer<Real4<Real>> at_;
};

} // namespace farfield

#endif
