#include "tranship/file/format/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/format/manifest_text.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/layout/json.hpp>
#include <tranship/layout/json_value.hpp>
#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

constexpr Index manifest_version = 1;

void check_descr(const std::string& descr, const ArraySpec& spec) {
  const ElementType type = spec.type;
  const Result<NpyElement> element = parse_npy_descr(descr);
  if (!element) throw make_error(element.error().code(), "descr: {}", element.error().message());
  if (element.value().type != type)
    throw_error(ErrorCode::bad_file, "descr '{}' spells elements {}, the layout has {}", printable(descr),
                name_of(element.value().type), name_of(type));
  const Indices& extents = spec.distribution.extents();
  if (const Index count = element.value().count; count > 1 && extents[extents.size() - 1] != count)
    throw_error(ErrorCode::bad_file, "descr '{}' spells {} {} each, the last extent of [{}] is {}", printable(descr),
                count, name_of(type), to_string(extents), extents[extents.size() - 1]);
  stored_order(spec, element.value().count);
}

/// Reads the files and the checksums of the parts.
void read_parts(const Json& parts, Manifest& out) {
  const Distribution& distribution = out.spec.distribution;
  const Grid& grid = distribution.grid();
  if (!parts.is_array()) throw_error(ErrorCode::bad_file, "parts: expected an array");
  if (static_cast<Index>(parts.size()) != grid.size())
    throw_error(ErrorCode::bad_file, "the manifest lists {}, its layout has {}", amount(parts.size(), "part"),
                grid.size());
  std::vector<std::string>& files = out.files;
  files.resize(parts.size());
  out.checksums.resize(parts.size());
  bool any_checksum = false;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    JsonObject part(parts[i], fmt::format("parts[{}]", i));
    const Index rank = index_of(part.at("rank"), part.path("rank"));
    const std::string& file = word_of(part.at("file"), part.path("file"));
    const Indices shape = indices_of(part.at("shape"), part.path("shape"));
    std::optional<std::uint32_t> checksum;
    if (const Json* value = part.find("crc32"))
      checksum = checksum_of_digits(word_of(*value, part.path("crc32")), part.path("crc32"));
    part.finish();
    const std::optional<Index> ordinal =
        rank >= 0 && rank < grid.world_size_min() ? grid.ordinal_of(static_cast<Rank>(rank)) : std::nullopt;
    if (!ordinal)
      throw_error(ErrorCode::bad_file, "{}: rank {} does not hold any of the {}", part.path("rank"), rank,
                  amount(grid.size(), "part"));
    if (!files[*ordinal].empty())
      throw_error(ErrorCode::bad_file, "{}: rank {} is listed twice", part.path("rank"), rank);
    check_stored_name(file, part.path("file"));
    if (!seen.insert(file).second)
      throw_error(ErrorCode::bad_file, "{}: '{}' is listed twice", part.path("file"), file);
    const Indices needed = distribution.local_extents(static_cast<Rank>(rank));
    if (!(shape == needed))
      throw_error(ErrorCode::bad_file, "{}: the manifest says [{}], its layout gives rank {} [{}]", part.path("shape"),
                  to_string(shape), rank, to_string(needed));
    files[*ordinal] = file;
    out.checksums[*ordinal] = checksum;
    any_checksum |= checksum.has_value();
  }
  if (!any_checksum) out.checksums.clear();
}

Manifest read_manifest(JsonObject& object) {
  Manifest out{array_spec_of(object.at("layout"), "layout"), word_of(object.at("descr"), "descr"), {}, {}};
  word_of(object.at("layout_text"), "layout_text");
  if (const Json* dimensions = object.find("dimensions")) {
    const Index given = index_of(*dimensions, "dimensions");
    if (given != 0 || out.spec.distribution.extents()[0] != 1)
      throw_error(ErrorCode::bad_file,
                  "dimensions: only an array of 0 dimensions has this key, found {} for extents [{}]", given,
                  to_string(out.spec.distribution.extents()));
    out.is_scalar = true;
  }
  stored_order(out.spec);
  check_descr(out.descr, out.spec);
  read_parts(object.at("parts"), out);
  return out;
}

}  // namespace

// The name must be a plain name in the directory itself that can stand in a message.
void check_stored_name(const std::string& name, std::string_view where) {
  constexpr std::size_t length_max = 255;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
  if (name.empty() || name.size() > length_max || !plain || name.find("..") != std::string::npos ||
      name == manifest_name)
    throw_error(ErrorCode::bad_file,
                "{}: not the name of a part: 1 to {} printable characters, no '/' and no '..', found {}", where,
                length_max, amount(name.size(), "character"));
}

std::uint32_t checksum_of_digits(const std::string& digits, std::string_view where) {
  std::uint32_t out = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  if (digits.size() != 8 || failure != std::errc() || end != digits.data() + digits.size())
    throw_error(ErrorCode::bad_file, "{}: expected 8 hexadecimal digits, found {}", where,
                amount(digits.size(), "character"));
  return out;
}

std::string part_name(Rank rank) {
  return fmt::format("part-{:05}.npy", rank);
}

StoredOrder stored_order(const ArraySpec& spec, std::optional<Index> count) {
  const MemoryLayout& memory = spec.distribution.memory();
  const auto refuse = [&](std::string_view what) {
    throw_error(ErrorCode::unsupported,
                "an array in a file has no {}: its elements lie densely, in row-major order or its reverse", what);
  };
  if (memory.parts == ComplexParts::split) refuse("split complex numbers");
  if (memory.offset != 0) refuse(fmt::format("offset of {} before the first", amount(memory.offset, "element")));
  if (memory.align != 1) refuse(fmt::format("rows aligned to {}", amount(memory.align, "element")));
  if (!memory.spacing.empty()) refuse(fmt::format("spacing [{}]", to_string(memory.spacing)));
  if (!memory.strides.empty()) refuse(fmt::format("strides [{}]", to_string(memory.strides)));
  if (const Index parts = spec.distribution.grid().size(); parts > parts_max)
    throw_error(ErrorCode::unsupported, "the layout has {}, a directory holds at most {}", amount(parts, "part"),
                parts_max);
  const Indices& order = memory.order;
  const bool has_inner = count.value_or(1) > 1;
  for (const NpyOrder outer : {NpyOrder::c, NpyOrder::fortran})
    if (const StoredOrder one(outer, has_inner); order.empty() || order == dimension_order(one, order.size()))
      return one;
  // If the number is not known yet, a last dimension that stays last may be the inside of an element.
  if (!count && order[order.size() - 1] == order.size() - 1) return {NpyOrder::fortran, true};
  if (!has_inner) refuse(fmt::format("dimension order [{}]", to_string(order)));
  // The last dimension is the inside of an element; the message leaves it out, because the program need not have named
  // it.
  const std::size_t outer = static_cast<std::size_t>(order.size()) - 1;
  if (order[order.size() - 1] != order.size() - 1)
    refuse(fmt::format("dimension order [{}], which would split elements of {} {}", to_string(order), *count,
                       name_of(spec.type)));
  refuse(fmt::format("dimension order [{}]", to_string(Indices(std::span<const Index>(order.begin(), outer)))));
  return {};
}

Manifest make_manifest(const ArraySpec& spec, std::string descr) {
  stored_order(spec, descr.empty() ? std::nullopt : std::optional(parse_npy_descr(descr).value().count));
  Manifest out{spec, std::move(descr), {}, {}};
  for (const Rank rank : spec.distribution.grid().ranks()) out.files.push_back(part_name(rank));
  return out;
}

std::string format_manifest(const Manifest& manifest) {
  const Distribution& distribution = manifest.spec.distribution;
  std::vector<Rank> ranks = distribution.grid().ranks();
  std::sort(ranks.begin(), ranks.end());
  std::string parts;
  for (const Rank rank : ranks) {
    const Index ordinal = *distribution.grid().ordinal_of(rank);
    parts += fmt::format("{}\n    {{\"rank\": {}, \"file\": {}, \"shape\": [{}]", parts.empty() ? "" : ",", rank,
                         json_string(manifest.files[ordinal]), to_string(distribution.local_extents(rank)));
    if (!manifest.checksums.empty() && manifest.checksums[ordinal])
      parts += fmt::format(", \"crc32\": \"{:08x}\"", *manifest.checksums[ordinal]);
    parts += '}';
  }
  return fmt::format(
      "{{\n  \"tranship_manifest\": {},\n  \"layout\": {},\n  \"layout_text\": {},\n  \"descr\": {},\n{}  \"parts\": "
      "[{}\n  ]\n}}\n",
      manifest_version, to_json(manifest.spec), json_string(to_text(manifest.spec)), json_string(manifest.descr),
      manifest.is_scalar ? "  \"dimensions\": 0,\n" : "", parts);
}

Result<void> parse_manifest_text(std::string_view text, const char* version_key, Index version,
                                 FunctionRef<void(JsonObject&)> read) {
  Result<void> done = attempt([&] {
    if (static_cast<Index>(text.size()) > manifest_bytes_max)
      throw_error(ErrorCode::unsupported, "a manifest of {}: at most {} are read", amount(text.size(), "byte"),
                  manifest_bytes_max);
    const Json json = parse_json(text);
    JsonObject object(json, "");
    const Index found = index_of(object.at(version_key), version_key);
    if (found != version)
      throw_error(ErrorCode::unsupported, "a manifest of version {}: version {} is read", found, version);
    read(object);
    object.finish();
  });
  if (done) return done;
  const ErrorCode code = done.error().code();
  const bool wrong_file = code == ErrorCode::bad_text || code == ErrorCode::invalid_use;
  return Error(wrong_file ? ErrorCode::bad_file : code, done.error().message());
}

Result<Manifest> parse_manifest(std::string_view text) {
  std::optional<Manifest> out;
  const Result<void> done = parse_manifest_text(text, "tranship_manifest", manifest_version,
                                                [&](JsonObject& object) { out = read_manifest(object); });
  if (!done) return done.error();
  return std::move(*out);
}

Result<Manifest> read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + manifest_name;
  const Result<std::string> text = attempt([&] { return posix::read_text(path, manifest_bytes_max); });
  if (!text) return text.error();
  Result<Manifest> out = parse_manifest(text.value());
  if (!out) return make_error(out.error().code(), "'{}': {}", path, out.error().message());
  return out;
}

}  // namespace tranship
