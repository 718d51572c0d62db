// A reshard to look at from outside: a source, an old target, what the new one shall be, and what became of it.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <tranship/file/format/npy.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"
#include "support/random_layouts.hpp"

namespace tranship::testing {

/// Contents by name; of a single file, under no name.
using Files = std::map<std::string, std::string>;

inline Files files_below(const std::string& path) {
  Files out;
  if (!std::filesystem::is_directory(path)) return {{"", read_text(path)}};
  for (const auto& entry : std::filesystem::directory_iterator(path))
    out[entry.path().filename().string()] = read_text(entry.path().string());
  return out;
}

/// A source, an old target, and what the new one shall be.
struct Scene {
  explicit Scene(const std::string& name, Index rows = 512, const std::string& file_order = "", Index columns = 256)
      : columns(columns),
        folder(FolderPlace::memory),
        target(folder.path(name)),
        options{.source = folder.path("source.npy"),
                .target = target,
                .to = parse_layout("f64[" + std::to_string(rows) + "," + std::to_string(columns) + "] @ " +
                                   (is_file(name) ? "1x1 : whole, whole" + file_order : "2x2 : cyclic(3), block")),
                .memory_bytes = reshard_memory_min,
                .threads = 2,
                .sync_interval_bytes = 1} {
    write("source.npy", rows, 1);
    write("other.npy", rows, 2);
    ReshardOptions elsewhere = options;
    elsewhere.target = folder.path("expected" + std::filesystem::path(name).extension().string());
    reshard(elsewhere);
    after = files_below(elsewhere.target);
    std::filesystem::remove_all(elsewhere.target);
    put_old();
  }

  static bool is_file(const std::string& name) { return name.ends_with(".npy") || name.ends_with(".npz"); }

  void write(const std::string& name, Index rows, std::uint64_t seed) const {
    test::Random random(seed);
    std::string text = format_npy_header(make_npy_header(ElementType::f64, {rows, columns}));
    for (Index i = 0; i < rows * columns; ++i) {
      const std::uint64_t bits = random.bits();
      text.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    }
    write_text(folder.path(name), text);
  }

  void put_old() {
    ReshardOptions old = options;
    old.source = folder.path("other.npy");
    reshard(old);
    before = files_below(target);
  }

  /// What is wrong after a run that ended somewhere: empty where nothing is.
  std::string fault_after_crash() const {
    const Files found = files_below(target);
    return found == before || found == after ? "" : "neither the old target nor the new one";
  }
  std::string fault_after_success() const {
    if (files_below(target) != after) return "not the new target";
    for (const std::string& name : folder.names())
      if (name.find(".partial") != std::string::npos) return name + " is left behind";
    return "";
  }

  Index columns;
  TemporaryFolder folder;
  std::string target;
  ReshardOptions options;
  Files before, after;
};

/// Runs `f` in a process of its own and returns what waitpid says of its end.
template <class F>
int in_child(F&& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    ::_exit(0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait");
  return status;
}

/// What `f` returns in a process of its own; -1 where that says nothing.
template <class F>
Index number_of_child(F&& f) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  in_child([&] {
    const Index out = f();
    ::_exit(::write(ends[1], &out, sizeof out) == sizeof out ? 0 : 1);
  });
  ::close(ends[1]);
  Index out = -1;
  if (::read(ends[0], &out, sizeof out) != sizeof out) out = -1;
  ::close(ends[0]);
  return out;
}

}  // namespace tranship::testing
