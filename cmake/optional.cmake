# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Optional parts: what is on a machine by halves, as libraries without their headers, counts as absent, and is no error.

# Sets a variable to whether an imported target has a header. CMake ends where folders of a target are missing.
function(farfield_has_header result target header)
    set(${result} FALSE PARENT_SCOPE)
    if(TARGET ${target})
        get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
        set(missing FALSE)
        set(found FALSE)
        foreach(folder IN LISTS folders)
            if(NOT EXISTS "${folder}")
                set(missing TRUE)
            elseif(EXISTS "${folder}/${header}")
                set(found TRUE)
            endif()
        endforeach()
        if(found AND NOT missing)
            set(${result} TRUE PARENT_SCOPE)
        endif()
    endif()
endfunction()

# find_package(MPI), which ends CMake where there is a compiler of MPI without headers: Debian's openmpi-bin has it.
macro(farfield_find_mpi)
    find_program(MPI_CXX_COMPILER NAMES mpicxx mpic++ mpiCC mpicxx.openmpi mpicxx.mpich)
    mark_as_advanced(MPI_CXX_COMPILER)
    set(farfield_mpi_works 0)
    if(MPI_CXX_COMPILER)
        set(farfield_mpi_source "${CMAKE_CURRENT_BINARY_DIR}/mpi_works.cpp")
        file(WRITE "${farfield_mpi_source}" "#include <mpi.h>\nint main() { return MPI_Finalize(); }\n")
        execute_process(COMMAND ${MPI_CXX_COMPILER} "${farfield_mpi_source}" -o "${farfield_mpi_source}.out"
            RESULT_VARIABLE farfield_mpi_works OUTPUT_QUIET ERROR_QUIET)
    endif()
    if(farfield_mpi_works EQUAL 0)
        find_package(MPI COMPONENTS CXX QUIET)
    else()
        message(STATUS "Ranks over MPI: not tested, ${MPI_CXX_COMPILER} compiles no program of MPI (Debian: libopenmpi-dev)")
    endif()
endmacro()

# Sets farfield_nccl_works, NCCL_INCLUDE_DIR and NCCL_LIBRARY; NCCL_INCLUDE_DIR=OFF looks for none.
macro(farfield_find_nccl)
    find_path(NCCL_INCLUDE_DIR nccl.h)
    find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2)
    if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
        include(CheckCXXSourceCompiles)
        set(CMAKE_REQUIRED_INCLUDES ${NCCL_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
        set(CMAKE_REQUIRED_LIBRARIES ${NCCL_LIBRARY})
        check_cxx_source_compiles("#include <nccl.h>\nint main() { int v; return ncclGetVersion(&v); }" farfield_nccl_works)
        unset(CMAKE_REQUIRED_INCLUDES)
        unset(CMAKE_REQUIRED_LIBRARIES)
    endif()
endmacro()
