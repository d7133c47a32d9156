# System packages first. ATTEST_FETCH_DEPS=ON fetches the pinned source of whatever is missing; a commit
# id pins its content. Why each package was chosen: docs/architecture.md, "What we depend on".

include(FetchContent)

# attest_package(NAME TARGET imported-target APT packages REPOSITORY url COMMIT id)
function(attest_package name)
  cmake_parse_arguments(arg "" "TARGET;APT;REPOSITORY;COMMIT" "" ${ARGN})
  find_package(${name} QUIET)
  if(TARGET ${arg_TARGET})
    set_property(TARGET ${arg_TARGET} PROPERTY IMPORTED_GLOBAL TRUE)
    return()
  endif()
  if(NOT ATTEST_FETCH_DEPS)
    message(FATAL_ERROR
      "${name} (${arg_TARGET}) was not found. Install ${arg_APT} (scripts/setup.sh does), "
      "or configure with -DATTEST_FETCH_DEPS=ON to build it from its pinned source.")
  endif()
  message(STATUS "attest: fetching ${name} at ${arg_COMMIT}")
  # Their tests, submodules (copies of test frameworks), warnings, other targets and install rules are
  # theirs. A folder that is not there keeps FetchContent from adding them all; CMake 3.28 has a word for it.
  FetchContent_Declare(${name} SOURCE_SUBDIR not-there
    GIT_REPOSITORY ${arg_REPOSITORY} GIT_TAG ${arg_COMMIT} GIT_SUBMODULES "")
  set(BUILD_TESTING OFF)
  set(CMAKE_VERIFY_INTERFACE_HEADER_SETS OFF)
  FetchContent_MakeAvailable(${name})
  string(TOLOWER ${name} lower)
  add_subdirectory(${${lower}_SOURCE_DIR} ${${lower}_BINARY_DIR} EXCLUDE_FROM_ALL SYSTEM)
  if(NOT TARGET ${arg_TARGET})
    message(FATAL_ERROR "${name} at ${arg_COMMIT} makes no target ${arg_TARGET}.")
  endif()
endfunction()

attest_package(Eigen3 TARGET Eigen3::Eigen APT libeigen3-dev
  REPOSITORY https://gitlab.com/libeigen/eigen.git
  COMMIT 3147391d946bb4b6c68edd901f2add6ac1f31f8c)  # 3.4.0
attest_package(nlohmann_json TARGET nlohmann_json::nlohmann_json APT nlohmann-json3-dev
  REPOSITORY https://github.com/nlohmann/json.git
  COMMIT bc889afb4c5bf1c0d8ee29ef35eaaf4c8bef8a5d)  # 3.11.2
attest_package(CLI11 TARGET CLI11::CLI11 APT libcli11-dev
  REPOSITORY https://github.com/CLIUtils/CLI11.git
  COMMIT 70f8072f9dd2292fd0b9f9e5f58e279f60483ed3)  # 2.1.2
find_package(Threads REQUIRED)
# The fibers of the host engine for HIP kernels. Static, so that the binary needs no Boost where it runs.
set(Boost_USE_STATIC_LIBS ON)
# Boost 1.74's files ask for a CMake before 3.5, which CMake 4 refuses unless told; and CMake 3.30 warns
# that its own FindBoost is gone.
if(NOT DEFINED CMAKE_POLICY_VERSION_MINIMUM)
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
endif()
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)
endif()
find_package(Boost 1.74 QUIET COMPONENTS context)
if(NOT TARGET Boost::context)
  message(FATAL_ERROR
    "Boost.Context 1.74 or newer, as a static library, was not found. Install libboost-context-dev (scripts/setup.sh "
    "does). ATTEST_FETCH_DEPS does not build it: its sources are assembly for each platform in a tree of more than a "
    "hundred libraries, and every distribution packages it.")
endif()

if(ATTEST_BUILD_TESTS)
  attest_package(GTest TARGET GTest::gtest APT "libgtest-dev libgmock-dev"
    REPOSITORY https://github.com/google/googletest.git
    COMMIT 58d77fa8070e8cec2dc1ed015d66b454c8d78850)  # 1.12.1
  attest_package(rapidcheck TARGET rapidcheck APT librapidcheck-dev
    REPOSITORY https://github.com/emil-e/rapidcheck.git
    COMMIT ff6af6fc683159deb51c543b065eba14dfcf329b)  # 2023-12-14, the last one
endif()
