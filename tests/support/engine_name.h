/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Names of engines for messages of tests.
 */
#ifndef FARFIELD_TESTS_ENGINE_NAME_H
#define FARFIELD_TESTS_ENGINE_NAME_H

#include "farfield/farfield.h"

namespace farfield
{
namespace test
{

//! What the tests call an engine.
inline const char* engineName(M2lEngine engine)
{
    switch (engine)
    {
        case M2lEngine::Auto:
            return "auto";
        case M2lEngine::Hierarchy:
            return "hierarchy";
        case M2lEngine::Fft:
            return "fft";
        case M2lEngine::Naive:
            return "naive";
        case M2lEngine::Dynamic:
            return "dynamic";
        case M2lEngine::Symmetric:
            return "symmetric";
        case M2lEngine::Gemm:
            return "gemm";
    }
    return "unknown";
}

} // namespace test
} // namespace farfield

#endif
