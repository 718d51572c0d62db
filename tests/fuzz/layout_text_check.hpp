// What must hold for any bytes that are taken for a layout text or for layout JSON. Used by the libFuzzer program and
// by the tests of layout/; the writer is a parameter so that a test can show that the check notices a wrong one.
#pragma once

#include <string>
#include <string_view>

#include <tranship/layout/json.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/view/picture.hpp>

namespace tranship::testing {

using LayoutWriter = std::string (*)(const ArraySpec&);

struct LayoutVerdict {
  bool accepted = false;
  /// Empty when all is well.
  std::string violation;
};

/// An accepted layout reads back from its own text and JSON, and can be drawn.
inline std::string violation_of(const ArraySpec& spec, LayoutWriter writer) {
  const Result<ArraySpec> from_json = try_array_spec_from_json(to_json(spec));
  if (!from_json) return "the written JSON is refused: " + from_json.error().message();
  if (!(from_json.value() == spec)) return "the written JSON says something else";

  const std::string text = writer(spec);
  const Result<ArraySpec> again = try_parse_layout(text);
  if (spec.distribution.is_indexed()) return again ? "a summary reads back" : "";
  if (text.size() > layout_text_bytes_max) return again ? "a text that is too long reads back" : "";
  if (!again) return "the written text is refused: " + again.error().message();
  if (!(again.value() == spec)) return "the written text says something else";
  if (writer(again.value()) != text) return "the written text is not canonical";

  // A layout may have more slices at the edge than are supported; nothing else can be wrong with its picture.
  const Result<std::string> drawn = attempt([&] { return picture_text(spec) + picture_svg(spec); });
  if (!drawn && drawn.error().code() != ErrorCode::unsupported) return "no picture: " + drawn.error().message();
  return "";
}

/// A refused text gets one line that begins with a column inside the text, or just behind it.
inline LayoutVerdict check_layout(std::string_view text, LayoutWriter writer) {
  if (const Result<ArraySpec> spec = try_parse_layout(text)) {
    return {true, violation_of(spec.value(), writer)};
  } else {
    const Error& error = spec.error();
    if (error.column < 1 || error.column > std::int64_t(text.size()) + 1) return {false, "a column outside the text"};
    if (!error.message().starts_with("column " + std::to_string(error.column) + ": "))
      return {false, "a message without its column: " + error.message()};
    for (const char c : error.message())
      if (c < ' ' || c > '~') return {false, "a message that is not one printable line"};
    if (caret(text, error.column).size() > 400) return {false, "a caret of more than two short lines"};
  }
  if (const Result<ArraySpec> spec = try_array_spec_from_json(text)) return {true, violation_of(spec.value(), writer)};
  return {};
}

}  // namespace tranship::testing
