/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Saved states whose numbers are those that were written, but make no sense together.
 */
#include <cmath>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "choice/saved_state.h"

#include "reference.h"
#include "sealed_state.h"

namespace farfield
{
namespace test
{
namespace
{

constexpr int c_precision = sizeof(double);

Mat3 matrixOf(const NamedBox& named)
{
    Mat3 box;
    for (int i = 0; i < 9; ++i)
    {
        box(i / 3, i % 3) = named.box[i / 3][i % 3];
    }
    return box;
}

SavedState stateFor(const NamedBox& named, const Options& options)
{
    const Mat3 box = matrixOf(named);
    SavedState state;
    state.numbers.takingPart   = static_cast<long long>(std::min(100 * box.determinant(), 1e6));
    state.numbers.acting       = 11;
    state.numbers.withPartners = 7;
    state.numbers.inExcess     = 3;
    state.numbers.wide         = 5;
    state.numbers.nearRange    = 0.43;
    state.discretisation       = chooseDiscretisation(
            { options, Device::Cpu, box, state.numbers.takingPart, box.determinant() });
    state.strain(0, 1) = state.strain(1, 0) = 1e-3;
    state.virialStrain                      = 3 * state.strain;
    return state;
}

//! The text with which a state is refused; empty if it is not.
std::string whyRefused(const SavedState& state, const Options& options)
{
    try
    {
        decodeState(encodeState(state, options, c_precision), options, Device::Cpu, c_precision);
        return "";
    }
    catch (const Error& error)
    {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
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
            const SavedState back           = decodeState(saved, options, Device::Cpu, c_precision);
            EXPECT_EQ(encodeState(back, options, c_precision), saved) << box.name;
            EXPECT_EQ(back.discretisation.leafCells, state.discretisation.leafCells);
            EXPECT_EQ(back.discretisation.referenceBox, state.discretisation.referenceBox);
            EXPECT_EQ(back.strain, state.strain);
            EXPECT_EQ(back.virialStrain, state.virialStrain);
            EXPECT_EQ(back.numbers.takingPart, state.numbers.takingPart);
            EXPECT_EQ(back.numbers.acting, 11);
            EXPECT_EQ(back.numbers.withPartners, 7);
            EXPECT_EQ(back.numbers.inExcess, 3);
            EXPECT_EQ(back.numbers.wide, 5);
            EXPECT_EQ(back.numbers.nearRange, 0.43);
            EXPECT_THROW(decodeState(saved, options, Device::Cpu, sizeof(float)), Error)
                    << "other precision";
        }
    }
}

//! A number that is no value of its type is not rounded to one.
TEST(SavedStates, ThatAreAcceptedComeBackAsTheyWere)
{
    for (const NamedBox& box : allBoxes(60))
    {
        const Options options = {};
        const std::vector<double> before =
                encodeState(stateFor(box, options), options, c_precision);
        for (size_t at = 2; at < before.size(); ++at)
        {
            for (const double number : { before[at] + 0.25,
                                         -1 - before[at],
                                         1e300,
                                         std::numeric_limits<double>::quiet_NaN() })
            {
                std::vector<double> saved = before;
                saved[at]                 = number;
                seal(&saved);
                try
                {
                    const SavedState back = decodeState(saved, options, Device::Cpu, c_precision);
                    EXPECT_EQ(encodeState(back, options, c_precision), saved)
                            << box.name << ": " << number << " at " << at;
                }
                catch (const Error& error)
                {
                    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
                }
            }
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
            EXPECT_NE(whyRefused(state, options), "") << box.name << ": " << what;
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
        refuses("strain of the virial", [&](SavedState* s) { s->virialStrain(1, 1) = 0.2; });
        refuses("order", [&](SavedState* s) { s->discretisation.order = c_maxOrder + 1; });
        refuses("direct range", [&](SavedState* s) { s->discretisation.ws = 3; });
        refuses("levels", [&](SavedState* s) { s->discretisation.levels = 0; });
        refuses("particles", [&](SavedState* s) { s->numbers.takingPart = -1; });
        refuses("charges", [&](SavedState* s) { s->numbers.acting = -1; });
        refuses("a device", [&](SavedState* s) { s->device = Device::Auto; });
        refuses("a device that is none", [&](SavedState* s) { s->device = Device(7); });
    }
}

TEST(SavedStates, OfWhateverIsChosenAreAccepted)
{
    std::vector<Mat3> boxes = { Eigen::Vector3d(1, 1, 3000).asDiagonal(),
                                Eigen::Vector3d(90, 100, 1).asDiagonal() };
    for (const double volume : { 8.0, 3e4 })
    {
        for (const NamedBox& named : allBoxes(volume))
        {
            boxes.push_back(matrixOf(named));
        }
    }
    Options options;
    const auto expectAccepted = [&](const Mat3& box, double filled)
    {
        for (const Device device : { Device::Cpu, Device::Gpu })
        {
            const double volume = filled * box.determinant();
            SavedState state;
            state.device             = device;
            state.numbers.takingPart = static_cast<long long>(100 * volume) + 1;
            state.discretisation     = chooseDiscretisation(
                    { options, device, box, state.numbers.takingPart, volume, 8 });
            EXPECT_EQ(whyRefused(state, options), "") << box << nameOf(options.m2l);
        }
    };
    for (const Mat3& box : boxes)
    {
        const double shortest = std::min({ box(0, 0), box(1, 1), box(2, 2) });
        for (const M2lEngine engine : { M2lEngine::Auto, M2lEngine::Fft, M2lEngine::Hierarchy })
        {
            options     = Options();
            options.m2l = engine;
            expectAccepted(box, 1);
            expectAccepted(box, 0.01);
            options.order       = 6;
            options.directRange = 1;
            for (const double edge : { 0.9, shortest })
            {
                options.cellSize = std::min(edge, shortest);
                expectAccepted(box, 1);
            }
        }
    }
}

TEST(SavedStates, ThatNoOptionsLeadToAreRefused)
{
    for (const NamedBox& box : allBoxes(1e6))
    {
        const auto refuses = [&](const char* what,
                                 const SavedState& sound,
                                 const Options& options,
                                 const std::function<void(Discretisation*)>& change)
        {
            SavedState state = sound;
            change(&state.discretisation);
            EXPECT_NE(whyRefused(state, options).find("do not follow from its options"),
                      std::string::npos)
                    << box.name << ": " << what << ", " << whyRefused(state, options);
        };
        Options tree, flat;
        tree.m2l          = M2lEngine::Hierarchy;
        tree.cellSize     = 1;
        flat.m2l          = M2lEngine::Fft;
        flat.order        = 4;
        flat.directRange  = 1;
        flat.cellSize     = 10;
        const auto ofTree = stateFor(box, tree);
        const auto ofFlat = stateFor(box, flat);
        ASSERT_GT(ofTree.discretisation.levels, 3);
        refuses("no tree", ofTree, tree, [](Discretisation* d) { d->levels = 1; });
        refuses("a low tree", ofTree, tree, [](Discretisation* d) { d->levels -= 2; });
        refuses("no dipoles", ofTree, tree, [](Discretisation* d) { d->order = 0; });
        refuses("another order", ofFlat, flat, [](Discretisation* d) { d->order = 5; });
        refuses("another range", ofFlat, flat, [](Discretisation* d) { d->ws = 2; });
        refuses("a tree",
                ofFlat,
                flat,
                [](Discretisation* d)
                {
                    d->levels = 2;
                    for (Int3& row : d->leafCells)
                    {
                        for (int& entry : row)
                        {
                            entry *= 2;
                        }
                    }
                });
    }
}

TEST(SavedStates, WhoseOperatorsNobodyWouldBuildAreRefused)
{
    Options options;
    options.m2l   = M2lEngine::Fft;
    options.order = 12;
    for (const NamedBox& box : allBoxes(3e4))
    {
        SavedState state = stateFor(box, options);
        // a hundred million cells of the same shape: terabytes, and days
        Discretisation& d = state.discretisation;
        const double factor =
                std::cbrt(1e8 / static_cast<double>(d.leafGrid(d.referenceBox).count()));
        for (Int3& row : d.leafCells)
        {
            for (int& entry : row)
            {
                entry *= static_cast<int>(factor);
            }
        }
        const std::string why = whyRefused(state, options);
        EXPECT_EQ(why.find("The saved FMM state cannot be used: its operators of order 12 for "),
                  0U)
                << box.name << ": " << why;
    }
}

} // namespace
} // namespace test
} // namespace farfield
