// Private: writes the Trace Event Format, which Perfetto and chrome://tracing open.
//
// All events are complete events (ph "X") on the tracks of one process. Viewers drop slices of a track that overlap
// without nesting, so slices that overlap in time get separate tracks with the same name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tranship/base/json.hpp>

namespace tranship {

struct TraceSlice {
  std::string track;  ///< slices of one name share a track, except those that overlap in time
  std::string name;
  std::string category;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  ///< earlier than `begin_ns`: still running; written with length 0 and a mark
  Json args;                ///< an object
};

/// A process of the trace.
struct TraceProcess {
  std::int64_t id = 1;
  std::string name;
  std::int64_t zero_ns = 0;  ///< the time that the trace shows as 0
};

/// Returns the events of the slices, sorted by their begin, then the names of the process and its tracks.
Json trace_events(const TraceProcess& process, std::vector<TraceSlice> slices);

/// Returns a whole trace as text. Bytes that are not UTF-8 are replaced.
std::string trace_text(Json events);

}  // namespace tranship
