// Whatever a file holds, what is said of it stays on one printable line of bounded length: in valid documents of every
// kind that is read, each name and each value in turn becomes a text that is long and holds control characters.
#include <array>
#include <cctype>
#include <filesystem>
#include <functional>
#include <iterator>
#include <span>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/file/format/manifest.hpp>
#include <tranship/file/format/safetensors.hpp>
#include <tranship/file/format/safetensors_index.hpp>
#include <tranship/layout/json.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/plan/plan_json.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/program/machine_model.hpp>
#include <tranship/program/plan_file.hpp>

#include "support/paths.hpp"
#include "support/text_file.hpp"

namespace tranship {
namespace {

constexpr std::size_t message_chars_max = 1000;

/// The places of the strings, numbers and names in a JSON text without escapes.
std::vector<std::pair<std::size_t, std::size_t>> tokens_of(std::string_view json) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (std::size_t at = 0; at < json.size();) {
    std::size_t end = at;
    if (json[at] == '"')
      end = json.find('"', at + 1) + 1;
    else
      while (end < json.size() && (std::isalnum(json[end]) || std::string_view("+-.").find(json[end]) < 3)) ++end;
    if (end > at) out.emplace_back(at, end - at);
    at = std::max(end, at + 1);
  }
  return out;
}

/// Empty when what `error_of` says of each changed document is fit to be printed; it says nothing of one it accepts.
std::string fault_of(const std::string& json, const std::function<std::string(std::string_view)>& error_of) {
  // What a reader takes for a known word goes on behind it, too.
  const std::string ends[] = {R"(\n\u001b[2J\u007f\u0085)", R"(\u0000)" + std::string(5'000, 'x')};
  if (const std::string error = error_of(json); !error.empty()) return "unchanged, it is refused: " + error;
  for (const auto& [at, length] : tokens_of(json))
    for (const std::string& end : ends)
      for (const bool keeps : {false, true}) {
        const std::string old = json.substr(at, length);
        std::string changed = json;
        changed.replace(at, length, '"' + (keeps && old.front() == '"' ? old.substr(1, length - 2) : "") + end + '"');
        const std::string error = error_of(changed);
        if (error.size() > message_chars_max) return fmt::format("{} bytes about {}: {}", error.size(), old, error);
        for (const char c : error)
          if (!std::isprint(static_cast<unsigned char>(c))) return "control characters about " + old + ": " + error;
      }
  return "";
}

template <class Read>
std::string said_of(Read&& read) {
  try {
    if constexpr (requires { read().error(); }) {
      const auto result = read();
      return result ? "" : result.error().message();
    } else {
      read();
      return "";
    }
  } catch (const Error& error) {
    return error.what();
  }
}

#define SAID_OF(read) [](std::string_view text) { return said_of([&] { return read; }); }

TEST(UntrustedText, StaysOnOnePrintableLine) {
  using std::filesystem::directory_iterator;
  const std::string seeds = test::test_path("fuzz/seeds/");
  for (const auto& entry : directory_iterator(seeds + "fuzz_manifest"))
    EXPECT_EQ(fault_of(test::read_text(entry.path()), SAID_OF(parse_manifest(text))), "") << entry;
  for (const auto& entry : directory_iterator(seeds + "fuzz_safetensors_index"))
    EXPECT_EQ(fault_of(test::read_text(entry.path()), SAID_OF(parse_safetensors_index(text))), "") << entry;
  for (const auto& entry : directory_iterator(seeds + "fuzz_program"))
    EXPECT_EQ(fault_of(test::read_text(entry.path()), SAID_OF(read_program(text))), "") << entry;
  for (const auto& entry : directory_iterator(test::test_path("../machines")))
    EXPECT_EQ(fault_of(test::read_text(entry.path()), SAID_OF(read_machine(text))), "") << entry;
  const ArraySpec rows = parse_layout("f64[6,4] @ 2x1 : block+overlap(1,1,toroidal), whole");
  const ArraySpec columns = parse_layout("f64[6,4] @ 1x2 : whole, cyclic(1)");
  for (const TransferPlan& plan : {plan_redistribution(rows, columns, 0), plan_halo(std::array{rows}, 1)})
    EXPECT_EQ(fault_of(save_plan(plan), SAID_OF(try_load_plan(text))), "");
  const auto header_said = [](std::string_view json) {
    std::string file(8, '\0');
    for (int i = 0; i < 8; ++i) file[i] = char(json.size() >> 8 * i);
    file += json;
    return said_of([&] { return parse_safetensors_header(std::as_bytes(std::span(file)), Index(file.size()) + 64); });
  };
  EXPECT_EQ(fault_of(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}})",
                     header_said),
            "");
  for (const auto& entry : directory_iterator(seeds + "fuzz_layout_text"))
    if (entry.path().extension() == ".json")
      EXPECT_EQ(fault_of(test::read_text(entry.path()), SAID_OF(try_array_spec_from_json(text))), "") << entry;
}

}  // namespace
}  // namespace tranship
