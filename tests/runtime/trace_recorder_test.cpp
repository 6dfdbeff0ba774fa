#include "runtime/trace_recorder.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/neurons.h"
#include "tests/runtime/runtime_fixture.h"
#include "trace/trace_reader.h"

namespace leanstream::runtime {
namespace {

using leanstream::test::kTinyVocabulary;
using ::testing::HasSubstr;
using Tokens = std::vector<Token>;

Tokens some_tokens(size_t count) {
  Tokens tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<Token>((i * i * 7 + i * 31 + 5) % kTinyVocabulary);
  return tokens;
}

class TraceRecorderTest : public testing::Test {
 protected:
  ~TraceRecorderTest() override { ::unlink(path.c_str()); }

  std::vector<std::vector<cache::Piece>> steps_of_file() const {
    const trace::Trace trace = test::must(trace::read_trace(path));
    EXPECT_TRUE(trace.complete);
    std::vector<std::vector<cache::Piece>> steps;
    for (size_t i = 0; i < trace.steps.count(); ++i)
      steps.emplace_back(trace.steps.step(i).begin(), trace.steps.step(i).end());
    return steps;
  }

  const std::string path = testing::TempDir() + "leanstream-" + std::to_string(::getpid()) + ".trace";
  const std::unique_ptr<Runtime> runtime = test::create_runtime();
  const std::unique_ptr<OpenModel> model = test::open_model(*runtime, leanstream::test::tiny_model_path());
};

TEST_F(TraceRecorderTest, records_the_most_important_neurons_of_what_it_is_shown) {
  const model::Config& config = *model->config();
  constexpr uint32_t kPositions = 7, kTop = 16;
  const auto recorder =
      test::must(TraceRecorder::create(*model, path, static_cast<double>(kTop) / config.d_ff, kPositions));
  const std::vector<float> norms = test::must(down_norms(model->file(), config, runtime->kernels(), runtime->team()));
  std::mt19937 random(1);
  std::normal_distribution<float> draw;
  std::vector<std::vector<float>> hidden(config.n_layers);  // of each layer [positions, d_ff]
  for (auto& layer : hidden) {
    layer.resize(kPositions * config.d_ff);
    for (float& x : layer) x = draw(random);
  }
  ASSERT_NE(recorder->observer(), nullptr);
  runtime->team().run([&](engine::Worker& worker) {
    for (uint32_t layer = 0; layer < config.n_layers; ++layer)
      recorder->observer()->observe(worker, layer, hidden[layer].data(), kPositions);
  });
  ASSERT_TRUE(recorder->add_positions(kPositions).ok());
  ASSERT_TRUE(recorder->finish().ok());

  const auto steps = steps_of_file();
  ASSERT_EQ(steps.size(), kPositions * config.n_layers);
  for (uint32_t position = 0; position < kPositions; ++position) {
    for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
      std::vector<std::pair<float, uint32_t>> by_importance;
      for (uint32_t j = 0; j < config.d_ff; ++j)
        by_importance.emplace_back(
            -std::abs(hidden[layer][position * config.d_ff + j]) * norms[layer * config.d_ff + j], j);
      std::sort(by_importance.begin(), by_importance.end());
      std::vector<cache::Piece> expected;
      for (uint32_t i = 0; i < kTop; ++i) expected.push_back(layer * config.d_ff + by_importance[i].second);
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(steps[position * config.n_layers + layer], expected) << position << " " << layer;
    }
  }
}

TEST_F(TraceRecorderTest, of_a_session_does_not_depend_on_how_positions_are_grouped) {
  const Tokens tokens = some_tokens(engine::kPromptChunk + 9);
  const auto whole = test::must(Session::create(*model, {}, {}));
  ASSERT_TRUE(whole->start_trace(path, 0.25).ok());
  ASSERT_TRUE(whole->prefill(tokens).ok());
  ASSERT_TRUE(whole->finish_trace().ok());
  const auto together = steps_of_file();
  ASSERT_EQ(together.size(), tokens.size() * model->config()->n_layers);
  EXPECT_NE(together.front(), together[model->config()->n_layers]) << "two tokens that demand the same";

  const auto single = test::must(Session::create(*model, {}, {}));
  ASSERT_TRUE(single->start_trace(path, 0.25).ok());
  for (const Token& token : tokens) ASSERT_TRUE(single->decode({&token, 1}).ok());
  ASSERT_TRUE(single->finish_trace().ok());
  EXPECT_EQ(steps_of_file(), together);
}

TEST_F(TraceRecorderTest, of_everything_names_every_neuron_of_each_token) {
  const auto session = test::must(Session::create(*model, {}, {}));
  ASSERT_TRUE(session->prefill(some_tokens(3)).ok());  // before it begins
  ASSERT_TRUE(session->start_trace(path, 0).ok());
  ASSERT_TRUE(session->prefill(some_tokens(5)).ok());
  ASSERT_TRUE(session->finish_trace().ok());
  ASSERT_TRUE(session->prefill(some_tokens(3)).ok());  // and after its end
  const auto steps = steps_of_file();
  ASSERT_EQ(steps.size(), 5 * model->config()->n_layers);
  for (const auto& step : steps) EXPECT_EQ(step.size(), model->config()->d_ff);
  const trace::Trace trace = test::must(trace::read_trace(path));
  EXPECT_EQ(trace.header.selection, "all");
  EXPECT_EQ(trace.header.pieces, "neuron");
}

TEST_F(TraceRecorderTest, changes_no_result) {
  const Tokens tokens = some_tokens(40);
  const auto recorded = test::must(Session::create(*model, {}, {})),
             plain = test::must(Session::create(*model, {}, {}));
  ASSERT_TRUE(recorded->start_trace(path, 0.25).ok());
  ASSERT_TRUE(recorded->prefill(tokens).ok());
  ASSERT_TRUE(plain->prefill(tokens).ok());
  EXPECT_TRUE(std::equal(plain->logits(0), plain->logits(0) + kTinyVocabulary, recorded->logits(0)));
  // Not finished: nothing stays.
}

TEST_F(TraceRecorderTest, leaves_nothing_of_a_session_that_never_finished) {
  {
    const auto session = test::must(Session::create(*model, {}, {}));
    ASSERT_TRUE(session->start_trace(path, 0.25).ok());
    ASSERT_TRUE(session->prefill(some_tokens(4)).ok());
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  EXPECT_NE(::access((path + ".tmp-" + std::to_string(::getpid())).c_str(), F_OK), 0);
}

TEST_F(TraceRecorderTest, refuses_what_makes_no_sense) {
  const auto session = test::must(Session::create(*model, {}, {}));
  for (const double top : {-0.1, 1.0, 7.0, double{NAN}})
    EXPECT_EQ(session->start_trace(path, top).code(), Code::kInvalidArgument) << top;
  EXPECT_EQ(session->finish_trace().code(), Code::kInvalidArgument);
  const std::string nowhere = path + "-no-such-folder/trace";
  EXPECT_THAT(session->start_trace(nowhere, 0.2).message(), HasSubstr("cannot record to " + nowhere));
  ASSERT_TRUE(session->start_trace(path, 0.2).ok());
  EXPECT_EQ(session->start_trace(path, 0.2).code(), Code::kInvalidArgument);
}

TEST_F(TraceRecorderTest, takes_its_memory_from_the_budget_and_gives_it_back) {
  const auto session = test::must(Session::create(*model, {}, {}));
  MemoryBudget& memory = runtime->memory();
  const uint64_t before = memory.held_bytes();
  ASSERT_TRUE(session->start_trace(path, 0.2).ok());
  EXPECT_GT(memory.held_bytes(), before);
  ASSERT_TRUE(session->finish_trace().ok());
  EXPECT_EQ(memory.held_bytes(), before);
  const auto all = memory.take(memory.budget_bytes() - before);
  EXPECT_EQ(session->start_trace(path, 0.2).code(), Code::kOutOfBudget);
}

}  // namespace
}  // namespace leanstream::runtime
