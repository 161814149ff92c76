// Opens token files of every kind we know as one Corpus. Files are mapped, not loaded.
//
//   text      bytes as tokens (vocabulary 257), each file one document, closed by 256
//   raw_u16   no header, little-endian uint16: what DepthBench and OLMo-core write (there named *.npy)
//   raw_u32   the same with uint32
//   npy       a real .npy of one axis: |u1 <u2 <u4 <i4 <i8
//   llmc      llm.c's .bin: 256 int32 (magic, version, number of tokens, zeros), then the tokens:
//             magic 20240520 version 1 is GPT-2 in uint16, magic 20240801 version 7 is Llama-3 in uint32
//             (karpathy/llm.c dev/data/data_common.py). It puts the token between documents in FRONT of each;
//             here it closes the document before, so the first document is that token alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/token_shard.hpp"
#include "depthbench/data/tokens.hpp"
#include "depthbench/io/bytes.hpp"
#include "depthbench/io/mapped_file.hpp"
#include "depthbench/io/npy.hpp"

namespace depthbench {

enum class CorpusFormat { automatic, text, raw_u16, raw_u32, npy, llmc };

// "auto", "text", "raw_u16", "raw_u32", "npy", "llmc"; throws config_error
inline CorpusFormat corpus_format(std::string_view name) {
  constexpr std::string_view names[] = {"auto", "text", "raw_u16", "raw_u32", "npy", "llmc"};
  const auto it = std::find(std::begin(names), std::end(names), name);
  if (it == std::end(names))
    fail<config_error>("corpus format '{}': needs auto, text, raw_u16, raw_u32, npy or llmc", name);
  return CorpusFormat(it - std::begin(names));
}

struct CorpusOptions {
  CorpusFormat format = CorpusFormat::automatic;
  std::optional<std::int32_t> eod =
      std::nullopt;             // text has 256, llmc its tokenizer's; else unknown unless given
  std::int64_t vocab_size = 0;  // 0: text 257, llmc its tokenizer's, else the largest id + 1
};

namespace corpus_detail {

struct LlmcKind {
  std::int32_t magic, version;
  DType dtype;
  std::int32_t eod;
  std::int64_t vocab_size;
};
// GPT-2: <|endoftext|> is the last of 50257. Llama-3: <|begin_of_text|> = 128000 of 128256 stands between
// documents.
inline constexpr LlmcKind llmc_kinds[] = {{20240520, 1, DType::u16, 50256, 50257},
                                          {20240801, 7, DType::u32, 128000, 128256}};
inline constexpr std::size_t llmc_header = 256 * sizeof(std::int32_t);

inline const LlmcKind* llmc_kind(std::span<const std::byte> bytes) {
  for (const LlmcKind& kind : llmc_kinds)
    if (bytes.size() >= 4 && load<std::int32_t>(bytes, 0) == kind.magic) return &kind;
  return nullptr;
}

inline bool is_token_file(const std::filesystem::path& path) {
  const auto ext = path.extension();
  return ext == ".npy" || ext == ".bin" || ext == ".u16" || ext == ".u32";
}

// What `automatic` means for this file: its first bytes decide, then its name.
inline CorpusFormat detect(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           std::int64_t vocab) {
  if (as_text(bytes).starts_with(npy_magic)) return CorpusFormat::npy;
  if (llmc_kind(bytes)) return CorpusFormat::llmc;
  if (path.extension() == ".u32") return CorpusFormat::raw_u32;
  if (path.extension() == ".u16") return CorpusFormat::raw_u16;
  if (!is_token_file(path)) return CorpusFormat::text;
  return vocab > 65536 ? CorpusFormat::raw_u32
                       : CorpusFormat::raw_u16;  // DepthBench takes the smallest that fits
}

inline std::span<const std::byte> llmc_tokens(const MappedFile& file, const LlmcKind*& kind) {
  kind = llmc_kind(file.bytes());
  if (!kind) fail<format_error>("{}: does not begin with an llm.c magic (20240520 or 20240801)", file.name());
  if (file.size() < llmc_header)
    fail<format_error>("{}: has {} bytes, an llm.c header needs {}", file.name(), file.size(), llmc_header);
  const auto version = load<std::int32_t>(file.bytes(), 4), count = load<std::int32_t>(file.bytes(), 8);
  if (version != kind->version)
    fail<format_error>("{}: is llm.c version {}, needs {}", file.name(), version, kind->version);
  const auto tokens = file.bytes().subspan(llmc_header);
  if (count < 0 || std::uint64_t(count) * size_of(kind->dtype) != tokens.size())
    fail<format_error>("{}: claims {} tokens of {} bytes, has {} bytes after the header", file.name(), count,
                       size_of(kind->dtype), tokens.size());
  return tokens;
}

// The files of a folder, by name: token files if there are any, else (unless told that everything is text)
// *.txt.
inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, CorpusFormat format) {
  std::vector<std::filesystem::path> all, chosen;
  std::error_code code;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (it->is_regular_file(code) && !it->path().filename().string().starts_with("."))
      all.push_back(it->path());
  if (code) fail<file_error>("{}: cannot list the folder: {}", folder.string(), code.message());
  std::sort(all.begin(), all.end());
  if (format == CorpusFormat::text)
    chosen = all;
  else
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), is_token_file);
  if (chosen.empty() && format == CorpusFormat::automatic)
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [](auto& p) { return p.extension() == ".txt"; });
  if (chosen.empty())
    fail<file_error>("{}: has {} files, none of them {}", folder.string(), all.size(),
                     format == CorpusFormat::text        ? "of text"
                     : format == CorpusFormat::automatic ? "*.npy, *.bin, *.u16, *.u32 or *.txt"
                                                         : "*.npy, *.bin, *.u16 or *.u32");
  return chosen;
}

}  // namespace corpus_detail

// Files in the given order; sub-folders are not entered.
//   throws file_error, format_error, dtype_error, config_error; every id is checked (see Corpus)
inline Corpus open_corpus(const std::vector<std::filesystem::path>& files, CorpusOptions options = {}) {
  using namespace corpus_detail;
  if (files.empty()) fail<config_error>("open_corpus: the list of files is empty");
  std::vector<TokenShard> shards;
  std::optional<CorpusFormat> common;
  const LlmcKind* llmc = nullptr;
  for (const auto& path : files) {
    const auto file = std::make_shared<const MappedFile>(path);
    auto format = options.format;
    if (format == CorpusFormat::automatic) format = detect(path, file->bytes(), options.vocab_size);
    const bool text = format == CorpusFormat::text;
    if (common && text != (*common == CorpusFormat::text))
      fail<format_error>("{}: is {}, the files before it are not", file->name(),
                         text ? "text" : "a token file");
    common = format;
    if (file->size() == 0 && (!text || files.size() == 1))
      fail<format_error>("{}: is empty, needs at least one token", file->name());
    switch (format) {
      case CorpusFormat::text:
        shards.emplace_back(file->name(), file, file->bytes(), DType::u8, text_end_of_document);
        break;
      case CorpusFormat::raw_u16:
        shards.emplace_back(file->name(), file, file->bytes(), DType::u16);
        break;
      case CorpusFormat::raw_u32:
        shards.emplace_back(file->name(), file, file->bytes(), DType::u32);
        break;
      case CorpusFormat::npy: {
        const auto array = std::make_shared<const NpyFile>(path);
        if (array->shape().size() != 1)
          fail<format_error>("{}: has {} axes, tokens need one", file->name(), array->shape().size());
        shards.emplace_back(array->name(), array, array->bytes(), array->dtype());
        break;
      }
      default: {
        const LlmcKind* kind = nullptr;
        const auto tokens = llmc_tokens(*file, kind);
        if (llmc && kind != llmc)
          fail<format_error>("{}: has another tokenizer than the files before it", file->name());
        llmc = kind;
        shards.emplace_back(file->name(), file, tokens, kind->dtype);
      }
    }
  }
  if (*common == CorpusFormat::text) {
    if (options.eod.value_or(text_end_of_document) != text_end_of_document)
      fail<config_error>("open_corpus: text ends documents with {}, not {}", text_end_of_document,
                         *options.eod);
    if (options.vocab_size != 0 && options.vocab_size < text_vocab_size)
      fail<config_error>("open_corpus: vocab_size is {}, text needs {}", options.vocab_size, text_vocab_size);
    options.eod = text_end_of_document;
    if (options.vocab_size == 0) options.vocab_size = text_vocab_size;
  } else if (llmc) {
    if (!options.eod) options.eod = llmc->eod;
    if (options.vocab_size == 0) options.vocab_size = llmc->vocab_size;
  }
  return Corpus(std::move(shards), options.eod, options.vocab_size);
}

// A file, or a folder of files sorted by name.
inline Corpus open_corpus(const std::filesystem::path& path, const CorpusOptions& options = {}) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return open_corpus(corpus_detail::files_of(path, options.format), options);
  return open_corpus(std::vector{path}, options);
}

}  // namespace depthbench
