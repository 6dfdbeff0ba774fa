#pragma once

#include <string>

#include "tests/model/model_file.h"

namespace leanstream::test {

// Its vocabulary: <unk> <s> </s>, 256 bytes, then "a" to "z" and a few words.
inline constexpr uint32_t kTinyVocabulary = 300;
inline constexpr int32_t kTinyBos = 1, kTinyEos = 2;
inline constexpr uint32_t kTinyContext = 2048;

// A model of a few hundred KiB that tokenizes and runs, with a SentencePiece-type vocabulary and a ChatML template.
ModelFile tiny_model(WeightType type = WeightType::kF32);

// The path of tiny_model() as a file, written once for each process and removed when it ends.
const std::string& tiny_model_path();

// A copy of tiny_model() whose output norm holds one NaN: every logit is NaN.
const std::string& nan_model_path();

}  // namespace leanstream::test
