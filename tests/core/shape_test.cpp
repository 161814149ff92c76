#include "depthbench/core/shape.hpp"

#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("shape: extents, rows and columns", "[core]") {
  const Shape s{8, 2, 64};
  CHECK(s.rank() == 3);
  CHECK(s[0] == 8);
  CHECK(s[2] == 64);
  CHECK(s.numel() == 8 * 2 * 64);
  CHECK(s.rows() == 16);
  CHECK(s.cols() == 64);
  const Shape scalar;
  CHECK(scalar.rank() == 0);
  CHECK(scalar.numel() == 1);
  CHECK(scalar.rows() == 1);
  CHECK(scalar.cols() == 1);
  const Shape vector{5};
  CHECK(vector.rows() == 1);
  CHECK(vector.cols() == 5);
  CHECK(Shape{3, 0}.numel() == 0);
  CHECK(Shape{3, 1} == Shape{3, 1});
  CHECK_FALSE(Shape{3, 1} == Shape{3});
  CHECK_FALSE(Shape{3, 1} == Shape{1, 3});
}

TEST_CASE("shape: its text, and what is no shape", "[core]") {
  CHECK(Shape{8, 2, 64}.text() == "(8, 2, 64)");
  CHECK(Shape{7}.text() == "(7)");
  CHECK(Shape{}.text() == "()");
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5}), shape_error);
  CHECK_THROWS_WITH((Shape{1, 2, 3, 4, 5}), "Shape: at most 4 axes");
  CHECK_THROWS_WITH((Shape{1, -2}), "Shape: an extent is negative");
}

TEST_CASE("errors: which op, which argument, what it had, what it needed", "[core]") {
  CHECK_NOTHROW(check_shape("aggregate", "H_pre", {4, 2}, {4, 2}));
  CHECK_THROWS_AS(check_shape("aggregate", "H_pre", {4}, {2}), shape_error);
  CHECK_THROWS_WITH(check_shape("aggregate", "H_pre", {4}, {2, 3}),
                    "aggregate: H_pre has shape (4), needs (2, 3)");
  CHECK_THROWS_WITH(fail<numeric_error>("{} is {}", "loss", 1.5), "loss is 1.5");
  const auto caught_as_error = [](auto kind) {
    try {
      fail<decltype(kind)>("text");
    } catch (const error& e) {
      return std::string(e.what()) == "text";
    }
    return false;
  };
  CHECK(caught_as_error(shape_error("")));
  CHECK(caught_as_error(dtype_error("")));
  CHECK(caught_as_error(tape_error("")));
  CHECK(caught_as_error(format_error("")));
  CHECK(caught_as_error(file_error("")));
  CHECK(caught_as_error(config_error("")));
  CHECK(caught_as_error(numeric_error("")));
}
