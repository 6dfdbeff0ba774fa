#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leanstream::cli {

// The arguments after the program's name, with llama.cpp's flags of one dash and several letters (-ngl, -no-cnv) as
// the long flags that they stand for; the parser would take them for -n with the value "gl". A value that happens to
// look like one is left alone.
std::vector<std::string> with_long_spellings(int argc, char** argv, CLI::App& root);

}  // namespace leanstream::cli
