// The header, the library's symbols and the documentation say the same.

#include <gtest/gtest.h>
#include <leanstream/leanstream.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string output;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) output.append(buffer.data(), n);
  return output;
}

std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

std::set<std::string> declared_functions() {
  const std::string header = read_file(LEANSTREAM_SOURCE_DIR "/include/leanstream/leanstream.h");
  return matches(header, std::regex(R"(LEANSTREAM_API [^;(]*?\b(leanstream_\w+)\()"));
}

TEST(Interface, the_library_exports_what_the_header_declares_and_nothing_else) {
  const std::string symbols = output_of(LEANSTREAM_NM " -D --defined-only " LEANSTREAM_SHARED_LIBRARY);
  const std::set<std::string> exported =
      matches(symbols, std::regex(R"(^[0-9a-f]+ [A-Za-z] (\S+)$)", std::regex::multiline));
  const std::set<std::string> declared = declared_functions();
  EXPECT_GE(declared.size(), 30u);
  EXPECT_EQ(exported, declared);
}

TEST(Interface, every_function_is_in_the_documentation) {
  const std::string page = read_file(LEANSTREAM_SOURCE_DIR "/docs/api.md");
  for (const std::string& function : declared_functions())
    EXPECT_TRUE(std::regex_search(page, std::regex("\\b" + function + "\\b"))) << function;
}

TEST(Interface, the_documentation_names_no_function_that_is_not_there) {
  const std::string page = read_file(LEANSTREAM_SOURCE_DIR "/docs/api.md");
  const std::set<std::string> declared = declared_functions();
  for (const std::string& called : matches(page, std::regex(R"(\b(leanstream_\w+)\()")))
    EXPECT_TRUE(declared.count(called)) << called;
}

TEST(Interface, the_documentation_shows_the_example_as_it_is_compiled) {
  const std::string page = read_file(LEANSTREAM_SOURCE_DIR "/docs/api.md");
  EXPECT_NE(page.find("examples/generate.c"), std::string::npos);
}

TEST(Interface, the_version_is_one_everywhere) {
  const std::string numbers = std::to_string(LEANSTREAM_VERSION_MAJOR) + "." +
                              std::to_string(LEANSTREAM_VERSION_MINOR) + "." + std::to_string(LEANSTREAM_VERSION_PATCH);
  EXPECT_EQ(leanstream_version(), numbers);
  EXPECT_EQ(numbers, LEANSTREAM_PROJECT_VERSION);
}

TEST(Interface, every_status_has_a_name_of_its_own) {
  std::set<std::string> names;
  for (int status = LEANSTREAM_OK; status <= LEANSTREAM_ERROR_INTERNAL; ++status)
    names.insert(leanstream_status_name(static_cast<leanstream_status>(status)));
  EXPECT_EQ(names.size(), size_t{LEANSTREAM_ERROR_INTERNAL} + 1);
  EXPECT_EQ(names.count("unknown status"), 0u);
  EXPECT_TRUE(names.count("out of budget"));
  EXPECT_STREQ(leanstream_status_name(static_cast<leanstream_status>(13)), "unknown status");
}

}  // namespace
