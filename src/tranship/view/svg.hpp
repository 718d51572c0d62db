// Private: common parts of all SVGs: a white page with a title, its fonts, and a colour for every rank.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <tranship/base/index.hpp>

namespace tranship {

struct Color {
  int red = 0, green = 0, blue = 0;
};

/// Returns one of the eight colours of Okabe and Ito, which colour-blind people can tell apart, or a lighter or darker
/// shade of one.
Color color_of(Rank rank);
/// "#56b4e9"
std::string hex(const Color& color);
/// Returns true if black is easier to read on the colour than white.
bool is_light(const Color& color);

/// Returns text with markup escaped, for content and attributes. Invisible characters (base/printable.hpp) become '?'.
std::string xml(std::string_view text);

/// The elements of a page, in drawing order.
class SvgPage {
 public:
  /// Adds an element as it is; all texts in it must have been escaped by xml().
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    body_ += fmt::format(format, std::forward<Args>(args)...);
  }
  /// `style` is one or more classes of the page's style sheet: caption, axis, tick-label, legend; middle, end.
  void text(double x, double y, std::string_view style, std::string_view what);

  struct Frame {
    double width = 0;
    double height = 0;
    std::string_view title;
    std::string_view caption = {};
  };
  /// Returns the whole document. It becomes wider if its title or caption needs that.
  std::string document(const Frame& frame) const;

 private:
  std::string body_;
};

}  // namespace tranship
