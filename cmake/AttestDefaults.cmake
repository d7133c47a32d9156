# Settings every target shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Every public header is compiled alone by the target all_verify_interface_header_sets.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

find_program(ATTEST_CCACHE ccache)
if(ATTEST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ATTEST_CCACHE})
endif()

add_library(attest_warnings INTERFACE)
add_library(attest::warnings ALIAS attest_warnings)
# A designated initialiser names what it sets; that the rest keeps its default is the point of it.
target_compile_options(attest_warnings INTERFACE -Wall -Wextra -Wconversion
  -Wno-missing-field-initializers
  $<$<BOOL:${ATTEST_WERROR}>:-Werror>)

# -fwrapv: a host compiler widens an int32 index because overflow is undefined, and so hides exactly
# the wrap that a device would show (docs/architecture.md, "Kernels wrap"). Under the sanitizers the
# flag would switch off the overflow check, which then names the line instead.
add_library(attest_kernel_flags INTERFACE)
add_library(attest::kernel_flags ALIAS attest_kernel_flags)
if(ATTEST_SANITIZE)
  string(REPLACE "," ";" attest_sanitizers "${ATTEST_SANITIZE}")
  foreach(sanitizer IN LISTS attest_sanitizers)
    add_compile_options(-fsanitize=${sanitizer})
    add_link_options(-fsanitize=${sanitizer})
  endforeach()
  # The check of virtual tables reads memory through a pipe, and so reports a fault where descriptors run out.
  add_compile_options(-fno-omit-frame-pointer -fno-sanitize-recover=all -fno-sanitize=vptr)
else()
  target_compile_options(attest_kernel_flags INTERFACE -fwrapv)
endif()
# One source of rounding: no contraction into FMA unless the kernel writes one.
target_compile_options(attest_kernel_flags INTERFACE -ffp-contract=off)

# The instruction set of the hot loops that are not kernels. Eigen types never cross a library
# boundary, so targets built with and without it link safely.
add_library(attest_arch INTERFACE)
add_library(attest::arch ALIAS attest_arch)
if(ATTEST_ARCH)
  target_compile_options(attest_arch INTERFACE -march=${ATTEST_ARCH})
endif()
