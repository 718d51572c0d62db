// Arrays in files, and pictures of layouts.
#include <nanobind/nanobind.h>

#include <tranship/base/amounts.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/view/picture.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

nb::dict as_dict(const ReshardReport& report) {
  nb::dict out;
  out["source"] = to_text(report.from);
  out["target"] = to_text(report.to);
  out["bytes_read"] = report.bytes_read;
  out["bytes_written"] = report.bytes_written;
  out["bytes_resumed"] = report.bytes_resumed;
  out["parts_written"] = report.parts_written;
  nb::dict checksums;
  for (const auto& [file, crc32] : report.checksums) checksums[nb::str(file.c_str())] = crc32;
  out["checksums"] = checksums;
  out["memory_bytes"] = report.memory_bytes;
  out["threads"] = report.threads;
  out["seconds"] = double(report.duration_ns) * 1e-9;
  out["verified"] = report.verified == Verify::yes;
  return out;
}

/// Keeps the first exception that Python functions raise when the library calls them: it ends the work and is raised
/// again.
class RaisedInside {
 public:
  /// Runs `f` with the interpreter's lock held.
  template <class F>
  void guard(const char* what, F&& f) {
    try {
      f();
    } catch (nb::python_error& error) {
      if (!first_) first_.emplace(error);
      throw Error(ErrorCode::user_exception, what);
    }
  }
  /// Runs the work, without the lock.
  template <class F>
  nb::dict run(F&& work) {
    try {
      return as_dict(without_gil(work));
    } catch (const Error&) {
      if (first_) throw nb::python_error(*first_);
      throw;
    }
  }

 private:
  std::optional<nb::python_error> first_;  // touched with the lock held
};

auto telling(const std::optional<nb::callable>& progress, RaisedInside& raised) {
  return [&](const ReshardProgress& at) {
    const nb::gil_scoped_acquire acquire;
    raised.guard("the progress callback has raised", [&] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (progress) (*progress)(at.bytes_done, at.bytes_total);
    });
  };
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def(
      "inspect_file",
      [](const std::string& path) {
        const StoredArray stored = without_gil([&] { return inspect(path).value(); });
        return std::pair(stored.spec, stored.descr);
      },
      "path"_a);
  module.def(
      "placement",
      [](const std::string& text, const ArraySpec& like) {
        return try_parse_placement(text, like.type, like.distribution.extents()).value();
      },
      "text"_a, "like"_a);
  module.def(
      "reshard",
      [](const std::string& source, const std::string& target, const ArraySpec& to, bool verify, Index memory,
         int threads, const std::optional<nb::callable>& progress) {
        RaisedInside raised;
        const auto tell = telling(progress, raised);
        const ReshardOptions options{.source = source,
                                     .target = target,
                                     .to = to,
                                     .verify = verify ? Verify::yes : Verify::no,
                                     .progress = tell,
                                     .memory_bytes = memory,
                                     .threads = threads};
        return raised.run([&] { return tranship::reshard(options); });
      },
      "source"_a, "target"_a, "to"_a, "verify"_a, "memory_bytes"_a, "threads"_a, "progress"_a);
  module.def(
      "reshard_boxes",
      [](const ArraySpec& spec, const Indices& chunk, const nb::callable& read, const std::string& target,
         const ArraySpec& to, bool verify, Index memory, int threads, const std::optional<nb::callable>& progress) {
        RaisedInside raised;
        const auto tell = telling(progress, raised);
        const auto read_box = [&](const Box& box, const StridedView& view) {
          const nb::gil_scoped_acquire acquire;
          raised.guard("the function that reads the source has raised", [&] {
            nb::object shown = nb::module_::import_("types").attr("SimpleNamespace")();
            shown.attr("__array_interface__") = array_interface(view, ::tranship::python::Access::writable);
            read(box.lower, box.upper, shown);
          });
        };
        const ReadableArray source{.spec = spec, .chunk = chunk, .read = read_box};
        const ReshardOptions options{.source = "",
                                     .target = target,
                                     .to = to,
                                     .verify = verify ? Verify::yes : Verify::no,
                                     .progress = tell,
                                     .memory_bytes = memory,
                                     .threads = threads};
        return raised.run([&] { return reshard_array(source, options); });
      },
      "spec"_a, "chunk"_a, "read"_a, "target"_a, "to"_a, "verify"_a, "memory_bytes"_a, "threads"_a, "progress"_a,
      "An array of one part, of which `read(lower, upper, memory)` fills memory with a box. It is called by threads of "
      "the\n"
      "library; the memory is shown by NumPy's array interface and ends with the call.");
  module.def(
      "picture_svg", [](const ArraySpec& spec, std::optional<Rank> rank) { return picture_svg(spec, {.rank = rank}); },
      "spec"_a, "rank"_a = nb::none());
  module.def(
      "distribution_svg", [](const Distribution& distribution) { return picture_svg(distribution); }, "distribution"_a);
  module.def("human_bytes", &human_bytes, "bytes"_a, "\"999 B\", \"270.8 KiB\".");
  module.def(
      "picture_text", [](const ArraySpec& spec) { return picture_text(spec); }, "spec"_a);
}

}  // namespace tranship::python
