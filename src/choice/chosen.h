/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Order and cells in use, what they were chosen for, and whether they still suit it.
 */
#ifndef FARFIELD_CHOICE_CHOSEN_H
#define FARFIELD_CHOICE_CHOSEN_H

#include <vector>

#include "choice/saved_state.h"
#include "evaluation/charge_set.h"
#include "evaluation/evaluator.h"

namespace farfield
{

/*! \brief The one rule for a system on one process and for one on several ranks.
 *
 *  Ranks of a system have the same numbers of it, and so come to the same answers. */
template<class Real>
class Chosen
{
public:
    Chosen(const Options& options, Evaluator<Real>* evaluator) :
        options_(options), evaluator_(evaluator)
    {
    }
    //! Whether there are operators, and they were chosen for such particles.
    bool isFor(const ParticleNumbers& now) const;
    //! They have been chosen for these.
    void set(const ParticleNumbers& numbers);

    /*! \brief Whether the fields of the last evaluation are about as strong as when the error was
     *         measured.
     *  \param[in] cappedFields  Backend::cappedFields(), of all ranks
     *  \param[in] least         see leastForce() */
    bool areFieldsAsMeasured(double cappedFields, const ChargeSums& charges, double least) const;

    Setup setup() const;
    //! As Solver::state(); empty where nothing was chosen.
    std::vector<double> state() const;
    //! A state that state() has given. \throws Error  as Solver::restore()
    SavedState checked(const std::vector<double>& state) const;
    //! Builds the operators of a state. \throws Error  OutOfMemory
    void restore(const SavedState& state);

private:
    Options options_;
    Evaluator<Real>* evaluator_;
    Device device_ = Device::Auto; //!< whose costs decided; Auto: nothing has been chosen
    ParticleNumbers numbers_;
};

} // namespace farfield

#endif
