// Reading packs, most of them broken. tests/convert has packs of real content.

#include "gguf/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gguf/checksum.h"
#include "tests/gguf/file_bytes.h"

namespace leanstream::gguf {
namespace {

using testing::HasSubstr;

constexpr TensorType kI8{24, "I8", 1, 1}, kI64{27, "I64", 1, 8}, kF32{0, "F32", 1, 4};

Value list(std::vector<uint64_t> numbers, ValueType type = ValueType::kUint32) {
  Array array;
  array.type = type;
  array.unsigneds = std::move(numbers);
  return {ValueType::kArray, std::move(array)};
}

// Two layers of 48 neurons in tiles of 32, and what a test makes of them.
struct Parts {
  std::map<std::string, Value> keys;  // after "leanstream.pack."
  struct Tensor {
    TensorType type;
    std::vector<uint64_t> dims;
  };
  std::map<std::string, Tensor> tensors;
  uint64_t alignment = kTileAlignment;
};

const MlpShape kShape{WeightType::kQ4_0, WeightType::kF16, WeightType::kF32, 64, 48};

Parts good_parts() {
  const TileLayout layout = *TileLayout::create(kShape, 32);
  Parts parts;
  parts.keys = {
      {"version", {ValueType::kUint32, uint64_t{1}}},
      {"kind", {ValueType::kString, std::string("exact")}},
      {"checksum", {ValueType::kString, std::string("xxh3-64")}},
      {"source.name", {ValueType::kString, std::string("m.gguf")}},
      {"source.bytes", {ValueType::kUint64, uint64_t{123456}}},
      {"source.xxh3", {ValueType::kString, std::string("00ff00ff12345678")}},
      {"d_model", {ValueType::kUint32, uint64_t{64}}},
      {"d_ff", {ValueType::kUint32, uint64_t{48}}},
      {"tile_neurons", list({32, 32})},
      {"gate_types", list({2, 2})},
      {"up_types", list({1, 1})},
      {"down_types", list({0, 0})},
  };
  for (uint32_t i = 0; i < 2; ++i) {
    parts.tensors[tiles_name(i)] = {kI8, {layout.tile_bytes(), 2}};
    parts.tensors[checksums_name(i)] = {kI64, {2}};
  }
  return parts;
}

Model open(const Parts& parts) {
  const std::string path = FileBytes::path("pack.gguf");
  Writer writer(parts.alignment);
  for (const auto& [key, value] : parts.keys) writer.set("leanstream.pack." + key, value);
  for (const auto& [name, tensor] : parts.tensors) writer.add_tensor(name, tensor.type, tensor.dims);
  EXPECT_TRUE(writer.begin(path).ok());
  for (const auto& [name, tensor] : parts.tensors) {
    uint64_t bytes = tensor.type.block_bytes;
    for (const uint64_t dim : tensor.dims) bytes *= dim;
    EXPECT_TRUE(writer.write_tensor(std::vector<std::byte>(bytes)).ok());
  }
  EXPECT_TRUE(writer.commit().ok());
  Result<Model> model = Model::open(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

std::string refusal(const std::function<void(Parts&)>& bend, Code code = Code::kMalformed) {
  Parts parts = good_parts();
  bend(parts);
  const Model model = open(parts);
  const Result<std::optional<Pack>> pack = Pack::read(model);
  EXPECT_FALSE(pack.ok());
  EXPECT_EQ(pack.status().code(), code) << pack.status().message();
  return pack.status().message();
}

TEST(Pack, tells_source_layers_and_what_they_stand_for) {
  const Model model = open(good_parts());
  const Result<std::optional<Pack>> read = Pack::read(model);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_TRUE(read->has_value());
  const Pack& pack = **read;
  EXPECT_EQ(pack.source().name, "m.gguf");
  EXPECT_EQ(pack.source().bytes, 123456u);
  EXPECT_EQ(pack.source().xxh3, 0x00ff00ff12345678u);
  ASSERT_EQ(pack.layers().size(), 2u);
  EXPECT_EQ(pack.layers()[1].tiles, model.find_tensor("blk.1.ffn_tiles"));
  EXPECT_EQ(pack.layers()[1].checksums, model.find_tensor("blk.1.ffn_tile_checksums"));
  EXPECT_EQ(pack.layers()[1].layout.n_tiles(), 2u);

  EXPECT_EQ(pack.replaced().size(), 6u);
  const TensorInfo* down = find_weight(model, *read, "blk.1.ffn_down.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->dims, (std::vector<uint64_t>{48, 64}));
  EXPECT_EQ(down->type_id, 0u);
  EXPECT_EQ(down->size_bytes, 48u * 64 * 4);
  EXPECT_EQ(find_weight(model, *read, "blk.0.ffn_gate.weight")->size_bytes, 48u * 36);
  EXPECT_EQ(find_weight(model, *read, "blk.0.ffn_tiles"), model.find_tensor("blk.0.ffn_tiles"));
  EXPECT_EQ(find_weight(model, *read, "blk.2.ffn_down.weight"), nullptr);
}

TEST(Pack, is_nothing_in_a_stock_file) {
  Parts parts;
  parts.tensors["blk.0.ffn_gate.weight"] = {kF32, {4, 4}};
  const Model model = open(parts);
  const Result<std::optional<Pack>> pack = Pack::read(model);
  ASSERT_TRUE(pack.ok());
  EXPECT_FALSE(pack->has_value());
  EXPECT_NE(find_weight(model, *pack, "blk.0.ffn_gate.weight"), nullptr);
  EXPECT_EQ(find_weight(model, *pack, "blk.0.ffn_up.weight"), nullptr);
}

TEST(Pack, of_another_version_or_kind_is_refused_by_name) {
  const auto text = [](const char* value) { return Value{ValueType::kString, std::string(value)}; };
  EXPECT_THAT(refusal(
                  [](Parts& p) {
                    p.keys["version"] = {ValueType::kUint32, uint64_t{2}};
                  },
                  Code::kUnsupported),
              HasSubstr("version is 2"));
  EXPECT_THAT(refusal([&](Parts& p) { p.keys["kind"] = text("learned"); }, Code::kUnsupported),
              HasSubstr("'leanstream.pack.kind' is 'learned'"));
  EXPECT_THAT(refusal([&](Parts& p) { p.keys["checksum"] = text("crc32"); }, Code::kUnsupported),
              HasSubstr("'leanstream.pack.checksum' is 'crc32'"));
  EXPECT_THAT(refusal(
                  [](Parts& p) {
                    p.keys["up_types"] = list({1, 20});
                  },
                  Code::kUnsupported),
              HasSubstr("'leanstream.pack.up_types' of layer 1 is type 20"));
}

TEST(Pack, refuses_missing_and_mistyped_keys_by_name) {
  for (const auto& [key, value] : good_parts().keys) {
    if (key == "version") continue;
    const std::string name = key;
    EXPECT_THAT(refusal([&](Parts& p) { p.keys.erase(name); }), HasSubstr("'leanstream.pack." + name + "' is missing"));
    EXPECT_THAT(refusal([&](Parts& p) {
                  p.keys[name] = {ValueType::kBool, uint64_t{1}};
                }),
                HasSubstr("'leanstream.pack." + name + "'"));
  }
  EXPECT_THAT(refusal([](Parts& p) {
                p.keys["gate_types"] = list({2, 2}, ValueType::kUint64);
              }),
              HasSubstr("'leanstream.pack.gate_types'"));
  EXPECT_THAT(refusal([](Parts& p) { p.keys["down_types"] = list({0}); }),
              HasSubstr("'leanstream.pack.down_types' has 1 elements, 'leanstream.pack.tile_neurons' 2"));
  for (const char* digest : {"", "0123", "00ff00ff1234567g", "+0ff00ff12345678", "00ff00ff123456789"}) {
    EXPECT_THAT(refusal([&](Parts& p) {
                  p.keys["source.xxh3"] = {ValueType::kString, std::string(digest)};
                }),
                HasSubstr("'leanstream.pack.source.xxh3'"));
  }
}

TEST(Pack, refuses_tiles_that_break_the_rules) {
  EXPECT_THAT(refusal([](Parts& p) {
                p.keys["tile_neurons"] = list({32, 24});
              }),
              HasSubstr("layer 1: tiles of 24 neurons"));
  EXPECT_THAT(refusal([](Parts& p) {
                p.keys["d_ff"] = {ValueType::kUint64, uint64_t{1} << 40};
              }),
              HasSubstr("'leanstream.pack.d_ff' is 1099511627776"));
  EXPECT_THAT(refusal([](Parts& p) { p.keys["d_ff"] = {ValueType::kUint32, uint64_t{0}}; }), HasSubstr("a width of 0"));
  EXPECT_THAT(refusal([](Parts& p) {
                p.keys["d_model"] = {ValueType::kUint32, uint64_t{65}};
              }),
              HasSubstr("not whole blocks of Q4_0"));
}

TEST(Pack, refuses_tensors_that_are_not_what_the_keys_say) {
  EXPECT_THAT(refusal([](Parts& p) { p.tensors.erase("blk.1.ffn_tiles"); }), HasSubstr("'blk.1.ffn_tiles' is missing"));
  EXPECT_THAT(refusal([](Parts& p) { p.tensors.erase("blk.0.ffn_tile_checksums"); }),
              HasSubstr("'blk.0.ffn_tile_checksums' is missing"));
  EXPECT_THAT(refusal([](Parts& p) { --p.tensors["blk.0.ffn_tiles"].dims[1]; }),
              HasSubstr("'blk.0.ffn_tiles' is I8 ["));
  EXPECT_THAT(refusal([](Parts& p) { p.tensors["blk.0.ffn_tiles"].dims[0] += 32; }), HasSubstr("was expected"));
  EXPECT_THAT(refusal([](Parts& p) { p.tensors["blk.0.ffn_tiles"].type = kF32; }), HasSubstr("is F32 ["));
  EXPECT_THAT(refusal([](Parts& p) { p.tensors["blk.1.ffn_tile_checksums"].dims[0] = 3; }), HasSubstr("I64 [3]"));
  EXPECT_THAT(refusal([](Parts& p) {
                p.tensors["blk.1.ffn_up.weight"] = {kF32, {64, 48}};
              }),
              HasSubstr("'blk.1.ffn_up.weight' is there, and so are tiles for it"));
  EXPECT_THAT(refusal([](Parts& p) { p.alignment = 64; }), HasSubstr("not a multiple of 4096"));
}

TEST(Pack, tells_a_damaged_tile_by_its_place_in_the_file) {
  const Model model = open(good_parts());
  const Result<std::optional<Pack>> pack = Pack::read(model);
  const PackedLayer& layer = (*pack)->layers()[1];
  std::vector<std::byte> bytes(layer.layout.tile(1).used_bytes);
  ASSERT_TRUE(model.read_tensor(*layer.tiles, layer.layout.tile(1).offset, bytes).ok());
  const uint64_t checksum = xxh3(bytes);
  EXPECT_TRUE(check_tile(model, layer, 1, bytes, checksum).ok());
  bytes[77] ^= std::byte{1};
  const Status status = check_tile(model, layer, 1, bytes, checksum);
  EXPECT_EQ(status.code(), Code::kMalformed);
  EXPECT_THAT(status.message(), HasSubstr("tile 1 of 'blk.1.ffn_tiles' is damaged"));
  const uint64_t begin = layer.tiles->offset + layer.layout.tile_bytes();
  EXPECT_THAT(status.message(), HasSubstr("bytes " + std::to_string(begin) + " to " +
                                          std::to_string(begin + bytes.size() - 1) + " of " + model.path()));
}

TEST(Checksum, is_xxh3_in_one_piece_or_in_many) {
  // Of no bytes, as xxHash's own test has it.
  EXPECT_EQ(xxh3({}), 0x2d06800538d394c2u);
  std::vector<std::byte> bytes(100000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  for (const size_t step : {size_t{1000}, size_t{7777}, bytes.size()}) {
    Xxh3Stream stream;
    for (size_t at = 0; at < bytes.size(); at += step) {
      stream.add(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
    }
    EXPECT_EQ(stream.digest(), xxh3(bytes));
  }
}

}  // namespace
}  // namespace leanstream::gguf
