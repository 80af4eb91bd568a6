# SPDX-License-Identifier: BSD-3-Clause
# Target `headers`: every header of ours is compiled alone, so that none leans on what stands before it.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
  "${PROJECT_SOURCE_DIR}/core/*.hpp" "${PROJECT_SOURCE_DIR}/io/*.hpp" "${PROJECT_SOURCE_DIR}/parallel/*.hpp"
  "${PROJECT_SOURCE_DIR}/app/*.hpp")
if(NOT DISTZO2_CUDA)  # those of the CUDA backend need its compiler
  list(FILTER headers EXCLUDE REGEX "^core/cuda/")
endif()
set(sources)
foreach(header IN LISTS headers)
  string(REPLACE "/" "_" name "${header}")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"  // twice: the guard works\n#include \"${header}\"\n")
  list(APPEND sources "${source}")
endforeach()
add_library(headers OBJECT EXCLUDE_FROM_ALL ${sources})
target_link_libraries(headers PRIVATE distzo2::app Kokkos::kokkos Kokkos::kokkoskernels DNNL::dnnl MPI::MPI_CXX)
target_compile_options(headers PRIVATE -O0 -g0)
set_target_properties(headers PROPERTIES UNITY_BUILD OFF)
