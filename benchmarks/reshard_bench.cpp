// reshard: `tranship reshard` of a folder of parts (row blocks on 4 ranks) beside `cp` of the same folder, which moves
// as many bytes and knows nothing of layouts. Both end when everything is on the disk; sources lie in the page cache;
// the file system is asked for no reflinks; turns are interleaved. GB/s count the elements once. Each result is brought
// back to one file and compared with the array that was made, before anything is timed.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>
#include <unistd.h>

#include <tranship/base/fail.hpp>

namespace {

using namespace tranship;
namespace fs = std::filesystem;

/// Runs a shell command line; throws `io` when it fails.
void run(const std::string& line) {
  const int status = std::system(line.c_str());
  if (status != 0) throw_error(ErrorCode::io, "'{}' ended with status {}", line, status);
}

std::string quoted(const fs::path& path) {
  return "'" + path.string() + "'";
}

struct Array {
  long long rows;
  long long columns;
  long long bytes() const { return rows * columns * 8; }
  std::string extents() const { return fmt::format("f64[{},{}]", rows, columns); }
};

/// A folder for one array's files, gone at the end.
class Workplace {
 public:
  Workplace(const fs::path& folder, const Array& array) : folder_(folder), array_(array) {
    fs::create_directories(folder_);
    // The array, its parts, and two results at once.
    const auto needed = static_cast<std::uintmax_t>(array.bytes()) * 4, free = fs::space(folder_).available;
    if (free < needed) throw_error(ErrorCode::io, "{}: needs {} bytes, has {} free", folder_.string(), needed, free);
    write_array();
    reshard(plain(), parts(), "@ 4x1 : block, whole");
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  fs::path plain() const { return folder_ / "array.npy"; }
  fs::path parts() const { return folder_ / "parts"; }
  fs::path target() const { return folder_ / "target"; }
  fs::path copy() const { return folder_ / "copy"; }

  void reshard(const fs::path& from, const fs::path& to, const std::string& layout) const {
    const fs::path command = fs::read_symlink("/proc/self/exe").parent_path() / "tranship";
    run(fmt::format("{} reshard {} {} --to '{} {}' >/dev/null", quoted(command), quoted(from), quoted(to),
                    array_.extents(), layout));
  }
  void copy_parts() const {
    run(fmt::format("cp -r --reflink=never {0} {1} && sync {1}/* {1}", quoted(parts()), quoted(copy())));
  }
  /// Throws `internal` when what was made by reshard is another array.
  void check(const std::string& layout) const {
    const fs::path back = folder_ / "back.npy";
    reshard(parts(), target(), layout);
    reshard(target(), back, "@ 1x1 : whole, whole");
    if (std::system(fmt::format("cmp -s {} {}", quoted(plain()), quoted(back)).c_str()) != 0)
      throw_error(ErrorCode::internal, "reshard to '{}' made another array", layout);
    fs::remove(back);
    clear();
  }
  /// Removes both results, and waits until the disk has nothing left to do.
  void clear() const {
    fs::remove_all(target());
    fs::remove_all(copy());
    ::sync();
  }

 private:
  void write_array() const {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(array_.rows) + ", " +
                         std::to_string(array_.columns) + "), }";
    header.resize(118 - 1, ' ');  // with the ten bytes before it, a multiple of 64
    header += '\n';
    std::FILE* file = std::fopen(plain().c_str(), "wb");
    if (!file) throw_error(ErrorCode::io, "cannot write '{}': error {}", plain().string(), errno);
    const char magic[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    bool written = std::fwrite(magic, 1, sizeof magic, file) == sizeof magic &&
                   std::fwrite(header.data(), 1, header.size(), file) == header.size();
    std::vector<double> row(static_cast<std::size_t>(array_.columns));
    for (long long i = 0; i < array_.rows && written; ++i) {
      for (long long j = 0; j < array_.columns; ++j) row[j] = double(i * array_.columns + j);
      written = std::fwrite(row.data(), 8, row.size(), file) == row.size();
    }
    if (std::fclose(file) != 0 || !written)
      throw_error(ErrorCode::io, "cannot write '{}': error {}", plain().string(), errno);
  }

  fs::path folder_;
  Array array_;
};

struct Case {
  const char* name;
  const char* layout;
};
constexpr Case cases[] = {
    {"rows to columns, same order", "@ 1x4 : whole, block"},
    {"rows to cyclic 64 tiles on 2x2", "@ 2x2 : cyclic(64), cyclic(64)"},
    {"rows to columns, transposed", "@ 1x4 : whole, block | order(1,0)"},
};

void measure(bench::Report& report, const std::string& size, const Array& array) {
  const auto name_of = [&](const Case& c) { return std::string(c.name) + ", " + size; };
  bool wanted = false;
  for (const Case& c : cases) wanted = wanted || report.wants(name_of(c));
  if (!wanted) return;
  const Workplace place(report.scratch() / "reshard", array);
  bench::MeasureOptions options = report.measure_options();
  options.round_ns_min = 1;  // one run is a round
  for (const Case& c : cases) {
    if (!report.wants(name_of(c))) continue;
    report.announce(name_of(c));
    place.check(c.layout);
    const auto clear = [&] { place.clear(); };
    const auto ns = bench::medians_ns({{[&] { place.reshard(place.parts(), place.target(), c.layout); }, clear},
                                       {[&] { place.copy_parts(); }, clear}},
                                      options);
    const double copied = double(array.bytes()) / ns[1];
    report.add({.name = name_of(c),
                .unit = "GB/s",
                .better = bench::Better::higher,
                .ours = double(array.bytes()) / ns[0],
                .peers = {{"cp and sync", copied}},
                .goals = {{"cp and sync", 0.8, copied}}});
    place.clear();
  }
}

}  // namespace

TRANSHIP_BENCH(reshard, "folders of parts to other layouts, against cp with a final sync") {
  if (report.is_quick()) return measure(report, "32 MiB", {2048, 2048});
  measure(report, "1 GiB", {8192, 16'384});
  measure(report, "4 GiB", {16'384, 32'768});
}
