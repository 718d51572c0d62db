// Pictures: golden maps, every character against the owner of its cells, every rectangle against the cells of its rank.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <layout/random_layout.hpp>
#include <view/svg_elements.hpp>

#include <tranship/layout/text.hpp>
#include <tranship/view/picture.hpp>

namespace tranship {
namespace {

using test::Element;
using test::elements;
using test::number;

std::string text_of(std::string_view layout, const PictureOptions& options = {}) {
  return picture_text(parse_layout(layout), options);
}

TEST(PictureText, ShowsTwoDimensions) {
  EXPECT_EQ(text_of("f64[6,12]@2x3*2:block,cyclic(2)"),
            "f64[6,12] @ 2x3*2 : block, cyclic(2)\n"
            "down    dimension 0: 6 cells\n"
            "across  dimension 1: 12 cells\n"
            "\n"
            "      0 2 4 6 8 10\n"
            "   0  001122001122\n"
            "      001122001122\n"
            "      001122001122\n"
            "   3  334455334455\n"
            "      334455334455\n"
            "      334455334455\n"
            "\n"
            "0  ranks 0, 6: 12 cells\n"
            "1  ranks 1, 7: 12 cells\n"
            "2  ranks 2, 8: 12 cells\n"
            "3  ranks 3, 9: 12 cells\n"
            "4  ranks 4, 10: 12 cells\n"
            "5  ranks 5, 11: 12 cells\n");
}

TEST(PictureText, ShowsTheLeadingPartOfManyBlocks) {
  EXPECT_EQ(text_of("f32[1000000000000] @ 3 : cyclic(64)", {.max_columns = 12}),
            "f32[1000000000000] @ 3 : cyclic(64)\n"
            "across  dimension 0: the first 768 of 1,000,000,000,000 cells\n"
            "\n"
            "  0 128 384 640\n"
            "  012012012012 ...\n"
            "\n"
            "0  rank 0: 333,333,333,376 cells\n"
            "1  rank 1: 333,333,333,312 cells\n"
            "2  rank 2: 333,333,333,312 cells\n");
  const std::string tiles = text_of("f64[517,389] @ 2x3 : cyclic(7), cyclic(5)", {.max_columns = 6, .max_rows = 3});
  EXPECT_NE(tiles.find("   0  012012 ...\n   7  345345 ...\n  14  012012 ...\n      ...\n"), std::string::npos)
      << tiles;
}

TEST(PictureText, ShowsTheDimensionsThatAreCut) {
  const std::string shown = text_of("f64[5,4,6] @ 1x2x3 : whole, block, block");
  EXPECT_NE(shown.find("dimensions 1 and 2 of 3, at cell 0 of the others\n"), std::string::npos);
  EXPECT_NE(shown.find("   0  001122\n      001122\n   2  334455\n      334455\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("0  rank 0: 20 cells\n"), std::string::npos) << shown;
}

TEST(PictureText, LeavesOutRowsOfALongLegend) {
  const std::string shown = text_of("u8[60] @ 60 : block");
  EXPECT_NE(shown.find("  0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("n  rank 23: 1 cell\n   and 36 more\n"), std::string::npos) << shown;
}

TEST(PictureText, ColorsOnRequestOnly) {
  const char* layout = "f64[6,12] @ 2x3 : block, cyclic(2)";
  const std::string plain = text_of(layout);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  std::string colored = text_of(layout, {.colors = PictureColors::ansi});
  EXPECT_NE(colored.find("\x1b[48;5;"), std::string::npos);
  // Without its escapes it is the plain picture.
  for (std::size_t at; (at = colored.find('\x1b')) != std::string::npos;)
    colored.erase(at, colored.find('m', at) - at + 1);
  EXPECT_EQ(colored, plain);
}

TEST(PictureText, SaysWhatItCannotShow) {
  EXPECT_NE(text_of("u8[0,5] @ 2x2 : block, block").find("no cells\n"), std::string::npos);
  const ArraySpec mesh{ElementType::f64, Distribution::indexed({3}, 1, grid(1), {{{0, 1}, {}}})};
  for (const bool svg : {false, true}) {
    try {
      svg ? picture_svg(mesh) : picture_text(mesh);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_EQ(error.message(), "an indexed distribution of 3 ids has no picture");
    }
  }
  try {
    text_of("u8[5] @ 2 : block", {.max_columns = 0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
  }
}

/// Whether two parts own this cell: an interface between them.
bool is_shared(const AxisParts& axis, Index cell) {
  Index owners = 0;
  for (Index part = 0; part < axis.parts() && !axis.replicated(); ++part) owners += axis.owns(part, cell) ? 1 : 0;
  return owners > 1;
}

/// Reads the map of a text back, cell by cell, where each cell has a piece of its own.
void expect_owners(const Distribution& d, const std::string& shown) {
  constexpr std::string_view symbols = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const bool has_rows = d.dims() == 2;
  const Index rows = has_rows ? d.extents()[0] : 1, columns = d.extents()[d.dims() - 1];
  const AxisParts& across = d.axis(d.dims() - 1);
  Rank rank_max = 0;
  for (Index row = 0; row < rows; ++row)
    for (Index column = 0; column < columns; ++column)
      rank_max = std::max(rank_max, d.owner(has_rows ? Indices{row, column} : Indices{column}));
  const std::size_t width = rank_max < 62 ? 1 : fmt::format(" {}", rank_max).size();
  std::istringstream lines(shown);
  std::string line;
  while (std::getline(lines, line) && !line.empty()) {
  }
  std::getline(lines, line);  // labels of the columns
  for (Index row = 0; row < rows; ++row) {
    ASSERT_TRUE(std::getline(lines, line));
    std::string expected;
    for (Index column = 0; column < columns; ++column) {
      const Rank owner = d.owner(has_rows ? Indices{row, column} : Indices{column});
      const std::string glyph = is_shared(across, column) || (has_rows && is_shared(d.axis(0), row)) ? "+"
                                : width == 1 ? std::string(1, symbols[std::size_t(owner)])
                                             : fmt::format("{}", owner);
      expected += fmt::format("{:>{}}", glyph, width);
    }
    ASSERT_GE(line.size(), expected.size());
    ASSERT_EQ(line.substr(line.size() - expected.size()), expected) << shown;
  }
  ASSERT_TRUE(std::getline(lines, line));
  ASSERT_EQ(line, "");
}

TEST(PictureText, EveryCharacterIsTheOwnerOfItsCell) {
  int shared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Distribution d = test::random_spec(seed, 2).distribution;
    if (checked_product(d.extents()) == 0) continue;
    const std::string shown = picture_text({ElementType::f64, d}, {.max_columns = 200, .max_rows = 64});
    shared += shown.find("+  interfaces that the ranks beside them share") != std::string::npos;
    expect_owners(d, shown);
  }
  EXPECT_GT(shared, 3);
}

TEST(PictureText, TellsManyRanksApart) {
  for (const char* layout : {"u8[62] @ 62 : block", "u8[63] @ 63 : block", "u8[64] @ 64 : cyclic(1)",
                             "u8[20,18] @ 10x9 : block, cyclic(2)", "u8[1200] @ 1200 : block"}) {
    SCOPED_TRACE(layout);
    const ArraySpec spec = parse_layout(layout);
    expect_owners(spec.distribution, picture_text(spec, {.max_columns = 10'000, .max_rows = 100}));
    const std::string shown = picture_text(spec);
    std::istringstream lines(shown.substr(shown.find("\n\n") + 2));
    for (std::string line; std::getline(lines, line) && !line.empty();) EXPECT_LE(line.size(), 64u + 12u) << line;
  }
  EXPECT_NE(text_of("u8[64] @ 64 : block").find("\n    0  1  2  3 "), std::string::npos)
      << text_of("u8[64] @ 64 : block");
}

// Whatever the sizes, no more characters than asked for, and every block has its own.
TEST(PictureText, FitsTheSpaceThatItIsGiven) {
  for (const char* layout : {"u8[1000] @ 7 : block", "u8[1000] @ 7 : irregular(0,1,2,3,4,5,999,1000)",
                             "u8[2305843009213693952] @ 5 : block", "u8[1000] @ 1 : whole", "u8[99] @ 4 : cyclic(9)",
                             "u8[1000] @ 1000 : block", "u8[2305843009213693952] @ 5 : cyclic(576460752303423488)"})
    for (const int columns : {1, 2, 7, 11, 64, 1000}) {
      const ArraySpec spec = parse_layout(layout);
      std::istringstream lines(picture_text(spec, {.max_columns = columns}));
      std::string line;
      for (int i = 0; i < 5; ++i) std::getline(lines, line);
      const std::string map = line.substr(2, line.find(" ...") - 2);
      EXPECT_LE(map.size(), std::size_t(columns)) << layout;
      EXPECT_EQ(map.find_first_not_of(' '), map.find('0')) << layout;
      if (line.find(" ...") == std::string::npos && map[0] == '0') {
        for (Index part = 0; part < spec.distribution.grid().size(); ++part) {
          if (spec.distribution.axis(0).owned_count(part) > 0 && part < 10) {
            EXPECT_NE(map.find(char('0' + part)), std::string::npos) << layout << " in " << columns;
          }
        }
      }
    }
}

/// What an SVG says of places on the plot: colours and hatching.
class ReadBack {
 public:
  explicit ReadBack(const std::string& svg) : blocks_(elements(svg, "rect", "block")) {
    for (Element& block : blocks_) {
      left_ = std::min(left_, number(block, "x"));
      top_ = std::min(top_, number(block, "y"));
      right_ = std::max(right_, number(block, "x") + number(block, "width"));
      bottom_ = std::max(bottom_, number(block, "y") + number(block, "height"));
    }
    for (const Element& path : elements(svg, "path", "overlap")) {
      Ring ring;
      if (std::sscanf(path.at("d").c_str(), "M%lf %lfH%lfV%lfH%*fZM%lf %lfH%lfV%lf", &ring.outer.left, &ring.outer.top,
                      &ring.outer.right, &ring.outer.bottom, &ring.inner.left, &ring.inner.top, &ring.inner.right,
                      &ring.inner.bottom) == 8)
        rings_.push_back(ring);
    }
  }
  bool is_empty() const { return blocks_.empty(); }
  double x_of(double column, Index columns) const { return left_ + (right_ - left_) * column / double(columns); }
  double y_of(double row, Index rows) const { return top_ + (bottom_ - top_) * row / double(rows); }

  /// The colour there; "" where there is none, or more than one.
  std::string color_at(double x, double y) {
    std::string fill;
    for (Element& block : blocks_) {
      const double dx = x - number(block, "x"), dy = y - number(block, "y");
      if (dx < 0 || dy < 0 || dx > number(block, "width") || dy > number(block, "height")) continue;
      if (!fill.empty()) return "";
      fill = block.at("fill");
    }
    return fill;
  }
  bool is_hatched_at(double x, double y) const {
    return std::any_of(rings_.begin(), rings_.end(),
                       [&](const Ring& ring) { return ring.outer.has(x, y) && !ring.inner.has(x, y); });
  }

 private:
  struct Rectangle {
    double left, top, right, bottom;
    bool has(double x, double y) const { return left < x && x < right && top < y && y < bottom; }
  };
  struct Ring {
    Rectangle outer, inner;
  };
  std::vector<Element> blocks_;
  std::vector<Ring> rings_;
  double left_ = 1e9, top_ = 1e9, right_ = 0, bottom_ = 0;
};

/// The slices of a part along one dimension: owned cells, and those that are stored.
std::vector<std::pair<Interval, Interval>> slices_of(const AxisParts& axis, Index part) {
  std::vector<std::pair<Interval, Interval>> out;
  for (const SliceFamily& f : axis.slices(part))
    for (Index k = 0; k < f.count; ++k) {
      const Index start = f.start + k * f.period;
      out.push_back({{start, start + f.length}, {start - f.left, start + f.length + f.right}});
    }
  return out;
}

/// Reads a picture back, cell by cell: the colour of each cell is that of its owner, of both owners of an interface,
/// and the hatching is on what `rank` stores of one slice without owning it there. `cell` is where other dimensions are
/// cut.
void expect_picture(const Distribution& d, const std::string& svg, int row_dim, int column_dim, Indices cell,
                    std::optional<Rank> rank) {
  ReadBack picture(svg);
  ASSERT_FALSE(picture.is_empty());
  const Index rows = row_dim < 0 ? 1 : d.extents()[row_dim], columns = d.extents()[column_dim];
  std::map<Rank, std::string> color_of;
  const std::optional<Place> place = rank ? d.grid().place_of(*rank) : std::nullopt;
  for (Index row = 0; row < rows; ++row)
    for (Index column = 0; column < columns; ++column) {
      if (row_dim >= 0) cell[row_dim] = row;
      cell[column_dim] = column;
      // The quarters of a cell: those towards lower cells belong to the lower owner of an interface.
      for (const double down : {0.25, 0.75})
        for (const double across : {0.25, 0.75}) {
          Place of;
          for (int k = 0; k < d.dims(); ++k) {
            Index part = d.axis(k).owner(cell[k]);
            const bool is_low = (k == row_dim && down < 0.5) || (k == column_dim && across < 0.5);
            if (is_low && is_shared(d.axis(k), cell[k])) {
              --part;
              while (!d.axis(k).owns(part, cell[k])) --part;
            }
            of.coordinates.push_back(part);
          }
          const Rank owner = d.grid().rank_of(of);
          const std::string fill =
              picture.color_at(picture.x_of(double(column) + across, columns), picture.y_of(double(row) + down, rows));
          ASSERT_NE(fill, "") << "row " << row << ", column " << column;
          ASSERT_EQ(color_of.emplace(owner, fill).first->second, fill) << "row " << row << ", column " << column;
        }
      bool is_overlap = false;
      bool is_there = place.has_value();  // whether the rank owns cells of what is shown
      for (int k = 0; is_there && k < d.dims(); ++k)
        if (k != row_dim && k != column_dim) is_there = d.axis(k).owns(place->coordinates[k], cell[k]);
      const std::vector<std::pair<Interval, Interval>> whole = {{{0, 1}, {0, 1}}};
      if (is_there)
        for (const auto& [row_owned, row_stored] :
             row_dim < 0 ? whole : slices_of(d.axis(row_dim), place->coordinates[row_dim]))
          for (const auto& [owned, stored] : slices_of(d.axis(column_dim), place->coordinates[column_dim])) {
            const Index y = row_dim < 0 ? 0 : row;
            const auto has = [](const Interval& in, Index at) { return in.lower <= at && at < in.upper; };
            is_overlap |= has(row_stored, y) && has(stored, column) && !(has(row_owned, y) && has(owned, column));
          }
      ASSERT_EQ(
          picture.is_hatched_at(picture.x_of(double(column) + 0.5, columns), picture.y_of(double(row) + 0.5, rows)),
          is_overlap)
          << "row " << row << ", column " << column;
    }
  // The first 24 ranks can be told apart.
  for (const auto& [one, color] : color_of)
    for (const auto& [other, other_color] : color_of)
      if (one < other && other < 24) {
        ASSERT_NE(color, other_color) << one << " and " << other;
      }
}

/// The rank that a picture says that it hatches the overlap of.
std::optional<Rank> hatched_rank(const std::string& svg) {
  const std::string says = ">overlap of rank ";
  const std::size_t at = svg.find(says);
  return at == std::string::npos ? std::nullopt : std::optional(Rank(std::stoi(svg.substr(at + says.size()))));
}

bool has_few_blocks(const Distribution& d) {
  return std::all_of(d.extents().begin(), d.extents().end(), [](Index extent) { return extent <= 48; });
}

TEST(PictureSvg, EveryCellHasTheColorOfItsOwnerAndTheOverlapIsThatOfTheRankThatItNames) {
  int hatched = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Distribution d = test::random_spec(seed, 2).distribution;
    // Of more blocks than 48 only the leading ones would be there.
    if (checked_product(d.extents()) == 0 || !has_few_blocks(d)) continue;
    const int column_dim = d.dims() - 1, row_dim = d.dims() == 2 ? 0 : -1;
    const Indices origin = d.dims() == 2 ? Indices{0, 0} : Indices{0};
    const std::string svg = picture_svg({ElementType::f64, d});
    expect_picture(d, svg, row_dim, column_dim, origin, hatched_rank(svg));
    for (const Rank rank : d.grid().ranks()) {
      const std::string own = picture_svg({ElementType::f64, d}, {.rank = rank});
      const std::optional<Rank> named = hatched_rank(own);
      ASSERT_EQ(named.value_or(rank), rank);
      hatched += named.has_value();
      expect_picture(d, own, row_dim, column_dim, origin, rank);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(hatched, 100);
}

TEST(PictureSvg, OfThreeDimensionsShowsTheSliceOfTheRankWhoseOverlapItHatches) {
  for (const char* layout : {"f64[8,8,9] @ 2x2x3 : block+overlap(1,1), block+overlap(1,1), block+overlap(1,1)",
                             "f64[9,8,8] @ 3x2x2 : cyclic(2)+overlap(1,1), block+overlap(2,1), block",
                             "f64[4,8,9] @ 1x2x3 : whole, block+overlap(1,1), block+overlap(1,1)"}) {
    SCOPED_TRACE(layout);
    const ArraySpec spec = parse_layout(layout);
    const Distribution& d = spec.distribution;
    // The first two dimensions that the grid cuts are shown.
    const int row_dim = d.grid().extents()[0] > 1 ? 0 : 1, column_dim = row_dim + 1, other = row_dim == 0 ? 2 : 0;
    const std::string any = picture_svg(spec);
    ASSERT_TRUE(hatched_rank(any));
    expect_picture(d, any, row_dim, column_dim, {0, 0, 0}, hatched_rank(any));
    for (const Rank rank : d.grid().ranks()) {
      const std::string svg = picture_svg(spec, {.rank = rank});
      EXPECT_EQ(hatched_rank(svg), rank);
      Indices cell = {0, 0, 0};
      cell[other] = slices_of(d.axis(other), d.grid().place_of(rank)->coordinates[other]).front().first.lower;
      if (cell[other] != 0) {
        EXPECT_NE(svg.find(fmt::format("at cell {} of dimension {}", cell[other], other)), std::string::npos);
      }
      expect_picture(d, svg, row_dim, column_dim, cell, rank);
    }
  }
  EXPECT_FALSE(hatched_rank(picture_svg(parse_layout("f64[8] @ 2 : block+overlap(1,1)"), {.rank = 2})))
      << "it has no part of the array";
}

TEST(PictureSvg, HatchesTheOverlapOfOneRank) {
  // Rank 2 in the middle owns rows 4-5 and 14-15 of DRI's example and stores one more on each side.
  const std::string svg = picture_svg(parse_layout("f32[20,64] @ 5x1 : cyclic(2)+overlap(1,1,toroidal), whole"));
  std::vector<Element> blocks = elements(svg, "rect", "block");
  ASSERT_EQ(blocks.size(), 10u);
  const double top = number(blocks[0], "y"), row = number(blocks[0], "height") / 2;
  std::vector<Element> hatched = elements(svg, "path", "overlap");
  ASSERT_EQ(hatched.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    // d is "M x y H x V y H x Z" of what is stored, then of what is owned.
    double stored_top, stored_bottom, owned_top, owned_bottom;
    ASSERT_EQ(std::sscanf(hatched[i].at("d").c_str(), "M%*f %lfH%*fV%lfH%*fZM%*f %lfH%*fV%lf", &stored_top,
                          &stored_bottom, &owned_top, &owned_bottom),
              4);
    EXPECT_NEAR(owned_top, top + row * (4 + 10 * i), 0.1);
    EXPECT_NEAR(owned_bottom, top + row * (6 + 10 * i), 0.1);
    EXPECT_NEAR(stored_top, owned_top - row, 0.1);
    EXPECT_NEAR(stored_bottom, owned_bottom + row, 0.1);
  }
  EXPECT_NE(svg.find("overlap of rank 2<"), std::string::npos);
  EXPECT_TRUE(elements(picture_svg(parse_layout("f64[8] @ 2 : block")), "path", "overlap").empty());
}

TEST(PictureSvg, StaysSmallForHugeArrays) {
  for (const char* layout :
       {"f32[1000000000000] @ 16 : cyclic(64)+overlap(3,3)", "f64[1000000,1000000] @ 300x300 : block, cyclic(3)",
        "u8[2000000000] @ 2000000000 : block", "u8[1000000,1000] @ 1000x1 : cyclic+overlap(2,2,zero), whole"}) {
    const std::string svg = picture_svg(parse_layout(layout));
    EXPECT_LE(elements(svg, "rect", "block").size(), 48u * 48u);
    EXPECT_LT(svg.size(), 400'000u);
    EXPECT_NE(svg.find(": the first "), std::string::npos);
  }
  EXPECT_NE(picture_svg(parse_layout("f64[517,389] @ 2x3 : cyclic(7), cyclic(5)")).find("the first 120 of 389 cells"),
            std::string::npos);
}

TEST(PictureSvg, SaysWhatItShows) {
  const std::string svg = picture_svg(parse_layout("f64[6,12]@2x3*2:block,cyclic(2)"));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* part : {"<title>f64[6,12] @ 2x3*2 : block, cyclic(2)</title>", ">dimension 0: 6 cells<",
                           ">dimension 1: 12 cells<", ">ranks 1, 7: 12 cells<", ">0, 6</text>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_NE(picture_svg(parse_layout("u8[0] @ 2 : block")).find(">no cells<"), std::string::npos);
  // Nothing is drawn outside the page.
  std::vector<Element> page = elements(svg, "svg", "");
  ASSERT_EQ(page.size(), 1u);
  for (const char* cls : {"legend", "rank", "axis middle", "tick-label middle"})
    for (Element& text : elements(svg, "text", cls)) {
      if (!text.contains("x")) continue;  // the turned title of the rows
      EXPECT_LT(number(text, "x"), number(page[0], "width"));
      EXPECT_LT(number(text, "y"), number(page[0], "height"));
    }
}

}  // namespace
}  // namespace tranship
