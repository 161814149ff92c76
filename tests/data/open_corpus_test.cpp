#include "depthbench/data/open_corpus.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/data/token_files.hpp"
#include "tests/io/fuzz.hpp"
#include "tests/io/temp_folder.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Catch::Contains;

namespace {

using ids = std::vector<std::int32_t>;
using ranges = std::vector<TokenRange>;
using u16 = std::vector<std::uint16_t>;
using u32 = std::vector<std::uint32_t>;

template <class T>
void write_tokens_npy(const std::filesystem::path& path, const std::vector<T>& tokens) {
  write_npy<T>(path, {std::int64_t(tokens.size())}, tokens);
}

}  // namespace

TEST_CASE("open_corpus: a text file is one document of bytes", "[data]") {
  const TempFolder folder;
  const Corpus corpus = open_corpus(folder.write("a.txt", "h\xC3\xA9"));
  CHECK(all_tokens(corpus) == ids{'h', 0xC3, 0xA9, 256});
  CHECK(corpus.documents() == ranges{{0, 4}});
  CHECK(corpus.vocab_size() == 257);
  CHECK(corpus.eod() == 256);
  CHECK(open_corpus(folder.write("README", "hi")).size() == 3);  // any name that is no token file's
  CHECK(open_corpus(folder.write("a.md", "hi"), {.vocab_size = 320}).vocab_size() == 320);
}

TEST_CASE("open_corpus: a folder of texts is one document a file, by name", "[data]") {
  const TempFolder folder;
  folder.write("b.txt", "BB");
  folder.write("a.txt", "A");
  folder.write("c.txt", "");
  folder.write("notes.md", "not this one");
  folder.write(".hidden.txt", "nor this");
  std::filesystem::create_directory(folder / "sub.txt");
  const Corpus corpus = open_corpus(folder.path());
  CHECK(all_tokens(corpus) == ids{'A', 256, 'B', 'B', 256, 256});
  CHECK(corpus.documents() == ranges{{0, 2}, {2, 5}, {5, 6}});
  CHECK(open_corpus(folder.path(), {.format = CorpusFormat::text}).documents().size() == 4);  // notes.md too
}

TEST_CASE("open_corpus: raw shards as DepthBench writes them", "[data]") {
  const TempFolder folder;
  folder.write("part-1.npy", raw(u16{5, 50279}));
  folder.write("part-0.npy", raw(u16{1, 2, 50279, 3, 50279}));
  folder.write("part-0.csv.gz", "side file");
  folder.write("part-0.meta.json", "{}");
  const CorpusOptions options{.eod = 50279, .vocab_size = 50280};
  const Corpus corpus = open_corpus(folder.path(), options);
  CHECK(all_tokens(corpus) == ids{1, 2, 50279, 3, 50279, 5, 50279});
  CHECK(corpus.documents() == ranges{{0, 3}, {3, 5}, {5, 7}});
  CHECK(corpus.vocab_size() == 50280);
  CHECK(open_corpus({folder / "part-1.npy", folder / "part-0.npy"}, options).token(0) ==
        5);  // in the order given
  CHECK(open_corpus(folder / "part-1.npy").documents().size() == 1);
}

TEST_CASE("open_corpus: names and vocabulary choose the width of raw tokens", "[data]") {
  const TempFolder folder;
  const std::string wide = raw(u32{1, 100000, 2});
  CHECK(all_tokens(open_corpus(folder.write("a.u32", wide))) == ids{1, 100000, 2});
  CHECK(all_tokens(open_corpus(folder.write("a.bin", wide), {.vocab_size = 100001})) == ids{1, 100000, 2});
  CHECK(all_tokens(open_corpus(folder.write("a.bin", wide), {.format = CorpusFormat::raw_u32})) ==
        ids{1, 100000, 2});
  CHECK(open_corpus(folder.write("a.bin", wide)).size() == 6);
  CHECK(open_corpus(folder.write("a.u16", wide)).size() == 6);
  CHECK(open_corpus(folder.write("odd.txt", wide), {.format = CorpusFormat::raw_u16}).size() == 6);
}

TEST_CASE("open_corpus: a real .npy of each integer type", "[data]") {
  const TempFolder folder;
  write_tokens_npy<std::uint16_t>(folder / "u16.npy", {1, 9, 2});
  write_tokens_npy<std::uint32_t>(folder / "u32.npy", {1, 9, 2});
  write_tokens_npy<std::int32_t>(folder / "i32.npy", {1, 9, 2});
  write_tokens_npy<std::int64_t>(folder / "i64.npy", {1, 9, 2});
  for (const char* name : {"u16.npy", "u32.npy", "i32.npy", "i64.npy"}) {
    const Corpus corpus = open_corpus(folder / name, {.eod = 9});
    CHECK(all_tokens(corpus) == ids{1, 9, 2});
    CHECK(corpus.documents() == ranges{{0, 2}, {2, 3}});
  }
  CHECK(open_corpus(folder.path(), {.eod = 9}).size() == 12);
  write_tokens_npy<std::int64_t>(folder / "negative.npy", {1, -9});
  CHECK_THROWS_WITH(open_corpus(folder / "negative.npy"), Contains("negative.npy: token 1 is -9"));
  write_tokens_npy<float>(folder / "float.npy", {1});
  CHECK_THROWS_WITH(open_corpus(folder / "float.npy"), Contains("tokens need whole numbers"));
  write_npy<std::int32_t>(folder / "matrix.npy", {1, 2}, std::vector<std::int32_t>{1, 2});
  CHECK_THROWS_WITH(open_corpus(folder / "matrix.npy"), Contains("has 2 axes, tokens need one"));
}

TEST_CASE("open_corpus: llm.c's files of both tokenizers", "[data]") {
  const TempFolder folder;
  const Corpus gpt2 = open_corpus(folder.write("a.bin", llmc(20240520, 1, 4, u16{50256, 7, 50256, 8})));
  CHECK(all_tokens(gpt2) == ids{50256, 7, 50256, 8});
  CHECK(gpt2.documents() == ranges{{0, 1}, {1, 3}, {3, 4}});
  CHECK(gpt2.vocab_size() == 50257);
  const Corpus llama = open_corpus(folder.write("b.bin", llmc(20240801, 7, 2, u32{128000, 8})));
  CHECK(llama.vocab_size() == 128256);
  CHECK(llama.eod() == 128000);
  CHECK(open_corpus(folder / "a.bin", {.eod = 8, .vocab_size = 60000}).documents().size() == 1);
  const auto message = [&](const std::string& content, CorpusOptions options = {}) {
    try {
      open_corpus(folder.write("c.bin", content), options);
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message(llmc(20240520, 7, 1, u16{1})), Contains("is llm.c version 7, needs 1"));
  CHECK_THAT(message(llmc(20240520, 1, 2, u16{1})),
             Contains("claims 2 tokens of 2 bytes, has 2 bytes after the header"));
  CHECK_THAT(message(llmc(20240520, 1, -1, u16{1})), Contains("claims -1 tokens"));
  CHECK_THAT(message(llmc(20240520, 1, INT32_MAX, u16{})), Contains("claims 2147483647 tokens"));
  CHECK_THAT(message(llmc(20240520, 1, 1, u16{50257})), Contains("token 0 is 50257, needs 0 to 50256"));
  CHECK_THAT(message(llmc(20240520, 1, 0, u16{})), Contains("has no tokens"));
  CHECK_THAT(message(llmc(20240520, 1, 0, u16{}).substr(0, 20)),
             Contains("has 20 bytes, an llm.c header needs 1024"));
  CHECK_THAT(message("text", {.format = CorpusFormat::llmc}), Contains("does not begin with an llm.c magic"));
  CHECK_THROWS_WITH(open_corpus({folder / "a.bin", folder / "b.bin"}), Contains("has another tokenizer"));
}

TEST_CASE("open_corpus: says what is wrong", "[data]") {
  const TempFolder folder;
  CHECK_THROWS_WITH(open_corpus(folder / "missing"), Contains("missing: cannot open it"));
  CHECK_THROWS_WITH(open_corpus(folder.path()),
                    Contains("has 0 files, none of them *.npy, *.bin, *.u16, *.u32 or *.txt"));
  CHECK_THROWS_WITH(open_corpus(folder.path(), {.format = CorpusFormat::text}),
                    Contains("none of them of text"));
  CHECK_THROWS_WITH(open_corpus(std::vector<std::filesystem::path>{}),
                    Contains("the list of files is empty"));
  CHECK_THROWS_WITH(open_corpus(folder.write("e.txt", "")),
                    Contains("e.txt: is empty, needs at least one token"));
  CHECK_THROWS_WITH(open_corpus(folder.write("e.bin", "")), Contains("e.bin: is empty"));
  CHECK_THROWS_WITH(open_corpus(folder.write("odd.u16", "abc")), Contains("odd.u16: has 3 bytes of tokens"));
  CHECK_THROWS_WITH(open_corpus(folder.write("x.u16", raw(u16{1, 5})), {.vocab_size = 5}),
                    Contains("x.u16: token 1 is 5, needs 0 to 4"));
  CHECK_THROWS_WITH(open_corpus(folder.write("x.u32", raw(u32{0x80000000u}))),
                    Contains("token 0 is 2147483648"));
  folder.write("t.txt", "text");
  CHECK_THROWS_WITH(open_corpus({folder / "t.txt", folder / "x.u16"}),
                    Contains("x.u16: is a token file, the files before it are not"));
  CHECK_THROWS_WITH(open_corpus({folder / "x.u16", folder / "t.txt"}),
                    Contains("t.txt: is text, the files before it are not"));
  CHECK_THROWS_WITH(open_corpus(folder / "t.txt", {.eod = 0}),
                    Contains("text ends documents with 256, not 0"));
  CHECK_THROWS_WITH(open_corpus(folder / "t.txt", {.vocab_size = 256}),
                    Contains("vocab_size is 256, text needs 257"));
  CHECK(corpus_format("llmc") == CorpusFormat::llmc);
  CHECK(corpus_format("auto") == CorpusFormat::automatic);
  CHECK_THROWS_WITH(corpus_format("parquet"), Contains("corpus format 'parquet': needs auto, text,"));
}

TEST_CASE("open_corpus: survives damage", "[data][fuzz]") {
  const TempFolder folder;
  const auto open = [&](const char* name, CorpusFormat format) {
    return [&folder, name, format](const std::string& content) {
      const Corpus corpus = open_corpus(folder.write(name, content), {.format = format, .eod = 3});
      if (corpus.size() > content.size() + 1) FAIL("more tokens than bytes");
      if (corpus.documents().back().end != corpus.size()) FAIL("documents do not cover the tokens");
    };
  };
  const CorpusFormat automatic = CorpusFormat::automatic;  // a damaged magic makes it raw tokens
  const std::string bin = llmc(20240520, 1, 6, u16{1, 2, 3, 4, 5, 3});
  CHECK(every_prefix(bin, open("a.bin", CorpusFormat::llmc)) == bin.size());
  CHECK(every_prefix(bin, open("a.bin", automatic)) >= bin.size() - 4);
  CHECK(random_damage(bin, 12, 2000, 1, open("a.bin", CorpusFormat::llmc)) > 1900);
  CHECK(random_damage(bin, bin.size(), 2000, 1, open("a.bin", automatic)) > 0);
  write_tokens_npy<std::uint16_t>(folder / "x.npy", {1, 2, 3, 4, 5, 3});
  const std::string array = read_whole(folder / "x.npy");
  CHECK(every_prefix(array, open("a.npy", CorpusFormat::npy)) == array.size());
  CHECK(every_prefix(array, open("a.npy", automatic)) >= array.size() - 6);
  CHECK(random_damage(array, 64, 3000, 2, open("a.npy", CorpusFormat::npy)) > 2000);
  CHECK(random_damage(array, array.size(), 2000, 2, open("a.npy", automatic)) > 0);
  CHECK(random_damage(raw(u32{1, 2, 3, 4}), 16, 1000, 3, open("a.u32", automatic)) > 100);
}
