# What every target of this project shares: language level, warnings, visibility, sanitizers.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(leanstream_options INTERFACE)
target_include_directories(leanstream_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                                                        ${PROJECT_SOURCE_DIR}/include)
# Float results are part of the contract (exactness): no contraction that the source does not spell out.
target_compile_options(leanstream_options INTERFACE -Wall -Wextra -Wshadow -Wno-unused-parameter
                                                    -ffp-contract=off $<$<BOOL:${LEANSTREAM_WERROR}>:-Werror>)
if(LEANSTREAM_SANITIZE)
  target_compile_options(leanstream_options INTERFACE -fsanitize=${LEANSTREAM_SANITIZE} -fno-omit-frame-pointer
                                                      -fno-sanitize-recover=all)
  target_link_options(leanstream_options INTERFACE -fsanitize=${LEANSTREAM_SANITIZE})
endif()
if(LEANSTREAM_FUZZ)
  target_compile_options(leanstream_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# leanstream_folder(NAME SOURCES ... DEPENDS ...): one static library per folder, leanstream::NAME.
function(leanstream_folder name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(leanstream_${name} STATIC ${arg_SOURCES})
  add_library(leanstream::${name} ALIAS leanstream_${name})
  target_link_libraries(leanstream_${name} PUBLIC leanstream_options ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
endfunction()
