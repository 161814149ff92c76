#include "data.hpp"

#include <filesystem>

#include "depthbench/data/open_corpus.hpp"
#include "depthbench/data/split_documents.hpp"
#include "depthbench/data/unigram.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

namespace fs = std::filesystem;

std::uint64_t tokens_of(const std::vector<TokenRange>& ranges) {
  std::uint64_t n = 0;
  for (const auto r : ranges) n += r.size();
  return n;
}

// examples/data/moby_dick.txt of the sources: upwards from here, from the program, or where it was built.
fs::path bundled_text() {
  std::error_code code;
  for (fs::path at : {fs::current_path(code), fs::read_symlink("/proc/self/exe", code).parent_path()})
    for (; !at.empty(); at = at.parent_path()) {
      const fs::path file = at / "examples/data/moby_dick.txt";
      if (fs::is_regular_file(file, code)) return file;
      if (at == at.root_path()) break;
    }
#ifdef DEPTHBENCH_EXAMPLE_DATA
  if (const fs::path file = fs::path(DEPTHBENCH_EXAMPLE_DATA) / "moby_dick.txt";
      fs::is_regular_file(file, code))
    return file;
#endif
  fail<config_error>(
      "data.text is empty, needs a text file or a folder of documents, e.g. data.text=book.txt");
}

}  // namespace

void locate(DataConfig& c) {
  if (!c.text.empty() && !c.tokens.empty())
    fail<config_error>("data.text and data.tokens are both given, needs one of them");
  if (c.text.empty() && c.tokens.empty()) c.text = bundled_text().string();
  for (std::string* path : {&c.text, &c.tokens})
    if (!path->empty()) *path = fs::absolute(*path).lexically_normal().string();
  if (!(c.held_out > 0 && c.held_out < 1))
    fail<config_error>("data.held_out is {}, needs more than 0 and less than 1", c.held_out);
  if (c.piece_tokens < 0)
    fail<config_error>("data.piece_tokens is {}, needs 0 (no cutting) or more", c.piece_tokens);
  if (c.eod < -1 || c.eod > std::numeric_limits<std::int32_t>::max())
    fail<config_error>("data.eod is {}, needs a token id, or -1 for none", c.eod);
}

std::unique_ptr<const Data> open_data(const DataConfig& c) {
  const fs::path path = c.text.empty() ? c.tokens : c.text;
  std::error_code code;
  if (!fs::exists(path, code)) fail<file_error>("{}: there is no such file or folder", path.string());
  CorpusOptions options;
  options.format = c.text.empty() ? corpus_format(c.format) : CorpusFormat::text;
  if (c.eod >= 0) options.eod = std::int32_t(c.eod);
  options.vocab_size = c.vocab_size;
  auto data = std::make_unique<Data>(Data{open_corpus(path, options), 0, {}, 0, 0, 0, {}});
  const auto documents = c.piece_tokens > 0 ? split_documents(data->corpus, std::uint64_t(c.piece_tokens))
                                            : data->corpus.documents();
  data->documents = documents.size();
  data->split = c.hold_out == "random" ? hold_out_random(documents, c.held_out, 0)
                                       : hold_out_fraction(documents, c.held_out);
  data->train_tokens = tokens_of(data->split.train);
  data->validation_tokens = tokens_of(data->split.validation);
  data->unigram_entropy = unigram_entropy(data->corpus, data->split.validation);
  data->described =
      fmt::format("{}: {} tokens in {} document{}, {} to train on, {} held out, vocabulary {}",
                  path.filename().string(), count_text(double(data->corpus.size())), documents.size(),
                  documents.size() == 1 ? "" : "s", count_text(double(data->train_tokens)),
                  count_text(double(data->validation_tokens)), data->corpus.vocab_size());
  return data;
}

ValidationSet validation_set(const Data& data, const DataConfig& c, std::int64_t window) {
  return c.validation == "documents" ? document_validation(data.corpus, data.split.validation, window)
                                     : packed_validation(data.corpus, data.split.validation, window);
}

}  // namespace depthbench::app
