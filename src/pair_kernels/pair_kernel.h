/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What a function of the distance gives to sums over pairs, operators of cells and periodic boxes.
 *
 *  A kernel is a class here, a row of c_pairLaws, and its vectors in pair_laws-inl.h.
 */
#ifndef FARFIELD_PAIR_KERNELS_PAIR_KERNEL_H
#define FARFIELD_PAIR_KERNELS_PAIR_KERNEL_H

#include <limits>
#include <string>
#include <vector>

namespace farfield
{

//! The laws that pairs are summed by.
enum class PairLawKind
{
    Yukawa,
    InversePower,
    Table
};

//! A law for distances in some unit of length; results are to be multiplied by the factor.
template<class Real>
struct PairLaw
{
    PairLawKind kind = PairLawKind::Yukawa;
    int exponent     = 0; //!< of an inverse power
    Real decay       = 0; //!< of Yukawa's, per unit
    double factor    = 1;
    //! \name Of a table
    //!@{
    Real first = 0, perStep = 0; //!< distance of its beginning, and steps per unit
    int steps   = 0;
    Real beyond = 0; //!< what is beyond its end: 0 or NaN
    std::vector<Real>
            polynomials; //!< [steps][4] of the fraction of a step: value = c0 + c1 t + c2 t^2 + c3 t^3
    //!@}
};

/*! \brief A function G of the distance r.
 *
 *  For periodic boxes it is sharp(r) + smooth(r): the first ends at a few splitting lengths 1/b, the second has a
 *  transform that ends at a few b. P. P. Ewald, Ann. Phys. 369, 253 (1921), doi:10.1002/andp.19213690304. */
class PairKernel
{
public:
    virtual ~PairKernel() = default;

    virtual std::string name() const                     = 0;
    virtual PairLawKind kind() const                     = 0;
    virtual double value(double r) const                 = 0;
    virtual double slope(double r) const                 = 0; //!< dG/dr
    virtual PairLaw<float> lawFloat(double unit) const   = 0; //!< distances are in this unit
    virtual PairLaw<double> lawDouble(double unit) const = 0;

    //! n of r^-n, whose operators are those of cells of any size, times a factor; 0: another function.
    virtual int exponent() const { return 0; }
    //! Distances for which there is a function.
    virtual double first() const { return 0; }
    virtual double last() const { return std::numeric_limits<double>::infinity(); }

    //! Whether the function is 0 beyond last().
    virtual bool endsAtZero() const { return false; }

    //! \name Of kernels that have a sum over periodic images; b in 1/length
    //!@{
    virtual bool hasPeriodicSum() const { return false; }
    virtual double sharp(double r, double /*b*/) const { return value(r); }
    virtual double smooth(double /*r*/, double /*b*/) const { return 0; }
    //! Integral of smooth exp(i k r) over space.
    virtual double smoothTransform(double /*k*/, double /*b*/) const { return 0; }
    //! Whether smooth() is anything.
    virtual bool isSplit() const { return true; }
    //!@}
};

/*! \brief The derivative of a smooth function, by differences of the fourth order.
 *
 *  Their error is a part 1e-10 of the function over the scale for r^-12, and less for others. */
template<class Function>
double slopeOf(const Function& f, double x, double scale)
{
    const double h = 4e-4 * scale;
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

template<class Real>
PairLaw<Real> lawOf(const PairKernel& kernel, double unit)
{
    if constexpr (sizeof(Real) == 4)
    {
        return kernel.lawFloat(unit);
    }
    else
    {
        return kernel.lawDouble(unit);
    }
}

} // namespace farfield

#endif
