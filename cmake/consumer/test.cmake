# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs the package, builds the C++ programs of README.md and of docs/cpp-programs.md against it, runs
# them, and compares what they print with what the pages promise. Without a GPU that for arrays on a GPU
# is compiled only, without CUDA or MPI those that need them are left out.
#
# Expects SOURCE_DIR, BINARY_DIR, CONFIG, GENERATOR, CXX and CXX_FLAGS; CUDA_ROOT; MPI_CXX and MPIEXEC.

cmake_minimum_required(VERSION 3.25)

set(folder ${BINARY_DIR}/consumer)
file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder})

function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${ARGN}: ${status}\n${output}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

# Takes what stands between an opening and the next ``` from a text, which is cut there. "]" and ";" would be read
# as list syntax, so it is cut by position.
function(take block opening text)
    string(FIND "${${text}}" "${opening}" start)
    if(start EQUAL -1)
        message(FATAL_ERROR "The page has no block that opens with: ${opening}")
    endif()
    string(LENGTH "${opening}" length)
    math(EXPR start "${start} + ${length}")
    string(SUBSTRING "${${text}}" ${start} -1 rest)
    string(FIND "${rest}" "```" length)
    string(SUBSTRING "${rest}" 0 ${length} found)
    string(SUBSTRING "${rest}" ${length} -1 rest)
    set(${block} "${found}" PARENT_SCOPE)
    set(${text} "${rest}" PARENT_SCOPE)
endfunction()

function(expect program)
    run(${ARGN} ${folder}/build/${program})
    string(STRIP "${output}" output)
    if(NOT output STREQUAL promised)
        message(FATAL_ERROR "${program} printed\n${output}\nbut its page promises\n${promised}")
    endif()
endfunction()

file(READ ${SOURCE_DIR}/README.md page)
take(first_program "```cpp\n" page)
take(promised "prints\n\n```\n" page)
string(STRIP "${promised}" promised)
file(READ ${SOURCE_DIR}/docs/cpp-programs.md page)
take(device_arrays "```cpp\n" page)
take(ranks "```cpp\n" page)
foreach(program first_program device_arrays ranks)
    file(WRITE ${folder}/${program}.cpp "${${program}}")
endforeach()

run(${CMAKE_COMMAND} --install ${BINARY_DIR} --config ${CONFIG} --prefix ${folder}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/cmake/consumer -B ${folder}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${folder}/prefix -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DSOURCES=${folder} -DCUDAToolkit_ROOT=${CUDA_ROOT} -DMPI_CXX_COMPILER=${MPI_CXX})
run(${CMAKE_COMMAND} --build ${folder}/build --config ${CONFIG})

# Other tests run on these cores
set(ENV{GOMP_SPINCOUNT} 2000)
expect(first_program)
execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(CUDA_ROOT AND status EQUAL 0)
    expect(device_arrays)
endif()
if(MPI_CXX)
    # Open MPI asks for these, and leaves memory allocated
    set(ENV{ASAN_OPTIONS} "detect_leaks=0")
    set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
    set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
    set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
    set(ENV{PRTE_MCA_rmaps_default_mapping_policy} ":oversubscribe")
    expect(ranks ${MPIEXEC} -n 3)
endif()
