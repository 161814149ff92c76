// A whole file as read-only memory: pages come in when they are touched, nothing is copied.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "depthbench/core/error.hpp"
#include "depthbench/io/posix.hpp"

namespace depthbench {

// MappedFile file("weights.safetensors");  file.bytes() is valid as long as `file` lives; moves keep it.
//   an empty file has no bytes and is no error
//   throws file_error if the path is missing, unreadable or no regular file (a folder, a pipe)
//   a file that another program shortens while it is mapped ends this program (SIGBUS): replace, do not cut
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path) : name_(path.string()) {
    // O_NONBLOCK: opening a pipe must not wait for its writer; it means nothing for regular files.
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) fail<file_error>("{}: cannot open it: {}", name_, system_error_text());
    struct stat info {};
    if (::fstat(file.get(), &info) != 0)
      fail<file_error>("{}: cannot ask its size: {}", name_, system_error_text());
    if (!S_ISREG(info.st_mode))
      fail<file_error>("{}: is {}, needs a regular file", name_,
                       S_ISDIR(info.st_mode) ? "a folder" : "no file of bytes");
    size_ = std::size_t(info.st_size);
    if (size_ == 0) return;  // mmap refuses length 0
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at == MAP_FAILED)
      fail<file_error>("{}: cannot map its {} bytes: {}", name_, size_, system_error_text());
    data_ = static_cast<const std::byte*>(at);
  }
  MappedFile(MappedFile&& other) noexcept
      : name_(std::move(other.name_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile() {
    if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
  }

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }
  const std::string& name() const { return name_; }  // as errors call it

 private:
  std::string name_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace depthbench
