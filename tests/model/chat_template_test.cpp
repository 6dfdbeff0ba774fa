// Templates here are fragments with what their families are recognised by; the expected texts are what the models' full
// templates give under jinja2.
#include "model/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leanstream::model {
namespace {

using ::testing::HasSubstr;
using Messages = std::vector<ChatMessage>;

const Messages kQuestion = {{"user", "How tall? "}};
const Messages kTalk = {
    {"system", "Be brief."}, {"user", "How tall? "}, {"assistant", " 330 m."}, {"user", "In feet?"}};

constexpr const char* kChatml = "'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'";
constexpr const char* kLlama3 = "'<|start_header_id|>' + role + '<|end_header_id|>' content | trim";
constexpr const char* kLlama2 =
    "must alternate '<<SYS>>\\n' {{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{{ ' '  + content.strip() + ' ' + eos_token }}";
constexpr const char* kGemma = "must alternate '<start_of_turn>' + role + '\\n' + message['content'] | trim";

struct Known {
  std::optional<ChatTemplate> layout;
  explicit Known(std::string_view jinja, std::string_view bos = "<s>", std::string_view eos = "</s>")
      : layout(ChatTemplate::recognise(jinja, bos, eos)) {}
  std::string family() const { return layout ? layout->family() : "unknown"; }
  std::string text(const Messages& messages, bool add_reply_start = true) const {
    if (!layout) return "unknown";
    const Result<ChatText> text = layout->lay_out(messages, add_reply_start);
    return text.ok() ? text->text : "error: " + text.status().message();
  }
};

TEST(ChatTemplate, says_nothing_about_a_template_it_does_not_know) {
  for (const char* jinja : {"", "{{ 'Human: ' + message['content'] }}", "USER: ASSISTANT:", "[gMASK]<sop><|user|>",
                            "<|start_of_role|>", "<|im_start|> <end_of_utterance>", "<｜Assistant｜></think>"}) {
    EXPECT_EQ(Known(jinja).family(), "unknown") << jinja;
  }
}

TEST(ChatTemplate, lays_out_chatml) {
  const Known chatml(kChatml);
  EXPECT_EQ(chatml.family(), "chatml");
  EXPECT_EQ(chatml.text(kTalk),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHow tall? <|im_end|>\n"
            "<|im_start|>assistant\n 330 m.<|im_end|>\n<|im_start|>user\nIn feet?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chatml.text(kQuestion, false), "<|im_start|>user\nHow tall? <|im_end|>\n");
  EXPECT_EQ(chatml.text({}), "<|im_start|>assistant\n");
}

TEST(ChatTemplate, writes_the_default_system_message_that_the_template_holds) {
  for (const char* newline : {"\\n", "\n"}) {
    const std::string jinja = std::string("{{ '<|im_start|>system") + newline + "' + messages[0] + '<|im_end|>' }}" +
                              "{{ '<|im_start|>system" + newline + "You are Q. Help.<|im_end|>" + newline + "' }}";
    EXPECT_EQ(Known(jinja).text(kQuestion),
              "<|im_start|>system\nYou are Q. Help.<|im_end|>\n<|im_start|>user\nHow tall? <|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_THAT(Known(jinja).text(kTalk), ::testing::Not(HasSubstr("You are Q")));
  }
  EXPECT_THAT(
      Known(std::string(kLlama2) + "{% elif true == true %}{% set system_message = 'It\\'s me.' %}").text(kQuestion),
      HasSubstr("<<SYS>>\nIt's me.\n<</SYS>>\n\nHow tall?"));
  EXPECT_THAT(Known("[SYSTEM_PROMPT][INST]{%- set default_system_message = \"Du.\" %}").text(kQuestion),
              HasSubstr("[SYSTEM_PROMPT]Du.[/SYSTEM_PROMPT]"));
  // A date is pasted into this one: it is not a text that could be taken over.
  EXPECT_EQ(Known("[SYSTEM_PROMPT][INST]{%- set default_system_message = \"Du, \" + today %}").text(kQuestion),
            "[INST]How tall? [/INST]");
}

TEST(ChatTemplate, opens_the_reply_as_a_reasoning_template_does) {
  const std::string jinja =
      std::string(kChatml) + "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n<think>\\n' }}";
  EXPECT_THAT(Known(jinja).text(kQuestion), HasSubstr("<|im_start|>assistant\n<think>\n"));
  EXPECT_THAT(Known(jinja).text(kQuestion, false), ::testing::Not(HasSubstr("<think>")));
}

TEST(ChatTemplate, does_not_repeat_thoughts_where_the_template_drops_them) {
  const Messages thinking = {{"user", "Hi"}, {"assistant", "<think>\nhm\n</think>\n\nHo"}, {"user", "Bye"}};
  const std::string qwen3 = std::string(kChatml) + "content.split('</think>')[-1].lstrip('\\n')";
  EXPECT_THAT(Known(qwen3).text(thinking), HasSubstr("assistant\nHo<|im_end|>"));
  EXPECT_THAT(Known(kChatml).text(thinking), HasSubstr("<think>\nhm\n</think>\n\nHo"));
  const Known r1(
      "'<｜User｜>' '<｜Assistant｜>' split('</think>') add_generation_prompt {{'<｜Assistant｜><think>\\n'}}");
  EXPECT_EQ(r1.family(), "deepseek-r1");
  EXPECT_EQ(r1.text(thinking),
            "<｜User｜>Hi<｜Assistant｜>\n\nHo<｜end▁of▁sentence｜><｜User｜>Bye<｜Assistant｜><think>\n");
}

TEST(ChatTemplate, lays_out_llama3_with_and_without_its_dates) {
  EXPECT_EQ(Known(kLlama3).text(kTalk),
            "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHow tall?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n330 m.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nIn feet?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  const Known dated(std::string(kLlama3) + "Cutting Knowledge Date: December 2023");
  EXPECT_EQ(dated.family(), "llama3");
  EXPECT_EQ(dated.text(kQuestion),
            "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
            "Today Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHow tall?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplate, lays_out_llama2_with_a_bos_before_every_turn_but_the_first) {
  const Known llama2(kLlama2);
  EXPECT_EQ(llama2.family(), "llama2");
  EXPECT_EQ(llama2.text(kTalk),
            "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHow tall? [/INST] 330 m. </s><s>[INST] In feet? [/INST]");
  EXPECT_EQ(llama2.text(kQuestion), "[INST] How tall? [/INST]");
}

TEST(ChatTemplate, lays_out_every_mistral_version_with_its_own_spaces) {
  const struct {
    const char* jinja;
    const char* family;
    const char* text;
  } versions[] = {
      {"'[INST] ' + content + ' [/INST]' content + eos_token", "mistral",
       "[INST] Be brief.\n\nHow tall?  [/INST] 330 m.</s>[INST] In feet? [/INST]"},
      {"\" [INST] \" + content", "mistral-v1",
       " [INST] Be brief.\n\nHow tall?  [/INST]  330 m.</s> [INST] In feet? [/INST]"},
      {"[AVAILABLE_TOOLS] \"[INST] \" content|trim + eos_token", "mistral-v3",
       "[INST] How tall? [/INST] 330 m.</s>[INST] Be brief.\n\nIn feet?[/INST]"},
      {"[AVAILABLE_TOOLS] \"[INST]\" + content", "mistral-v3-tekken",
       "[INST]How tall? [/INST] 330 m.</s>[INST]Be brief.\n\nIn feet?[/INST]"},
      {"[SYSTEM_PROMPT] '[INST] ' + content", "mistral-v7",
       "[SYSTEM_PROMPT] Be brief.[/SYSTEM_PROMPT][INST] How tall? [/INST]  330 m.</s>[INST] In feet?[/INST]"},
      {"[SYSTEM_PROMPT]' '[INST]' + content", "mistral-v7-tekken",
       "[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]How tall? [/INST] 330 m.</s>[INST]In feet?[/INST]"},
  };
  for (const auto& version : versions) {
    const Known known(version.jinja);
    EXPECT_EQ(known.family(), version.family);
    EXPECT_EQ(known.text(kTalk), version.text) << version.family;
  }
}

TEST(ChatTemplate, folds_gemmas_system_message_into_the_first_user_turn) {
  const Known gemma(kGemma);
  EXPECT_EQ(gemma.family(), "gemma");
  EXPECT_EQ(gemma.text(kTalk),
            "<start_of_turn>user\nBe brief.\n\nHow tall?<end_of_turn>\n<start_of_turn>model\n330 m.<end_of_turn>\n"
            "<start_of_turn>user\nIn feet?<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_THAT(gemma.text({{"system", "Alone."}}), HasSubstr("error: "));
}

TEST(ChatTemplate, lays_out_roles_on_lines_of_their_own) {
  const Known phi3("'<|user|>' + '\\n' '<|' + message['role'] + '|>' + '\\n' + content + '<|end|>'");
  EXPECT_EQ(phi3.family(), "phi3");
  EXPECT_EQ(phi3.text(kQuestion), "<|user|>\nHow tall? <|end|>\n<|assistant|>\n");
  const Known zephyr("'<|user|>\\n' + message['content'] + eos_token", "<s>", "<|eos|>");
  EXPECT_EQ(zephyr.family(), "zephyr");
  EXPECT_EQ(zephyr.text({kTalk[0], kTalk[1]}),
            "<|system|>\nBe brief.<|eos|>\n<|user|>\nHow tall? <|eos|>\n<|assistant|>\n");
  const Known phi4("'<|im_start|>user<|im_sep|>' + content");
  EXPECT_EQ(phi4.family(), "phi4");
  EXPECT_EQ(phi4.text(kQuestion), "<|im_start|>user<|im_sep|>How tall? <|im_end|><|im_start|>assistant<|im_sep|>");
}

TEST(ChatTemplate, refuses_roles_that_make_no_conversation) {
  const auto error = [](const char* jinja, const Messages& messages) {
    const Result<ChatText> text = ChatTemplate::recognise(jinja)->lay_out(messages, true);
    EXPECT_EQ(text.status().code(), Code::kInvalidArgument);
    return text.status().message();
  };
  EXPECT_THAT(error(kChatml, {{"tool", "x"}}), HasSubstr("\"tool\""));
  EXPECT_THAT(error(kChatml, {{"user", "x"}, {"system", "y"}}), HasSubstr("message 1"));
  EXPECT_THAT(error(kGemma, {{"user", "x"}, {"user", "y"}}), HasSubstr("alternate"));
  EXPECT_THAT(error(kLlama2, {{"assistant", "x"}}), HasSubstr("alternate"));
  EXPECT_TRUE(ChatTemplate::recognise(kChatml)->lay_out(Messages{{"user", "x"}, {"user", "y"}}, true).ok());
}

TEST(ChatTemplate, knows_which_bytes_are_the_messages_own) {
  const Messages talk = {{"system", " rules "}, {"user", "<|im_end|>"}, {"assistant", ""}, {"user", " why? "}};
  for (const std::string_view family : ChatTemplate::families()) {
    SCOPED_TRACE(family);
    const Result<ChatText> chat = ChatTemplate::of_family(family, "<s>", "</s>")->lay_out(talk, true);
    ASSERT_TRUE(chat.ok()) << chat.status().message();
    std::vector<std::string> contents;
    for (const TextRange& range : chat->contents)
      contents.push_back(chat->text.substr(range.begin, range.end - range.begin));
    const bool trims = contents[0].front() != ' ' && contents[1].front() != ' ';
    const std::string rules = trims ? "rules" : " rules ", why = trims ? "why?" : " why? ";
    const bool system_last = family == "mistral-v3" || family == "mistral-v3-tekken";
    EXPECT_EQ(contents, system_last ? (std::vector<std::string>{"<|im_end|>", rules, why})
                                    : (std::vector<std::string>{rules, "<|im_end|>", why}));
  }
}

TEST(ChatTemplate, every_family_can_be_had_by_name) {
  for (const std::string_view family : ChatTemplate::families()) {
    const std::optional<ChatTemplate> layout = ChatTemplate::of_family(family, "<s>", "</s>");
    ASSERT_TRUE(layout) << family;
    EXPECT_EQ(layout->family(), family);
  }
  EXPECT_FALSE(ChatTemplate::of_family("vicuna", "<s>", "</s>"));
  EXPECT_FALSE(ChatTemplate::of_family("", "<s>", "</s>"));
  const auto text = [](std::string_view family) {
    const Messages talk = {{"user", "a"}, {"assistant", "b"}, {"user", "c"}};
    return ChatTemplate::of_family(family, "<s>", "</s>")->lay_out(talk, true)->text;
  };
  EXPECT_EQ(text("gemma"),
            "<start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\nb<end_of_turn>\n<start_of_turn>user\nc"
            "<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(text("llama2"), "[INST] a [/INST] b </s><s>[INST] c [/INST]");
  EXPECT_EQ(text("mistral"), "[INST] a [/INST]b</s> [INST] c [/INST]");
  EXPECT_EQ(text("zephyr"), "<|user|>\na</s>\n<|assistant|>\nb</s>\n<|user|>\nc</s>\n<|assistant|>\n");
}

}  // namespace
}  // namespace leanstream::model
