# SPDX-License-Identifier: BSD-3-Clause
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(DISTZO2_WERROR "Treat warnings as errors" OFF)
option(DISTZO2_SANITIZE "Address and undefined-behaviour sanitizers" OFF)
option(DISTZO2_FUZZ "The fuzzers of what is read, and nothing else (clang)" OFF)

# What every target of ours is built with. No contraction: fma stands where the source says fma and nowhere else, so
# that z and the update have the same bits on every instruction set (design section 2).
add_library(distzo2_flags INTERFACE)
target_include_directories(distzo2_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(distzo2_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3 -ffp-contract=off -fno-math-errno>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wno-sign-conversion>
  # Sources that are compiled together are no headers of each other, and their names do not shadow each other's.
  $<IF:$<BOOL:${CMAKE_UNITY_BUILD}>,-Wshadow=local;-Wno-subobject-linkage,-Wshadow>
  $<$<BOOL:${DISTZO2_WERROR}>:-Werror>)
if(DISTZO2_SANITIZE)
  # Without what the address sanitizer sees as well, or no code of ours can do: a quarter of the time of compiling. GCC
  # takes variables of sanitized code for uninitialised.
  target_compile_options(distzo2_flags INTERFACE -fsanitize=address,undefined -fno-sanitize=null,object-size,vptr
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(distzo2_flags INTERFACE -fsanitize=address,undefined)
endif()
