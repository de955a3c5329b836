/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief How the systems of a batch lie in device memory, and the kernels on them.
 *
 *  Blocks never have particles of two systems, and sums are in an order that follows from their
 *  system alone: results do not depend on the systems around.
 */
#ifndef FARFIELD_KERNELS_BATCHES_DEVICE_SYSTEMS_H
#define FARFIELD_KERNELS_BATCHES_DEVICE_SYSTEMS_H

#include <cuda_runtime.h>

#include "batch/scaled_erfc.h"
#include "batch/slab_box.h"
#include "batch/wave_terms.h"

namespace farfield
{

//! Particles that stand together in space, and are tested for a cut-off at once.
constexpr int c_tile = 32;
//! Threads of a block, but for pairs.
constexpr int c_batchThreads = 128;
//! Warps of a block of pairs, and targets of each, one after the other.
constexpr int c_pairWarps = 4, c_targetsOfWarp = 4;
constexpr int c_targetsOfBlock = c_pairWarps * c_targetsOfWarp;
//! Waves of a column whose structure factors a thread adds up. Columns begin at multiples of them.
constexpr int c_wavesOfTile = 4;
//! Threads of a block of structure factors.
constexpr int c_factorThreads = 64;
//! Particles that a thread adds up; sums over more are sums of these.
constexpr int c_chunk = 256;
//! Warps of a block of fields, and its particles.
constexpr int c_fieldWarps = 4, c_fieldParticles = 2 * c_tile;

//! What blocks of a kernel have.
enum BlockKind
{
    OfParticles,
    OfTargets,
    OfFactors,
    OfWeights,
    OfFields,
    BlockKinds
};

//! A part of a system, the work of a block.
struct BlockPart
{
    int system, part;
};
//! The part of a block that has nothing to do.
constexpr BlockPart c_noPart = { -1, -1 };

//! A system whose particles are looked at.
struct SystemInBox
{
    int first, n;
    //! By which particles are sorted. Those of a slab, and what follows, are zero until boxSlabs().
    int cells[3];
    int firstCell;     //!< see firstCellOf()
    double inverse[9]; //!< fractional coordinates are x inverse
    double fullness;   //!< part of the third vector that has particles
    double shift;      //!< of the third one: the middle of a slab is in the middle of its box
    double strain[9];  //!< rows, of a direction: B' = B strain
};

//! Numbers of cells do not overlap: n particles have at most twice max(1, n / c_tile).
FARFIELD_HD int firstCellOf(int system, int firstParticle)
{
    return 2 * (system + firstParticle / c_tile);
}

//! What was found there.
struct SystemFindings
{
    int badPosition; //!< first particle whose position is not finite; n: there is none
    int badCharge;
    int tooFar;
};

//! A system and its sums.
struct SystemSums
{
    int system;   //!< in the call
    int isDetour; //!< whether it is there once more, with another splitting
    int first, n;
    bool hasImages;
    double vectors[9]; //!< of the box, rows, in units of places
    double inverse[9];
    double strain[9];
    double waves[9]; //!< rows are reciprocal vectors, 1/nm
    double splitting, cutoff, waveCutoff;
    double margin[3];        //!< the cut-off in box vectors
    double unit;             //!< of places, nm
    double contact;          //!< squared distance of charges at one place, nm^2
    double scale;            //!< 4 pi k_C / V
    double self, background; //!< see constantsOf()
    int firstTile, tiles;
    int firstColumn, columns;
    int waveCount; //!< (h, k, l) of all columns, each filled up to a multiple of c_wavesOfTile
    int range[3];  //!< largest h, k and l
    int chunks;
    long long firstPhase, firstSum;
    int firstBlock[BlockKinds], blocks[BlockKinds];
};

//! Phases of a particle along all axes, each a cosine and a sine.
FARFIELD_HD int phasesOfParticle(const SystemSums& s)
{
    return s.range[0] + s.range[1] + s.range[2] + 3;
}

//! What a block adds to the totals of a system.
enum BlockTotal
{
    TotalEnergy,
    TotalVirial, //!< six components
    TotalContacts = TotalVirial + 6,
    BlockTotals
};

//! What is known of a system then.
struct SystemTotals
{
    double energy;    //!< kJ/mol; not of tangents
    double virial[6]; //!< kJ/mol, xx yy zz xy xz yz
    double squares;   //!< of the forces, (kJ/mol/nm)^2
    double contacts;  //!< particles with another one at their place, where that matters
};

//! Particles as they are given, and in order.
template<class Real>
struct BatchParticles
{
    int channels;
    const Real* x;   //!< [n][3], nm
    const Real* q;   //!< [n][channels], e
    double* f;       //!< fractional coordinates, 0 to 1, [n][3]
    int* order;      //!< particles of each system, as tiles have them
    double* net;     //!< [systems][channels], e
    double* squared; //!< [systems][channels] sums of squared charges, e^2
};

//! A direction.
template<class Real>
struct BatchChanges
{
    const Real* x;     //!< [n][3], nm, or null
    const Real* q;     //!< [n][channels], e
    Real* moves;       //!< of positions, but for the strain, nm, [n][3]
    double* fractions; //!< the same of fractional coordinates
    double* net;       //!< [systems][channels]
};

//! All that sums over pairs and waves have.
template<class Real>
struct BatchSums
{
    const SystemSums* systems;
    const int* computed; //!< how many of them
    BatchParticles<Real> particles;
    BatchChanges<Real> changes;
    double coulombConstant;
    bool virials, tangents;
    bool wantsPotentials; //!< those of neutral particles matter, where charges are at one place
    Real* places;         //!< of sorted particles, [3][n] of each system, in tiles; of type Place
    Real* tiles;          //!< least and largest places, [tiles][6]
    Real* phases;         //!< [3] of [range + 1][2][n] of each system
    const WaveColumn* columns;
    Real* sums;            //!< [channels][sets][chunks][waves][WaveProducts] of each system
    double* pairTotals;    //!< [blocks][BlockTotals]
    double* waveTotals;    //!< [blocks][channels][BlockTotals]
    double* forces[2];     //!< [n][3], kJ/mol/nm; the second ones of detours
    double* potentials[2]; //!< [n][channels], kJ/mol/e
    char* contacts;        //!< [n] whether another particle is at the place
    SystemTotals* totals;  //!< of these systems
    const SlabBox* slabs;  //!< of all systems; null: there are none
    SystemTotals* ofSlabs; //!< energies and virials of layers, of these systems

    //! Sets of structure factors.
    int sets() const { return tangents ? c_tangentSets : 1; }
};

//! Particles of systems that rankByCell() sorts, at most: it compares all pairs of them.
constexpr int c_mostRanked = 512;
//! The order of sortByCell(), of systems that all are so small. \param[out] order  [n]
void rankByCell(const SystemInBox* systems,
                int count,
                const unsigned int* keys,
                int* order,
                cudaStream_t stream);
//! Sorts the order by cells; particles of a cell stay as they are. \returns bytes of work space, with null
size_t sortByCell(const unsigned int* keys,
                  unsigned int* sortedKeys,
                  const int* order,
                  int* sortedOrder,
                  int n,
                  int cells,
                  void* space,
                  size_t bytes,
                  cudaStream_t stream);
//! What tangents need of a direction.
template<class Real>
void takeDirection(const SystemInBox* systems,
                   int count,
                   bool hasImages,
                   const BatchParticles<Real>& particles,
                   const BatchChanges<Real>& changes,
                   cudaStream_t stream);
//! Places and tiles. \param[in] blocks  of c_batchThreads particles
template<class Real>
void placeParticles(const BatchSums<Real>& sums,
                    bool hasImages,
                    const BlockPart* blocks,
                    int count,
                    cudaStream_t stream);
//! Forces and potentials of pairs. \param[in] blocks  of c_targetsOfBlock particles
template<class Real>
void sumPairs(const BatchSums<Real>& sums,
              bool hasImages,
              const BlockPart* blocks,
              int count,
              const ScaledErfc<Real>& constant,
              cudaStream_t stream);
//! Phases along the axes. \param[in] blocks  of c_batchThreads particles
template<class Real>
void findPhases(const BatchSums<Real>& sums,
                const BlockPart* blocks,
                int count,
                cudaStream_t stream);
/*! \brief Structure factors.
 *  \param[in] blocks  of c_factorThreads times c_wavesOfTile waves and a chunk of particles
 *  \param[in] phases  of a particle along all axes, at most */
template<class Real>
void sumFactors(const BatchSums<Real>& sums,
                const BlockPart* blocks,
                int count,
                int phases,
                cudaStream_t stream);
//! From structure factors to weights. \param[in] blocks  of c_batchThreads of (range + 1) columns
template<class Real>
void weighFactors(const BatchSums<Real>& sums,
                  const BlockPart* blocks,
                  int count,
                  cudaStream_t stream);
//! Adds waves and constants to forces and potentials. \param[in] blocks  of c_fieldParticles
template<class Real>
void addFields(const BatchSums<Real>& sums,
               const BlockPart* blocks,
               int count,
               cudaStream_t stream);
//! Adds what layers of slabs have of each other to forces and potentials. \param[in] most  systems
template<class Real>
void addSlabs(const BatchSums<Real>& sums, int most, cudaStream_t stream);
//! Totals of systems. \param[in] most  of them
template<class Real>
void addTotals(const BatchSums<Real>& sums, int most, cudaStream_t stream);
} // namespace farfield

#endif
