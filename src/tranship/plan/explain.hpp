// Explaining plans: how much moves, between whom, and in how long stretches; as numbers, text and JSON.
//
// Computed from a plan's tables, never cell by cell. How it moves is not the plan's to say: a schedule explains itself
// in run/.
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

/// Stretches of `cells_min` to 2 * cells_min - 1 cells.
struct StretchBin {
  Index cells_min = 1;
  Index count = 0;
  Index bytes = 0;
  friend bool operator==(const StretchBin&, const StretchBin&) = default;
};

/// In how long stretches of consecutive cells of a local array, taken as row-major, data is read or written. Lengths
/// are in cells; zero when nothing moves.
struct Stretches {
  Index shortest = 0;
  Index median = 0;  ///< half of the bytes move in stretches of this length or shorter
  Index longest = 0;
  std::vector<StretchBin> bins;  ///< by powers of two, increasing, empty ones left out
  friend bool operator==(const Stretches&, const Stretches&) = default;
};

/// What goes from and to one peer: one message each way, whatever it is made of.
struct PeerAmount {
  Rank peer = -1;
  Amount received;
  Amount sent;
  friend bool operator==(const PeerAmount&, const PeerAmount&) = default;
};

/// Peers that a summary lists: it enumerates no more transfers than this.
inline constexpr Index transfers_listed_max = Index(1) << 20;

struct PlanSummary {
  PlanKind kind = PlanKind::redistribution;
  /// How what arrives is combined with what is there, in the order of Combine; empty where it overwrites that.
  std::vector<Combine> combines;
  Rank rank = -1;
  /// Messages from and to other ranks; all that goes between two ranks in one direction is one. Above
  /// transfers_listed_max transfers each counts by itself.
  Index messages_received = 0;
  Index messages_sent = 0;
  Amount received;  ///< from other ranks
  Amount sent;      ///< to other ranks
  Amount local;     ///< from this rank to itself
  Amount filled;    ///< by this rank alone: zeros and copies beyond the edges, and what reverses them
  /// On this rank's side, what it gives to itself included.
  Stretches received_stretches;
  Stretches sent_stretches;
  Index stored_runs = 0;
  std::vector<PeerAmount> peers;  ///< the other ranks, ascending; empty above transfers_listed_max transfers
};

/// The plan must be one that a planner has made or load_plan has accepted. Time depends on the plan's tables and on the
/// number of peers.
PlanSummary summarise(const TransferPlan& plan);

/// One screen, for people: totals, stretches, and the largest messages first.
std::string explain_text(const PlanSummary& summary);
std::string explain_text(const TransferPlan& plan);
/// The summary as one JSON object, all peers included. Ends with a newline.
std::string explain_json(const PlanSummary& summary);
std::string explain_json(const TransferPlan& plan);

/// What all ranks do together.
struct WorldSummary {
  struct Busiest {
    Rank rank = -1;
    Index messages = 0;
    Index bytes = 0;
  };
  PlanKind kind = PlanKind::redistribution;
  Index ranks = 0;  ///< that hold a part on either side
  Index messages = 0;
  Amount moved;  ///< between different ranks
  Amount local;
  Amount filled;
  Busiest receiver;  ///< the rank that receives the most bytes
  Busiest sender;
  Index stored_runs_max = 0;    ///< of one rank's plan
  Stretches written_stretches;  ///< where the data arrives
};

/// Plans every rank in turn.
WorldSummary summarise_redistribution(const ArraySpec& source, const ArraySpec& target,
                                      const RedistributionOptions& options = {});
WorldSummary summarise_halo(std::span<const ArraySpec> fields, const HaloOptions& options = {});
WorldSummary summarise_halo(const Tiling& tiling, std::span<const TiledField> fields,
                            const TiledHaloOptions& options = {});

std::string explain_text(const WorldSummary& summary);
std::string explain_json(const WorldSummary& summary);

}  // namespace tranship
