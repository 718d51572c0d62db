#include "tranship/file/engine/forecast.hpp"

#include <set>

#include <sys/statvfs.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/engine/reshard_run.hpp>
#include <tranship/file/engine/run_plan.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/file/io/target_path.hpp>
#include <tranship/plan/explain.hpp>

namespace tranship {
namespace {

Index free_bytes(const std::string& folder) {
  struct statvfs status;
  if (::statvfs(folder.c_str(), &status) != 0) throw posix::io_error("look at", folder, errno);
  return checked_multiply(static_cast<Index>(status.f_bavail), static_cast<Index>(status.f_frsize));
}

}  // namespace

ReshardForecast forecast_of(std::span<const StoredParts> sources, const NewArrays& made, const std::string& target,
                            Index inflated_bytes, Index memory_bytes, int threads) {
  const ReshardRunOptions settled_options = settled({.memory_bytes = memory_bytes, .threads = threads});
  ReshardForecast out{
      .memory_bytes = settled_options.memory_bytes, .threads = settled_options.threads, .disk_bytes = inflated_bytes};
  const RunPlan run(sources, made.arrays, settled_options.memory_bytes);
  out.intermediate_bytes = run.intermediate_bytes();
  // Members that are unpacked first are also read in their archive.
  out.bytes_read = checked_add(run.bytes_read_max(), inflated_bytes);
  out.disk_bytes = checked_add(out.disk_bytes, out.intermediate_bytes);
  for (const NewFile& file : made.files) out.disk_bytes = checked_add(out.disk_bytes, file.size_bytes);
  out.files = static_cast<Index>(made.files.size());
  // All tensors between one file of the source and one of the target count as one message.
  std::set<std::pair<Index, Index>> pairs;
  for (std::size_t n = 0; n < sources.size(); ++n) {
    const StoredParts &source = sources[n], &wanted = made.arrays[n];
    const PartPlanner planner(source.spec, wanted.spec);
    for (Index part = 0; part < static_cast<Index>(wanted.parts.size()); ++part) {
      const PlanSummary plan = summarise(planner.plan(part).moves);
      out.bytes_written = checked_add(out.bytes_written, wanted.part_bytes(part));
      ++out.parts;
      if (sources.size() == 1)
        out.messages += plan.messages_received;
      else
        for (const PeerAmount& peer : plan.peers)
          if (peer.received.cells > 0) pairs.emplace(source.parts[peer.peer].file, wanted.parts[part].file);
    }
  }
  if (sources.size() > 1) out.messages = static_cast<Index>(pairs.size());
  if (!target.empty()) {
    const std::string place = resolved_target(target);
    check_replacing_is_permitted(place);
    out.disk_free_bytes = free_bytes(folder_of(place));
  }
  return out;
}

}  // namespace tranship
