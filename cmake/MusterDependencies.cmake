# Every library from outside, by the name that the link lists use.
# Where each comes from and why: docs/architecture.md, "Dependencies".

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(absl CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ZLIB REQUIRED)

# oneDNN's own CMake package asks for OpenCL headers, which the CPU library does not need.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
add_library(muster_dnnl INTERFACE)
target_link_libraries(muster_dnnl INTERFACE ${DNNL_LIBRARY})
target_include_directories(muster_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})

find_package(CLI11 CONFIG REQUIRED)
if(NOT MUSTER_ENGINE_ONLY)
  find_package(Protobuf REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
  find_package(yaml-cpp CONFIG REQUIRED)
  find_package(spdlog CONFIG REQUIRED)
  find_package(SQLite3 REQUIRED)
  find_library(CIVETWEB_LIBRARY civetweb REQUIRED)
endif()

# Tokenizers need them; an engine alone does not.
find_library(PCRE2_LIBRARY pcre2-8)
find_library(UTF8PROC_LIBRARY utf8proc)
if(PCRE2_LIBRARY AND UTF8PROC_LIBRARY)
  set(MUSTER_HAVE_TOKENIZERS ON)
elseif(NOT MUSTER_ENGINE_ONLY)
  message(FATAL_ERROR "PCRE2 and utf8proc are needed: libpcre2-dev and libutf8proc-dev")
endif()

# A machine that trains only on GPUs may have no Gloo; the engine then has local and NCCL communicators.
find_package(Gloo CONFIG QUIET)

if(MUSTER_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# The CUDA back-end, where the toolkit is.
set(MUSTER_HAVE_CUDA OFF)
if(NOT MUSTER_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(MUSTER_HAVE_CUDA ON)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    find_package(CUDAToolkit REQUIRED)
  elseif(MUSTER_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MUSTER_CUDA is ON and no CUDA compiler was found; put nvcc on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()
if(MUSTER_HAVE_CUDA)
  message(STATUS "muster: CUDA ${CMAKE_CUDA_COMPILER_VERSION} found, building the CUDA back-end")
else()
  message(STATUS "muster: no CUDA toolkit, this is a CPU-only build")
endif()
