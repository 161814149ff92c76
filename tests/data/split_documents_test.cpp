#include "depthbench/data/split_documents.hpp"

#include <string>
#include <vector>

#include "depthbench/data/split.hpp"
#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;

namespace {
std::vector<std::string> pieces(const std::string& text, std::uint64_t min_tokens) {
  const Corpus corpus = corpus_from_text(text);
  std::vector<std::string> out;
  std::uint64_t at = 0;
  for (const TokenRange piece : split_documents(corpus, min_tokens)) {
    CHECK(piece.begin == at);  // no gap
    at = piece.end;
    std::string s;
    for (std::uint64_t i = piece.begin; i < piece.end; ++i)
      s += corpus.token(i) == 256 ? '$' : char(corpus.token(i));
    out.push_back(s);
  }
  CHECK(at == corpus.size());
  return out;
}
using strings = std::vector<std::string>;
}  // namespace

TEST_CASE("split_documents: cuts after blank lines only", "[data]") {
  CHECK(pieces("one\ntwo\n\nthree\n\n\nfour", 1) == strings{"one\ntwo\n\n", "three\n\n\n", "four$"});
  CHECK(pieces("one\r\n\r\ntwo\r\nx", 1) == strings{"one\r\n\r\n", "two\r\nx$"});
  CHECK(pieces("no blank line\n", 1) == strings{"no blank line\n$"});
  CHECK(pieces("ends blank\n\n", 1) == strings{"ends blank\n\n$"});
  CHECK(pieces("\n\nx", 1) == strings{"\n\n", "x$"});
}

TEST_CASE("split_documents: pieces have at least min_tokens", "[data]") {
  CHECK(pieces("aa\n\nbb\n\ncc\n\ndd", 5) == strings{"aa\n\nbb\n\n", "cc\n\ndd$"});
  CHECK(pieces("aa\n\nbb", 100) == strings{"aa\n\nbb$"});
}

TEST_CASE("split_documents: a long text across the chunks of its scan", "[data]") {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::string(std::size_t(40 + i % 7), 'x') + "\n\n";
  const auto all = pieces(text, 1);
  CHECK(all.size() == 3000);
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    if (all[i].size() != 42 + i % 7) FAIL("piece " << i);
}

TEST_CASE("split_documents: makes one text ready to be held out by paragraph", "[data]") {
  const Corpus corpus = corpus_from_text("aaaa\n\nbbbb\n\ncccc\n\ndddd");
  const Split split = hold_out_fraction(split_documents(corpus, 1), 0.25);
  REQUIRE(split.validation.size() == 1);
  CHECK(split.validation[0] == TokenRange{18, 23});
  CHECK_THROWS_WITH(split_documents(corpus_from_tokens({1, 2}, 2), 1), Contains("needs a text corpus"));
  CHECK_THROWS_WITH(split_documents(corpus, 0), Contains("min_tokens is 0"));
}
