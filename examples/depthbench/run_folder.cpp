#include "run_folder.hpp"

#include <sys/file.h>

#include "depthbench/io/atomic_file.hpp"

namespace depthbench::app {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code code;
  fs::create_directories(path_, code);
  if (code) fail<file_error>("{}: cannot create the folder: {}", path_.string(), code.message());
  lock_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_) fail<file_error>("{}: cannot open the folder: {}", path_.string(), system_error_text());
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail<file_error>("{}: another process is training in this folder", path_.string());
}

bool RunFolder::has_run() const { return fs::exists(config()); }
bool RunFolder::has_checkpoint() const { return fs::exists(checkpoint()); }
Status RunFolder::status() const {
  const auto s = read_summary(summary());
  return s ? s->status : Status::unfinished;
}

void RunFolder::expect_same_run(const RunConfig& here) const {
  const auto different = differences(read_run_config(config()), here);
  if (!different.empty())
    fail<config_error>("{}: holds another run: {}{}; another --out keeps both, --force starts anew",
                       path_.string(), different[0],
                       different.size() > 1 ? fmt::format(" (and {} more)", different.size() - 1) : "");
}

void RunFolder::start(const RunConfig& c) {
  for (const auto& file : {summary(), checkpoint(), weights(), metrics()}) fs::remove(file);
  write_file_atomically(config(), [&](AtomicFile& f) { f.write(to_toml(c)); });
}

RunConfig parse_run_config(const std::string& toml, const std::string& name) {
  RunConfig c;
  for (const auto& s : parse_settings(toml, name, "/")) apply(c, s, Command::train);
  settle_words(c);
  return c;
}
RunConfig read_run_config(const fs::path& file) {
  RunConfig c;
  for (const auto& s : read_settings(file.string())) apply(c, s, Command::train);
  settle_words(c);
  return c;
}

}  // namespace depthbench::app
