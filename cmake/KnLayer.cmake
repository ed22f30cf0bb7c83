# SPDX-License-Identifier: Apache-2.0
# kn_layer(NAME [DEPS layer...] [LIBS target...] [PRIVATE_LIBS target...] [EXCLUDE file...])
#
# The static library kn_NAME of every src/NAME/**/*.c but the EXCLUDEd. PRIVATE_LIBS are linked into
# programs, but their include folder is seen by this layer only. A layer without sources is an
# INTERFACE library, so that a tree under construction configures.

set(KN_LAYERS "" CACHE INTERNAL "layers so far, lowest first")

function(kn_layer name)
  cmake_parse_arguments(arg "" "" "DEPS;LIBS;PRIVATE_LIBS;EXCLUDE" ${ARGN})
  foreach(dep IN LISTS arg_DEPS)
    if(NOT dep IN_LIST KN_LAYERS)
      message(FATAL_ERROR "layer ${name} may not link ${dep}: it is not a lower layer")
    endif()
  endforeach()
  set(KN_LAYERS ${KN_LAYERS} ${name} CACHE INTERNAL "")

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
  foreach(file IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/src/${name}/${file})
  endforeach()
  list(TRANSFORM arg_DEPS PREPEND kn_)

  if(NOT sources)
    add_library(kn_${name} INTERFACE)
    target_link_libraries(kn_${name} INTERFACE kn_flags ${arg_DEPS} ${arg_LIBS})
    return()
  endif()
  add_library(kn_${name} STATIC ${sources})
  target_link_libraries(kn_${name} PUBLIC kn_flags ${arg_DEPS} ${arg_LIBS} PRIVATE ${arg_PRIVATE_LIBS})
endfunction()

# kn_program(NAME MAIN file LAYER layer): the program, at the top of the build folder.
function(kn_program name)
  cmake_parse_arguments(arg "" "MAIN;LAYER" "" ${ARGN})
  file(GLOB main CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_MAIN})
  if(main)
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE kn_${arg_LAYER})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endif()
endfunction()
