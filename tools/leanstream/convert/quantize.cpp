#include "tools/leanstream/convert/quantize.h"

#include <algorithm>

#include "base/file.h"
#include "base/thread.h"
#include "gguf/reader.h"
#include "gguf/tensor_type.h"
#include "gguf/writer.h"
#include "kernels/reference/quantize.h"

namespace leanstream::convert {
namespace {

constexpr uint64_t kChunkElements = uint64_t{4} << 20;  // read, converted and written at once

// What becomes of one tensor.
struct Conversion {
  const gguf::TensorInfo* tensor = nullptr;
  WeightType from = WeightType::kF32;
  WeightType to = WeightType::kF32;
};

bool is_matrix(const gguf::TensorInfo& tensor) {
  const bool is_norm = tensor.name.find("norm.weight") != std::string::npos;
  return tensor.dims.size() > 1 && tensor.element_count() > tensor.dims[0] && !is_norm;
}

// The matrix that makes the logits.
bool is_output(const gguf::Model& model, const gguf::TensorInfo& tensor) {
  const bool tied = model.find_tensor("output.weight") == nullptr;
  return tensor.name == (tied ? "token_embd.weight" : "output.weight");
}

double bits_per_weight(WeightType type) {
  return 8.0 * traits(type).block_bytes / traits(type).block_elements;
}

WeightType target_type(const gguf::Model& model, const gguf::TensorInfo& tensor, WeightType wanted, Report& report) {
  if (!is_matrix(tensor)) return WeightType::kF32;
  const uint64_t cols = tensor.dims[0];
  if (is_output(model, tensor) && bits_per_weight(wanted) < bits_per_weight(WeightType::kQ6_K)) {
    const WeightType type = fitting_type(WeightType::kQ6_K, cols);
    report.notes.push_back(tensor.name + " is " + traits(type).name + ": the logits are sensitive to it");
    return type;
  }
  const WeightType type = fitting_type(wanted, cols);
  if (type != wanted) note_fallback(cols, wanted, type, report);
  return type;
}

Result<std::vector<Conversion>> plan(const gguf::Model& model, WeightType wanted, Report& report) {
  std::vector<Conversion> conversions;
  for (const gguf::TensorInfo& tensor : model.tensors()) {
    const WeightTypeTraits* from = find_weight_type(tensor.type_id);
    if (from == nullptr) {
      return unsupported("cannot quantize " + model.path() + ": tensor '" + tensor.name + "' is of type " +
                         gguf::find_tensor_type(tensor.type_id)->name + ", which is not supported");
    }
    conversions.push_back({&tensor, from->type, target_type(model, tensor, wanted, report)});
    report.parameters += tensor.element_count();
  }
  return conversions;
}

void copy_metadata(const gguf::Model& model, WeightType type, gguf::Writer& writer) {
  for (const auto& [key, value] : model.metadata()) {
    const bool is_split_key = key.starts_with("split.");
    if (!is_split_key && key != "general.alignment") writer.set(key, value);
  }
  writer.set_uint32("general.file_type", file_type_number(type));
  writer.set_uint32("general.quantization_version", 2);
}

// Converts rows [0, rows) on several threads: each row on its own, so their number never shows in the result.
Status convert_rows(const Conversion& conversion, uint64_t rows, uint32_t n_threads, const std::byte* in,
                    std::byte* out) {
  const uint64_t cols = conversion.tensor->dims[0];
  const size_t in_stride = row_bytes(conversion.from, cols), out_stride = row_bytes(conversion.to, cols);
  const auto work = [&](uint64_t begin, uint64_t end) {
    std::vector<float> row(cols);
    for (uint64_t r = begin; r < end; ++r) {
      reference::dequantize(conversion.from, in + r * in_stride, cols, row.data());
      reference::quantize(conversion.to, row.data(), cols, out + r * out_stride);
    }
  };
  std::vector<Thread> threads;
  const uint64_t share = (rows + n_threads - 1) / n_threads;
  for (uint64_t begin = share; begin < rows; begin += share) {
    Result<Thread> thread =
        Thread::start("converter", [&work, begin, end = std::min(begin + share, rows)] { work(begin, end); });
    if (!thread.ok()) return thread.status();
    threads.push_back(*std::move(thread));
  }
  work(0, std::min(share, rows));
  return {};
}

// Reads, converts and writes one tensor, chunk by chunk.
class Converter {
 public:
  Converter(const gguf::Model& model, const QuantizeParams& params, gguf::Writer& writer)
      : model_(model), params_(params), writer_(writer), total_bytes_(writer.file_bytes()) {}

  Status convert(const Conversion& conversion) {
    const gguf::TensorInfo& tensor = *conversion.tensor;
    const uint64_t cols = tensor.dims[0];
    const uint64_t rows = tensor.element_count() / cols;
    const uint64_t chunk_rows = std::max<uint64_t>(kChunkElements / cols, 1);
    for (uint64_t begin = 0; begin < rows; begin += chunk_rows) {
      const uint64_t n = std::min(chunk_rows, rows - begin);
      in_.resize(n * row_bytes(conversion.from, cols));
      if (Status s = model_.read_tensor(tensor, begin * row_bytes(conversion.from, cols), in_); !s.ok()) return s;
      if (conversion.from != conversion.to) {
        out_.resize(n * row_bytes(conversion.to, cols));
        Status s = convert_rows(conversion, n, std::max(params_.threads, 1u), in_.data(), out_.data());
        if (!s.ok()) return s;
      } else {
        out_ = in_;
      }
      if (Status s = writer_.write_tensor(out_); !s.ok()) return s;
      done_bytes_ += out_.size();
      if (params_.progress && !params_.progress(done_bytes_, total_bytes_)) {
        return cancelled("quantize was cancelled");
      }
    }
    return {};
  }

 private:
  const gguf::Model& model_;
  const QuantizeParams& params_;
  gguf::Writer& writer_;
  uint64_t total_bytes_;
  uint64_t done_bytes_ = 0;
  std::vector<std::byte> in_, out_;
};

}  // namespace

Result<Report> quantize(const QuantizeParams& params) {
  const Result<gguf::Model> model = gguf::Model::open(params.input);
  if (!model.ok()) return model.status();
  for (const File& part : (*model).files())
    if (same_file(params.output, part.path()))
      return invalid_argument("cannot write " + params.output + ": it is the model that is read, " + part.path());
  Report report;
  const Result<std::vector<Conversion>> conversions = plan(*model, params.type, report);
  if (!conversions.ok()) return conversions.status();

  gguf::Writer writer((*model).alignment());
  copy_metadata(*model, params.type, writer);
  for (const Conversion& c : *conversions) writer.add_tensor(c.tensor->name, c.to, c.tensor->dims);
  report.file_bytes = writer.file_bytes();
  if (Status s = writer.begin(params.output); !s.ok()) return s;
  Converter converter(*model, params, writer);
  for (const Conversion& c : *conversions) {
    if (Status s = converter.convert(c); !s.ok()) return s;
  }
  if (Status s = writer.commit(); !s.ok()) return s;
  return report;
}

}  // namespace leanstream::convert
