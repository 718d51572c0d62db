#include "tranship/view/picture.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/view/svg.hpp>

namespace tranship {
namespace {

constexpr std::string_view symbols = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr int legend_rows_max = 24;
constexpr int title_chars_max = 110;

// Common to both pictures.

// Consecutive cells of one dimension with one owner. Interfaces that it shares with the neighbouring blocks come on
// top; it has half of each.
struct Block {
  Interval cells;  // may be empty beside shared interfaces
  Index part = 0;
  bool shares_lower = false, shares_upper = false;

  Index first_owned() const { return cells.lower - (shares_lower ? 1 : 0); }
};

// The blocks of a dimension from cell 0 on, as many as are shown.
struct Axis {
  int dim = -1;  // -1: the rows of a 1-dimensional array
  Index extent = 1;
  std::vector<Block> blocks;

  Index shown() const { return blocks.empty() ? 0 : blocks.back().cells.upper + (blocks.back().shares_upper ? 1 : 0); }
  bool complete() const { return shown() == extent; }
};

std::vector<Block> leading_blocks(const AxisParts& axis, Index count_max) {
  std::vector<Block> out;
  const Partition& rule = axis.partition();
  // A block ends with an interface that the next part owns, too.
  const bool shares = rule.kind != PartitionKind::cyclic && rule.kind != PartitionKind::whole;
  for (Index cell = 0; cell < axis.extent() && Index(out.size()) < count_max;) {
    const bool shares_lower = !out.empty() && out.back().shares_upper;
    const Index part = axis.owner(cell);
    Index upper = axis.extent();
    if (rule.kind == PartitionKind::cyclic) {
      upper = rule.block_size > axis.extent() - cell ? axis.extent() : cell + rule.block_size;
    } else if (rule.kind != PartitionKind::whole) {
      const SliceFamily slice = axis.slices(part).front();
      upper = slice.start + slice.length;
    }
    const bool shares_upper = shares && axis.owner(upper - 1) != part;
    if (shares_upper) --upper;
    out.push_back({{cell + (shares_lower ? 1 : 0), upper}, part, shares_lower, shares_upper});
    cell = upper;
  }
  return out;
}

// Returns the one or two dimensions to show, in increasing order; it prefers dimensions that the grid cuts.
std::vector<int> shown_dims(const Distribution& d) {
  std::vector<int> out;
  for (const bool cut : {true, false})
    for (int i = 0; i < d.dims() && out.size() < 2; ++i)
      if ((d.grid().extents()[i] > 1) == cut) out.push_back(i);
  std::sort(out.begin(), out.end());
  return out;
}

struct Map {
  Axis rows, columns;
  Indices cell;         // in each dimension; dimensions that are not shown are fixed at it
  std::string caption;  // empty when the picture shows all dimensions
};

// Returns a cell of a dimension that only this part owns, if there is one.
std::optional<Index> cell_of(const AxisParts& axis, Index part) {
  for (const SliceFamily& slice : axis.slices(part))
    for (Index cell = slice.start; cell < std::min(slice.start + slice.length, slice.start + 2); ++cell)
      if (axis.replicated() || axis.owner(cell) == part) return cell;
  return std::nullopt;
}

// Fixes the dimensions that are not shown at cell 0, or at a cell that `through` owns. `blocks_max(axis)` returns how
// many blocks of a dimension to look at.
template <class BlocksMax>
Map map_of(const Distribution& d, const std::optional<Place>& through, BlocksMax&& blocks_max) {
  if (d.is_indexed())
    throw_error(ErrorCode::unsupported, "an indexed distribution of {} has no picture", amount(d.id_count(), "id"));
  auto axis_of = [&](int dim, bool is_rows) {
    return Axis{dim, d.extents()[dim], leading_blocks(d.axis(dim), blocks_max(d.axis(dim), is_rows))};
  };
  const std::vector<int> dims = shown_dims(d);
  Map out;
  out.columns = axis_of(dims.back(), false);
  out.rows = dims.size() == 2 ? axis_of(dims.front(), true) : Axis{.blocks = {{{0, 1}, 0}}};
  std::string at;
  bool any_at_0 = false;
  for (int i = 0; i < d.dims(); ++i) {
    const bool is_shown = i == out.rows.dim || i == out.columns.dim;
    const std::optional<Index> cell = through && !is_shown ? cell_of(d.axis(i), through->coordinates[i]) : std::nullopt;
    out.cell.push_back(cell.value_or(0));
    any_at_0 |= !is_shown && out.cell[i] == 0;
    if (out.cell[i] != 0) at += fmt::format(", at cell {} of dimension {}", out.cell[i], i);
  }
  if (d.dims() > 2)
    out.caption = fmt::format("dimensions {} and {} of {}{}{}", dims[0], dims[1], d.dims(), at,
                              any_at_0 ? ", at cell 0 of the others" : "");
  return out;
}

// Returns the part that owns a block. Coordinates that are not shown come from the cell at which they are fixed.
template <class Row, class Column>
Place place_of(const Distribution& d, const Map& map, const Row& row, const Column& column) {
  Place out;
  for (int i = 0; i < d.dims(); ++i)
    out.coordinates.push_back(i == map.columns.dim ? column.part
                              : i == map.rows.dim  ? row.part
                              : d.extents()[i] > 0 ? d.axis(i).owner(map.cell[i])
                                                   : 0);
  return out;
}

// All ranks that hold the same cells as `place`, by ordinal; at most `count_max` of them are listed.
struct Holders {
  std::vector<Rank> first;
  Index count = 1;
};

Holders holders_of(const Distribution& d, const Place& place, Index count_max) {
  const Grid& grid = d.grid();
  Indices copies;
  Holders out{.first = {}, .count = grid.replicas()};
  for (int i = 0; i < d.dims(); ++i) {
    copies.push_back(d.axis(i).replicated() ? grid.extents()[i] : 1);
    out.count *= copies[i];
  }
  // Counts in mixed radix: the copies of one replica, then those of the next.
  for (Index n = 0; n < std::min(out.count, count_max); ++n) {
    Place copy = place;
    Index rest = n;
    for (int i = d.dims() - 1; i >= 0; --i) {
      if (copies[i] > 1) copy.coordinates[i] = rest % copies[i];
      rest /= copies[i];
    }
    copy.replica = rest;
    out.first.push_back(grid.rank_of(copy));
  }
  return out;
}

std::string rank_names(const Holders& holders) {
  return fmt::format("{}{}", join_text(holders.first, ", "),
                     holders.count > Index(holders.first.size()) ? ", ..." : "");
}

struct LegendRow {
  Rank rank = 0;  // the first rank, which gives the colour
  std::string ranks;
  Index cells = 0;
};

// Returns one row for every part that the map shows, sorted by rank; `more` counts rows that are left out.
std::vector<LegendRow> legend_of(const Distribution& d, const Map& map, Index& more) {
  std::map<Index, const Block*> rows, columns;
  for (const Block& block : map.rows.blocks) rows.emplace(block.part, &block);
  for (const Block& block : map.columns.blocks) columns.emplace(block.part, &block);
  std::map<Rank, Place> places;
  for (const auto& [row_part, row] : rows)
    for (const auto& [column_part, column] : columns) {
      const Place place = place_of(d, map, *row, *column);
      places.emplace(d.grid().rank_of(place), place);
    }
  std::vector<LegendRow> out;
  for (const auto& [rank, place] : places) {
    if (out.size() == legend_rows_max) break;
    const Holders holders = holders_of(d, place, 4);
    LegendRow row{rank, (holders.count > 1 ? "ranks " : "rank ") + rank_names(holders), 1};
    for (int i = 0; i < d.dims(); ++i) row.cells *= d.axis(i).owned_count(place.coordinates[i]);
    out.push_back(row);
  }
  more = Index(places.size() - out.size());
  return out;
}

std::string shown_part(const Axis& axis) {
  const std::string unit = plural(axis.extent, "cell");
  if (axis.complete()) return fmt::format("dimension {}: {} {}", axis.dim, grouped(axis.extent), unit);
  return fmt::format("dimension {}: the first {} of {} {}", axis.dim, grouped(axis.shown()), grouped(axis.extent),
                     unit);
}

std::string shortened(std::string out) {
  if (out.size() > title_chars_max) out = out.substr(0, title_chars_max - 3) + "...";
  return out;
}

// Text.

// The cells for which one character, or one number, stands.
struct Piece {
  Interval cells;
  Index part = 0;
  bool is_shared = false;  // one interface of this part and the part before it
  bool is_first = false;   // first piece of its block
};

// Returns the pieces of an axis. Every block with cells of its own is cut into at least one piece, and a shared
// interface is one piece. Blocks without room are left out.
std::vector<Piece> pieces_of(Axis& axis, Index pieces_max) {
  Index per_piece = 1;
  auto pieces_in = [&](const Block& block) {
    return block.cells.empty() ? 0 : std::max<Index>(1, block.cells.length() / per_piece);
  };
  auto total = [&] {
    Index out = 0;
    for (const Block& block : axis.blocks)
      out += pieces_in(block) + (block.shares_upper && &block != &axis.blocks.back() ? 1 : 0);
    return out;
  };
  // Finds the fewest cells per piece at which all blocks fit.
  per_piece = std::max<Index>(1, ceil_divide(axis.shown(), pieces_max));
  while (total() > pieces_max && per_piece < axis.shown()) per_piece += ceil_divide(per_piece, 8);
  while (total() > pieces_max && axis.blocks.size() > 1) axis.blocks.pop_back();
  if (!axis.blocks.empty() && axis.shown() < axis.extent) axis.blocks.back().shares_upper = false;
  std::vector<Piece> out;
  for (const Block& block : axis.blocks) {
    if (block.shares_lower)
      out.push_back({.cells = {block.cells.lower - 1, block.cells.lower},
                     .part = block.part,
                     .is_shared = true,
                     .is_first = true});
    const Index pieces = pieces_in(block);
    if (pieces == 0) continue;
    const Index length = block.cells.length() / pieces, longer = block.cells.length() % pieces;
    Index lower = block.cells.lower;
    for (Index i = 0; i < pieces; ++i) {
      const Index upper = lower + length + (i < longer ? 1 : 0);
      out.push_back({.cells = {lower, upper}, .part = block.part, .is_first = i == 0 && !block.shares_lower});
      lower = upper;
    }
  }
  return out;
}

// Writes ranks: by one character if there are enough of them, else by number.
class Glyphs {
 public:
  Glyphs(Index width, PictureColors colors) : width_(width), colors_(colors) {}

  /// Returns the width for ranks up to this one; numbers are separated by a space.
  static Index width_for(Rank rank_max) {
    return std::size_t(rank_max) < symbols.size() ? 1 : Index(fmt::format(" {}", rank_max).size());
  }
  std::string of(Rank rank) const {
    std::string glyph = width_ == 1 ? std::string(1, symbols[std::size_t(rank)]) : fmt::format("{:>{}}", rank, width_);
    if (colors_ == PictureColors::plain) return glyph;
    // The nearest colour of the 6x6x6 cube of terminals.
    const Color c = color_of(rank);
    auto level = [](int value) { return (value * 5 + 127) / 255; };
    return fmt::format("\x1b[48;5;{}m\x1b[38;5;{}m{}\x1b[0m",
                       16 + 36 * level(c.red) + 6 * level(c.green) + level(c.blue), is_light(c) ? 16 : 231, glyph);
  }
  std::string shared() const { return fmt::format("{:>{}}", '+', width_); }
  Index width() const { return width_; }

 private:
  Index width_;
  PictureColors colors_;
};

// Writes the first cells of blocks above their columns, as many as fit without touching.
std::string column_labels(const std::vector<Piece>& columns, Index width) {
  std::string out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string label = fmt::format("{}", columns[i].cells.lower);
    // Right-aligns numbers with their column.
    const std::size_t end = (i + 1) * std::size_t(width);
    const std::size_t at = width == 1 ? i : end - std::min(end, label.size());
    if (!columns[i].is_first || (!out.empty() && at < out.size() + 1)) continue;
    out.resize(at, ' ');
    out += label;
  }
  return out;
}

// SVG.

constexpr Index svg_blocks_max = 48;      // per dimension; with more, only the leading blocks are shown
constexpr Index svg_blocks_leading = 24;  // or two rounds of all parts
constexpr double plot_px_max = 560, plot_px_min = 200, bar_px = 84;

// The position of an axis and its cells on the page.
struct Scale {
  double origin = 0;
  double length = 0;
  double px_per_cell = 0;

  double at(Index cell) const { return origin + double(cell) * px_per_cell; }
  double end() const { return origin + length; }
};

struct Span {
  double begin = 0, end = 0;
  double length() const { return end - begin; }
};

// One slice, along one axis, of the rank whose overlap is shown.
struct HatchedSlice {
  Interval owned, stored;
};

// Returns a place in the middle of what is shown, which has neighbours on all sides. In the dimensions that are not
// shown it owns cell 0.
Place middle_place(const Distribution& d) {
  Place out;
  const std::vector<int> dims = shown_dims(d);
  for (int i = 0; i < d.dims(); ++i) {
    const AxisParts& axis = d.axis(i);
    const bool is_shown = std::find(dims.begin(), dims.end(), i) != dims.end();
    Index part = axis.partition().kind == PartitionKind::whole ? 0 : axis.parts() / 2;
    if (!is_shown && axis.extent() > 0) part = axis.owner(0);
    if (axis.owned_count(part) == 0) part = axis.extent() > 0 ? axis.owner(0) : 0;
    out.coordinates.push_back(part);
  }
  return out;
}

std::vector<HatchedSlice> shown_slices(const Axis& axis, const Distribution& d, Index part) {
  if (axis.dim < 0) return {{{0, 1}, {0, 1}}};
  std::vector<HatchedSlice> out;
  for (const SliceFamily& f : d.axis(axis.dim).slices(part))
    for (Index k = 0; k < f.count; ++k) {
      const Interval owned{f.start + k * f.period, f.start + k * f.period + f.length};
      if (owned.lower >= axis.shown()) return out;
      out.push_back({owned, {owned.lower - f.left, owned.upper + f.right}});
    }
  return out;
}

class SvgPicture {
 public:
  SvgPicture(const Distribution& distribution, const SvgOptions& options, std::string title)
      : distribution_(distribution),
        title_(std::move(title)),
        hatched_(hatched_of(distribution_, options)),
        map_(map_of(distribution_, hatched_, [](const AxisParts&, bool) { return svg_blocks_max + 1; })) {
    for (Axis* axis : {&map_.rows, &map_.columns}) shorten(*axis);
    if (hatched_ && owns_shown_cells()) {
      row_slices_ = shown_slices(map_.rows, distribution_, part_of(map_.rows));
      column_slices_ = shown_slices(map_.columns, distribution_, part_of(map_.columns));
    }
    place_plot();
  }

  std::string draw() {
    const bool empty = map_.rows.shown() == 0 || map_.columns.shown() == 0;
    if (empty) {
      page_.text(columns_.origin, rows_.origin + 20, "caption", "no cells");
    } else {
      blocks();
      if (has_overlap()) overlap();
      labels();
      ticks();
    }
    axis_titles();
    const double legend_end = empty ? 0 : legend();
    return document(std::max(rows_.end() + 62, legend_end + 16));
  }

 private:
  // Returns nothing for a rank without a part of the array.
  static std::optional<Place> hatched_of(const Distribution& d, const SvgOptions& options) {
    if (d.is_indexed()) return std::nullopt;
    return options.rank ? d.grid().place_of(*options.rank) : std::optional(middle_place(d));
  }
  bool owns_shown_cells() const {
    for (int i = 0; i < distribution_.dims(); ++i)
      if (distribution_.axis(i).owned_count(hatched_->coordinates[i]) == 0) return false;
    return true;
  }
  Index part_of(const Axis& axis) const { return axis.dim < 0 ? 0 : hatched_->coordinates[axis.dim]; }

  void shorten(Axis& axis) const {
    if (Index(axis.blocks.size()) <= svg_blocks_max) return;
    const Index two_rounds = 2 * distribution_.axis(axis.dim).parts();
    axis.blocks.resize(std::clamp<Index>(two_rounds, svg_blocks_leading, svg_blocks_max));
    axis.blocks.back().shares_upper = false;
  }

  // Shapes of the page.

  void place_plot() {
    const double rows = std::max<double>(1, double(map_.rows.shown()));
    const double columns = std::max<double>(1, double(map_.columns.shown()));
    columns_.length = rows_.length = plot_px_max;
    if (map_.rows.dim < 0) {
      rows_.length = bar_px;
    } else if (rows <= columns) {
      rows_.length = std::max(plot_px_min, plot_px_max * rows / columns);
    } else {
      columns_.length = std::max(plot_px_min, plot_px_max * columns / rows);
    }
    columns_.px_per_cell = columns_.length / columns;
    rows_.px_per_cell = rows_.length / rows;
    // Leaves room for overlap beyond the edge, then for labels.
    const double labels = 56 + 7 * double(fmt::format("{}", map_.rows.shown()).size());
    columns_.origin = std::max(84.0, labels) + beyond(columns_, column_slices_, map_.columns, -1);
    rows_.origin = (map_.caption.empty() ? 72 : 92) + beyond(rows_, row_slices_, map_.rows, -1);
    right_ = columns_.end() + beyond(columns_, column_slices_, map_.columns, 1);
    bottom_ = rows_.end() + beyond(rows_, row_slices_, map_.rows, 1);
  }

  // Returns how far overlap reaches beyond the first (side -1) or last shown cell.
  static double beyond(const Scale& scale, const std::vector<HatchedSlice>& slices, const Axis& axis, int side) {
    Index cells = 0;
    for (const HatchedSlice& slice : slices)
      cells = std::max(cells, side < 0 ? -slice.stored.lower : slice.stored.upper - axis.extent);
    if (cells <= 0 || (side > 0 && !axis.complete())) return 0;
    return std::clamp(double(cells) * scale.px_per_cell, thin_px, 90.0);
  }

  // An interface that two parts own is drawn as two halves, one in each colour.
  static Span span_of(const Scale& scale, const Block& block) {
    const double half = scale.px_per_cell / 2;
    return {scale.at(block.cells.lower) - (block.shares_lower ? half : 0),
            scale.at(block.cells.upper) + (block.shares_upper ? half : 0)};
  }

  // Calls `f(x, y, place, color)` for every block.
  template <class F>
  void for_each_block(F&& f) const {
    for (const Block& row : map_.rows.blocks)
      for (const Block& column : map_.columns.blocks) {
        const Place place = place_of(distribution_, map_, row, column);
        f(span_of(columns_, column), span_of(rows_, row), place, color_of(distribution_.grid().rank_of(place)));
      }
  }

  void blocks() {
    for_each_block([&](const Span& x, const Span& y, const Place&, const Color& c) {
      page_.add("<rect class=\"block\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
                x.begin, y.begin, x.length(), y.length(), hex(c));
    });
  }

  void labels() {
    for_each_block([&](const Span& x, const Span& y, const Place& place, const Color& c) { label(x, y, place, c); });
  }

  // Labels a block with its ranks, as large as fits; a small block gets only the first rank, or no label.
  void label(const Span& x, const Span& y, const Place& place, const Color& c) {
    for (const Index count_max : {4, 1}) {
      const std::string ranks = rank_names(holders_of(distribution_, place, count_max));
      const double size = std::min({18.0, y.length() * 0.6, x.length() * 1.3 / double(ranks.size())});
      if (size < 6) continue;
      // The outline keeps the label readable on hatching.
      page_.add(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"rank\" font-size=\"{:.1f}\" style=\"fill:{};stroke:{}\">{}</text>\n",
          (x.begin + x.end) / 2, (y.begin + y.end) / 2 + size * 0.35, size, is_light(c) ? "#1a1a1a" : "#ffffff", hex(c),
          ranks);
      return;
    }
  }

  bool has_overlap() const {
    auto wider = [](const HatchedSlice& slice) { return slice.stored != slice.owned; };
    return std::any_of(row_slices_.begin(), row_slices_.end(), wider) ||
           std::any_of(column_slices_.begin(), column_slices_.end(), wider);
  }

  // Returns the pixels of a stored range. Overlap thinner than a line is drawn as wide as a line.
  static Span stored_span(const Scale& scale, const HatchedSlice& slice) {
    Span out{scale.at(slice.stored.lower), scale.at(slice.stored.upper)};
    if (slice.stored.lower < slice.owned.lower) out.begin = std::min(out.begin, scale.at(slice.owned.lower) - thin_px);
    if (slice.stored.upper > slice.owned.upper) out.end = std::max(out.end, scale.at(slice.owned.upper) + thin_px);
    return out;
  }

  void overlap() {
    const double left = columns_.origin - beyond(columns_, column_slices_, map_.columns, -1);
    const double top = rows_.origin - beyond(rows_, row_slices_, map_.rows, -1);
    page_.add("<clipPath id=\"plot\"><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/></clipPath>\n",
              left - 1, top - 1, right_ - left + 2, bottom_ - top + 2);
    page_.add("<g clip-path=\"url(#plot)\">\n");
    for (const HatchedSlice& row : row_slices_)
      for (const HatchedSlice& column : column_slices_) {
        const Span x = stored_span(columns_, column), y = stored_span(rows_, row);
        const Span in_x{columns_.at(column.owned.lower), columns_.at(column.owned.upper)};
        const Span in_y{rows_.at(row.owned.lower), rows_.at(row.owned.upper)};
        page_.add(
            "<path class=\"overlap\" fill-rule=\"evenodd\" d=\"M{:.2f} {:.2f}H{:.2f}V{:.2f}H{:.2f}Z"
            "M{:.2f} {:.2f}H{:.2f}V{:.2f}H{:.2f}Z\"/>\n",
            x.begin, y.begin, x.end, y.end, x.begin, in_x.begin, in_y.begin, in_x.end, in_y.end, in_x.begin);
      }
    page_.add("</g>\n");
  }

  // Draws the first cells of blocks and the end, as many as have room; dots if the array continues.
  void ticks() {
    auto place = [](const Axis& axis, const Scale& scale, double room_px, auto&& label) {
      const std::string end = axis.complete() ? fmt::format("{}", axis.extent) : "\u2026";
      double next = scale.origin;
      for (const Block& block : axis.blocks) {
        const double at = scale.at(block.first_owned());
        if (at < next || at > scale.end() - room_px) continue;
        label(at, fmt::format("{}", block.first_owned()));
        next = at + room_px;
      }
      label(scale.end(), end);
    };
    const std::size_t digits = fmt::format("{}", map_.columns.shown()).size();
    place(map_.columns, columns_, 14 + 7 * double(digits), [&](double x, const std::string& what) {
      page_.add("<path class=\"tick\" d=\"M{0:.1f} {1:.1f}v5\"/>\n", x, bottom_ + 2);
      page_.text(x, bottom_ + 19, "tick-label middle", what);
    });
    if (map_.rows.dim < 0) return;
    const double left = columns_.origin - beyond(columns_, column_slices_, map_.columns, -1);
    place(map_.rows, rows_, 16, [&](double y, const std::string& what) {
      page_.add("<path class=\"tick\" d=\"M{0:.1f} {1:.1f}h-5\"/>\n", left - 2, y);
      page_.text(left - 10, y + 4, "tick-label end", what);
    });
  }

  void axis_titles() {
    page_.text((columns_.origin + columns_.end()) / 2, bottom_ + 40, "axis middle", shown_part(map_.columns));
    if (map_.rows.dim < 0) return;
    const double y = (rows_.origin + rows_.end()) / 2;
    page_.add("<text transform=\"translate(22 {:.1f}) rotate(-90)\" class=\"axis middle\">{}</text>\n", y,
              shown_part(map_.rows));
  }

  double legend() {
    const double x = right_ + 28;
    double y = rows_.origin;
    Index more = 0;
    for (const LegendRow& row : legend_of(distribution_, map_, more)) {
      const Color c = color_of(row.rank);
      page_.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" rx=\"2\" fill=\"{}\"/>\n", x, y, hex(c));
      legend_line(x + 22, y + 11, row.ranks + ": " + counted(row.cells, "cell"));
      y += 20;
    }
    if (more > 0) {
      legend_line(x + 22, y + 11, fmt::format("and {} more", grouped(more)));
      y += 20;
    }
    if (has_overlap()) {
      y += 6;
      page_.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" class=\"overlap\"/>\n", x, y);
      legend_line(x + 22, y + 11, fmt::format("overlap of rank {}", distribution_.grid().rank_of(*hatched_)));
      y += 20;
    }
    return y;
  }

  void legend_line(double x, double y, const std::string& what) {
    page_.text(x, y, "legend", what);
    width_ = std::max(width_, x + 7.2 * double(what.size()) + 16);
  }

  std::string document(double height) {
    return page_.document({.width = std::max(width_, right_ + 40),
                           .height = std::max(height, bottom_ + 56),
                           .title = title_,
                           .caption = map_.caption});
  }

  static constexpr double thin_px = 3;

  const Distribution& distribution_;
  std::string title_;
  std::optional<Place> hatched_;
  Map map_;
  std::vector<HatchedSlice> row_slices_, column_slices_;
  Scale rows_, columns_;
  double right_ = 0, bottom_ = 0;  // of the plot, including the overlap beyond its edge
  double width_ = 0;
  SvgPage page_;
};

}  // namespace

std::string picture_text(const ArraySpec& spec, const PictureOptions& options) {
  const Distribution& d = spec.distribution;
  if (options.max_columns < 1 || options.max_rows < 1)
    throw_error(ErrorCode::invalid_use, "a picture of {} and {}; at least 1 of each is needed",
                amount(options.max_columns, "column"), amount(options.max_rows, "row"));
  Map map;
  std::vector<Piece> rows, columns;
  Glyphs glyphs(1, options.colors);
  for (;;) {
    const Index columns_max = std::max<Index>(1, options.max_columns / glyphs.width());
    map = map_of(d, std::nullopt,
                 [&](const AxisParts&, bool is_rows) { return is_rows ? Index(options.max_rows) : columns_max; });
    rows = pieces_of(map.rows, options.max_rows);
    columns = pieces_of(map.columns, columns_max);
    Rank rank_max = 0;
    for (const Block& row : map.rows.blocks)
      for (const Block& column : map.columns.blocks)
        rank_max = std::max(rank_max, d.grid().rank_of(place_of(d, map, row, column)));
    const Index width = Glyphs::width_for(rank_max);
    if (width <= glyphs.width()) break;
    glyphs = Glyphs(width, options.colors);
  }

  std::string out = to_text(spec) + "\n";
  if (!map.caption.empty()) out += map.caption + "\n";
  if (map.rows.dim >= 0) out += "down    " + shown_part(map.rows) + "\n";
  out += "across  " + shown_part(map.columns) + "\n";
  if (rows.empty() || columns.empty()) return out + "no cells\n";

  std::size_t label_width = 0;
  if (map.rows.dim >= 0) label_width = std::max<std::size_t>(4, fmt::format("{}", rows.back().cells.lower).size());
  const std::string indent(label_width + 2, ' ');
  out += "\n" + indent + column_labels(columns, glyphs.width()) + "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool labelled = map.rows.dim >= 0 && rows[i].is_first;
    out += fmt::format("{:>{}}  ", labelled ? fmt::format("{}", rows[i].cells.lower) : "", label_width);
    for (const Piece& column : columns)
      out += rows[i].is_shared || column.is_shared ? glyphs.shared()
                                                   : glyphs.of(d.grid().rank_of(place_of(d, map, rows[i], column)));
    out += map.columns.complete() ? "\n" : " ...\n";
  }
  if (!map.rows.complete()) out += indent + "...\n";
  out += "\n";
  Index more = 0;
  for (const LegendRow& row : legend_of(d, map, more))
    out += fmt::format("{}  {}: {}\n", glyphs.of(row.rank), row.ranks, counted(row.cells, "cell"));
  const auto is_shared = [](const Piece& piece) { return piece.is_shared; };
  if (std::any_of(rows.begin(), rows.end(), is_shared) || std::any_of(columns.begin(), columns.end(), is_shared))
    out += glyphs.shared() + "  interfaces that the ranks beside them share\n";
  if (more > 0) out += fmt::format("   and {} more\n", grouped(more));
  return out;
}

std::string picture_svg(const ArraySpec& spec, const SvgOptions& options) {
  return SvgPicture(spec.distribution, options, shortened(to_text(spec))).draw();
}

std::string picture_svg(const Distribution& distribution, const SvgOptions& options) {
  const std::string text = to_text(ArraySpec{ElementType::u8, distribution});
  return SvgPicture(distribution, options, shortened(text.substr(text.find('[')))).draw();
}

}  // namespace tranship
