/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The solver as Python sees it: arrays in, arrays of the caller filled.
 */
#ifndef FARFIELD_PYTHON_BINDINGS_PYTHON_SOLVER_H
#define FARFIELD_PYTHON_BINDINGS_PYTHON_SOLVER_H

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "farfield/farfield.h"

namespace nb = nanobind;

namespace farfield
{

template<class Real>
using Vector = nb::ndarray<const Real, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template<class Real>
using Positions = nb::ndarray<const Real, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Box       = nb::ndarray<const double, nb::shape<3, 3>, nb::c_contig, nb::device::cpu>;
using Indices   = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
//! Arrays that are filled.
template<class Real>
using Vectors = nb::ndarray<Real, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
template<class Real>
using Values = nb::ndarray<Real, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
//! Six components of symmetric matrices.
template<class Real>
using Components = nb::ndarray<const Real, nb::shape<-1, 6>, nb::c_contig, nb::device::cpu>;
template<class Real>
using Hessians = nb::ndarray<Real, nb::shape<-1, 6>, nb::c_contig, nb::device::cpu>;

using Matrix = std::array<std::array<double, 3>, 3>;

inline Matrix virialOf(const Totals& totals)
{
    Matrix virial;
    for (int i = 0; i < 9; i++)
    {
        virial[i / 3][i % 3] = totals.virial[i / 3][i % 3];
    }
    return virial;
}

//! The box vectors as rows.
inline const double (*rows(const Box& box))[3]
{
    return reinterpret_cast<const double(*)[3]>(box.data());
}

inline int sizeOf(size_t size)
{
    return static_cast<int>(size);
}

inline void checkSize(size_t size, size_t expected, const char* what)
{
    if (size != expected)
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::string("There are ") + std::to_string(size) + " " + what + ", but "
                            + std::to_string(expected)
                            + " particles: set the charges of all of them.");
    }
}

//! What rows can be named by, for messages.
template<class Rows>
std::string namesOf(const Rows& rows)
{
    std::string names;
    for (const auto& row : rows)
    {
        names += (names.empty() ? "'" : ", '") + std::string(row.name) + "'";
    }
    return names;
}

//! The value of a name among rows of names and values.
template<class Value, class Rows>
Value named(const Rows& rows, const std::string& name, const char* option)
{
    const auto found = std::find_if(
            std::begin(rows), std::end(rows), [&](const auto& row) { return name == row.name; });
    if (found == std::end(rows))
    {
        throw Error(ErrorCode::InvalidArgument,
                    std::string(option) + " has no value '" + name + "', but must be one of "
                            + namesOf(rows) + ".",
                    option);
    }
    return found->value;
}

//! Sets an option by its name. \throws Error  there is none, or it is of another type
inline void setOption(Options* options, const std::string& name, const nb::object& value)
{
    const OptionDescription* option = findOption<float>(name);
    if (option == nullptr)
    {
        throw Error(ErrorCode::InvalidArgument,
                    "There is no option '" + name + "', but there are " + namesOf(c_options<float>)
                            + ".");
    }
    std::visit(
            [&](auto member)
            {
                using Member = std::remove_reference_t<decltype(options->*member)>;
                if constexpr (std::is_same_v<Member, M2lEngine>)
                {
                    options->*member =
                            named<Member>(c_m2lEngines, nb::cast<std::string>(value), option->name);
                }
                else if constexpr (std::is_same_v<Member, Boundary>)
                {
                    options->*member =
                            named<Member>(c_boundaries, nb::cast<std::string>(value), option->name);
                }
                else if constexpr (std::is_same_v<Member, Device>)
                {
                    options->*member =
                            named<Member>(c_devices, nb::cast<std::string>(value), option->name);
                }
                else
                {
                    options->*member = nb::cast<Member>(value);
                }
            },
            option->member);
}

/*! \brief Options by their names.
 *  \param[in] mostThreads  no more threads than these, whatever the options say */
template<class Real>
Options pythonOptions(const nb::dict& given, int mostThreads)
{
    Options options;
    for (const auto& [name, value] : given)
    {
        setOption(&options, nb::cast<std::string>(name), nb::borrow(value));
    }
    // a number that is not legal is refused by the library
    if (isLegal(*findOption<Real>("threads"), options.threads))
    {
        options.threads = std::min(usableThreads(options.threads), mostThreads);
    }
    return options;
}

//! \param[in] slope  whether dV/dlambda is wanted
inline Request
requestOf(bool virial, const std::array<double, 3>& gridOffset, double lambda, bool slope)
{
    Request request;
    request.virial         = virial;
    request.gridOffset     = gridOffset;
    request.replaceForces  = true;
    request.lambda         = lambda;
    request.dEnergyDLambda = slope;
    return request;
}

//! A solver that knows how many particles it has.
template<class Real>
class PythonSolver
{
public:
    //! \param[in] mostThreads  no more threads than these, whatever the options say
    PythonSolver(const nb::dict& given, int mostThreads) :
        options_(pythonOptions<Real>(given, mostThreads)), solver_(options_)
    {
    }

    void setCharges(const Vector<Real>& q)
    {
        solver_.setCharges(q.data(), sizeOf(q.size()));
        setCount(q.size());
    }
    //! There are charges of so many particles.
    void setCount(size_t count) { count_ = count; }
    void setPerturbedCharges(const Vector<Real>& a, const Vector<Real>& b)
    {
        checkSize(b.size(), a.size(), "charges of the second state");
        solver_.setPerturbedCharges(a.data(), b.data(), sizeOf(a.size()));
        count_ = a.size();
    }
    void setExclusions(const Indices& offsets, const Indices& partners)
    {
        checkSize(offsets.size(), count_ + 1, "offsets (one more than particles)");
        solver_.setExclusions(offsets.data(), partners.data(), sizeOf(count_));
    }
    //! \param[in] dipoles  none: there are none any more
    void setDipoles(const std::optional<Positions<Real>>& dipoles)
    {
        const size_t given = dipoles ? dipoles->shape(0) : count_;
        checkSize(given, count_, "dipoles");
        solver_.setDipoles(dipoles ? dipoles->data() : nullptr, sizeOf(count_));
    }
    //! \param[in] quadrupoles  xx yy zz xy xz yz; none: there are none any more
    void setQuadrupoles(const std::optional<Components<Real>>& quadrupoles)
    {
        const size_t given = quadrupoles ? quadrupoles->shape(0) : count_;
        checkSize(given, count_, "quadrupoles");
        solver_.setQuadrupoles(quadrupoles ? quadrupoles->data() : nullptr, sizeOf(count_));
    }
    void setNearFunction(const std::string& name,
                         const std::string& rule,
                         const Vector<Real>& widths)
    {
        struct Function
        {
            const char* name;
            PairFunction value;
        };
        struct Rule
        {
            const char* name;
            WidthRule value;
        };
        static constexpr Function c_functions[] = { { "coulomb", PairFunction::Coulomb },
                                                    { "gaussian", PairFunction::Gaussian },
                                                    { "thole", PairFunction::Thole },
                                                    { "soft-core", PairFunction::SoftCore } };
        static constexpr Rule c_rules[]         = { { "root-sum-square", WidthRule::RootSumSquare },
                                                    { "geometric-mean", WidthRule::GeometricMean },
                                                    { "larger", WidthRule::Larger } };
        checkSize(widths.size(), count_, "widths");
        solver_.setNearFunction({ named<PairFunction>(c_functions, name, "name"),
                                  named<WidthRule>(c_rules, rule, "rule") },
                                widths.data(),
                                sizeOf(count_));
    }
    void prepare(const Positions<Real>& x, const Box& box)
    {
        checkSize(x.shape(0), count_, "positions");
        const nb::gil_scoped_release release;
        solver_.prepare(x.data(), rows(box));
    }
    //! \returns energy, virial and dV/dlambda
    std::tuple<double, Matrix, double> evaluate(const Positions<Real>& x,
                                                const Box& box,
                                                const Vectors<Real>& forces,
                                                const std::optional<Values<Real>>& potentials,
                                                const std::optional<Vectors<Real>>& gradients,
                                                const std::optional<Hessians<Real>>& hessians,
                                                const std::optional<Vectors<Real>>& torques,
                                                bool virial,
                                                const std::array<double, 3>& gridOffset,
                                                double lambda,
                                                bool slope)
    {
        checkSize(x.shape(0), count_, "positions");
        const Request request = requestOf(virial, gridOffset, lambda, slope);
        Totals totals;
        {
            const nb::gil_scoped_release release;
            const Outputs<Real> outputs = { potentials ? potentials->data() : nullptr,
                                            gradients ? gradients->data() : nullptr,
                                            hessians ? hessians->data() : nullptr,
                                            torques ? torques->data() : nullptr };
            totals = solver_.evaluate(x.data(), rows(box), forces.data(), request, outputs);
        }
        return { totals.energy, virialOf(totals), totals.dEnergyDLambda };
    }
    void evaluateTangent(const Positions<Real>& x,
                         const Box& box,
                         const std::optional<Positions<Real>>& dx,
                         const std::optional<Vector<Real>>& dq,
                         const Vectors<Real>& forces,
                         const Values<Real>& potentials,
                         const std::array<double, 3>& gridOffset)
    {
        checkSize(x.shape(0), count_, "positions");
        checkSize(dx ? dx->shape(0) : count_, count_, "derivatives of positions");
        checkSize(dq ? dq->shape(0) : count_, count_, "derivatives of charges");
        Request request;
        request.gridOffset = gridOffset;
        const nb::gil_scoped_release release;
        solver_.evaluateTangent(x.data(),
                                rows(box),
                                { dx ? dx->data() : nullptr, dq ? dq->data() : nullptr },
                                { forces.data(), potentials.data() },
                                request);
    }
    //! \returns self energy, residual, iterations
    std::tuple<double, double, int> induceDipoles(const Positions<Real>& x,
                                                  const Box& box,
                                                  const Vector<Real>& polarisabilities,
                                                  const Vectors<Real>& dipoles,
                                                  double tolerance,
                                                  const std::array<double, 3>& gridOffset)
    {
        checkSize(x.shape(0), count_, "positions");
        checkSize(polarisabilities.size(), count_, "polarisabilities");
        checkSize(dipoles.shape(0), count_, "dipoles");
        Request request;
        request.gridOffset = gridOffset;
        const nb::gil_scoped_release release;
        const Induction found = solver_.induceDipoles(
                x.data(), rows(box), polarisabilities.data(), dipoles.data(), tolerance, request);
        return { found.selfEnergy, found.residual, found.iterations };
    }
    void evaluateAt(const Positions<Real>& x,
                    const Box& box,
                    const Positions<Real>& at,
                    const Values<Real>& potentials,
                    const Vectors<Real>& fields,
                    const std::array<double, 3>& gridOffset)
    {
        checkSize(x.shape(0), count_, "positions");
        Request request;
        request.gridOffset = gridOffset;
        const nb::gil_scoped_release release;
        solver_.evaluateAt(x.data(),
                           rows(box),
                           at.data(),
                           static_cast<int>(at.shape(0)),
                           potentials.data(),
                           fields.data(),
                           request);
    }
    std::vector<double> groupEnergies(const Positions<Real>& x,
                                      const Box& box,
                                      const Indices& group,
                                      int groups,
                                      double lambda)
    {
        checkSize(x.shape(0), count_, "positions");
        checkSize(group.size(), count_, "groups");
        Request request;
        request.lambda = lambda;
        const nb::gil_scoped_release release;
        return solver_.groupEnergies(x.data(), rows(box), group.data(), groups, request);
    }
    nb::dict setup() const
    {
        const Setup s = solver_.setup();
        nb::dict result;
        result["order"]           = s.order;
        result["direct_range"]    = s.directRange;
        result["m2l"]             = nameOf(s.m2l);
        result["device"]          = nameOf(s.device);
        result["device_name"]     = s.deviceName;
        result["device_id"]       = s.deviceId;
        result["cells"]           = s.cells;
        result["leaf_cells"]      = s.leafCells;
        result["levels"]          = s.levels;
        result["cell_size"]       = s.cellSize;
        result["estimated_error"] = s.estimatedError;
        result["largest_error"]   = s.largestError;
        result["is_best_effort"]  = s.isBestEffort;
        result["threads"]         = s.threads;
        return result;
    }
    bool isBestEffort() const { return solver_.setup().isBestEffort; }
    double coulombConstant() const { return options_.coulombConstant; }
    std::vector<double> state() const { return solver_.state(); }
    void restore(const std::vector<double>& state) { solver_.restore(state); }
    std::vector<std::pair<std::string, double>> timings() const
    {
        std::vector<std::pair<std::string, double>> result;
        for (const StageTime& stage : solver_.timings())
        {
            result.emplace_back(stage.name, stage.seconds);
        }
        return result;
    }

    Solver<Real>& solver() { return solver_; }
    //! Number of particles.
    size_t count() const { return count_; }

private:
    Options options_;
    Solver<Real> solver_;
    size_t count_ = 0;
};

} // namespace farfield

#endif
