# SPDX-License-Identifier: BSD-3-Clause
# Run at every build (cmake -P): writes OUTPUT from TEMPLATE with the git hash of SOURCE, only where it has changed.
execute_process(
  COMMAND git -c "safe.directory=*" -C "${SOURCE}" describe --always --dirty --abbrev=12 "--exclude=*"
  OUTPUT_VARIABLE GIT_HASH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  set(GIT_HASH unknown)
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
