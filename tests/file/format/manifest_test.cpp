// Manifests: what is written, what is refused and why, and seeded mutations as the libFuzzer program makes them.
#include <gtest/gtest.h>

#include <tranship/file/format/manifest.hpp>
#include <tranship/file/format/tensor_manifest.hpp>
#include <tranship/layout/text.hpp>

#include "file/format/json_mutations.hpp"
#include "file/temporary_folder.hpp"
#include "fuzz/manifest_check.hpp"
#include "support/paths.hpp"
#include "support/random_layouts.hpp"

namespace tranship {
namespace {

using testing::Tally;
using testing::TemporaryFolder;
using testing::write_text;

TEST(Manifest, IsReadable) {
  const ArraySpec spec = parse_layout("f64[5,3] @ 2x1 ranks(7,3) : block, whole+overlap(1,1,toroidal)");
  const char* expected = R"text({
  "tranship_manifest": 1,
  "layout": {"type":"f64","extents":[5,3],"grid":{"extents":[2,1],"ranks":[7,3]},"partitions":[{"kind":"block"},{"kind":"whole","overlap":{"left":1,"right":1,"left_edge":"toroidal","right_edge":"toroidal"}}]},
  "layout_text": "f64[5,3] @ 2x1 ranks(7,3) : block, whole+overlap(1,1,toroidal)",
  "descr": "<f8",
  "parts": [
    {"rank": 3, "file": "part-00003.npy", "shape": [2, 5]},
    {"rank": 7, "file": "part-00007.npy", "shape": [3, 5]}
  ]
}
)text";
  EXPECT_EQ(format_manifest(make_manifest(spec, "<f8")), expected);
}

TEST(Manifest, ReadsWhatItWrites) {
  const std::string fault = test::first_fault(0.2, [](std::uint64_t seed) -> std::string {
    test::Random random(seed);
    const int dims = int(random.between(1, 4));
    const Indices extents = test::random_extents(random, dims);
    const Distribution any = random.one_in(4)
                                 ? test::random_indexed(random, extents, int(random.between(1, dims)), 3, {4, 0, 2})
                                 : test::random_distribution(random, extents);
    // The memory layouts of random_distribution are not those of files.
    const bool indexed = any.is_indexed();
    MemoryLayout memory;
    if (!indexed && random.one_in(2))
      for (int d = dims - 1; d >= 0; --d) memory.order.push_back(d);
    std::vector<Partition> partitions;
    for (int d = 0; !indexed && d < dims; ++d) partitions.push_back(any.axis(d).partition());
    const Distribution stored = indexed ? any : Distribution(extents, any.grid(), partitions, memory);
    const Manifest manifest = make_manifest({ElementType::c64, stored}, ">c8");
    const testing::ManifestVerdict verdict = testing::check_manifest(format_manifest(manifest), format_manifest);
    if (!verdict.accepted) return "refused: " + format_manifest(manifest);
    if (!(parse_manifest(format_manifest(manifest)).value() == manifest)) return "it reads as something else";
    return verdict.violation;
  });
  EXPECT_EQ(fault, "");
}

TEST(Manifest, PartsMayComeInAnyOrderUnderOtherNames) {
  const Manifest manifest = parse_manifest(R"({"parts": [
    {"shape": [1], "file": "b.npy", "rank": 1}, {"shape": [2], "file": "a", "rank": 0}],
    "descr": "<i4", "layout_text": "for people", "tranship_manifest": 1,
    "layout": {"type": "i32", "extents": [3], "grid": {"extents": [2]}, "partitions": [{"kind": "block"}]}})")
                                .value();
  EXPECT_EQ(manifest.spec, parse_layout("i32[3] @ 2 : block"));
  EXPECT_EQ(manifest.files, (std::vector<std::string>{"a", "b.npy"}));
}

TEST(Manifest, NamesPartsByRank) {
  EXPECT_EQ(part_name(0), "part-00000.npy");
  EXPECT_EQ(part_name(123456), "part-123456.npy");
}

TEST(Manifest, SaysWhichLayoutsFilesCannotHave) {
  EXPECT_EQ(stored_order(parse_layout("f64[4,4] @ 1x1 : whole, whole")), NpyOrder::c);
  EXPECT_EQ(stored_order(parse_layout("f64[4,4] @ 1x1 : whole, whole | order(1,0)")), NpyOrder::fortran);
  const std::pair<const char*, const char*> cases[] = {
      {"f64[4,4,4] @ 1x1x1 : whole, whole, whole | order(1,0,2)", "dimension order [1, 0, 2]"},
      {"f64[4,4] @ 1x1 : whole, whole | align(8)", "aligned to 8 elements"},
      {"f64[4,4] @ 1x1 : whole, whole | offset(3)", "offset of 3 elements"},
      {"f64[4,4] @ 1x1 : whole, whole | spacing(1,2)", "spacing [1, 2]"},
      {"f64[4,4] @ 1x1 : whole, whole | strides(9,2)", "strides [9, 2]"},
      {"c128[4,4] @ 1x1 : whole, whole | split", "split complex"},
      {"f64[4] @ 1000001 : block", "the layout has 1000001 parts, a directory holds at most 1000000"},
  };
  for (const auto& [text, message] : cases) {
    const char* const layout = text;  // clang 14 captures no structured bindings
    const Result<StoredOrder> order = attempt([&] { return stored_order(parse_layout(layout), 1); });
    ASSERT_FALSE(order.ok()) << layout;
    EXPECT_EQ(order.error().code(), ErrorCode::unsupported) << layout;
    EXPECT_NE(order.error().message().find(message), std::string::npos) << order.error().message();
  }
}

TEST(Manifest, KeepsElementsOfSeveralNumbersTogether) {
  const auto order_of = [](const char* order, std::optional<Index> count) {
    return stored_order(parse_layout(std::string("u8[4,4,5] @ 1x1x1 : whole, whole, whole") + order), count);
  };
  const StoredOrder c{NpyOrder::c, true}, fortran{NpyOrder::fortran, true};
  EXPECT_EQ(order_of("", 5), c);
  EXPECT_EQ(order_of(" | order(1,0,2)", 5), fortran);
  EXPECT_EQ(order_of(" | order(1,0,2)", std::nullopt), fortran) << "of elements that may be such";
  EXPECT_EQ(order_of(" | order(2,1,0)", std::nullopt), NpyOrder::fortran);
  EXPECT_THROW(order_of(" | order(2,1,0)", 5), Error);
  EXPECT_THROW(order_of(" | order(1,0,2)", 1), Error);
  EXPECT_EQ(dimension_order(fortran, 3), (Indices{1, 0, 2}));
  EXPECT_EQ(dimension_order(fortran, 1), (Indices{0}));
}

/// A manifest in which `what` stands as `instead`.
std::string changed(const std::string& what, const std::string& instead) {
  std::string text = format_manifest(make_manifest(parse_layout("f64[5,3] @ 2x1 : block, whole"), "<f8"));
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::runtime_error("no " + what + " in " + text);
  return text.replace(at, what.size(), instead);
}

TEST(Manifest, RefusesWhatIsWrong) {
  struct Case {
    std::string text;
    ErrorCode code;
    std::string message;
  };
  const Case cases[] = {
      {"", ErrorCode::bad_file, "not JSON"},
      {"[]", ErrorCode::bad_file, "expected an object"},
      {"{}", ErrorCode::bad_file, "tranship_manifest is missing"},
      {R"({"name": "a browser's extension"})", ErrorCode::bad_file, "tranship_manifest is missing"},
      {changed("]\n}", "]"), ErrorCode::bad_file, "not JSON"},
      {changed("manifest\": 1", "manifest\": 2"), ErrorCode::unsupported, "version 2: version 1 is read"},
      {changed("manifest\": 1", "manifest\": true"), ErrorCode::bad_file, "tranship_manifest: expected an integer"},
      {changed("manifest\": 1", "manifest\": 99999999999999999999"), ErrorCode::bad_file, "expected an integer"},
      {changed("manifest\": 1,", "manifest\": 1, \"more\": 1,"), ErrorCode::bad_file, "more"},
      {changed("\"descr\"", "\"rank\": 1, \"rank\": 1, \"descr\""), ErrorCode::bad_file, "given twice"},
      {changed("\"<f8\"", "\"<f4\""), ErrorCode::bad_file, "descr '<f4' spells elements f32, the layout has f64"},
      {changed("\"<f8\"", "\"|O\""), ErrorCode::unsupported, "descr: "},
      {changed("\"<f8\"", "8"), ErrorCode::bad_file, "descr: expected a string"},
      {changed("\"layout_text\": \"f64[5,3] @ 2x1 : block, whole\",", ""), ErrorCode::bad_file,
       "layout_text is missing"},
      {changed("[5,3],", "[5,-3],"), ErrorCode::bad_file, "-3"},
      {changed("[5,3],", "[5,9223372036854775807],"), ErrorCode::overflow, "layout.extents"},
      {changed("{\"kind\":\"whole\"}]", "{\"kind\":\"whole\"}],\"memory\":{\"align\":4}"), ErrorCode::unsupported,
       "aligned to 4 elements"},
      {changed("[2,1]", "[3,1]"), ErrorCode::bad_file, "the manifest lists 2 parts, its layout has 3"},
      {changed("[2,1]", "[2000000000,1]"), ErrorCode::unsupported, "2000000000 parts"},
      {changed("\"rank\": 1", "\"rank\": 2"), ErrorCode::bad_file,
       "parts[1].rank: rank 2 does not hold any of the 2 parts"},
      {changed("\"rank\": 1", "\"rank\": 4294967296"), ErrorCode::bad_file, "rank 4294967296 does not hold any"},
      {changed("\"rank\": 1", "\"rank\": -1"), ErrorCode::bad_file, "rank -1 does not hold any"},
      {changed("\"rank\": 1", "\"rank\": 0"), ErrorCode::bad_file, "rank 0 is listed twice"},
      {changed("part-00001", "part-00000"), ErrorCode::bad_file, "'part-00000.npy' is listed twice"},
      {changed("part-00001", "../part-00001"), ErrorCode::bad_file, "parts[1].file: not the name of a part"},
      {changed("part-00001", "/etc/part"), ErrorCode::bad_file, "not the name of a part"},
      {changed("part-00001.npy", ".."), ErrorCode::bad_file, "not the name of a part"},
      {changed("part-00001.npy", ""), ErrorCode::bad_file, "found 0 characters"},
      {changed("part-00001", "part\\u0000"), ErrorCode::bad_file, "not the name of a part"},
      {changed("part-00001.npy", "manifest.json"), ErrorCode::bad_file, "not the name of a part"},
      {changed("part-00001.npy", std::string(256, 'a')), ErrorCode::bad_file, "found 256 characters"},
      {changed("[2, 3]", "[2, 4]"), ErrorCode::bad_file,
       "parts[1].shape: the manifest says [2, 4], its layout gives rank 1 [2, 3]"},
      {changed("[2, 3]", "[1,1,1,1,1,1,1,1,1]"), ErrorCode::unsupported, "parts[1].shape"},
      {changed("[2, 3]}", "[2, 3], \"size\": 6}"), ErrorCode::bad_file, "size"},
      {std::string(100'000, '['), ErrorCode::bad_file, "the JSON text nests more than 64 values"},
  };
  for (const Case& c : cases) {
    const Result<Manifest> manifest = parse_manifest(c.text);
    ASSERT_FALSE(manifest.ok()) << c.text;
    EXPECT_EQ(manifest.error().code(), c.code) << c.text << "\n" << manifest.error().message();
    EXPECT_NE(manifest.error().message().find(c.message), std::string::npos) << c.text << "\n"
                                                                             << manifest.error().message();
  }
}

TEST(Manifest, ErrorsOfFilesNameThem) {
  TemporaryFolder folder;
  Result<Manifest> manifest = read_manifest(folder.path());
  ASSERT_FALSE(manifest.ok());
  EXPECT_EQ(manifest.error().code(), ErrorCode::io);
  write_text(folder.path("manifest.json"), "{}");
  manifest = read_manifest(folder.path());
  ASSERT_FALSE(manifest.ok());
  EXPECT_EQ(manifest.error().code(), ErrorCode::bad_file);
  EXPECT_NE(manifest.error().message().find("'" + folder.path("manifest.json") + "': "), std::string::npos);
}

std::vector<std::string> valid_manifests() {
  const std::pair<const char*, const char*> arrays[] = {
      {"f64[5,3] @ 2x1 : block, whole", "<f8"},
      {"bf16[20] @ 3 : cyclic(2)+overlap(1,2,zero)", "|V2"},
      {"c128[4,6,2] @ 1x2x1*2 ranks(5-8) : whole, irregular(0,2,6), whole | order(2,1,0)", ">c16"},
      {"u8[7,7] @ 2x2 order(1,0) ranks(9,2,4,0) : block(ceil)+min(2), cyclic(3)", "|u1"},
  };
  std::vector<std::string> out;
  for (const auto& [layout, descr] : arrays) out.push_back(format_manifest(make_manifest(parse_layout(layout), descr)));
  test::Random random(7);
  out.push_back(format_manifest(
      make_manifest({ElementType::i16, test::random_indexed(random, {3, 4, 2}, 2, 3, {0, 1, 2})}, "<i2")));
  return out;
}

const std::vector<std::string> pieces = {"\"rank\"", "\"<f8\"", "\"part-00001.npy\""};

Tally run_mutations(int count, testing::ManifestFormat format) {
  test::Random random(20240607);
  const std::vector<std::string> manifests = valid_manifests();
  Tally tally;
  for (int i = 0; i < count; ++i) {
    std::string text = random.pick(manifests);
    testing::mutate_json(text, pieces, random);
    tally.add(testing::check_manifest(text, format), text);
  }
  return tally;
}

TEST(ManifestFuzz, SeedsAreValid) {
  for (const std::string& text : valid_manifests()) EXPECT_TRUE(parse_manifest(text).ok()) << text;
  int files = 0;
  for (const auto& seed : std::filesystem::directory_iterator(test::test_path("fuzz/seeds/fuzz_manifest"))) {
    const Result<Manifest> manifest = parse_manifest(testing::read_text(seed.path().string()));
    EXPECT_TRUE(manifest.ok()) << seed.path();
    ++files;
  }
  EXPECT_EQ(files, 3);
}

TEST(ManifestFuzz, MutatedManifestsAreRefusedOrKeepTheirPromises) {
  const Tally tally = run_mutations(20'000, format_manifest);
  EXPECT_EQ(tally.violations, 0) << tally.first_violation;
  // Both sides were met often, or the mutations would prove little.
  EXPECT_GT(tally.accepted, 1'000);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(ManifestFuzz, CanaryAWriterThatSwapsTwoFilesIsFound) {
  const auto wrong = [](const Manifest& manifest) {
    Manifest swapped = manifest;
    std::swap(swapped.files.front(), swapped.files.back());
    return format_manifest(swapped);
  };
  EXPECT_GT(run_mutations(1'000, wrong).violations, 0);
}

/// An accepted manifest of tensors reads as the same once it has been written.
testing::ManifestVerdict check_tensors(const std::string& text, std::string (*format)(const TensorManifest&)) {
  const Result<TensorManifest> manifest = parse_tensor_manifest(text);
  if (!manifest) {
    const ErrorCode code = manifest.error().code();
    const bool is_expected =
        code == ErrorCode::bad_file || code == ErrorCode::unsupported || code == ErrorCode::overflow;
    return {false, is_expected ? "" : std::string("refused as ") + name_of(code)};
  }
  const Result<TensorManifest> again = parse_tensor_manifest(format(manifest.value()));
  return {true, again && again.value() == manifest.value() ? "" : "what is written of it reads as another"};
}

Tally run_tensor_mutations(int count, std::string (*format)(const TensorManifest&)) {
  const std::string good = format_tensor_manifest(
      {{{"format", "pt"}},
       {{"rank-00000-of-00002.safetensors", 0x8d0f2b17}, {"rank-00001-of-00002.safetensors", {}}},
       {{{"wte.weight", "BF16", {64, 32}}, parse_layout("bf16[64,32] @ 2x1 : block, whole")},
        {{"steps", "I64", {}}, parse_layout("i64[1] @ 1*2 : whole")}}});
  EXPECT_TRUE(parse_tensor_manifest(good).ok());
  test::Random random(20240607);
  Tally tally;
  for (int i = 0; i < count; ++i) {
    std::string text = good;
    testing::mutate_json(text, pieces, random);
    tally.add(check_tensors(text, format), text);
  }
  return tally;
}

TEST(ManifestFuzz, MutatedTensorManifestsAreRefusedOrKeepTheirPromises) {
  const Tally tally = run_tensor_mutations(20'000, format_tensor_manifest);
  EXPECT_EQ(tally.violations, 0) << tally.first_violation;
  EXPECT_GT(tally.accepted, 1'000);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(ManifestFuzz, CanaryAWriterThatLosesAChecksumIsFound) {
  const auto wrong = [](const TensorManifest& manifest) {
    TensorManifest without = manifest;
    without.files.front().checksum.reset();
    return format_tensor_manifest(without);
  };
  EXPECT_GT(run_tensor_mutations(1'000, wrong).violations, 0);
}

}  // namespace
}  // namespace tranship
