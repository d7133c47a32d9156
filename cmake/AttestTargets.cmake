# attest_library(NAME HEADERS ... SOURCES ... [LINK ...] [PRIVATE_LINK ...])
# One static library per folder, attest::NAME, whose headers are included as "folder/header.hpp".
function(attest_library name)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(attest_${name} STATIC)
  add_library(attest::${name} ALIAS attest_${name})
  set_target_properties(attest_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY ATTEST_LIBRARIES attest_${name})
  target_sources(attest_${name}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS}
    PRIVATE ${arg_SOURCES})
  target_compile_features(attest_${name} PUBLIC cxx_std_20)
  target_include_directories(attest_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/attest>)
  target_link_libraries(attest_${name}
    PUBLIC ${arg_LINK}
    PRIVATE $<BUILD_INTERFACE:attest::warnings> ${arg_PRIVATE_LINK})
endfunction()

# attest_test(NAME [TIER quick|device|nightly] [TIMEOUT s] SOURCES ... LINK ... [USING_THE_TREE source ...])
# One GoogleTest program; each test in it is a ctest entry labelled with its tier. Sources after
# USING_THE_TREE see ATTEST_SOURCE_DIR and ATTEST_BINARY; no other source does, so that its object
# file is the same in every checkout and ccache can share it.
function(attest_test name)
  cmake_parse_arguments(arg "" "TIER;TIMEOUT" "SOURCES;LINK;DEFINES;USING_THE_TREE" ${ARGN})
  if(NOT ATTEST_BUILD_TESTS)
    return()
  endif()
  if(NOT arg_TIER)
    set(arg_TIER quick)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(ATTEST_SANITIZE)
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} attest::warnings GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINES})
  set_property(SOURCE ${arg_USING_THE_TREE} APPEND PROPERTY COMPILE_DEFINITIONS
    ATTEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ATTEST_BINARY="${PROJECT_BINARY_DIR}/bin/attest")
  include(GoogleTest)
  # A generous discovery timeout: a loaded two-core machine may need it.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS ${arg_TIER} TIMEOUT ${arg_TIMEOUT})
endfunction()
