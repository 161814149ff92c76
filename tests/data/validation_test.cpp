#include "depthbench/data/validation.hpp"

#include <vector>

#include "depthbench/data/split.hpp"
#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;

namespace {
using ids = std::vector<std::int32_t>;
using ranges = std::vector<TokenRange>;
constexpr std::int32_t no = ignored_target;
}  // namespace

TEST_CASE("validation: packed windows, the last one padded", "[data]") {
  const Corpus corpus = corpus_from_tokens({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 9);
  const ValidationSet set = packed_validation(corpus, ranges{{1, 4}, {6, 10}}, 3);  // 1 2 3 | 6 7 8 | 9
  CHECK(set.instances() == 2);  // a single 9 predicts nothing
  const ValidationSet wide = packed_validation(corpus, ranges{{1, 4}, {6, 10}}, 5);
  const ValidationBatch b = wide.batch(0, 10);
  CHECK(b.rows == 2);
  CHECK(b.window == 5);
  CHECK(b.tokens == ids{1, 2, 3, 6, 7, 8, 9, 9, 9, 9});
  CHECK(b.targets == ids{2, 3, 6, 7, no, 9, no, no, no, no});
  CHECK(b.labels == 5);
  CHECK(b.real_tokens == 7);
  CHECK(wide.labels() == 5);
  CHECK(wide.real_tokens() == 7);
}

TEST_CASE("validation: one instance a document, cut at T, padded on the right", "[data]") {
  const Corpus corpus = corpus_from_tokens({1, 2, 3, 4, 5, 0, 6, 0, 0, 7, 8, 0}, 0);
  REQUIRE(corpus.documents() == ranges{{0, 6}, {6, 8}, {8, 9}, {9, 12}});
  const ValidationSet set = document_validation(corpus, corpus.documents(), 4);
  CHECK(set.instances() == 4);
  const ValidationBatch b = set.batch(0, 4);
  CHECK(b.tokens == ids{1, 2, 3, 4, 6, 0, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0});
  CHECK(b.targets == ids{2, 3, 4, no, 0, no, no, no, no, no, no, no, 8, 0, no, no});
  CHECK(b.labels == 3 + 1 + 0 + 2);
  CHECK(b.real_tokens == 4 + 2 + 1 + 3);
  // chosen documents that are no neighbours
  const ValidationBatch some = document_validation(corpus, ranges{{9, 12}, {0, 6}}, 4).batch(0, 2);
  CHECK(some.tokens == ids{7, 8, 0, 0, 1, 2, 3, 4});
}

TEST_CASE("validation: batches cover all instances once, and their counts add up", "[data]") {
  const Corpus corpus = corpus_from_tokens(ids(103, 1));
  const ValidationSet set = packed_validation(corpus, ranges{{0, 103}}, 10);
  ValidationLoss loss;
  std::vector<std::int64_t> rows;
  for (const ValidationBatch& b : set.batches(4)) {
    rows.push_back(b.rows);
    CHECK(b.tokens.size() == std::size_t(10 * b.rows));
    std::uint64_t labels = 0;
    for (const std::int32_t t : b.targets) labels += t != ignored_target;
    CHECK(labels == b.labels);
    loss.add(b, 2.0 * double(b.labels));
  }
  CHECK(rows == std::vector<std::int64_t>{4, 4, 3});
  CHECK(loss.labels == 92);
  CHECK(loss.real_tokens == 103);
  CHECK(loss.labels == set.labels());
  CHECK(loss.real_tokens == set.real_tokens());
}

TEST_CASE("validation: the true mean and the published convention", "[data]") {
  const Corpus corpus = corpus_from_tokens({1, 2, 3, 0, 4, 0}, 0);
  const ValidationSet set = document_validation(corpus, corpus.documents(), 8);
  ValidationLoss loss;
  for (const ValidationBatch& b : set.batches(1)) loss.add(b, 3.0 * double(b.labels));  // 3 nats a prediction
  CHECK(loss.mean() == 3.0);
  CHECK(loss.published() == Approx(3.0 * 4 / 6));  // (4 - 1) + (2 - 1) losses over 4 + 2 tokens
}

TEST_CASE("validation: says what it had and what it needed", "[data]") {
  const Corpus corpus = corpus_from_tokens({1, 0, 0}, 0);
  CHECK_THROWS_WITH(packed_validation(corpus, ranges{{0, 3}}, 1),
                    Contains("a window has 1 tokens, needs at least 2"));
  CHECK_THROWS_WITH(document_validation(corpus, ranges{{0, 3}}, 0),
                    Contains("a window has 0 tokens, needs at least 2"));
  CHECK_THROWS_WITH(packed_validation(corpus, ranges{{0, 1}}, 4), Contains("and no label, needs 2 in a row"));
  CHECK_THROWS_WITH(packed_validation(corpus, ranges{}, 4), Contains("has 0 tokens and no label"));
  CHECK_THROWS_WITH(document_validation(corpus, ranges{{1, 2}, {2, 3}}, 4),
                    Contains("has 2 tokens and no label"));
  CHECK_THROWS_WITH(packed_validation(corpus, ranges{{0, 4}}, 4), Contains("leaves the corpus"));
  const ValidationSet set = packed_validation(corpus, ranges{{0, 3}}, 4);
  CHECK_THROWS_WITH(set.batches(0), Contains("a batch has 0 rows"));
  CHECK_THROWS_WITH(set.batch(1, 1), Contains("1 instances from 1 are asked for, has 1"));
}
