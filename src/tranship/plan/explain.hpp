// Explains plans: how much moves, between which ranks, and in stretches of which lengths; as numbers, text and JSON.
//
// Everything is computed from a plan's tables, never cell by cell. A plan does not say how data moves; a schedule
// explains that in run/.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tranship/plan/halo.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {

struct Amount {
  Index cells = 0;
  Index bytes = 0;
  friend bool operator==(const Amount&, const Amount&) = default;
};

/// All stretches of cells_min to 2 * cells_min - 1 cells.
struct StretchBin {
  Index cells_min = 1;
  Index count = 0;
  Index bytes = 0;
  friend bool operator==(const StretchBin&, const StretchBin&) = default;
};

/// Lengths of the stretches of consecutive cells in which data is read or written. The local array is taken as
/// row-major. Lengths are in cells, and zero when nothing moves.
struct Stretches {
  Index shortest = 0;
  Index median = 0;  ///< half of the bytes move in stretches of at most this length
  Index longest = 0;
  std::vector<StretchBin> bins;  ///< by powers of two, increasing; empty bins are left out
  friend bool operator==(const Stretches&, const Stretches&) = default;
};

/// The amounts that go from and to one peer: at most one message each way, whatever its arrays.
struct PeerAmount {
  Rank peer = -1;
  Amount received;
  Amount sent;
  friend bool operator==(const PeerAmount&, const PeerAmount&) = default;
};

/// A summary enumerates at most this many transfers; with more, it does not list peers.
inline constexpr Index transfers_listed_max = Index(1) << 20;

struct PlanSummary {
  PlanKind kind = PlanKind::redistribution;
  /// How received values are combined with the present ones, in the order of Combine; empty if they overwrite them.
  std::vector<Combine> combines;
  Rank rank = -1;
  /// Messages from and to other ranks. All that goes from one rank to another is one message. Above
  /// transfers_listed_max transfers, each transfer counts as a message.
  Index messages_received = 0;
  Index messages_sent = 0;
  Amount received;  ///< from other ranks
  Amount sent;      ///< to other ranks
  Amount local;     ///< from this rank to itself
  Amount filled;    ///< by this rank alone: zeros and copies beyond the edges, and their adjoints
  /// On this rank's side, including what it gives to itself.
  Stretches received_stretches;
  Stretches sent_stretches;
  Index stored_runs = 0;
  std::vector<PeerAmount> peers;  ///< the other ranks, in increasing order; empty above transfers_listed_max transfers
};

/// Summarises a plan, which must come from a planner or from load_plan. Time grows with the plan's tables and the
/// number of peers.
PlanSummary summarise(const TransferPlan& plan);

/// Return one screen of text: totals, stretches, and the largest messages first.
std::string explain_text(const PlanSummary& summary);
std::string explain_text(const TransferPlan& plan);
/// Return the summary as one JSON object with all peers and a final newline.
std::string explain_json(const PlanSummary& summary);
std::string explain_json(const TransferPlan& plan);

/// The moves of all ranks together.
struct WorldSummary {
  struct Busiest {
    Rank rank = -1;
    Index messages = 0;
    Index bytes = 0;
  };
  PlanKind kind = PlanKind::redistribution;
  Index ranks = 0;  ///< ranks that hold a part on either side
  Index messages = 0;
  Amount moved;  ///< between different ranks
  Amount local;
  Amount filled;
  Busiest receiver;  ///< the rank that receives the most bytes
  Busiest sender;
  Index stored_runs_max = 0;    ///< most runs that the plan of one rank stores
  Stretches written_stretches;  ///< on the side where the data arrives
};

/// These plan every rank in turn, and throw the errors of the planners.
WorldSummary summarise_redistribution(const ArraySpec& source, const ArraySpec& target,
                                      const RedistributionOptions& options = {});
WorldSummary summarise_halo(std::span<const ArraySpec> fields, const HaloOptions& options = {});
WorldSummary summarise_halo(const Tiling& tiling, std::span<const TiledField> fields,
                            const TiledHaloOptions& options = {});

std::string explain_text(const WorldSummary& summary);
std::string explain_json(const WorldSummary& summary);

}  // namespace tranship
