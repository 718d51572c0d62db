// Private: events of the Trace Event Format, which Perfetto and chrome://tracing open.
//
// All events are complete ones (ph "X") on tracks of one process. Viewers drop slices of a track that overlap without
// nesting, so slices that overlap in time lie on tracks of their own, of one name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tranship/base/json.hpp>

namespace tranship {

struct TraceSlice {
  std::string track;  ///< of the same name: one below the other where they overlap
  std::string name;
  std::string category;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  ///< before `begin_ns`: not over yet; it lasts 0 and says so
  Json args;                ///< an object
};

/// A process of the trace.
struct TraceProcess {
  std::int64_t id = 1;
  std::string name;
  std::int64_t zero_ns = 0;  ///< which is 0 in the trace
};

/// The events of the slices, by their begin, then the names of the process and its tracks.
Json trace_events(const TraceProcess& process, std::vector<TraceSlice> slices);

/// A whole trace as text. What is no UTF-8 is replaced.
std::string trace_text(Json events);

}  // namespace tranship
