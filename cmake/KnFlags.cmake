# SPDX-License-Identifier: Apache-2.0
# Language, warnings, hardening and instrumentation: everything that kn_flags hands to every target.

option(KN_WERROR "Warnings are errors" OFF)
option(KN_FAULTS "Build the fault points (armed only by the environment)" ON)
option(KN_FUZZ "Build the libFuzzer programs (needs clang)" OFF)
option(KN_COVERAGE "Instrument for gcov" OFF)
set(KN_SANITIZE "" CACHE STRING "Value for -fsanitize=, for example address,undefined")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Assertions stay on in the optimised program: a crash is safe (cursors are durable), a wrong row is not.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

find_program(KN_CCACHE ccache)
if(KN_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${KN_CCACHE})
endif()

add_library(kn_flags INTERFACE)
target_include_directories(kn_flags INTERFACE ${PROJECT_SOURCE_DIR}/include
                                              ${PROJECT_SOURCE_DIR}/src)
# _GNU_SOURCE is defined for the whole project (empty, so that a file's own #define agrees).
target_compile_definitions(kn_flags INTERFACE _GNU_SOURCE= _FILE_OFFSET_BITS=64
                                              $<$<BOOL:${KN_FAULTS}>:KN_FAULTS=1>
                                              KN_VERSION_STRING="${PROJECT_VERSION}")
target_compile_options(kn_flags INTERFACE
  -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
  -Wwrite-strings -Wundef -Wformat=2 -Wimplicit-fallthrough -Wunused-result
  -fno-common -fno-omit-frame-pointer -fno-strict-aliasing
  -fstack-protector-strong -fstack-clash-protection)
target_link_options(kn_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)

# gcc cannot see that an output is set whenever the code is KN_OK; the analysers look instead.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(kn_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(kn_flags INTERFACE -fcf-protection)
endif()
if(KN_WERROR)
  target_compile_options(kn_flags INTERFACE -Werror)
endif()
if(KN_SANITIZE)
  target_compile_options(kn_flags INTERFACE -fsanitize=${KN_SANITIZE})
  target_link_options(kn_flags INTERFACE -fsanitize=${KN_SANITIZE})
  if(KN_SANITIZE MATCHES "undefined")
    target_compile_options(kn_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT KN_COVERAGE)
  target_compile_options(kn_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(KN_COVERAGE)
  target_compile_options(kn_flags INTERFACE --coverage -O0 -fprofile-update=atomic)
  target_link_options(kn_flags INTERFACE --coverage)
endif()
if(KN_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "KN_FUZZ needs clang: use the preset 'fuzz'")
  endif()
  target_compile_options(kn_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
