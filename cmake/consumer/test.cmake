# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs the package, builds the C++ program of README.md against it, runs it, and compares what
# it prints with the line that README.md promises.
#
# Expects SOURCE_DIR, BINARY_DIR, CONFIG, GENERATOR, CXX and CXX_FLAGS.

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

# "]" and ";" would be read as list syntax, so the text is cut by position.
file(READ ${SOURCE_DIR}/README.md readme)
foreach(block cpp promised)
    if(block STREQUAL "cpp")
        set(opening "```cpp\n")
    else()
        set(opening "prints\n\n```\n")
    endif()
    string(FIND "${readme}" "${opening}" start)
    if(start EQUAL -1)
        message(FATAL_ERROR "README.md has no block that opens with: ${opening}")
    endif()
    string(LENGTH "${opening}" length)
    math(EXPR start "${start} + ${length}")
    string(SUBSTRING "${readme}" ${start} -1 readme)
    string(FIND "${readme}" "```" length)
    string(SUBSTRING "${readme}" 0 ${length} ${block})
endforeach()
file(WRITE ${folder}/first_program.cpp "${cpp}")

run(${CMAKE_COMMAND} --install ${BINARY_DIR} --config ${CONFIG} --prefix ${folder}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/cmake/consumer -B ${folder}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${folder}/prefix -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DFIRST_PROGRAM=${folder}/first_program.cpp)
run(${CMAKE_COMMAND} --build ${folder}/build --config ${CONFIG})
run(${folder}/build/first_program)

string(STRIP "${output}" output)
string(STRIP "${promised}" promised)
if(NOT output STREQUAL promised)
    message(FATAL_ERROR "The program printed\n${output}\nbut README.md promises\n${promised}")
endif()
