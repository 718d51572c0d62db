// PartSource: arrays that are kept in chunks go through the engine as parts in files do. The chunks lie in memory, and
// every element that comes out is compared with the oracle.
#include <atomic>
#include <cstring>
#include <mutex>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/file/engine/block_run.hpp>
#include <tranship/file/engine/reshard_run.hpp>
#include <tranship/file/engine/row_blocks.hpp>
#include <tranship/file/format/npy.hpp>
#include <tranship/file/store/strided_source.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"
#include "support/oracle.hpp"
#include "support/random_layouts.hpp"

namespace tranship {
namespace {

using testing::TemporaryFolder;

void write_element(Index number, ElementType type, std::byte* to) {
  test::Random random(static_cast<std::uint64_t>(number));
  for (int i = 0; i < size_bytes(type); ++i) to[i] = static_cast<std::byte>(random.bits() & 0xff);
}

/// Parts in chunks, those at the edges filled up with rubbish. A format would read and decode them here.
class ChunkedSource final : public PartSource {
 public:
  ChunkedSource(const ArraySpec& spec, const test::Global& values, const std::vector<Indices>& chunks) : spec_(spec) {
    const Grid& grid = spec.distribution.grid();
    for (Index i = 0; i < grid.size(); ++i) {
      const Rank rank = grid.rank_at(i);
      Part& part = parts_.emplace_back();
      part.extents = spec.distribution.local_extents(rank);
      part.chunk = chunks[static_cast<std::size_t>(i)];
      for (int d = 0; d < part.extents.size(); ++d) part.counts.push_back(ceil_divide(part.extents[d], part.chunk[d]));
      part.chunks.resize(static_cast<std::size_t>(checked_product(part.counts)));
      for (auto& chunk : part.chunks)
        chunk.assign(static_cast<std::size_t>(checked_product(part.chunk) * size_bytes(spec.type)), std::byte{0xee});
      for_each_coordinate(part.extents, [&](const Indices& local) {
        const Distribution::Cell cell = spec.distribution.cell_of(rank, local);
        write_element(cell.owned ? values(cell.at) : -1, spec.type, at(part, local));
      });
    }
  }

  Indices extents(Index part) const override { return parts_[static_cast<std::size_t>(part)].extents; }
  Indices grain(Index part) const override { return parts_[static_cast<std::size_t>(part)].chunk; }
  void read(Index ordinal, const Box& box, const StridedView& target, ReadScratch&) const override {
    const Part& part = parts_[static_cast<std::size_t>(ordinal)];
    EXPECT_EQ(target.type, spec_.type);
    EXPECT_EQ(target.extents, box.extents());
    const auto width = static_cast<std::size_t>(size_bytes(spec_.type));
    bool one_chunk = true;
    for (int d = 0; d < box.dims(); ++d)
      one_chunk &= box.lower[d] / part.chunk[d] == (box.upper[d] - 1) / part.chunk[d];
    if (!one_chunk) ++reads_across_;
    ++reads_;
    for_each_coordinate(box.extents(), [&](const Indices& cell) {
      Indices local = cell;
      Index to = 0;
      for (int d = 0; d < cell.size(); ++d) {
        local[d] += box.lower[d];
        to += cell[d] * target.strides[d];
      }
      std::memcpy(static_cast<std::byte*>(target.data) + to * static_cast<Index>(width), at(part, local), width);
    });
  }

  Index reads() const { return reads_; }
  /// How many of them were of more than one chunk.
  Index reads_across() const { return reads_across_; }

 private:
  struct Part {
    Indices extents, chunk, counts;
    std::vector<std::vector<std::byte>> chunks;
  };

  std::byte* at(Part& part, const Indices& local) const {
    Index chunk = 0, in_chunk = 0;
    for (int d = 0; d < local.size(); ++d) {
      chunk = chunk * part.counts[d] + local[d] / part.chunk[d];
      in_chunk = in_chunk * part.chunk[d] + local[d] % part.chunk[d];
    }
    return part.chunks[static_cast<std::size_t>(chunk)].data() + in_chunk * size_bytes(spec_.type);
  }
  const std::byte* at(const Part& part, const Indices& local) const { return at(const_cast<Part&>(part), local); }

  ArraySpec spec_;
  std::vector<Part> parts_;
  mutable std::atomic<Index> reads_ = 0, reads_across_ = 0;
};

/// An array as the engine sees it, without a file.
StoredParts parts_of(const ArraySpec& spec, StoredOrder order = {}) {
  StoredParts out{.spec = spec,
                  .descr = make_npy_header(spec.type, {1}).descr,
                  .files = std::make_shared<FileSet>(FileAccess::read_only)};
  const Grid& grid = spec.distribution.grid();
  for (Index i = 0; i < grid.size(); ++i)
    out.parts.push_back({.order = order, .extents = spec.distribution.local_extents(grid.rank_at(i))});
  return out;
}

std::shared_ptr<const ChunkedSource> random_chunks(test::Random& random, const ArraySpec& spec) {
  std::vector<Indices> chunks;
  for (const StoredPart& part : parts_of(spec).parts) {
    Indices& chunk = chunks.emplace_back();
    for (const Index extent : part.extents) chunk.push_back(random.between(1, extent + 2));
  }
  return std::make_shared<const ChunkedSource>(spec, test::Global(spec.distribution), chunks);
}

std::vector<std::byte> expected_part(const StoredParts& parts, Index ordinal) {
  const ArraySpec& spec = parts.spec;
  const Rank rank = spec.distribution.grid().rank_at(ordinal);
  const test::Global values(spec.distribution);
  const test::LocalPoints points(spec.distribution, rank);
  std::vector<std::byte> out(static_cast<std::size_t>(parts.part_bytes(ordinal)));
  const Indices strides = view_of(parts.parts[ordinal], spec.type, nullptr).strides;
  for_each_coordinate(points.extents(), [&](const Indices& local) {
    Index begin = 0;
    for (int d = 0; d < local.size(); ++d) begin += local[d] * strides[d] * size_bytes(spec.type);
    Indices cell;
    if (spec.distribution.is_indexed())
      write_element(values(spec.distribution.cell_of(rank, local).at), spec.type, &out[begin]);
    else if (points.resolve_at(local, cell) == test::Resolved::value)
      write_element(values(cell), spec.type, &out[begin]);
  });
  return out;
}

using PartBytes = std::vector<std::vector<std::byte>>;

/// Parts in memory.
class DenseSource final : public PartSource {
 public:
  DenseSource(const StoredParts& array, PartBytes bytes) : array_(array), bytes_(std::move(bytes)) {}
  Indices extents(Index part) const override { return array_.parts[part].extents; }
  void read(Index part, const Box& box, const StridedView& target, ReadScratch&) const override {
    const auto width = static_cast<std::size_t>(size_bytes(array_.spec.type));
    const Indices strides = view_of(array_.parts[part], array_.spec.type, nullptr).strides;
    for_each_coordinate(box.extents(), [&](const Indices& cell) {
      Index from = 0, to = 0;
      for (int d = 0; d < cell.size(); ++d) {
        from += (cell[d] + box.lower[d]) * strides[d];
        to += cell[d] * target.strides[d];
      }
      std::memcpy(static_cast<std::byte*>(target.data) + to * static_cast<Index>(width),
                  bytes_[part].data() + from * static_cast<Index>(width), width);
    });
  }

 private:
  const StoredParts& array_;
  PartBytes bytes_;
};

/// What a plan makes of its source.
PartBytes assembled(std::unique_ptr<const BlockPlan> plan, Index memory_bytes) {
  const StoredParts& wanted = *plan->job().wanted;
  const ArraySpec& to = wanted.spec;
  PartBytes found;
  for (std::size_t i = 0; i < wanted.parts.size(); ++i)
    found.emplace_back(static_cast<std::size_t>(wanted.part_bytes(static_cast<Index>(i))), std::byte{0xaa});
  std::mutex mutex;
  const auto none = [](const BlockAddress&) { return false; };
  const auto keep = [&](const FileBlock& block) {
    const std::lock_guard lock(mutex);
    for_each_stretch(wanted.parts[static_cast<std::size_t>(block.at.part)], size_bytes(to.type), block.box,
                     [&](Index offset, Index in_block, Index bytes) {
                       offset -= wanted.parts[block.at.part].offset_bytes;
                       std::memcpy(found[static_cast<std::size_t>(block.at.part)].data() + offset,
                                   block.bytes.data() + in_block, static_cast<std::size_t>(bytes));
                     });
  };
  const auto watch = [] {};
  run_blocks({&plan, 1}, {.memory_bytes = memory_bytes, .threads = 1, .skip = none, .sink = keep, .watch = watch});
  return found;
}

/// Through an intermediate where there is one.
PartBytes assembled_through(const BlockJob& job, Index memory_bytes) {
  const RowMoves moves(job);
  auto rows = rows_between(job, moves, memory_bytes, 0);
  if (!rows) return assembled(plan_blocks(job, memory_bytes), memory_bytes);
  StoredParts& between = rows->parts;
  between.files = std::make_shared<FileSet>(FileAccess::read_only);
  PartBytes bytes =
      assembled(std::make_unique<RowBlocks>(BlockJob{job.source, &between}, rows->to, memory_bytes), memory_bytes);
  between.source = std::make_shared<const DenseSource>(between, std::move(bytes));
  return assembled(std::make_unique<RowBlocks>(BlockJob{&between, job.wanted}, rows->from, memory_bytes, rows->second),
                   memory_bytes);
}

/// Assembles all parts of `to` out of chunks; what is wrong with one.
std::string fault(test::Random& random, const ArraySpec& from, const ArraySpec& to, Index memory_bytes) {
  const auto order = [&] { return random.one_in(2) ? NpyOrder::c : NpyOrder::fortran; };
  StoredParts source = parts_of(from, order());
  const auto chunked = random_chunks(random, from);
  source.source = chunked;
  const StoredParts wanted = parts_of(to, order());
  const BlockJob job{&source, &wanted};
  const PartBytes found = RowMoves::are_needed(job) && random.one_in(2)
                              ? assembled_through(job, memory_bytes)
                              : assembled(plan_blocks(job, memory_bytes), memory_bytes);
  const std::string what = to_text(from) + "\n  " + to_text(to);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected_part(wanted, static_cast<Index>(i))) return fmt::format("part {} of\n  {}", i, what);
  // Lists are read with all of their trailing dimensions.
  const bool listed = from.distribution.is_indexed() || to.distribution.is_indexed();
  if (!listed && chunked->reads_across() > 0)
    return fmt::format("{} reads of several chunks:\n  {}", chunked->reads_across(), what);
  return "";
}

ElementType random_type(test::Random& random) {
  constexpr ElementType types[] = {ElementType::u8, ElementType::i16, ElementType::f64, ElementType::c64,
                                   ElementType::c256};
  return types[random.below(std::size(types))];
}

/// From windows that hold a chunk to those that hold an element.
Index random_memory_bytes(test::Random& random) {
  return random.one_in(2) ? Index(1) << 20 : 32 * random.between(32, 400);
}

TEST(PartSource, ChunksAreReshardedAsTheOracleSays) {
  EXPECT_EQ(test::first_fault(0.2,
                              [](std::uint64_t seed) {
                                test::Random random(seed);
                                const Indices extents = test::random_extents(random, int(random.between(1, 4)));
                                const ElementType type = random_type(random);
                                const ArraySpec from{type, test::random_distribution(random, extents)};
                                const ArraySpec to{type, test::random_distribution(random, extents)};
                                return fault(random, from, to, random_memory_bytes(random));
                              }),
            "");
}

TEST(PartSource, ChunksOfIndexedLayoutsToo) {
  EXPECT_EQ(test::first_fault(0.1,
                              [](std::uint64_t seed) {
                                test::Random random(seed);
                                const int indexed_dims = int(random.between(1, 2));
                                Indices extents;
                                for (int d = 0; d < indexed_dims; ++d) extents.push_back(random.between(1, 8));
                                const Indices leading = extents;
                                if (random.one_in(2)) extents.push_back(random.between(1, 3));
                                const ElementType type = random_type(random);
                                const auto structured = [&] {
                                  return test::with_rest(random, test::random_distribution(random, leading), extents);
                                };
                                const auto indexed = [&] {
                                  return test::random_indexed(random, extents, indexed_dims, 3, {5, 1, 2});
                                };
                                const bool listed_source = random.one_in(2);
                                const ArraySpec from{type, listed_source ? indexed() : structured()};
                                const ArraySpec to{type, listed_source && random.one_in(2) ? structured() : indexed()};
                                return fault(random, from, to, random_memory_bytes(random));
                              }),
            "");
}

TEST(PartSource, EachChunkIsReadOnce) {
  const ArraySpec from{ElementType::f64, parse_layout("f64[60,60] @ 1x1 : whole, whole").distribution};
  // Every block takes every other row and column: many stretches of all 4 chunks.
  const ArraySpec to{ElementType::f64, parse_layout("f64[60,60] @ 2x2 : cyclic(1), cyclic(1)").distribution};
  StoredParts source = parts_of(from);
  const auto chunked =
      std::make_shared<const ChunkedSource>(from, test::Global(from.distribution), std::vector<Indices>{{30, 30}});
  source.source = chunked;
  const StoredParts wanted = parts_of(to);
  const auto plan = plan_blocks({&source, &wanted}, 8 << 20);
  const auto none = [](const BlockAddress&) { return false; };
  Index blocks = 0;
  const auto count = [&](const FileBlock&) { ++blocks; };
  const auto watch = [] {};
  run_blocks({&plan, 1}, {.memory_bytes = 8 << 20, .threads = 1, .skip = none, .sink = count, .watch = watch});
  EXPECT_EQ(blocks, 4);
  EXPECT_EQ(chunked->reads(), 4);
}

TEST(PartSource, AChunkedArrayBecomesFilesThatAreVerified) {
  TemporaryFolder folder(testing::FolderPlace::memory);
  const ArraySpec from = parse_layout("f64[40,90] @ 2x3 : block+overlap(1,2), cyclic(7)");
  const ArraySpec to = parse_layout("f64[40,90] @ 3x1 : cyclic(4)+overlap(1,1,toroidal), whole");
  test::Random random(7);
  StoredParts source = parts_of(from);
  source.source = random_chunks(random, from);
  NewParts target =
      NewParts::open(folder.path("parts"), new_array(folder.path("parts"), to, {source.descr, false}).value()).value();
  const auto manifest = [&](std::span<const std::uint32_t> checksums) {
    Manifest out = make_manifest(to, source.descr);
    out.checksums.assign(checksums.begin(), checksums.end());
    return std::vector{TextFile{manifest_name, format_manifest(out)}};
  };
  const auto reopen = [&](const std::string& path) { return std::vector{open_parts(path).value()}; };
  run_reshard({{&source, 1}, *source.files, {}}, target,
              settled({.verify = Verify::yes, .memory_bytes = reshard_memory_min, .threads = 2}),
              {.manifest = manifest, .reopen = reopen});

  const StoredParts made = open_parts(folder.path("parts")).value();
  ReadScratch scratch(4096);
  for (Index i = 0; i < static_cast<Index>(made.parts.size()); ++i) {
    const Box all = Box::of_extents(made.parts[static_cast<std::size_t>(i)].extents);
    std::vector<std::byte> found(static_cast<std::size_t>(made.part_bytes(i)));
    const StridedView view{
        .data = found.data(), .type = to.type, .extents = all.extents(), .strides = row_major_strides(all.extents())};
    SourceOf(made)->read(i, all, view, scratch);
    EXPECT_EQ(found, expected_part(parts_of(to), i)) << "part " << i;
  }
}

TEST(PartSource, PiecesOfABoxFollowEachOtherInItsElements) {
  EXPECT_EQ(test::first_fault(0.1,
                              [](std::uint64_t seed) -> std::string {
                                test::Random random(seed);
                                const Indices extents = test::random_extents(random, int(random.between(1, 4)));
                                Box box{extents, extents};
                                for (int d = 0; d < extents.size(); ++d) {
                                  box.lower[d] = random.between(0, extents[d]);
                                  box.upper[d] = random.between(box.lower[d], extents[d]);
                                }
                                const NpyOrder file_order = random.one_in(2) ? NpyOrder::c : NpyOrder::fortran;
                                const Indices order = dimension_order(file_order, extents.size());
                                const Indices strides = dense_strides(box.extents(), order);
                                const Index cells_max = random.between(1, 40);
                                Index next = 0;
                                std::string wrong;
                                for_each_piece(box, order, cells_max, [&](const Box& piece, Index first) {
                                  if (first != next || piece.count() > cells_max || piece.empty())
                                    wrong = "other cells";
                                  const Indices dense = dense_strides(piece.extents(), order);
                                  for_each_coordinate(piece.extents(), [&](const Indices& at) {
                                    Index in_piece = first, in_box = 0;
                                    for (int d = 0; d < at.size(); ++d) {
                                      in_piece += at[d] * dense[d];
                                      in_box += (piece.lower[d] - box.lower[d] + at[d]) * strides[d];
                                    }
                                    if (in_piece != in_box) wrong = "not dense in the box";
                                  });
                                  next += piece.count();
                                });
                                return !wrong.empty() ? wrong : next == box.count() ? "" : "cells are left out";
                              }),
            "");
}

}  // namespace
}  // namespace tranship
