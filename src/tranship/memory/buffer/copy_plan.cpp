#include "tranship/memory/buffer/copy_plan.hpp"

#include <vector>

#include <tranship/memory/device/driver.hpp>

namespace tranship::detail {

namespace {

MemoryId nearest(const Devices& devices, MemorySet set, MemoryId memory) {
  MemoryId best = -1;
  int best_score = -1;
  set.for_each([&](MemoryId source) {
    const int score = route_between(devices, source, memory) == Route::through_host ? 0 : source == 0 ? 1 : 2;
    if (score > best_score) best = source, best_score = score;
  });
  return best;
}

}  // namespace

Route route_between(const Devices& devices, MemoryId source, MemoryId target) {
  if (source == target) return Route::within;
  if (source == 0 || target == 0 || devices.driver(target).reaches(devices.device_of(source))) return Route::direct;
  return Route::through_host;
}

CopyPlan::CopyPlan(const BufferShape& shape, const Residence& residence, const Request& request,
                   std::optional<Cause> asked) {
  const Region& region = request.region ? *request.region : shape.whole;
  if (request.leaving >= 0)
    add_eviction_steps(residence.cells, request.leaving, request.memory, region, steps);
  else
    add_steps(
        residence.cells, shape.options.name, request.intent, request.combine, request.memory, region,
        shape.options.contents, [&](MemorySet set, MemoryId memory) { return nearest(shape.devices, set, memory); },
        steps);
  add_records(shape, residence, steps.all(), request, asked, records);
  if (writes(request.intent) || !steps.empty()) own = residence.own_copy_of(request);
  if (own && !own->empty()) records.add() = record_of_own(shape, *own, request);
}

void add_records(const BufferShape& shape, const Residence& residence, std::span<const Step> steps,
                 const Request& request, std::optional<Cause> asked, Few<CopyRecord>& records) {
  std::vector<std::vector<Box>> further;  // further boxes of each record
  const auto add = [&](const Step& step, MemoryId source, Cause cause) {
    if (source == request.memory || source < 0) return;
    const Device device = shape.devices.device_of(source);
    const CallSite writer = step.before.writer;
    if (asked)
      cause = *asked;
    else
      cause = request.cause ? *request.cause : step.before.cause.value_or(cause);
    const std::span<const CopyRecord> known = records.all();
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i].source == device && known[i].cause == cause && known[i].writer.line == writer.line &&
          known[i].writer.file == writer.file) {
        further.resize(known.size());
        further[i].push_back(step.box);
        return;
      }
    CopyRecord& record = records.add();
    record.buffer = shape.options.name;
    record.buffer_number = shape.number;
    record.source = device;
    record.target = shape.devices.device_of(request.memory);
    record.region = step.box;
    record.route = route_between(shape.devices, source, request.memory);
    record.cause = cause;
    record.requester = request.where;
    record.writer = writer;
  };
  for (const Step& step : steps) {
    const bool is_new = !residence.copies[request.memory] || !step.before.touched.has(request.memory);
    switch (step.kind) {
      case Step::Kind::zero:
      case Step::Kind::identity:
        break;
      case Step::Kind::copy:
      case Step::Kind::take:
      case Step::Kind::fold:
        add(step, step.source, is_new ? Cause::first_touch : Cause::stale);
        break;
      case Step::Kind::merge:
        add(step, step.source, Cause::merge);
        step.before.partial.for_each([&](MemoryId memory) { add(step, memory, Cause::merge); });
        break;
    }
  }
  const std::span<CopyRecord> all = records.all();
  for (std::size_t i = 0; i < further.size(); ++i) {
    if (further[i].empty()) continue;
    further[i].push_back(all[i].region.boxes()[0]);
    all[i].region = Region::boxes(further[i]);
  }
  for (CopyRecord& record : all) record.bytes = shape.bytes_of(record.region);
}

CopyRecord record_of_own(const BufferShape& shape, const Region& moved, const Request& request) {
  return {.buffer = shape.options.name,
          .buffer_number = shape.number,
          .source = shape.devices.device_of(request.memory),
          .target = shape.devices.device_of(request.memory),
          .region = moved,
          .bytes = shape.bytes_of(moved),
          .route = Route::within,
          .cause = Cause::duplicate,
          .requester = request.where};
}

}  // namespace tranship::detail
