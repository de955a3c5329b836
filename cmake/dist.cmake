# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Puts all that is committed into a tarball, its SHA-256 sum beside it, and the recipes of packaging/ with its place, its
# sum and versions filled in. The same commit gives the same bytes with the same version of git. With TEST the tarball
# is unpacked and configured, too.
#
# Needs nothing but CMake and git: cmake -P cmake/dist.cmake. Takes FOLDER, else build/dist; TEST needs GENERATOR and CXX.

cmake_minimum_required(VERSION 3.25)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH SOURCE_DIR)
if(NOT FOLDER)
    set(FOLDER ${SOURCE_DIR}/build/dist)
endif()
find_program(GIT git REQUIRED)
file(STRINGS ${SOURCE_DIR}/CMakeLists.txt VERSION REGEX "^    VERSION [0-9.]+$")
string(REGEX MATCH "[0-9.]+" VERSION "${VERSION}")
set(name farfield-${VERSION})

function(run)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${FOLDER}
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${ARGN}: ${status}\n${output}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY ${FOLDER})
# A clone may belong to another user
set(git ${GIT} -C ${SOURCE_DIR} -c safe.directory=${SOURCE_DIR})
run(${git} status --porcelain --untracked-files=no)
if(output)
    message(WARNING "Changes that are not committed are left out:\n${output}")
endif()
run(${git} archive --format=tar.gz --prefix=${name}/ --output=${FOLDER}/${name}.tar.gz HEAD)
file(SHA256 ${FOLDER}/${name}.tar.gz sum)
file(WRITE ${FOLDER}/SHA256SUMS "${sum}  ${name}.tar.gz\n")
message(STATUS "${FOLDER}/${name}.tar.gz")

# What recipes name
set(ARCHIVE ${FOLDER}/${name}.tar.gz)
set(SHA256 ${sum})
file(STRINGS ${SOURCE_DIR}/cmake/gromacs.sh release REGEX "^[0-9a-f]+ gromacs-[0-9.]+\\.tar\\.gz$")
string(REGEX MATCH "^([0-9a-f]+) gromacs-([0-9.]+)\\.tar" release "${release}")
set(GROMACS_SHA256 ${CMAKE_MATCH_1})
set(GROMACS_VERSION ${CMAKE_MATCH_2})
file(REMOVE_RECURSE ${FOLDER}/packaging)
run(${git} ls-files packaging/conda packaging/easybuild packaging/spack)
string(REGEX MATCHALL "[^\n]+" recipes "${output}")
foreach(recipe IN LISTS recipes)
    string(CONFIGURE "${recipe}" file @ONLY)
    configure_file(${SOURCE_DIR}/${recipe} ${FOLDER}/${file} @ONLY)
    file(READ ${FOLDER}/${file} text)
    if(text MATCHES "@[A-Z]" OR NOT GROMACS_VERSION)
        message(FATAL_ERROR "${file} has a word that is not filled in: ${CMAKE_MATCH_0}")
    endif()
endforeach()

if(TEST)
    run(sha256sum --check --strict SHA256SUMS)
    file(REMOVE_RECURSE ${FOLDER}/${name} ${FOLDER}/build)
    run(${CMAKE_COMMAND} -E tar xzf ${name}.tar.gz)
    run(${CMAKE_COMMAND} -S ${name} -B build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DFARFIELD_CUDA=OFF
        -DBUILD_TESTING=OFF)
    run(${FOLDER}/${name}/quickstart.sh help)
endif()
