// The commands that work on files: reshard, layout of a path, demo.
#include <cstring>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "cli/command.hpp"
#include "file/zip_builder.hpp"
#include "support/paths.hpp"

namespace tranship::reshard_test {
namespace {

namespace fs = std::filesystem;
using testing::npy;
using testing::numbered_npy;
using testing::Outcome;
using testing::Workplace;

const std::string rows = "i16[30,20] @ 4x1 : block, whole";
const std::string tiles = "i16[30,20] @ 2x2 : cyclic(4)+overlap(1,1), cyclic(3)+overlap(2,0)";
const std::string one = "i16[30,20] @ 1x1 : whole, whole";

TEST(Reshard, GoesThereAndBack) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  const Outcome there = place.run({"reshard", "array.npy", "rows", "--to", rows, "--verify"});
  EXPECT_EQ(there.code, 0) << there.errors;
  EXPECT_EQ(there.errors, "") << "progress, and no terminal";
  EXPECT_TRUE(there.output.starts_with("rows: 4 parts, 1.2 KiB read, 1.2 KiB written, verified, in ")) << there.output;
  EXPECT_EQ(std::count(there.output.begin(), there.output.end(), '\n'), 1);
  EXPECT_TRUE(place.names().contains("rows/manifest.json"));
  EXPECT_TRUE(place.names().contains("rows/part-00003.npy"));

  EXPECT_EQ(place.run({"reshard", "rows", "tiles", "--from", rows, "--to", tiles}).code, 0);
  EXPECT_EQ(place.run({"reshard", "tiles", "back.npy", "--to", one}).code, 0);
  EXPECT_EQ(place.read("back.npy"), place.read("array.npy"));
}

TEST(Reshard, ReportsAsJson) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  const Outcome outcome = place.run({"reshard", "array.npy", "tiles", "--to", tiles, "--verify", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const auto report = outcome.json();
  EXPECT_EQ(report.at("source"), "array.npy");
  EXPECT_EQ(report.at("target"), "tiles");
  EXPECT_EQ(report.at("from").at("grid").at("extents"), Json({1, 1}));
  EXPECT_EQ(report.at("to").at("grid").at("extents"), Json({2, 2}));
  EXPECT_EQ(report.at("parts_written"), 4);
  EXPECT_GE(report.at("bytes_written").as_integer(), 30 * 20 * 2);
  EXPECT_GT(report.at("bytes_read").as_integer(), 0);
  EXPECT_GT(report.at("duration_ns").as_integer(), 0);
  EXPECT_EQ(report.at("verified"), true);
  EXPECT_EQ(report.at("memory_bytes"), 256 << 20);
  EXPECT_GE(report.at("threads").as_integer(), 1);
  EXPECT_EQ(report.at("resumed_bytes"), 0);
  EXPECT_EQ(report.at("checksums").size(), 4u);
  const auto manifest = parse_json(place.read("tiles/manifest.json"));
  for (const auto& part : manifest.at("parts").items())
    EXPECT_EQ(report.at("checksums").at(part.at("file").as_string()), part.at("crc32"));
  EXPECT_EQ(place.run({"reshard", "array.npy", "tiles", "--to", tiles, "--json"}).json().at("verified"), false);
}

TEST(Reshard, RefusesTargetsThatLookLikeFilesOfAnotherKind) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  for (const std::string name : {"out.h5", "out.NPY", "out.safetensors", "out.zarr", "a/b.nc"}) {
    const Outcome outcome = place.run({"reshard", "array.npy", name, "--to", rows});
    EXPECT_EQ(outcome.code, 1);
    const std::string ending = name.substr(name.find('.'));
    EXPECT_EQ(outcome.errors, "tranship: error: '" + name + "' is not a target: '" + ending +
                                  "' files cannot be written; files must end in .npy, .npz, .bin or .raw; for a "
                                  "directory, write '" +
                                  name + "/'\n");
  }
  EXPECT_EQ(place.names(), std::set<std::string>{"array.npy"});
  EXPECT_EQ(place.run({"reshard", "array.npy", "tiles.2", "--to", rows}).code, 0);
  EXPECT_EQ(place.run({"reshard", "array.npy", "rows.v2/", "--to", rows}).code, 0);
  EXPECT_EQ(place.run({"reshard", "array.npy", "rows.v2", "--to", rows}).code, 0) << "which is there";
}

TEST(Reshard, ADryRunSaysWhatARunDoes) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  const auto go = [&](const std::string& target, const std::string& to) {
    const auto before = place.names();
    const Outcome dry = place.run({"reshard", "array.npy", target, "--to", to, "--dry-run", "--json"});
    EXPECT_EQ(dry.code, 0) << dry.errors;
    EXPECT_EQ(place.names(), before);
    const auto said = dry.json();
    const Outcome outcome = place.run({"reshard", "array.npy", target, "--to", to, "--json"});
    const auto done = outcome.json();
    for (const char* key : {"source", "target", "from", "to", "bytes_written", "memory_bytes", "threads"})
      EXPECT_EQ(said.at(key), done.at(key)) << key;
    EXPECT_GE(said.at("bytes_read").as_integer(), done.at("bytes_read").as_integer()) << "a bound";
    EXPECT_EQ(said.at("parts"), done.at("parts_written"));
    EXPECT_EQ(said.at("files"), done.at("checksums").size());
    EXPECT_EQ(said.at("dry_run"), true);
    EXPECT_GT(said.at("disk_free_bytes").as_integer(), 0);
    std::uintmax_t bytes = 0;
    if (!std::filesystem::is_directory(place.path(target)))
      bytes = std::filesystem::file_size(place.path(target));
    else
      for (const auto& entry : std::filesystem::directory_iterator(place.path(target))) bytes += entry.file_size();
    EXPECT_EQ(said.at("disk_bytes"), bytes);
    return said;
  };
  EXPECT_EQ(go("rows", rows).at("messages"), 4);
  EXPECT_EQ(go("tiles", tiles).at("messages"), 4);
  EXPECT_EQ(go("one.npy", one).at("messages"), 1);
  EXPECT_EQ(go("one.bin", one).at("disk_bytes"), 1200);

  const Outcome text = place.run({"reshard", "array.npy", "new", "--to", rows, "--dry-run"});
  EXPECT_TRUE(text.output.starts_with("new: 4 parts, nothing is written\n\n")) << text.output;
  EXPECT_NE(text.output.find("messages, from part to part"), std::string::npos) << text.output;
  for (const std::vector<std::string> wrong :
       {std::vector<std::string>{"reshard", "array.npy", "array.npy", "--to", one, "--dry-run"},
        std::vector<std::string>{"reshard", "array.npy", "out.h5", "--to", one, "--dry-run"},
        std::vector<std::string>{"reshard", "array.npy", "x", "--to", "i32[30,20] @ 1x1 : whole, whole", "--dry-run"}})
    EXPECT_EQ(place.run(wrong).code, 1);

  // The same of a plan, without a target.
  const auto plan = place.run({"plan", "array.npy", "--to", "@ 4x1 : block, whole", "--json"}).json();
  EXPECT_EQ(plan.at("source"), "array.npy");
  EXPECT_EQ(plan.at("files").at("messages"), 4);
  EXPECT_GE(plan.at("files").at("bytes_read").as_integer(), 1200);
  EXPECT_EQ(plan.at("to").at("grid").at("extents"), Json({4, 1}));
  EXPECT_EQ(plan.at("summary").at("ranks"), 4);
  EXPECT_FALSE(plan.at("files").contains("disk_free_bytes"));
  EXPECT_EQ(place.run({"plan", "--to", rows}).code, 2) << "of what?";
}

TEST(Reshard, TakesElementsThatAreNoNumbers) {
  const Workplace place;
  const std::string record = npy("{'descr': [('x', '<f4'), ('y', '<i8')], 'fortran_order': False, 'shape': (4,), }",
                                 std::string("0123456789ab").append("AbCdEfGhIjKl").append(24, 'z'));
  place.write("a.npy", record);
  const Outcome there = place.run({"reshard", "a.npy", "parts", "--to", "@ 2 : block", "--verify", "--json"});
  EXPECT_EQ(there.code, 0) << there.errors;
  EXPECT_EQ(there.json().at("to").at("extents"), Json({4, 3}));
  EXPECT_EQ(place.run({"reshard", "parts", "b.npy", "--to", "@ 1 : whole"}).code, 0);
  EXPECT_EQ(place.read("b.npy").substr(128), record.substr(128));
  EXPECT_EQ(place.run({"reshard", "parts", "c.npy", "--to", "@ 1x1 : whole, whole"}).code, 0) << "with its dimension";
  EXPECT_EQ(place.read("c.npy"), place.read("b.npy"));
  EXPECT_EQ(place.run({"plan", "a.npy", "--to", "@ 2 : cyclic(1)"}).code, 0);
  ASSERT_EQ(::unlink(place.path("parts/manifest.json").c_str()), 0);
  const Outcome placed =
      place.run({"reshard", "parts", "d.npy", "--from", "u32[4,3] @ 2x1 : block, whole", "--to", "@ 1 : whole"});
  EXPECT_EQ(placed.code, 0) << placed.errors;
  EXPECT_EQ(place.read("d.npy"), place.read("b.npy"));
  EXPECT_EQ(place.run({"plan", "parts", "--from", "u32[4,3] @ 2x1 : block, whole", "--to", "@ 1 : whole"}).code, 0);

  place.write("f.npy", npy("{'descr': '|S3', 'fortran_order': True, 'shape': (2, 2), }", "abcdefghijkl"));
  const Outcome turned = place.run({"reshard", "f.npy", "c.npy", "--to", "@ 1x1 : whole, whole", "--verify"});
  EXPECT_EQ(turned.code, 0) << turned.errors;
  EXPECT_EQ(place.read("c.npy").substr(128), "abcghidefjkl");
  EXPECT_EQ(place.run({"reshard", "c.npy", "g.npy", "--to", "@ 1x1 : whole, whole | order(1,0)"}).code, 0);
  EXPECT_EQ(place.read("g.npy").substr(128), "abcdefghijkl");
  EXPECT_NE(place.run({"layout", "a.npy"}).output.find("('y', '<i8')"), std::string::npos);
}

TEST(Reshard, TakesStandardInputAndOutput) {
  const Workplace place;
  const std::string array = numbered_npy(30, 20);
  place.write("array.npy", array);
  const auto shell = [&](const std::string& line) {
    const std::string command = test::command_path();
    return std::system(("cd '" + place.path("") + "' && cat array.npy | '" + command + "' " + line).c_str());
  };
  EXPECT_EQ(shell("reshard - rows --to '@ 4x1 : block, whole' --verify > log 2> errors"), 0) << place.read("errors");
  EXPECT_TRUE(place.read("log").starts_with("rows: 4 parts, ")) << place.read("log");
  EXPECT_EQ(shell("reshard rows - --to '@ 1x1 : whole, whole' > back.npy 2> errors"), 0) << place.read("errors");
  EXPECT_EQ(place.read("back.npy").substr(128), array.substr(128));
  EXPECT_TRUE(place.read("errors").starts_with("-: 1 part, ")) << place.read("errors");
  EXPECT_EQ(shell("reshard - - --to '@ 1x1 : whole, whole' --json 2> errors | cmp - back.npy"), 0);
  EXPECT_EQ(parse_json(place.read("errors")).at("target"), "-");
  EXPECT_NE(shell("reshard - - --to '@ 2x1 : block, whole' > none 2> errors"), 0) << "of two parts";
  EXPECT_EQ(place.read("none"), "");
}

TEST(Reshard, SaysThatAllIsWrittenWhenItIs) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  for (const char* form : {"--json", "--verify"}) {
    const Outcome outcome = place.run({"reshard", "array.npy", "-", "--to", one, form}, full);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(outcome.errors.starts_with("tranship: error: cannot write '-': ")) << outcome.errors;
  }
  ::close(full);
}

TEST(Reshard, SaysWhichDiskIsFullUnderAStream) {
  const Workplace place;
  place.write("array.npy", numbered_npy(300, 200));
  ASSERT_EQ(::mkdir(place.path("small").c_str(), 0700), 0);
  const std::string command = test::command_path();
  const auto in_little_room = [&](const std::string& line) {
    place.write("script", "mount -t tmpfs -o size=64k none small || exit 77\nTMPDIR='" + place.path("small") + "' '" +
                              command + "' " + line + "\n");
    return std::system(("cd '" + place.path("") + "' && unshare -rm sh script > log 2> errors").c_str());
  };
  for (const char* line : {"reshard - rows --to '@ 4x1 : block, whole' < array.npy",
                           "reshard array.npy - --to '@ 1x1 : whole, whole' > /dev/null"}) {
    const int status = in_little_room(line);
    if (!WIFEXITED(status) || !place.read("errors").starts_with("tranship"))
      GTEST_SKIP() << "no file system of one's own: " << place.read("errors");
    EXPECT_EQ(WEXITSTATUS(status), 1);
    EXPECT_NE(place.read("errors").find("; '-' is stored in '" + place.path("small") +
                                        "' first, and TMPDIR names another folder\n"),
              std::string::npos)
        << place.read("errors");
  }
}

TEST(Reshard, ErrorsNameStreamsAsTheUserDoes) {
  const Workplace place;
  place.write("array.npy", numbered_npy(600, 80));
  const auto errors_of = [&](const std::string& line) {
    const std::string command = test::command_path();
    const int status =
        std::system(("cd '" + place.path("") + "' && ( " + line + " ) > log 2> errors; test $? = 1").c_str());
    EXPECT_EQ(status, 0) << line;
    return place.read("errors");
  };
  const std::string run = "'" + std::string(test::command_path()) + "' reshard ",
                    whole = " --to '@ 1x1 : whole, whole'";
  EXPECT_EQ(errors_of(run + "- copy.npy" + whole + " < /dev/null").substr(0, 22), "tranship: error: '-': ");
  EXPECT_EQ(errors_of("head -c 90000 array.npy | " + run + "- copy.npy" + whole).substr(0, 22),
            "tranship: error: '-': ");
  const std::string limited = errors_of("ulimit -f 20; " + run + "array.npy -" + whole);
  EXPECT_NE(limited.find(" bytes for '-'"), std::string::npos) << limited;
  EXPECT_EQ(limited.find("/tmp"), std::string::npos) << limited;
  EXPECT_EQ(errors_of("ulimit -f 20; cat array.npy | " + run + "- copy.npy" + whole),
            "tranship: error: cannot write '-': File too large\n");
}

TEST(Reshard, APlanThatIsRefusedIsNamedByTheLayoutsThatWereGiven) {
  const Workplace place;
  place.write("array.npy",
              npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000,), }", std::string(1'000'000, '\0')));
  const std::string to = "u8[1000000] @ 2 ranks(7,3) : cyclic+overlap(500000,500000,replicate)";
  const Outcome outcome = place.run({"reshard", "array.npy", "parts", "--to", to});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.errors.find("from u8[1000000] @ 1 : whole to " + to + "\n"), std::string::npos) << outcome.errors;
  EXPECT_EQ(place.names(), std::set<std::string>{"array.npy"});
}

TEST(Reshard, TakesAnEmptyDirectoryForATarget) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  std::filesystem::create_directory(place.path("rows"));
  const Outcome outcome = place.run({"reshard", "array.npy", "rows", "--to", rows});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(place.names().contains("rows/manifest.json"));
  std::filesystem::create_directory(place.path("other"));
  place.write("other/notes", "mine");
  EXPECT_EQ(place.run({"reshard", "array.npy", "other", "--to", rows}).code, 1);
}

TEST(Reshard, SaysWhatItLacksOfASource) {
  const Workplace place;
  std::filesystem::create_directory(place.path("model"));
  place.write("model/pytorch_model.bin", "x");
  place.write("array.npy", numbered_npy(30, 20));
  const Outcome none = place.run({"reshard", "model/", "tp2", "--to", "** = replicated"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.errors,
            "tranship: error: directory 'model/' holds no 'manifest.json' and no *.safetensors file; for a directory "
            "of parts (part-00000.npy, ...), give their layout with --from\n");
  const Outcome array = place.run({"reshard", "array.npy", "x", "--to", "** = replicated"});
  EXPECT_EQ(array.code, 2);
  EXPECT_EQ(array.errors,
            "tranship: error: --to: rules apply to tensors, but 'array.npy' holds one array: give a LAYOUT or a "
            "placement, '@ "
            "4x1 : block, whole'\n");
  const Outcome plan = place.run({"plan", "--from", rows, "--to", "@ 2x1 : block, whole"});
  EXPECT_EQ(plan.code, 2);
  EXPECT_EQ(plan.errors,
            "tranship: error: --to: type and extents must stand before the '@', as in f64[100,100] @ 4x1 : block, "
            "whole\n");
}

TEST(Reshard, TakesMemoryAndThreads) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  const auto run = [&](const std::string& memory, const std::string& threads) {
    return place.run(
        {"reshard", "array.npy", "rows", "--to", rows, "--memory", memory, "--threads", threads, "--json"});
  };
  for (const char* memory : {"8388608", "8388608B", "8192KiB", "8M", "8MiB"})
    EXPECT_EQ(run(memory, "1").json().at("memory_bytes"), 8 << 20) << memory;
  EXPECT_EQ(run("1GiB", "2").json().at("threads"), 2);
  const Outcome little = run("1MiB", "1");
  EXPECT_EQ(little.code, 2);
  EXPECT_EQ(little.errors, "tranship: error: --memory: 1MiB is 1048576 bytes, at least 4194304 are needed\n");
  for (const char* wrong : {"x", "-1", "5 MiB", "5.5MiB", "9999999999TiB", "5MB"}) {
    const Outcome outcome = run(wrong, "1");
    EXPECT_EQ(outcome.code, 2) << wrong;
    EXPECT_NE(outcome.errors.find("is not a size"), std::string::npos) << outcome.errors;
  }
  EXPECT_EQ(run("64MiB", "0").code, 2);
}

TEST(Reshard, QuietSaysNothing) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  const Outcome outcome = place.run({"reshard", "array.npy", "rows", "--to", rows, "--quiet"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output + outcome.errors, "");
}

TEST(Reshard, ReadsWhatNumPyWrote) {
  const std::string fixtures = test::test_path("file/fixtures/");
  const Workplace place;
  for (const char* name : {"version1_c", "version1_f", "version2_c", "version2_f", "big_f64", "bf16"}) {
    SCOPED_TRACE(name);
    const std::string source = fixtures + name + ".npy";
    const auto stored = place.run({"layout", source, "--json"}).json();
    EXPECT_EQ(stored.at("path"), source);
    EXPECT_TRUE(stored.at("descr").is_string());
    place.write("layout.json", stored.at("layout").dump());
    const Outcome outcome = place.run({"reshard", source, "copy.npy", "--to", "@layout.json", "--verify"});
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(place.run({"layout", "copy.npy", "--json"}).json().at("descr"), stored.at("descr"));
  }
}

TEST(Reshard, ATargetSurvivesAReaderThatGoesAway) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(place.run({"reshard", "array.npy", "rows", "--to", rows}, ends[1]).code, 0);
  ::close(ends[1]);
  EXPECT_EQ(place.run({"layout", "rows", "--json"}).json().at("text"), rows);
}

TEST(Reshard, ATargetThatIsInPlaceIsASuccess) {
  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
  const Workplace place;
  place.write("array.npy", numbered_npy(6, 8));
  for (const char* format : {"--threads=1", "--json"}) {
    const Outcome outcome = place.run({"reshard", "array.npy", "rows", "--to", "@ 2x1 : block, whole", format}, full);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors,
              "tranship: the work is done, but its report cannot be written: No space left on device\n");
    EXPECT_TRUE(place.names().contains("rows/manifest.json"));
    fs::remove_all(place.path("rows"));
  }
  ::close(full);
}

TEST(Reshard, ALimitOfFileSizesIsAnError) {
  const Workplace place;
  place.write("array.npy", numbered_npy(600, 80));
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const std::string to = "@ 1x1 : whole, whole | order(1,0)";
  for (const rlim_t bytes : {rlim_t{10}, rlim_t{50'000}}) {
    const rlimit small{bytes, old.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const Outcome outcome = place.run({"reshard", "array.npy", "copy.npy", "--to", to});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_EQ(outcome.code, 1) << bytes;
    EXPECT_EQ(place.names(), std::set<std::string>{"array.npy"});
  }
}

TEST(Reshard, SaysWhatIsMissing) {
  const Workplace place;
  place.write("array.npy", numbered_npy(6, 8));
  ASSERT_EQ(place.run({"reshard", "array.npy", "rows", "--to", "@ 2x1 : block, whole"}).code, 0);
  fs::remove(place.path("rows/manifest.json"));
  const Outcome bare = place.run({"reshard", "rows", "copy.npy", "--to", "@ 1x1 : whole, whole"});
  EXPECT_EQ(bare.code, 1);
  EXPECT_NE(bare.errors.find("--from"), std::string::npos) << bare.errors;
  EXPECT_NE(place.run({"layout", "rows"}).errors.find("give the layout of its parts"), std::string::npos);
  const Outcome huge =
      place.run({"reshard", "array.npy", "copy", "--memory", "100TiB", "--to", "@ 2x1 : block, whole"});
  EXPECT_EQ(huge.code, 1);
  EXPECT_TRUE(huge.errors.starts_with("tranship: error: 109951162777600 bytes of memory: ")) << huge.errors;
  const Outcome placed = place.run({"plan", "--from", "f32[8] @ 2 : block", "--to", "@ 2x1 : block, whole"});
  EXPECT_EQ(placed.code, 2);
  EXPECT_NE(placed.errors.find("--to: type and extents must stand before the '@'"), std::string::npos) << placed.errors;
  place.write("layout.json", "{\n  \"type\": ,\n}");
  EXPECT_EQ(place.run({"layout", "@layout.json"}).errors,
            "tranship: error: LAYOUT: 'layout.json': line 2, column 11: not JSON: found ','\n");
}

TEST(Reshard, RefusesHostileInputAndChangesNothing) {
  const Workplace place;
  const std::string good = numbered_npy(30, 20);
  auto header = [](const std::string& descr, const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
  };
  place.write("good.npy", good);
  place.write("empty.npy", "");
  place.write("short.npy", good.substr(0, 9));
  place.write("cut.npy", good.substr(0, good.size() - 5));
  place.write("long.npy", good + "more");
  place.write("text.npy", "these are no numbers\n");
  place.write("object.npy", npy(header("'|O'", "(30, 20)"), std::string(1200, '\0')));
  place.write("huge.npy", npy(header("'<i2'", "(9223372036854775807, 9223372036854775807)"), "xx"));
  place.write("negative.npy", npy(header("'<i2'", "(-30, 20)"), std::string(1200, '\0')));
  place.write("code.npy", npy("__import__('os').system('touch owned')", std::string(1200, '\0')));
  ASSERT_EQ(place.run({"reshard", "good.npy", "kept", "--to", rows}).code, 0);
  ASSERT_EQ(place.run({"reshard", "good.npy", "missing", "--to", rows}).code, 0);
  ASSERT_EQ(::unlink(place.path("missing/part-00002.npy").c_str()), 0);
  ASSERT_EQ(place.run({"reshard", "good.npy", "corrupt", "--to", rows}).code, 0);
  place.write("corrupt/part-00001.npy", numbered_npy(7, 20));
  ASSERT_EQ(place.run({"reshard", "good.npy", "unlisted", "--to", rows}).code, 0);
  place.write("unlisted/manifest.json", "{\"tranship_manifest\": 1");
  ASSERT_EQ(::mkdir(place.path("folder").c_str(), 0700), 0);
  place.write("folder/notes", "mine");

  struct Case {
    std::string source, to, target = "kept";
    std::vector<std::string> said;  // parts of the message: names and both numbers
  };
  const auto before = place.names();
  const std::string manifest = place.read("kept/manifest.json");
  for (const Case& c : std::vector<Case>{
           {"nothing.npy", rows, "kept", {"nothing.npy"}},
           {"empty.npy", rows, "kept", {"empty.npy", "0"}},
           {"short.npy", rows, "kept", {"short.npy", "9"}},
           {"cut.npy", rows, "kept", {"cut.npy", std::to_string(good.size()), std::to_string(good.size() - 5)}},
           {"long.npy", rows, "kept", {"long.npy", std::to_string(good.size()), std::to_string(good.size() + 4)}},
           {"text.npy", rows, "kept", {"text.npy"}},
           {"object.npy", rows, "kept", {"object.npy", "object"}},
           {"huge.npy", rows, "kept", {"huge.npy", "9223372036854775807"}},
           {"negative.npy", rows, "kept", {"negative.npy", "-30"}},
           {"code.npy", rows, "kept", {"code.npy"}},
           {"missing", rows, "kept", {"part-00002.npy"}},
           {"corrupt", rows, "kept", {"part-00001.npy", "7", "8"}},
           {"unlisted", rows, "kept", {"manifest.json"}},
           {"folder", rows, "kept", {"folder"}},
           {"good.npy", "i16[30,21] @ 2x1 : block, whole", "kept", {"[30, 20]", "[30, 21]"}},
           {"good.npy", "f32[30,20] @ 2x1 : block, whole", "kept", {"i16", "f32"}},
           {"good.npy", rows, "two.npy", {"two.npy", "one file", "the layout has 4 parts"}},
           {"good.npy", one, "good.npy", {"good.npy"}},
           {"good.npy", rows, "folder", {"folder"}},
           {"good.npy", rows, "nowhere/target", {"nowhere"}},
           {"kept", rows, "kept", {"kept"}},
           {"kept", rows, "kept/inside", {"kept/inside"}},
       }) {
    SCOPED_TRACE(c.source + " to " + c.target + " as " + c.to);
    const Outcome outcome = place.run({"reshard", c.source, c.target, "--to", c.to});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.output, "");
    EXPECT_TRUE(outcome.errors.starts_with("tranship: error: ")) << outcome.errors;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    for (const std::string& said : c.said) EXPECT_NE(outcome.errors.find(said), std::string::npos) << outcome.errors;
    EXPECT_EQ(place.names(), before);
  }
  EXPECT_EQ(place.read("kept/manifest.json"), manifest);
  EXPECT_EQ(place.read("good.npy"), good);
  // What a layout text gets wrong is found before any file is looked at.
  EXPECT_EQ(place.run({"reshard", "nothing.npy", "x", "--to", "i16[30,20] @ 4x1 : block+overlap(-1,0), whole"}).code,
            2);
  EXPECT_EQ(place.run({"reshard", "good.npy", "x", "--from", rows, "--to", one}).code, 1);
}

TEST(Reshard, PlacementsAreOfTheArrayThatTheSourceHolds) {
  const Workplace place;
  place.write("array.npy", numbered_npy(30, 20));
  EXPECT_EQ(place.run({"reshard", "array.npy", "rows", "--to", "@ 4x1 : block, whole"}).code, 0);
  EXPECT_EQ(place.run({"layout", "rows", "--json"}).json().at("text"), rows);
  // Where no file is called "1x1 : whole, whole".
  EXPECT_EQ(
      place.run({"reshard", "rows", "back.npy", "--from", "@ 4x1 : block, whole", "--to", "@1x1 : whole, whole"}).code,
      0);
  EXPECT_EQ(place.read("back.npy"), place.read("array.npy"));
  const Outcome dims = place.run({"reshard", "array.npy", "x", "--to", "@ 4 : block"});
  EXPECT_EQ(dims.code, 2);
  EXPECT_TRUE(dims.errors.starts_with("tranship: error: --to: column ")) << dims.errors;
  const Outcome file = place.run({"reshard", "array.npy", "x", "--to", "@nothing.json"});
  EXPECT_EQ(file.code, 2);
  EXPECT_NE(file.errors.find("nothing.json"), std::string::npos) << file.errors;
  EXPECT_EQ(place.run({"reshard", "nothing.npy", "x", "--to", "@ 4x1 : block, whole"}).code, 1);
}

TEST(Reshard, WhiteSpaceHasNoMeaningInAPlacement) {
  const Workplace place;
  place.write("array.npy", numbered_npy(6, 8));
  for (const char* to : {" @ 2x1 : block, whole", "\n\t@2x1:block,whole ", "  @ 2x1:\nblock ,whole"})
    EXPECT_EQ(place.run({"reshard", "array.npy", "rows", "--to", to}).code, 0) << to;
  const Outcome wrong = place.run({"reshard", "array.npy", "rows", "--to", "  @ 2x1 : black, whole"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(wrong.errors.starts_with("tranship: error: --to: column 11: ")) << wrong.errors;
}

TEST(Reshard, TakesMembersAndBareElements) {
  const Workplace place;
  const std::string array = numbered_npy(30, 20), data = array.substr(array.size() - 1200);
  place.write("data.npz", testing::BuiltArchive{.members = {{"a.npy", array, 8}, {"b.npy", array}}}.bytes());
  EXPECT_EQ(place.run({"reshard", "data.npz:a", "rows", "--to", "@ 4x1 : block, whole", "--verify"}).code, 0);
  EXPECT_EQ(place.run({"layout", "data.npz:b", "--json"}).json().at("text"), one);
  const std::string whole = "@ 1x1 : whole, whole";
  EXPECT_EQ(place.run({"reshard", "rows", "out.npz:x", "--to", whole, "--verify"}).code, 0);
  EXPECT_EQ(place.run({"reshard", "out.npz:x", "back.npy", "--to", whole}).code, 0);
  EXPECT_EQ(place.read("back.npy"), array);
  EXPECT_EQ(place.run({"reshard", "rows", "x.bin", "--to", "@ 1x1 : whole, whole"}).code, 0);
  EXPECT_EQ(place.read("x.bin"), data);
  place.write("y.bin", "123" + data);
  const std::vector<std::string> back = {"reshard", "y.bin", "back.npy", "--raw",
                                         "--from",  one,     "--to",     "@ 1x1 : whole, whole"};
  const Outcome refused = place.run(back);
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.errors, "tranship: error: 'y.bin' has 1203 bytes; 600 elements i16 of [30, 20] need 1200\n");
  const Outcome spaced = place.run({"reshard", "y.bin", "z", "--raw", "--from", one + " | spacing(1,2)", "--to", one});
  EXPECT_EQ(spaced.code, 1);
  EXPECT_NE(spaced.errors.find("an array in a file has no spacing [1, 2]"), std::string::npos) << spaced.errors;
  std::vector<std::string> skipping = back;
  skipping.insert(skipping.end(), {"--skip", "3"});
  EXPECT_EQ(place.run(skipping).code, 0);
  EXPECT_EQ(place.read("back.npy"), array);

  EXPECT_EQ(place.run({"reshard", "x.bin", "y", "--raw", "--to", one}).code, 2);
  EXPECT_EQ(place.run({"reshard", "x.bin", "y", "--raw", "--from", "@ 1x1 : whole, whole", "--to", one}).code, 2);
  EXPECT_EQ(place.run({"reshard", "x.bin", "y", "--skip", "3", "--from", one, "--to", one}).code, 2);
}

TEST(Reshard, TakesTensorsByRules) {
  const Workplace place;
  std::string json = R"({"w":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]},)"
                     R"("b":{"dtype":"I8","shape":[3],"data_offsets":[32,35]}})";
  json += std::string(8 - json.size() % 8, ' ');
  const std::string file = testing::little(json.size(), 8) + json + "0123456789abcdefghijklmnopqrstuvXYZ";
  place.write("x.safetensors", file);
  const std::string tp2 = "w = @ 2x1 : block, whole; ** = replicated";
  const Outcome there = place.run({"reshard", "x.safetensors", "tp2", "--to", tp2, "--verify"});
  EXPECT_EQ(there.code, 0) << there.errors;
  EXPECT_TRUE(there.output.starts_with("tp2: 2 tensors in 2 files, 35 B read, 38 B written, verified, in "))
      << there.output;
  EXPECT_TRUE(place.names().contains("tp2/rank-00001-of-00002.safetensors"));
  place.write("rules.txt", "# everything\n** = replicated\n");
  const auto dry =
      place.run({"reshard", "tp2", "back.safetensors", "--to", "@rules.txt", "--dry-run", "--json"}).json();
  const auto plan = place.run({"plan", "tp2", "--to", "@rules.txt", "--json"}).json();
  EXPECT_EQ(plan.at("files").at("messages"), dry.at("messages"));
  EXPECT_EQ(plan.at("tensors"), dry.at("tensors"));
  EXPECT_FALSE(place.names().contains("back.safetensors"));
  const Outcome back = place.run({"reshard", "tp2", "back.safetensors", "--to", "@rules.txt", "--json"});
  for (const char* key : {"tensors", "ranks", "bytes_written"}) EXPECT_EQ(dry.at(key), back.json().at(key)) << key;
  EXPECT_GE(dry.at("bytes_read").as_integer(), back.json().at("bytes_read").as_integer());
  EXPECT_EQ(dry.at("disk_bytes"), std::filesystem::file_size(place.path("back.safetensors")));
  EXPECT_EQ(back.code, 0) << back.errors;
  EXPECT_EQ(back.json().at("tensors"), 2);
  EXPECT_EQ(back.json().at("ranks"), 1);
  EXPECT_EQ(back.json().at("checksums").size(), 1u);
  EXPECT_EQ(place.read("back.safetensors"), file);

  const Outcome placed = place.run({"reshard", "x.safetensors", "tp2", "--to", "@ 2x1 : block, whole"});
  EXPECT_EQ(placed.code, 2);
  EXPECT_EQ(
      placed.errors,
      "tranship: error: --to: tensors need rules (PATTERN = PLACEMENT); write '** = @ 2x1 : block, whole' to place all "
      "of them this way\n");
  const auto forecast =
      place.run({"reshard", "tp2", "sharded", "--to", "@rules.txt", "--max-shard-size", "32B", "--dry-run", "--json"});
  const Outcome sharded =
      place.run({"reshard", "tp2", "sharded", "--to", "@rules.txt", "--max-shard-size", "32B", "--verify"});
  std::uintmax_t sharded_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place.path("sharded")))
    sharded_bytes += entry.file_size();
  EXPECT_EQ(forecast.json().at("disk_bytes"), sharded_bytes) << "the index and the manifest, too";
  EXPECT_EQ(sharded.code, 0) << sharded.errors;
  EXPECT_TRUE(sharded.output.starts_with("sharded: 2 tensors in 2 files, ")) << sharded.output;
  EXPECT_TRUE(place.names().contains("sharded/model.safetensors.index.json"));
  EXPECT_TRUE(place.names().contains("sharded/model-00002-of-00002.safetensors"));
  EXPECT_EQ(place.run({"reshard", "tp2", "y", "--to", "@rules.txt", "--max-shard-size", "0"}).code, 1);
  EXPECT_EQ(place.run({"reshard", "tp2", "y", "--to", "@rules.txt", "--max-shard-size", "much"}).code, 2);

  const auto listed = place.run({"layout", "tp2", "--json"}).json().at("tensors");
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].at("name"), "w");
  EXPECT_EQ(listed[0].at("dtype"), "F32");
  EXPECT_EQ(listed[0].at("text"), "f32[4,2] @ 2x1 : block, whole");
  EXPECT_NE(place.run({"layout", "x.safetensors"}).output.find("i8[3] @ 1 : whole"), std::string::npos);

  EXPECT_EQ(place.run({"reshard", "x.safetensors", "y", "--to", "w = @ 2x : block"}).code, 2);
  EXPECT_EQ(place.run({"reshard", "x.safetensors", "y", "--to", "@nothing.txt"}).code, 2);
  EXPECT_EQ(place.run({"reshard", "x.safetensors", "y", "--from", one, "--to", tp2}).code, 2);
  EXPECT_EQ(place.run({"layout", "x.safetensors", "--rank", "0"}).code, 2);
  const Outcome unmatched = place.run({"reshard", "x.safetensors", "y", "--to", "w.x = replicated; ** = replicated"});
  EXPECT_EQ(unmatched.code, 1);
  EXPECT_EQ(unmatched.errors, "tranship: error: rule 1, 'w.x', matches none of 2 tensors\n");
}

TEST(Demo, TellsItsStoryOnDataThatItIsGiven) {
  const Workplace place;
  place.write("array.npy", numbered_npy(60, 90));
  const Outcome outcome = place.run({"demo", "--data", "array.npy", "--title", "Numbers in rows", "--dir", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.errors, "");
  for (const char* said : {"array.npy: i16[60,90]", "values 0 to 5399", "Numbers in rows", "out/back.npy is back",
                           "all 10,800 bytes", "all 5,400 cells"})
    EXPECT_NE(outcome.output.find(said), std::string::npos) << said << "\n" << outcome.output;
  EXPECT_EQ(place.read("out/back.npy"), place.read("array.npy"));
  EXPECT_NE(place.read("out/tiles.svg").find("<svg"), std::string::npos);
  EXPECT_EQ(place.run({"layout", "out/tiles", "--json"}).json().at("rank_count"), 6);
  // Again, over what it left.
  EXPECT_EQ(place.run({"demo", "--data", "array.npy", "--dir", "out"}).code, 0);
}

TEST(Demo, TakesColumnsFirst) {
  const Workplace place;
  place.write("array.npy", numbered_npy(25, 31, "True"));
  const Outcome outcome = place.run({"demo", "--data", "array.npy", "--dir", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(place.read("out/back.npy"), place.read("array.npy"));
}

TEST(Demo, TakesRastersSmallerThanItsGrids) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 7}, {3, 1}, {2, 2}}) {
    const Workplace place;
    place.write("array.npy", numbered_npy(height, width));
    const Outcome outcome = place.run({"demo", "--data", "array.npy", "--dir", "out"});
    EXPECT_EQ(outcome.code, 0) << height << "x" << width << ": " << outcome.errors;
  }
}

TEST(Demo, MakesUpItsDataAndSaysSo) {
  const Workplace place;
  const Outcome outcome = place.run({"demo"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_NE(outcome.output.find("made-up hills"), std::string::npos) << outcome.output;
  EXPECT_TRUE(place.names().contains("tranship-demo/hills.npy"));
}

TEST(Demo, LeavesWhatOthersWrote) {
  const Workplace place;
  fs::create_directory(place.path("out"));
  for (const char* name : {"out/hills.npy", "out/back.npy", "out/tiles.svg", "out/rows"}) {
    place.write(name, "precious");
    const Outcome refused = place.run({"demo", "--dir", "out"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.errors, std::string("tranship: error: '") + name +
                                  "' exists, and no earlier demo wrote it: choose another --dir, or "
                                  "--force to replace it\n");
    EXPECT_EQ(place.read(name), "precious");
    fs::remove(place.path(name));
  }
  place.write("out/back.npy", numbered_npy(2, 2));
  place.write("out/notes", "precious");
  EXPECT_EQ(place.run({"demo", "--dir", "out", "--force"}).code, 0);
  EXPECT_EQ(place.run({"demo", "--dir", "out"}).code, 0);
  EXPECT_EQ(place.read("out/notes"), "precious");
}

std::string doubles_npy(std::initializer_list<double> row) {
  std::string data(row.size() * sizeof(double), '\0');
  std::memcpy(data.data(), std::data(row), data.size());
  return npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, " + std::to_string(row.size()) + "), }", data);
}

TEST(Demo, FindsWhatItMayNeverReplaceBeforeItWrites) {
  for (const char* name : {"out/rows", "out/tiles", "out/back.npy", "out/hills.npy", "out/tiles.svg"}) {
    const Workplace place;
    fs::create_directories(place.path(name));
    place.write(std::string(name) + "/notes", "precious");
    const std::set<std::string> before = place.names();
    const Outcome refused = place.run({"demo", "--dir", "out", "--force"});
    EXPECT_EQ(refused.code, 1) << name;
    EXPECT_EQ(refused.output, "") << name;
    EXPECT_NE(refused.errors.find(name), std::string::npos) << refused.errors;
    EXPECT_EQ(place.names(), before);
  }
}

TEST(Demo, RefusesHeightsThatDoNotAddUp) {
  const Workplace place;
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const double height : {nan, infinity, -infinity, 1e308, -1e38}) {
    place.write("array.npy", doubles_npy({1, height, 3}));
    const Outcome outcome = place.run({"demo", "--data", "array.npy", "--dir", "out"});
    EXPECT_EQ(outcome.code, 1) << height;
    EXPECT_NE(outcome.errors.find("element [0, 1] is"), std::string::npos) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_EQ(place.names(), std::set<std::string>{"array.npy"});
  }
  // What is left of the heights may still be anything.
  for (const double height : {1e-320, 1e-44, 1e37, -1e37}) {
    place.write("array.npy", doubles_npy({1, height, -height, height, 0, height, height}));
    EXPECT_EQ(place.run({"demo", "--data", "array.npy", "--dir", "out"}).code, 0) << height;
  }
}

TEST(Demo, RefusesWhatItCannotShow) {
  const Workplace place;
  const std::string data(8, '\0');
  place.write("line.npy", npy("{'descr': '<i2', 'fortran_order': False, 'shape': (4,), }", data));
  place.write("complex.npy", npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1), }", data));
  place.write("big.npy", npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2, 2), }", data));
  place.write("none.npy", npy("{'descr': '<i2', 'fortran_order': False, 'shape': (0, 2), }", ""));
  for (const char* name : {"line.npy", "complex.npy", "big.npy", "none.npy", "missing.npy"}) {
    const Outcome outcome = place.run({"demo", "--data", name, "--dir", "out"});
    EXPECT_EQ(outcome.code, 1) << name;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_EQ(outcome.output, "") << name;
  }
}

/// What a shell makes of a script, in which $tranship is the command; its own exit code.
int shell(const Workplace& place, const std::string& script) {
  const std::string path = place.path("script");
  place.write("script", "cd '" + place.path("") + "'\ntranship='" + test::command_path() + "'\n" + script);
  const int status = std::system(("sh '" + path + "' 2>'" + place.path("errors") + "'").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
}

TEST(Reshard, NoFileGetsTheNumberOfAClosedStream) {
  const Workplace place;
  place.write("array.npy", numbered_npy(4, 4));
  EXPECT_EQ(shell(place, "$tranship launch -n 1 readlink /proc/self/fd/2 >found 2>&-"), 0);
  EXPECT_EQ(place.read("found"), "/dev/null\n");
  EXPECT_EQ(shell(place, "$tranship reshard array.npy out.npy --to '@ 1x1 : whole, whole' --quiet <&- >&- 2>&-"), 0);
  EXPECT_EQ(place.read("out.npy"), place.read("array.npy"));
  EXPECT_NE(shell(place, "$tranship layout array.npy >&-"), 0) << "nothing to print to";
}

// The pipe holds less than the array, so the command is in the middle of it when the signal comes.
const std::string streamed = "mkdir spools; export TMPDIR=$PWD/spools; mkfifo pipe\n";
const std::string feed = "{ head -c 300000 array.npy; kill -TERM $$; tail -c +300001 array.npy; } >pipe &\n";

TEST(Reshard, AnInterruptWhileItReadsAStreamLeavesNothing) {
  const Workplace place;
  place.write("array.npy", numbered_npy(600, 400));
  EXPECT_EQ(shell(place, streamed + feed + "exec $tranship reshard - out.npy --to '@ 1x1 : whole, whole' <pipe"), 1);
  EXPECT_EQ(place.read("errors"), "tranship: error: interrupted, the target is as it was\n");
  EXPECT_TRUE(fs::is_empty(place.path("spools")));
}

TEST(Reshard, ASignalThatIsIgnoredStaysSo) {
  const Workplace place;
  place.write("array.npy", numbered_npy(600, 400));
  EXPECT_EQ(shell(place, streamed + "trap '' TERM\n" + feed +
                             "exec $tranship reshard - out.npy --to '@ 1x1 : whole, whole' --quiet <pipe"),
            0);
  EXPECT_EQ(place.read("out.npy"), place.read("array.npy"));
}

TEST(Reshard, AnInterruptWhileItWritesAStreamEndsIt) {
  const Workplace place;
  place.write("array.npy", numbered_npy(600, 400));
  EXPECT_EQ(shell(place, streamed + "{ head -c 10 >first; kill -TERM $$; cat >rest; } <pipe &\n" +
                             "exec $tranship reshard array.npy - --quiet --to '@ 1x1 : whole, whole' >pipe"),
            1);
  EXPECT_EQ(place.read("errors"), "tranship: error: interrupted, the output is not complete\n");
  EXPECT_TRUE(fs::is_empty(place.path("spools")));
}

TEST(Reshard, ADryRunToAStreamWritesNothingToIt) {
  const Workplace place;
  place.write("array.npy", numbered_npy(4, 4));
  const Outcome dry = place.run({"reshard", "array.npy", "-", "--to", "@ 1x1 : whole, whole", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.errors;
  EXPECT_EQ(dry.output, "");
  EXPECT_TRUE(dry.errors.starts_with("-: 1 part, nothing is written\n")) << dry.errors;
}

TEST(Reshard, APlacementMayLeaveOutTheDimensionOfRecordsAlsoWithFrom) {
  const Workplace place;
  place.write("array.npy", npy("{'descr': '|V12', 'fortran_order': False, 'shape': (4,), }", std::string(48, 'x')));
  const std::string from = "u32[4,3] @ 1x1 : whole, whole";
  const Outcome outcome = place.run({"reshard", "array.npy", "parts", "--from", from, "--to", "@ 2 : block"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const Outcome plan = place.run({"plan", "array.npy", "--from", from, "--to", "@ 2 : block"});
  EXPECT_EQ(plan.code, 0) << plan.errors;
}

}  // namespace
}  // namespace tranship::reshard_test
