// copy: moves of strided blocks on one core, beside memcpy of as many bytes (the limit) and the loop nest that one
// writes by hand. "from memory": runs are packed one after the other out of an array of 320-cell rows that no cache
// holds; "in cache": the same array rows, so few of them that they stay in the second cache. Every contestant's result
// is checked against the loop nest before anything is timed.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/host_move.hpp>

namespace {

using namespace tranship;
using bench::Better;

using Bytes = std::vector<unsigned char>;

/// A case moves `blocks` equal blocks, each `source_step` and `target_step` bytes after the one before.
struct Case {
  std::string name;
  CopyBlock block;
  int width = 8;
  ElementMap move = ElementMap::copy;
  Arithmetic arithmetic = Arithmetic::none;
  long long blocks = 1;
  long long source_step = 0;
  long long target_step = 0;
  /// The least speed, as a fraction of the limit.
  std::optional<double> goal = std::nullopt;
};

CopyBlock plane(long long rows, long long columns, long long source_row, long long source_column, long long target_row,
                long long target_column) {
  CopyBlock block;
  block.dims = 2;
  block.extents[0] = rows, block.extents[1] = columns;
  block.source_strides[0] = source_row, block.source_strides[1] = source_column;
  block.target_strides[0] = target_row, block.target_strides[1] = target_column;
  return block;
}

long long moved_bytes(const Case& c) {
  return element_count(c.block) * c.blocks * c.width;
}

std::size_t reached_bytes(const Case& c, const long long* strides, long long step) {
  long long last = step * (c.blocks - 1) + c.width;
  for (int d = 0; d < c.block.dims; ++d) last += strides[d] * (c.block.extents[d] - 1);
  return static_cast<std::size_t>(last);
}

void move_ours(const Case& c, const CopyBlock& canonical, const unsigned char* source, unsigned char* target) {
  const CopyMethod way = copy_method(moved_bytes(c));
  for (long long b = 0; b < c.blocks; ++b)
    move_on_host(canonical, c.move, c.arithmetic, c.width, way, source + b * c.source_step, target + b * c.target_step);
}

/// The loops that one writes for a plane of a known element type; rows that lie together are copied by memcpy.
template <class T, class Apply>
void loop(const Case& c, const unsigned char* source, unsigned char* target, Apply apply) {
  const CopyBlock& block = c.block;
  for (long long b = 0; b < c.blocks; ++b)
    for (long long i = 0; i < block.extents[0]; ++i) {
      const auto* from = reinterpret_cast<const T*>(source + b * c.source_step + i * block.source_strides[0]);
      auto* to = reinterpret_cast<T*>(target + b * c.target_step + i * block.target_strides[0]);
      const long long from_step = block.source_strides[1] / int(sizeof(T));
      const long long to_step = block.target_strides[1] / int(sizeof(T));
      if (from_step == 1 && to_step == 1)
        for (long long j = 0; j < block.extents[1]; ++j) apply(from[j], to[j]);
      else
        for (long long j = 0; j < block.extents[1]; ++j) apply(from[j * from_step], to[j * to_step]);
    }
}

struct Wide {
  std::uint64_t parts[2];
};

void move_by_hand(const Case& c, const unsigned char* source, unsigned char* target) {
  const auto assign = [](const auto& from, auto& to) { to = from; };
  if (c.move == ElementMap::accumulate && c.arithmetic == Arithmetic::f64)
    return loop<double>(c, source, target, [](double from, double& to) { to += from; });
  if (c.move == ElementMap::accumulate && c.arithmetic == Arithmetic::f32)
    return loop<float>(c, source, target, [](float from, float& to) { to += from; });
  if (c.move == ElementMap::negate) return loop<double>(c, source, target, [](double from, double& to) { to = -from; });
  switch (c.width) {
    case 1:
      return loop<std::uint8_t>(c, source, target, assign);
    case 2:
      return loop<std::uint16_t>(c, source, target, assign);
    case 4:
      return loop<std::uint32_t>(c, source, target, assign);
    case 8:
      return loop<std::uint64_t>(c, source, target, assign);
    default:
      return loop<Wide>(c, source, target, assign);
  }
}

/// memcpy for every row, as one does when rows lie together.
void memcpy_rows(const Case& c, const unsigned char* source, unsigned char* target) {
  const auto bytes = static_cast<std::size_t>(c.block.extents[1] * c.width);
  for (long long b = 0; b < c.blocks; ++b)
    for (long long i = 0; i < c.block.extents[0]; ++i)
      std::memcpy(target + b * c.target_step + i * c.block.target_strides[0],
                  source + b * c.source_step + i * c.block.source_strides[0], bytes);
}

/// Bytes that are small, normal numbers of every type.
void write_source(const Case& c, Bytes& source) {
  if (c.arithmetic == Arithmetic::f64)
    for (std::size_t i = 0; i + 8 <= source.size(); i += 8) {
      const auto value = double(i % 1009);
      std::memcpy(&source[i], &value, 8);
    }
  else if (c.arithmetic == Arithmetic::f32)
    for (std::size_t i = 0; i + 4 <= source.size(); i += 4) {
      const auto value = float(i % 1009);
      std::memcpy(&source[i], &value, 4);
    }
  else
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i * 7 + i / 251);
}

void measure(bench::Report& report, const Case& c) {
  if (!report.wants(c.name)) return;
  Bytes source(reached_bytes(c, c.block.source_strides, c.source_step));
  write_source(c, source);
  Bytes target(reached_bytes(c, c.block.target_strides, c.target_step)), expected(target.size());
  CopyBlock canonical = c.block;
  canonicalise(canonical, c.width);
  move_ours(c, canonical, source.data(), target.data());
  move_by_hand(c, source.data(), expected.data());
  if (target != expected) throw_error(ErrorCode::internal, "case '{}': the strided move moved other bytes", c.name);

  // memcpy gets as many bytes of the same memory if there are enough, so that caches hold the same part of it.
  const auto bytes = static_cast<std::size_t>(moved_bytes(c));
  if (source.size() < bytes || expected.size() < bytes)
    throw_error(ErrorCode::internal, "case '{}': {} bytes for memcpy, needs {}", c.name, source.size(), bytes);
  const bool has_rows = c.move == ElementMap::copy && c.block.source_strides[1] == c.width &&
                        c.block.target_strides[1] == c.width && c.block.extents[0] > 1;
  std::vector<bench::Contestant> contestants = {{[&] { move_ours(c, canonical, source.data(), target.data()); }},
                                                {[&] { std::memcpy(expected.data(), source.data(), bytes); }},
                                                {[&] { move_by_hand(c, source.data(), target.data()); }}};
  if (has_rows) contestants.push_back({[&] { memcpy_rows(c, source.data(), target.data()); }});
  const auto ns = bench::medians_ns(contestants, report.measure_options());

  const auto rate = [&](std::size_t contestant) { return double(bytes) / ns[contestant]; };
  bench::Row row{.name = c.name,
                 .unit = "GB/s",
                 .better = Better::higher,
                 .ours = rate(0),
                 .limit = rate(1),
                 .peers = {{"loops by hand", rate(2)}}};
  if (has_rows) row.peers.emplace_back("memcpy of each run", rate(3));
  if (c.goal) row.goals.push_back({"limit", *c.goal, rate(1)});
  report.add(std::move(row));
}

/// The goals of the published table for runs from memory, as fractions of the limit.
std::optional<double> goal_of_runs(long long bytes) {
  if (bytes >= 1536) return 0.9;
  if (bytes >= 512) return 0.64;
  if (bytes >= 64) return 0.3;
  return std::nullopt;
}

constexpr long long row_bytes = 320 * 8;

/// Runs of `bytes` at the start of each array row, then the runs beside them, until the rows are through.
Case runs(const std::string& where, long long rows, long long bytes, long long target_pitch) {
  const long long pitch = bytes <= row_bytes ? row_bytes : 2 * bytes;
  const long long count = bytes <= row_bytes ? rows : rows * row_bytes / pitch;
  Case c{.name = fmt::format("runs of {} bytes, {}, {}", bytes, target_pitch == 0 ? "packed" : "box to box", where),
         .block = plane(count, bytes / 8, pitch, 8, target_pitch == 0 ? bytes : pitch, 8),
         .width = 8};
  c.blocks = bytes <= row_bytes ? row_bytes / bytes : 1;
  c.source_step = bytes;
  c.target_step = target_pitch == 0 ? count * bytes : bytes;
  return c;
}

void measure_runs(bench::Report& report) {
  const long long far_rows = 160 * 320, near_rows = 64;
  std::vector<long long> lengths = {8, 24, 64, 512};
  if (!report.is_quick()) lengths = {8, 16, 24, 32, 64, 128, 256, 512, 1024, 1536, 2560, 4096, 16'384, 65'536};
  for (const long long bytes : lengths) {
    Case packed = runs("from memory", far_rows, bytes, 0);
    packed.goal = goal_of_runs(bytes);
    if (!report.is_quick()) measure(report, packed);
    if (bytes <= row_bytes) measure(report, runs("in cache", near_rows, bytes, 0));
  }
  if (report.is_quick()) return;
  for (const long long bytes : {24, 64, 512}) measure(report, runs("from memory", far_rows, bytes, 1));
}

void measure_plain(bench::Report& report) {
  std::vector<long long> sizes_kib = {16, 256, 4096, 65'536};
  if (!report.is_quick()) sizes_kib.push_back(524'288);
  for (const long long kib : sizes_kib) {
    Case c{.name = fmt::format("plain copy of {} KiB", kib),
           .block = plane(1, kib * 128, kib * 1024, 8, kib * 1024, 8),
           .width = 8};
    if (kib >= 524'288) c.goal = 1.2;
    measure(report, c);
  }
}

/// Copies data that has just been written to a place that has been read since the last copy, as exchanges do. Within
/// their cache lines, source and target are offset by `apart_bytes`.
void measure_large(bench::Report& report, long long kib, int apart_bytes) {
  const std::string name = fmt::format("large copy of {} KiB, rewritten before, {}", kib,
                                       apart_bytes == 0 ? "lines alike" : fmt::format("{} bytes apart", apart_bytes));
  if (!report.wants(name)) return;
  constexpr std::size_t page = 4096;
  const auto bytes = static_cast<std::size_t>(kib) * 1024;
  Bytes source(bytes + 2 * page), target(bytes + 2 * page);
  const auto in_page = [](Bytes& all, std::size_t at) {
    return all.data() + (page - reinterpret_cast<std::uintptr_t>(all.data()) % page) + at;
  };
  unsigned char* const from = in_page(source, 0);
  unsigned char* const to = in_page(target, page / 2 + std::size_t(apart_bytes));
  int turn = 0;
  const auto rewrite = [&] {
    unsigned char all = 0;
    for (std::size_t i = 0; i < bytes; i += 64) all ^= to[i];
    asm volatile("" : : "r"(all));
    std::memset(from, ++turn, bytes);
  };
  rewrite();
  copy_piece(to, from, static_cast<long long>(bytes));
  if (std::memcmp(to, from, bytes) != 0) throw_error(ErrorCode::internal, "case '{}': other bytes were copied", name);
  const auto ns =
      bench::medians_ns({{.run = [&] { copy_piece(to, from, static_cast<long long>(bytes)); }, .prepare = rewrite},
                         {.run = [&] { std::memcpy(to, from, bytes); }, .prepare = rewrite}},
                        report.measure_options());
  bench::Row row{.name = name,
                 .unit = "GB/s",
                 .better = Better::higher,
                 .ours = double(bytes) / ns[0],
                 .limit = double(bytes) / ns[1]};
  if (kib >= 4096) row.goals.push_back({"limit", 1.2, double(bytes) / ns[1]});
  report.add(std::move(row));
}

void measure_transposes(bench::Report& report) {
  for (const int width : {1, 2, 4, 8, 16})
    for (const bool is_far : {false, true}) {
      if (is_far && report.is_quick()) continue;
      // 256 KiB, or 128 MiB: a power of two is the hardest for caches, and what people have.
      long long n = 1;
      while (n * n * width * 4 <= (is_far ? 128LL << 20 : 256LL << 10)) n *= 2;
      measure(report, {.name = fmt::format("transpose {0}x{0} of {1}-byte elements, {2}", n, width,
                                           is_far ? "from memory" : "in cache"),
                       .block = plane(n, n, n * width, width, width, n * width),
                       .width = width});
    }
}

void measure_arithmetic(bench::Report& report) {
  struct Kind {
    const char* name;
    ElementMap move;
    Arithmetic arithmetic;
    int width;
  };
  for (const Kind& kind : {Kind{"accumulate f64", ElementMap::accumulate, Arithmetic::f64, 8},
                           Kind{"accumulate f32", ElementMap::accumulate, Arithmetic::f32, 4},
                           Kind{"negate f64", ElementMap::negate, Arithmetic::f64, 8}})
    for (const long long kib : {256LL, 131'072LL}) {
      if (kib > 256 && report.is_quick()) continue;
      const long long elements = kib * 1024 / kind.width;
      const std::string size = fmt::format(", {} KiB", kib);
      measure(report, {.name = kind.name + size,
                       .block = plane(1, elements, 0, kind.width, 0, kind.width),
                       .width = kind.width,
                       .move = kind.move,
                       .arithmetic = kind.arithmetic});
      measure(report, {.name = std::string(kind.name) + " by runs of 3" + size,
                       .block = plane(elements / 3, 3, 4 * kind.width, kind.width, 3 * kind.width, kind.width),
                       .width = kind.width,
                       .move = kind.move,
                       .arithmetic = kind.arithmetic});
    }
}

}  // namespace

TRANSHIP_BENCH(copy, "strided moves on one core against memcpy, by run length, element width and arithmetic") {
  measure_plain(report);
  for (const long long kib : {256LL, 1024LL, 4096LL, 8192LL, 16'384LL, 65'536LL})
    for (const int apart_bytes : {0, 16}) measure_large(report, kib, apart_bytes);
  measure_runs(report);
  measure_transposes(report);
  measure_arithmetic(report);
}
