# SPDX-License-Identifier: BSD-3-Clause
# Library distzo2_version: the header distzo2_version.hpp with the git hash and what the program is built from.
set(version_folder "${PROJECT_BINARY_DIR}/generated")
string(REPLACE ";" ", " kokkos_devices "${Kokkos_DEVICES}")
pkg_check_modules(OPENBLAS QUIET openblas)
set(trilinos_version_file "${TeuchosCore_DIR}/../Trilinos/TrilinosConfigVersion.cmake")
if(EXISTS "${trilinos_version_file}")  # Teuchos has no version of its own
  file(STRINGS "${trilinos_version_file}" line LIMIT_COUNT 1 REGEX "^set\\(PACKAGE_VERSION \"")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" TeuchosCore_VERSION "${line}")
endif()
foreach(name KokkosKernels_VERSION OPENBLAS_VERSION TeuchosCore_VERSION)
  if(NOT ${name})
    set(${name} "of unknown version")
  endif()
endforeach()
add_custom_target(distzo2_version_header
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${version_folder}/distzo2_version.hpp"
    "-DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/distzo2_version.hpp.in" "-DPROJECT_VERSION=${PROJECT_VERSION}"
    "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}" "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "-DKOKKOS=${Kokkos_VERSION} (${kokkos_devices})" "-DKOKKOS_KERNELS=${KokkosKernels_VERSION}"
    "-DTEUCHOS=${TeuchosCore_VERSION}" "-DONEDNN=${dnnl_VERSION}" "-DOPENBLAS=${OPENBLAS_VERSION}"
    -P "${PROJECT_SOURCE_DIR}/cmake/GitHash.cmake"
  BYPRODUCTS "${version_folder}/distzo2_version.hpp"
  COMMENT "" VERBATIM)
add_library(distzo2_version INTERFACE)
target_include_directories(distzo2_version INTERFACE "${version_folder}")
add_dependencies(distzo2_version distzo2_version_header)
