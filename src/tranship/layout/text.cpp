#include "tranship/layout/text.hpp"

#include <algorithm>
#include <climits>
#include <map>
#include <optional>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/enum_names.hpp>
#include <tranship/layout/extent_limits.hpp>
#include <tranship/layout/layout_error.hpp>

namespace tranship {
namespace {

constexpr std::size_t quoted_chars_max = 32;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

std::string shortened(std::string_view text) {
  if (text.size() <= quoted_chars_max) return std::string(text);
  return std::string(text.substr(0, quoted_chars_max)) + "...";
}

[[noreturn]] void fail_at(std::size_t at, ErrorCode code, std::string_view message) {
  Error error = make_error(code, "column {}: {}", at + 1, message);
  error.column = static_cast<std::int64_t>(at) + 1;
  throw error;
}

// A hand-written parser; it needs no recursion, because the grammar does not nest.
class Parser {
  // Runs `f`. An Error that it throws gets the column of the wrong value, or of the text from which the value was made.
  template <class F>
  auto located(std::size_t at, F&& f) {
    try {
      return f();
    } catch (const LayoutError& error) {
      if (const auto places = values_.find(error.value()); places != values_.end() && !places->second.empty())
        at = places->second[std::min(error.index(), places->second.size() - 1)];
      fail_at(at, error.code(), error.message());
    } catch (const Error& error) {
      if (error.column > 0) throw;
      fail_at(at, error.code(), error.message());
    }
  }

 public:
  explicit Parser(std::string_view text) : text_(text) {}

  ArraySpec layout() {
    const ElementType type = element_type();
    const std::size_t at = here();
    const Indices extents = array_extents();
    located(at, [&] { check_bytes(type, extents); });
    return placement(type, extents);
  }

  ArraySpec placement(ElementType type, const Indices& extents) {
    const std::size_t at = here();
    const Grid ranks = grid_after_sign(extents.size());
    const std::vector<Partition> partitions = parts(ranks, &extents);
    auto built = [&](const MemoryLayout& memory) { return Distribution(extents, ranks, partitions, memory); };
    const MemoryLayout layout = memory(type, built);
    return {type, located(at, [&] { return built(layout); })};
  }

  // Parses the placement of an array that is not known yet.
  Grid placement() {
    Grid ranks = grid_after_sign(std::nullopt);
    parts(ranks, nullptr);
    memory(std::nullopt, [](const MemoryLayout&) {});
    return ranks;
  }

 private:
  // Records the column of the next number of a list.
  void note(LayoutValue value) { values_[value].push_back(here()); }

  // The next token, after white space.

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  std::size_t here() {
    skip_space();
    return at_;
  }
  bool accept(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c, std::string_view what) {
    if (!accept(c)) expected(what);
  }
  std::string_view next_word() {
    std::size_t end = here();
    if (end < text_.size() && is_letter(text_[end]))
      while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    return text_.substr(at_, end - at_);
  }
  bool accept_word(std::string_view word) {
    if (next_word() != word) return false;
    at_ += word.size();
    return true;
  }
  // Accepts a word that a text may contain only once.
  bool accept_once(std::string_view word, bool& seen) {
    const std::size_t at = here();
    if (!accept_word(word)) return false;
    if (seen) fail_at(at, ErrorCode::bad_text, fmt::format("a second {}; at most one is expected", word));
    seen = true;
    return true;
  }

  [[noreturn]] void expected(std::string_view what) {
    std::string found;
    if (at_end()) {
      found = "the end";
    } else if (const std::string_view word = next_word(); !word.empty()) {
      found = fmt::format("'{}'", shortened(word));
    } else if (is_printable(text_[at_])) {
      found = fmt::format("'{}'", text_[at_]);
    } else {
      found = fmt::format("byte 0x{:02x}", static_cast<unsigned char>(text_[at_]));
    }
    fail_at(at_, ErrorCode::bad_text, fmt::format("found {}; expected {}", found, what));
  }

  // Parses a number: digits, with single underscores between them.
  Index number() {
    const std::size_t begin = here();
    if (begin == text_.size() || !is_digit(text_[begin])) expected("a number of 0 or more");
    Index out = 0;
    bool fits = true;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '_')) {
      if (text_[at_] == '_') {
        if (++at_ == text_.size() || !is_digit(text_[at_])) expected("a digit after '_'");
      }
      fits = fits && !__builtin_mul_overflow(out, Index(10), &out) &&
             !__builtin_add_overflow(out, Index(text_[at_] - '0'), &out);
      ++at_;
    }
    if (!fits)
      fail_at(begin, ErrorCode::overflow,
              fmt::format("{} does not fit in 63 bits; at most {} does", shortened(text_.substr(begin, at_ - begin)),
                          INT64_MAX));
    return out;
  }

  // Adds the number of one more dimension; `what` names the list in errors.
  void push(Indices& values, std::string_view what) {
    const std::size_t at = here();
    const Index value = number();
    if (values.size() == dims_max)
      fail_at(at, ErrorCode::unsupported, fmt::format("{} has at most {} dimensions, got more", what, dims_max));
    values.push_back(value);
  }

  Index number_in_parentheses(std::optional<LayoutValue> value = std::nullopt) {
    need('(', "'('");
    if (value) note(*value);
    const Index out = number();
    need(')', "')'");
    return out;
  }

  Indices numbers_in_parentheses(std::string_view what, LayoutValue value) {
    Indices out;
    need('(', "'('");
    do {
      note(value);
      push(out, what);
    } while (accept(','));
    need(')', "',' or ')'");
    return out;
  }

  // The parts of a layout, in order.

  ElementType element_type() {
    const std::size_t at = here();
    // A type of NumPy may begin with a byte order.
    std::string name;
    if (at < text_.size() && std::string_view("<>=|").find(text_[at]) != std::string_view::npos) name = text_[at_++];
    const std::string_view word = next_word();
    if (word.empty() || word.size() > quoted_chars_max) expected("an element type such as f64");
    name += word;
    at_ += word.size();
    return located(at, [&] { return element_type_named(name).value(); });
  }

  Indices array_extents() {
    need('[', "'[' and the extents");
    const std::size_t at = here();
    Indices out;
    do {
      note(LayoutValue::extents);
      push(out, "an array");
    } while (accept(','));
    need(']', "',' or ']'");
    located(at, [&] { check_extents(out); });
    return out;
  }

  Grid grid_after_sign(std::optional<int> array_dims) {
    need('@', "'@' and the grid");
    Grid out = grid(array_dims);
    need(':', "'x', '*', order(...), ranks(...) or ':' and the partitions");
    return out;
  }

  Grid grid(std::optional<int> array_dims) {
    const std::size_t at = here();
    Indices extents;
    do {
      note(LayoutValue::parts);
      push(extents, "a grid");
    } while (accept('x'));
    const int dims = extents.size();
    if (array_dims && *array_dims != dims)
      fail_at(at, ErrorCode::invalid_use,
              fmt::format("the array has {}, its grid {}", amount(*array_dims, "dimension"), dims));
    GridOptions options;
    if (accept('*')) {
      note(LayoutValue::replicas);
      options.replicas = number();
    }
    Grid out = located(at, [&] { return Grid(extents, options); });
    bool ordered = false, listed = false;
    for (;;) {
      const std::size_t word_at = here();
      if (accept_once("order", ordered)) {
        options.order = axes(dims);
      } else if (accept_once("ranks", listed)) {
        ranks(out.size(), options);
      } else {
        return out;
      }
      out = located(word_at, [&] { return Grid(extents, options); });
    }
  }

  std::vector<int> axes(int dims) {
    std::vector<int> out;
    need('(', "'('");
    do {
      const std::size_t at = here();
      note(LayoutValue::axes);
      if (int(out.size()) > dims)
        fail_at(at, ErrorCode::bad_text,
                fmt::format("more than {} in the order of a grid of {}", amount(dims + 1, "axis", "axes"), dims));
      if (accept_word("r")) {
        out.push_back(dims);
        continue;
      }
      if (at_end() || !is_digit(text_[at_])) expected("the number of an axis, or r for the replicas");
      const Index axis = number();
      if (axis >= dims)
        fail_at(at, ErrorCode::invalid_use,
                fmt::format("there is no axis {}: the grid has {}", axis, amount(dims, "dimension")));
      out.push_back(static_cast<int>(axis));
    } while (accept(','));
    need(')', "',' or ')'");
    return out;
  }

  Rank rank() {
    const std::size_t at = here();
    const Index out = number();
    if (out >= INT_MAX)
      fail_at(at, ErrorCode::overflow, fmt::format("rank {} is above the largest rank {}", out, INT_MAX - 1));
    return static_cast<Rank>(out);
  }

  struct RankRange {
    Rank first = 0;
    Rank step = 1;
    Index count = 1;
  };

  RankRange rank_range() {
    RankRange out{.first = rank()};
    if (!accept('-')) return out;
    const std::size_t last_at = here();
    const Rank last = rank();
    if (last < out.first)
      fail_at(last_at, ErrorCode::bad_text, fmt::format("the range of ranks goes down from {} to {}", out.first, last));
    if (accept(':')) {
      const std::size_t step_at = here();
      out.step = rank();
      if (out.step < 1) fail_at(step_at, ErrorCode::bad_text, "step 0 of a range of ranks; at least 1 is needed");
    }
    out.count = (Index(last) - out.first) / out.step + 1;
    return out;
  }

  void ranks(Index size, GridOptions& options) {
    need('(', "'('");
    const std::size_t at = here();
    const RankRange range = rank_range();
    if (accept(')')) {
      // A single range is not expanded into a list, so its length is not limited.
      if (range.count != size)
        fail_at(at, ErrorCode::invalid_use,
                fmt::format("a grid of {} is given {}", amount(size, "part"), amount(range.count, "rank")));
      options.first = range.first;
      options.stride = range.step;
      return;
    }
    const Index count_max = std::min(size, layout_text_ranks_max);
    auto append = [&](std::size_t range_at, const RankRange& more) {
      if (more.count > count_max - Index(options.ranks.size()))
        fail_at(range_at, ErrorCode::invalid_use,
                fmt::format("a grid of {} is given a list of {} or more; at most {} may be listed",
                            amount(size, "part"), amount(Index(options.ranks.size()) + more.count, "rank"), count_max));
      for (Index i = 0; i < more.count; ++i) {
        options.ranks.push_back(static_cast<Rank>(more.first + i * Index(more.step)));
        values_[LayoutValue::ranks].push_back(range_at);
      }
    };
    append(at, range);
    need(',', "'-', ',' or ')'");
    do {
      const std::size_t range_at = here();
      append(range_at, rank_range());
    } while (accept(','));
    need(')', "'-', ',' or ')'");
    if (Index(options.ranks.size()) != size)
      fail_at(at, ErrorCode::invalid_use,
              fmt::format("a grid of {} is given {}", amount(size, "part"), amount(options.ranks.size(), "rank")));
  }

  // `extents` is nullptr where the array is not known: then only the words are checked.
  std::vector<Partition> parts(const Grid& ranks, const Indices* extents) {
    std::vector<Partition> out;
    for (int d = 0; d < ranks.dims(); ++d) {
      if (d > 0) need(',', fmt::format("',' and the partition of dimension {} of {}", d, ranks.dims()));
      const std::size_t at = here();
      out.push_back(part());
      if (extents) located(at, [&] { AxisParts((*extents)[d], ranks.extents()[d], out.back()); });
    }
    if (next_is(','))
      expected(fmt::format("'|' or the end after the {} of {}", plural(ranks.dims(), "partition"),
                           amount(ranks.dims(), "dimension")));
    return out;
  }

  Partition part() {
    Partition out;
    for (const LayoutValue value :
         {LayoutValue::bounds, LayoutValue::block_size, LayoutValue::minimum, LayoutValue::modulo})
      values_.erase(value);
    if (accept_word("whole")) {
      out = whole();
    } else if (accept_word("block")) {
      out = block(accept('(') ? remainder() : Remainder::low);
    } else if (accept_word("cyclic")) {
      out = cyclic(next_is('(') ? number_in_parentheses(LayoutValue::block_size) : 1);
    } else if (accept_word("irregular")) {
      out = irregular(bounds());
    } else if (next_word() == "indexed") {
      fail_at(at_, ErrorCode::bad_text,
              "found 'indexed'; a text cannot hold the lists of an indexed distribution, "
              "expected JSON instead");
    } else {
      expected(listing(partition_kinds));
    }
    bool overlapped = false, with_minimum = false, with_modulo = false, staggered = false;
    while (accept('+')) {
      if (accept_once("overlap", overlapped)) {
        out.overlap = overlap();
      } else if (accept_once("min", with_minimum)) {
        out.minimum = number_in_parentheses(LayoutValue::minimum);
      } else if (accept_once("mod", with_modulo)) {
        out.modulo = number_in_parentheses(LayoutValue::modulo);
      } else if (accept_once("interfaces", staggered)) {
        out.points = Points::interfaces;
      } else {
        expected("overlap, min, mod or interfaces");
      }
    }
    return out;
  }

  bool next_is(char c) { return !at_end() && text_[at_] == c; }

  Remainder remainder() {
    const std::optional<Remainder> out = named(remainders, next_word());
    if (!out) expected(listing(remainders));
    at_ += next_word().size();
    need(')', "')'");
    return *out;
  }

  std::vector<Index> bounds() {
    std::vector<Index> out;
    need('(', "'(' and the bounds");
    do {
      note(LayoutValue::bounds);
      out.push_back(number());
    } while (accept(','));
    need(')', "',' or ')'");
    return out;
  }

  EdgePolicy edge() {
    const std::optional<EdgePolicy> out = named(edge_policies, next_word());
    if (!out) expected(listing(edge_policies));
    at_ += next_word().size();
    return *out;
  }

  Overlap overlap() {
    Overlap out;
    need('(', "'('");
    out.left.width = number();
    need(',', "',' and the overlap on the right");
    out.right.width = number();
    if (accept(',')) {
      out.left.edge = out.right.edge = edge();
      if (accept(',')) out.right.edge = edge();
    }
    need(')', "',' or ')'");
    return out;
  }

  // Parses the memory layout at the end. `built` tries the layout after every word, so that an error points at the word
  // that causes it.
  template <class Built>
  MemoryLayout memory(std::optional<ElementType> type, Built&& built) {
    MemoryLayout out;
    if (!accept('|')) {
      if (!at_end()) expected("'+', ',', '|' or the end");
      return out;
    }
    bool ordered = false, strided = false, spaced = false, aligned = false, moved = false, split = false;
    do {
      const std::size_t at = here();
      if (accept_once("order", ordered)) {
        out.order = numbers_in_parentheses("an order", LayoutValue::order);
      } else if (accept_once("strides", strided)) {
        out.strides = numbers_in_parentheses("a list of strides", LayoutValue::strides);
      } else if (accept_once("spacing", spaced)) {
        out.spacing = numbers_in_parentheses("a list of spacings", LayoutValue::spacing);
      } else if (accept_once("align", aligned)) {
        out.align = number_in_parentheses(LayoutValue::align);
      } else if (accept_once("offset", moved)) {
        out.offset = number_in_parentheses();
      } else if (accept_once("split", split)) {
        if (type && !is_complex(*type))
          fail_at(at, ErrorCode::invalid_use,
                  fmt::format("split needs a complex element type, found {}", name_of(*type)));
        out.parts = ComplexParts::split;
      } else {
        expected("order, strides, spacing, align, offset or split");
      }
      located(at, [&] { built(out); });
    } while (!at_end());
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::map<LayoutValue, std::vector<std::size_t>> values_;  // columns of the numbers
};

Parser parser_of(std::string_view text) {
  if (text.size() > layout_text_bytes_max)
    fail_at(
        layout_text_bytes_max, ErrorCode::bad_text,
        fmt::format("a layout text of {}; at most {} are read", amount(text.size(), "byte"), layout_text_bytes_max));
  return Parser(text);
}

// Writes three or more ranks in equal upward steps as a range.
std::string rank_list(const Grid& grid) {
  std::string out;
  for (Index i = 0; i < grid.size();) {
    const Rank first = grid.rank_at(i);
    const Rank step = i + 1 < grid.size() ? grid.rank_at(i + 1) - first : 0;
    Index end = i + 1;
    while (step > 0 && end < grid.size() && grid.rank_at(end) - grid.rank_at(end - 1) == step) ++end;
    if (!out.empty()) out += ",";
    if (end - i < 3) {
      out += fmt::format("{}", first);
      ++i;
      continue;
    }
    out += fmt::format("{}-{}", first, grid.rank_at(end - 1));
    if (step > 1) out += fmt::format(":{}", step);
    i = end;
  }
  return out;
}

std::string text_of(const Grid& grid) {
  std::string out = fmt::format("{}", join_text(grid.extents(), "x"));
  if (grid.replicas() > 1) out += fmt::format("*{}", grid.replicas());
  const Grid row_major(grid.extents(), {.replicas = grid.replicas()});
  if (!(Grid(grid.extents(), {.replicas = grid.replicas(), .order = grid.order()}) == row_major)) {
    std::string axes;
    for (const int axis : grid.order())
      axes += (axes.empty() ? "" : ",") + (axis == grid.dims() ? std::string("r") : std::to_string(axis));
    out += fmt::format(" order({})", axes);
  }
  if (grid.ranks_listed()) {
    out += fmt::format(" ranks({})", rank_list(grid));
  } else if (grid.first() != 0 || (grid.stride() != 1 && grid.size() > 1)) {
    out += grid.size() == 1 ? fmt::format(" ranks({})", grid.first())
                            : fmt::format(" ranks({}-{}", grid.first(), grid.rank_at(grid.size() - 1));
    if (grid.size() > 1) out += grid.stride() > 1 ? fmt::format(":{})", grid.stride()) : ")";
  }
  return out;
}

std::string text_of(const Overlap& overlap) {
  const auto& [left, right] = overlap;
  std::string out = fmt::format("+overlap({},{}", left.width, right.width);
  // The edge policy of a side without overlap is not written.
  const EdgePolicy first = left.width > 0 ? left.edge : right.edge;
  const EdgePolicy second = right.width > 0 ? right.edge : left.edge;
  if (first != EdgePolicy::truncate || second != first) out += fmt::format(",{}", name_of(first));
  if (second != first) out += fmt::format(",{}", name_of(second));
  return out + ")";
}

std::string text_of(const Partition& partition) {
  std::string out = name_of(partition.kind);
  switch (partition.kind) {
    case PartitionKind::whole:
      break;
    case PartitionKind::block:
      if (partition.remainder != Remainder::low) out += fmt::format("({})", name_of(partition.remainder));
      break;
    case PartitionKind::cyclic:
      if (partition.block_size != 1) out += fmt::format("({})", partition.block_size);
      break;
    case PartitionKind::irregular:
      out += fmt::format("({})", join_text(partition.bounds, ","));
      break;
  }
  if (partition.minimum != 0) out += fmt::format("+min({})", partition.minimum);
  if (partition.modulo != 1) out += fmt::format("+mod({})", partition.modulo);
  if (partition.points == Points::interfaces) out += "+interfaces";
  if (partition.overlap != Overlap{}) out += text_of(partition.overlap);
  return out;
}

std::string text_of(const MemoryLayout& memory) {
  std::string out;
  auto list = [&](const char* word, const Indices& values) {
    if (!values.empty()) out += fmt::format(" {}({})", word, join_text(values, ","));
  };
  list("order", memory.order);
  list("strides", memory.strides);
  list("spacing", memory.spacing);
  if (memory.align != 1) out += fmt::format(" align({})", memory.align);
  if (memory.offset != 0) out += fmt::format(" offset({})", memory.offset);
  if (memory.parts == ComplexParts::split) out += " split";
  return out.empty() ? out : " |" + out;
}

}  // namespace

Result<ArraySpec> try_parse_layout(std::string_view text) {
  return attempt([&] { return parser_of(text).layout(); });
}

Result<ArraySpec> try_parse_placement(std::string_view text, ElementType type, const Indices& extents) {
  return attempt([&] { return parser_of(text).placement(type, extents); });
}

Result<Grid> try_parse_placement_grid(std::string_view text) {
  return attempt([&] { return parser_of(text).placement(); });
}

ArraySpec parse_layout(std::string_view text) {
  return try_parse_layout(text).value();
}

std::string to_text(const ArraySpec& spec) {
  const Distribution& d = spec.distribution;
  std::string out = fmt::format("{}[{}] @ {} : ", name_of(spec.type), join_text(d.extents(), ","), text_of(d.grid()));
  if (d.is_indexed()) {
    out += d.indexed_dims() == 1 ? "indexed" : fmt::format("indexed({})", d.indexed_dims());
    for (int i = d.indexed_dims(); i < d.dims(); ++i) out += ", whole";
  } else {
    for (int i = 0; i < d.dims(); ++i) out += (i > 0 ? ", " : "") + text_of(d.axis(i).partition());
  }
  return out + text_of(d.memory());
}

std::string caret(std::string_view text, std::int64_t column) {
  constexpr std::int64_t width_max = 100, before_max = 60;
  const std::int64_t size = static_cast<std::int64_t>(text.size());
  const std::int64_t at = std::clamp<std::int64_t>(column - 1, 0, size);
  const std::int64_t begin = size <= width_max ? 0 : std::max<std::int64_t>(0, at - before_max);
  const std::int64_t end = std::min(size, begin + width_max);
  std::string line = begin > 0 ? "..." : "";
  const std::int64_t indent = static_cast<std::int64_t>(line.size()) + at - begin;
  for (std::int64_t i = begin; i < end; ++i) line += is_space(text[i]) ? ' ' : is_printable(text[i]) ? text[i] : '?';
  if (end < size) line += "...";
  return line + "\n" + std::string(indent, ' ') + "^";
}

}  // namespace tranship
