/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What earlier evaluations say about the next one, and what recorded ones hold on to.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_EVALUATION_HISTORY_H
#define FARFIELD_KERNELS_RUNTIME_EVALUATION_HISTORY_H

namespace farfield
{

class EvaluationHistory
{
public:
    //! Memory or operators are others: recorded evaluations use those before.
    void replace() { generation_++; }
    //! Which ones evaluations use now.
    long long generation() const { return generation_; }
    //! Particles may be anywhere.
    void forgetPositions() { unsure_ = true; }
    //! Room for the particles of the evaluation at hand has been seen to.
    void knowPositions() { unsure_ = false; }
    bool knowsPositions() const { return !unsure_; }
    //! Whether a step follows the one of the last evaluation.
    bool isNext(long long step) const { return step >= 0 && step == lastStep_ + 1; }

    //! An evaluation of a step.
    void add(long long step) { lastStep_ = step; }
    //! One that no step follows: a recorded one, whose replays are not seen here, or one of host
    //! arrays, as errors are measured with, whose particles may have been anywhere.
    void addWithoutStep() { lastStep_ = c_noStep; }
    //! It will be replayed by somebody else.
    void keepRecording() { recorded_ = generation_; }
    bool hasRecording() const { return recorded_ != c_notRecorded; }
    //! Whether that has become old.
    bool isOutdated() const { return hasRecording() && recorded_ != generation_; }

    //! There may be evaluations that nobody has waited for.
    void enqueued() { mayRun_ = true; }
    void settled() { mayRun_ = false; }
    //! Replays are not seen here.
    bool mayRun() const { return mayRun_ || hasRecording(); }

private:
    static constexpr long long c_notRecorded = -1, c_noStep = -2;
    long long generation_ = 0;             //!< of what recorded evaluations hold on to
    long long recorded_   = c_notRecorded; //!< that of the last recording
    long long lastStep_   = c_noStep;
    bool unsure_          = true;
    bool mayRun_          = false;
};

} // namespace farfield

#endif
