// Private: what all SVGs have in common: a white page with a title, its fonts, and a colour for every rank.
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

/// The eight of Okabe and Ito, which colour-blind people tell apart, then lighter and darker shades of them.
Color color_of(Rank rank);
/// "#56b4e9"
std::string hex(const Color& color);
/// Whether black is easier to read on it than white.
bool is_light(const Color& color);

/// Text with markup escaped, for content and for attributes; what is not seen (base/printable.hpp), as '?'.
std::string xml(std::string_view text);

/// Elements of a page, in the order in which they are drawn.
class SvgPage {
 public:
  /// An element, as it is: numbers and what xml() has escaped.
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
  /// The whole document. It becomes wider where its title or caption need that.
  std::string document(const Frame& frame) const;

 private:
  std::string body_;
};

}  // namespace tranship
