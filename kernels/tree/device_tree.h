/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The cells of all levels on the device, with their expansions.
 *
 *  Level 0 has expansions for all cells. Of the finer levels only families that hold particles
 *  have some, in lists that are made anew every step. What a graph has recorded holds on to the
 *  length of the lists: room is made for what particles may come to soon, and seldom.
 */
#ifndef FARFIELD_KERNELS_TREE_DEVICE_TREE_H
#define FARFIELD_KERNELS_TREE_DEVICE_TREE_H

#include <memory>
#include <vector>

#include "plan/discretisation.h"
#include "sort/cell_list.h"
#include "tree/families.h"
#include "tree/family_reach.h"

namespace farfield
{

template<class Real>
class DeviceTree
{
public:
    //! \param[in] reproducible  sums do not depend on where particles have been
    explicit DeviceTree(bool reproducible) : reproducible_(reproducible) {}

    //! Levels for the reference box. Those above 0 get room with the first particles.
    void build(const Discretisation& discretisation, cudaStream_t stream);
    //! Cells of all levels follow a box, rows in the frame of the operators. \returns the leaves
    Grid setBox(const Mat3& box);

    int levels() const { return static_cast<int>(levels_.size()); }
    int leaf() const { return levels() - 1; }
    const CellGrid& grid(int level) const { return levels_[level].grid; }
    double unit(int level) const { return levels_[level].unit; } //!< size of a cell, nm
    LevelView<Real> view(int level);
    //! Of a level > 0.
    Families families(int level) const { return room_->lists.families(level); }
    //! See FamilyLists; null if there is only level 0.
    const Real* poison() const { return room_ ? room_->lists.poison() : nullptr; }

    /*! \brief Sees to room for the families of the particles that have just been sorted.
     *
     *  Where they may be anywhere, the host waits for counts, and room is made anew, too, where there
     *  is far too much. In a motion that goes on, the last count is looked at, which is at most so
     *  many steps old that the margin covers them.
     *  \returns whether there is new room: recorded evaluations use the one before */
    bool ensureRoom(const DeviceCells<Real>& particles, bool continues, cudaStream_t stream);
    //! Lists of the families of the particles that have just been sorted.
    void list(const DeviceCells<Real>& particles, cudaStream_t stream);
    //! Counts beside the evaluation, every few of them.
    void watch(const DeviceCells<Real>& particles, cudaStream_t stream);
    //! Whether particles may soon come to more families than there is room for, by the last count,
    //! or have already.
    bool needsRoom() const;
    //! Whether families had no room since this was asked last: forces were not numbers.
    bool overflowed();

    //! \name [cells in storage order][coefficients], 0 for absent cells
    //!@{
    std::vector<double> multipoles(int level, cudaStream_t stream) const;
    std::vector<double> locals(int level, cudaStream_t stream) const;
    //!@}

private:
    struct Expansions
    {
        int stride = 0;
        DeviceBuffer<Real> M, L;
    };
    struct Level
    {
        CellGrid grid = {};
        double unit   = 0;
    };
    //! What has the length of the lists of families.
    struct Room
    {
        FamilyLists<Real> lists;
        std::vector<Expansions> expansions; //!< per level, element 0 unused
    };

    void setLevel0(const Grid& coarse, cudaStream_t stream);
    Expansions expansionsFor(int stride, cudaStream_t stream) const;
    const Expansions& expansions(int level) const;
    std::vector<CellGrid> grids() const;
    bool isTight() const;
    bool isLoose(int particles) const;
    int capacityFor(int level, int particles) const;
    void count(const DeviceCells<Real>& particles, double margin, cudaStream_t stream);
    void makeRoom(const DeviceCells<Real>& particles, cudaStream_t stream);
    std::vector<double> byCell(int level,
                               const DeviceBuffer<Real>& values,
                               cudaStream_t stream) const;

    bool reproducible_;
    IntMat coarseCells_ = {};
    int coefficients_ = 0, ws_ = 0;
    double inverseEdges_[3][3] = {}; //!< of a leaf, in the frame of the operators, 1/nm
    std::vector<Level> levels_;
    Expansions top_;                    //!< of level 0
    DeviceBuffer<int> cellOf_, slotOf_; //!< of level 0
    FamilyReach<Real> reach_;
    std::unique_ptr<Room> room_, formerRoom_;
};

} // namespace farfield

#endif
