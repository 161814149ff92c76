#include "depthbench/data/unigram.hpp"

#include <cmath>
#include <vector>

#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;
using ranges = std::vector<TokenRange>;

TEST_CASE("unigram: the entropy of the frequencies, in nats", "[data]") {
  CHECK(unigram_entropy(corpus_from_tokens({5, 5, 5})) == Approx(0.0));
  CHECK(unigram_entropy(corpus_from_tokens({0, 1, 2, 3})) == Approx(std::log(4.0)));
  CHECK(unigram_entropy(corpus_from_tokens({0, 0, 0, 1})) ==
        Approx(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
}

TEST_CASE("unigram: of ranges only, and over the chunks of its scan", "[data]") {
  std::vector<std::int32_t> ids(200'000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int32_t(i % 8);
  const Corpus corpus = corpus_from_tokens(ids);
  CHECK(unigram_entropy(corpus) == Approx(std::log(8.0)));
  CHECK(unigram_entropy(corpus, ranges{{0, 2}, {8, 10}}) == Approx(std::log(2.0)));
  CHECK_THROWS_WITH(unigram_entropy(corpus, ranges{}), Contains("has no tokens"));
}

TEST_CASE("unigram: a claimed vocabulary costs no memory", "[data]") {
  CHECK(unigram_entropy(corpus_from_tokens({0, 2'000'000'000})) == Approx(std::log(2.0)));
}
