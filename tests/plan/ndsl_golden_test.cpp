// NDSL's own halo updates on cubes of 6 and 24 ranks: what every rank held before and after. The points that two ranks
// share hold different values on them (support/ndsl_cases.hpp).
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/plan/halo.hpp>

#include "support/ndsl_cube.hpp"
#include "support/plan_interpreter.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using namespace test;
using nlohmann::json;

/// An element as NDSL negates it: of numbers with a fraction the sign bit, also of NaN and zero; others wrap.
std::string negated(std::string element, ElementType type) {
  if (type == ElementType::i32) {
    std::uint32_t value = 0;
    std::memcpy(&value, element.data(), 4);
    value = -value;
    std::memcpy(element.data(), &value, 4);
  } else {
    element.back() = char(element.back() ^ char(0x80));
  }
  return element;
}

/// What is wrong after our halo; empty when nothing is.
std::string case_fault(const json& c, const NdslArrays& arrays) {
  const int count = int(c.at("quantities").size());
  const Index width = c.at("n_points"), cells_per_side = Index(c.at("layout")[0]);
  const Rank ranks = c.at("ranks");
  std::vector<NdslQuantity> quantities;
  std::vector<TiledField> fields;
  for (int q = 0; q < count; ++q) fields.push_back(quantities.emplace_back(ndsl_quantity(c, q, arrays)).field);
  TiledHaloOptions options;
  options.vectors = ndsl_vectors(c);
  const Tiling tiling = ndsl_tiling(quantities[0]);

  Plans plans;
  for (Rank r = 0; r < ranks; ++r) plans.push_back(plan_halo(tiling, fields, r, options));
  const PlanInterpreter interpreter(plans);
  if (!interpreter.fault().empty()) return interpreter.fault();
  // Every cell of every rank's memory has a number.
  const Index numbers = Index(1) << 24;
  const auto first_number = [&](Rank r, int q) { return 1 + (Index(r) * count + q) * numbers; };
  Memory memory = memory_for(plans, 0);
  const auto for_each_cell = [&](auto&& f) {
    for (Rank r = 0; r < ranks; ++r)
      for (int q = 0; q < count; ++q) {
        const int tile = int(r / (cells_per_side * cells_per_side)), slot = q * 6 + tile;
        Index i = 0;
        for_each_coordinate(fields[q].tiles[tile].distribution.local_extents(r), [&](const Indices& local) {
          f(r, q, quantities[q].index_of(r, local, width), memory[r][slot][i++]);
        });
      }
  };
  for_each_cell([&](Rank r, int q, Index at, Index& number) { number = first_number(r, q) + at; });
  interpreter.apply(memory);

  std::string fault;
  for_each_cell([&](Rank r, int q, Index at, Index& number) {
    const Index from = std::abs(number) - 1;
    const NdslQuantity& source = quantities[from / numbers % count];
    const auto bytes = std::size_t(source.element_bytes());
    std::string value = source.before[from / numbers / count].substr(std::size_t(from % numbers) * bytes, bytes);
    if (number < 0) value = negated(value, source.type);
    if (fault.empty() && quantities[q].after[r].substr(std::size_t(at) * bytes, bytes) != value)
      fault = fmt::format("rank {} quantity {} element {} of its memory comes from rank {} element {}", r, q, at,
                          from / numbers / count, from % numbers);
  });
  return fault;
}

TEST(NdslGolden, HaloUpdates) {
  const json index = json::parse(read_ndsl("cube_index.json"));
  int cases = 0;
  Thinned thinned(2);
  for (const auto& [family, listed] : index.items()) {
    const NdslArrays arrays(listed.at("npz").get<std::string>());
    for (const json& c : listed.at("cases")) {
      if (c.at("op") == "sync") continue;  // joins shared points, which a halo never touches
      ++cases;
      if (!thinned.takes_next()) continue;
      EXPECT_EQ(case_fault(c, arrays), "") << family << " " << c.at("id") << ": " << c.at("note");
    }
  }
  EXPECT_GE(cases, 3);
}

}  // namespace
}  // namespace tranship
