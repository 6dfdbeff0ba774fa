#pragma once

#include <cstdint>

#include "gguf/writer.h"

namespace leanstream::convert {

// Vocabularies that nobody's text was needed for: every string of English letters, commonest letters first, at the
// start of a word and inside one, as many as fit. Both encode any bytes, and decode to them.

// SentencePiece-type: control tokens, 256 byte tokens, printable ASCII, then the strings.
void set_spm_vocabulary(gguf::Writer& writer, uint32_t n_vocab, bool add_space_prefix);

// Byte-level BPE with the pre-tokenizer of qwen2: 256 bytes, one merge per string, ChatML's control tokens at the end.
void set_bpe_vocabulary(gguf::Writer& writer, uint32_t n_vocab);

}  // namespace leanstream::convert
