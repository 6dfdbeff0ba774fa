#include "gguf/tile_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leanstream::gguf {
namespace {

using testing::HasSubstr;

constexpr MlpShape shape_of(WeightType type, uint32_t d_model, uint32_t d_ff) {
  return {type, type, type, d_model, d_ff};
}

TileLayout chosen(const MlpShape& shape) {
  const Result<TileLayout> layout = TileLayout::choose(shape);
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  return *layout;
}

TEST(TileLayout, of_mistral_7b_is_the_one_that_the_documentation_tells) {
  const TileLayout layout = chosen(shape_of(WeightType::kQ4_0, 4096, 14336));
  EXPECT_EQ(layout.tile_neurons(), 32u);
  EXPECT_EQ(layout.n_tiles(), 448u);
  EXPECT_EQ(layout.tile_bytes(), 221184u);
  const Tile tile = layout.tile(7);
  EXPECT_EQ(tile.first_neuron, 224u);
  EXPECT_EQ(tile.n_neurons, 32u);
  EXPECT_EQ(tile.offset, 7 * 221184u);
  EXPECT_EQ(tile.up_offset, 73728u);
  EXPECT_EQ(tile.down_offset, 2 * 73728u);
  EXPECT_EQ(tile.used_bytes, 221184u);
}

TEST(TileLayout, takes_tiles_of_128_to_512_kib_where_the_shape_lets_it) {
  for (const WeightTypeTraits& type : kWeightTypes) {
    for (const uint32_t d_model : {256u, 512u, 1024u, 2048u, 4096u}) {
      const TileLayout layout = chosen(shape_of(type.type, d_model, 16384));
      const bool least = layout.tile_neurons() == std::max(16u, type.block_elements);
      const bool most = layout.tile_neurons() == kSumGroup;
      EXPECT_TRUE(layout.tile_bytes() >= 128 << 10 || most) << type.name << ", " << d_model;
      EXPECT_TRUE(layout.tile_bytes() <= 512 << 10 || least) << type.name << ", " << d_model;
    }
  }
}

TEST(TileLayout, holds_whole_panels_and_blocks_and_no_part_of_two_sum_groups) {
  for (const WeightTypeTraits& down : kWeightTypes) {
    for (const uint32_t d_ff : {256u, 512u, 1280u, 14336u}) {
      const TileLayout layout = chosen({WeightType::kF16, WeightType::kQ8_0, down.type, 64, d_ff});
      EXPECT_EQ(layout.tile_neurons() % kPanelRows, 0u);
      EXPECT_EQ(layout.tile_neurons() % down.block_elements, 0u);
      EXPECT_EQ(kSumGroup % layout.tile_neurons(), 0u);
    }
  }
}

TEST(TileLayout, ends_with_a_short_tile_where_neurons_are_left_over) {
  const TileLayout layout = *TileLayout::create({WeightType::kF32, WeightType::kBF16, WeightType::kF16, 20, 45}, 16);
  ASSERT_EQ(layout.n_tiles(), 3u);
  const Tile last = layout.tile(2);
  EXPECT_EQ(last.first_neuron, 32u);
  EXPECT_EQ(last.n_neurons, 13u);
  EXPECT_EQ(last.offset, 2 * layout.tile_bytes());
  // 13 rows are one panel; 20 rows of down are two.
  EXPECT_EQ(last.up_offset, 16u * 20 * 4);
  EXPECT_EQ(last.down_offset, last.up_offset + 16 * 20 * 2);
  EXPECT_EQ(last.used_bytes, last.down_offset + 32 * 13 * 2);
}

TEST(TileLayout, of_fewer_neurons_than_a_tile_has_one_tile_no_larger_than_needed) {
  const TileLayout layout = chosen(shape_of(WeightType::kF32, 8, 5));
  EXPECT_EQ(layout.n_tiles(), 1u);
  EXPECT_EQ(layout.tile(0).n_neurons, 5u);
  EXPECT_EQ(layout.tile_bytes(), kTileAlignment);
}

TEST(TileLayout, gives_the_matrices_of_a_tile) {
  const TileLayout layout = *TileLayout::create({WeightType::kQ4_0, WeightType::kQ8_0, WeightType::kF16, 64, 48}, 32);
  const auto* data = reinterpret_cast<const std::byte*>(uintptr_t{4096});  // never read
  const TileMatrices matrices = layout.matrices(1, data);
  EXPECT_EQ(matrices.gate.type, WeightType::kQ4_0);
  EXPECT_EQ(matrices.up.type, WeightType::kQ8_0);
  EXPECT_EQ(matrices.down.type, WeightType::kF16);
  EXPECT_EQ(matrices.gate.layout, Layout::kPanel);
  EXPECT_EQ(matrices.gate.rows, 16u);
  EXPECT_EQ(matrices.gate.cols, 64u);
  EXPECT_EQ(matrices.down.rows, 64u);
  EXPECT_EQ(matrices.down.cols, 16u);
  EXPECT_EQ(matrices.gate.data, data);
  EXPECT_EQ(matrices.up.data, data + layout.tile(1).up_offset);
  EXPECT_EQ(matrices.down.data, data + layout.tile(1).down_offset);
}

TEST(TileLayout, refuses_what_cannot_be_cut) {
  const auto message = [](const MlpShape& shape, uint32_t neurons) {
    const Result<TileLayout> layout = TileLayout::create(shape, neurons);
    EXPECT_FALSE(layout.ok());
    EXPECT_EQ(layout.status().code(), Code::kMalformed);
    return layout.status().message();
  };
  const MlpShape good = shape_of(WeightType::kQ4_0, 64, 64);
  for (const uint32_t neurons : {0u, 16u, 33u, 96u, 2048u, 0xffffffe0u}) {
    EXPECT_THAT(message(good, neurons), HasSubstr("tiles of " + std::to_string(neurons) + " neurons"));
  }
  EXPECT_THAT(message(shape_of(WeightType::kF32, 0, 64), 16), HasSubstr("a width of 0"));
  EXPECT_THAT(message(shape_of(WeightType::kF32, 64, 0), 16), HasSubstr("a width of 0"));
  EXPECT_THAT(message(shape_of(WeightType::kF32, 64, 0xffffffff), 16), HasSubstr("a width of 4294967295"));
  EXPECT_THAT(message({WeightType::kQ4_K, WeightType::kF32, WeightType::kF32, 128, 64}, 16), HasSubstr("of the gate"));
  EXPECT_THAT(message({WeightType::kF32, WeightType::kQ4_K, WeightType::kF32, 128, 64}, 16), HasSubstr("of up"));
  EXPECT_THAT(message({WeightType::kF32, WeightType::kF32, WeightType::kQ4_K, 128, 64}, 256), HasSubstr("of down"));
}

}  // namespace
}  // namespace leanstream::gguf
