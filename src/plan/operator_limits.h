/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What operators may take: time to build them, and memory.
 */
#ifndef FARFIELD_PLAN_OPERATOR_LIMITS_H
#define FARFIELD_PLAN_OPERATOR_LIMITS_H

#include <algorithm>
#include <string>

#include "plan/discretisation.h"

namespace farfield
{

//! How far the needs of operators are beyond what is allowed.
class Excess
{
public:
    //! \param[in] memory, setUp  predicted, bytes and ns of one core
    Excess(Device device, double memory, double setUp);
    //! Of what is needed most, relative to what is allowed.
    double most() const { return std::max(ofMemory_, ofSetUp_); }
    bool any() const { return most() > 1; }
    bool isOfMemory() const { return ofMemory_ >= ofSetUp_; }
    //! Of time, relative to what is allowed.
    double ofSetUp() const { return ofSetUp_; }
    //! Says what of operators of that order for so many cells.
    std::string text(int order, double cells) const;

private:
    double memory_, setUp_;
    double ofMemory_, ofSetUp_;
};

//! What operators need that depends on nothing but them. \param[in] realSize  bytes of a number
Excess excessOf(const Discretisation& d, Device device, int realSize);

//! Says that operators take too much, and which option may help. \throws Error  always
[[noreturn]] void
refuseOperators(const Options& options, const Excess& excess, int order, double cells);

/*! \brief Why operators are beyond the bounds of chooseDiscretisation(); empty if they are not.
 *
 *  "operators of ... would take ...". Of memory only what does not depend on particles and threads
 *  is counted, so that what was chosen is never beyond them.
 *  \param[in] realSize  bytes of a number */
std::string whyTooLarge(const Discretisation& d, Device device, int realSize);

//! Predicted time of building operators over the longest that chooseDiscretisation() allows.
double partOfLongestSetUp(const Discretisation& d);

} // namespace farfield

#endif
