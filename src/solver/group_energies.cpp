/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/group_energies.h"

#include <algorithm>
#include <vector>

#include "operators/scaled_charges.h"

namespace farfield
{
namespace
{

/*! \brief Charges of one group alone. Others get charges that do nothing where they take part, so that
 *         the same particles do as ever.
 *  \param[in] q    of all, [n]
 *  \param[in] all  whose zeros take no part, [n] */
template<class Real>
std::vector<Real>
chargesOfGroup(const Real* q, const std::vector<Real>& all, const int* group, int which)
{
    std::vector<Real> own(all.size());
    for (size_t i = 0; i < own.size(); i++)
    {
        const bool isOwn = group[i] == which && q[i] != 0;
        const Real idle  = all[i] != 0 ? static_cast<Real>(c_idleCharge<Real>) : Real(0);
        own[i]           = isOwn ? q[i] : idle;
    }
    return own;
}

} // namespace

template<class Real>
std::vector<double> groupEnergies(ChargeSet<Real>* charges,
                                  const std::vector<WeightedCharges<Real>>& states,
                                  const int* group,
                                  int groups,
                                  const std::function<void(Real*)>& potentials)
{
    const size_t size = groups;
    std::vector<double> energies(size * size, 0.0);
    std::vector<Real> potential(charges->count());
    const std::vector<Real> all = charges->charges();
    const auto addGroup         = [&](const WeightedCharges<Real>& state, int own)
    {
        const std::vector<Real> q = chargesOfGroup(state.charges, all, group, own);
        charges->setCharges(q.data(), charges->count());
        potentials(potential.data());
        for (size_t i = 0; i < potential.size(); i++)
        {
            // every pair of groups is met twice, once with the potential of each
            const auto [low, high] = std::minmax(own, group[i]);
            energies[low * size + high] += 0.5 * state.weight
                                           * static_cast<double>(state.charges[i])
                                           * static_cast<double>(potential[i]);
        }
    };
    try
    {
        const std::vector<WeightedCharges<Real>> one = { { 1, all.data() } };
        for (const WeightedCharges<Real>& state : states.empty() ? one : states)
        {
            for (int own = 0; own < groups && state.weight != 0; own++)
            {
                if (std::find(group, group + charges->count(), own) != group + charges->count())
                {
                    addGroup(state, own);
                }
            }
        }
    }
    catch (...)
    {
        charges->setCharges(all.data(), charges->count());
        throw;
    }
    charges->setCharges(all.data(), charges->count());
    return energies;
}

template decltype(groupEnergies<float>) groupEnergies<float>;
template decltype(groupEnergies<double>) groupEnergies<double>;

} // namespace farfield
