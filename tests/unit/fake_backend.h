/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief A backend that computes nothing and remembers what it was asked.
 */
#ifndef FARFIELD_TESTS_UNIT_FAKE_BACKEND_H
#define FARFIELD_TESTS_UNIT_FAKE_BACKEND_H

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace farfield
{
namespace test
{

class FakeBackend : public Backend<double>
{
public:
    void setCharges(const double* q, int n) override { charges.assign(q, q + n); }
    void setExclusions(const int* offsets, const int* partners, int n) override
    {
        fail("setExclusions");
        rows.assign(offsets, offsets + n + 1);
        partnersOf.assign(partners, partners + offsets[n]);
    }
    void setNearPairs(const NearPairs<double>& pairs) override
    {
        fail("setNearPairs");
        hasFunctions = pairs.any();
    }
    void build(const Discretisation& discretisation) override
    {
        calls.push_back("build");
        fail("build");
        built = discretisation;
    }
    void setBox(const Mat3& newBox, const Mat3& newStrain, const Mat3& newRotation) override
    {
        calls.push_back("setBox");
        fail("setBox");
        box      = newBox;
        strain   = newStrain;
        rotation = newRotation;
    }
    void setVirialStrain(const Mat3& newStrain) override
    {
        calls.push_back("setVirialStrain");
        fail("setVirialStrain");
        virialStrain = newStrain;
    }
    void sort() override { stage("sort"); }
    void exclusions() override { stage("exclusions"); }
    bool hasNearFunction() const override { return hasFunctions; }
    void nearFunction() override { stage("near function"); }
    void p2p() override { stage("p2p"); }
    void p2m() override { stage("p2m"); }
    void m2m(int level) override { stage("m2m " + std::to_string(level)); }
    void m2l(int level) override { stage("m2l " + std::to_string(level)); }
    void l2l(int level) override { stage("l2l " + std::to_string(level)); }
    void l2p() override { stage("l2p"); }
    Totals collect() override
    {
        stage("collect");
        offset = task_.request.gridOffset;
        return {};
    }
    bool mustRepeat() const override { return repeats > 0 && repeats-- > 0; }
    bool measured(double* seconds) override
    {
        std::fill_n(seconds, static_cast<int>(Stage::Count), 0.0);
        seconds[static_cast<int>(Stage::P2p)] = ofP2p;
        return ofP2p > 0;
    }
    std::vector<double> multipoles(int /*level*/) const override { return {}; }
    std::vector<double> locals(int /*level*/) const override { return {}; }

    std::string failing; //!< the call that throws
    ErrorCode code      = ErrorCode::OutOfMemory;
    mutable int repeats = 0;
    double ofP2p        = 0;
    bool hasFunctions   = false;

    std::vector<double> charges;
    std::vector<int> rows, partnersOf;
    std::vector<std::string> calls;
    Discretisation built;
    Mat3 box = Mat3::Zero(), strain = Mat3::Zero(), rotation = Mat3::Zero();
    Mat3 virialStrain            = Mat3::Zero();
    std::array<double, 3> offset = { 0, 0, 0 };

private:
    void fail(const std::string& call) const
    {
        if (failing == call)
        {
            throw Error(code, "as asked");
        }
    }
    void stage(const std::string& name)
    {
        calls.push_back(name);
        fail(name);
    }
};

} // namespace test
} // namespace farfield

#endif
