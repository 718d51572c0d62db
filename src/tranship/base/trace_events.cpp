#include "tranship/base/trace_events.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace tranship {
namespace {

double microseconds(std::int64_t ns) {
  return double(ns) / 1e3;
}

/// Tracks are numbered from 1, in the order of their first slices.
class Tracks {
 public:
  int track_for(const TraceSlice& slice) {
    Ends& ends = ends_[slice.track];
    int track = 0;
    if (!ends.empty() && ends.top().first <= slice.begin_ns) {
      track = ends.top().second;
      ends.pop();
    } else {
      names_.push_back(slice.track);
      track = int(names_.size());
    }
    ends.emplace(std::max(slice.begin_ns, slice.end_ns), track);
    return track;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  using End = std::pair<std::int64_t, int>;
  using Ends = std::priority_queue<End, std::vector<End>, std::greater<>>;
  std::map<std::string, Ends> ends_;
  std::vector<std::string> names_;
};

Json name_event(const char* what, std::int64_t process, int track, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

Json trace_events(const TraceProcess& process, std::vector<TraceSlice> slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const TraceSlice& a, const TraceSlice& b) { return a.begin_ns < b.begin_ns; });
  Tracks tracks;
  Json events = Json::array();
  for (TraceSlice& slice : slices) {
    const int track = tracks.track_for(slice);
    if (slice.end_ns < slice.begin_ns) slice.args["unfinished"] = true;
    events.push_back({{"name", std::move(slice.name)},
                      {"cat", std::move(slice.category)},
                      {"ph", "X"},
                      {"pid", process.id},
                      {"tid", track},
                      {"ts", microseconds(slice.begin_ns - process.zero_ns)},
                      {"dur", microseconds(std::max<std::int64_t>(0, slice.end_ns - slice.begin_ns))},
                      {"args", std::move(slice.args)}});
  }
  events.push_back(name_event("process_name", process.id, 0, process.name));
  int track = 0;
  for (const std::string& name : tracks.names()) events.push_back(name_event("thread_name", process.id, ++track, name));
  return events;
}

std::string trace_text(Json events) {
  const Json trace = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return trace.dump({.invalid = InvalidUtf8::replace});
}

}  // namespace tranship
