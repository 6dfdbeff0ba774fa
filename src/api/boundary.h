#pragma once

// What every function of the C interface does at its edge: checks of pointers and struct sizes, buffers filled, and
// nothing thrown getting out.

#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "leanstream/leanstream.h"

namespace leanstream::api {

// Copies what fits, cut between characters, and ends it with NUL. capacity > 0.
void copy_text(std::string_view text, char* out, size_t capacity) noexcept;

// Reports into `error`, which may be NULL, and returns the code as the C interface has it.
leanstream_status report(Code code, std::string_view message, leanstream_error* error) noexcept;

// Runs `body`, which returns a Status, and reports it; what the standard library throws becomes a status too.
template <typename Body>
leanstream_status guarded(leanstream_error* error, Body&& body) noexcept {
  try {
    const Status status = body();
    return report(status.code(), status.message(), error);
  } catch (const std::bad_alloc&) {
    return report(Code::kOutOfBudget, "cannot allocate memory: the system refused it", error);
  } catch (const std::exception& exception) {
    return report(Code::kInternal, exception.what(), error);
  } catch (...) {
    return report(Code::kInternal, "something that is no std::exception was thrown", error);
  }
}

struct RequiredArgument {
  const void* pointer;
  const char* name;
};
// kInvalidArgument naming the first that is NULL.
Status require(std::initializer_list<RequiredArgument> arguments);

// kInvalidArgument, with both sizes, when a struct's struct_size is none that this library knows.
Status check_struct_size(size_t struct_size, size_t known_size, const char* struct_name);
template <typename Struct>
Status check_struct(const Struct& value, const char* struct_name) {
  return check_struct_size(value.struct_size, sizeof(Struct), struct_name);
}

// A C caller may have put any integer into an enum: read as one, without C++'s assumption that it is an enumerator.
template <typename Enum>
int raw(const Enum& value) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int));
  int number;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Copies into a caller's array if all of it fits; *needed always gets the full count. `what` names the elements.
template <typename Element>
Status fill_buffer(std::span<const Element> source, Element* buffer, size_t capacity, size_t* needed,
                   const char* what) {
  *needed = source.size();
  if (buffer == nullptr && capacity != 0) return invalid_argument("the buffer is NULL and its capacity is not 0");
  if (source.size() > capacity)
    return {Code::kBufferTooSmall, "the buffer holds " + std::to_string(capacity) + " " + what + ", " +
                                       std::to_string(source.size()) + " are needed"};
  if (!source.empty()) std::memcpy(buffer, source.data(), source.size_bytes());
  return {};
}

}  // namespace leanstream::api
