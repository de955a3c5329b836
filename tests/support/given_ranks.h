/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What two ranks give to their solvers, each on its own.
 */
#ifndef FARFIELD_TESTS_GIVEN_RANKS_H
#define FARFIELD_TESTS_GIVEN_RANKS_H

#include <algorithm>
#include <vector>

#include "in_process_ranks.h"
#include "test_support.h"

namespace farfield
{
namespace test
{

//! Nothing is left to choose, so that it takes no time.
inline Options withCells()
{
    Options options;
    options.device      = Device::Cpu;
    options.threads     = 1;
    options.order       = 2;
    options.directRange = 1;
    options.cellSize    = 0.7;
    return options;
}

//! What a rank is given, right as long as nobody changes it.
struct Given
{
    int rank;
    Options options;
    System system; //!< its positions and charges
    std::vector<int> offsets, partners, index;
    double box[3][3];
    Request request;

    Given(const System& all, int ofRank) : rank(ofRank), options(withCells()), system(all)
    {
        const Portion<double> portion(all, domains(all, 2), rank);
        index    = portion.index;
        offsets  = portion.offsets;
        partners = portion.partners;
        const Box rows(all.box);
        std::copy_n(&rows.rows[0][0], 9, &box[0][0]);
        request.replaceForces = true;
    }
    void tellSystem(DistributedSolver<double>* solver) const
    {
        solver->setSystem(
                { system.size(), system.charges.data(), offsets.data(), partners.data() });
    }
    void tellLocal(DistributedSolver<double>* solver) const
    {
        solver->setLocal(index.data(), static_cast<int>(index.size()));
    }
    //! Forces on the particles of this rank.
    std::vector<double> evaluate(DistributedSolver<double>* solver) const
    {
        std::vector<double> x, f(3 * index.size(), 42); // replaced
        for (const int i : index)
        {
            const Vector& r = system.positions[std::clamp(i, 0, system.size() - 1)];
            x.insert(x.end(), r.begin(), r.end());
        }
        solver->evaluate(x.data(), box, f.data(), request);
        return f;
    }
};

//! Water on two ranks.
inline System smallWater()
{
    return pseudoWater(namedBox("cube", 2.2 * 2.2 * 2.2), 3);
}

} // namespace test
} // namespace farfield

#endif
