# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Decides whether the CUDA backend is built, and enables the language CUDA. Sets
# FARFIELD_HAS_CUDA.

set(FARFIELD_CUDA AUTO CACHE STRING "CUDA backend: AUTO (if there is a CUDA compiler), ON or OFF")
set_property(CACHE FARFIELD_CUDA PROPERTY STRINGS AUTO ON OFF)

# Sets CMAKE_CUDA_ARCHITECTURES unless the user did. A GPU in this machine is what to compile for;
# otherwise code for every generation that the compiler knows, and PTX for those to come.
function(farfield_choose_architectures)
    if(DEFINED CMAKE_CUDA_ARCHITECTURES OR DEFINED ENV{CUDAARCHS})
        return()
    endif()
    execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE status OUTPUT_VARIABLE gpus ERROR_QUIET)
    if(status EQUAL 0 AND gpus MATCHES "GPU 0")
        set(architectures native)
    else()
        execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch
            OUTPUT_VARIABLE known ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
        string(REGEX REPLACE "[^0-9\n]" "" known "${known}")
        string(REPLACE "\n" ";" known "${known}")
        set(architectures)
        foreach(architecture 75 80 86 89 90 100 120)
            if(architecture IN_LIST known)
                list(APPEND architectures ${architecture}-real)
                set(newest ${architecture})
            endif()
        endforeach()
        list(APPEND architectures ${newest}-virtual)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures to compile for")
endfunction()

set(FARFIELD_HAS_CUDA FALSE)
string(TOUPPER "${FARFIELD_CUDA}" choice)
if(choice STREQUAL AUTO OR choice)
    if(NOT CMAKE_CUDA_COMPILER AND DEFINED ENV{CUDACXX})
        set(CMAKE_CUDA_COMPILER $ENV{CUDACXX})
    elseif(NOT CMAKE_CUDA_COMPILER)
        find_program(FARFIELD_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
        mark_as_advanced(FARFIELD_NVCC)
        if(FARFIELD_NVCC)
            set(CMAKE_CUDA_COMPILER ${FARFIELD_NVCC})
        endif()
    endif()
    if(CMAKE_CUDA_COMPILER)
        farfield_choose_architectures()
    endif()
    if(NOT choice STREQUAL AUTO)
        enable_language(CUDA)
        set(FARFIELD_HAS_CUDA TRUE)
    else()
        include(CheckLanguage)
        check_language(CUDA)
        if(CMAKE_CUDA_COMPILER)
            enable_language(CUDA)
            set(FARFIELD_HAS_CUDA TRUE)
        endif()
    endif()
endif()

if(FARFIELD_HAS_CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    # Other libraries of a program may use another runtime.
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    find_package(CUDAToolkit REQUIRED)
    message(STATUS "CUDA backend: ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, "
        "architectures ${CMAKE_CUDA_ARCHITECTURES}")
else()
    message(STATUS "CUDA backend: not built")
endif()
