# The language, the warnings and the flags that every target shares.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# Not CMAKE_POSITION_INDEPENDENT_CODE: it gives programs -fPIE, which the shared precompiled header would not match.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fPIC>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Assertions of a broken invariant (MUSTER_CHECK) are not asserts: they stay in Release.
# Fused multiply-add would change bits from one compiler to the next.
set(muster_warnings -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${muster_warnings};-ffp-contract=off>")
string(REPLACE ";" "," muster_cuda_warnings "${muster_warnings}")
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${muster_cuda_warnings};--fmad=false>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety> $<$<COMPILE_LANGUAGE:CXX>:-Werror=thread-safety>)
endif()

if(MUSTER_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MUSTER_SANITIZE};-fno-omit-frame-pointer;-g>")
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  # Precompiled headers are cached only with these two (ccache manual, "Precompiled headers").
  # The base directory makes a clone in another folder hit the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${MUSTER_CCACHE})
  set(CMAKE_PCH_INSTANTIATE_TEMPLATES OFF)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

include_directories(${CMAKE_SOURCE_DIR})
