#include "tools/leanstream/convert/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utime.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gguf/checksum.h"
#include "gguf/pack.h"
#include "kernels/reference/matmul.h"
#include "tests/engine/loaded_model.h"
#include "tests/model/model_file.h"

namespace leanstream::convert {
namespace {

using test::must;
using testing::AllOf;
using testing::HasSubstr;

class PackTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test.test_suite_name()) + "." + test.name();
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = testing::TempDir() + "leanstream-pack-" + name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  Result<Report> run(uint64_t strip_bytes = uint64_t{64} << 20) const {
    return pack({.input = path("in.gguf"), .output = path("out.gguf"), .strip_bytes = strip_bytes});
  }

  std::string refusal(Code code, const std::string& output = "out.gguf") const {
    const Result<Report> report = pack({.input = path("in.gguf"), .output = path(output)});
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.status().code(), code) << report.status().message();
    return report.status().message();
  }

  static std::vector<std::byte> bytes_of(const gguf::Model& file, const gguf::TensorInfo& tensor) {
    std::vector<std::byte> bytes(tensor.size_bytes);
    EXPECT_TRUE(file.read_tensor(tensor, 0, bytes).ok());
    return bytes;
  }

  // Puts the rows or columns of one matrix in a tile where they stand in the source's tensor.
  static void unpack(const Matrix& tile, uint32_t first_row, uint32_t first_col, uint64_t cols, std::byte* tensor) {
    const size_t part = row_bytes(tile.type, tile.cols), stride = row_bytes(tile.type, cols);
    std::vector<std::byte> rows(kPanelRows * part);
    for (uint32_t row = 0; row < tile.rows; row += kPanelRows) {
      const uint32_t n = std::min(kPanelRows, tile.rows - row);
      reference::unpack_panel(tile.type, tile.cols, n, tile.data + row / kPanelRows * panel_bytes(tile.type, tile.cols),
                              rows.data());
      for (uint32_t r = 0; r < n; ++r) {
        std::memcpy(tensor + (first_row + row + r) * stride + row_bytes(tile.type, first_col), rows.data() + r * part,
                    part);
      }
    }
  }

  // The tensors of the source, taken from the tiles: name -> bytes.
  static std::map<std::string, std::vector<std::byte>> unpack(const gguf::Model& file) {
    const std::optional<gguf::Pack> packed = must(gguf::Pack::read(file));
    std::map<std::string, std::vector<std::byte>> tensors;
    for (const auto& [name, tensor] : packed->replaced()) tensors[name].resize(tensor.size_bytes);
    for (uint32_t i = 0; i < packed->layers().size(); ++i) {
      const gguf::PackedLayer& layer = packed->layers()[i];
      const gguf::MlpShape& shape = layer.layout.shape();
      const std::vector<uint64_t> checksums = must(gguf::read_checksums(file, layer));
      const std::vector<std::byte> tiles = bytes_of(file, *layer.tiles);
      for (uint32_t t = 0; t < layer.layout.n_tiles(); ++t) {
        const gguf::Tile tile = layer.layout.tile(t);
        const std::span<const std::byte> used(tiles.data() + tile.offset, tile.used_bytes);
        EXPECT_EQ(gguf::xxh3(used), checksums[t]);
        for (uint64_t b = tile.used_bytes; b < layer.layout.tile_bytes(); ++b) {
          EXPECT_EQ(tiles[tile.offset + b], std::byte{0});
        }
        const gguf::TileMatrices m = layer.layout.matrices(t, used.data());
        unpack(m.gate, tile.first_neuron, 0, shape.d_model, tensors[gguf::gate_name(i)].data());
        unpack(m.up, tile.first_neuron, 0, shape.d_model, tensors[gguf::up_name(i)].data());
        unpack(m.down, 0, tile.first_neuron, shape.d_ff, tensors[gguf::down_name(i)].data());
      }
    }
    return tensors;
  }

  void expect_source_in_pack() const {
    const gguf::Model in = must(gguf::Model::open(path("in.gguf")));
    const gguf::Model out = must(gguf::Model::open(path("out.gguf")));
    const std::map<std::string, std::vector<std::byte>> unpacked = unpack(out);
    for (const gguf::TensorInfo& tensor : in.tensors()) {
      const auto found = unpacked.find(tensor.name);
      if (found != unpacked.end()) {
        EXPECT_EQ(out.find_tensor(tensor.name), nullptr);
        EXPECT_TRUE(found->second == bytes_of(in, tensor)) << tensor.name;
        continue;
      }
      const gguf::TensorInfo* same = out.find_tensor(tensor.name);
      ASSERT_NE(same, nullptr) << tensor.name;
      EXPECT_EQ(same->type_id, tensor.type_id);
      EXPECT_EQ(same->dims, tensor.dims);
      EXPECT_TRUE(bytes_of(out, *same) == bytes_of(in, tensor)) << tensor.name;
    }
    EXPECT_EQ(out.tensors().size(), in.tensors().size() - unpacked.size() / 3);  // two for three
    for (const auto& [key, value] : in.metadata()) {
      ASSERT_NE(out.find(key), nullptr) << key;
      if (key == "general.alignment") continue;
      EXPECT_EQ(*out.find(key), value) << key;
    }
    EXPECT_EQ(out.alignment(), 4096u);
  }

  std::string folder_;
};

// Several tiles a layer, the last one short.
test::TinyShape shape_for(WeightType type) {
  test::TinyShape shape;
  shape.type = type;
  shape.d_model = 256;
  shape.n_heads = 8;
  shape.head_dim = 32;
  shape.d_ff = is_float(type) ? 1037 : traits(type).block_elements == 32 ? 1184 : 1280;
  return shape;
}

class PackOfType : public PackTest, public testing::WithParamInterface<WeightTypeTraits> {};

TEST_P(PackOfType, unpacks_to_the_source_byte_for_byte) {
  test::ModelFile(shape_for(GetParam().type)).write(path("in.gguf"));
  for (const uint64_t strip_bytes : {uint64_t{1}, uint64_t{300000}, uint64_t{64} << 20}) {
    const Result<Report> report = run(strip_bytes);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->file_bytes, std::filesystem::file_size(path("out.gguf")));
    expect_source_in_pack();
  }
}

TEST_P(PackOfType, loads_to_the_same_memory_as_its_source) {
  test::ModelFile(shape_for(GetParam().type)).write(path("in.gguf"));
  ASSERT_TRUE(run().ok());
  const test::LoadedModel in(must(gguf::Model::open(path("in.gguf"))), 2);
  const test::LoadedModel out(must(gguf::Model::open(path("out.gguf"))), 3);
  ASSERT_EQ(in.weights.memory.size_bytes(), out.weights.memory.size_bytes());
  EXPECT_EQ(std::memcmp(in.weights.memory.data(), out.weights.memory.data(), in.weights.memory.size_bytes()), 0);
  EXPECT_EQ(in.weights.bytes_per_token, out.weights.bytes_per_token);
}

INSTANTIATE_TEST_SUITE_P(Types, PackOfType, testing::ValuesIn(kWeightTypes),
                         [](const auto& type) { return type.param.name; });

TEST_F(PackTest, keeps_mixed_types_apart_layer_by_layer) {
  test::TinyShape shape = shape_for(WeightType::kQ4_K);
  shape.n_layers = 3;
  test::ModelFile file(shape);
  file.set_tensor("blk.1.ffn_down.weight", WeightType::kQ6_K, {shape.d_ff, shape.d_model});
  file.set_tensor("blk.2.ffn_gate.weight", WeightType::kQ8_0, {shape.d_model, shape.d_ff});
  file.set_tensor("blk.2.ffn_up.weight", WeightType::kF16, {shape.d_model, shape.d_ff});
  file.set_tensor("blk.2.ffn_down.weight", WeightType::kBF16, {shape.d_ff, shape.d_model});
  file.write(path("in.gguf"));
  ASSERT_TRUE(run().ok());
  expect_source_in_pack();
  const gguf::Model out = must(gguf::Model::open(path("out.gguf")));
  const std::optional<gguf::Pack> packed = must(gguf::Pack::read(out));
  EXPECT_EQ(packed->layers()[0].layout.shape().down, WeightType::kQ4_K);
  EXPECT_EQ(packed->layers()[1].layout.shape().down, WeightType::kQ6_K);
  EXPECT_EQ(packed->layers()[2].layout.shape().up, WeightType::kF16);
  EXPECT_LT(packed->layers()[2].layout.tile_neurons(), 256u);
  const test::LoadedModel a(must(gguf::Model::open(path("in.gguf"))), 1);
  const test::LoadedModel b(must(gguf::Model::open(path("out.gguf"))), 1);
  EXPECT_EQ(std::memcmp(a.weights.memory.data(), b.weights.memory.data(), a.weights.memory.size_bytes()), 0);
}

TEST_F(PackTest, takes_tiny_and_odd_shapes) {
  for (const auto& [d_model, d_ff] : {std::pair(1u, 1u), {3u, 5u}, {20u, 45u}, {17u, 16u}, {40u, 1037u}, {8u, 2500u}}) {
    test::TinyShape shape;
    shape.d_model = d_model;
    shape.d_ff = d_ff;
    for (const WeightType type : {WeightType::kF32, WeightType::kF16}) {
      shape.type = type;
      test::ModelFile(shape).write(path("in.gguf"));
      ASSERT_TRUE(run().ok());
      expect_source_in_pack();
    }
  }
}

TEST_F(PackTest, names_its_source) {
  test::ModelFile(test::TinyShape{}).write(path("in.gguf"));
  ASSERT_TRUE(run().ok());
  std::ifstream in(path("in.gguf"), std::ios::binary);
  const std::string source(std::istreambuf_iterator<char>(in), {});
  const gguf::Model out = must(gguf::Model::open(path("out.gguf")));
  const std::optional<gguf::Pack> packed = must(gguf::Pack::read(out));
  EXPECT_EQ(packed->source().name, "in.gguf");
  EXPECT_EQ(packed->source().bytes, source.size());
  EXPECT_EQ(packed->source().xxh3, gguf::xxh3(std::as_bytes(std::span(source))));
}

TEST_F(PackTest, refuses_a_pack_and_its_own_input) {
  test::ModelFile(test::TinyShape{}).write(path("in.gguf"));
  EXPECT_THAT(refusal(Code::kInvalidArgument, "in.gguf"), HasSubstr("it is the model that is read"));
  std::filesystem::create_symlink(path("in.gguf"), path("link.gguf"));
  EXPECT_THAT(refusal(Code::kInvalidArgument, "link.gguf"), HasSubstr("it is the model that is read"));
  ASSERT_TRUE(run().ok());
  std::filesystem::rename(path("out.gguf"), path("in.gguf"));
  EXPECT_THAT(refusal(Code::kInvalidArgument), AllOf(HasSubstr("in.gguf"), HasSubstr("is a pack already")));
}

TEST_F(PackTest, refuses_models_without_a_gated_mlp_by_the_tensor) {
  test::ModelFile(test::TinyShape{}).drop_tensor("blk.1.ffn_gate.weight").write(path("in.gguf"));
  EXPECT_THAT(refusal(Code::kUnsupported), HasSubstr("'blk.1.ffn_gate.weight' is missing"));
  test::ModelFile(test::TinyShape{})
      .set_tensor("blk.1.ffn_up.weight", WeightType::kF32, {64, 95})
      .write(path("in.gguf"));
  EXPECT_THAT(refusal(Code::kUnsupported), HasSubstr("'blk.1.ffn_up.weight' has not the shape"));
  test::ModelFile(test::TinyShape{}).drop_key("block_count").write(path("in.gguf"));
  EXPECT_THAT(refusal(Code::kUnsupported), HasSubstr("block_count"));
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(PackTest, leaves_nothing_when_it_is_cancelled_wherever_that_happens) {
  test::ModelFile(shape_for(WeightType::kF16)).write(path("in.gguf"));
  for (int stop_at = 1;; ++stop_at) {
    int calls = 0;
    const Result<Report> report =
        pack({.input = path("in.gguf"), .output = path("out.gguf"), .progress = [&](uint64_t, uint64_t) {
                return ++calls < stop_at;
              }});
    if (report.ok()) break;
    ASSERT_EQ(report.status().code(), Code::kCancelled);
    ASSERT_EQ(file_count(), 1u);
  }
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(PackTest, rises_to_the_end_of_its_progress) {
  test::ModelFile(test::TinyShape{}).write(path("in.gguf"));
  uint64_t last = 0, total = 0;
  ASSERT_TRUE(pack({.input = path("in.gguf"),
                    .output = path("out.gguf"),
                    .progress =
                        [&](uint64_t done, uint64_t all) {
                          EXPECT_GE(done, last);
                          EXPECT_LE(done, all);
                          last = done;
                          total = all;
                          return true;
                        }})
                  .ok());
  EXPECT_GT(last, total / 10);
}

TEST_F(PackTest, is_refused_when_the_source_changes_meanwhile) {
  test::ModelFile(test::TinyShape{}).write(path("in.gguf"));
  const Result<Report> report = pack({.input = path("in.gguf"), .output = path("out.gguf"), .progress = [&](auto...) {
                                        const utimbuf times{1000, 1000};
                                        return ::utime(path("in.gguf").c_str(), &times) == 0;
                                      }});
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().message(), HasSubstr("was changed meanwhile"));
  EXPECT_EQ(file_count(), 1u);
}

class CheckPack : public PackTest {
 protected:
  void SetUp() override {
    PackTest::SetUp();
    test::ModelFile(shape_for(WeightType::kF16)).write(path("in.gguf"));
    ASSERT_TRUE(run().ok());
  }

  // Flips a bit of a tile.
  void damage(uint32_t layer, uint32_t tile) const {
    const gguf::Model file = must(gguf::Model::open(path("out.gguf")));
    const std::optional<gguf::Pack> packed = must(gguf::Pack::read(file));
    const gguf::PackedLayer& packed_layer = packed->layers()[layer];
    const auto at =
        static_cast<std::streamoff>(packed_layer.tiles->offset + packed_layer.layout.tile(tile).offset + 99);
    std::fstream out(path("out.gguf"), std::ios::binary | std::ios::in | std::ios::out);
    out.seekg(at);
    const int byte = out.get();
    out.seekp(at);
    out.put(static_cast<char>(byte ^ 4));
  }
};

TEST_F(CheckPack, counts_the_tiles_that_are_right) {
  const Result<PackCheck> check = check_pack(path("out.gguf"), {});
  ASSERT_TRUE(check.ok()) << check.status().message();
  const std::optional<gguf::Pack> packed = must(gguf::Pack::read(must(gguf::Model::open(path("out.gguf")))));
  EXPECT_EQ(check->tiles, 2 * packed->layers()[0].layout.n_tiles());
}

TEST_F(CheckPack, names_the_first_damaged_tile_and_counts_them) {
  damage(0, 3);
  damage(1, 0);
  const Status status = check_pack(path("out.gguf"), {}).status();
  EXPECT_EQ(status.code(), Code::kMalformed);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("2 of "), HasSubstr("tile 3 of 'blk.0.ffn_tiles' is damaged")));
}

TEST_F(CheckPack, a_damaged_tile_is_not_loaded) {
  damage(1, 2);
  const gguf::Model file = must(gguf::Model::open(path("out.gguf")));
  const model::Config config = must(model::Config::from_gguf(file));
  const auto team = must(engine::WorkerTeam::create(2));
  const auto weights = engine::load_weights(file, config, {}, *kernels::select_kernels(), *team, nullptr, nullptr);
  ASSERT_FALSE(weights.ok());
  EXPECT_THAT(weights.status().message(), HasSubstr("tile 2 of 'blk.1.ffn_tiles' is damaged"));
}

TEST_F(CheckPack, takes_packs_only) {
  EXPECT_THAT(check_pack(path("in.gguf"), {}).status().message(), HasSubstr("is no pack"));
}

}  // namespace
}  // namespace leanstream::convert
