// buffer: the cost of leases that copy nothing, against the number of regions of the buffer, and the cost of cutting
// regions; the speed of refreshing stale copies, beside memcpy of as many bytes; and the bytes and times of other
// libraries for the same sequences of uses. Devices are fake ones, in the same memory, so a copy is a memcpy.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/contest_row.hpp>
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
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
  Buffer buffer(ElementType::f64, {1000}, {.devices = &devices});
  { const Lease lease = buffer.write(); }
  measure_lease(report, "lease to read on the host", [&] { const Lease lease = buffer.read(); });
  measure_lease(report, "lease to read and write on the host", [&] { const Lease lease = buffer.read_write(); });
  measure_lease(report, "lease to add on the host", [&] { const Lease lease = buffer.accumulate(Combine::sum); });
  measure_lease(report, "lease to read and write on a device",
                [&] { const Lease lease = buffer.read_write({.device = gpu}); });
  measure_lease(report, "lease to read a box on a device",
                [&] { const Lease lease = buffer.read({.device = gpu, .region = Region::interval(100, 200)}); });

  const std::string name = "10^6 leases to read and write on the host";
  if (!report.wants(name)) return;
  report.announce(name);
  const auto ns = bench::medians_ns({{[&] {
                                      for (int i = 0; i < 1'000'000; ++i) const Lease lease = buffer.read_write();
                                    }}},
                                    report.measure_options());
  report.add({.name = name, .unit = "ms", .better = Better::lower, .ours = ns[0] * 1e-6, .target = 50});
}

/// Measures a buffer whose regions are valid alternately on the host and on the device.
void measure_regions(bench::Report& report, Index regions) {
  const std::string name = fmt::format("lease to read one of {} regions", regions);
  if (!report.wants(name)) return;
  report.announce(name);
  constexpr Index cells = 16;
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
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

/// Measures writes on a device, each of which cuts a region out of the host's valid copy.
void measure_cuts(bench::Report& report, Index regions) {
  const std::string name = fmt::format("cut of one of {} regions", regions);
  if (!report.wants(name)) return;
  report.announce(name);
  constexpr Index cells = 16;
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
  std::optional<Buffer> buffer;
  const auto renew = [&] {
    buffer.emplace(ElementType::f64, Indices{2 * regions * cells}, BufferOptions{.devices = &devices});
    { const Lease lease = buffer->read({.device = gpu}); }
    const Lease lease = buffer->write();
  };
  const auto cut = [&] {
    for (Index i = 0; i < regions; ++i)
      const Lease lease =
          buffer->write({.device = gpu, .region = Region::interval(2 * i * cells, (2 * i + 1) * cells)});
  };
  const auto ns = bench::medians_ns({{.run = cut, .prepare = renew}}, report.measure_options());
  report.add({.name = name, .unit = "ns", .better = Better::lower, .ours = ns[0] / double(regions)});
}

void measure_refresh(bench::Report& report, Index bytes) {
  const std::string name = fmt::format("refresh of a stale copy of {} KiB", bytes >> 10);
  if (!report.wants(name)) return;
  report.announce(name);
  Devices devices({.kinds = {FakeDevices{.count = 1}}});
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

const char* text_of(contest::Sequence sequence) {
  switch (sequence) {
    case contest::Sequence::write_and_read:
      return "host writes, device reads";
    case contest::Sequence::overwrite:
      return "host writes, device overwrites, host reads";
    case contest::Sequence::write_a_part:
      return "host writes a sixteenth, device reads";
    case contest::Sequence::read_by_turns:
      return "host and device read";
    case contest::Sequence::add_on_both:
      return "host writes, both add, host reads";
    case contest::Sequence::write_halves:
      break;
  }
  return "each writes a half, both read";
}

/// Ours must copy no more bytes than any peer, and be ahead of all in time.
void measure_sequence(bench::Report& report, contest::Sequence sequence, Index bytes) {
  const std::string name = fmt::format("{}, {} KiB", text_of(sequence), bytes >> 10);
  if (!report.wants(name)) return;
  report.announce(name);
  contest::Work work;
  work.task = contest::Task::coherence;
  work.dims = 1;
  work.axes[0].extent = bytes / 8;
  work.sequence = sequence;
  bench::Contest contest(report.league().with_ranks(1, bench::Game::coherent), work, report.contest_options());
  const std::vector<bench::Score> scores = contest.scores(contest::Freshness::warm);
  const bench::RowRule rule{.name = name, .freshness = contest::Freshness::warm, .goals = {{bench::Rivals::everybody}}};
  bench::Row time = bench::row_of(rule, scores, contest.absences());
  bench::Row moved{.name = name + ": copied", .unit = "bytes", .better = Better::lower, .absent = time.absent};
  for (const bench::Score& score : scores)
    if (score.contender == "tranship")
      moved.ours = double(score.moved_bytes);
    else
      moved.peers.emplace_back(score.contender, double(score.moved_bytes));
  for (const auto& [peer, peer_bytes] : moved.peers) moved.goals.push_back({peer, 1, peer_bytes});
  report.add(std::move(time));
  report.add(std::move(moved));
}

}  // namespace

TRANSHIP_BENCH(buffer, "leases of a buffer on many devices, and copies that they need") {
  measure_leases(report);
  for (const Index regions : {Index(2), Index(100), Index(10'000), Index(1'000'000)})
    if (regions <= 10'000 || !report.is_quick()) measure_regions(report, regions);
  for (const Index regions : {Index(10), Index(100), Index(1000), Index(10'000)}) measure_cuts(report, regions);
  using contest::Sequence;
  for (const Index kibibytes : {Index(64), Index(4096)})
    for (const Sequence sequence : {Sequence::write_and_read, Sequence::overwrite, Sequence::write_a_part,
                                    Sequence::read_by_turns, Sequence::add_on_both, Sequence::write_halves})
      measure_sequence(report, sequence, kibibytes << 10);
  for (const Index kibibytes : {Index(64), Index(4096), Index(262'144)})
    if (kibibytes < 262'144 || !report.is_quick()) measure_refresh(report, kibibytes << 10);
}
