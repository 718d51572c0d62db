// Pictures: golden maps, every character against the owner of its cells, every rectangle against the cells of its rank.
#include <map>
#include <sstream>

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

TEST(PictureText, EveryCharacterIsTheOwnerOfItsCell) {
  constexpr std::string_view symbols = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Distribution d = test::random_spec(seed, 2).distribution;
    if (checked_product(d.extents()) == 0) continue;
    const std::string shown = picture_text({ElementType::f64, d}, {.max_columns = 64, .max_rows = 64});
    std::istringstream lines(shown);
    std::string line;
    while (std::getline(lines, line) && !line.empty()) {
    }
    std::getline(lines, line);  // labels of the columns
    const Index rows = d.dims() == 2 ? d.extents()[0] : 1;
    const Index columns = d.extents()[d.dims() - 1];
    for (Index row = 0; row < rows; ++row) {
      ASSERT_TRUE(std::getline(lines, line));
      std::string expected;
      for (Index column = 0; column < columns; ++column)
        expected += symbols[d.owner(d.dims() == 2 ? Indices{row, column} : Indices{column}) % 62];
      ASSERT_GE(line.size(), expected.size());
      ASSERT_EQ(line.substr(line.size() - expected.size()), expected) << "seed " << seed << "\n" << shown;
    }
    ASSERT_TRUE(std::getline(lines, line));
    ASSERT_EQ(line, "");
  }
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
      EXPECT_EQ(map[0], '0') << layout;
      if (line.find(" ...") == std::string::npos) {
        for (Index part = 0; part < spec.distribution.grid().size(); ++part) {
          if (spec.distribution.axis(0).owned_count(part) > 0 && part < 10) {
            EXPECT_NE(map.find(char('0' + part)), std::string::npos) << layout << " in " << columns;
          }
        }
      }
    }
}

// The rectangles lie side by side as the blocks do: a cell's centre is in exactly one, of the colour of its owner.
TEST(PictureSvg, EveryCellHasTheColorOfItsOwner) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Distribution d = test::random_spec(seed, 2).distribution;
    // Of more blocks than 48 only the leading ones would be there.
    if (checked_product(d.extents()) == 0 || d.extents()[0] > 48) continue;
    const std::string svg = picture_svg({ElementType::f64, d});
    std::vector<Element> blocks = elements(svg, "rect", "block");
    ASSERT_FALSE(blocks.empty());
    double left = 1e9, top = 1e9, right = 0, bottom = 0;
    for (Element& block : blocks) {
      left = std::min(left, number(block, "x"));
      top = std::min(top, number(block, "y"));
      right = std::max(right, number(block, "x") + number(block, "width"));
      bottom = std::max(bottom, number(block, "y") + number(block, "height"));
    }
    const Index rows = d.dims() == 2 ? d.extents()[0] : 1, columns = d.extents()[d.dims() - 1];
    std::map<Rank, std::string> color_of;
    for (Index row = 0; row < rows; ++row)
      for (Index column = 0; column < columns; ++column) {
        const double x = left + (right - left) * (double(column) + 0.5) / double(columns);
        const double y = top + (bottom - top) * (double(row) + 0.5) / double(rows);
        int hits = 0;
        std::string fill;
        for (Element& block : blocks) {
          const double dx = x - number(block, "x"), dy = y - number(block, "y");
          if (dx < 0 || dy < 0 || dx > number(block, "width") || dy > number(block, "height")) continue;
          ++hits;
          fill = block.at("fill");
        }
        ASSERT_EQ(hits, 1) << "seed " << seed << ", cell " << row << ", " << column;
        const Rank owner = d.owner(d.dims() == 2 ? Indices{row, column} : Indices{column});
        ASSERT_EQ(color_of.emplace(owner, fill).first->second, fill) << "seed " << seed;
      }
    // The first 24 ranks can be told apart.
    for (const auto& [rank, color] : color_of)
      for (const auto& [other, other_color] : color_of)
        if (rank < other && other < 24) {
          ASSERT_NE(color, other_color) << rank << " and " << other;
        }
  }
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
