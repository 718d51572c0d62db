// Resharding checkpoints: shards with an index, to four ranks, to two, to one file, tensor by tensor and byte by byte;
// killed in the middle; and all that is refused.
#include <csignal>
#include <map>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/file/format/safetensors.hpp>
#include <tranship/file/format/safetensors_index.hpp>
#include <tranship/file/format/tensor_manifest.hpp>
#include <tranship/file/io/checksum.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/file/reshard_tensors.hpp>
#include <tranship/layout/text.hpp>

#include "file/temporary_folder.hpp"

namespace tranship::tensors_test {
namespace {

namespace fs = std::filesystem;
using testing::FolderPlace;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;
using Files = std::map<std::string, std::string>;

/// What a file holds of a tensor: its dtype, its extents and its bytes.
std::map<std::string, std::string> tensors_of(const std::string& path) {
  std::map<std::string, std::string> out;
  const SafetensorsFile file = open_safetensors(path).value();
  for (const SafetensorsEntry& tensor : file.header.tensors) {
    const auto bytes = file.bytes_of(tensor);
    out[tensor.name] = tensor.dtype + "[" + to_string(tensor.extents) + "]" +
                       std::string(tensor.opaque_shape.size(), '*') +
                       std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return out;
}

/// A file of tensors whose bytes their names seed.
std::string file_of(const std::vector<SafetensorsTensor>& tensors) {
  const SafetensorsHeader header = make_safetensors_header(tensors, {{"format", "pt"}});
  std::string out = format_safetensors_header(header);
  const std::size_t front = out.size();
  out.resize(front + static_cast<std::size_t>(header.data_bytes()));
  for (const SafetensorsEntry& tensor : header.tensors) {
    auto seed = crc32_of(std::as_bytes(std::span(tensor.name)));
    for (Index i = 0; i < tensor.size_bytes; ++i)
      out[front + static_cast<std::size_t>(tensor.offset_bytes + i)] =
          static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
  }
  return out;
}

Files files_below(const std::string& path) {
  Files out;
  for (const auto& entry : fs::directory_iterator(path))
    out[entry.path().filename().string()] = read_text(entry.path().string());
  return out;
}

LayoutRules rules(const std::string& text) {
  return LayoutRules::parse(text).value();
}

LayoutRules tensor_parallel(int ranks) {
  const std::string n = std::to_string(ranks);
  return rules("**.{q,up}_proj.weight = @ " + n + "x1 : block, whole; **.{o,down}_proj.weight = @ 1x" + n +
               " : whole, block; wte.weight = @ " + n + "x1 : cyclic(5), whole; ** = replicated");
}
const LayoutRules all = rules("** = replicated");

// Written as the safetensors package writes: elements by falling width, whatever their number of dimensions.
TEST(Tensors, ComeBackByteByByteWithNineDimensionsAndMore) {
  const TemporaryFolder folder(FolderPlace::memory);
  std::string header =
      R"({"__metadata__":{"format":"pt"},"deep":{"dtype":"F64","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,16]},)"
      R"("row":{"dtype":"F32","shape":[3],"data_offsets":[16,28]},)"
      R"("deeper":{"dtype":"BF16","shape":[1,1,1,1,1,1,1,1,3,1],"data_offsets":[28,34]},)"
      R"("bytes":{"dtype":"U8","shape":[5],"data_offsets":[34,39]},)"
      R"("half":{"dtype":"F4","shape":[2],"data_offsets":[39,40]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() & 0xff);
  file[1] = static_cast<char>(header.size() >> 8);
  file += header;
  for (char i = 0; i < 40; ++i) file += static_cast<char>('a' + i);
  write_text(folder.path("a.safetensors"), file);
  reshard_tensors({.source = folder.path("a.safetensors"),
                   .target = folder.path("ranks"),
                   .to = rules("row = @ 2 : block; ** = replicated"),
                   .verify = Verify::yes});
  reshard_tensors(
      {.source = folder.path("ranks"), .target = folder.path("b.safetensors"), .to = rules("** = replicated")});
  EXPECT_EQ(read_text(folder.path("b.safetensors")), file);
}

/// A checkpoint of 25 tensors in three shards, and the same in one file.
class Checkpoint : public ::testing::Test {
 protected:
  Checkpoint() {
    std::vector<SafetensorsTensor> tensors = {{"wte.weight", "BF16", {101, 24}}};
    for (int layer = 0; layer < 4; ++layer) {
      const std::string name = "layers." + std::to_string(layer);
      tensors.push_back({name + ".q_proj.weight", "F32", {32, 24}});
      tensors.push_back({name + ".o_proj.weight", "F16", {24, 31}});
      tensors.push_back({name + ".up_proj.weight", "F8_E4M3", {3, 24}});
      tensors.push_back({name + ".down_proj.weight", "F64", {24, 40}});
    }
    tensors.push_back({"norm", "BF16", {24}});
    tensors.push_back({"scale", "F32", {}});
    tensors.push_back({"none", "I16", {0, 4}});
    tensors.push_back({"ids", "I64", {2, 3, 4}});
    tensors.push_back({"mask", "BOOL", {7, 1}});
    tensors.push_back({"caf\xc3\xa9 \"x\"", "U8", {5}});
    tensors.push_back({"blocks", "F4", {24}, {6, 8}});
    tensors.push_back({"deep", "F32", {24}, {1, 2, 1, 1, 1, 3, 1, 1, 1}});
    write_text(path("whole.safetensors"), file_of(tensors));
    fs::create_directory(path("model"));
    SafetensorsIndex index;
    for (std::size_t shard = 0; shard < 3; ++shard) {
      std::vector<SafetensorsTensor> here;
      for (std::size_t i = shard; i < tensors.size(); i += 3) here.push_back(tensors[i]);
      const std::string name = safetensors_shard_name(static_cast<Index>(shard), 3);
      write_text(path("model/" + name), file_of(here));
      for (const SafetensorsTensor& tensor : here) index.tensors.push_back({tensor.name, name});
    }
    write_text(path("model/model.safetensors.index.json"), format_safetensors_index(index));
  }

  std::string path(const std::string& name) const { return folder.path(name); }
  TensorReshardOptions options(const std::string& source, const std::string& target, LayoutRules to) const {
    return {.source = path(source), .target = path(target), .to = std::move(to), .verify = Verify::yes};
  }
  TensorReshardReport go(const std::string& source, const std::string& target, const LayoutRules& to) const {
    return reshard_tensors(options(source, target, to));
  }
  std::string refusal(const std::string& source, const std::string& target, const LayoutRules& to) const {
    const auto before = folder.names();
    const auto result = attempt([&] { return go(source, target, to); });
    EXPECT_EQ(folder.names(), before);
    if (result) return "accepted";
    std::string out = std::string(name_of(result.error().code())) + ": " + result.error().message();
    for (std::size_t at; (at = out.find(folder.path() + "/")) != std::string::npos;)
      out.erase(at, folder.path().size() + 1);
    return out;
  }

  TemporaryFolder folder{FolderPlace::memory};
};

TEST_F(Checkpoint, HasIndicesOfVariants) {
  const std::string usual = path("model/model.safetensors.index.json");
  const std::string variant = path("model/model.safetensors.index.fp16.json");
  fs::copy_file(usual, variant);
  EXPECT_TRUE(names_tensors(variant));
  EXPECT_FALSE(names_tensors(path("model/index.fp16.json")));
  EXPECT_FALSE(names_tensors(path("model/a.safetensors.index.npy")));
  EXPECT_EQ(inspect_tensors(variant).value().size(), inspect_tensors(usual).value().size());
  EXPECT_TRUE(inspect_tensors(path("model")).ok()) << "the usual one is meant";
  fs::remove(usual);
  EXPECT_TRUE(inspect_tensors(path("model")).ok()) << "the only one is meant";
}

TEST_F(Checkpoint, GoesFromShardsToFourRanksToTwoToOneFile) {
  const TensorReshardReport report = go("model", "tp4", tensor_parallel(4));
  EXPECT_EQ(report.tensors, 25);
  ASSERT_EQ(report.checksums.size(), 4u);
  const TensorManifest manifest = parse_tensor_manifest(read_text(path("tp4/manifest.json"))).value();
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const std::string bytes = read_text(path("tp4/" + manifest.files[rank].name));
    EXPECT_EQ(manifest.files[rank].checksum, crc32_of(std::as_bytes(std::span(bytes))));
    EXPECT_EQ(report.checksums[rank].crc32, manifest.files[rank].checksum);
  }
  const auto whole = tensors_of(path("whole.safetensors"));
  const auto third = tensors_of(path("tp4/rank-00002-of-00004.safetensors"));
  EXPECT_EQ(third.size(), 25u);
  for (const char* name : {"scale", "none", "ids", "norm"}) EXPECT_EQ(third.at(name), whole.at(name)) << name;
  const std::size_t q_bytes = 8 * 24 * 4;
  EXPECT_EQ(third.at("layers.1.q_proj.weight"),
            "F32[8, 24]" + whole.at("layers.1.q_proj.weight").substr(11 + 2 * q_bytes, q_bytes));

  go("tp4", "tp2", tensor_parallel(2));
  go("tp2", "back.safetensors", all);
  EXPECT_EQ(tensors_of(path("back.safetensors")), whole);
}

TEST_F(Checkpoint, OneFileComesBackByteForByte) {
  go("whole.safetensors", "tp2", tensor_parallel(2));
  go("tp2", "tp4", tensor_parallel(4));
  go("tp4", "back.safetensors", all);
  EXPECT_EQ(read_text(path("back.safetensors")), read_text(path("whole.safetensors")));
  // Over what is there.
  go("tp4", "tp2", tensor_parallel(2));
  go("tp2", "back.safetensors", all);
  EXPECT_EQ(read_text(path("back.safetensors")), read_text(path("whole.safetensors")));
}

TEST_F(Checkpoint, OverlapIsStoredAndLeftAgain) {
  const LayoutRules ring = rules("**_proj.weight = @ 2x1 : block+overlap(1,2,toroidal), whole; ** = replicated");
  go("whole.safetensors", "ring", ring);
  go("ring", "back.safetensors", all);
  EXPECT_EQ(read_text(path("back.safetensors")), read_text(path("whole.safetensors")));
  go("whole.safetensors", "ring.safetensors", rules("norm = @ 1 : whole+overlap(1,1,toroidal); ** = replicated"));
  EXPECT_EQ(tensors_of(path("ring.safetensors")).at("norm").substr(0, 8), "BF16[26]");
}

TEST_F(Checkpoint, AScalarMayBeOnOneRankOnly) {
  go("whole.safetensors", "tp", rules("scale = @ 3 : block; ** = replicated"));
  EXPECT_EQ(tensors_of(path("tp/rank-00000-of-00003.safetensors")).at("scale").substr(0, 5), "F32[]");
  EXPECT_EQ(tensors_of(path("tp/rank-00001-of-00003.safetensors")).at("scale"), "F32[0]");
  go("tp", "back.safetensors", all);
  EXPECT_EQ(read_text(path("back.safetensors")), read_text(path("whole.safetensors")));
}

TEST_F(Checkpoint, IsListed) {
  go("model", "tp4", tensor_parallel(4));
  const auto tensors = inspect_tensors(path("tp4")).value();
  EXPECT_EQ(tensors.size(), 25u);
  for (const TensorDescription& tensor : tensors)
    if (tensor.name == "layers.3.o_proj.weight") {
      EXPECT_EQ(tensor.dtype, "F16");
      EXPECT_EQ(to_text(tensor.spec), "f16[24,31] @ 1x4 : whole, block");
    }
  EXPECT_TRUE(names_tensors(path("tp4")) && names_tensors(path("model")) && names_tensors(path("whole.safetensors")));
  EXPECT_TRUE(names_tensors(path("model/model.safetensors.index.json")));
  EXPECT_TRUE(names_tensors(folder.path()));
}

// The child that is killed writes so often before.
int writes_left = 0;
const posix::DiskCalls real_disk = posix::disk;

TEST_F(Checkpoint, AKilledRunIsGoneOnWith) {
  go("model", "expected", tensor_parallel(4));
  const Files expected = files_below(path("expected"));
  TensorReshardOptions again = options("model", "tp4", tensor_parallel(4));
  again.threads = 1;
  again.sync_interval_bytes = 1;
  for (const int writes : {2, 40, 90, 150}) {
    SCOPED_TRACE(writes);
    fs::remove_all(path("tp4"));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      writes_left = writes;
      posix::disk.pwrite = [](int file, const void* bytes, std::size_t size, off_t offset) {
        if (--writes_left < 0) ::raise(SIGKILL);
        return real_disk.pwrite(file, bytes, size, offset);
      };
      (void)attempt([&] { return reshard_tensors(again); });
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_FALSE(fs::exists(path("tp4")));
    const TensorReshardReport report = reshard_tensors(again);
    EXPECT_EQ(report.bytes_resumed > 0, writes > 10);
    EXPECT_EQ(files_below(path("tp4")), expected);
    EXPECT_FALSE(fs::exists(path(".tp4.partial")));
  }
}

TEST_F(Checkpoint, ADefaultThatNothingIsLeftForIsGood) {
  EXPECT_EQ(go("model", "x.safetensors", rules("{layers.,}** = replicated; ** = replicated")).tensors, 25);
}

TEST_F(Checkpoint, RefusesByName) {
  EXPECT_EQ(refusal("model", "x", rules("**.gate_proj.weight = replicated; ** = replicated")),
            "mismatch: rule 1, '**.gate_proj.weight', matches none of 25 tensors");
  EXPECT_EQ(refusal("model", "x", rules("layers.** = replicated; wte.* = replicated")).substr(0, 61),
            "mismatch: tensor 'scale' matches none of 2 rules; a last rule");
  EXPECT_EQ(refusal("model", "x.safetensors", tensor_parallel(4)),
            "invalid_use: 'x.safetensors' names one file, but the rules need 4 shards: give a directory");
  EXPECT_EQ(refusal("model", "model/x", all), "invalid_use: the target 'model/x' lies in the source 'model'");
  EXPECT_EQ(refusal("model", "whole.safetensors/x", all).substr(0, 3), "io:");
  EXPECT_NE(refusal("model", "x", rules("** = @ 2x1 : block, whole")).find("tensor 'scale' []"), std::string::npos)
      << refusal("model", "x", rules("** = @ 2x1 : block, whole"));
  EXPECT_EQ(refusal("model", "x", rules("ids = @ 1x1x1 : whole, whole, whole | order(2,1,0); ** = replicated")),
            "unsupported: tensor 'ids': a safetensors file is row-major, the layout says order(2, 1, 0)");
}

TEST_F(Checkpoint, FindsWhatItsFilesDoNotHold) {
  const std::string first = safetensors_shard_name(0, 3), index = "model/model.safetensors.index.json";
  const std::string good = read_text(path(index));
  const auto with = [&](const std::string& was, const std::string& is) {
    std::string text = good;
    text.replace(text.find(was), was.size(), is);
    write_text(path(index), text);
    return refusal("model", "x", all);
  };
  EXPECT_EQ(with("\"norm\"", "\"norn\""),
            "mismatch: 'model/model-00003-of-00003.safetensors' holds tensor 'norm', which "
            "'model/model.safetensors.index.json' does not name");
  EXPECT_EQ(
      with("\"weight_map\": {", "\"weight_map\": {\n    \"more\": \"" + first + "\","),
      "mismatch: 'model/model.safetensors.index.json' names tensor 'more', which 'model/" + first + "' does not hold");
  write_text(path("model/other.safetensors.index.json"), good);
  EXPECT_EQ(refusal("model", "x", all),
            "bad_file: directory 'model' holds 2 files *.safetensors.index.json: name one of "
            "model.safetensors.index.json, other.safetensors.index.json");

  go("whole.safetensors", "tp2", tensor_parallel(2));
  const std::string second = "tp2/rank-00001-of-00002.safetensors", bytes = read_text(path(second));
  std::string damaged = bytes;
  damaged.back() ^= 1;
  write_text(path(second), damaged);
  EXPECT_TRUE(refusal("tp2", "x", all).starts_with("bad_file: '" + second + "' is not what its manifest says"));
  write_text(path(second), file_of({{"norm", "BF16", {24}}}));
  EXPECT_EQ(refusal("tp2", "x", all),
            "mismatch: '" + second + "' does not hold tensor 'wte.weight', which 'tp2/manifest.json' gives rank 1");
  write_text(path(second), file_of({{"norm", "F16", {24}}}));
  EXPECT_EQ(refusal("tp2", "x", all),
            "mismatch: '" + second + "': tensor 'norm' is F16[24], 'tp2/manifest.json' gives rank 1 BF16[24]");
  write_text(path(second), file_of({{"nose", "F16", {24}}}));
  EXPECT_EQ(refusal("tp2", "x", all),
            "mismatch: '" + second + "' holds tensor 'nose', which 'tp2/manifest.json' does not give rank 1");
}

TEST_F(Checkpoint, WhatCannotBeCutIsReplicated) {
  EXPECT_EQ(
      refusal("whole.safetensors", "x", rules("blocks = @ 4 : block; ** = replicated")),
      "unsupported: tensor 'blocks' is F4[6, 8]: elements of less than a byte and more than 8 dimensions move only "
      "as a whole, and rule 1, 'blocks', cuts it; make it 'replicated'");
  EXPECT_TRUE(refusal("whole.safetensors", "x", rules("deep = @ 1x2 : whole, block; ** = replicated"))
                  .starts_with("unsupported: tensor 'deep' is F32[1, 2, 1, 1, 1, 3, 1, 1, 1]: "));
}

TEST_F(Checkpoint, DirectoriesAsOthersWriteThem) {
  const auto bytes = [&] { return read_text(path("back.safetensors")); };
  go("whole.safetensors", "back.safetensors", all);
  const std::string whole = bytes();
  fs::create_directory(path("plain"));
  fs::copy_file(path("whole.safetensors"), path("plain/model.safetensors"));
  write_text(path("plain/config.json"), "{}");
  EXPECT_TRUE(names_tensors(path("plain")));
  go("plain", "back.safetensors", all);
  EXPECT_EQ(bytes(), whole);

  // All shards, and nothing that names them.
  fs::remove(path("model/model.safetensors.index.json"));
  EXPECT_EQ(go("model", "shards.safetensors", all).tensors, 25);
  EXPECT_EQ(tensors_of(path("shards.safetensors")), tensors_of(path("whole.safetensors")));
  fs::rename(path("model/" + safetensors_shard_name(1, 3)), path("second.safetensors"));
  EXPECT_EQ(refusal("model", "x", all),
            "bad_file: directory 'model' holds 2 of 3 shards, and no *.safetensors.index.json: "
            "model-00001-of-00003.safetensors, model-00003-of-00003.safetensors");
  fs::rename(path("second.safetensors"), path("model/second.safetensors"));
  EXPECT_EQ(refusal("model", "x", all),
            "bad_file: directory 'model' holds 3 files *.safetensors and no *.safetensors.index.json: name one of "
            "model-00001-of-00003.safetensors, model-00003-of-00003.safetensors, second.safetensors");
  fs::remove(path("model/second.safetensors"));
  fs::copy_file(path("model/" + safetensors_shard_name(0, 3)), path("model/" + safetensors_shard_name(1, 3)));
  EXPECT_EQ(refusal("model", "x", all),
            "mismatch: tensor 'wte.weight' is in 'model/model-00001-of-00003.safetensors' and in "
            "'model/model-00002-of-00003.safetensors'");
}

TEST_F(Checkpoint, GoesToShardsWithAnIndex) {
  go("whole.safetensors", "tp4", tensor_parallel(4));
  const auto whole = tensors_of(path("whole.safetensors"));
  for (const Index shard_bytes_max : {Index(1), Index(5000), Index(20000), Index(1) << 40}) {
    SCOPED_TRACE(shard_bytes_max);
    TensorReshardOptions given = options("tp4", "sharded", all);
    given.shard_bytes_max = shard_bytes_max;
    const TensorReshardReport report = reshard_tensors(given);

    const auto index = parse_safetensors_index(read_text(path("sharded/model.safetensors.index.json"))).value();
    const std::vector<std::string> files = index.files();
    ASSERT_EQ(files.size(), report.checksums.size());
    EXPECT_EQ(index.tensors.size(), 25u);
    std::map<std::string, std::string> found;
    Index total = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
      EXPECT_EQ(files[i], safetensors_shard_name(static_cast<Index>(i), static_cast<Index>(files.size())));
      const auto here = tensors_of(path("sharded/" + files[i]));
      const Index bytes = open_safetensors(path("sharded/" + files[i])).value().header.data_bytes();
      EXPECT_TRUE(bytes <= shard_bytes_max || here.size() == 1) << bytes << " bytes in " << files[i];
      total += bytes;
      for (const auto& [name, tensor] : here) found[name] = tensor;
      for (const auto& place : index.tensors) EXPECT_EQ(here.count(place.tensor), place.file == files[i]);
    }
    EXPECT_EQ(found, whole);
    EXPECT_EQ(index.total_size_bytes, total);

    // With the index alone, as other programs know it, and with the manifest.
    go("sharded", "back.safetensors", all);
    EXPECT_EQ(tensors_of(path("back.safetensors")), whole);
    fs::remove_all(path("foreign"));
    fs::copy(path("sharded"), path("foreign"));
    fs::remove(path("foreign/manifest.json"));
    go("foreign", "back.safetensors", all);
    EXPECT_EQ(tensors_of(path("back.safetensors")), whole);
  }
  EXPECT_EQ(files_below(path("sharded")).size(), 3u) << "one shard, the index, the manifest";
}

TEST_F(Checkpoint, ShardsHoldWholeTensors) {
  const auto refused = [&](const std::string& target, const LayoutRules& to, Index shard_bytes_max) {
    TensorReshardOptions given = options("model", target, to);
    given.shard_bytes_max = shard_bytes_max;
    const auto result = attempt([&] { return reshard_tensors(given); });
    return result ? "accepted" : result.error().message();
  };
  EXPECT_EQ(refused("out", rules("wte.weight = @ 4x1 : block, whole; ** = replicated"), 9),
            "the rules cut tensor 'wte.weight' into 4 parts of [26, 24], but shards hold whole tensors");
  EXPECT_EQ(refused("out", all, 0), "a limit of 0 bytes per shard is too small: at least 1 is needed");
  EXPECT_NE(
      refused("out.safetensors", all, 9).find("names a file, but the output has several shards: give a directory"),
      std::string::npos);
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(Checkpoint, ANameOfAnotherKindOfFileIsNoDirectory) {
  for (const char* name : {"out.npz", "out.h5", "out.NPY", "out.npy", "out.Safetensors"})
    EXPECT_TRUE(refusal("model", name, all).starts_with("invalid_use: '" + std::string(name) + "' is not a target: '."))
        << name;
  EXPECT_EQ(go("model", "out.v2/", all).tensors, 25);
  EXPECT_EQ(go("model", "out.v2", all).tensors, 25) << "which is there now";
}

TEST_F(Checkpoint, ReplacesOnlyWhatIsItsOwn) {
  go("model", "tp4", tensor_parallel(4));
  write_text(path("tp4/notes.txt"), "mine");
  EXPECT_EQ(refusal("model", "tp4", all),
            "invalid_use: directory 'tp4' exists and is not replaced: its manifest does not name 'notes.txt'");
  write_text(path("x.safetensors"), "mine");
  EXPECT_EQ(refusal("model", "x.safetensors", all),
            "invalid_use: 'x.safetensors' exists and is not a safetensors file: it is not replaced");
}

TEST_F(Checkpoint, ManifestsAreChecked) {
  go("whole.safetensors", "tp2", tensor_parallel(2));
  const std::string good = read_text(path("tp2/manifest.json"));
  const TensorManifest manifest = parse_tensor_manifest(good).value();
  EXPECT_EQ(format_tensor_manifest(manifest), good);
  const auto with = [&](const std::string& was, const std::string& is) {
    std::string text = good;
    text.replace(text.find(was), was.size(), is);
    const auto result = parse_tensor_manifest(text);
    return result ? "accepted" : std::string(name_of(result.error().code())) + ": " + result.error().message();
  };
  EXPECT_EQ(with("\"rank\": 1", "\"rank\": 0"), "bad_file: files[1].rank: rank 0 is listed twice");
  EXPECT_EQ(with("\"rank\": 1", "\"rank\": 2"), "bad_file: files[1].rank: rank 2 is outside the list of 2 files");
  EXPECT_EQ(with("\"norm\"", "\"ids\""), "bad_file: tensor 'ids' is given twice");
  EXPECT_EQ(with("\"shape\": [24]", "\"shape\": [25]"),
            "bad_file: tensors[17].layout: the layout says bf16[24], but the tensor is bf16[25]");
  EXPECT_EQ(with("bf16[24] @ 1*2 : whole", "bf16[24] @ 3 : block"),
            "bad_file: tensors[17].layout: the layout has 3 ranks, the manifest 2 files");
  EXPECT_TRUE(with("rank-00001-of", "../ank-00001-of").starts_with("bad_file: files[1].file: not the name of a part"));
  EXPECT_EQ(with("\"tranship_tensors\": 1", "\"tranship_tensors\": 2"),
            "unsupported: a manifest of version 2: version 1 is read");
}

}  // namespace
}  // namespace tranship::tensors_test
