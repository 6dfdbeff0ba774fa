#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu/kernels.h"

namespace leanstream::kernels {
namespace {

TEST(Dispatch, the_best_table_comes_first_and_the_portable_one_last) {
  ASSERT_FALSE(all_kernels().empty());
  EXPECT_EQ(select_kernels(), all_kernels().front());
  EXPECT_EQ(std::string(all_kernels().back()->name), "portable");
}

TEST(Dispatch, every_table_is_found_by_its_name) {
  for (const Kernels* kernels : all_kernels()) EXPECT_EQ(select_kernels(kernels->name), kernels);
}

TEST(Dispatch, an_unknown_name_gives_nothing) {
  EXPECT_EQ(select_kernels("avx1024"), nullptr);
  EXPECT_EQ(select_kernels(""), nullptr);
}

}  // namespace
}  // namespace leanstream::kernels
