#pragma once

#include <string>

#include "base/status.h"
#include "tools/leanstream/convert/convert.h"

namespace leanstream::convert {

struct QuantizeParams {
  std::string input;  // a GGUF file, or the first of a split set; becomes one file
  std::string output;
  WeightType type = WeightType::kQ8_0;
  uint32_t threads = 2;
  Progress progress = {};  // may be empty
};

// Writes `input` with its matrices as `type`. Norms, biases and other vectors become F32; metadata are copied. The
// output matrix (the embedding where it is tied) keeps at least Q6_K, being the most sensitive. Works tensor by tensor
// in about 100 MB. Errors as Model::open's and Writer's; kUnsupported for a tensor type that we cannot read;
// kInvalidArgument where the output is the input, under whatever name.
Result<Report> quantize(const QuantizeParams& params);

}  // namespace leanstream::convert
