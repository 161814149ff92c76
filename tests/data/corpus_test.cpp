#include "depthbench/data/corpus.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/catch.hpp"
#include "tests/data/token_files.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Catch::Contains;

namespace {

TokenShard shard_of(const std::vector<std::uint16_t>& ids) {
  const auto owner = std::make_shared<const std::vector<std::uint16_t>>(ids);
  return TokenShard("shard", owner, std::as_bytes(std::span(*owner)), DType::u16);
}
using ranges = std::vector<TokenRange>;

}  // namespace

TEST_CASE("corpus: documents end at each end-of-document token and at each shard's end", "[data]") {
  const Corpus corpus({shard_of({1, 2, 9, 9, 3}), shard_of({}), shard_of({4, 9})}, 9, 10);
  CHECK(corpus.size() == 7);
  CHECK(corpus.documents() == ranges{{0, 3}, {3, 4}, {4, 5}, {5, 7}});
  CHECK(all_tokens(corpus) == std::vector<std::int32_t>{1, 2, 9, 9, 3, 4, 9});
  CHECK(corpus.vocab_size() == 10);
  CHECK(corpus.eod() == 9);
  for (std::uint64_t i = 0; i < corpus.size(); ++i) CHECK(corpus.token(i) == all_tokens(corpus)[i]);
}

TEST_CASE("corpus: every range copies the same tokens, whatever the shards", "[data]") {
  const Corpus corpus({shard_of({0, 1, 2}), shard_of({}), shard_of({3}), shard_of({4, 5, 6, 7})},
                      std::nullopt);
  CHECK(corpus.documents() == ranges{{0, 3}, {3, 4}, {4, 8}});
  for (std::uint64_t b = 0; b <= 8; ++b)
    for (std::uint64_t e = b; e <= 8; ++e) {
      std::vector<std::int32_t> out(e - b);
      corpus.copy({b, e}, out);
      for (std::uint64_t i = b; i < e; ++i)
        if (out[i - b] != std::int32_t(i)) FAIL("range [" << b << ", " << e << ") at " << i);
    }
}

TEST_CASE("corpus: the scan works across its chunks", "[data]") {
  std::vector<std::int32_t> ids(200'000, 1);
  for (const std::size_t at : {65535, 65536, 131072, 199'998}) ids[at] = 0;
  const Corpus corpus = corpus_from_tokens(ids, 0);
  CHECK(corpus.documents() ==
        ranges{{0, 65536}, {65536, 65537}, {65537, 131073}, {131073, 199'999}, {199'999, 200'000}});
  ids[150'000] = 7;
  CHECK_THROWS_WITH(corpus_from_tokens(ids, 0, 7), Contains("memory: token 150000 is 7, needs 0 to 6"));
}

TEST_CASE("corpus: the vocabulary is taken from the tokens if it is not named", "[data]") {
  CHECK(corpus_from_tokens({3, 1}).vocab_size() == 4);
  CHECK(corpus_from_tokens({3, 1}, 8).vocab_size() == 9);
  CHECK(corpus_from_tokens({3, 1}, 8).documents() == ranges{{0, 2}});
  CHECK(corpus_from_tokens({3, 1}, std::nullopt, 100).vocab_size() == 100);
}

TEST_CASE("corpus: a text is its bytes, closed by 256", "[data]") {
  const Corpus corpus = corpus_from_text("a\xff");
  CHECK(all_tokens(corpus) == std::vector<std::int32_t>{'a', 255, 256});
  CHECK(corpus.documents() == ranges{{0, 3}});
  CHECK(corpus.vocab_size() == 257);
  const Corpus copy = corpus;  // shares the shards
  CHECK(copy.token(0) == 'a');
}

TEST_CASE("corpus: says what it had and what it needed", "[data]") {
  CHECK_THROWS_WITH(corpus_from_tokens({}), Contains("has no tokens"));
  CHECK_THROWS_WITH(corpus_from_tokens({1}, 5, 5), Contains("the end-of-document id is 5, needs 0 to 4"));
  CHECK_THROWS_WITH(corpus_from_tokens({1}, -1),
                    Contains("the end-of-document id is -1, needs 0 to 2147483646"));
  CHECK_THROWS_WITH(corpus_from_tokens({1}, std::nullopt, -3),
                    Contains("vocab_size is -3, needs 1 to 2147483647"));
  CHECK_THROWS_WITH(corpus_from_tokens({INT32_MAX}),
                    Contains("token 0 is 2147483647, needs 0 to 2147483646"));
  const Corpus corpus = corpus_from_tokens({1, 2, 3});
  std::vector<std::int32_t> two(2);
  CHECK_THROWS_WITH(corpus.copy({2, 4}, two), Contains("tokens [2, 4) are asked for, has 3"));
  CHECK_THROWS_WITH(corpus.copy({2, 1}, two), Contains("tokens [2, 1) are asked for"));
  CHECK_THROWS_WITH(corpus.copy({0, 3}, two), Contains("3 tokens are asked for, the buffer has 2"));
  CHECK_THROWS_AS(corpus.token(3), config_error);
}
