// Small token files of every kind, made by the tests.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "depthbench/data/corpus.hpp"

namespace depthbench_test {

template <class T>
std::string raw(const std::vector<T>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(T)};
}
template <class T>
std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count, const std::vector<T>& ids) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return raw(header) + raw(ids);
}
inline std::vector<std::int32_t> all_tokens(const depthbench::Corpus& corpus) {
  std::vector<std::int32_t> out(corpus.size());
  corpus.copy({0, corpus.size()}, out);
  return out;
}

}  // namespace depthbench_test
