# The kernels and their tests alone, without any library of the target's architecture: GoogleTest is built from the
# source that Debian's googletest package installs, and of Highway only the headers are used, which are the same
# everywhere.

find_path(HWY_INCLUDE_DIR hwy/highway.h PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${HWY_INCLUDE_DIR}/hwy ${PROJECT_BINARY_DIR}/include/hwy SYMBOLIC)  # and nothing else of the host's
add_library(leanstream_highway STATIC ${PROJECT_SOURCE_DIR}/cmake/highway_targets.cpp)
target_include_directories(leanstream_highway SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/include)
add_library(PkgConfig::hwy ALIAS leanstream_highway)

set(BUILD_GMOCK ON)
set(INSTALL_GTEST OFF)
add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
if(NOT TARGET GTest::gmock_main)
  add_library(GTest::gmock_main ALIAS gmock_main)
endif()

add_subdirectory(kernels)
enable_testing()
add_subdirectory(tests)
