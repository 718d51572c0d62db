// Sources and targets beside .npy files: members of .npz files, and bare elements.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <tranship/file/format/npz.hpp>
#include <tranship/file/format/zip.hpp>
#include <tranship/file/format/zip_frame.hpp>
#include <tranship/file/io/checksum.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"
#include "file/zip_builder.hpp"

namespace tranship {
namespace {

using testing::BuiltArchive;
using testing::deflated;
using testing::FolderPlace;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

/// Bytes that do not repeat soon.
std::string elements(std::size_t bytes, unsigned seed = 1) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
  return out;
}

std::string npy(ElementType type, const Indices& extents, const std::string& data) {
  return format_npy_header(make_npy_header(type, extents)) + data;
}

template <class F>
std::string refusal(F&& f) {
  const auto result = attempt(f);
  return result ? "accepted" : std::string(name_of(result.error().code())) + ": " + result.error().message();
}

const ArraySpec columns = parse_layout("f32[30,20] @ 1x3 : whole, cyclic(2)");
const ArraySpec plain = parse_layout("f32[30,20] @ 1x1 : whole, whole");

class Npz : public ::testing::Test {
 protected:
  Npz() {
    write_text(folder.path("data.npz"), BuiltArchive{.members = {{"stored.npy", array},
                                                                 {"deflated.npy", array, 8},
                                                                 {"other.npy", npy(ElementType::i16, {2}, "abcd"), 8}}}
                                            .bytes());
  }
  void round_trip(const std::string& source) {
    reshard({.source = folder.path(source), .target = folder.path("parts"), .to = columns, .verify = Verify::yes});
    reshard({.source = folder.path("parts"), .target = folder.path("back.npy"), .to = plain});
    EXPECT_EQ(read_text(folder.path("back.npy")), array) << source;
  }

  TemporaryFolder folder{FolderPlace::memory};
  std::string array = npy(ElementType::f32, {30, 20}, elements(2400));
};

TEST_F(Npz, MembersAreSources) {
  round_trip("data.npz:stored");
  round_trip("data.npz:deflated");
  round_trip("data.npz:deflated.npy");
  EXPECT_EQ(folder.names().size(), 7u) << "nothing of what was inflated is left";
  EXPECT_EQ(inspect(folder.path("data.npz:deflated")).value().spec, plain);
  write_text(folder.path("one.npz"), BuiltArchive{.members = {{"only.npy", array, 8}}}.bytes());
  round_trip("one.npz");
}

TEST_F(Npz, AMemberLargerThanAHeaderIsInflatedWhole) {
  const std::string data = elements(std::size_t(3) << 20);
  write_text(folder.path("large.npz"),
             BuiltArchive{.members = {{"a.npy", npy(ElementType::u8, {3 << 20}, data), 8}}}.bytes());
  reshard({.source = folder.path("large.npz"),
           .target = folder.path("large.raw"),
           .to = parse_layout("u8[3145728] @ 1 : whole"),
           .verify = Verify::yes,
           .memory_bytes = reshard_memory_min});
  EXPECT_TRUE(read_text(folder.path("large.raw")) == data);
}

TEST_F(Npz, WhatExistsUnderTheWholeNameWins) {
  write_text(folder.path("data.npz:stored"), npy(ElementType::f32, {1, 1}, "abcd"));
  EXPECT_EQ(to_text(inspect(folder.path("data.npz:stored")).value().spec), "f32[1,1] @ 1x1 : whole, whole");
}

TEST_F(Npz, RefusesByName) {
  const auto read = [&](const std::string& source) {
    return refusal([&] {
      return reshard({.source = folder.path(source), .target = folder.path("parts"), .to = columns}).bytes_read;
    });
  };
  const std::string archive = "'" + folder.path("data.npz") + "'";
  EXPECT_EQ(read("data.npz"), "invalid_use: " + archive + " has 3 members; name one, as in '" +
                                  folder.path("data.npz:stored") + "': stored, deflated, other");
  EXPECT_EQ(read("data.npz:x"), "invalid_use: " + archive + " has no member 'x'; it has stored, deflated, other");
  EXPECT_EQ(read("data.npz:other"), "mismatch: the array has elements i16, the layout f32");
  EXPECT_NE(read("none.npz:x").find("none.npz'"), std::string::npos) << read("none.npz:x");
  write_text(folder.path("text.npz"), BuiltArchive{.members = {{"a.txt", "no numbers", 8}}}.bytes());
  EXPECT_TRUE(read("text.npz").starts_with("bad_file: '" + folder.path("text.npz:a.txt"))) << read("text.npz");
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST_F(Npz, ADamagedMemberIsFoundWhileItIsRead) {
  // Read by rows of 2 cells, by rows of 80 KiB and as one stretch; the array has 1.5 MiB behind its header.
  const ArraySpec tall = parse_layout("f32[20,20000] @ 1x1 : whole, whole");
  const std::string large = npy(ElementType::f32, {20, 20000}, elements(1600000));
  const std::string good =
      BuiltArchive{.members = {{"a.npy", large}, {"stored.npy", large}, {"deflated.npy", large, 8}, {"z.npy", large}}}
          .bytes();
  const std::size_t begin = good.find(large, good.find(large) + 1);
  const auto read = [&](const std::string& member, const std::string& to, Verify verify) {
    return refusal([&] {
      return reshard({.source = folder.path("data.npz:" + member),
                      .target = folder.path("parts"),
                      .to = try_parse_placement(to, tall.type, tall.distribution.extents()).value(),
                      .verify = verify})
          .bytes_read;
    });
  };
  for (const Verify verify : {Verify::no, Verify::yes})
    for (const char* to : {"@ 1x3 : whole, cyclic(2)", "@ 4x1 : block, whole", "@ 1x1 : whole, whole"}) {
      SCOPED_TRACE(to);
      for (const std::size_t at : {std::size_t(100), large.size() / 2, large.size() - 1}) {
        std::string archive = good;
        // In the header a tab where a space was, which says the same.
        archive[begin + at] ^= at == 100 ? ' ' ^ '\t' : 1;
        write_text(folder.path("data.npz"), archive);
        const std::string said = read("stored", to, verify);
        EXPECT_TRUE(said.starts_with("bad_file: '" + folder.path("data.npz:stored") +
                                     "' is not what its archive says: its checksum is "))
            << at << ": " << said;
        EXPECT_EQ(folder.names().size(), 1u) << "nothing is written";
        EXPECT_EQ(read("z", to, verify), "accepted") << "of another member nothing is checked";
        std::filesystem::remove_all(folder.path("parts"));
      }
      std::string archive = good;
      archive[archive.find(deflated(large)) + 1000000] ^= 1;
      write_text(folder.path("data.npz"), archive);
      EXPECT_TRUE(read("deflated", to, verify).starts_with("bad_file: '" + folder.path("data.npz:deflated")));
      EXPECT_EQ(folder.names().size(), 1u);
    }
}

std::string archive_to_cut;
const posix::DiskCalls real_disk = posix::disk;

TEST_F(Npz, AnArchiveThatIsCutWhileItIsInflatedIsAnErrorAndNoSignal) {
  const std::string data = elements(std::size_t(3) << 20);
  archive_to_cut = folder.path("large.npz");
  write_text(archive_to_cut, BuiltArchive{.members = {{"a.npy", npy(ElementType::u8, {3 << 20}, data), 8}}}.bytes());
  posix::disk.pwrite = [](int file, const void* bytes, std::size_t count, off_t offset) {
    std::filesystem::resize_file(archive_to_cut, 5000);
    return real_disk.pwrite(file, bytes, count, offset);
  };
  const std::string said = refusal([&] {
    return reshard({.source = archive_to_cut,
                    .target = folder.path("large.raw"),
                    .to = parse_layout("u8[3145728] @ 1 : whole")})
        .bytes_read;
  });
  posix::disk = real_disk;
  EXPECT_TRUE(said.starts_with("bad_file: '" + archive_to_cut + "' became shorter while it was read")) << said;
  EXPECT_FALSE(posix::exists(folder.path("large.raw")));
}

TEST_F(Npz, ATargetInTheArchiveIsRefused) {
  EXPECT_TRUE(refusal([&] {
                return reshard(
                           {.source = folder.path("data.npz:stored"), .target = folder.path("data.npz"), .to = columns})
                    .bytes_read;
              }).starts_with("invalid_use: the target"));
}

/// What Python says of archives: "ok", or nothing where there is no NumPy.
std::string python_says(const TemporaryFolder& folder, const std::string& program) {
  write_text(folder.path("program.py"), program + "\nprint('ok')\n");
  const auto run = [&](const std::string& python, const std::string& what) {
    return std::system((python + " " + what + " >" + folder.path("said") + " 2>&1").c_str()) == 0;
  };
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (run(python, "-c 'import numpy'")) {
      run(python, folder.path("program.py") + " " + folder.path());
      return read_text(folder.path("said"));
    }
  return "";
}

TEST_F(Npz, IsATarget) {
  reshard({.source = folder.path("data.npz:stored"), .target = folder.path("parts"), .to = columns});
  for (const auto& [target, member] :
       {std::pair("out.npz", "arr_0.npy"), std::pair("out.npz:heights", "heights.npy"),
        std::pair("out.npz:a/b.npy", "a/b.npy"), std::pair("out.npz:caf\xc3\xa9", "caf\xc3\xa9.npy")}) {
    SCOPED_TRACE(target);
    const ReshardReport report =
        reshard({.source = folder.path("parts"), .target = folder.path(target), .to = plain, .verify = Verify::yes});
    const std::string archive = read_text(folder.path("out.npz"));
    const auto bytes = std::as_bytes(std::span(archive));
    EXPECT_EQ(report.checksums.front().crc32, crc32_of(bytes));
    const std::vector<ZipMember> members = parse_zip(bytes).value();
    ASSERT_EQ(members.size(), 1u);
    EXPECT_EQ(members.front().name, member);
    EXPECT_EQ(members.front().data_offset_bytes % 64, 0);
    std::string found;
    EXPECT_TRUE(read_zip_member(bytes, members.front(), [&](std::span<const std::byte> piece) {
                  found.append(reinterpret_cast<const char*>(piece.data()), piece.size());
                }).ok());
    EXPECT_EQ(found, array);
  }
  round_trip("out.npz");
}

TEST_F(Npz, NumPyReadsWhatIsWritten) {
  const ArraySpec fortran = parse_layout("f32[30,20] @ 1x1 : whole, whole | order(1,0)");
  reshard({.source = folder.path("data.npz:stored"), .target = folder.path("a.npy"), .to = plain});
  reshard({.source = folder.path("a.npy"), .target = folder.path("c.npz:x"), .to = plain});
  reshard({.source = folder.path("a.npy"), .target = folder.path("f.npz"), .to = fortran});
  const std::string said = python_says(folder, R"(import sys, zipfile, numpy as np
folder = sys.argv[1] + '/'
a = np.load(folder + 'a.npy')
with np.load(folder + 'c.npz') as c: assert list(c) == ['x'] and c['x'].tobytes() == a.tobytes()
with np.load(folder + 'f.npz') as f: assert (f['arr_0'] == a).all() or a.tobytes() == f['arr_0'].tobytes('C')
with np.load(folder + 'f.npz') as f: assert f['arr_0'].flags.f_contiguous
for name in 'cf': assert zipfile.ZipFile(folder + name + '.npz').testzip() is None)");
  if (said.empty()) GTEST_SKIP() << "no Python with NumPy";
  EXPECT_EQ(said, "ok\n");
}

TEST_F(Npz, ATargetOfSeveralArraysIsNotReplaced) {
  const auto write = [&](const std::string& target, const ArraySpec& to) {
    return refusal(
        [&] { return reshard({.source = folder.path("a.npy"), .target = folder.path(target), .to = to}).bytes_read; });
  };
  write_text(folder.path("a.npy"), array);
  const std::string before = read_text(folder.path("data.npz"));
  const std::string refused = "invalid_use: '" + folder.path("data.npz") + "' exists and is not replaced, for ";
  EXPECT_TRUE(write("data.npz", plain).starts_with(refused)) << write("data.npz", plain);
  EXPECT_TRUE(write("data.npz:stored", plain).starts_with(refused));
  write_text(folder.path("mine.npz"), "mine");
  EXPECT_TRUE(write("mine.npz:x", plain).starts_with("invalid_use: '" + folder.path("mine.npz"))) << "no archive";
  EXPECT_NE(write("new.npz:x", columns).find("names one file, but the layout has 3"), std::string::npos);
  EXPECT_NE(write("new.npz:", plain).find("names no member"), std::string::npos) << write("new.npz:", plain);
  EXPECT_NE(write("new.npz:\xff", plain).find("a member's name must be UTF-8"), std::string::npos);
  for (const std::string name : {"../y", "a/../../y", "/y", "../y.npy"}) {
    const std::string message = write("new.npz:" + name, plain);
    EXPECT_TRUE(message.starts_with("invalid_use: ")) << message;
    EXPECT_NE(message.find("must not leave the archive"), std::string::npos) << message;
  }
  EXPECT_EQ(read_text(folder.path("data.npz")), before);
  EXPECT_EQ(folder.names().size(), 3u);
}

// Members and archives beyond 32 bits, of zeros that no disk holds.
TEST(ZipFrame, IsReadBackInEverySize) {
  const TemporaryFolder folder;
  for (const Index size : {Index(0), Index(1), Index(1) << 20, (Index(1) << 32) - 200, (Index(1) << 32) - 2,
                           (Index(1) << 32) - 1, Index(1) << 32, Index(5) << 32}) {
    SCOPED_TRACE(size);
    const ZipFrame frame = zip_frame("member.npy", size, 64);
    const std::string path = folder.path("a.zip");
    write_text(path, frame.head);
    std::filesystem::resize_file(path, frame.head.size() + static_cast<std::size_t>(size));
    std::ofstream(path, std::ios::app | std::ios::binary) << frame.tail;
    const MappedFile file = MappedFile::open(path).value();
    const std::vector<ZipMember> members = parse_zip(file.bytes()).value();
    ASSERT_EQ(members.size(), 1u);
    EXPECT_EQ(members.front(), (ZipMember{.name = "member.npy",
                                          .size_bytes = size,
                                          .data_offset_bytes = static_cast<Index>(frame.head.size()),
                                          .data_bytes = size}));
    EXPECT_EQ(frame.head.size() % 64, 0u);
    ASSERT_EQ(frame.crc_places.size(), 2u);
    EXPECT_EQ(frame.crc_places[1], members.front().data_offset_bytes + size + 16);
  }
  const Result<ZipFrame> longest = attempt([] { return zip_frame(std::string(65536, 'a'), 1, 64); });
  EXPECT_FALSE(longest.ok());
}

TEST(Raw, GoesThereAndBack) {
  const TemporaryFolder folder(FolderPlace::memory);
  const std::string data = elements(2400);
  write_text(folder.path("x.bin"), data);
  write_text(folder.path("y.dat"), "a header" + data);
  reshard({.source = folder.path("x.bin"),
           .target = folder.path("parts"),
           .from = plain,
           .to = columns,
           .raw = RawForm{},
           .verify = Verify::yes});
  reshard({.source = folder.path("parts"), .target = folder.path("back.raw"), .to = plain, .verify = Verify::yes});
  EXPECT_EQ(read_text(folder.path("back.raw")), data);
  reshard({.source = folder.path("y.dat"),
           .target = folder.path("back.bin"),
           .from = plain,
           .to = plain,
           .raw = RawForm{.skip_bytes = 8}});
  EXPECT_EQ(read_text(folder.path("back.bin")), data);
}

TEST(Raw, TakesTheOrderOfTheLayout) {
  const TemporaryFolder folder(FolderPlace::memory);
  write_text(folder.path("x.bin"), "abcdef");
  reshard({.source = folder.path("x.bin"),
           .target = folder.path("y.bin"),
           .from = parse_layout("u8[2,3] @ 1x1 : whole, whole | order(1,0)"),
           .to = parse_layout("u8[2,3] @ 1x1 : whole, whole"),
           .raw = RawForm{}});
  EXPECT_EQ(read_text(folder.path("y.bin")), "acebdf");
}

TEST(Raw, RefusesWhatDoesNotFitExactly) {
  const TemporaryFolder folder(FolderPlace::memory);
  write_text(folder.path("x.bin"), elements(2401));
  const auto read = [&](const std::optional<ArraySpec>& from, Index skip_bytes, const std::string& target) {
    return refusal([&] {
      return reshard({.source = folder.path("x.bin"),
                      .target = folder.path(target),
                      .from = from,
                      .to = columns,
                      .raw = RawForm{.skip_bytes = skip_bytes}})
          .bytes_read;
    });
  };
  const std::string x = "'" + folder.path("x.bin") + "'";
  EXPECT_EQ(read(plain, 0, "y"), "mismatch: " + x + " has 2401 bytes; 600 elements f32 of [30, 20] need 2400");
  EXPECT_EQ(read(plain, 2, "y"),
            "mismatch: " + x + " has 2401 bytes; 600 elements f32 of [30, 20] after 2 bytes need 2402");
  EXPECT_EQ(read(plain, -1, "y"), "invalid_use: cannot skip -1 bytes");
  EXPECT_EQ(read(plain, INT64_MAX, "y").substr(0, 9), "overflow:");
  EXPECT_EQ(read(columns, 1, "y"), "mismatch: " + x + " is a file of 1 part, the layout has 3");
  EXPECT_EQ(read(std::nullopt, 0, "y"), "invalid_use: " + x + " is a raw file, which has no header: give its layout");
  EXPECT_TRUE(read(plain, 1, "y.raw").starts_with("invalid_use:")) << "three parts in one file";
  EXPECT_EQ(read(plain, 1, "y"), "accepted");
}

}  // namespace
}  // namespace tranship
