// buffer: what leases cost that copy nothing, against how often the buffer is cut into regions, and how fast stale
// copies are refreshed, beside memcpy of as many bytes. Devices are fake ones, in the same memory, so a copy is a
// memcpy.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <harness/registry.hpp>

#include <tranship/memory/buffer.hpp>

namespace {

using namespace tranship;
using bench::Better;

constexpr Device gpu = Device::fake(0);

void measure_lease(bench::Report& report, const std::string& name, const std::function<void()>& access) {
  if (!report.wants(name)) return;
  report.announce(name);
  const auto ns = bench::medians_ns({{access}}, report.measure_options());
  report.add({.name = name, .unit = "ns", .better = Better::lower, .ours = ns[0], .target = 50});
}

void measure_leases(bench::Report& report) {
  Devices devices({.fake = {.count = 1}});
  Buffer buffer(ElementType::f64, {1000}, {.devices = &devices});
  { const Lease lease = buffer.write(); }
  measure_lease(report, "lease to read on the host", [&] { const Lease lease = buffer.read(); });
  measure_lease(report, "lease to read and write on the host", [&] { const Lease lease = buffer.read_write(); });
  measure_lease(report, "lease to add on the host", [&] { const Lease lease = buffer.accumulate(Combine::sum); });
  measure_lease(report, "lease to read and write on a device",
                [&] { const Lease lease = buffer.read_write({.device = gpu}); });
}

/// A buffer whose regions are valid here and there in turns.
void measure_regions(bench::Report& report, Index regions) {
  const std::string name = fmt::format("lease to read one of {} regions", regions);
  if (!report.wants(name)) return;
  report.announce(name);
  constexpr Index cells = 16;
  Devices devices({.fake = {.count = 1}});
  Buffer buffer(ElementType::f64, {regions * cells}, {.devices = &devices});
  { const Lease lease = buffer.write(); }
  for (Index i = 0; i < regions; i += 2)
    const Lease lease = buffer.write({.device = gpu, .region = Region::interval(i * cells, (i + 1) * cells)});
  Index at = 1;
  const auto ns = bench::medians_ns({{[&] {
                                      const Lease lease =
                                          buffer.read({.region = Region::interval(at * cells, (at + 1) * cells)});
                                      at = (at + 514) % regions | 1;
                                    }}},
                                    report.measure_options());
  report.add({.name = name, .unit = "ns", .better = Better::lower, .ours = ns[0]});
}

void measure_refresh(bench::Report& report, Index bytes) {
  const std::string name = fmt::format("refresh of a stale copy of {} KiB", bytes >> 10);
  if (!report.wants(name)) return;
  report.announce(name);
  Devices devices({.fake = {.count = 1}});
  Buffer buffer(ElementType::f64, {bytes / 8}, {.devices = &devices});
  { const Lease lease = buffer.write(); }
  { const Lease lease = buffer.read({.device = gpu}); }
  std::vector<char> source(std::size_t(bytes), 1), target(std::size_t(bytes), 2);
  const auto ns = bench::medians_ns({{[&] {
                                       { const Lease lease = buffer.write(); }
                                       const Lease lease = buffer.read({.device = gpu});
                                     }},
                                     {[&] {
                                       std::memcpy(target.data(), source.data(), source.size());
                                       asm volatile("" : : "r"(target.data()) : "memory");
                                     }}},
                                    report.measure_options());
  report.add({.name = name,
              .unit = "GB/s",
              .better = Better::higher,
              .ours = double(bytes) / ns[0],
              .limit = double(bytes) / ns[1]});
}

}  // namespace

TRANSHIP_BENCH(buffer, "leases of a buffer on many devices, and copies that they need") {
  measure_leases(report);
  for (const Index regions : {Index(2), Index(100), Index(10'000), Index(1'000'000)})
    if (regions <= 10'000 || !report.is_quick()) measure_regions(report, regions);
  for (const Index kibibytes : {Index(64), Index(4096), Index(262'144)})
    if (kibibytes < 262'144 || !report.is_quick()) measure_refresh(report, kibibytes << 10);
}
