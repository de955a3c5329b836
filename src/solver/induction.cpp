/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "solver/induction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "solver/other_sources.h"

namespace farfield
{
namespace
{

//! More of them are not needed where dipoles have an end: usual systems take 6 to 12.
constexpr int c_mostIterations = 100;

//! [3 n], e nm or e/nm^2.
using Vectors = std::vector<double>;

double product(const Vectors& a, const Vectors& b)
{
    double sum = 0;
    for (size_t k = 0; k < a.size(); k++)
    {
        sum += a[k] * b[k];
    }
    return sum;
}

//! a + factor b
Vectors sum(const Vectors& a, double factor, const Vectors& b)
{
    Vectors result(a.size());
    for (size_t k = 0; k < a.size(); k++)
    {
        result[k] = a[k] + factor * b[k];
    }
    return result;
}

//! The equation that the dipoles solve.
template<class Real>
class Equation
{
public:
    Equation(SingleState<Real>* all,
             const Task<Real>& task,
             const Real* polarisabilities,
             double coulombConstant) :
        all_(*all),
        task_(task), polarisabilities_(polarisabilities), coulombConstant_(coulombConstant),
        particles_(all->charges().count())
    {
    }

    //! The field of what is set, e/nm^2.
    Vectors field()
    {
        std::vector<Real> forces(3 * particles_), gradients(3 * particles_);
        Task<Real> own            = task_;
        own.forces                = forces.data();
        own.gradients             = gradients.data();
        own.request.energy        = false;
        own.request.virial        = false;
        own.request.replaceForces = true;
        all_.evaluate(own);
        return fieldOf(gradients);
    }

    //! What is left of a field beside these dipoles: E - grad phi - mu/alpha.
    Vectors residual(const Vectors& field, const Vectors& dipoles)
    {
        return sum(field, -1, applied(dipoles));
    }

    //! mu/alpha + grad phi(mu), of those that have a polarisability.
    Vectors applied(const Vectors& dipoles)
    {
        std::vector<Real> gradients(3 * particles_);
        Task<Real> own = task_;
        own.potentials = nullptr;
        own.gradients  = gradients.data();
        evaluateSources(
                &all_, own, std::vector<Real>(particles_), { dipoles.begin(), dipoles.end() });
        const Vectors field = fieldOf(gradients);
        Vectors result(3 * particles_);
        for (size_t k = 0; k < result.size(); k++)
        {
            const double alpha = polarisability(k);
            result[k]          = alpha > 0 ? dipoles[k] / alpha - field[k] : 0;
        }
        return result;
    }

    //! alpha E
    Vectors induced(const Vectors& field) const
    {
        Vectors dipoles(field.size());
        for (size_t k = 0; k < field.size(); k++)
        {
            dipoles[k] = polarisability(k) * field[k];
        }
        return dipoles;
    }

    //! What the dipoles cost, 1/2 sum of mu^2/alpha, e^2/nm.
    double selfEnergy(const Vectors& dipoles) const
    {
        double energy = 0;
        for (size_t k = 0; k < dipoles.size(); k++)
        {
            const double alpha = polarisability(k);
            energy += alpha > 0 ? 0.5 * dipoles[k] * dipoles[k] / alpha : 0;
        }
        return energy;
    }

    //! Of component k.
    double polarisability(size_t k) const { return static_cast<double>(polarisabilities_[k / 3]); }

private:
    Vectors fieldOf(const std::vector<Real>& gradients) const
    {
        Vectors field(gradients.size());
        for (size_t k = 0; k < field.size(); k++)
        {
            field[k] = polarisability(k) > 0 ? -static_cast<double>(gradients[k]) / coulombConstant_
                                             : 0;
        }
        return field;
    }

    SingleState<Real>& all_;
    const Task<Real>& task_;
    const Real* polarisabilities_;
    double coulombConstant_;
    size_t particles_;
};

[[noreturn]] void throwDiverged()
{
    throw Error(
            ErrorCode::InvalidArgument,
            "The induced dipoles do not converge: polarisable particles are so close that their "
            "dipoles raise each other without end. Exclude pairs within molecules, damp them by "
            "the "
            "near function 'thole', or use smaller polarisabilities.",
            "polarisabilities");
}

} // namespace

template<class Real>
Induction induceDipoles(SingleState<Real>* all,
                        const Task<Real>& task,
                        const Real* polarisabilities,
                        double coulombConstant,
                        double tolerance,
                        Real* dipoles)
{
    Induction found;
    Equation<Real> equation(all, task, polarisabilities, coulombConstant);
    const Vectors field = equation.field();
    Vectors mu(dipoles, dipoles + field.size());
    bool starts = false;
    for (size_t k = 0; k < mu.size(); k++)
    {
        mu[k]  = equation.polarisability(k) > 0 ? mu[k] : 0;
        starts = starts || mu[k] != 0;
    }
    mu                 = starts ? mu : equation.induced(field);
    Vectors left       = equation.residual(field, mu);
    Vectors change     = equation.induced(left); // by the preconditioner
    Vectors along      = change;
    double progress    = product(left, change);
    const auto isFound = [&]
    { return product(change, change) <= tolerance * tolerance * product(mu, mu); };
    while (!isFound())
    {
        const Vectors applied  = equation.applied(along);
        const double curvature = product(along, applied);
        found.iterations++;
        if (!(curvature > 0) || found.iterations > c_mostIterations)
        {
            throwDiverged();
        }
        const double step = progress / curvature;
        mu                = sum(mu, step, along);
        left              = sum(left, -step, applied);
        change            = equation.induced(left);
        const double next = product(left, change);
        along             = sum(change, next / progress, along);
        progress          = next;
    }
    const double size = product(mu, mu);
    found.residual    = size > 0 ? std::sqrt(product(change, change) / size) : 0;
    found.selfEnergy  = coulombConstant * equation.selfEnergy(mu);
    std::transform(
            mu.begin(), mu.end(), dipoles, [](double value) { return static_cast<Real>(value); });
    return found;
}

template decltype(induceDipoles<float>) induceDipoles<float>;
template decltype(induceDipoles<double>) induceDipoles<double>;

} // namespace farfield
