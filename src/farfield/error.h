/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Errors of the library; farfield.h includes this.
 */
#ifndef FARFIELD_ERROR_H
#define FARFIELD_ERROR_H

#include <stdexcept>
#include <string>

//! Marks what the shared library exports; exceptions must look the same on both sides.
#define FARFIELD_EXPORT __attribute__((visibility("default")))

namespace farfield
{

//! What went wrong; see Error.
enum class ErrorCode
{
    InvalidArgument, //!< a value is outside its legal range
    Unsupported,     //!< legal, but not implemented
    NotCompiled,     //!< needs a part that this build lacks (CUDA)
    OutOfMemory,     //!< host or device memory is exhausted
    DeviceFailure    //!< no usable device, or the device reported an error
};

//! Every failure of the library. The text names the parameter, its value and the legal range.
class FARFIELD_EXPORT Error : public std::runtime_error
{
public:
    Error(ErrorCode code, const std::string& message, const char* parameter = "") :
        std::runtime_error(message), code_(code), parameter_(parameter)
    {
    }
    ErrorCode code() const noexcept { return code_; }
    //! The member of Options that has to change, as "cellSize"; or "positions"; or "boxes", of a
    //! batch; or empty.
    const char* parameter() const noexcept { return parameter_; }

private:
    ErrorCode code_;
    const char* parameter_; //!< a literal
};

} // namespace farfield

#endif
