/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/perturbation.h"

#include "operators/scaled_charges.h"

namespace farfield
{
template<class Real>
Perturbation<Real>::Perturbation(const Real* chargesA, const Real* chargesB, int n) :
    a_(chargesA, chargesA + n), b_(chargesB, chargesB + n)
{
    for (int i = 0; i < n; i++)
    {
        if (a_[i] != b_[i])
        {
            perturbed_.push_back(i);
            difference_.push_back(b_[i] - a_[i]);
        }
    }
}

template<class Real>
std::vector<Real> Perturbation<Real>::mixed(double lambda) const
{
    std::vector<Real> q = a_;
    for (const int i : perturbed_)
    {
        q[i] = static_cast<Real>((1 - lambda) * static_cast<double>(a_[i])
                                 + lambda * static_cast<double>(b_[i]));
        q[i] = (q[i] == 0) ? static_cast<Real>(c_idleCharge<Real>) : q[i];
    }
    return q;
}

template<class Real>
double Perturbation<Real>::lambdaOfLargerCharges() const
{
    const auto squares = [this](const std::vector<Real>& q)
    {
        double sum = 0;
        for (const int i : perturbed_)
        {
            sum += static_cast<double>(q[i]) * static_cast<double>(q[i]);
        }
        return sum;
    };
    return squares(b_) > squares(a_) ? 1 : 0;
}

template<class Real>
ExcludedPairs Perturbation<Real>::pairs(const ExcludedPairs& all) const
{
    std::vector<int> rank(a_.size(), -1);
    for (size_t k = 0; k < perturbed_.size(); k++)
    {
        rank[perturbed_[k]] = static_cast<int>(k);
    }
    ExcludedPairs result = { { 0 }, {} };
    for (const int i : perturbed_)
    {
        for (int k = all.offsets[i]; k < all.offsets[i + 1]; k++)
        {
            if (rank[all.partners[k]] >= 0)
            {
                result.partners.push_back(rank[all.partners[k]]);
            }
        }
        result.offsets.push_back(static_cast<int>(result.partners.size()));
    }
    return result;
}

template<class Real>
std::vector<Real> Perturbation<Real>::positions(const Real* x) const
{
    std::vector<Real> result;
    result.reserve(3 * perturbed_.size());
    for (const int i : perturbed_)
    {
        const Real* r = x + 3 * static_cast<size_t>(i);
        result.insert(result.end(), r, r + 3);
    }
    return result;
}

template<class Real>
double Perturbation<Real>::slope(const Real* potentials) const
{
    double sum = 0;
    for (size_t k = 0; k < perturbed_.size(); k++)
    {
        sum += static_cast<double>(difference_[k]) * static_cast<double>(potentials[perturbed_[k]]);
    }
    return sum;
}

template<class Real>
void Perturbation<Real>::addForces(double factor, const std::vector<Real>& forces, Real* all) const
{
    for (size_t k = 0; k < perturbed_.size(); k++)
    {
        for (int d = 0; d < 3; d++)
        {
            all[3 * static_cast<size_t>(perturbed_[k]) + d] +=
                    static_cast<Real>(factor) * forces[3 * k + d];
        }
    }
}

template class Perturbation<float>;
template class Perturbation<double>;

} // namespace farfield
