/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Saved states whose numbers are those that were written, but make no sense together.
 */
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "solver/saved_state.h"

#include "reference.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_precision = sizeof(double);

SavedState stateFor(const NamedBox& named, const Options& options)
{
    Mat3 box;
    for (int i = 0; i < 9; ++i)
    {
        box(i / 3, i % 3) = named.box[i / 3][i % 3];
    }
    SavedState state;
    state.particles = static_cast<long long>(100 * box.determinant());
    state.discretisation =
            chooseDiscretisation({ options, Device::Cpu, box, state.particles, box.determinant() });
    state.strain(0, 1) = state.strain(1, 0) = 1e-3;
    return state;
}

TEST(SavedStates, ComeBackAsTheyWere)
{
    for (const NamedBox& box : allBoxes(60))
    {
        for (const M2lEngine engine : { M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            Options options;
            options.m2l                     = engine;
            const SavedState state          = stateFor(box, options);
            const std::vector<double> saved = encodeState(state, options, c_precision);
            const SavedState back           = decodeState(saved, options, c_precision);
            EXPECT_EQ(encodeState(back, options, c_precision), saved) << box.name;
            EXPECT_EQ(back.discretisation.leafCells, state.discretisation.leafCells);
            EXPECT_EQ(back.discretisation.referenceBox, state.discretisation.referenceBox);
            EXPECT_EQ(back.strain, state.strain);
            EXPECT_EQ(back.particles, state.particles);
            EXPECT_THROW(decodeState(saved, options, sizeof(float)), Error) << "other precision";
        }
    }
}

TEST(SavedStates, WhoseCellsDoNotFitTheBoxAreRefused)
{
    Options options;
    options.m2l = M2lEngine::Hierarchy;
    for (const NamedBox& box : allBoxes(60))
    {
        const SavedState sound = stateFor(box, options);
        ASSERT_GT(sound.discretisation.levels, 1);
        const auto refuses = [&](const char* what, const std::function<void(SavedState*)>& spoil)
        {
            SavedState state = sound;
            spoil(&state);
            EXPECT_THROW(
                    decodeState(encodeState(state, options, c_precision), options, c_precision),
                    Error)
                    << box.name << ": " << what;
        };
        const int coarsen = 1 << (sound.discretisation.levels - 1);
        for (int k = 0; k < 3; ++k)
        {
            refuses("flat cells", [&](SavedState* s) { s->discretisation.leafCells[k][k] *= 6; });
            refuses("a long box",
                    [&](SavedState* s) { s->discretisation.referenceBox.row(k) *= 6; });
            refuses("no cells", [&](SavedState* s) { s->discretisation.leafCells[k][k] = 0; });
            refuses("cells without parents",
                    [&](SavedState* s) { s->discretisation.leafCells[k][k] += 1; });
            refuses("a box turned inside out",
                    [&](SavedState* s) { s->discretisation.referenceBox(k, k) *= -1; });
            refuses("a box without bounds",
                    [&](SavedState* s) {
                        s->discretisation.referenceBox(k, k) =
                                std::numeric_limits<double>::infinity();
                    });
        }
        refuses("skewed cells",
                [&](SavedState* s)
                {
                    IntMat& H = s->discretisation.leafCells;
                    H[2][1] += 4 * H[2][2]; // by four cells each
                });
        refuses("cells that are not triangular",
                [&](SavedState* s) { s->discretisation.leafCells[0][1] = coarsen; });
        refuses("too many cells",
                [&](SavedState* s)
                {
                    for (int k = 0; k < 3; ++k)
                    {
                        s->discretisation.leafCells[k][k] *= 1 << 9;
                    }
                });
        refuses("strain", [&](SavedState* s) { s->strain(1, 1) = 0.2; });
        refuses("order", [&](SavedState* s) { s->discretisation.order = c_maxOrder + 1; });
        refuses("direct range", [&](SavedState* s) { s->discretisation.ws = 3; });
        refuses("levels", [&](SavedState* s) { s->discretisation.levels = 0; });
        refuses("particles", [&](SavedState* s) { s->particles = -1; });
    }
}

} // namespace
} // namespace test
} // namespace farfield
