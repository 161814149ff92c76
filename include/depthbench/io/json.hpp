// A strict JSON pull reader (RFC 8259) for file headers: the caller says what it expects next, nothing is
// built in memory, and every error names the byte. Text must be UTF-8; nesting ends at 64 levels.
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "depthbench/core/error.hpp"
#include "depthbench/io/utf8.hpp"

namespace depthbench {

// JsonReader json(text, "model.safetensors");
// json.object([&](const std::string& key) { key == "shape" ? shape(json) : json.skip(); });   json.finish();
//   each call reads one value and throws format_error if another kind of value stands there
//   object: member(key) must read the member's value; equal keys are the caller's to reject
class JsonReader {
 public:
  static constexpr int max_depth = 64;

  // name: how errors call the text; offset: where it starts in its file
  JsonReader(std::string_view text, std::string name, std::size_t offset = 0)
      : text_(text), name_(std::move(name)), offset_(offset) {}

  template <class Member>
  void object(Member&& member) {
    open('{', "an object");
    if (!take('}')) {
      do {
        const std::string key = string();
        need(':', "':'");
        member(key);
      } while (take(','));
      need('}', "',' or '}'");
    }
    --depth_;
  }

  template <class Element>
  void array(Element&& element) {
    open('[', "an array");
    if (!take(']')) {
      do element();
      while (take(','));
      need(']', "',' or ']'");
    }
    --depth_;
  }

  std::string string() {
    need('"', "a string");
    std::string out;
    while (pos_ < text_.size() && text_[pos_] != '"') {
      const unsigned char c = static_cast<unsigned char>(text_[pos_]);
      if (c < 0x20) wrong("a string without control characters");
      if (c == '\\') {
        escape(out);
      } else {
        const std::size_t n = utf8_sequence(text_.substr(pos_));
        if (n == 0) wrong("UTF-8");
        out.append(text_, pos_, n);
        pos_ += n;
      }
    }
    if (pos_ == text_.size()) wrong("'\"'");
    ++pos_;
    return out;
  }

  std::int64_t integer() {
    const std::string_view digits = number_text();
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc{} || end != digits.data() + digits.size()) {
      pos_ -= digits.size();
      wrong("a whole number of 64 bits");
    }
    return value;
  }

  double number() {
    const std::string_view digits = number_text();
    double value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) {
      pos_ -= digits.size();
      wrong("a number that a double can hold");
    }
    return value;
  }

  // Reads any value and forgets it.
  void skip() {
    switch (peek()) {
      case '{':
        return object([this](const std::string&) { skip(); });
      case '[':
        return array([this] { skip(); });
      case '"':
        string();
        return;
      case 't':
        return literal("true");
      case 'f':
        return literal("false");
      case 'n':
        return literal("null");
      default:
        number_text();
    }
  }

  // Only white space may follow.
  void finish() {
    peek();
    if (pos_ != text_.size()) wrong("the end of the text");
  }

  std::size_t position() const { return offset_ + pos_; }  // byte in the file
  [[noreturn]] void wrong(std::string_view needed) const {
    if (pos_ >= text_.size())
      fail<format_error>("{}: byte {}: the JSON text ends, needs {}", name_, position(), needed);
    const unsigned char c = static_cast<unsigned char>(text_[pos_]);
    if (c > 0x20 && c < 0x7f)
      fail<format_error>("{}: byte {}: has '{}', needs {}", name_, position(), char(c), needed);
    fail<format_error>("{}: byte {}: has the byte 0x{:02x}, needs {}", name_, position(), c, needed);
  }

 private:
  char peek() {  // past white space; 0 at the end
    while (pos_ < text_.size() && std::string_view(" \t\n\r").find(text_[pos_]) != std::string_view::npos)
      ++pos_;
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || pos_ == text_.size()) return false;
    ++pos_;
    return true;
  }
  void need(char c, std::string_view what) {
    if (!take(c)) wrong(what);
  }
  void open(char bracket, std::string_view what) {
    need(bracket, what);
    if (++depth_ > max_depth) wrong("at most 64 levels of brackets");
  }
  void literal(std::string_view word) {
    if (text_.substr(pos_, word.size()) != word) wrong(word);
    pos_ += word.size();
  }
  bool digits() {
    const std::size_t before = pos_;
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') ++pos_;
    return pos_ > before;
  }
  bool at(std::string_view any) const {
    return pos_ < text_.size() && any.find(text_[pos_]) != std::string_view::npos;
  }

  // -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
  std::string_view number_text() {
    peek();
    const std::size_t start = pos_;
    if (at("-")) ++pos_;
    if (at("0"))
      ++pos_;
    else if (!digits())
      wrong("a number");
    if (at(".")) {
      ++pos_;
      if (!digits()) wrong("a digit");
    }
    if (at("eE")) {
      ++pos_;
      if (at("+-")) ++pos_;
      if (!digits()) wrong("a digit");
    }
    return text_.substr(start, pos_ - start);
  }

  void escape(std::string& out) {
    ++pos_;  // the backslash
    static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (at(letters)) {
      out += meanings[letters.find(text_[pos_++])];
      return;
    }
    std::uint32_t code = hex4();
    if (code >= 0xD800 && code < 0xDC00 && at("\\")) {  // the upper half of a surrogate pair
      ++pos_;
      const std::uint32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) wrong("the lower half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xD800 && code <= 0xDFFF) {
      wrong("a surrogate pair");
    }
    append_utf8(out, code);
  }
  std::uint32_t hex4() {  // uXXXX
    if (!at("u")) wrong("an escape of JSON");
    ++pos_;
    std::uint32_t code = 0;
    const std::string_view four = text_.substr(pos_, 4);
    const auto [end, error] = std::from_chars(four.data(), four.data() + four.size(), code, 16);
    if (four.size() < 4 || error != std::errc{} || end != four.data() + 4) wrong("four hexadecimal digits");
    pos_ += 4;
    return code;
  }

  std::string_view text_;
  std::string name_;
  std::size_t offset_ = 0, pos_ = 0;
  int depth_ = 0;
};

// "text" with quotes and escapes, for headers that we write.
//   throws format_error if text is not UTF-8: no reader would take it
inline std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_sequence(text.substr(i));
    if (n == 0)
      fail<format_error>("json_quote: byte {} is 0x{:02x}, needs UTF-8", i,
                         static_cast<unsigned char>(text[i]));
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x20)
      out += fmt::format("\\u{:04x}", c);
    else if (c == '"' || c == '\\')
      (out += '\\') += char(c);
    else
      out.append(text, i, n);
    i += n;
  }
  return out + '"';
}

}  // namespace depthbench
