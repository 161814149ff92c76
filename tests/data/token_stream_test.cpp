#include "depthbench/data/token_stream.hpp"

#include <type_traits>
#include <vector>

#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;
using ranges = std::vector<TokenRange>;

TEST_CASE("token_stream: lays ranges end to end, in the order given", "[data]") {
  const Corpus corpus = corpus_from_tokens({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const TokenStream stream(corpus, ranges{{7, 9}, {2, 2}, {0, 2}, {2, 3}, {5, 6}});
  const std::vector<std::int32_t> expected{7, 8, 0, 1, 2, 5};
  REQUIRE(stream.size() == expected.size());
  for (std::size_t b = 0; b <= expected.size(); ++b)
    for (std::size_t e = b; e <= expected.size(); ++e) {
      std::vector<std::int32_t> out(e - b);
      stream.copy(b, out);
      CHECK(out == std::vector<std::int32_t>(expected.begin() + std::ptrdiff_t(b),
                                             expected.begin() + std::ptrdiff_t(e)));
    }
}

TEST_CASE("token_stream: rejects ranges and requests outside", "[data]") {
  const Corpus corpus = corpus_from_tokens({0, 1, 2});
  CHECK_THROWS_WITH(TokenStream(corpus, ranges{{1, 4}}),
                    Contains("range [1, 4) leaves the corpus of 3 tokens"));
  CHECK_THROWS_AS(TokenStream(corpus, ranges{{2, 1}}), config_error);
  const TokenStream stream(corpus, ranges{{0, 2}});
  std::vector<std::int32_t> out(2);
  CHECK_THROWS_WITH(stream.copy(1, out), Contains("2 tokens from 1 are asked for, has 2"));
  CHECK_THROWS_AS(stream.copy(~0ull, out), config_error);
  std::vector<std::int32_t> none;
  CHECK_NOTHROW(TokenStream(corpus, ranges{}).copy(0, none));
  static_assert(!std::is_constructible_v<TokenStream, Corpus&&, ranges>, "a temporary corpus would dangle");
}
