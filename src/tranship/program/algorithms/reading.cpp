#include <string>
#include <utility>

#include <tranship/program/algorithms/mesh.hpp>

// Programs in which ranks read the data of others and write only their own. Where processors share memory, writing a
// cache line that another core holds costs more than reading it.
namespace tranship::algorithms_detail {
namespace {

enum class From : std::uint8_t {
  inputs,  ///< the inputs themselves, which must not change until all have read them: ranks meet twice
  copies,  ///< copies in scratch, whose two halves alternate between launches: ranks meet once, after the copy
};

/// A program whose ranks read from one buffer of each rank. `own(program, rank)` does the work that needs no peer,
/// while the peers' signals travel; `read(..., buffers)` reads the buffers.
template <class Own, class Read>
Program by_reading(const char* name, const lang::Collective& what, const AlgorithmOptions& options, From from,
                   Own&& own, Read&& read) {
  const Rank ranks = options.ranks;
  lang::Options language = language_options(options);
  language.double_scratch = from == From::copies;
  const bool has_copies = from == From::copies && ranks > 1;
  lang::CollectiveProgram program(what.name + "_" + name, what, language);
  Memory channels(program);
  std::vector<lang::Buffer> buffers;
  for (Rank rank = 0; rank < ranks; ++rank)
    buffers.push_back(has_copies ? program.scratch(rank, program.input(rank).chunks()) : program.input(rank));
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::vector<Rank> peers = others(rank, ranks);
    if (has_copies) program.copy(buffers[std::size_t(rank)].all(), program.input(rank).all(), block);
    const lang::SyncOptions told{.data_sync = has_copies ? lang::DataSync::before : lang::DataSync::none,
                                 .relaxed = !has_copies};
    for (const Rank peer : peers) channels(rank, peer).signal(block, told);
    own(program, rank);
    for (const Rank peer : peers)
      channels(rank, peer).wait(block, {.data_sync = lang::DataSync::after, .relaxed = !has_copies});
    read(program, channels, rank, peers, buffers);
    if (!has_copies) end_with(channels, rank, peers);
  }
  return program.lower();
}

void nothing(lang::CollectiveProgram&, Rank) {}

/// Combines part `part(rank)` of the buffers of all ranks into the output.
template <class Part>
auto reduce_parts(const AlgorithmOptions& options, Part part) {
  return [&options, part](lang::CollectiveProgram& program, Memory& channels, Rank rank, const std::vector<Rank>& peers,
                          const std::vector<lang::Buffer>& buffers) {
    const lang::Chunk sum = program.output(rank).all();
    const lang::Chunk own = program.input(rank)[part(rank)];
    if (peers.empty()) copy_own(program, options, sum, own);
    reduce_in_turn(channels, rank, peers, sum, own, [&](Rank peer) { return buffers[std::size_t(peer)][part(rank)]; });
  };
}

/// Gathers chunk `place(rank)` of the buffers of all ranks into the output, in the order of ranks.
template <class Place>
Program gather(lang::Collective what, const AlgorithmOptions& options, From from, Place place) {
  return by_reading(
      from == From::copies ? "copies" : "reading", std::move(what), options, from,
      [&](lang::CollectiveProgram& program, Rank rank) {
        if (!options.in_place)
          program.copy(one(program.output(rank), rank), one(program.input(rank), place(rank)), block);
      },
      [&](lang::CollectiveProgram& program, Memory& channels, Rank rank, const std::vector<Rank>& peers,
          const std::vector<lang::Buffer>& buffers) {
        for (const Rank peer : peers)
          channels(rank, peer)
              .get(one(program.output(rank), peer), one(buffers[std::size_t(peer)], place(rank)), block);
      });
}

Program reduce_whole(const AlgorithmOptions& options, From from) {
  const Rank ranks = options.ranks;
  return by_reading(from == From::copies ? "copies" : "reading",
                    lang::all_reduce(ranks, {.in_place = options.in_place}), options, from, nothing,
                    reduce_parts(options, [=](Rank) {
                      return lang::Buffer::Range{0, ranks};
                    }));
}
Program gather_all(const AlgorithmOptions& options, From from) {
  return gather(lang::all_gather(options.ranks, {.in_place = options.in_place}), options, from,
                [](Rank) { return Index(0); });
}
Program exchange_all(const AlgorithmOptions& options, From from) {
  return gather(lang::all_to_all(options.ranks, {.in_place = options.in_place}), options, from,
                [](Rank rank) { return Index(rank); });
}

}  // namespace

Program all_reduce_reading(const AlgorithmOptions& options) {
  return reduce_whole(options, From::inputs);
}
Program all_reduce_copies(const AlgorithmOptions& options) {
  return reduce_whole(options, From::copies);
}
Program all_gather_reading(const AlgorithmOptions& options) {
  return gather_all(options, From::inputs);
}
Program all_gather_copies(const AlgorithmOptions& options) {
  return gather_all(options, From::copies);
}
Program reduce_scatter_copies(const AlgorithmOptions& options) {
  return by_reading("copies", lang::reduce_scatter(options.ranks, {.in_place = options.in_place}), options,
                    From::copies, nothing, reduce_parts(options, [](Rank rank) {
                      return lang::Buffer::Range{rank, rank + 1};
                    }));
}
Program all_to_all_reading(const AlgorithmOptions& options) {
  return exchange_all(options, From::inputs);
}
Program all_to_all_copies(const AlgorithmOptions& options) {
  return exchange_all(options, From::copies);
}

}  // namespace tranship::algorithms_detail
