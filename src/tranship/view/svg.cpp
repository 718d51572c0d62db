#include "tranship/view/svg.hpp"

#include <algorithm>

#include <tranship/base/printable.hpp>
#include <tranship/view/picture.hpp>

namespace tranship {
namespace {

constexpr std::string_view defs =
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#ffffff\" fill-opacity=\"0.35\"/>"
    "<path d=\"M0 0V6\" stroke=\"#1a1a1a\" stroke-width=\"2\"/></pattern></defs>\n"
    "<style>text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#333}"
    ".title{font:600 14px ui-monospace,Menlo,'DejaVu Sans Mono',monospace;fill:#1a1a1a}"
    ".caption,.axis{font-size:13px}.tick-label{font-size:11px;fill:#666}.legend{font-size:13px}"
    ".block{stroke:#ffffff;stroke-width:1}.rank{text-anchor:middle;font-weight:600;stroke-width:2.5;paint-order:"
    "stroke}.middle{text-anchor:middle}.end{text-anchor:end}"
    ".tick{stroke:#999;stroke-width:1}.overlap{fill:url(#hatch);stroke:#1a1a1a;stroke-width:1.5}</style>\n"
    "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";

}  // namespace

Color color_of(Rank rank) {
  constexpr Color base[] = {{86, 180, 233}, {230, 159, 0}, {0, 158, 115}, {204, 121, 167},
                            {240, 228, 66}, {0, 114, 178}, {213, 94, 0},  {153, 153, 153}};
  // Every round of 24 ranks starts at another colour, so that rows of 24, 48 or 192 ranks do not look alike.
  const Index index = (rank + Index(rank) / 24 * 5) % 24;
  const Color c = base[index % 8];
  if (index < 8) return c;
  if (index < 16) return {(c.red + 255) / 2, (c.green + 255) / 2, (c.blue + 255) / 2};
  return {c.red * 3 / 5, c.green * 3 / 5, c.blue * 3 / 5};
}

std::string hex(const Color& c) {
  return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue);
}

bool is_light(const Color& c) {
  return 299 * c.red + 587 * c.green + 114 * c.blue > 125'000;
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void SvgPage::text(double x, double y, std::string_view style, std::string_view what) {
  add("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, xml(what));
}

std::string SvgPage::document(const Frame& frame) const {
  const double width =
      std::max({frame.width, 48 + 8.7 * double(frame.title.size()), 48 + 6.8 * double(frame.caption.size())});
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n{4}",
      width, frame.height, xml(frame.title), picture_mark, defs);
  out += fmt::format("<text x=\"24\" y=\"34\" class=\"title\">{}</text>\n", xml(frame.title));
  if (!frame.caption.empty())
    out += fmt::format("<text x=\"24\" y=\"56\" class=\"caption\">{}</text>\n", xml(frame.caption));
  return out + body_ + "</svg>\n";
}

}  // namespace tranship
