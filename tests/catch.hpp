// Catch2, version 3 or 2, under version 2's names: TEST_CASE, REQUIRE, Approx, Catch::Contains, Catch::Message.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>

#include <string>

using Catch::Approx;

namespace Catch {

using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::Message;
using Matchers::StartsWith;

inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }

}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
