// Elements that are several of their type, text, records and odd widths, in both orders: each element against an oracle
// that knows files by their headers, and elements by their number.
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/inner_dimension.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"
#include "support/error_of.hpp"
#include "support/random_layouts.hpp"

namespace tranship::wide_elements_test {
namespace {

using test::error_of;
using testing::FolderPlace;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

struct Element {
  std::string descr;  ///< as a header spells it
  ElementType type;
  Index count;

  Index bytes() const { return size_bytes(type) * count; }
};
const std::vector<Element> elements = {
    {"'|S5'", ElementType::u8, 5},
    {"'<U3'", ElementType::u32, 3},
    {"'|V3'", ElementType::u8, 3},
    {"'|S6'", ElementType::u16, 3},
    {"[('a', '<i4'), ('b', '<f4'), ('c', '<i4')]", ElementType::u32, 3},
    {"[('a', '<f8'), ('b', '|u1')]", ElementType::u8, 9},
};

std::string bytes_of(Index number, const Element& element) {
  std::string out;
  for (Index i = 0; i < element.bytes(); ++i)
    out += static_cast<char>(splitmix64(static_cast<std::uint64_t>(number * 64 + i)) % 255 + 1);
  return out;
}

/// The front of a file, written as NumPy does but for its length.
std::string header(const Element& element, const std::vector<Index>& shape, bool is_fortran) {
  std::string text =
      fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': (", element.descr, is_fortran ? "True" : "False");
  for (const Index extent : shape) text += fmt::format("{}, ", extent);
  text += "), }\n";
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

Index number_of(const std::vector<Index>& at, const std::vector<Index>& shape) {
  Index out = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) out = out * shape[d] + at[d];
  return out;
}

/// Coordinates of element `number` in the order of a file.
std::vector<Index> coordinates(Index number, const std::vector<Index>& shape, bool is_fortran) {
  std::vector<Index> out(shape.size());
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::size_t d = is_fortran ? k : shape.size() - 1 - k;
    out[d] = number % shape[d];
    number /= shape[d];
  }
  return out;
}

Index product(const std::vector<Index>& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index(1), std::multiplies<>());
}

std::string whole_file(const Element& element, const std::vector<Index>& shape, bool is_fortran) {
  std::string out = header(element, shape, is_fortran);
  for (Index i = 0; i < product(shape); ++i)
    out += bytes_of(number_of(coordinates(i, shape, is_fortran), shape), element);
  return out;
}

/// The layout of elements, without the inside of each; and as files have it.
ArraySpec outer_layout(test::Random& random, const Element& element, const std::vector<Index>& shape, bool is_fortran,
                       bool is_single) {
  std::vector<std::string> grid, partitions;
  std::string extents, order;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Index parts = is_single ? 1 : random.between(1, 3);
    grid.push_back(std::to_string(parts));
    partitions.push_back(parts == 1         ? "whole"
                         : random.one_in(2) ? "block"
                                            : fmt::format("cyclic({})", random.between(1, 3)));
    extents += fmt::format("{}{}", d > 0 ? "," : "", shape[d]);
    order += fmt::format("{}{}", d > 0 ? "," : "", shape.size() - 1 - d);
  }
  return parse_layout(fmt::format("{}[{}] @ {} : {}{}", name_of(element.type), extents, join_text(grid, "x"),
                                  join_text(partitions, ", "),
                                  is_fortran && shape.size() > 1 ? " | order(" + order + ")" : ""));
}
ArraySpec stored_layout(const ArraySpec& outer, const Element& element) {
  return {outer.type, with_inner_dimension(outer.distribution, element.count)};
}

/// Describes the fault of a part; empty when there is none.
std::string part_fault(const std::string& path, const ArraySpec& outer, Rank rank, const Element& element,
                       const std::vector<Index>& shape, bool is_fortran) {
  const std::string text = read_text(path);
  const std::size_t end = text.find('\n') + 1;
  const Indices extents = outer.distribution.local_extents(rank);
  const std::vector<Index> local(extents.begin(), extents.end());
  const bool says_fortran = text.substr(0, end).find("'fortran_order': True") != std::string::npos;
  if (is_fortran != says_fortran && shape.size() > 1) return "the header says another order";
  if (text.size() - end != static_cast<std::size_t>(product(local) * element.bytes())) return "its length is wrong";
  for (Index i = 0; i < product(local); ++i) {
    const std::vector<Index> at = coordinates(i, local, says_fortran);
    const Indices cell = outer.distribution.cell_of(rank, Indices(std::span<const Index>(at))).at;
    const Index number = number_of(std::vector<Index>(cell.begin(), cell.end()), shape);
    if (text.compare(end + static_cast<std::size_t>(i * element.bytes()), static_cast<std::size_t>(element.bytes()),
                     bytes_of(number, element)) != 0)
      return fmt::format("element {} is wrong", i);
  }
  return "";
}

TEST(WideElements, move_between_both_orders) {
  for (int i = 0; i < (test::long_tests() ? 1000 : 60); ++i) {
    test::Random random(static_cast<std::uint64_t>(i));
    const Element& element = random.pick(elements);
    std::vector<Index> shape;
    for (Index d = random.between(1, 4); d > 0; --d) shape.push_back(random.between(1, 6));
    const bool from_fortran = random.one_in(2), to_fortran = random.one_in(2), back_fortran = random.one_in(2);
    const TemporaryFolder folder(FolderPlace::memory);
    write_text(folder.path("a.npy"), whole_file(element, shape, from_fortran));
    const ArraySpec there = outer_layout(random, element, shape, to_fortran, false);
    const ArraySpec back = outer_layout(random, element, shape, back_fortran, true);
    const ReshardReport report = reshard({.source = folder.path("a.npy"),
                                          .target = folder.path("parts"),
                                          .to = stored_layout(there, element),
                                          .verify = Verify::yes,
                                          .memory_bytes = reshard_memory_min});
    EXPECT_EQ(report.from, inspect(folder.path("a.npy")).value().spec);
    for (const Rank rank : there.distribution.grid().ranks())
      ASSERT_EQ(
          part_fault(folder.path(fmt::format("parts/part-{:05}.npy", rank)), there, rank, element, shape, to_fortran),
          "")
          << i << ": " << to_text(there) << " of " << element.descr;
    if (random.one_in(2)) std::filesystem::remove(folder.path("parts/manifest.json"));
    reshard({.source = folder.path("parts"),
             .target = folder.path("b.npz:x"),
             .from = stored_layout(there, element),
             .to = stored_layout(back, element)});
    reshard({.source = folder.path("b.npz"), .target = folder.path("b.npy"), .to = stored_layout(back, element)});
    ASSERT_EQ(part_fault(folder.path("b.npy"), back, 0, element, shape, back_fortran), "")
        << i << ": " << to_text(there) << " of " << element.descr;
  }
}

TEST(WideElements, stay_together) {
  const TemporaryFolder folder(FolderPlace::memory);
  write_text(folder.path("a.npy"), whole_file(elements[0], {3, 4}, true));
  const auto error_to = [&](const std::string& text) {
    return error_of(
        [&] { reshard({.source = folder.path("a.npy"), .target = folder.path("b.npy"), .to = parse_layout(text)}); });
  };
  EXPECT_EQ(error_to("u8[3,4,5] @ 1x1x1 : whole, whole, whole | order(2,1,0)"),
            "unsupported: an array in a file has no dimension order [2, 1, 0], which would split elements of 5 u8: its "
            "elements lie densely, in row-major order or its reverse");
  write_text(folder.path("a.npy"), whole_file(elements[0], {3, 4, 2}, false));
  EXPECT_EQ(error_to("u8[3,4,2,5] @ 1x1x1x1 : whole, whole, whole, whole | order(1,0,2,3)"),
            "unsupported: an array in a file has no dimension order [1, 0, 2]: its elements lie densely, in row-major "
            "order or its reverse");
}

// Elements of one number: a layout that is given says the order of the file, or is refused.
TEST(Reshard, FromSaysTheOrder) {
  const TemporaryFolder folder(FolderPlace::memory);
  const Element number{"'<i4'", ElementType::i32, 1};
  write_text(folder.path("c.npy"), whole_file(number, {3, 4}, false));
  write_text(folder.path("f.npy"), whole_file(number, {3, 4}, true));
  write_text(folder.path("line.npy"), whole_file(number, {1, 4}, true));
  const ArraySpec c = parse_layout("i32[3,4] @ 1x1 : whole, whole");
  const ArraySpec f = parse_layout("i32[3,4] @ 1x1 : whole, whole | order(1,0)");
  const auto error_of_from = [&](const std::string& source, const ArraySpec& from) {
    return error_of([&] {
      forecast_reshard({.source = folder.path(source), .target = folder.path("t"), .from = from, .to = from});
    });
  };
  EXPECT_EQ(error_of_from("c.npy", c), "");
  EXPECT_EQ(error_of_from("f.npy", f), "");
  EXPECT_NE(error_of_from("c.npy", f).find("is in row-major order, but the given layout says Fortran order"),
            std::string::npos)
      << error_of_from("c.npy", f);
  EXPECT_NE(error_of_from("f.npy", c).find("is in Fortran order, but the given layout says row-major order"),
            std::string::npos)
      << error_of_from("f.npy", c);
  EXPECT_EQ(error_of_from("line.npy", parse_layout("i32[1,4] @ 1x1 : whole, whole")), "") << "the order says nothing";
  const ArraySpec rows = parse_layout("i32[3,4] @ 3x1 : cyclic(1), whole");
  const ArraySpec columns = parse_layout("i32[3,4] @ 1x2 : whole, block");
  for (const ArraySpec& parts : {rows, columns}) {
    const std::string name = parts == rows ? "rows" : "columns";
    reshard({.source = folder.path("c.npy"), .target = folder.path(name), .to = parts});
    std::filesystem::remove(folder.path(name + "/manifest.json"));
    EXPECT_EQ(error_of_from(name, parts), "");
    const ArraySpec reversed = parse_layout(to_text(parts) + " | order(1,0)");
    EXPECT_EQ(error_of_from(name, reversed).empty(), parts == rows) << error_of_from(name, reversed);
  }
}

}  // namespace
}  // namespace tranship::wide_elements_test
