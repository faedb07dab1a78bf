# muster_fuzz_target(NAME SOURCES ... CORPUS folder [SECONDS n])   one libFuzzer program and one ctest entry
#
# Compiled by clang with libFuzzer, ASan and UBSan, apart from the rest of the build, whose compiler may be another: SOURCES are the
# target's own file and those of Muster that it tests. Runs over its seed corpus and then for SECONDS (5), from a fixed seed; whatever is
# found fails the test, and the input is kept in the build folder. Without clang there are no targets.
find_program(MUSTER_FUZZ_CLANG NAMES clang++ clang++-14)

function(muster_fuzz_target name)
  cmake_parse_arguments(ARG "" "CORPUS;SECONDS" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT MUSTER_FUZZ_CLANG)
    return()
  endif()
  if(NOT ARG_SECONDS)
    set(ARG_SECONDS 5)
  endif()
  set(program ${CMAKE_BINARY_DIR}/tests/${name})
  set(objects)
  foreach(source ${ARG_SOURCES})
    string(REPLACE "/" "_" object ${source})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}/${object}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/${name}
      COMMAND ${MUSTER_CCACHE} ${MUSTER_FUZZ_CLANG} -std=c++20 -O1 -g -I${CMAKE_SOURCE_DIR} -ffp-contract=off
              -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
              -MD -MF ${object}.d -MT ${object} -c ${CMAKE_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${CMAKE_SOURCE_DIR}/${source} DEPFILE ${object}.d VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(OUTPUT ${program}
    COMMAND ${MUSTER_FUZZ_CLANG} -fsanitize=fuzzer,address,undefined ${objects} -o ${program} -labsl_status -labsl_statusor -labsl_strings
            -labsl_cord -labsl_raw_hash_set -labsl_hash -labsl_city -labsl_low_level_hash -labsl_raw_logging_internal -labsl_int128
            -labsl_throw_delegate -labsl_str_format_internal -labsl_strings_internal -labsl_base -labsl_bad_optional_access -lz ${ARG_LIBRARIES}
    DEPENDS ${objects} VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name} ALL DEPENDS ${program})
  set(grown ${CMAKE_CURRENT_BINARY_DIR}/${name}/corpus)
  file(MAKE_DIRECTORY ${grown})
  add_test(NAME ${name} COMMAND ${program} -max_total_time=${ARG_SECONDS} -seed=1 -timeout=10 -rss_limit_mb=1024 -print_final_stats=0
           -verbosity=0 -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}/ ${grown} ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  set_tests_properties(${name} PROPERTIES TIMEOUT 90 LABELS fuzz)
endfunction()
