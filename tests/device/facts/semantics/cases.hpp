// Declares the questions, sorted by topic. Each function runs in a process of its own. Read next: main.cpp.
#pragma once

#include "facts/options.hpp"

namespace tranship::device {

void ask_copies(const Options& options);          // copies.cpp
void ask_order(const Options& options);           // order.cpp
void ask_events(const Options& options);          // streams.cpp
void ask_streams(const Options& options);         // streams.cpp
void ask_host_functions(const Options& options);  // host_functions.cpp
/// Continues in a new process when a call hangs.
void ask_calls_of_host_functions(const Options& options);  // host_functions.cpp
void ask_graphs(const Options& options);                   // graphs.cpp
void ask_captures(const Options& options);                 // captures.cpp
void ask_errors(const Options& options);                   // errors.cpp
void ask_limits(const Options& options);                   // errors.cpp
void ask_wrong_memory(const Options& options);             // errors.cpp
void ask_mapping(const Options& options);                  // mapping.cpp
void ask_blocks(const Options& options);                   // blocks.cpp

// Each of these loses its context, or may lose it.
void fault_by_address(const Options& options);  // faults.cpp, and so are the next
void fault_seen_first(const Options& options);
void fault_beside_others(const Options& options);
void fault_before_host_functions(const Options& options);
void fault_in_another_process(const Options& options);
void fault_quietly(const Options& options);
void fault_by_trap(const Options& options);
void fault_by_assertion(const Options& options);
void fault_by_misalignment(const Options& options);
void fault_beyond_shared(const Options& options);
void fault_by_recursion(const Options& options);
void fault_in_graph(const Options& options);
void fault_after_free(const Options& options);
void launch_into_destroyed_stream(const Options& options);
void fault_unmapped(const Options& options);  // mapping_faults.cpp, and so are the next
void fault_without_access(const Options& options);
void fault_read_only(const Options& options);
void fault_unmapped_in_use(const Options& options);
void copy_to_unmapped(const Options& options);

}  // namespace tranship::device
