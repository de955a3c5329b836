/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief The options of a Solver: defaults, limits, and the names by which users set them.
 *
 *  The one source of all of these, for the library, the adapter of GROMACS, the tests and the
 *  tables of the documentation. It needs the standard library only: GROMACS checks its input with
 *  a copy of this file, in builds without the library, too. A new option is a member of Options and
 *  a row of c_options; a new M2L engine is a value of M2lEngine and a row of c_m2lEngines.
 */
#ifndef FARFIELD_OPTIONS_H
#define FARFIELD_OPTIONS_H

#include <cstddef>

#include <array>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string_view>
#include <variant>

namespace farfield
{

//! The highest multipole order that is supported.
constexpr int c_maxOrder = 20;

//! The largest direct range that is supported, in cells.
constexpr int c_maxDirectRange = 2;

//! The smallest Options::accuracy: what rounding in this precision leaves to ask for.
template<class Real>
constexpr double c_bestAccuracy = sizeof(Real) == 4 ? 2e-6 : 1e-11;

//! The largest Options::accuracy.
constexpr double c_worstAccuracy = 0.1;

//! The largest Options::cellSize, nm; a cell must also fit into the box.
constexpr double c_largestCellSize = 1e6;

/*! \brief Relative excess of a cell over the shortest box edge that is rounding.
 *
 *  The box may come from single precision, and have been scaled there: a few units in the last
 *  place. */
constexpr double c_cellSizeRounding = 4.0 * std::numeric_limits<float>::epsilon();

//! The largest Options::threads and the largest Options::deviceId.
constexpr int c_maxThreads  = 4096;
constexpr int c_maxDeviceId = 1 << 16;

//! The most GPUs that can be helpers, see Options::helperDevices.
constexpr int c_maxHelperDevices = 7;

//! Where the work is done.
enum class Device
{
    Auto, //!< the GPU when one can be used, otherwise the CPU
    Cpu,  //!< the CPU
    Gpu   //!< an NVIDIA GPU; an error if there is none
};

//! How multipoles become local expansions.
enum class M2lEngine
{
    Auto,      //!< the engine with the lowest predicted cost
    Hierarchy, //!< M2M, M2L over interaction lists and L2L above the leaves, FFT on the coarse
               //!< grid; the fastest way to do the interaction lists
    Fft,       //!< one convolution over the periodic grid of leaf cells
    Symmetric, //!< Hierarchy, GPU only: displacements related by reflections share products
    Gemm       //!< Hierarchy, GPU only: matrix products on tensor cores
};

//! Which images particles have.
enum class Boundary
{
    Periodic, //!< those along all box vectors
    Open,     //!< none; the box is not read
    Slab      //!< those along the first two box vectors; the third is not read
};

//! CUDA devices by their numbers, from 0.
class DeviceList
{
public:
    constexpr DeviceList() = default;
    constexpr DeviceList(std::initializer_list<int> devices)
    {
        for (const int device : devices)
        {
            add(device);
        }
    }
    //! Devices beyond the first c_maxHelperDevices are counted, but not kept; a Solver refuses them.
    constexpr void add(int device)
    {
        if (count_ < c_maxHelperDevices)
        {
            ids_[count_] = device;
        }
        count_++;
    }
    constexpr int size() const { return count_; }
    constexpr bool empty() const { return count_ == 0; }
    constexpr const int* begin() const { return ids_; }
    constexpr const int* end() const
    {
        return ids_ + (count_ < c_maxHelperDevices ? count_ : c_maxHelperDevices);
    }

private:
    int ids_[c_maxHelperDevices] = {};
    int count_                   = 0;
};

//! Settings of a Solver. All are checked by its constructor.
struct Options
{
    //! Coulomb constant 1/(4 pi eps0 eps_r), kJ mol^-1 nm e^-2; > 0.
    double coulombConstant = 138.935458;
    /*! \brief Wanted error of the forces: the RMS error over all particles is at most this times
     *         their RMS Coulomb force, or, where forces cancel as at the sites of a crystal, times
     *         a hundredth of the force between two typical charges at the mean distance.
     *
     *  That force is k q_rms^2 / (V/N)^(2/3), with q_rms over the N charged particles of the box.
     *  Along axes without images the volume is that of what holds all particles.
     *  What rounding leaves is not asked for: errors below 40 units of rounding of this force always
     *  suffice (2.4e-6 of it in single precision).
     *
     *  It holds with and without particles in contact. Where a few of them have most of all force,
     *  errors of the others are relative to the RMS force of the others, and will suffice when those
     *  have parted. The error is measured before the first evaluation, see Setup::estimatedError, and
     *  again when they may not suffice, see Solver::evaluate(). A request that cannot be met is refused
     *  with the best that can; in a run that has begun the best is taken, see Setup::isBestEffort.
     *  From c_bestAccuracy to c_worstAccuracy. */
    double accuracy = 3e-4;
    //! Multipole order p, 0 to c_maxOrder; -1 lets the accuracy decide. An order that is given
    //! stands, even if the accuracy is not met.
    int order = -1;
    //! Direct (near-field) range ws in cells, 1 to c_maxDirectRange; 0 lets the cost decide.
    int directRange = 0;
    //! Wanted edge of a leaf cell, nm, at most the shortest box edge; 0 lets the cost decide.
    double cellSize = 0;
    //! M2L engine.
    M2lEngine m2l = M2lEngine::Auto;
    //! Boundary conditions.
    Boundary boundary = Boundary::Periodic;
    //! Backend.
    Device device = Device::Auto;
    //! CUDA device to work on, from 0; -1: the one that is current where the solver is made.
    int deviceId = -1;
    /*! \brief Further CUDA devices, which compute a part of the near field; at most c_maxHelperDevices.
     *
     *  They are other ones than the device of the solver, of the same kind, and reach its memory.
     *  Each of them fetches a part of the cells and computes its pairs; the far field stays on the
     *  device of the solver. The parts follow the times of the devices, but with
     *  Options::reproducible, where they are fixed. See Setup::helpers. It is not an option by name:
     *  c_options has no row for it, and none for Options::helpersIfFaster. */
    DeviceList helperDevices;
    /*! \brief Uses none, the first, or all of Options::helperDevices: whichever is fastest.
     *
     *  With Options::tune each is timed. Without it nothing is timed, and none is used. A device that
     *  cannot help is no error then: it is left out. An error of a helper later, such as missing
     *  memory, leaves out all of them. All are left out on the CPU and on several ranks, too, where
     *  helpers are an error otherwise. Setup::helpersLost says why. */
    bool helpersIfFaster = false;
    //! Use least-squares instead of truncated M2L operators: half the error at equal order.
    bool leastSquares = true;
    //! OpenMP threads: all teams have so many, whatever the work. 0: usableThreads().
    int threads = 0;
    //! Bitwise equal results for equal input on the GPU too, at some cost; the CPU's always are.
    bool reproducible = false;
    /*! \brief On the GPU: times the settings that meet the accuracy before the first evaluation,
     *         and takes the fastest. On several ranks: times messages, for the cost model.
     *
     *  Otherwise a cost model decides, and its choice stands unless another setting is faster by
     *  more than the timing may err. Takes some seconds. What is chosen may differ between runs and
     *  machines; see Solver::state(). */
    bool tune = false;
};

//! Whether there are no images along an axis.
constexpr bool isOpenAlong(Boundary boundary, int axis)
{
    return boundary == Boundary::Open || (boundary == Boundary::Slab && axis == 2);
}

//! An M2L engine as users see it.
struct M2lEngineDescription
{
    M2lEngine value;
    const char* name;  //!< in .mdp files, logs and command lines
    bool isForGpuOnly; //!< whether the CPU lacks it
    const char* text;  //!< one line
};

//! All engines, each at the place of its value; those for a GPU only come last.
inline constexpr M2lEngineDescription c_m2lEngines[] = {
    { M2lEngine::Auto, "auto", false, "use the engine with the lowest predicted cost" },
    { M2lEngine::Hierarchy,
      "hierarchy",
      false,
      "use a tree of cells, with an exact periodic convolution at its coarsest level" },
    { M2lEngine::Fft, "fft", false, "use one periodic convolution over the grid of leaf cells" },
    { M2lEngine::Symmetric,
      "symmetric",
      true,
      "displacements that are mirror images share their products" },
    { M2lEngine::Gemm, "gemm", true, "products of matrices on tensor cores" },
};

//! A device as users see it.
struct DeviceDescription
{
    Device value;
    const char* name; //!< in .mdp files and messages
};

//! All devices, each at the place of its value.
inline constexpr DeviceDescription c_devices[] = {
    { Device::Auto, "auto" },
    { Device::Cpu, "cpu" },
    { Device::Gpu, "gpu" },
};

//! Boundary conditions as users see them.
struct BoundaryDescription
{
    Boundary value;
    const char* name; //!< in messages
};

//! All of them, each at the place of its value.
inline constexpr BoundaryDescription c_boundaries[] = {
    { Boundary::Periodic, "periodic" },
    { Boundary::Open, "open" },
    { Boundary::Slab, "slab" },
};

namespace detail
{

//! Whether each row of a table of values stands at the place of its value.
template<class Row, std::size_t n>
constexpr bool isInOrder(const Row (&rows)[n])
{
    for (std::size_t i = 0; i < n; i++)
    {
        if (static_cast<std::size_t>(rows[i].value) != i)
        {
            return false;
        }
    }
    return true;
}
static_assert(isInOrder(c_m2lEngines) && isInOrder(c_devices) && isInOrder(c_boundaries));

} // namespace detail

//! What users see of \p engine.
constexpr const M2lEngineDescription& descriptionOf(M2lEngine engine)
{
    return c_m2lEngines[static_cast<std::size_t>(engine)];
}

//! The name of \p engine.
constexpr const char* nameOf(M2lEngine engine)
{
    return descriptionOf(engine).name;
}

//! The name of \p device.
constexpr const char* nameOf(Device device)
{
    return c_devices[static_cast<std::size_t>(device)].name;
}

//! The name of \p boundary.
constexpr const char* nameOf(Boundary boundary)
{
    return c_boundaries[static_cast<std::size_t>(boundary)].name;
}

//! A member of Options; its type is the kind of value that users give.
using OptionMember = std::variant<double Options::*,
                                  int Options::*,
                                  bool Options::*,
                                  M2lEngine Options::*,
                                  Boundary Options::*,
                                  Device Options::*>;

//! Stands for the value that leaves an option open where there is no such value.
constexpr double c_neverOpen = std::numeric_limits<double>::quiet_NaN();

//! An option as users see it. Names and answers count as their numbers, from 0.
struct OptionDescription
{
    const char* name; //!< of the member, as in Error::parameter()
    OptionMember member;
    /*! \brief What sets it in GROMACS: an .mdp option of its own, "fmm-farfield-...", another .mdp
     *         option or an option of mdrun; empty: nothing. */
    const char* setting;
    double smallest, largest; //!< legal values, beside the one that leaves the option open
    double open;              //!< the value that leaves it open, or c_neverOpen
    const char* whenOpen;     //!< what then is the case, as a clause; empty if it is never open
    const char* unit;         //!< empty if it has none
    bool isPartOfState; //!< a saved state is refused with another value, see Solver::restore()
    const char* text;   //!< one sentence
};

/*! \brief All options but those of helpers, in the order of Options.
 *
 *  \tparam Real  the precision, on which the best accuracy depends */
template<class Real>
inline constexpr std::array<OptionDescription, 13> c_options = { {
        { "coulombConstant",
          &Options::coulombConstant,
          "epsilon-r",
          std::numeric_limits<double>::min(),
          std::numeric_limits<double>::max(),
          c_neverOpen,
          "",
          "kJ nm/(mol e^2)",
          false,
          "Coulomb constant, over the relative permittivity." },
        { "accuracy",
          &Options::accuracy,
          "fmm-farfield-accuracy",
          c_bestAccuracy<Real>,
          c_worstAccuracy,
          c_neverOpen,
          "",
          "",
          true,
          "Wanted error of the forces." },
        { "order",
          &Options::order,
          "fmm-farfield-order",
          0,
          c_maxOrder,
          -1,
          "the accuracy decides",
          "",
          true,
          "Multipole expansion order." },
        { "directRange",
          &Options::directRange,
          "fmm-farfield-direct-range",
          1,
          c_maxDirectRange,
          0,
          "the cost decides",
          "",
          true,
          "Number of layers of neighbouring cells whose particles interact directly." },
        { "cellSize",
          &Options::cellSize,
          "fmm-farfield-cell-size",
          0,
          c_largestCellSize,
          0,
          "the cost decides",
          "nm",
          true,
          "Wanted edge of a leaf cell." },
        { "m2l",
          &Options::m2l,
          "fmm-farfield-m2l",
          0,
          std::size(c_m2lEngines) - 1.0,
          0,
          "the cost decides",
          "",
          true,
          "How multipole expansions become local expansions." },
        { "boundary",
          &Options::boundary,
          "",
          0,
          std::size(c_boundaries) - 1.0,
          c_neverOpen,
          "",
          "",
          true,
          "Which images particles have." },
        { "device",
          &Options::device,
          "fmm-farfield-device",
          0,
          std::size(c_devices) - 1.0,
          0,
          "the GPU is used if there is one",
          "",
          false,
          "Where the FMM runs." },
        { "deviceId",
          &Options::deviceId,
          "mdrun -gpu_id",
          0,
          c_maxDeviceId,
          -1,
          "the current one is used",
          "",
          false,
          "CUDA device." },
        { "leastSquares",
          &Options::leastSquares,
          "",
          0,
          1,
          c_neverOpen,
          "",
          "",
          true,
          "Least-squares instead of truncated M2L operators." },
        { "threads",
          &Options::threads,
          "mdrun -ntomp",
          1,
          c_maxThreads,
          0,
          "all that can work at once are used",
          "",
          false,
          "OpenMP threads." },
        { "reproducible",
          &Options::reproducible,
          "mdrun -reprod",
          0,
          1,
          c_neverOpen,
          "",
          "",
          false,
          "Bitwise equal results for equal input on a GPU, too." },
        { "tune",
          &Options::tune,
          "fmm-farfield-tune",
          0,
          1,
          c_neverOpen,
          "",
          "",
          false,
          "On a GPU: before the first step of a dynamics run, time the settings that meet the "
          "accuracy and differ in what the options above leave open, and use the fastest." },
} };

//! The description of the option \p name, or nullptr if there is none.
template<class Real>
constexpr const OptionDescription* findOption(std::string_view name)
{
    for (const OptionDescription& option : c_options<Real>)
    {
        if (name == option.name)
        {
            return &option;
        }
    }
    return nullptr;
}

//! Whether \p option has an .mdp option of its own.
constexpr bool isMdpOption(const OptionDescription& option)
{
    return std::string_view(option.setting).substr(0, 4) == "fmm-";
}

//! The value of \p option in \p options as a number.
constexpr double valueOf(const OptionDescription& option, const Options& options)
{
    return std::visit([&](auto member) { return static_cast<double>(options.*member); },
                      option.member);
}

//! Whether \p value is one of \p option; not a number never is.
constexpr bool isLegal(const OptionDescription& option, double value)
{
    return value == option.open || (value >= option.smallest && value <= option.largest);
}

/*! \brief The values of the .mdp options that are not given.
 *
 *  Those of Options, but for the timing, which pays in the long runs of GROMACS. */
constexpr Options mdpDefaults()
{
    Options options;
    options.tune = true;
    return options;
}

namespace detail
{

template<class Real>
constexpr bool areDefaultsLegal()
{
    for (const OptionDescription& option : c_options<Real>)
    {
        if (!isLegal(option, valueOf(option, Options{}))
            || !isLegal(option, valueOf(option, mdpDefaults())))
        {
            return false;
        }
    }
    return true;
}
static_assert(areDefaultsLegal<float>() && areDefaultsLegal<double>());

} // namespace detail

} // namespace farfield

#endif
