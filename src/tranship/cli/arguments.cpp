#include "tranship/cli/arguments.hpp"

#include <charconv>
#include <filesystem>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/file/format/manifest.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/layout/inner_dimension.hpp>
#include <tranship/layout/json.hpp>
#include <tranship/layout/text.hpp>

namespace tranship::cli {
namespace {

ArraySpec layout_in_file(const std::string& name, const std::string& path) {
  return read_argument(name, path, [](const std::string& text) { return try_array_spec_from_json(text).value(); });
}

}  // namespace

std::string text_in_file(const std::string& name, const std::string& path) {
  Result<std::string> text = attempt([&] { return posix::read_text(path, manifest_bytes_max); });
  if (!text) throw UsageError{fmt::format("{}: {}", name, text.error().message())};
  return std::move(text).value();
}

void refuse_file(const std::string& name, const std::string& path, const Error& why) {
  throw UsageError{fmt::format("{}: '{}': {}", name, printable(path), why.message())};
}

ArraySpec layout_argument(const std::string& name, const std::string& argument) {
  if (is_placement(argument))
    throw UsageError{
        fmt::format("{}: type and extents must stand before the '@', as in f64[100,100] @ 4x1 : block, whole", name)};
  if (argument.starts_with('@')) return layout_in_file(name, argument.substr(1));
  const Result<ArraySpec> spec = try_parse_layout(argument);
  if (!spec)
    throw UsageError{fmt::format("{}: {}", name, spec.error().message()), caret(argument, spec.error().column)};
  return spec.value();
}

bool is_placement(const std::string& argument) {
  const std::size_t begin = argument.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || argument[begin] != '@') return false;
  const std::string file = argument.substr(begin + 1);
  if (file.empty() || file.front() == ' ') return true;
  std::error_code ignored;
  return !std::filesystem::exists(file, ignored) && try_parse_placement_grid(argument).ok();
}

ArraySpec placed_argument(const std::string& name, const std::string& argument, const ArraySpec& array, Index count) {
  if (!is_placement(argument)) return layout_argument(name, argument);
  const Indices& all = array.distribution.extents();
  Indices extents = all;
  if (const Result<Grid> grid = try_parse_placement_grid(argument);
      count > 1 && grid && grid.value().dims() == all.size() - 1)
    extents = Indices(std::span<const Index>(all.begin(), all.end() - 1));
  const Result<ArraySpec> spec = try_parse_placement(argument, array.type, extents);
  if (!spec)
    throw UsageError{fmt::format("{}: {}", name, spec.error().message()), caret(argument, spec.error().column)};
  return extents.size() == all.size()
             ? spec.value()
             : ArraySpec{spec.value().type, with_inner_dimension(spec.value().distribution, count)};
}

ArraySpec placed_argument(const std::string& name, const std::string& argument, const StoredArray& array) {
  return placed_argument(name, argument, array.spec, parse_npy_descr(array.descr).value().count);
}

Index elements_at(const std::string& path, const ArraySpec& from) {
  Result<StoredArray> stored = inspect(path);
  if (!stored) stored = inspect(fmt::format("{}/{}", path, part_name(from.distribution.grid().rank_at(0))));
  return stored ? parse_npy_descr(stored.value().descr).value().count : 1;
}

LayoutRules rules_argument(const std::string& name, const std::string& argument) {
  if (is_placement(argument))
    throw UsageError{
        fmt::format("{}: tensors need rules (PATTERN = PLACEMENT); write '** = {}' to place all of them this way", name,
                    argument.substr(argument.find('@')))};
  const std::string text = argument.starts_with('@') ? text_in_file(name, argument.substr(1)) : argument;
  const Result<LayoutRules> rules = LayoutRules::parse(text);
  if (!rules) throw UsageError{fmt::format("{}: {}", name, rules.error().message()), caret(text, rules.error().column)};
  return rules.value();
}

Indices numbers_argument(const std::string& name, const std::string& argument, int dims) {
  Indices out;
  const char* at = argument.data();
  const char* const end = at + argument.size();
  for (;;) {
    Index value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || (next != end && *next != ',') || out.size() == dims_max)
      throw UsageError{
          fmt::format("{}: '{}' is not a list of at most {} numbers >= 0, as in 2,1", name, argument, dims_max)};
    out.push_back(value);
    if (next == end) break;
    at = next + 1;
  }
  if (out.size() == 1) return Indices::filled(dims, out[0]);
  if (out.size() != dims)
    throw UsageError{
        fmt::format("{}: {}, and the array has {}", name, amount(out.size(), "number"), counted(dims, "dimension"))};
  return out;
}

void require_rank(Rank rank, const Distribution& a, const Distribution& b) {
  if (a.grid().ordinal_of(rank) || b.grid().ordinal_of(rank)) return;
  const Rank last = std::max(a.grid().world_size_min(), b.grid().world_size_min()) - 1;
  throw UsageError{fmt::format("--rank: no layout has a rank {}; the highest rank is {}", rank, last)};
}

}  // namespace tranship::cli
