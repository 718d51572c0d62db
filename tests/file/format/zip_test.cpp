// Zip archives: against files that NumPy and Python wrote (fixtures/, made by make_archives.py), by hand, and hostile
// ones.
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <tranship/file/format/npy.hpp>
#include <tranship/file/format/zip.hpp>

#include "file/temporary_folder.hpp"
#include "file/zip_builder.hpp"
#include "fuzz/zip_check.hpp"
#include "support/paths.hpp"

namespace tranship::zip_test {
namespace {

using testing::BuiltArchive;
using testing::BuiltMember;
using testing::little;
using testing::read_text;

std::string fixture(const std::string& name) {
  return read_text(test::test_path("file/fixtures/" + name));
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// The bytes of a member; throws its Error.
std::string read(const std::string& archive, std::string_view name) {
  const std::vector<ZipMember> members = parse_zip(bytes_of(archive)).value();
  const ZipMember* member = find_zip_member(members, name);
  if (!member) throw std::runtime_error("no member " + std::string(name));
  std::string out;
  read_zip_member(bytes_of(archive), *member, [&](std::span<const std::byte> piece) {
    EXPECT_LE(static_cast<Index>(piece.size()), zip_chunk_bytes_max);
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }).value();
  return out;
}

/// The error of an archive or of one of its members, as "code: message".
std::string refusal(const std::string& archive) {
  const Result<void> done = attempt([&] {
    for (const ZipMember& member : parse_zip(bytes_of(archive)).value())
      read_zip_member(bytes_of(archive), member, [](std::span<const std::byte>) {}).value();
  });
  return done ? "accepted" : std::string(name_of(done.error().code())) + ": " + done.error().message();
}

std::string refusal(BuiltMember member) {
  return refusal(BuiltArchive{{std::move(member)}}.bytes());
}

const std::string repeated = [] {
  std::string out;
  for (int i = 0; i < 30; ++i) out += "0123456789";
  return out;
}();

/// The elements of a .npy file.
template <class T>
std::vector<T> elements_of(const std::string& npy, const Indices& extents) {
  const NpyHeader header = parse_npy_header(bytes_of(npy), static_cast<Index>(npy.size())).value();
  EXPECT_EQ(header.type, element_type_of<T>);
  EXPECT_EQ(header.extents, extents);
  std::vector<T> out(static_cast<std::size_t>(checked_product(extents)));
  std::memcpy(out.data(), npy.data() + header.header_bytes, out.size() * sizeof(T));
  return out;
}

template <class T>
std::vector<T> counting(std::size_t count) {
  std::vector<T> out(count);
  std::iota(out.begin(), out.end(), T(0));
  return out;
}

// --- files that others wrote

TEST(ZipFixture, NumPysArchivesAreRead) {
  for (const auto& [name, method] :
       {std::pair("stored.npz", ZipMethod::stored), std::pair("deflated.npz", ZipMethod::deflated)}) {
    SCOPED_TRACE(name);
    const std::string archive = fixture(name);
    const std::vector<ZipMember> members = parse_zip(bytes_of(archive)).value();
    ASSERT_EQ(members.size(), 3u);
    EXPECT_EQ(members[0].name, "rows.npy");
    EXPECT_EQ(members[1].name, "count.npy");
    EXPECT_EQ(members[2].name, "zero.npy");
    for (const ZipMember& member : members) EXPECT_EQ(member.method, method);
    EXPECT_EQ(elements_of<double>(read(archive, "rows.npy"), {2, 3}), counting<double>(6));
    EXPECT_EQ(elements_of<int>(read(archive, "count.npy"), {9}), counting<int>(9));
    EXPECT_EQ(elements_of<float>(read(archive, "zero.npy"), {}), counting<float>(1));
    EXPECT_EQ(find_zip_member(members, "rows"), nullptr);
  }
}

TEST(ZipFixture, StoredMembersLieInTheArchive) {
  const std::string archive = fixture("stored.npz");
  for (const ZipMember& member : parse_zip(bytes_of(archive)).value()) {
    ASSERT_EQ(member.method, ZipMethod::stored);
    EXPECT_EQ(archive.substr(std::size_t(member.data_offset_bytes), std::size_t(member.data_bytes)),
              read(archive, member.name));
  }
}

TEST(ZipFixture, LargeRecordsStreamsAndComments) {
  for (const char* name : {"large_stored.zip", "large_deflated.zip", "streamed.zip"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(read(fixture(name), "text"), repeated);
    EXPECT_EQ(read(fixture(name), "folder/again"), repeated);
  }
  EXPECT_EQ(read(fixture("comment.zip"), "text"), repeated);
  EXPECT_TRUE(parse_zip(bytes_of(fixture("empty.zip"))).value().empty());
  EXPECT_EQ(refusal(fixture("bzip2.zip")),
            "unsupported: member 'text' is packed by method 12: 0 (stored) and 8 (deflated) are read");
}

TEST(ZipNumPy, ArchivesMadeNowAreRead) {
  testing::TemporaryFolder folder;
  testing::write_text(folder.path("make.py"),
                      "import sys, numpy as np\n"
                      "for save, name in (np.savez, 'stored'), (np.savez_compressed, 'deflated'):\n"
                      "    save(sys.argv[1] + '/' + name, np.arange(5.0), many=np.arange(200000).reshape(-1, 4))\n");
  bool made = false;
  for (const char* python : {"python3", "/usr/bin/python3"})
    made =
        made ||
        std::system(
            (std::string(python) + " " + folder.path("make.py") + " " + folder.path() + " >/dev/null 2>&1").c_str()) ==
            0;
  if (!made) GTEST_SKIP() << "no Python with NumPy";
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string archive = read_text(folder.path(name));
    EXPECT_EQ(elements_of<double>(read(archive, "arr_0.npy"), {5}), counting<double>(5));
    EXPECT_EQ(elements_of<std::int64_t>(read(archive, "many.npy"), {50000, 4}), counting<std::int64_t>(200000));
  }
}

// --- by hand

TEST(Zip, MembersOfManyPiecesAndOfNone) {
  std::string noise(3'000'001, '\0');
  std::mt19937 random(1);
  for (char& c : noise) c = static_cast<char>(random() % 8);
  const std::string archive = BuiltArchive{{{.name = "none", .data = ""},
                                            {.name = "stored", .data = noise},
                                            {.name = "empty", .data = "", .method = 8},
                                            {.name = "deflated", .data = noise, .method = 8},
                                            {.name = "zeros", .data = std::string(5'000'000, '\0'), .method = 8}}}
                                  .bytes();
  EXPECT_EQ(read(archive, "none"), "");
  EXPECT_EQ(read(archive, "empty"), "");
  EXPECT_TRUE(read(archive, "stored") == noise);
  EXPECT_TRUE(read(archive, "deflated") == noise);
  EXPECT_TRUE(read(archive, "zeros") == std::string(5'000'000, '\0'));
}

TEST(Zip, WhatLiesAroundTheMembersDoesNotMatter) {
  // Bytes in front and between, extra fields, a comment with a record of its own inside.
  const BuiltArchive archive{{{.name = "a", .data = "one", .local_extra = "\x99\x99\x02\x00xx"},
                              {.name = "", .data = "no name", .extra = std::string("\x01\x00\x00\x00", 4)}},
                             "#!shell\n",
                             "PK\x05\x06" + std::string(18, 'x')};
  EXPECT_EQ(read(archive.bytes(), "a"), "one");
  EXPECT_EQ(read(archive.bytes(), ""), "no name");
}

TEST(Zip, AnErrorOfTheSinkPassesThrough) {
  const std::string archive = BuiltArchive{{{.name = "a", .data = "one", .method = 8}}}.bytes();
  const ZipMember member = parse_zip(bytes_of(archive)).value()[0];
  const Result<void> done = read_zip_member(
      bytes_of(archive), member, [](std::span<const std::byte>) { throw Error(ErrorCode::io, "the disk is full"); });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), ErrorCode::io);
  EXPECT_EQ(done.error().message(), "the disk is full");
}

TEST(Zip, AMemberOfAnotherArchiveIsRefused) {
  const ZipMember member{.name = "a", .size_bytes = 9, .data_offset_bytes = 20, .data_bytes = 9};
  const Result<void> done = read_zip_member(bytes_of(std::string(28, 'x')), member, [](std::span<const std::byte>) {});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), ErrorCode::invalid_use);
}

// --- refused

TEST(ZipRefuse, MembersThatLie) {
  const auto with = [](auto&& change) {
    BuiltMember member{.name = "a", .data = "0123456789"};
    change(member);
    return refusal(member);
  };
  EXPECT_EQ(with([](BuiltMember&) {}), "accepted");
  EXPECT_EQ(with([](BuiltMember& m) { m.crc = 7; }), "bad_file: member 'a': CRC a684c7c6, the directory says 00000007");
  EXPECT_EQ(with([](BuiltMember& m) { m.size = 11; }),
            "bad_file: member 'a': 11 bytes cannot come from 10 stored bytes");
  EXPECT_EQ(with([](BuiltMember& m) { m.size = m.packed_size = 1000; }),
            "bad_file: member 'a' needs 1000 bytes at offset 31, there are 10");
  EXPECT_EQ(with([](BuiltMember& m) { m.size = m.packed_size = 9; }),
            "bad_file: member 'a': CRC 37fad1ba, the directory says a684c7c6");
  EXPECT_EQ(with([](BuiltMember& m) { m.header_offset = 5; }),
            "bad_file: member 'a': no header at offset 5, where the directory says");
  EXPECT_EQ(with([](BuiltMember& m) { m.header_offset = 12345; }),
            "bad_file: member 'a' needs 30 bytes at offset 12345, there are 0");
  EXPECT_EQ(with([](BuiltMember& m) { m.local_name = "b"; }), "bad_file: member 'a': its header says 'b'");
  EXPECT_EQ(with([](BuiltMember& m) { m.local_method = 8; }),
            "bad_file: member 'a': method 0 in the directory, 8 in its header");
  EXPECT_EQ(with([](BuiltMember& m) { m.flags = 1; }), "unsupported: member 'a' is encrypted");
  EXPECT_EQ(with([](BuiltMember& m) { m.flags = 1 << 13; }), "unsupported: member 'a' is encrypted");
  EXPECT_EQ(with([](BuiltMember& m) { m.method = 14; }),
            "unsupported: member 'a' is packed by method 14: 0 (stored) and 8 (deflated) are read");
  EXPECT_EQ(with([](BuiltMember& m) { m.disk = 3; }),
            "unsupported: an archive of several disks: member 'a' is on disk 3");
  EXPECT_EQ(with([](BuiltMember& m) {
              m.size = 0xffffffff;
              m.extra = std::string("\x01\x00\x04\x00zzzz", 8);
            }),
            "bad_file: member 'a': its zip64 field has 4 bytes, 8 are needed");
  EXPECT_EQ(with([](BuiltMember& m) {
              m.size = 0xffffffff;
              m.extra = little(1, 2) + little(8, 2) + little(UINT64_MAX, 8);
            }),
            "bad_file: a member of 18446744073709551615 bytes does not fit in 63 bits");
  EXPECT_EQ(with([](BuiltMember& m) {
              m.name = m.data = "\x1b[31m";
              m.crc = 0;
            }).substr(0, 33),
            "bad_file: member '\\x1b[31m': CRC ");
}

TEST(ZipRefuse, DeflatedDataThatLies) {
  const std::string text(1000, 'x');
  const auto with = [&](auto&& change) {
    BuiltMember member{.name = "a", .data = text, .method = 8};
    change(member);
    return refusal(member);
  };
  EXPECT_EQ(with([](BuiltMember&) {}), "accepted");
  EXPECT_EQ(with([](BuiltMember& m) { m.size = 999; }),
            "bad_file: member 'a': the directory says 999 bytes, its data gives more");
  EXPECT_EQ(with([](BuiltMember& m) { m.size = 1001; }),
            "bad_file: member 'a': the directory says 1001 bytes, its data gives 1000");
  EXPECT_EQ(with([](BuiltMember& m) { m.size = 2'000'000'000; }).substr(0, 46),
            "bad_file: member 'a': 2000000000 bytes cannot ");
  EXPECT_EQ(with([&](BuiltMember& m) { m.packed = testing::deflated(text).substr(0, 5); }),
            "bad_file: member 'a': its deflated data is cut");
  EXPECT_EQ(with([&](BuiltMember& m) { m.packed = ""; }), "bad_file: member 'a': its deflated data is cut");
  EXPECT_EQ(with([&](BuiltMember& m) { m.packed = testing::deflated(text) + "xyz"; }),
            "bad_file: member 'a': 3 bytes after the end of its deflated data");
  EXPECT_EQ(with([&](BuiltMember& m) { m.packed = "\xff\xff\xff"; }), "bad_file: member 'a': its data is not deflated");
  EXPECT_EQ(with([&](BuiltMember& m) { m.packed = testing::deflated(std::string(1000, 'y')); }).substr(0, 26),
            "bad_file: member 'a': CRC ");
}

TEST(ZipRefuse, MembersThatOverlap) {
  // The second is the first once more; then it lies inside the bytes of the first.
  BuiltArchive twice{{{.name = "a", .data = "0123456789"}, {.name = "a", .data = "0123456789", .header_offset = 0}}};
  EXPECT_EQ(refusal(twice.bytes()), "bad_file: members 'a' and 'a' overlap: one ends at 41, the other begins at 0");
  const std::string inner = BuiltArchive{{{.name = "b", .data = "in"}}}.bytes().substr(0, 33);
  BuiltArchive nested{{{.name = "a", .data = inner}, {.name = "b", .data = "in", .header_offset = 31}}};
  EXPECT_EQ(refusal(nested.bytes()), "bad_file: members 'a' and 'b' overlap: one ends at 64, the other begins at 31");
  EXPECT_EQ(refusal(BuiltArchive{{{.name = "a", .data = "1"}, {.name = "a", .data = "2"}}}.bytes()),
            "bad_file: two members are named 'a'");
}

TEST(ZipRefuse, DirectoriesThatLie) {
  const BuiltArchive good{{{.name = "a", .data = "1"}, {.name = "b", .data = "2"}}};
  const auto with = [&](auto&& change) {
    BuiltArchive archive = good;
    change(archive);
    return refusal(archive.bytes());
  };
  EXPECT_EQ(with([](BuiltArchive&) {}), "accepted");
  EXPECT_EQ(refusal(""), "bad_file: not a zip archive, or truncated: 0 bytes without an end record");
  EXPECT_EQ(refusal(std::string(70'000, 'P')),
            "bad_file: not a zip archive, or truncated: 70000 bytes without an end record");
  EXPECT_EQ(with([](BuiltArchive& a) { a.count = 1; }),
            "bad_file: the directory goes on for 47 bytes after its 1 member");
  EXPECT_EQ(with([](BuiltArchive& a) { a.count = 3; }), "bad_file: a directory of 94 bytes cannot list 3 members");
  EXPECT_EQ(with([](BuiltArchive& a) {
              a.members[0].name = std::string(50, 'n');
              a.count = 3;
            }),
            "bad_file: the directory says 3 members and lists 2");
  EXPECT_EQ(with([](BuiltArchive& a) { a.count_here = 1; }),
            "unsupported: an archive of several disks: 1 of 2 members are on this one");
  EXPECT_EQ(with([](BuiltArchive& a) { a.disk = 1; }),
            "unsupported: an archive of several disks: this is disk 1, its directory is on disk 1");
  EXPECT_EQ(with([](BuiltArchive& a) { a.directory_offset = 1; }),
            "bad_file: the directory of 94 bytes at offset 1 does not end at 158, where its end is");
  EXPECT_EQ(with([](BuiltArchive& a) { a.directory_bytes = 95; }),
            "bad_file: the directory of 95 bytes at offset 64 does not end at 158, where its end is");
  EXPECT_EQ(with([](BuiltArchive& a) { a.after_directory = "x"; }),
            "bad_file: the directory of 94 bytes at offset 64 does not end at 159, where its end is");
}

TEST(ZipRefuse, RecordsOfZip64ThatLie) {
  const std::string good = fixture("large_deflated.zip");
  // The record is 56 bytes at 306, the locator 20 at 362, the end 22 at 382.
  const auto with = [&](std::size_t at, std::uint64_t value, int bytes) {
    std::string archive = good;
    archive.replace(at, static_cast<std::size_t>(bytes), little(value, bytes));
    return refusal(archive);
  };
  EXPECT_EQ(with(306, 0x06064b50, 4), "accepted");
  EXPECT_EQ(with(306, 0, 4), "bad_file: no zip64 end record at offset 306, where the locator says");
  EXPECT_EQ(with(370, 305, 8), "bad_file: no zip64 end record at offset 305, where the locator says");
  EXPECT_EQ(with(370, UINT64_MAX, 8), "bad_file: an offset of 18446744073709551615 bytes does not fit in 63 bits");
  EXPECT_EQ(with(370, INT64_MAX, 8),
            "bad_file: the zip64 end record needs 56 bytes at offset 9223372036854775807, there are 0");
  EXPECT_EQ(with(310, 45, 8),
            "bad_file: the zip64 end record of 57 bytes at offset 306 does not reach its locator at 362");
  EXPECT_EQ(with(310, UINT64_MAX >> 1, 8).substr(0, 9), "overflow:");
  EXPECT_EQ(with(322, 1, 4), "unsupported: an archive of several disks: this is disk 1, its directory is on disk 0");
  EXPECT_EQ(with(378, 2, 4), "unsupported: an archive of several disks: this is disk 1, its directory is on disk 0");
  EXPECT_EQ(with(338, 3, 8), "unsupported: an archive of several disks: 2 of 3 members are on this one");
  EXPECT_EQ(with(346, 157, 8),
            "bad_file: the directory of 157 bytes at offset 150 does not end at 306, where its end is");
  EXPECT_EQ(with(354, 151, 8),
            "bad_file: the directory of 156 bytes at offset 151 does not end at 306, where its end is");
  EXPECT_EQ(with(392, 3, 2), "bad_file: the end record says 3, the zip64 end record 2");
  EXPECT_EQ(with(392, 0xffff, 2), "accepted");
}

TEST(ZipRefuse, TooManyMembers) {
  std::string archive = fixture("large_deflated.zip");
  for (const std::size_t at : {330, 338}) archive.replace(at, 8, little(1'000'001, 8));
  archive.replace(392, 2, "\xff\xff");
  EXPECT_EQ(refusal(archive), "unsupported: an archive of 1000001 members: at most 1000000 are read");
}

TEST(ZipRefuse, EveryCutOfAnArchive) {
  for (const char* name : {"stored.npz", "deflated.npz", "large_deflated.zip", "streamed.zip"}) {
    const std::string archive = fixture(name);
    for (std::size_t cut = 0; cut < archive.size(); ++cut)
      EXPECT_EQ(refusal(archive.substr(0, cut)).substr(0, 9), "bad_file:") << name << " " << cut;
  }
}

// --- mutations

TEST(ZipFuzz, NoChangedByteGoesUnnoticed) {
  // A change either is refused, or touches nothing that counts (times, attributes, names), or is found by the CRC.
  for (const char* name : {"deflated.npz", "stored.npz", "large_stored.zip"}) {
    const std::string good = fixture(name);
    const std::vector<ZipMember> members = parse_zip(bytes_of(good)).value();
    int refused = 0;
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::string archive = good;
      archive[at] = static_cast<char>(archive[at] ^ (1 << at % 8));
      if (refusal(archive) != "accepted") {
        ++refused;
        continue;
      }
      const std::vector<ZipMember> changed = parse_zip(bytes_of(archive)).value();
      ASSERT_EQ(changed.size(), members.size());
      for (std::size_t i = 0; i < members.size(); ++i)
        ASSERT_TRUE(read(archive, changed[i].name) == read(good, members[i].name)) << at;
    }
    EXPECT_GT(refused, static_cast<int>(good.size()) / 2);
  }
}

struct Tally {
  int accepted = 0;
  int members_read = 0;
  int refused = 0;
  int violations = 0;
  std::string first_violation;
};

Tally run_mutations(int count, testing::ZipReader reader) {
  const std::vector<std::string> seeds = {fixture("stored.npz"), fixture("deflated.npz"), fixture("large_stored.zip"),
                                          fixture("large_deflated.zip"), fixture("streamed.zip")};
  std::mt19937_64 random(20240607);
  Tally tally;
  for (int i = 0; i < count; ++i) {
    std::string archive = seeds[random() % seeds.size()];
    for (std::uint64_t changes = random() % 3 + 1; changes-- > 0;) {
      const std::size_t at = random() % archive.size();
      switch (random() % 4) {
        case 0:
          archive[at] = static_cast<char>(random());
          break;
        case 1:
          archive[at] = static_cast<char>(archive[at] ^ (1 << random() % 8));
          break;
        case 2:
          archive[at] = static_cast<char>(archive[at] + (random() % 2 ? 1 : -1));
          break;
        case 3:
          for (std::size_t k = at; k < std::min(at + 4, archive.size()); ++k) archive[k] = random() % 2 ? '\0' : '\xff';
          break;
      }
    }
    const testing::ZipVerdict verdict = testing::check_zip(bytes_of(archive), reader);
    ++(verdict.accepted ? tally.accepted : tally.refused);
    tally.members_read += verdict.members_read;
    if (!verdict.violation.empty() && tally.violations++ == 0) tally.first_violation = verdict.violation;
  }
  return tally;
}

TEST(ZipFuzz, MutatedArchivesAreRefusedOrKeepTheirPromises) {
  const Tally tally = run_mutations(10'000, read_zip_member);
  EXPECT_EQ(tally.violations, 0) << tally.first_violation;
  // Both sides were met often, or the mutations would prove little.
  EXPECT_GT(tally.accepted, 1'000);
  EXPECT_GT(tally.members_read, 1'000);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(ZipFuzz, CanaryAReaderThatBelievesTheDataIsFound) {
  const auto wrong = [](std::span<const std::byte> archive, const ZipMember& member, testing::ZipSink sink) {
    if (member.method != ZipMethod::stored) return read_zip_member(archive, member, sink);
    const auto bytes = archive.subspan(std::size_t(member.data_offset_bytes), std::size_t(member.data_bytes));
    if (!bytes.empty()) sink(bytes);
    return Result<void>();
  };
  EXPECT_GT(run_mutations(1'000, wrong).violations, 0);
}

}  // namespace
}  // namespace tranship::zip_test
