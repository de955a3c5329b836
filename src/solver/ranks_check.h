/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief What callers of several ranks promise, checked by all ranks together: what is broken is the
 *         same Error on all of them.
 */
#ifndef FARFIELD_SOLVER_RANKS_CHECK_H
#define FARFIELD_SOLVER_RANKS_CHECK_H

#include <cstdint>

#include <array>
#include <string>
#include <vector>

#include "parallel/own_particles.h"
#include "solver/agreement.h"

namespace farfield
{

/*! \brief Throws where ranks have been given different things.
 *  \param[in] answers    [ranks] of answersOf()
 *  \param[in] part       (answer) what has to be the same
 *  \param[in] what       that is, in the message
 *  \param[in] parameter  option that it is, if it is one */
template<class Answer, class Part>
void checkSame(const std::vector<Answer>& answers,
               const Part& part,
               const std::string& what,
               const char* parameter = "")
{
    for (size_t r = 1; r < answers.size(); r++)
    {
        if (!(part(answers[r]) == part(answers[0])))
        {
            std::string text = "Ranks 0 and " + std::to_string(r) + " differ in the ";
            text += what + ". Give all ranks the same ";
            text += what + ".";
            throw Error(ErrorCode::InvalidArgument, text, parameter);
        }
    }
}

/*! \brief The options of a rank, checked, with the device of all ranks: Auto is the GPU where each of
 *         them can use one.
 *  \param[in] hasCommunicator  whether there is a DeviceCommunicator
 *  \throws Error  as DistributedSolver */
template<class Real>
Options checkedForRanks(const Options& given, bool hasCommunicator, Ranks* ranks);

//! What a rank has been given for an evaluation, to be compared.
struct GivenToRank
{
    std::array<std::array<double, 3>, 3> box; //!< nm
    std::array<double, 3> gridOffset;
    long long step;
    bool energy, virial;
    long long particles; //!< of this rank
    std::uint64_t hash;  //!< of these, see OwnParticles::hash()

    GivenToRank() = default;
    template<class Real>
    GivenToRank(const double boxVectors[3][3],
                const Request& request,
                const OwnParticles<Real>& own);
};

/*! \brief Checks what ranks have been given for an evaluation.
 *  \param[in] given  [ranks]
 *  \param[in] own    index of our particles
 *  \param[in] count  of all particles
 *  \param[in] hash   see hashOfAll() */
void checkGiven(const std::vector<GivenToRank>& given,
                const std::vector<int>& own,
                int count,
                std::uint64_t hash,
                Ranks* ranks);

} // namespace farfield

#endif
