#include "model/chat_template.h"

#include <algorithm>
#include <array>

namespace leanstream::model {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Jinja string literals write a line break as \n, or hold a real one.
std::string unescape(std::string_view literal) {
  std::string text;
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] == '\\' && i + 1 < literal.size()) {
      ++i;
      text += literal[i] == 'n' ? '\n' : literal[i];
    } else {
      text += literal[i];
    }
  }
  return text;
}

// The string literal that `jinja` begins with, where the expression is nothing but that literal; else "".
std::string leading_literal(std::string_view jinja) {
  if (jinja.empty() || (jinja[0] != '\'' && jinja[0] != '"')) return {};
  size_t end = 1;
  while (end < jinja.size() && jinja[end] != jinja[0]) end += jinja[end] == '\\' ? 2 : 1;
  if (end >= jinja.size()) return {};
  const std::string_view behind = trim(jinja.substr(end + 1, 8));
  const bool alone =
      behind.starts_with("}}") || behind.starts_with("-}}") || behind.starts_with("%}") || behind.starts_with("-%}");
  return alone ? unescape(jinja.substr(1, end - 1)) : std::string();
}

// The literal assigned after the first `marker`, or "".
std::string assigned_literal(std::string_view jinja, std::string_view marker) {
  const size_t at = jinja.find(marker);
  return at == std::string_view::npos ? std::string() : leading_literal(jinja.substr(at + marker.size()));
}

// What the template writes where add_generation_prompt asks for it; "" where that is no plain literal.
std::string generation_prompt(std::string_view jinja) {
  const size_t at = jinja.rfind("add_generation_prompt");
  if (at == std::string_view::npos) return {};
  const size_t open = jinja.find("{{", at);
  if (open == std::string_view::npos) return {};
  std::string_view expression = jinja.substr(open + 2);
  if (expression.starts_with('-')) expression.remove_prefix(1);
  const size_t begin = expression.find_first_not_of(" \n");
  return begin == std::string_view::npos ? std::string() : leading_literal(expression.substr(begin));
}

// The system message that a template writes of itself: what stands between `before` and `after` inside one string
// literal. "" where there is none.
std::string find_default_system(std::string_view jinja, std::string_view before, std::string_view after) {
  for (size_t at = jinja.find(before); at != std::string_view::npos; at = jinja.find(before, at + 1)) {
    std::string_view rest = jinja.substr(at + before.size());
    if (rest.starts_with("\\n")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with('\n')) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    const std::string_view text = rest.substr(0, rest.find(after));
    if (text.size() == rest.size() || text.empty()) continue;
    if (text.find_first_of("'\"{}") == std::string_view::npos) return unescape(text);
  }
  return {};
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::recognise(std::string_view jinja, std::string_view bos,
                                                    std::string_view eos) {
  ChatTemplate result;
  result.bos_ = bos;
  result.must_alternate_ = contains(jinja, "must alternate");
  result.drops_thoughts_ = contains(jinja, "split('</think>')");
  result.trims_after_thoughts_ = contains(jinja, "lstrip('\\n')");
  result.trims_replies_ = contains(jinja, "trim + eos_token");
  const std::string eos_text(eos);
  bool known = false;
  if (contains(jinja, "<|im_start|>")) {
    known = result.use_chatml(jinja);
  } else if (contains(jinja, "[INST]")) {
    known = result.use_mistral(jinja, eos_text) || result.use_llama2(jinja, result.bos_, eos_text);
  } else if (contains(jinja, "<|start_header_id|>")) {
    known = result.use_llama3(jinja);
  } else if (contains(jinja, "<start_of_turn>")) {
    known = result.use_gemma();
  } else if (contains(jinja, "<｜Assistant｜>")) {
    known = result.use_deepseek_r1();
  } else {
    known = result.use_named_roles(jinja, eos_text);
  }
  if (!known) return std::nullopt;
  // Reasoning models open the reply with more than the role, "<think>" for one.
  const std::string prompt = generation_prompt(jinja);
  if (!result.reply_start_.empty() && prompt.starts_with(result.reply_start_)) result.reply_start_ = prompt;
  return result;
}

namespace {

// What tells each family apart, as recognise() looks for it, in the form that the family's own models have.
struct Family {
  std::string_view name;
  std::string_view jinja;
};
constexpr Family kFamilies[] = {
    {"chatml", "<|im_start|>"},
    {"llama2", "<<SYS>> bos_token + '[INST] ' + content.strip() + ' [/INST]' ' ' + content.strip() + ' ' + eos_token"},
    {"llama3", "<|start_header_id|>"},
    {"mistral", "'[INST] ' + content + ' [/INST]' content + eos_token + ' '"},
    {"mistral-v1", "' [INST] '"},
    {"mistral-v3", "[AVAILABLE_TOOLS] [INST] "},
    {"mistral-v3-tekken", "[AVAILABLE_TOOLS][INST]"},
    {"mistral-v7", "[SYSTEM_PROMPT] [INST] "},
    {"mistral-v7-tekken", "[SYSTEM_PROMPT][INST]"},
    {"gemma", "<start_of_turn>"},
    {"phi3", "<|user|>\n<|end|>"},
    {"phi4", "<|im_start|>user<|im_sep|>"},
    {"zephyr", "<|user|>\n message['content'] + eos_token"},
    {"deepseek-r1", "<｜Assistant｜> content.split('</think>')"},
};

constexpr auto kFamilyNames = [] {
  std::array<std::string_view, std::size(kFamilies)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kFamilies[i].name;
  return names;
}();

}  // namespace

std::optional<ChatTemplate> ChatTemplate::of_family(std::string_view family, std::string_view bos,
                                                    std::string_view eos) {
  for (const Family& known : kFamilies)
    if (known.name == family) return recognise(known.jinja, bos, eos);
  return std::nullopt;
}

std::span<const std::string_view> ChatTemplate::families() {
  return kFamilyNames;
}

bool ChatTemplate::use_chatml(std::string_view jinja) {
  if (contains(jinja, "<end_of_utterance>")) return false;  // SmolVLM: <|im_start|> is only its BOS
  const bool phi4 = contains(jinja, "<|im_sep|>");
  family_ = phi4 ? "phi4" : "chatml";
  const std::string after_role = phi4 ? "<|im_sep|>" : "\n";
  const std::string after = phi4 ? "<|im_end|>" : "<|im_end|>\n";
  system_ = {"<|im_start|>system" + after_role, after};
  user_ = {"<|im_start|>user" + after_role, after};
  assistant_ = {"<|im_start|>assistant" + after_role, after};
  reply_start_ = assistant_.before;
  if (!phi4) default_system_ = find_default_system(jinja, "<|im_start|>system", "<|im_end|>");
  return true;
}

bool ChatTemplate::use_llama3(std::string_view jinja) {
  family_ = "llama3";
  const auto frame = [](const char* role) {
    return Frame{std::string("<|start_header_id|>") + role + "<|end_header_id|>\n\n", "<|eot_id|>"};
  };
  system_ = frame("system");
  user_ = frame("user");
  assistant_ = frame("assistant");
  reply_start_ = assistant_.before;
  trims_ = true;
  if (contains(jinja, "Cutting Knowledge Date: December 2023")) {
    // Llama 3.1 and later; the date is the one the template falls back to, so that a prompt is the same every day.
    system_.before += "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
    writes_empty_system_ = true;
  }
  return true;
}

// The layouts of Mistral's own tokenizer versions, which differ in spaces and in where the system message goes.
bool ChatTemplate::use_mistral(std::string_view jinja, const std::string& eos) {
  if (contains(jinja, "[SYSTEM_PROMPT]")) {
    const bool spaces = contains(jinja, "[INST] ") || contains(jinja, "[SYSTEM_PROMPT] ");
    family_ = spaces ? "mistral-v7" : "mistral-v7-tekken";
    const std::string space = spaces ? " " : "";
    system_ = {"[SYSTEM_PROMPT]" + space, "[/SYSTEM_PROMPT]"};
    user_ = {"[INST]" + space, "[/INST]"};
    assistant_ = {space, eos};
    default_system_ = assigned_literal(jinja, "default_system_message = ");
    return true;
  }
  system_ = {"", "\n\n"};
  if (contains(jinja, "\" [INST] \"") || contains(jinja, "' [INST] '")) {
    family_ = "mistral-v1";
    user_ = {" [INST] ", " [/INST]"};
    assistant_ = {" ", eos};
    system_place_ = SystemPlace::kFirstUserTurn;
  } else if (contains(jinja, "[AVAILABLE_TOOLS]")) {
    const bool spaces = contains(jinja, "[INST] ");
    family_ = spaces ? "mistral-v3" : "mistral-v3-tekken";
    user_ = {spaces ? "[INST] " : "[INST]", "[/INST]"};
    assistant_ = {spaces ? " " : "", eos};
    system_place_ = SystemPlace::kLastUserTurn;
  } else {
    return false;
  }
  return true;
}

bool ChatTemplate::use_llama2(std::string_view jinja, const std::string& bos, const std::string& eos) {
  const bool llama2 = contains(jinja, "<<SYS>>");
  family_ = llama2 ? "llama2" : "mistral";
  user_ = {"[INST] ", " [/INST]"};
  if (contains(jinja, "bos_token + '[INST]")) user_.before = bos + user_.before;
  assistant_ = {"", eos};
  if (contains(jinja, "' '  +") || contains(jinja, "' ' +")) assistant_ = {" ", " " + eos};
  if (contains(jinja, "eos_token + ' '")) assistant_.after = eos + " ";
  system_ = llama2 ? Frame{"<<SYS>>\n", "\n<</SYS>>\n\n"} : Frame{"", "\n\n"};
  system_place_ = SystemPlace::kFirstUserTurn;
  // "elif USE_DEFAULT_PROMPT == true", with the flag filled in when the template was made.
  const size_t default_on = jinja.find("true == true");
  if (default_on != std::string_view::npos) {
    default_system_ = assigned_literal(jinja.substr(default_on), "system_message = ");
  }
  trims_ = contains(jinja, ".strip()");
  return true;
}

bool ChatTemplate::use_gemma() {
  family_ = "gemma";
  system_ = {"", "\n\n"};
  user_ = {"<start_of_turn>user\n", "<end_of_turn>\n"};
  assistant_ = {"<start_of_turn>model\n", "<end_of_turn>\n"};
  reply_start_ = assistant_.before;
  system_place_ = SystemPlace::kFirstUserTurn;
  trims_ = true;
  return true;
}

bool ChatTemplate::use_deepseek_r1() {
  if (!drops_thoughts_) return false;  // DeepSeek V3 and later write </think> themselves
  family_ = "deepseek-r1";
  user_ = {"<｜User｜>", ""};
  assistant_ = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"};
  reply_start_ = assistant_.before;
  return true;
}

// "<|user|>" on a line, then the text: Phi-3 closes it with <|end|>, Zephyr and TinyLlama with EOS.
bool ChatTemplate::use_named_roles(std::string_view jinja, const std::string& eos) {
  const bool by_line = contains(jinja, "<|user|>\\n") || contains(jinja, "<|user|>\n") ||
                       contains(jinja, "|>' + '\\n'") || contains(jinja, "|>' + '\n'");
  if (!by_line) return false;
  std::string after;
  if (contains(jinja, "<|end|>") && !contains(jinja, "<|start|>")) {
    family_ = "phi3";
    after = "<|end|>\n";
  } else if (contains(jinja, "message['content'] + eos_token")) {
    family_ = "zephyr";
    after = eos + "\n";
  } else {
    return false;
  }
  system_ = {"<|system|>\n", after};
  user_ = {"<|user|>\n", after};
  assistant_ = {"<|assistant|>\n", after};
  reply_start_ = assistant_.before;
  return true;
}

Result<ChatText> ChatTemplate::lay_out(std::span<const ChatMessage> messages, bool add_reply_start) const {
  if (Status status = check_roles(messages); !status.ok()) return status;
  const bool has_system = !messages.empty() && messages[0].role == "system";
  const ChatMessage* const system = has_system ? &messages[0] : nullptr;
  if (has_system) messages = messages.subspan(1);

  ChatText out;
  const auto add_content = [&](const ChatMessage& message) {
    const std::string_view content = shown_content(message);
    if (content.empty()) return;
    out.contents.push_back({out.text.size(), out.text.size() + content.size()});
    out.text += content;
  };
  const auto add_system = [&] {
    if (system == nullptr && default_system_.empty() && !writes_empty_system_) return;
    out.text += system_.before;
    if (system != nullptr) {
      add_content(*system);
    } else {
      out.text += default_system_;
    }
    out.text += system_.after;
  };

  size_t system_turn = messages.size();  // the user turn that the system's text goes into
  for (size_t i = 0; i < messages.size() && system_place_ != SystemPlace::kOwnTurn; ++i) {
    if (messages[i].role != "user") continue;
    system_turn = i;
    if (system_place_ == SystemPlace::kFirstUserTurn) break;
  }
  if (system_place_ != SystemPlace::kOwnTurn && has_system && system_turn == messages.size()) {
    return invalid_argument(std::string("laying out a conversation: ") + family_ +
                            ": a system message needs a user message to go into");
  }

  if (system_place_ == SystemPlace::kOwnTurn) add_system();
  for (size_t i = 0; i < messages.size(); ++i) {
    const Frame& frame = messages[i].role == "user" ? user_ : assistant_;
    out.text += frame.before;
    if (i == system_turn) add_system();
    add_content(messages[i]);
    out.text += frame.after;
  }
  if (add_reply_start) out.text += reply_start_;
  // Where every user turn begins with BOS, tokenizing adds the first.
  if (!bos_.empty() && user_.before.starts_with(bos_) && out.text.starts_with(bos_)) {
    out.text.erase(0, bos_.size());
    for (TextRange& content : out.contents) content = {content.begin - bos_.size(), content.end - bos_.size()};
  }
  return out;
}

Status ChatTemplate::check_roles(std::span<const ChatMessage> messages) const {
  std::string_view previous;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    const std::string where = "laying out a conversation: message " + std::to_string(i) + ": ";
    if (role != "system" && role != "user" && role != "assistant") {
      return invalid_argument(where + "role \"" + role + "\" is not one of system, user, assistant");
    }
    if (role == "system" && i > 0) return invalid_argument(where + "only the first message may be the system's");
    if (role == "system") continue;
    const bool wrong = previous.empty() ? role != "user" : role == previous;
    if (must_alternate_ && wrong) {
      return invalid_argument(where + "roles must alternate user, assistant, user, ... in " + family_ +
                              " conversations; got \"" + role + "\"");
    }
    previous = role;
  }
  return {};
}

std::string_view ChatTemplate::shown_content(const ChatMessage& message) const {
  std::string_view content = message.content;
  if (drops_thoughts_ && message.role == "assistant") {
    constexpr std::string_view kEnd = "</think>";
    const size_t end = content.rfind(kEnd);
    if (end != std::string_view::npos) {
      content.remove_prefix(end + kEnd.size());
      if (trims_after_thoughts_) content.remove_prefix(std::min(content.find_first_not_of('\n'), content.size()));
    }
  }
  return trims_ || (trims_replies_ && message.role == "assistant") ? trim(content) : content;
}

}  // namespace leanstream::model
