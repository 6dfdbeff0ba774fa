#include "runtime/open_model.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/runtime/runtime_fixture.h"

namespace leanstream::runtime {
namespace {

using leanstream::test::tiny_model;
using leanstream::test::tiny_model_path;
using test::create_runtime;
using test::open_model;

// A file that goes when the test does.
class WrittenModel {
 public:
  explicit WrittenModel(const leanstream::test::ModelFile& model)
      : path_(testing::TempDir() + "leanstream-open-" + std::to_string(::getpid()) + ".gguf") {
    model.write(path_);
  }
  ~WrittenModel() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

MemoryPlan plan_alone(const SessionShape& shape) {
  const auto runtime = create_runtime();
  return test::must(open_model(*runtime, tiny_model_path(), LoadMode::kMetadata)->plan(shape));
}

TEST(OpenModel, gives_back_what_it_held) {
  const auto runtime = create_runtime();
  const uint64_t before = runtime->memory().held_bytes();
  auto model = open_model(*runtime, tiny_model_path());
  const uint64_t with_model = runtime->memory().held_bytes();
  EXPECT_GT(with_model, before + model->weights()->memory.size_bytes() - 1);
  auto session = test::must(Session::create(*model, {}, {}));
  EXPECT_GT(runtime->memory().held_bytes(), with_model);
  session.reset();
  EXPECT_EQ(runtime->memory().held_bytes(), with_model);
  model.reset();
  EXPECT_EQ(runtime->memory().held_bytes(), before);
}

TEST(OpenModel, plans_the_same_before_and_after_it_is_loaded) {
  const auto runtime = create_runtime();
  const MemoryPlan before = test::must(open_model(*runtime, tiny_model_path(), LoadMode::kMetadata)->plan({}));
  const auto model = open_model(*runtime, tiny_model_path());
  const MemoryPlan after = test::must(model->plan({}));
  EXPECT_EQ(before.total_bytes(), after.total_bytes());
  EXPECT_EQ(before.context, after.context);
  EXPECT_EQ(before.bytes_per_token, after.bytes_per_token);
  EXPECT_EQ(after.bytes_per_token, model->weights()->bytes_per_token);
}

TEST(OpenModel, bytes_per_token_of_a_tied_output_is_what_loading_finds) {
  leanstream::test::TinyShape shape;
  shape.tied = true;
  shape.n_vocab = leanstream::test::kTinyVocabulary;
  const gguf::Model file = leanstream::test::ModelFile(shape).open();
  const model::Config config = test::must(model::Config::from_gguf(file));
  const auto runtime = create_runtime();
  const ModelNeeds needs = model_needs(file, config, 1);
  uint64_t matrices = 0;
  for (const gguf::TensorInfo& tensor : file.tensors())
    if (tensor.dims.size() == 2) matrices += tensor.size_bytes;
  EXPECT_EQ(needs.bytes_per_token, matrices + config.d_model * sizeof(float));
}

TEST(OpenModel, counts_what_was_read) {
  const auto runtime = create_runtime();
  const auto head_only = open_model(*runtime, tiny_model_path(), LoadMode::kMetadata);
  const auto whole = open_model(*runtime, tiny_model_path());
  EXPECT_LT(head_only->bytes_read(), head_only->file().total_file_bytes() / 4);
  EXPECT_GT(whole->bytes_read(), whole->file().total_file_bytes() * 95 / 100);  // all but padding
  EXPECT_LE(whole->bytes_read(), whole->file().total_file_bytes());
}

TEST(OpenModel, too_large_for_the_budget_is_refused_with_a_least_budget_that_works) {
  if (LEANSTREAM_SANITIZED) GTEST_SKIP() << "sanitizers hold memory of their own";
  const uint64_t fixed = create_runtime()->memory().fixed_bytes();
  const auto small = create_runtime(2, fixed + (1 << 20));
  const Result<std::unique_ptr<OpenModel>> refused =
      OpenModel::open(*small, tiny_model_path(), LoadMode::kFull, {}, {});
  ASSERT_EQ(refused.status().code(), Code::kOutOfBudget);
  const std::string& message = refused.status().message();
  const size_t at = message.rfind('(');
  ASSERT_NE(at, std::string::npos) << message;
  const uint64_t least = std::strtoull(message.c_str() + at + 1, nullptr, 10);

  const auto runtime = create_runtime(2, least);
  const auto model = open_model(*runtime, tiny_model_path());
  const auto session = test::must(Session::create(*model, {}, {}));
  EXPECT_GE(session->context(), kContextStep);
  EXPECT_LE(runtime->memory().held_bytes(), least);
}

TEST(OpenModel, a_second_model_counts_the_first) {
  if (LEANSTREAM_SANITIZED) GTEST_SKIP() << "sanitizers hold memory of their own";
  const uint64_t fixed = create_runtime()->memory().fixed_bytes();
  const MemoryPlan plan = plan_alone({32});
  const auto runtime = create_runtime(2, fixed + (plan.total_bytes() - plan.fixed_bytes) * 3 / 2);
  const auto first = open_model(*runtime, tiny_model_path());
  const auto session = test::must(Session::create(*first, {32}, {}));
  const Status second = OpenModel::open(*runtime, tiny_model_path(), LoadMode::kFull, {}, {}).status();
  EXPECT_EQ(second.code(), Code::kOutOfBudget) << second.message();
}

TEST(OpenModel, progress_goes_from_0_to_1_and_never_back) {
  const auto runtime = create_runtime();
  std::vector<float> seen;
  const Progress progress = {[](float fraction, void* user) {
                               static_cast<std::vector<float>*>(user)->push_back(fraction);
                               return true;
                             },
                             &seen};
  ASSERT_TRUE(OpenModel::open(*runtime, tiny_model_path(), LoadMode::kFull, {}, progress).ok());
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen.front(), 0.0f);
  EXPECT_EQ(seen.back(), 1.0f);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1.0f), 1);
}

TEST(OpenModel, can_be_cancelled_at_every_report) {
  const auto runtime = create_runtime();
  const uint64_t before = runtime->memory().held_bytes();
  for (int allowed = 0;; ++allowed) {
    int left = allowed;
    const Progress progress = {[](float, void* user) { return (*static_cast<int*>(user))-- > 0; }, &left};
    const Status status = OpenModel::open(*runtime, tiny_model_path(), LoadMode::kFull, {}, progress).status();
    EXPECT_EQ(runtime->memory().held_bytes(), before);
    if (status.ok()) break;
    ASSERT_EQ(status.code(), Code::kCancelled) << status.message();
    ASSERT_LT(allowed, 1000);
  }
}

TEST(OpenModel, a_file_without_weights_has_a_vocabulary_but_does_not_run) {
  leanstream::test::ModelFile model = tiny_model();
  const gguf::Model whole = tiny_model().open();
  for (const gguf::TensorInfo& tensor : whole.tensors()) model.drop_tensor(tensor.name);
  const WrittenModel written(model);
  const auto runtime = create_runtime();
  const auto vocabulary = open_model(*runtime, written.path(), LoadMode::kVocabulary);
  EXPECT_EQ(vocabulary->tokenizer()->size(), leanstream::test::kTinyVocabulary);
  EXPECT_FALSE(vocabulary->plan({}).ok());
  const Status full = OpenModel::open(*runtime, written.path(), LoadMode::kFull, {}, {}).status();
  EXPECT_EQ(full.code(), Code::kMalformed) << full.message();
  EXPECT_NE(full.message().find(written.path()), std::string::npos) << full.message();
}

TEST(OpenModel, an_unknown_architecture_can_be_described_and_is_refused_by_name) {
  leanstream::test::ModelFile model = tiny_model();
  model.set("general.architecture", {gguf::ValueType::kString, std::string("mamba")});
  const WrittenModel written(model);
  const auto runtime = create_runtime();
  const auto described = open_model(*runtime, written.path(), LoadMode::kMetadata);
  EXPECT_EQ(described->plan({}).status().code(), Code::kUnsupported);
  const Status full = OpenModel::open(*runtime, written.path(), LoadMode::kFull, {}, {}).status();
  EXPECT_EQ(full.code(), Code::kUnsupported);
  EXPECT_NE(full.message().find("mamba"), std::string::npos) << full.message();
}

TEST(OpenModel, plan_refuses_shapes_that_cannot_be) {
  const auto runtime = create_runtime();
  const auto model = open_model(*runtime, tiny_model_path(), LoadMode::kMetadata);
  EXPECT_EQ(model->plan({leanstream::test::kTinyContext + 1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model->plan({0, kernels::KvType::kF16, 0}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model->plan({0, kernels::KvType::kF16, 33}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model->plan({0, kernels::KvType::kQ8_0, 1}).status().code(), Code::kUnsupported);  // head_dim is 16
}

}  // namespace
}  // namespace leanstream::runtime
