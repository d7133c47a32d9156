# System packages first. ATTEST_FETCH_DEPS=ON fetches pinned sources of whatever is missing.

include(FetchContent)

# attest_package(NAME target URL url SHA256 hash [VERSION v]): find NAME or fetch it.
function(attest_package name)
  cmake_parse_arguments(arg "" "TARGET;VERSION;URL;SHA256;HINT" "" ${ARGN})
  find_package(${name} QUIET)
  if(TARGET ${arg_TARGET})
    set_property(TARGET ${arg_TARGET} PROPERTY IMPORTED_GLOBAL TRUE)
    return()
  endif()
  if(NOT ATTEST_FETCH_DEPS)
    message(FATAL_ERROR
      "${name} (${arg_TARGET}) not found. Install ${arg_HINT} (scripts/setup.sh does), "
      "or configure with -DATTEST_FETCH_DEPS=ON.")
  endif()
  FetchContent_Declare(${name} URL ${arg_URL} URL_HASH SHA256=${arg_SHA256})
  FetchContent_MakeAvailable(${name})
endfunction()

attest_package(Eigen3 TARGET Eigen3::Eigen HINT libeigen3-dev
  URL https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.gz
  SHA256 8586084f71f9bde545ee7fa6d00288b264a2b7ac3607b974e54d13e7162c1c72)
attest_package(nlohmann_json TARGET nlohmann_json::nlohmann_json HINT nlohmann-json3-dev
  URL https://github.com/nlohmann/json/releases/download/v3.11.2/json.tar.xz
  SHA256 8c4b26bf4b422252e13f332bc5e388ec0ab5c3443d24399acb675e68278d341f)
attest_package(CLI11 TARGET CLI11::CLI11 HINT libcli11-dev
  URL https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.1.2.tar.gz
  SHA256 26291377e892ba0e5b4972cdfd4a2ab3bf53af8dac1f4ea8fe0d1376b625c8cb)
find_package(Threads REQUIRED)
if(ATTEST_BUILD_TESTS)
  attest_package(GTest TARGET GTest::gtest HINT "libgtest-dev libgmock-dev"
    URL https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz
    SHA256 81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2)
  attest_package(rapidcheck TARGET rapidcheck HINT librapidcheck-dev
    URL https://github.com/emil-e/rapidcheck/archive/ff6af6fc683159deb51c543b065eba14dfcf329b.tar.gz
    SHA256 "")
endif()
