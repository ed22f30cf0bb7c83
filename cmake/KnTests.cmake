# SPDX-License-Identifier: Apache-2.0
#
# tests/support/**/*.c              helpers that any test may use: the library kn_test_support
# tests/unit/<layer>/test_<x>.c     program test_<layer>_<x>, ctest <layer>.<x>, linked to kn_<layer>
# tests/unit/<layer>/<other>.c      helpers of that layer's tests, and of the tests of higher layers:
#                                   the library kn_test_<layer>
# docs/examples/<x>.c               program example_<x>, ctest example.<x>: sees the public headers, links
#                                   kn_lib, and says what it found wrong by its exit status
# tests/fuzz/fuzz_<x>.c             program replay_<x>, ctest fuzz.<x>: runs tests/fuzz/corpus/<x>/
#                                   and, with KN_FUZZ, the libFuzzer program fuzz_<x>
#
# All have the label "unit". A test file that says "labels: threads" in a comment has that label too
# and runs under ThreadSanitizer; one that says "labels: slow" (more than some five seconds) is left
# out by `make check`.

option(KN_TESTS "Build the unit tests and the fuzz corpus replay" ON)
if(NOT KN_TESTS)
  return()
endif()
kn_find(cmocka cmocka.h cmocka libcmocka-dev)

set(KN_TEST_DIR ${PROJECT_SOURCE_DIR}/tests)
set(KN_TEST_ENV
  "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
  "LSAN_OPTIONS=suppressions=${KN_TEST_DIR}/sanitizers/lsan.supp:print_suppressions=0"
  "TSAN_OPTIONS=suppressions=${KN_TEST_DIR}/sanitizers/tsan.supp:halt_on_error=1"
  "UBSAN_OPTIONS=print_stacktrace=1")

add_library(kn_test_flags INTERFACE)
target_link_libraries(kn_test_flags INTERFACE kn_flags kn::cmocka)
target_include_directories(kn_test_flags INTERFACE ${KN_TEST_DIR})
target_compile_definitions(kn_test_flags INTERFACE KN_TEST_DATA_DIR="${KN_TEST_DIR}"
                                                   KN_BUILD_DIR="${PROJECT_BINARY_DIR}")

# kn_test_library(NAME sources...): a static library, or an INTERFACE one where there are none.
function(kn_test_library name)
  if(ARGN)
    add_library(${name} STATIC ${ARGN})
    target_link_libraries(${name} PUBLIC kn_test_flags)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE kn_test_flags)
  endif()
endfunction()

# Against hanging, not against slowness: generous, as lanes run side by side.
set(KN_TEST_TIMEOUT 300)
if(KN_SANITIZE)
  set(KN_TEST_TIMEOUT 1200)
endif()

# kn_test_add(CTEST-NAME SOURCE TARGET [argument...])
function(kn_test_add test source target)
  add_test(NAME ${test} COMMAND ${target} ${ARGN})
  set(labels unit)
  foreach(label threads slow)
    file(STRINGS ${source} found REGEX "labels: .*${label}")
    if(found)
      list(APPEND labels ${label})
    endif()
  endforeach()
  set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT ${KN_TEST_TIMEOUT}
                                           ENVIRONMENT "${KN_TEST_ENV}")
endfunction()

file(GLOB_RECURSE support CONFIGURE_DEPENDS ${KN_TEST_DIR}/support/*.c)
kn_test_library(kn_test_support ${support})

set(helper_libs kn_test_support) # highest layer first
foreach(layer IN LISTS KN_LAYERS)
  set(dir ${KN_TEST_DIR}/unit/${layer})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.c)
  set(helpers ${sources})
  list(FILTER sources INCLUDE REGEX "/test_[^/]*\\.c$")
  list(FILTER helpers EXCLUDE REGEX "/test_[^/]*\\.c$")
  kn_test_library(kn_test_${layer} ${helpers})
  list(PREPEND helper_libs kn_test_${layer})
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${dir} ${source})
    string(REGEX REPLACE "(^|/)test_([^/]*)\\.c$" "\\1\\2" name ${name})
    string(REPLACE "/" "_" target test_${layer}_${name})
    string(REPLACE "/" "." test ${layer}.${name})
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE ${helper_libs} kn_${layer})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    kn_test_add(${test} ${source} ${target})
  endforeach()
endforeach()
# A test of the engine may look at DuckDB's own answers.
get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS targets)
  if(target MATCHES "^test_engine_")
    target_link_libraries(${target} PRIVATE kn::duckdb)
  endif()
endforeach()

# kn_fuzz_program(TARGET sources...): linked to the layers that the first source includes from.
function(kn_fuzz_program target source)
  add_executable(${target} ${source} ${ARGN})
  file(STRINGS ${source} includes REGEX "^#include \"[a-z]+/")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE "^#include \"([a-z]+)/.*" "\\1" layer "${line}")
    if(layer IN_LIST KN_LAYERS)
      target_link_libraries(${target} PRIVATE kn_${layer})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE kn_test_flags)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${KN_TEST_DIR}/fuzz/fuzz_*.c)
foreach(source IN LISTS sources)
  string(REGEX REPLACE ".*/fuzz_([^/]*)\\.c$" "\\1" name ${source})
  kn_fuzz_program(replay_${name} ${source} ${KN_TEST_DIR}/fuzz/replay_main.c)
  kn_test_add(fuzz.${name} ${source} replay_${name} ${KN_TEST_DIR}/fuzz/corpus/${name})
  if(KN_FUZZ)
    kn_fuzz_program(fuzz_${name} ${source})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  endif()
endforeach()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/examples/*.c)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE kn_lib)
  set_target_properties(example_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  kn_test_add(example.${name} ${source} example_${name})
endforeach()
