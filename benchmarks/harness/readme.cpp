#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <harness/readme.hpp>

#include <tranship/base/fail.hpp>

namespace tranship::bench {
namespace {

using Cell = std::function<std::string(const Row&)>;

struct Column {
  std::string title;
  Cell cell;
  /// The name of the row is the name of the line followed by this.
  std::string suffix = {};
};

struct Line {
  std::string label;
  std::string row;  ///< its name, without what our ranks are
  std::string data = {};
  std::string bench = {};  ///< empty: that of the table
};

struct Table {
  std::string name;
  std::string bench = {};  ///< of its lines
  std::string title;       ///< of the first column
  std::vector<Column> columns;
  std::vector<Line> lines;
};

std::string ratio_text(double ratio) {
  return ratio >= 9.95 ? fmt::format("{:.0f}", ratio) : fmt::format("{:.{}f}", ratio, ratio >= 1.995 ? 1 : 2);
}

std::string value(const Row& row) {
  return row.ours >= 999.5 ? fmt::format("{:.0f}", row.ours) : fmt::format("{:.3g}", row.ours);
}
std::string duration(const Row& row) {
  const double us = row.unit == "ms" ? row.ours * 1e3 : row.unit == "ns" ? row.ours * 1e-3 : row.ours;
  return us >= 999.5 ? fmt::format("{:.2g} ms", us * 1e-3) : fmt::format("{:.3g} µs", us);
}
std::string quantity(const Row& row) {
  if (row.unit == "GB/s") return value(row) + " GB/s";
  const double ns = row.unit == "ms" ? row.ours * 1e6 : row.unit == "us" ? row.ours * 1e3 : row.ours;
  return ns >= 999500  ? fmt::format("{:.3g} ms", ns * 1e-6)
         : ns >= 999.5 ? fmt::format("{:.3g} µs", ns * 1e-3)
                       : fmt::format("{:.3g} ns", ns);
}
std::string with_unit(const Row& row) {
  return fmt::format("{:.0f} {}", row.ours, row.unit);
}

std::string beside(const Row& row, const std::optional<double>& other) {
  return other ? ratio_text(row.times_better_than(*other)) : "–";
}
std::string beside_limit(const Row& row) {
  return beside(row, row.limit);
}
std::string beside_lines(const Row& row) {
  return beside(row, row.line_bound);
}

bool is_mpi(std::string_view peer) {
  return peer.starts_with("Open MPI ") || peer.starts_with("MPICH ");
}
bool is_window(std::string_view peer) {
  return is_mpi(peer) && peer.ends_with(" window");
}
bool is_mpi_call(std::string_view peer) {
  return is_mpi(peer) && !is_window(peer);
}
bool is_call(std::string_view peer) {
  return is_mpi_call(peer) || peer == "OpenSHMEM";
}

std::optional<double> best_of(const Row& row, const std::function<bool(std::string_view)>& is_among) {
  std::optional<double> best;
  for (const auto& [peer, number] : row.peers)
    if (is_among(peer) && (!best || (row.better == Better::lower ? number < *best : number > *best))) best = number;
  return best;
}
Cell beside_best(bool (*is_among)(std::string_view)) {
  return [is_among](const Row& row) { return beside(row, best_of(row, is_among)); };
}
Cell beside_best_named(std::string start) {
  return [start](const Row& row) {
    return beside(row, best_of(row, [&](std::string_view peer) { return peer.starts_with(start); }));
  };
}

/// Writes bytes as a multiple of the array of 4 MiB.
std::string in_arrays(double bytes) {
  const double arrays = bytes / (4 << 20);
  return arrays > 0 && arrays < 1 ? fmt::format("1/{:.0f}", 1 / arrays) : fmt::format("{:.3g}", arrays);
}
Cell arrays_of(std::string peer) {
  return [peer](const Row& row) {
    const auto number = best_of(row, [&](std::string_view name) { return name == peer; });
    return number ? in_arrays(*number) : "–";
  };
}

const std::vector<Table>& tables() {
  static const std::vector<Table> all = {
      {.name = "summary",
       .title = "ranks are threads / processes",
       .columns = {{"tranship", quantity},
                   {"best call of MPI or OpenSHMEM", beside_best(is_call)},
                   {"best loops over a shared window", beside_best(is_window)}},
       .lines = {{"8192² doubles, rows → columns, 2 ranks", "rows to columns, same order, 8192x8192, 2 ranks", "fresh",
                  "redistribution"},
                 {"4096² doubles, rows → columns, transposed", "rows to columns, transposed, 4096x4096, 2 ranks",
                  "fresh", "redistribution"},
                 {"4096² doubles, cyclic(64) → cyclic(96)", "cyclic 64 on 2x1 to cyclic 96 on 1x2, 4096x4096, 2 ranks",
                  "fresh", "redistribution"},
                 {"halo of 128³ doubles, 26 neighbours, width 3, 2 ranks",
                  "128x128x128 a rank, width 3, split slowest, 1 field, 2 ranks", "fresh", "halo"},
                 {"the same, split along the contiguous dimension",
                  "128x128x128 a rank, width 3, split stride-1, 1 field, 2 ranks", "fresh", "halo"},
                 {"the same, 8 ranks on 2 cores", "128x128x128 a rank, width 3, 2x2x2, 1 field, 8 ranks", "fresh",
                  "halo"},
                 {"put of 8 bytes", "put of 8 B", "warm", "rma"},
                 {"allreduce of 64 KiB, 2 ranks", "allreduce 64 KiB, 2 ranks", "fresh", "programs"}}},
      {.name = "redistribution",
       .bench = "redistribution",
       .title = "work, 2 ranks: threads / processes",
       .columns = {{"GB/s", value},
                   {"memcpy", beside_limit},
                   {"best MPI call", beside_best(is_mpi_call)},
                   {"best loops over a shared window", beside_best(is_window)},
                   {"FFTW-MPI", beside_best_named("FFTW-MPI")},
                   {"ScaLAPACK", beside_best_named("ScaLAPACK")},
                   {"Global Arrays", beside_best_named("Global Arrays")}},
       .lines = {{"4096² doubles, rows → columns", "rows to columns, same order, 4096x4096, 2 ranks", "fresh"},
                 {"the same, transposed", "rows to columns, transposed, 4096x4096, 2 ranks", "fresh"},
                 {"cyclic(64) → cyclic(96)", "cyclic 64 on 2x1 to cyclic 96 on 1x2, 4096x4096, 2 ranks", "fresh"},
                 {"8192² doubles, rows → columns", "rows to columns, same order, 8192x8192, 2 ranks", "fresh"},
                 {"256³, pencils x → y", "pencils x to y, 256x256x256, 2 ranks", "fresh"}}},
      {.name = "halo",
       .bench = "halo",
       .title = "periodic halo, 26 neighbours, width 3: threads / processes",
       .columns = {{"ms", value},
                   {"memcpy", beside_limit},
                   {"lines", beside_lines},
                   {"best MPI call", beside_best(is_mpi_call)},
                   {"best loops over a shared window", beside_best(is_window)},
                   {"PETSc", beside_best_named("PETSc")}},
       .lines = {{"128³ doubles a rank, 2 ranks along the slowest dimension",
                  "128x128x128 a rank, width 3, split slowest, 1 field, 2 ranks", "fresh"},
                 {"8 fields of it", "128x128x128 a rank, width 3, split slowest, 8 fields, 2 ranks", "fresh"},
                 {"128³, 2 ranks along the contiguous dimension",
                  "128x128x128 a rank, width 3, split stride-1, 1 field, 2 ranks", "fresh"},
                 {"8 fields of it", "128x128x128 a rank, width 3, split stride-1, 8 fields, 2 ranks", "fresh"},
                 {"128³, 2×2×2 ranks on 2 cores", "128x128x128 a rank, width 3, 2x2x2, 1 field, 8 ranks", "fresh"},
                 {"8 fields of it", "128x128x128 a rank, width 3, 2x2x2, 8 fields, 8 ranks", "fresh"},
                 {"64³, 2 ranks along the slowest dimension",
                  "64x64x64 a rank, width 3, split slowest, 1 field, 2 ranks", "fresh"},
                 {"8 fields of it", "64x64x64 a rank, width 3, split slowest, 8 fields, 2 ranks", "fresh"},
                 {"32³, 2 ranks along the slowest dimension",
                  "32x32x32 a rank, width 3, split slowest, 1 field, 2 ranks", "fresh"},
                 {"8 fields of it", "32x32x32 a rank, width 3, split slowest, 8 fields, 2 ranks", "fresh"}}},
      {.name = "reshard",
       .bench = "reshard",
       .title = "`tranship reshard` of 4 GiB with checksums",
       .columns = {{"GB/s", value}, {"`cp` and `sync`", beside_best_named("cp and sync")}},
       .lines = {{"rows → columns", "rows to columns, same order, 4 GiB"},
                 {"rows → cyclic(64) tiles on 2×2", "rows to cyclic 64 tiles on 2x2, 4 GiB"},
                 {"rows → columns, transposed", "rows to columns, transposed, 4 GiB"}}},
      {.name = "planning",
       .bench = "planning",
       .title = "plan",
       .columns = {{"time", duration, ", time"}, {"size", with_unit, ", size"}},
       .lines = {{"cyclic(64) on 16 ranks → cyclic(100) on 24, overlap 3, N = 10⁶",
                  "cyclic 16x64 to 24x100, overlap 3, N = 1e+06"},
                 {"the same, N = 10¹²", "cyclic 16x64 to 24x100, overlap 3, N = 1e+12"},
                 {"3-D pencils x → y, 4,096 ranks", "3-D pencils x to y, 4096 ranks"},
                 {"3-D cyclic(8) → cyclic(12), 4,096 ranks", "3-D cyclic 8 to cyclic 12, 4096 ranks"},
                 {"3-D halo, 26 neighbours, 4,096 ranks", "3-D halo of 26 neighbours, 4096 ranks"},
                 {"2-D rows → columns, 4,096 ranks: a message for every rank", "2-D rows to columns, 4096 ranks"}}},
      {.name = "leases",
       .bench = "buffer",
       .title = "lease that copies nothing",
       .columns = {{"ns", value}},
       .lines = {{"to read on the host", "lease to read on the host"},
                 {"to read and write on the host", "lease to read and write on the host"},
                 {"to add on the host", "lease to add on the host"},
                 {"to read and write on a device", "lease to read and write on a device"},
                 {"to read a box on a device", "lease to read a box on a device"}}},
      {.name = "copies",
       .bench = "buffer",
       .title = "sequence",
       .columns = {{"tranship", [](const Row& row) { return in_arrays(row.ours); }},
                   {"DualView", arrays_of("Kokkos DualView")},
                   {"StarPU", arrays_of("StarPU")}},
       .lines = {{"the host writes, the device reads", "host writes, device reads, 4096 KiB: copied"},
                 {"the host writes, the device overwrites, the host reads",
                  "host writes, device overwrites, host reads, 4096 KiB: copied"},
                 {"the host writes a sixteenth, the device reads",
                  "host writes a sixteenth, device reads, 4096 KiB: copied"},
                 {"both read", "host and device read, 4096 KiB: copied"},
                 {"the host writes, both add, the host reads", "host writes, both add, host reads, 4096 KiB: copied"},
                 {"each writes a half, both read", "each writes a half, both read, 4096 KiB: copied"}}},
      {.name = "rma",
       .bench = "rma",
       .title = "transfer: threads / processes",
       .columns = {{"ns", value}, {"best call", beside_best(is_call)}, {"bare", beside_limit}},
       .lines = {{"put of 8 bytes", "put of 8 B", "warm"},
                 {"put and quiet", "put and quiet, 8 B", "warm"},
                 {"get of 8 bytes", "get of 8 B", "warm"},
                 {"atomic fetch_add", "atomic fetch_add", "warm"},
                 {"signal, half of there and back", "signal", "warm"},
                 {"message of 8 bytes: rewritten, put with its signal, read", "message of 8 B", "fresh"},
                 {"message of 48 bytes", "message of 48 B", "fresh"},
                 {"message of 4 KiB", "message of 4 KiB", "fresh"},
                 {"barrier of 2", "barrier of 2 ranks", "warm"},
                 {"barrier of 4 on 2 cores", "barrier of 4 ranks on 2 cores", "warm"}}},
      {.name = "rma-large",
       .bench = "rma",
       .title = "large transfer: threads / processes",
       .columns = {{"GB/s", value}, {"best call", beside_best(is_call)}, {"memcpy", beside_limit}},
       .lines = {{"put of 1 MiB", "put of 1 MiB", "fresh"},
                 {"get of 1 MiB", "get of 1 MiB", "fresh"},
                 {"put of 16 MiB", "put of 16 MiB", "fresh"},
                 {"get of 16 MiB", "get of 16 MiB", "fresh"},
                 {"put of 64 MiB", "put of 64 MiB", "fresh"},
                 {"get of 64 MiB", "get of 64 MiB", "fresh"},
                 {"64 MiB by both ranks", "64 MiB together", "fresh"}}},
      {.name = "programs",
       .bench = "programs",
       .title = "collective operation: threads / processes",
       .columns = {{"time", duration},
                   {"best MPI call", beside_best(is_mpi_call)},
                   {"best loops over a shared window", beside_best(is_window)},
                   {"by hand", beside_limit}},
       .lines = {{"allreduce of 8 B, 2 ranks", "allreduce 8 B, 2 ranks", "fresh"},
                 {"allreduce of 4 KiB", "allreduce 4 KiB, 2 ranks", "fresh"},
                 {"allreduce of 64 KiB", "allreduce 64 KiB, 2 ranks", "fresh"},
                 {"allreduce of 1 MiB", "allreduce 1 MiB, 2 ranks", "fresh"},
                 {"allreduce of 16 MiB", "allreduce 16 MiB, 2 ranks", "fresh"},
                 {"allgather of 1 MiB", "allgather 1 MiB, 2 ranks", "fresh"},
                 {"reduce_scatter of 1 MiB", "reduce_scatter 1 MiB, 2 ranks", "fresh"},
                 {"alltoall of 1 MiB", "alltoall 1 MiB, 2 ranks", "fresh"},
                 {"allreduce of 8 B, 8 ranks on 2 cores", "allreduce 8 B, 8 ranks", "fresh"},
                 {"allreduce of 64 KiB, 8 ranks", "allreduce 64 KiB, 8 ranks", "fresh"},
                 {"allreduce of 1 MiB, 8 ranks", "allreduce 1 MiB, 8 ranks", "fresh"}}},
      {.name = "dri",
       .bench = "dri",
       .title = "corner turn of a stream of frames: threads / processes",
       .columns = {{"GB/s", value},
                   {"best MPI call", beside_best(is_mpi_call)},
                   {"best loops over a shared window", beside_best(is_window)},
                   {"FFTW-MPI", beside_best_named("FFTW-MPI")}},
       .lines = {{"512² doubles, 2 ranks", "corner turn, 512x512, 2 ranks", "warm"},
                 {"the same, transposed", "corner turn, transposed, 512x512, 2 ranks", "warm"},
                 {"2048², 2 ranks", "corner turn, 2048x2048, 2 ranks", "warm"},
                 {"the same, transposed", "corner turn, transposed, 2048x2048, 2 ranks", "warm"},
                 {"512², 4 ranks on 2 cores", "corner turn, 512x512, 4 ranks", "warm"},
                 {"2048², 4 ranks, transposed", "corner turn, transposed, 2048x2048, 4 ranks", "warm"}}},
  };
  return all;
}

/// The rows of the line: ours in threads and ours in processes, or the only one.
std::vector<const Row*> rows_of(const Table& table, const Line& line, const Column& column,
                                const std::vector<Row>& rows) {
  const std::string name = line.row + column.suffix;
  const std::string& bench = line.bench.empty() ? table.bench : line.bench;
  std::vector<const Row*> found;
  for (const RanksAre ranks : {RanksAre::threads, RanksAre::processes})
    for (const Row& row : rows)
      if (row.bench == bench && row.data == line.data && row.our_ranks.value_or(RanksAre::threads) == ranks &&
          (row.name == name || row.name == fmt::format("{}, {}", name, name_of(ranks))))
        found.push_back(&row);
  return found;
}

/// Returns an empty text when no row was measured.
std::string text_of(const Table& table, const std::vector<Row>& rows) {
  std::string text = "| " + table.title + " |", rule = "|---|";
  for (const Column& column : table.columns) text += " " + column.title + " |", rule += "---|";
  text += "\n" + rule + "\n";
  bool any = false;
  for (const Line& line : table.lines) {
    text += "| " + line.label + " |";
    for (const Column& column : table.columns) {
      std::vector<std::string> cells;
      for (const Row* row : rows_of(table, line, column, rows)) cells.push_back(column.cell(*row));
      any = any || !cells.empty();
      if (cells.empty() || std::all_of(cells.begin(), cells.end(), [](const auto& cell) { return cell == "–"; }))
        cells = {"–"};
      text += fmt::format(" {} |", join_text(cells, " / "));
    }
    text += "\n";
  }
  return any ? text : "";
}

constexpr std::string_view opening = "<!-- measured: ", closing = "<!-- end -->";

}  // namespace

std::vector<std::string> readme_tables() {
  std::vector<std::string> names;
  for (const Table& table : tables()) names.push_back(table.name);
  return names;
}

Readme with_tables(const std::string& text, const std::vector<Row>& rows) {
  Readme readme;
  std::size_t at = 0, places = 0;
  for (std::size_t open; (open = text.find(opening, at)) != std::string::npos; ++places) {
    const std::size_t name_at = open + opening.size(), name_end = text.find(" -->", name_at);
    const std::size_t close = text.find(closing, name_at);
    if (name_end == std::string::npos || close == std::string::npos || close < name_end)
      throw_error(ErrorCode::bad_text, "place {} for a table, at byte {}, has no '{}' after it", places + 1, open,
                  closing);
    const std::string name = text.substr(name_at, name_end - name_at);
    const auto table =
        std::find_if(tables().begin(), tables().end(), [&](const Table& candidate) { return candidate.name == name; });
    if (table == tables().end())
      throw_error(ErrorCode::bad_text, "no table is called '{}'; there are {}: {}", name, tables().size(),
                  join_text(readme_tables(), ", "));
    const std::string made = text_of(*table, rows);
    const std::size_t body = name_end + std::string_view(" -->").size();
    readme.text += text.substr(at, body - at);
    if (made.empty()) {
      readme.kept.push_back(name);
      readme.text += text.substr(body, close - body);
    } else {
      readme.text += "\n" + made;
    }
    at = close;
  }
  if (places == 0)
    throw_error(ErrorCode::bad_text, "0 places for tables in {} bytes of text; a place is '{}NAME -->' … '{}'",
                text.size(), opening, closing);
  readme.text += text.substr(at);
  return readme;
}

}  // namespace tranship::bench
