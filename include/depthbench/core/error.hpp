// Errors for people: which op, which argument, what it had, what it needed.
#pragma once
#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY  // users need fmt's headers only, no library to link
#endif
#if defined(__CUDACC__) && !defined(FMT_USE_CONSTEXPR)
#define FMT_USE_CONSTEXPR 1  // fmt 9 drops constexpr under nvcc and then fails in C++20
#endif
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace depthbench {

struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct shape_error : error {  // a tensor has another shape than the op needs
  using error::error;
};
struct dtype_error : error {  // elements of another type than the op or file needs
  using error::error;
};
struct tape_error : error {  // a Var of another tape, backward() twice, a value that was released
  using error::error;
};
struct format_error : error {  // a file that is not what it claims to be
  using error::error;
};
struct file_error : error {  // a file that cannot be opened, read or written
  using error::error;
};
struct config_error : error {  // an option or shape that no model can have
  using error::error;
};
struct numeric_error : error {  // NaN or infinity where a number is needed
  using error::error;
};

// fail<shape_error>("rms_norm: g has shape {}, needs ({})", shape, d)
template <class Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace depthbench
