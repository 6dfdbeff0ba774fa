#include "engine/load_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/reference/quantize.h"
#include "tests/engine/loaded_model.h"
#include "tests/model/model_file.h"

namespace leanstream::engine {
namespace {

using test::LoadedModel;
using test::ModelFile;
using test::must;
using test::TinyShape;

std::vector<float> values_of(const gguf::Model& file, const std::string& name) {
  const gguf::TensorInfo* info = file.find_tensor(name);
  std::vector<std::byte> bytes(info->size_bytes);
  EXPECT_TRUE(file.read_tensor(*info, 0, bytes).ok());
  std::vector<float> values(info->element_count());
  reference::dequantize(find_weight_type(info->type_id)->type, bytes.data(), values.size(), values.data());
  return values;
}

void expect_rows(const kernels::Kernels& kernels, const Matrix& matrix, const std::vector<float>& expected) {
  ASSERT_EQ(expected.size(), uint64_t{matrix.rows} * matrix.cols);
  std::vector<float> row(matrix.cols);
  for (uint32_t r = 0; r < matrix.rows; ++r) {
    kernels.dequantize_row(matrix, r, 1.0f, row.data());
    ASSERT_EQ(std::memcmp(row.data(), expected.data() + uint64_t{r} * matrix.cols, row.size() * sizeof(float)), 0)
        << "row " << r;
  }
}

class LoadWeightsOfType : public testing::TestWithParam<WeightTypeTraits> {};

// A vocabulary and a width of 40 and 272 rows: a last panel that is not full, and more rows than one.
TEST_P(LoadWeightsOfType, every_row_is_where_the_views_say) {
  TinyShape shape;
  shape.type = GetParam().type;
  shape.d_model = 256;
  shape.d_ff = 512;
  shape.n_heads = 8;
  shape.head_dim = 32;
  const gguf::Model file = ModelFile(shape).open();
  for (const uint32_t threads : {1u, 3u}) {
    const LoadedModel m(file, threads);
    EXPECT_EQ(m.weights.token_embedding.resident.layout, Layout::kFile);
    EXPECT_EQ(m.weights.output.resident.layout, Layout::kPanel);
    expect_rows(*m.kernels, m.weights.token_embedding.resident, values_of(file, "token_embd.weight"));
    expect_rows(*m.kernels, m.weights.output.resident, values_of(file, "output.weight"));
    expect_rows(*m.kernels, m.weights.layers[0].q.resident, values_of(file, "blk.0.attn_q.weight"));
    expect_rows(*m.kernels, m.weights.layers[1].k.resident, values_of(file, "blk.1.attn_k.weight"));
    expect_rows(*m.kernels, m.weights.layers[1].down.resident, values_of(file, "blk.1.ffn_down.weight"));
    const std::vector<float> norm = values_of(file, "blk.1.ffn_norm.weight");
    EXPECT_EQ(std::memcmp(m.weights.layers[1].ffn_norm, norm.data(), norm.size() * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LoadWeightsOfType, testing::ValuesIn(kWeightTypes),
                         [](const auto& type) { return type.param.name; });

TEST(LoadWeights, matrices_larger_than_the_staging_are_read_in_parts) {
  TinyShape shape;
  shape.n_vocab = 5000;
  shape.d_model = 256;
  shape.head_dim = 64;
  const gguf::Model file = ModelFile(shape).open();
  const LoadedModel m(file, 2);
  expect_rows(*m.kernels, m.weights.output.resident, values_of(file, "output.weight"));
  expect_rows(*m.kernels, m.weights.token_embedding.resident, values_of(file, "token_embd.weight"));
}

TEST(LoadWeights, a_tied_output_shares_the_embeddings_panels_and_counts_once) {
  TinyShape shape;
  const gguf::Model untied = ModelFile(shape).open();
  shape.tied = true;
  const gguf::Model tied = ModelFile(shape).open();
  const LoadedModel m(tied, 1);
  EXPECT_EQ(m.weights.output.resident.data, m.weights.token_embedding.resident.data);
  EXPECT_EQ(m.weights.token_embedding.resident.layout, Layout::kPanel);
  expect_rows(*m.kernels, m.weights.output.resident, values_of(tied, "token_embd.weight"));

  const uint64_t row = row_bytes(shape.type, shape.d_model);
  EXPECT_EQ(m.weights.bytes_per_token, LoadedModel(untied, 1).weights.bytes_per_token);
  EXPECT_EQ(must(resident_weight_bytes(untied, m.config)) - must(resident_weight_bytes(tied, m.config)),
            shape.n_vocab * row);
}

TEST(LoadWeights, bytes_per_token_is_all_matrices_and_one_embedding_row) {
  const gguf::Model file = ModelFile(TinyShape{}).open();
  uint64_t expected = row_bytes(WeightType::kF32, 64);
  for (const gguf::TensorInfo& tensor : file.tensors())
    if (tensor.dims.size() == 2 && tensor.name != "token_embd.weight") expected += tensor.size_bytes;
  EXPECT_EQ(LoadedModel(file, 1).weights.bytes_per_token, expected);
}

TEST(LoadWeights, resident_weight_bytes_is_what_is_mapped) {
  const gguf::Model file = ModelFile(TinyShape{}).open();
  const LoadedModel m(file, 1);
  EXPECT_EQ(must(resident_weight_bytes(file, m.config)), m.weights.memory.size_bytes());
}

TEST(LoadWeights, absent_tensors_leave_empty_views) {
  const LoadedModel m(ModelFile(TinyShape{}).open(), 1);
  EXPECT_EQ(m.weights.rope_factors, nullptr);
  EXPECT_EQ(m.weights.layers[0].q_bias, nullptr);
  EXPECT_EQ(m.weights.layers[0].q_norm, nullptr);
  EXPECT_EQ(m.weights.layers[0].post_ffn_norm, nullptr);
}

struct Progress {
  std::vector<float> fractions;
  size_t cancel_at = SIZE_MAX;
  static bool report(float fraction, void* self) {
    Progress& p = *static_cast<Progress*>(self);
    p.fractions.push_back(fraction);
    return p.fractions.size() < p.cancel_at;
  }
};

TEST(LoadWeights, progress_rises_to_one) {
  const gguf::Model file = ModelFile(TinyShape{}).open();
  const model::Config config = must(model::Config::from_gguf(file));
  const auto team = must(WorkerTeam::create(2));
  Progress progress;
  ASSERT_TRUE(load_weights(file, config, {}, *kernels::select_kernels(), *team, Progress::report, &progress).ok());
  ASSERT_FALSE(progress.fractions.empty());
  EXPECT_TRUE(std::is_sorted(progress.fractions.begin(), progress.fractions.end()));
  EXPECT_EQ(progress.fractions.back(), 1.0f);
}

TEST(LoadWeights, a_false_from_progress_cancels) {
  const gguf::Model file = ModelFile(TinyShape{}).open();
  const model::Config config = must(model::Config::from_gguf(file));
  const auto team = must(WorkerTeam::create(2));
  for (const size_t cancel_at : {1, 2}) {
    Progress progress;
    progress.cancel_at = cancel_at;
    const auto weights = load_weights(file, config, {}, *kernels::select_kernels(), *team, Progress::report, &progress);
    ASSERT_FALSE(weights.ok());
    EXPECT_EQ(weights.status().code(), Code::kCancelled);
  }
}

TEST(LoadWeights, a_file_that_shrank_after_opening_is_an_error_that_names_the_tensor) {
  const std::string path = testing::TempDir() + "leanstream-shrinking-" + std::to_string(getpid()) + ".gguf";
  const gguf::Model file = must(gguf::Model::open(ModelFile(TinyShape{}).write(path)));
  const model::Config config = must(model::Config::from_gguf(file));
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(file.total_file_bytes() / 2)), 0);
  std::remove(path.c_str());
  const auto team = must(WorkerTeam::create(2));
  const auto weights = load_weights(file, config, {}, *kernels::select_kernels(), *team, nullptr, nullptr);
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.status().code(), Code::kIo);
  EXPECT_THAT(weights.status().message(), testing::HasSubstr(".weight"));
}

}  // namespace
}  // namespace leanstream::engine
