// Arrays in files, and pictures of layouts.
#include <nanobind/nanobind.h>

#include <tranship/base/amounts.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/view/picture.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"

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
        std::optional<nb::python_error> raised;
        const auto tell = [&](const ReshardProgress& at) {
          const nb::gil_scoped_acquire acquire;
          try {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (progress) (*progress)(at.bytes_done, at.bytes_total);
          } catch (nb::python_error& error) {
            raised.emplace(error);
            throw Error(ErrorCode::user_exception, "the progress callback has raised");
          }
        };
        ReshardOptions options{.source = source,
                               .target = target,
                               .to = to,
                               .verify = verify ? Verify::yes : Verify::no,
                               .progress = tell,
                               .memory_bytes = memory,
                               .threads = threads};
        try {
          const ReshardReport report = without_gil([&] { return tranship::reshard(options); });
          return as_dict(report);
        } catch (const Error&) {
          if (raised) throw nb::python_error(*raised);
          throw;
        }
      },
      "source"_a, "target"_a, "to"_a, "verify"_a, "memory_bytes"_a, "threads"_a, "progress"_a);
  module.def(
      "picture_svg", [](const ArraySpec& spec) { return picture_svg(spec); }, "spec"_a);
  module.def(
      "distribution_svg", [](const Distribution& distribution) { return picture_svg(distribution); }, "distribution"_a);
  module.def("human_bytes", &human_bytes, "bytes"_a, "\"999 B\", \"270.8 KiB\".");
  module.def(
      "picture_text", [](const ArraySpec& spec) { return picture_text(spec); }, "spec"_a);
}

}  // namespace tranship::python
