# Compiler flags common to every target, and spillway_room(): one source folder, one static library, one test program.

add_library(spillway_flags INTERFACE)
target_include_directories(spillway_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(spillway_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual> -Werror=return-type -Werror=unused-result -fno-omit-frame-pointer)
target_compile_definitions(spillway_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(spillway_flags INTERFACE -Wthread-safety -Werror=thread-safety)
endif()
if(SPILLWAY_SANITIZE)
  string(REPLACE ";" "," _sanitizers "${SPILLWAY_SANITIZE}")
  target_compile_options(spillway_flags INTERFACE -fsanitize=${_sanitizers} -fno-sanitize-recover=all)
  target_link_options(spillway_flags INTERFACE -fsanitize=${_sanitizers})
  if(SPILLWAY_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What these find the address sanitizer finds too; they make half of the code.
    target_compile_options(spillway_flags INTERFACE -fno-sanitize=null,object-size)
  endif()
endif()

# spillway_test_program(TARGET): what every test program has. Under the sanitizers, whose builds are part of every check, the headers
# that all tests include are compiled once; elsewhere each file must name what it uses.
function(spillway_test_program target)
  target_link_libraries(${target} PRIVATE GTest::gtest_main GTest::gmock)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # each test file has constants of its own
  if(NOT SPILLWAY_SANITIZE)
    # Built when somebody asks for them: ./dev test, or the target unit_tests.
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    if(NOT TARGET unit_tests)
      add_custom_target(unit_tests)
    endif()
    add_dependencies(unit_tests ${target})
    return()
  endif()
  if(SPILLWAY_SANITIZE MATCHES "fuzzer")
    return()
  endif()
  if(NOT TARGET spillway_test_headers)
    # A program, because only programs are compiled with the same options as programs.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cc CONTENT "int main() {}\n")
    add_executable(spillway_test_headers ${CMAKE_BINARY_DIR}/test_headers.cc)
    set_target_properties(spillway_test_headers PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(spillway_test_headers PRIVATE spillway_flags fmt::fmt-header-only GTest::gtest)
    target_precompile_headers(spillway_test_headers PRIVATE <gtest/gtest.h> <fmt/format.h> <filesystem> <fstream> <functional>
      <map> <random> <thread>)
  endif()
  target_precompile_headers(${target} REUSE_FROM spillway_test_headers)
endfunction()

# spillway_room(NAME DEPS rooms... LINK libraries...)
# Every src/NAME/*.cc except *_test.cc becomes spillway_NAME; the *_test.cc become the test program NAME_test.
function(spillway_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ROOM_DEPS PREPEND spillway_)
  if(sources)
    add_library(spillway_${name} STATIC ${sources})
    target_link_libraries(spillway_${name} PUBLIC spillway_flags ${ROOM_DEPS} ${ROOM_LINK})
  else()
    add_library(spillway_${name} INTERFACE)
    target_link_libraries(spillway_${name} INTERFACE spillway_flags ${ROOM_DEPS} ${ROOM_LINK})
  endif()
  if(SPILLWAY_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE spillway_${name})
    spillway_test_program(${name}_test)
    add_test(NAME ${name} COMMAND ${name}_test)
  endif()
endfunction()

# spillway_room_map(NAME DEPS rooms...): what a room that spillway_room() does not build may include. Nothing to do here:
# tools/check_rooms.py reads it.
function(spillway_room_map)
endfunction()
