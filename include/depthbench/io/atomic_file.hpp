// A file that appears complete or not at all: written beside its final name, synced, then renamed.
// After commit() returned, the new file survives a crash of the program and of the machine; before that,
// the old file (if any) is untouched.
#pragma once
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "depthbench/core/error.hpp"
#include "depthbench/io/bytes.hpp"
#include "depthbench/io/posix.hpp"

namespace depthbench {

// AtomicFile f(path);  f.write(bytes);  f.write("text");  f.commit();
//   without commit() (an exception on the way, say) the temporary file is removed
//   a killed program leaves at most one NAME.tmp-PID-N, which nothing reads
//   throws file_error: the folder is missing, not writable, full
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path) : path_(path) {
    if (std::filesystem::is_directory(path_))
      fail<file_error>("{}: is a folder, needs a file name", path_.string());
    for (int attempt = 0; attempt < 100 && !file_; ++attempt) {
      temporary_ = path_;
      temporary_ += fmt::format(".tmp-{}-{}", ::getpid(), attempt);
      file_ = FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!file_ && errno != EEXIST) break;
    }
    if (!file_) {
      const std::string why = system_error_text();
      fail<file_error>("{}: cannot create {}: {}", path_.string(), temporary_.filename().string(), why);
    }
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() {
    if (!committed_) ::unlink(temporary_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    if (!file_) fail<file_error>("{}: is written already, needs a new AtomicFile", path_.string());
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail<file_error>("{}: cannot write: {}", path_.string(), system_error_text());
      bytes = bytes.subspan(std::size_t(n));
    }
  }
  void write(std::string_view text) { write(as_byte_span(text)); }
  void write(const char* text) { write(std::string_view(text)); }

  // The file's bytes reach the disk before its name does, the name before commit() returns.
  void commit() {
    if (!file_) fail<file_error>("{}: is written already, needs a new AtomicFile", path_.string());
    if (::fsync(file_.get()) != 0)
      fail<file_error>("{}: cannot sync: {}", path_.string(), system_error_text());
    if (!file_.close()) fail<file_error>("{}: cannot close: {}", path_.string(), system_error_text());
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
      fail<file_error>("{}: cannot rename {} to it: {}", path_.string(), temporary_.filename().string(),
                       system_error_text());
    committed_ = true;
    const std::filesystem::path parent =
        path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
    const FileDescriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some file systems cannot sync a folder (EINVAL); there the rename is as durable as they make it.
    if (!folder || (::fsync(folder.get()) != 0 && errno != EINVAL))
      fail<file_error>("{}: cannot sync its folder: {}", path_.string(), system_error_text());
  }

 private:
  std::filesystem::path path_, temporary_;
  FileDescriptor file_;
  bool committed_ = false;
};

// writer(AtomicFile&) writes the whole content; if it throws, the old file stays as it was.
template <class Writer>
void write_file_atomically(const std::filesystem::path& path, Writer&& writer) {
  AtomicFile file(path);
  std::forward<Writer>(writer)(file);
  file.commit();
}

}  // namespace depthbench
