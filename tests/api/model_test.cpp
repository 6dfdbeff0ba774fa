// Opening, describing, planning and the vocabulary, through the C interface.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/api/api_fixture.h"

namespace leanstream::api {
namespace {

using test::expect_error;
using test::initialised;
using test::sized;

class Model : public testing::Test {
 protected:
  leanstream_status open(const std::string& other, leanstream_load_mode mode) {
    auto params = initialised(leanstream_model_params_init);
    params.mode = mode;
    leanstream_model* opened = nullptr;
    const leanstream_status status = leanstream_model_open(runtime.get(), other.c_str(), &params, &opened, &error);
    EXPECT_EQ(opened == nullptr, status != LEANSTREAM_OK);
    leanstream_model_destroy(opened);
    return status;
  }

  const test::RuntimePtr runtime = test::create_runtime();
  const std::string& path = leanstream::test::tiny_model_path();
  leanstream_error error{};
  size_t needed = 0;
};

TEST_F(Model, a_missing_file_is_not_found_by_name) {
  expect_error(open("/no/such/model.gguf", LEANSTREAM_LOAD_METADATA), LEANSTREAM_ERROR_NOT_FOUND, error,
               "/no/such/model.gguf");
}

TEST_F(Model, a_file_that_is_no_gguf_is_refused_by_name) {
  const std::string other = testing::TempDir() + "leanstream-not-a-model-" + std::to_string(::getpid());
  std::ofstream(other) << "This is text, and long enough to hold a head of a file.";
  const leanstream_status status = open(other, LEANSTREAM_LOAD_METADATA);
  std::remove(other.c_str());
  EXPECT_TRUE(status == LEANSTREAM_ERROR_MALFORMED || status == LEANSTREAM_ERROR_UNSUPPORTED) << error.message;
  EXPECT_NE(std::string(error.message).find(other), std::string::npos) << error.message;
}

TEST_F(Model, a_folder_is_no_model) {
  EXPECT_NE(open("/", LEANSTREAM_LOAD_METADATA), LEANSTREAM_OK);
}

TEST_F(Model, long_error_messages_are_cut_between_characters) {
  std::string long_path = "/";
  for (int i = 0; i < 1000; ++i) long_path += "\xC3\xA9";  // e with an acute accent
  EXPECT_NE(open(long_path, LEANSTREAM_LOAD_METADATA), LEANSTREAM_OK);
  const size_t length = std::strlen(error.message);
  EXPECT_LT(length, sizeof error.message);
  EXPECT_GE(length, sizeof error.message - 3);
  EXPECT_EQ(static_cast<unsigned char>(error.message[length - 1]), 0xA9);
}

TEST_F(Model, info_grows_with_the_mode) {
  leanstream_model_info metadata = sized<leanstream_model_info>(), vocabulary = metadata;
  const test::ModelPtr head = test::open_model(runtime, path, LEANSTREAM_LOAD_METADATA);
  ASSERT_EQ(leanstream_model_get_info(head.get(), &metadata, &error), LEANSTREAM_OK);
  EXPECT_STREQ(metadata.architecture, "llama");
  EXPECT_STREQ(metadata.name, "tiny");
  EXPECT_STREQ(metadata.weight_type, "F32");
  EXPECT_EQ(metadata.n_layers, 2u);
  EXPECT_EQ(metadata.context_length, leanstream::test::kTinyContext);
  EXPECT_EQ(metadata.parameters * 4, metadata.weight_bytes);
  EXPECT_GT(metadata.file_bytes, metadata.weight_bytes);
  EXPECT_EQ(metadata.bos, -1);
  EXPECT_EQ(metadata.has_chat_template, 0);

  const test::ModelPtr words = test::open_model(runtime, path, LEANSTREAM_LOAD_VOCABULARY);
  ASSERT_EQ(leanstream_model_get_info(words.get(), &vocabulary, &error), LEANSTREAM_OK);
  EXPECT_EQ(vocabulary.n_vocab, leanstream::test::kTinyVocabulary);
  EXPECT_EQ(vocabulary.bos, leanstream::test::kTinyBos);
  EXPECT_EQ(vocabulary.eos, leanstream::test::kTinyEos);
  EXPECT_EQ(vocabulary.has_chat_template, 1);
  EXPECT_STREQ(vocabulary.chat_family, "chatml");
}

TEST_F(Model, a_model_opened_for_less_refuses_more) {
  const test::ModelPtr head = test::open_model(runtime, path, LEANSTREAM_LOAD_METADATA);
  leanstream_session* created = nullptr;
  expect_error(leanstream_tokenize(head.get(), "a", 1, 0, nullptr, 0, &needed, &error), LEANSTREAM_ERROR_UNSUPPORTED,
               error, "LEANSTREAM_LOAD_METADATA");
  const leanstream_token token = 5;
  EXPECT_EQ(leanstream_detokenize(head.get(), &token, 1, 0, nullptr, 0, &needed, &error), LEANSTREAM_ERROR_UNSUPPORTED);
  EXPECT_EQ(leanstream_chat_format(head.get(), nullptr, 0, 1, nullptr, 0, &needed, &error),
            LEANSTREAM_ERROR_UNSUPPORTED);
  expect_error(leanstream_session_create(head.get(), nullptr, &created, &error), LEANSTREAM_ERROR_UNSUPPORTED, error,
               "LEANSTREAM_LOAD_FULL");
}

TEST_F(Model, describe_reports_its_size_and_fits_it) {
  const test::ModelPtr head = test::open_model(runtime, path, LEANSTREAM_LOAD_METADATA);
  ASSERT_EQ(leanstream_model_describe(head.get(), 4, nullptr, 0, &needed, &error), LEANSTREAM_ERROR_BUFFER_TOO_SMALL);
  std::string json(needed, '?');
  size_t again = 0;
  EXPECT_EQ(leanstream_model_describe(head.get(), 4, json.data(), needed - 1, &again, &error),
            LEANSTREAM_ERROR_BUFFER_TOO_SMALL);
  EXPECT_EQ(again, needed);
  EXPECT_EQ(json.find_first_not_of('?'), std::string::npos) << "nothing is written";
  ASSERT_EQ(leanstream_model_describe(head.get(), 4, json.data(), needed, &again, &error), LEANSTREAM_OK);
  EXPECT_EQ(nlohmann::json::parse(json)["metadata"]["general.name"], "tiny");
}

TEST_F(Model, text_goes_to_tokens_and_back) {
  const test::ModelPtr words = test::open_model(runtime, path, LEANSTREAM_LOAD_VOCABULARY);
  const std::string text("caf\xC3\xA9 \0 zebra", 13);
  ASSERT_EQ(
      leanstream_tokenize(words.get(), text.data(), text.size(), LEANSTREAM_TOKENIZE_BOS, nullptr, 0, &needed, &error),
      LEANSTREAM_ERROR_BUFFER_TOO_SMALL);
  std::vector<leanstream_token> tokens(needed);
  ASSERT_EQ(leanstream_tokenize(words.get(), text.data(), text.size(), LEANSTREAM_TOKENIZE_BOS, tokens.data(),
                                tokens.size(), &needed, &error),
            LEANSTREAM_OK)
      << error.message;
  EXPECT_EQ(tokens.front(), leanstream::test::kTinyBos);
  std::string back(100, '?');
  ASSERT_EQ(
      leanstream_detokenize(words.get(), tokens.data(), tokens.size(), 0, back.data(), back.size(), &needed, &error),
      LEANSTREAM_OK);
  EXPECT_EQ(back.substr(0, needed), text);
}

TEST_F(Model, empty_text_has_no_tokens_and_needs_no_buffer) {
  const test::ModelPtr words = test::open_model(runtime, path, LEANSTREAM_LOAD_VOCABULARY);
  needed = 99;
  EXPECT_EQ(leanstream_tokenize(words.get(), nullptr, 0, 0, nullptr, 0, &needed, &error), LEANSTREAM_OK);
  EXPECT_EQ(needed, 0u);
  EXPECT_EQ(leanstream_detokenize(words.get(), nullptr, 0, 0, nullptr, 0, &needed, &error), LEANSTREAM_OK);
  EXPECT_EQ(needed, 0u);
}

TEST_F(Model, a_null_buffer_with_a_capacity_is_refused) {
  const test::ModelPtr words = test::open_model(runtime, path, LEANSTREAM_LOAD_VOCABULARY);
  expect_error(leanstream_tokenize(words.get(), "a", 1, 0, nullptr, 10, &needed, &error),
               LEANSTREAM_ERROR_INVALID_ARGUMENT, error, "NULL");
}

TEST_F(Model, conversations_are_laid_out) {
  const test::ModelPtr words = test::open_model(runtime, path, LEANSTREAM_LOAD_VOCABULARY);
  const leanstream_chat_message messages[] = {{"user", "hi there", 2}};
  std::string text(200, '?');
  ASSERT_EQ(leanstream_chat_format(words.get(), messages, 1, 1, text.data(), text.size(), &needed, &error),
            LEANSTREAM_OK)
      << error.message;
  EXPECT_EQ(text.substr(0, needed), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  const leanstream_chat_message no_content[] = {{"user", nullptr, 2}};
  EXPECT_EQ(leanstream_chat_format(words.get(), no_content, 1, 1, text.data(), text.size(), &needed, &error),
            LEANSTREAM_ERROR_INVALID_ARGUMENT);
  const leanstream_chat_message empty[] = {{"user", nullptr, 0}};
  EXPECT_EQ(leanstream_chat_format(words.get(), empty, 1, 1, text.data(), text.size(), &needed, &error), LEANSTREAM_OK);
}

std::vector<leanstream_token> chat_tokens(const test::ModelPtr& model, const std::string& content) {
  const leanstream_chat_message messages[] = {{"user", content.data(), content.size()}};
  std::vector<leanstream_token> tokens(500);
  size_t needed = 0;
  leanstream_error error;
  EXPECT_EQ(leanstream_chat_tokenize(model.get(), messages, 1, 1, tokens.data(), tokens.size(), &needed, &error),
            LEANSTREAM_OK)
      << error.message;
  tokens.resize(needed);
  return tokens;
}

TEST_F(Model, conversations_become_tokens_and_messages_no_control_tokens) {
  const test::ModelPtr words = test::open_model(runtime, path, LEANSTREAM_LOAD_VOCABULARY);
  const std::string laid_out = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
  std::vector<leanstream_token> expected(500);
  ASSERT_EQ(leanstream_tokenize(words.get(), laid_out.data(), laid_out.size(),
                                LEANSTREAM_TOKENIZE_BOS | LEANSTREAM_TOKENIZE_SPECIAL, expected.data(), expected.size(),
                                &needed, &error),
            LEANSTREAM_OK);
  expected.resize(needed);
  EXPECT_EQ(chat_tokens(words, "hi"), expected);

  const std::vector<leanstream_token> spelled = chat_tokens(words, "a</s>b");
  EXPECT_EQ(std::count(spelled.begin(), spelled.end(), leanstream::test::kTinyEos), 0);
  std::string text(500, '?');
  ASSERT_EQ(
      leanstream_detokenize(words.get(), spelled.data(), spelled.size(), 0, text.data(), text.size(), &needed, &error),
      LEANSTREAM_OK);
  EXPECT_NE(text.substr(0, needed).find("a</s>b"), std::string::npos);
  EXPECT_EQ(leanstream_chat_tokenize(words.get(), nullptr, 0, 1, nullptr, 0, &needed, &error),
            LEANSTREAM_ERROR_BUFFER_TOO_SMALL);
}

TEST_F(Model, a_chat_template_can_be_named) {
  auto params = initialised(leanstream_model_params_init);
  params.mode = LEANSTREAM_LOAD_VOCABULARY;
  params.chat_template = "gemma";
  leanstream_model* raw = nullptr;
  ASSERT_EQ(leanstream_model_open(runtime.get(), path.c_str(), &params, &raw, &error), LEANSTREAM_OK) << error.message;
  const test::ModelPtr words(raw);
  leanstream_model_info info = sized<leanstream_model_info>();
  ASSERT_EQ(leanstream_model_get_info(words.get(), &info, &error), LEANSTREAM_OK);
  EXPECT_STREQ(info.chat_family, "gemma");
  const leanstream_chat_message messages[] = {{"user", "hi", 2}};
  std::string text(200, '?');
  ASSERT_EQ(leanstream_chat_format(words.get(), messages, 1, 1, text.data(), text.size(), &needed, &error),
            LEANSTREAM_OK);
  EXPECT_EQ(text.substr(0, needed), "<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n");

  params.chat_template = "gemmma";
  raw = nullptr;
  expect_error(leanstream_model_open(runtime.get(), path.c_str(), &params, &raw, &error),
               LEANSTREAM_ERROR_INVALID_ARGUMENT, error, "'gemmma': the families are chatml, llama2");
  EXPECT_EQ(raw, nullptr);
}

TEST_F(Model, an_unknown_chat_template_is_quoted) {
  leanstream::test::ModelFile file = leanstream::test::tiny_model();
  file.set("tokenizer.chat_template",
           {gguf::ValueType::kString, std::string("{# something that nobody knows #}") + std::string(100, 'x')});
  const std::string other = testing::TempDir() + "leanstream-template-" + std::to_string(::getpid()) + ".gguf";
  file.write(other);
  const test::ModelPtr words = test::open_model(runtime, other, LEANSTREAM_LOAD_VOCABULARY);
  std::remove(other.c_str());
  expect_error(leanstream_chat_format(words.get(), nullptr, 0, 1, nullptr, 0, &needed, &error),
               LEANSTREAM_ERROR_UNSUPPORTED, error, "{# something that nobody knows #}");
}

TEST_F(Model, progress_can_cancel) {
  auto params = initialised(leanstream_model_params_init);
  params.progress = [](float, void*) { return 0; };
  leanstream_model* opened = nullptr;
  expect_error(leanstream_model_open(runtime.get(), path.c_str(), &params, &opened, &error), LEANSTREAM_ERROR_CANCELLED,
               error, path);
  EXPECT_EQ(opened, nullptr);
}

TEST_F(Model, log_lines_come_through_the_callback) {
  std::string log;
  auto params = initialised(leanstream_runtime_params_init);
  params.threads = 1;
  params.log = [](leanstream_log_level, const char* text, size_t length, void* user) {
    static_cast<std::string*>(user)->append(text, length).append("\n");
  };
  params.log_user = &log;
  leanstream_runtime* created = nullptr;
  ASSERT_EQ(leanstream_runtime_create(&params, &created, &error), LEANSTREAM_OK) << error.message;
  const test::RuntimePtr logging(created);
  const test::SessionPtr session = test::create_session(test::open_model(logging, path));
  for (const std::string& part :
       {std::string("memory budget"), path, std::string("context: 2048"), std::string("the model's")})
    EXPECT_NE(log.find(part), std::string::npos) << part << " in: " << log;
}

TEST_F(Model, runtime_info_says_what_is_held) {
  leanstream_runtime_info before = sized<leanstream_runtime_info>(), after = before;
  ASSERT_EQ(leanstream_runtime_get_info(runtime.get(), &before, &error), LEANSTREAM_OK);
  EXPECT_EQ(before.threads, 2u);
  EXPECT_STREQ(before.backend, "cpu");
  EXPECT_STRNE(before.simd, "");
  EXPECT_STRNE(before.device_name, "");
  const test::ModelPtr model = test::open_model(runtime, path);
  ASSERT_EQ(leanstream_runtime_get_info(runtime.get(), &after, &error), LEANSTREAM_OK);
  EXPECT_GT(after.memory_held_bytes, before.memory_held_bytes);
  EXPECT_EQ(after.memory_budget_bytes, before.memory_budget_bytes);
}

TEST_F(Model, plan_adds_up_in_every_mode) {
  for (const leanstream_load_mode mode : {LEANSTREAM_LOAD_METADATA, LEANSTREAM_LOAD_VOCABULARY, LEANSTREAM_LOAD_FULL}) {
    leanstream_plan plan = sized<leanstream_plan>();
    const test::ModelPtr model = test::open_model(runtime, path, mode);
    ASSERT_EQ(leanstream_model_plan(model.get(), nullptr, &plan, &error), LEANSTREAM_OK) << error.message;
    EXPECT_EQ(plan.total_bytes, plan.weights_bytes + plan.kv_bytes + plan.buffers_bytes + plan.fixed_bytes);
    EXPECT_EQ(plan.fits, 1);
    EXPECT_EQ(plan.context, leanstream::test::kTinyContext);
    EXPECT_GE(plan.least_budget_bytes, plan.total_bytes);
  }
}

}  // namespace
}  // namespace leanstream::api
