// Reshard: every element against an oracle that knows files by their headers and cells by their arithmetic; there and
// back byte by byte; and all that is refused, with nothing changed on the disk.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <tranship/file/engine/reshard_run.hpp>
#include <tranship/file/engine/verify.hpp>
#include <tranship/file/format/manifest.hpp>
#include <tranship/file/format/npy.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/reshard_tensors.hpp>
#include <tranship/file/store/new_parts.hpp>
#include <tranship/file/store/part_store.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random_layouts.hpp"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using testing::FolderPlace;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

/// The bytes of a number: each byte of its own, so that a shift by bytes or a swap shows.
std::string element(Index number, ElementType type) {
  test::Random random(static_cast<std::uint64_t>(number));
  std::string out;
  for (int i = 0; i < size_bytes(type); ++i) out += char(random.bits() & 0xff);
  return out;
}

std::string zeros(ElementType type) {
  return std::string(static_cast<std::size_t>(size_bytes(type)), '\0');
}

std::string native_descr(ElementType type) {
  return make_npy_header(type, {1}).descr;
}

std::string swapped_descr(ElementType type) {
  std::string out = native_descr(type);
  if (out[0] == '<') out[0] = '>';
  return out;
}

/// A .npy file of `extents` whose elements are `bytes_at(local coordinates)`.
template <class F>
std::string npy_text(ElementType type, const std::string& descr, const Indices& extents, NpyOrder order, F&& bytes_at) {
  NpyHeader header{.type = type,
                   .byte_order = parse_npy_descr(descr).value().byte_order,
                   .order = order,
                   .extents = extents,
                   .descr = descr};
  std::string out = format_npy_header(header);
  Indices counted = extents;
  if (order == NpyOrder::fortran) std::reverse(counted.begin(), counted.end());
  for_each_coordinate(counted, [&](const Indices& at) {
    Indices local = at;
    if (order == NpyOrder::fortran) std::reverse(local.begin(), local.end());
    out += bytes_at(local);
  });
  return out;
}

/// Writes a directory of parts: owned cells have their values, all others rubbish.
void write_parts(const std::string& path, const ArraySpec& spec, const std::string& descr, const test::Global& values) {
  fs::create_directory(path);
  write_text(path + "/manifest.json", format_manifest(make_manifest(spec, descr)));
  for (const Rank rank : spec.distribution.grid().ranks())
    write_text(path + "/" + part_name(rank), npy_text(spec.type, descr, spec.distribution.local_extents(rank),
                                                      stored_order(spec, 1).outer, [&](const Indices& local) {
                                                        const Distribution::Cell cell =
                                                            spec.distribution.cell_of(rank, local);
                                                        return element(cell.owned ? values(cell.at) : -1, spec.type);
                                                      }));
}

/// A whole array in one file.
void write_whole(const std::string& path, ElementType type, const Indices& extents, NpyOrder order = NpyOrder::c) {
  const test::Global values(
      Distribution(extents, Grid(Indices::filled(extents.size(), 1)), std::vector<Partition>(extents.size(), whole())));
  write_text(path, npy_text(type, native_descr(type), extents, order,
                            [&](const Indices& at) { return element(values(at), type); }));
}

/// What is wrong with one part file, by the oracle; empty when nothing is.
std::string part_fault(const std::string& file, const ArraySpec& spec, Rank rank, const std::string& descr,
                       const test::Global& values) {
  const test::LocalPoints points(spec.distribution, rank);
  const std::string expected =
      npy_text(spec.type, descr, points.extents(), stored_order(spec, 1).outer, [&](const Indices& local) {
        if (spec.distribution.is_indexed())
          return element(values(spec.distribution.cell_of(rank, local).at), spec.type);
        Indices cell;
        return points.resolve_at(local, cell) == test::Resolved::value ? element(values(cell), spec.type)
                                                                       : zeros(spec.type);
      });
  const std::string found = read_text(file);
  if (found == expected) return "";
  const auto at = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end()).first - found.begin();
  return fmt::format("{} differs at byte {} ({} and {} bytes)", file, at, found.size(), expected.size());
}

/// CRC-32 bit by bit, as its definition says.
std::uint32_t plain_crc32(const std::string& bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

std::string directory_fault(const std::string& path, const ArraySpec& spec, const std::string& descr,
                            const test::Global& values) {
  Manifest manifest = read_manifest(path).value();
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const std::string bytes = read_text(path + "/" + manifest.files[i]);
    if (manifest.checksums.empty() || manifest.checksums[i] != plain_crc32(bytes))
      return "another checksum than that of " + manifest.files[i];
  }
  manifest.checksums.clear();
  if (!(manifest == make_manifest(spec, descr))) return "the manifest says something else";
  for (const Rank rank : spec.distribution.grid().ranks())
    if (std::string fault = part_fault(path + "/" + part_name(rank), spec, rank, descr, values); !fault.empty())
      return fault;
  const auto files = std::distance(fs::directory_iterator(path), fs::directory_iterator());
  return files == spec.distribution.grid().size() + 1 ? "" : fmt::format("{} files", files);
}

/// All that lies in a folder: a file's bytes, or "/" for a folder, by name.
std::map<std::string, std::string> snapshot(const TemporaryFolder& folder) {
  std::map<std::string, std::string> out;
  for (const std::string& name : folder.names())
    out[name] = fs::is_directory(folder.path(name)) ? "/" : read_text(folder.path(name));
  return out;
}

std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(directory))
    out[entry.path().filename().string()] = read_text(entry.path().string());
  return out;
}

/// A layout that files can have: the memory of random layouts is mostly not of that kind.
Distribution in_files(test::Random& random, const Distribution& any) {
  if (any.is_indexed()) return any;
  MemoryLayout memory;
  std::vector<Partition> partitions;
  const bool fortran = random.one_in(3);
  for (int d = 0; d < any.dims(); ++d) {
    partitions.push_back(any.axis(d).partition());
    if (fortran) memory.order.push_back(any.dims() - 1 - d);
  }
  return Distribution(any.extents(), any.grid(), std::move(partitions), memory);
}

ElementType random_type(test::Random& random) {
  return static_cast<ElementType>(random.below(17));
}

/// A reshard of parts within any memory: many blocks and rounds of an array of a few cells.
void reshard_within(Index memory_bytes, const std::string& from, const std::string& target, const ArraySpec& to) {
  const StoredParts source = open_parts(from).value();
  NewParts parts = NewParts::open(target, new_array(target, to, {source.descr, source.is_scalar}).value()).value();
  const auto manifest = [&](std::span<const std::uint32_t> checksums) {
    Manifest out = make_manifest(to, source.descr);
    out.checksums.assign(checksums.begin(), checksums.end());
    return std::vector{TextFile{manifest_name, format_manifest(out)}};
  };
  const auto reopen = [&](const std::string& path) { return std::vector{open_parts(path).value()}; };
  run_reshard({{&source, 1}, *source.files, source.checksums}, parts,
              {.verify = Verify::yes, .memory_bytes = memory_bytes, .threads = 3},
              {.manifest = manifest, .reopen = reopen});
}

std::string reshard_fault(test::Random& random, const ArraySpec& from, const ArraySpec& to) {
  const auto named = [&](const std::string& fault) {
    return fmt::format("{}\n  from {}\n  to   {}", fault, to_text(from), to_text(to));
  };
  TemporaryFolder folder(FolderPlace::memory);
  const std::string descr = random.one_in(2) ? native_descr(from.type) : swapped_descr(from.type);
  const test::Global values(to.distribution);
  write_parts(folder.path("a"), from, descr, values);
  try {
    const ReshardReport report = reshard({.source = folder.path("a"),
                                          .target = folder.path("b"),
                                          .from = random.one_in(2) ? std::optional(from) : std::nullopt,
                                          .to = to,
                                          .verify = Verify::yes});
    if (!(report.from == from) || !(report.to == to) || report.verified != Verify::yes ||
        report.parts_written != to.distribution.grid().size())
      return named("the report is wrong");
  } catch (const Error& error) {
    return named(fmt::format("{}: {}", name_of(error.code()), error.what()));
  }
  std::string fault = directory_fault(folder.path("b"), to, descr, values);
  if (!fault.empty()) return named(fault);
  const Index memory_bytes = Index(1) << random.between(5, 12);
  try {
    reshard_within(memory_bytes, folder.path("a"), folder.path("c"), to);
    fault = directory_fault(folder.path("c"), to, descr, values);
  } catch (const Error& error) {
    fault = error.what();
  }
  return fault.empty() ? "" : named(fmt::format("within {} bytes: {}", memory_bytes, fault));
}

TEST(Reshard, AgreesWithTheOracle) {
  EXPECT_EQ(test::first_fault(0.1,
                              [](std::uint64_t seed) {
                                test::Random random(seed);
                                const Indices extents = test::random_extents(random, int(random.between(1, 4)));
                                const ElementType type = random_type(random);
                                const Distribution from = in_files(random, test::random_distribution(random, extents));
                                const Distribution to = in_files(random, test::random_distribution(random, extents));
                                return reshard_fault(random, {type, from}, {type, to});
                              }),
            "");
}

TEST(Reshard, AgreesWithTheOracleOnIndexedLayouts) {
  EXPECT_EQ(test::first_fault(0.05,
                              [](std::uint64_t seed) {
                                test::Random random(seed);
                                const int indexed_dims = int(random.between(1, 2));
                                Indices extents, leading;
                                for (int d = 0; d < indexed_dims; ++d) leading.push_back(random.between(1, 8));
                                extents = leading;
                                if (random.one_in(2)) extents.push_back(random.between(1, 3));
                                const ElementType type = random_type(random);
                                const auto any = [&] {
                                  if (random.one_in(2))
                                    return test::random_indexed(random, extents, indexed_dims, 3, {5, 1, 2});
                                  const Distribution first =
                                      test::random_distribution(random, leading, {.replicas = random.one_in(2)});
                                  return in_files(random, test::with_rest(random, first, extents));
                                };
                                const Distribution from = any(), to = any();
                                return reshard_fault(random, {type, from}, {type, to});
                              }),
            "");
}

TEST(Reshard, ThereAndBackIsByteIdentical) {
  EXPECT_EQ(test::first_fault(0.05,
                              [](std::uint64_t seed) -> std::string {
                                test::Random random(seed);
                                const Indices extents = test::random_extents(random, int(random.between(1, 4)));
                                const ElementType type = random_type(random);
                                const ArraySpec a{type, in_files(random, test::random_distribution(random, extents))};
                                const ArraySpec b{type, in_files(random, test::random_distribution(random, extents))};
                                TemporaryFolder folder(FolderPlace::memory);
                                const std::string whole_file = folder.path("whole.npy");
                                write_whole(whole_file, type, extents,
                                            random.one_in(2) && extents.size() > 1 ? NpyOrder::fortran : NpyOrder::c);
                                const ArraySpec whole = inspect(whole_file).value().spec;
                                const std::string before = read_text(whole_file);
                                reshard({.source = whole_file, .target = folder.path("a"), .to = a});
                                const auto first = files_of(folder.path("a"));
                                reshard({.source = folder.path("a"), .target = folder.path("b"), .to = b});
                                reshard({.source = folder.path("b"), .target = folder.path("a"), .to = a});
                                if (files_of(folder.path("a")) != first)
                                  return "another A:\n  " + to_text(a) + "\n  " + to_text(b);
                                reshard({.source = folder.path("b"), .target = whole_file, .to = whole});
                                return read_text(whole_file) == before ? "" : "another file: " + to_text(b);
                              }),
            "");
}

TEST(Reshard, FilesOfNumPyComeBackAsTheyWere) {
  // Every element type in both byte orders, C and Fortran order, an empty array and one of 8 dimensions. Only version 1
  // comes back as it was: it is what is written.
  int files = 0;
  for (const auto& entry : fs::directory_iterator(test::test_path("file/fixtures"))) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".npy") || name.starts_with("version2") || name.starts_with("version3")) continue;
    SCOPED_TRACE(name);
    ++files;
    TemporaryFolder folder(FolderPlace::memory);
    const StoredArray array = inspect(entry.path().string()).value();
    const Distribution& whole_array = array.spec.distribution;
    Indices grid = Indices::filled(whole_array.dims(), 1);
    grid[0] = 2;
    std::vector<Partition> partitions(whole_array.dims(), whole());
    partitions[0] = cyclic(2).with_overlap(1, 1, EdgePolicy::replicate);
    const ArraySpec spread{array.spec.type, Distribution(whole_array.extents(), Grid(grid), partitions)};
    reshard({.source = entry.path().string(), .target = folder.path("parts"), .to = spread, .verify = Verify::yes});
    EXPECT_EQ(inspect(folder.path("parts")).value().descr, array.descr);
    reshard({.source = folder.path("parts"), .target = folder.path("back.npy"), .to = array.spec});
    EXPECT_EQ(read_text(folder.path("back.npy")), read_text(entry.path().string()));
  }
  EXPECT_EQ(files, 52);
}

TEST(Reshard, OtherVersionsAreRead) {
  for (const char* name : {"version2_c", "version2_f", "version3_c", "version3_f"}) {
    SCOPED_TRACE(name);
    const std::string version_1 = std::string("version1") + (name + std::strlen("version1"));
    TemporaryFolder folder(FolderPlace::memory);
    const std::string path = test::test_path("file/fixtures/") + name + ".npy";
    reshard({.source = path, .target = folder.path("a.npy"), .to = inspect(path).value().spec});
    EXPECT_EQ(read_text(folder.path("a.npy")), read_text(test::test_path("file/fixtures/") + version_1 + ".npy"));
  }
}

TEST(Reshard, EmptyPartsAreValidFiles) {
  TemporaryFolder folder;
  write_whole(folder.path("a.npy"), ElementType::f64, {3, 2});
  reshard({.source = folder.path("a.npy"),
           .target = folder.path("b"),
           .to = parse_layout("f64[3,2] @ 5x1 : block, whole"),
           .verify = Verify::yes});
  const NpyFile empty = open_npy(folder.path("b/part-00004.npy")).value();
  EXPECT_EQ(empty.header.extents, (Indices{0, 2}));
  reshard({.source = folder.path("b"),
           .target = folder.path("c.npy"),
           .to = parse_layout("f64[3,2] @ 1x1 : whole, whole"),
           .verify = Verify::yes});
  EXPECT_EQ(read_text(folder.path("c.npy")), read_text(folder.path("a.npy")));
}

TEST(Reshard, OnePartMayBeAFileOrADirectory) {
  TemporaryFolder folder;
  write_whole(folder.path("a.npy"), ElementType::i16, {6});
  const ArraySpec ring = parse_layout("i16[6] @ 1 ranks(3) : whole+overlap(1,2,toroidal)");
  reshard({.source = folder.path("a.npy"), .target = folder.path("ring.npy"), .to = ring, .verify = Verify::yes});
  reshard({.source = folder.path("a.npy"), .target = folder.path("ring"), .to = ring, .verify = Verify::yes});
  EXPECT_EQ(read_text(folder.path("ring.npy")), read_text(folder.path("ring/part-00003.npy")));
  EXPECT_EQ(inspect(folder.path("ring.npy")).value().spec.distribution.extents(), (Indices{9}));
  EXPECT_EQ(inspect(folder.path("ring")).value().spec, ring);
  // The file does not say that a part of it is overlap; `from` does.
  const ArraySpec plain = parse_layout("i16[6] @ 1 : whole");
  reshard({.source = folder.path("ring.npy"), .target = folder.path("b.npy"), .from = ring, .to = plain});
  EXPECT_EQ(read_text(folder.path("b.npy")), read_text(folder.path("a.npy")));
}

TEST(Reshard, ADirectoryWithoutManifestNeedsFrom) {
  TemporaryFolder folder(FolderPlace::memory);
  write_whole(folder.path("a.npy"), ElementType::f32, {4, 5});
  const ArraySpec tiles = parse_layout("f32[4,5] @ 2x2 : block, cyclic(2)");
  reshard({.source = folder.path("a.npy"), .target = folder.path("b"), .to = tiles});
  fs::remove(folder.path("b/manifest.json"));
  const ArraySpec plain = inspect(folder.path("a.npy")).value().spec;
  reshard({.source = folder.path("b"), .target = folder.path("c.npy"), .from = tiles, .to = plain});
  EXPECT_EQ(read_text(folder.path("c.npy")), read_text(folder.path("a.npy")));
}

TEST(Reshard, PartsOfAnyOrderAreReadByTheirHeaders) {
  // Somebody has saved a part again, in Fortran order.
  TemporaryFolder folder(FolderPlace::memory);
  const ArraySpec spec = parse_layout("u8[4,6] @ 2x1 : block, whole");
  const test::Global values(spec.distribution);
  write_parts(folder.path("a"), spec, "|u1", values);
  write_text(folder.path("a/part-00001.npy"),
             npy_text(spec.type, "|u1", {2, 6}, NpyOrder::fortran, [&](const Indices& at) {
               return element(values({at[0] + 2, at[1]}), spec.type);
             }));
  reshard({.source = folder.path("a"), .target = folder.path("b"), .to = spec, .verify = Verify::yes});
  EXPECT_EQ(directory_fault(folder.path("b"), spec, "|u1", values), "");
}

TEST(Reshard, OptionsOwnWhatTheyCall) {
  const auto expect_owned = [](auto options) {
    auto said = std::make_shared<int>(0);
    const std::weak_ptr<int> seen = said;
    options.progress = [said](const ReshardProgress&) { ++*said; };
    said.reset();
    EXPECT_FALSE(seen.expired());
  };
  expect_owned(ReshardOptions{.to = parse_layout("u8[1] @ 1 : whole")});
  expect_owned(TensorReshardOptions{});
  auto said = std::make_shared<int>(0);
  const std::weak_ptr<int> seen = said;
  const ReadableArray array{.spec = parse_layout("u8[1] @ 1 : whole"),
                            .chunk = {1},
                            .read = [said = std::move(said)](const Box&, const StridedView&) {}};
  EXPECT_FALSE(seen.expired());
}

TEST(Reshard, TellsProgress) {
  TemporaryFolder folder(FolderPlace::memory);
  write_whole(folder.path("a.npy"), ElementType::f64, {8, 8});
  std::vector<ReshardProgress> heard;
  const auto listen = [&](const ReshardProgress& progress) { heard.push_back(progress); };
  const ReshardReport report = reshard({.source = folder.path("a.npy"),
                                        .target = folder.path("b"),
                                        .to = parse_layout("f64[8,8] @ 4x1 : cyclic(1)+overlap(1,1,open), whole"),
                                        .progress = listen});
  EXPECT_EQ(heard.front().bytes_done, 0);
  EXPECT_EQ(heard.front().parts_done, 0);
  for (std::size_t i = 1; i < heard.size(); ++i) {
    EXPECT_GE(heard[i].bytes_done, heard[i - 1].bytes_done);
    EXPECT_GE(heard[i].parts_done, heard[i - 1].parts_done);
    EXPECT_LE(heard[i].bytes_done, heard[i].bytes_total);
  }
  // 2 slices of 3 rows on each of 4 ranks; 1 row at each end of the array is open.
  EXPECT_EQ(heard.back().bytes_total, 24 * 8 * 8);
  EXPECT_EQ(heard.back().bytes_done, 24 * 8 * 8);
  EXPECT_EQ(heard.back().parts_done, 4);
  EXPECT_EQ(heard.back().parts_total, 4);
  EXPECT_EQ(report.bytes_read, 8 * 8 * 8) << "a row that several slices hold is read once";
  EXPECT_EQ(report.bytes_written, 24 * 8 * 8);
  EXPECT_EQ(report.parts_written, 4);
  EXPECT_EQ(report.verified, Verify::no);
}

TEST(Reshard, ReplacesWhatItWrote) {
  TemporaryFolder folder;
  write_whole(folder.path("a.npy"), ElementType::i32, {12});
  const auto to = [&](const char* layout, const std::string& name) {
    reshard({.source = folder.path("a.npy"), .target = folder.path(name), .to = parse_layout(layout)});
  };
  to("i32[12] @ 4 : block", "b");
  to("i32[12] @ 2 : cyclic(1)", "b");
  EXPECT_EQ(files_of(folder.path("b")).size(), 3u);
  to("i32[12] @ 1 : whole+overlap(1,1,zero)", "c.npy");
  to("i32[12] @ 1 : whole", "c.npy");
  EXPECT_EQ(read_text(folder.path("c.npy")), read_text(folder.path("a.npy")));
  EXPECT_EQ(folder.names(),
            (std::set<std::string>{"a.npy", "b", "b/manifest.json", "b/part-00000.npy", "b/part-00001.npy", "c.npy"}));
}

/// One call that must be refused, in a folder of its own.
struct Refusal {
  const char* name;
  std::function<void(const TemporaryFolder&)> prepare;
  std::string source;
  std::string target;
  const char* from;  // null: none
  const char* to;
  ErrorCode code;
  std::vector<std::string> message;
};

/// a.npy: f64[4,6]; parts/: the same on 2x1 with unequal parts; old/: a reshard directory.
void prepare_folder(const TemporaryFolder& folder) {
  write_whole(folder.path("a.npy"), ElementType::f64, {5, 6});
  reshard({.source = folder.path("a.npy"),
           .target = folder.path("parts"),
           .to = parse_layout("f64[5,6] @ 2x1 : block, whole")});
  reshard({.source = folder.path("a.npy"),
           .target = folder.path("old"),
           .to = parse_layout("f64[5,6] @ 1x3 : whole, block")});
}

std::string header_with(const std::string& text) {
  std::string padded = text;
  padded.resize(117, ' ');
  padded += '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + padded;
}

TEST(Reshard, RefusesAndChangesNothing) {
  const char* plain = "f64[5,6] @ 1x1 : whole, whole";
  const auto none = [](const TemporaryFolder&) {};
  const auto write = [](const char* name, std::string text) {
    return [name, text](const TemporaryFolder& folder) { write_text(folder.path(name), text); };
  };
  const auto cut = [](const char* name, int bytes) {
    return [name, bytes](const TemporaryFolder& folder) {
      const std::string text = read_text(folder.path(name));
      write_text(folder.path(name), text.substr(0, text.size() - bytes));
    };
  };
  const auto part = [](const char* name, ElementType type, const std::string& descr, const Indices& extents) {
    return [=](const TemporaryFolder& folder) {
      write_text(folder.path(name),
                 npy_text(type, descr, extents, NpyOrder::c, [&](const Indices&) { return zeros(type); }));
    };
  };
  const auto remove = [](const char* name) {
    return [name](const TemporaryFolder& folder) { fs::remove(folder.path(name)); };
  };
  const auto swap_parts = [](const TemporaryFolder& folder) {
    fs::rename(folder.path("parts/part-00000.npy"), folder.path("x"));
    fs::rename(folder.path("parts/part-00001.npy"), folder.path("parts/part-00000.npy"));
    fs::rename(folder.path("x"), folder.path("parts/part-00001.npy"));
  };
  const auto change = [](const char* name, const char* what, const char* instead) {
    return [=](const TemporaryFolder& folder) {
      std::string text = read_text(folder.path(name));
      write_text(folder.path(name), text.replace(text.find(what), std::strlen(what), instead));
    };
  };
  const Refusal refusals[] = {
      // Hostile files.
      {"empty file",
       write("a.npy", ""),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"/a.npy': ", "truncated", "8 bytes", "has 0"}},
      {"not a .npy file",
       write("a.npy", "P5 344 403 255"),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"not a .npy file"}},
      {"truncated header",
       cut("a.npy", 240 + 28),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"the header needs 128 bytes", "has 100"}},
      {"truncated elements",
       cut("a.npy", 8),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"needs 368 bytes, has 360"}},
      {"trailing bytes",
       write("a.npy", npy_text(ElementType::u8, "|u1", {4}, NpyOrder::c, [](const Indices&) { return "ab"; })),
       "a.npy",
       "b",
       nullptr,
       "u8[4] @ 1 : whole",
       ErrorCode::bad_file,
       {"needs 132 bytes, has 136"}},
      {"objects",
       write("a.npy", header_with("{'descr': '|O', 'fortran_order': False, 'shape': (4,), }")),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::unsupported,
       {"Python object"}},
      {"records",
       write("a.npy", header_with("{'descr': [('x', '|O')], 'fortran_order': False, 'shape': (4,), }")),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::unsupported,
       {"Python object"}},
      {"huge shape",
       write("a.npy", header_with("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }")),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::overflow,
       {"4611686018427387904, 4", "8 bytes"}},
      {"huger shape",
       write("a.npy", header_with("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }")),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::overflow,
       {"99999999999999999999"}},
      {"large shape",
       write("a.npy", header_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }")),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"needs 8000000000128 bytes, has 128"}},
      {"negative shape",
       write("a.npy", header_with("{'descr': '<f8', 'fortran_order': False, 'shape': (-5, 6), }")),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"extent -5 of dimension 0"}},
      {"nine dimensions",
       write("a.npy", header_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }")),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::unsupported,
       {"9 dimensions, at most 8"}},
      {"no such source", none, "missing.npy", "b", nullptr, plain, ErrorCode::io, {"missing.npy"}},
      // Layouts that do not fit.
      {"other extents",
       none,
       "a.npy",
       "b",
       nullptr,
       "f64[5,7] @ 1x1 : whole, whole",
       ErrorCode::mismatch,
       {"the array has extents [5, 6], the layout [5, 7]"}},
      {"other dimensions", none, "a.npy", "b", nullptr, "f64[30] @ 3 : block", ErrorCode::mismatch, {"[5, 6]", "[30]"}},
      {"other elements",
       none,
       "a.npy",
       "b",
       nullptr,
       "f32[5,6] @ 1x1 : whole, whole",
       ErrorCode::mismatch,
       {"the array has elements f64, the layout f32"}},
      {"padded target",
       none,
       "a.npy",
       "b",
       nullptr,
       "f64[5,6] @ 1x1 : whole, whole | align(4)",
       ErrorCode::unsupported,
       {"aligned to 4 elements"}},
      {"padded source",
       none,
       "a.npy",
       "b",
       "f64[5,6] @ 1x1 : whole, whole | offset(4)",
       plain,
       ErrorCode::unsupported,
       {"offset of 4 elements"}},
      {"from of other extents",
       none,
       "a.npy",
       "b",
       "f64[5,7] @ 1x1 : whole, whole",
       plain,
       ErrorCode::mismatch,
       {"/a.npy': ", "[5, 6]", "[5, 7]"}},
      {"from of other elements",
       none,
       "a.npy",
       "b",
       "i64[5,6] @ 1x1 : whole, whole",
       plain,
       ErrorCode::mismatch,
       {"f64", "i64"}},
      {"from of several parts",
       none,
       "a.npy",
       "b",
       "f64[5,6] @ 2x1 : block, whole",
       plain,
       ErrorCode::mismatch,
       {"is a file of 1 part, the layout has 2"}},
      {"from is not what the manifest says",
       none,
       "parts",
       "b",
       "f64[5,6] @ 2x1 : block(high), whole",
       plain,
       ErrorCode::mismatch,
       {"2x1 : block, whole", "2x1 : block(high), whole"}},
      {"several parts for one file",
       none,
       "a.npy",
       "b.npy",
       nullptr,
       "f64[5,6] @ 2x1 : block, whole",
       ErrorCode::invalid_use,
       {"names one file, but the layout has 2 parts"}},
      {"too many parts",
       none,
       "a.npy",
       "b",
       nullptr,
       "f64[5,6] @ 2000000x1 : block, whole",
       ErrorCode::unsupported,
       {"2000000 parts", "at most 1000000"}},
      // Directories of parts.
      {"missing part", remove("parts/part-00001.npy"), "parts", "b", nullptr, plain, ErrorCode::io, {"part-00001.npy"}},
      {"truncated part",
       cut("parts/part-00001.npy", 1),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"part-00001.npy': ", "needs 224 bytes, has 223"}},
      {"corrupted part",
       write("parts/part-00001.npy", "nothing of value"),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"part-00001.npy': "}},
      {"swapped parts",
       swap_parts,
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::mismatch,
       {"part-00000.npy': ", "extents [2, 6]", "rank 0 [3, 6]"}},
      {"part of another shape",
       part("parts/part-00001.npy", ElementType::f64, "<f8", {3, 4}),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::mismatch,
       {"extents [3, 4]", "rank 1 [2, 6]"}},
      {"part of other elements",
       part("parts/part-00001.npy", ElementType::i64, "<i8", {2, 6}),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::mismatch,
       {"part-00001.npy': ", "i64", "f64"}},
      {"part of the other byte order",
       part("parts/part-00001.npy", ElementType::f64, ">f8", {2, 6}),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::mismatch,
       {"part-00001.npy': ", "'>f8'", "'<f8'"}},
      {"no manifest",
       remove("parts/manifest.json"),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"/parts'", "manifest.json"}},
      {"no manifest and too few parts",
       remove("parts/manifest.json"),
       "parts",
       "b",
       "f64[5,6] @ 1x1 : whole, whole",
       plain,
       ErrorCode::mismatch,
       {"2 files part-*.npy, the layout has 1"}},
      {"no manifest and other parts",
       remove("parts/manifest.json"),
       "parts",
       "b",
       "f64[5,6] @ 1x2 : whole, block",
       plain,
       ErrorCode::mismatch,
       {"extents [3, 6]", "rank 0 [5, 3]"}},
      {"broken manifest",
       cut("parts/manifest.json", 2),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"parts/manifest.json': "}},
      {"manifest of other parts",
       change("parts/manifest.json", "[2, 6]", "[2, 7]"),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"[2, 7]", "[2, 6]"}},
      {"manifest that reaches out",
       change("parts/manifest.json", "part-00001", "../a"),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::bad_file,
       {"parts[1].file"}},
      {"manifest of another version",
       change("parts/manifest.json", "manifest\": 1", "manifest\": 9"),
       "parts",
       "b",
       nullptr,
       plain,
       ErrorCode::unsupported,
       {"version 9: version 1"}},
      // Targets.
      {"no folder for the target", none, "a.npy", "missing/b", nullptr, plain, ErrorCode::io, {"missing"}},
      {"a file for a folder",
       none,
       "a.npy",
       "old/manifest.json/b",
       nullptr,
       plain,
       ErrorCode::io,
       {"old/manifest.json"}},
      {"target is the source", none, "a.npy", "a.npy", nullptr, plain, ErrorCode::invalid_use, {"is the source"}},
      {"target is the source by another name",
       none,
       "parts",
       "old/../parts/",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"is the source"}},
      {"target is a link to the source",
       [](const TemporaryFolder& folder) { fs::create_symlink("parts", folder.path("link")); },
       "parts",
       "link",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"is the source"}},
      {"target in the source",
       none,
       "parts",
       "parts/deep",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"lies in the source"}},
      {"target file in the source",
       none,
       "parts",
       "parts/b.npy",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"lies in the source"}},
      {"source in the target",
       none,
       "old/part-00000.npy",
       "old",
       nullptr,
       "f64[5,2] @ 1x1 : whole, whole",
       ErrorCode::invalid_use,
       {"which would be replaced"}},
      {"target is a file of another kind",
       write("b.npy", "dear diary"),
       "a.npy",
       "b.npy",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"b.npy' exists and is not a .npy file"}},
      {"target is a directory named .npy",
       [](const TemporaryFolder& folder) { fs::create_directory(folder.path("b.npy")); },
       "a.npy",
       "b.npy",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"is a directory"}},
      {"target is a file",
       write("b", "dear diary"),
       "a.npy",
       "b",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"not a directory"}},
      {"target is a directory of other things",
       remove("old/manifest.json"),
       "a.npy",
       "old",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"manifest.json", "not replaced"}},
      {"target has a manifest of another kind",
       write("old/manifest.json", R"({"name": "a browser's extension"})"),
       "a.npy",
       "old",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"not replaced", "tranship_manifest is missing"}},
      {"target holds more than parts",
       write("old/notes.txt", "dear diary"),
       "a.npy",
       "old",
       nullptr,
       plain,
       ErrorCode::invalid_use,
       {"does not name 'notes.txt'"}},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    TemporaryFolder folder(FolderPlace::memory);
    prepare_folder(folder);
    refusal.prepare(folder);
    const auto before = snapshot(folder);
    const Result<ReshardReport> report = attempt([&] {
      return reshard({.source = folder.path(refusal.source),
                      .target = folder.path(refusal.target),
                      .from = refusal.from ? std::optional(parse_layout(refusal.from)) : std::nullopt,
                      .to = parse_layout(refusal.to)});
    });
    EXPECT_EQ(snapshot(folder), before);
    ASSERT_FALSE(report.ok());
    EXPECT_STREQ(name_of(report.error().code()), name_of(refusal.code)) << report.error().message();
    for (const std::string& piece : refusal.message)
      EXPECT_NE(report.error().message().find(piece), std::string::npos)
          << piece << " in: " << report.error().message();
  }
}

TEST(Reshard, InspectSaysWhatAPathHolds) {
  TemporaryFolder folder(FolderPlace::memory);
  prepare_folder(folder);
  write_whole(folder.path("f.npy"), ElementType::c64, {2, 3, 4}, NpyOrder::fortran);
  EXPECT_EQ(to_text(inspect(folder.path("a.npy")).value().spec), "f64[5,6] @ 1x1 : whole, whole");
  EXPECT_EQ(to_text(inspect(folder.path("f.npy")).value().spec),
            "c64[2,3,4] @ 1x1x1 : whole, whole, whole | order(2,1,0)");
  EXPECT_EQ(inspect(folder.path("f.npy")).value().descr, native_descr(ElementType::c64));
  EXPECT_EQ(to_text(inspect(folder.path("parts")).value().spec), "f64[5,6] @ 2x1 : block, whole");
  const std::pair<std::string, ErrorCode> refused[] = {
      {folder.path("missing"), ErrorCode::io},
      {folder.path(), ErrorCode::bad_file},
      {folder.path("parts/manifest.json"), ErrorCode::bad_file},
  };
  for (const auto& [path, code] : refused) {
    const Result<StoredArray> array = inspect(path);
    ASSERT_FALSE(array.ok()) << path;
    EXPECT_STREQ(name_of(array.error().code()), name_of(code)) << array.error().message();
    EXPECT_NE(array.error().message().find(path), std::string::npos) << array.error().message();
  }
}

TEST(Reshard, AProgressThatThrowsStopsIt) {
  TemporaryFolder folder(FolderPlace::memory);
  prepare_folder(folder);
  const auto before = snapshot(folder);
  const auto stop = [](const ReshardProgress& progress) {
    if (progress.parts_done >= 1) throw std::runtime_error("enough");
  };
  EXPECT_THROW(reshard({.source = folder.path("a.npy"),
                        .target = folder.path("old"),
                        .to = parse_layout("f64[5,6] @ 2x1 : block, whole"),
                        .progress = stop}),
               std::runtime_error);
  EXPECT_EQ(snapshot(folder), before);
}

/// Changes one byte of a file in the target that is being written.
void spoil(const TemporaryFolder& folder, const std::string& file, Index byte_from_end) {
  for (const std::string& name : folder.names())
    if (name.find(".partial/") != std::string::npos && name.ends_with(file)) {
      std::fstream out(folder.path(name), std::ios::binary | std::ios::in | std::ios::out);
      out.seekg(-byte_from_end, std::ios::end);
      const char old = char(out.peek());
      out.seekp(-byte_from_end, std::ios::end);
      out.put(char(old ^ 0x40));
      if (!out.flush()) throw std::runtime_error("cannot spoil " + name);
      return;
    }
  throw std::runtime_error("no new " + file);
}

TEST(Reshard, VerifyFindsEveryKindOfFault) {
  struct Case {
    const char* name;
    const char* to;
    const char* file;
    Index byte_from_end;
    ErrorCode code;
    const char* message;
  };
  // Parts of "i16[6] @ 3" with overlap(1,1) hold 4 elements of 2 bytes: overlap, two cells of their own, overlap.
  const Case cases[] = {
      {"own cell", "i16[6] @ 3 : block+overlap(1,1,toroidal)", "part-00001.npy", 5, ErrorCode::internal,
       "in element [2], the target gives "},
      {"left overlap", "i16[6] @ 3 : block+overlap(1,1,toroidal)", "part-00001.npy", 7, ErrorCode::internal,
       "part-00001.npy' holds "},
      {"right overlap", "i16[6] @ 3 : block+overlap(1,1,toroidal)", "part-00000.npy", 1, ErrorCode::internal,
       "in element [3], the source gives "},
      {"toroidal edge", "i16[6] @ 3 : block+overlap(1,1,toroidal)", "part-00000.npy", 8, ErrorCode::internal,
       "in element [0], the source gives "},
      {"zero edge", "i16[6] @ 3 : block+overlap(1,1,zero)", "part-00002.npy", 1, ErrorCode::internal,
       "in element [3], the source gives 0000"},
      {"replicated edge", "i16[6] @ 3 : block+overlap(1,1,replicate)", "part-00002.npy", 2, ErrorCode::internal,
       "in element [3], the source gives "},
      {"open edge", "i16[6] @ 3 : block+overlap(1,1,open)", "part-00002.npy", 2, ErrorCode::internal,
       "in element [3], the source gives 0000"},
      {"second copy", "i16[6] @ 2*2 : block", "part-00003.npy", 1, ErrorCode::internal,
       "in element [2], the first copy gives "},
      {"second copy along an axis", "i16[6] @ 2 : whole", "part-00001.npy", 12, ErrorCode::internal,
       "in element [0], the first copy gives "},
      {"shared interface", "i16[6] @ 2 : block+interfaces", "part-00000.npy", 1, ErrorCode::internal,
       "in element [3], the source gives "},
      {"header", "i16[6] @ 2 : block", "part-00001.npy", 6 + 128, ErrorCode::bad_file, "part-00001.npy': "},
      {"manifest", "i16[6] @ 2 : block", "manifest.json", 3, ErrorCode::bad_file, "manifest.json': "},
  };
  for (const Case& c : cases)
    for (const Verify verify : {Verify::no, Verify::yes}) {
      SCOPED_TRACE(c.name);
      TemporaryFolder folder(FolderPlace::memory);
      write_whole(folder.path("a.npy"), ElementType::i16, {6});
      reshard({.source = folder.path("a.npy"), .target = folder.path("b"), .to = parse_layout("i16[6] @ 6 : block")});
      const auto before = snapshot(folder);
      // The manifest says something when all is written.
      bool spoiled = false;
      const auto interfere = [&](const ReshardProgress&) {
        const auto names = folder.names();
        const bool written = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return name.find(".partial/") != std::string::npos && name.ends_with("manifest.json") &&
                 read_text(folder.path(name)).starts_with("{");
        });
        if (!written || std::exchange(spoiled, true)) return;
        spoil(folder, c.file, c.byte_from_end);
      };
      const Result<ReshardReport> report = attempt([&] {
        return reshard({.source = folder.path("a.npy"),
                        .target = folder.path("b"),
                        .to = parse_layout(c.to),
                        .verify = verify,
                        .progress = interfere});
      });
      // Without verification the fault goes through: it is the verification that finds it.
      EXPECT_EQ(report.ok(), verify == Verify::no);
      EXPECT_EQ(snapshot(folder) == before, verify == Verify::yes);
      if (!report.ok()) {
        EXPECT_STREQ(name_of(report.error().code()), name_of(c.code)) << report.error().message();
        EXPECT_NE(report.error().message().find(c.message), std::string::npos) << report.error().message();
      }
    }
}

/// The fault that verify_parts finds between two directories, or an empty text.
std::string verify_fault(const std::string& source, const std::string& target, const VerifyPartsOptions& options = {}) {
  const StoredParts a = open_parts(source).value(), b = open_parts(target).value();
  const Result<void> verified = attempt([&] { verify_parts(a, b, options); });
  return verified ? "" : verified.error().message();
}

TEST(Reshard, InterfacesGoRoundAsFarAsOneLikes) {
  TemporaryFolder folder;
  // The first and the last interface are one: below it the count goes down from it, above it up.
  const struct {
    Index extent;
    std::vector<double> expected;
  } cases[] = {{2, {0, 0, 0, 1, 1, 1}}, {3, {0, 1, 0, 1, 2, 1, 2}}, {4, {1, 2, 0, 1, 2, 3, 1, 2}}};
  for (const auto& [extent, expected] : cases) {
    SCOPED_TRACE(extent);
    std::vector<double> values(static_cast<std::size_t>(extent));
    std::iota(values.begin(), values.end(), 0.0);
    const auto bytes_of = [](const std::vector<double>& v) {
      return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(double));
    };
    write_text(folder.path("a.npy"), format_npy_header(make_npy_header(ElementType::f64, {extent})) + bytes_of(values));
    const std::string to = fmt::format("f64[{}] @ 1 : block+interfaces+overlap(2,2,toroidal)", extent);
    reshard({.source = folder.path("a.npy"),
             .target = folder.path("b.npy"),
             .from = std::nullopt,
             .to = parse_layout(to),
             .verify = Verify::yes});
    EXPECT_TRUE(read_text(folder.path("b.npy")).ends_with(bytes_of(expected)));
  }
}

TEST(Reshard, StoredChecksumsAreCheckedWhereAFileIsRead) {
  TemporaryFolder folder;
  const ArraySpec whole_array = parse_layout("f64[300,200] @ 1x1 : whole, whole");
  write_whole(folder.path("a.npy"), ElementType::f64, {300, 200});
  for (const char* from :
       {"2x1 : block, whole", "2x2 : cyclic(3)+overlap(1,1,zero), block", "2x1 : block, whole | order(1,0)"})
    for (const char* to : {"1x1 : whole, whole", "1x3 : whole, cyclic(1)", "1x1 : whole, whole | order(1,0)"}) {
      SCOPED_TRACE(from + std::string(" to ") + to);
      const auto layout = [](const char* placement) {
        return parse_layout(std::string("f64[300,200] @ ") + placement);
      };
      fs::remove_all(folder.path("parts"));
      reshard({.source = folder.path("a.npy"), .target = folder.path("parts"), .from = {}, .to = layout(from)});
      const ReshardOptions onwards{
          .source = folder.path("parts"), .target = folder.path("b"), .from = {}, .to = layout(to)};
      reshard(onwards);
      // One bit of the first or of the last element is enough.
      const std::string part = folder.path("parts/part-00001.npy");
      const std::string good = read_text(part);
      for (const std::size_t at : {std::size_t(128), good.size() - 1}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        write_text(part, bad);
        const Result<ReshardReport> report = attempt([&] { return reshard(onwards); });
        ASSERT_FALSE(report.ok()) << at;
        EXPECT_EQ(report.error().code(), ErrorCode::bad_file);
        EXPECT_NE(report.error().message().find("its checksum is"), std::string::npos) << report.error().message();
      }
      write_text(part, good);
      EXPECT_TRUE(attempt([&] { return reshard(onwards); }).ok());
    }
}

// Blocks without a common factor: what a part of the target takes from one of the source is a lattice.
TEST(Reshard, DealtPartsThatMeetInLattices) {
  TemporaryFolder folder(FolderPlace::memory);
  for (const auto& [from, to] :
       {std::pair("i16[9001] @ 3 : cyclic(31)", "i16[9001] @ 4 : cyclic(37)+overlap(3,2,replicate)"),
        {"i16[3001,7] @ 2x2 : cyclic(19), block", "i16[3001,7] @ 3x1 : cyclic(23)+overlap(2,2,toroidal), whole"},
        {"i16[7,3001] @ 1x2 : whole, cyclic(19)", "i16[7,3001] @ 2x3 : block, cyclic(23) | order(1,0)"}})
    for (const Index memory_bytes : {Index(4) << 20, Index(64) << 20}) {
      SCOPED_TRACE(from + std::string(" to ") + to);
      const ArraySpec source = parse_layout(from), target = parse_layout(to);
      fs::remove_all(folder.path("a"));
      fs::remove_all(folder.path("b"));
      write_parts(folder.path("a"), source, "<i2", test::Global(source.distribution));
      reshard({.source = folder.path("a"), .target = folder.path("b"), .to = target, .memory_bytes = memory_bytes});
      EXPECT_EQ(verify_fault(folder.path("a"), folder.path("b")), "");
    }
}

TEST(Reshard, VerifyDrawsASampleOfMuchOverlap) {
  TemporaryFolder folder(FolderPlace::memory);
  const ArraySpec to = parse_layout("i16[600] @ 3 : cyclic(1)+overlap(2,2,zero)");
  const test::Global values(to.distribution);
  write_parts(folder.path("a"), parse_layout("i16[600] @ 2 : block"), "<i2", values);
  reshard({.source = folder.path("a"), .target = folder.path("b"), .to = to});
  EXPECT_EQ(verify_fault(folder.path("a"), folder.path("b"), {.overlap_cells_max = 10}), "");
  // The overlap of write_parts is rubbish: whatever is drawn is wrong, but for none drawn.
  write_parts(folder.path("c"), to, "<i2", values);
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_NE(verify_fault(folder.path("a"), folder.path("c"), {.overlap_cells_max = 1, .seed = seed}), "");
  EXPECT_EQ(verify_fault(folder.path("a"), folder.path("c"), {.overlap_cells_max = 0}), "");
  // What is rubbish in the overlap of the source is nobody's concern.
  EXPECT_EQ(verify_fault(folder.path("c"), folder.path("b")), "");
}

TEST(Reshard, VerifyRefusesWhatCannotBeRebuilt) {
  TemporaryFolder folder(FolderPlace::memory);
  const ArraySpec from = parse_layout("u8[4] @ 2 : block");
  write_parts(folder.path("a"), from, "|u1", test::Global(from.distribution));
  const ArraySpec some{
      ElementType::u8,
      Distribution::indexed({4}, 1, grid(2), {{.owned = {3}, .ghosts = {0}}, {.owned = {0}, .ghosts = {}}})};
  const auto before = snapshot(folder);
  const Result<ReshardReport> report = attempt([&] {
    return reshard({.source = folder.path("a"), .target = folder.path("b"), .to = some, .verify = Verify::yes});
  });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), ErrorCode::unsupported);
  EXPECT_NE(report.error().message().find("2 of 4 ids"), std::string::npos) << report.error().message();
  EXPECT_EQ(snapshot(folder), before);
  reshard({.source = folder.path("a"), .target = folder.path("b"), .to = some});
  EXPECT_EQ(directory_fault(folder.path("b"), some, "|u1", test::Global(from.distribution)), "");
}

TEST(ReshardPaths, ATargetBehindALinkIsWhereTheSystemFindsIt) {
  TemporaryFolder folder(FolderPlace::memory);
  std::filesystem::create_directories(folder.path("a/b"));
  std::filesystem::create_directory_symlink("a/b", folder.path("link"));
  const std::string source = format_npy_header(make_npy_header(ElementType::u8, {2})) + "xy";
  const std::string other = format_npy_header(make_npy_header(ElementType::u8, {3})) + "abc";
  write_text(folder.path("source.npy"), source);
  write_text(folder.path("x.npy"), other);
  const auto go = [&](const std::string& target) {
    reshard({.source = folder.path("source.npy"), .target = target, .to = parse_layout("u8[2] @ 1 : whole")});
  };
  go(folder.path("link/../x.npy"));
  EXPECT_EQ(read_text(folder.path("x.npy")), other);
  EXPECT_EQ(read_text(folder.path("a/x.npy")), source);
  go(folder.path("link/../source.npy"));
  EXPECT_EQ(read_text(folder.path("a/source.npy")), source);
}

TEST(ReshardVerify, AcceptsInterfacesThatPartsHaveDifferently) {
  TemporaryFolder folder(FolderPlace::memory);
  const ArraySpec halves = parse_layout("u8[7] @ 2 : block+interfaces");
  write_text(folder.path("a.npy"), format_npy_header(make_npy_header(ElementType::u8, {7})) + "abcdefg");
  reshard({.source = folder.path("a.npy"), .target = folder.path("parts"), .to = halves});
  std::filesystem::remove(folder.path("parts/manifest.json"));
  std::string upper = read_text(folder.path("parts/part-00001.npy"));
  ASSERT_EQ(upper.substr(upper.size() - 4), "defg");
  upper[upper.size() - 4] = 'D';
  write_text(folder.path("parts/part-00001.npy"), upper);
  for (const char* to : {"u8[7] @ 1 : whole", "u8[7] @ 2 : block", "u8[7] @ 3 : block+interfaces",
                         "u8[7] @ 2 : block+interfaces+overlap(1,1)"}) {
    SCOPED_TRACE(to);
    const auto report = attempt([&] {
      return reshard({.source = folder.path("parts"),
                      .target = folder.path("out"),
                      .from = halves,
                      .to = parse_layout(to),
                      .verify = Verify::yes});
    });
    EXPECT_TRUE(report.ok()) << report.error().message();
    std::filesystem::remove_all(folder.path("out"));
  }
}

}  // namespace
}  // namespace tranship
