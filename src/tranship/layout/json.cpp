#include "tranship/layout/json.hpp"

#include <algorithm>
#include <climits>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/enum_names.hpp>
#include <tranship/layout/extent_limits.hpp>
#include <tranship/layout/json_value.hpp>

namespace tranship {
namespace {

// An indexed distribution takes memory by its number of ids, so a short file must not be able to ask for many.
constexpr Index ids_per_listed_max = 64;
constexpr Index ids_always_allowed = Index(1) << 20;

[[noreturn]] void wrong(std::string_view where, std::string_view expected, const Json& found) {
  // Containers are not quoted: they may be long or deep.
  const std::string text = found.is_object()  ? "an object"
                           : found.is_array() ? fmt::format("an array of {}", found.size())
                                              : json_in_message(found);
  throw_error(ErrorCode::bad_text, "{}: expected {}, found {}", where.empty() ? "the document" : where, expected, text);
}

// Runs `f`. If it throws an Error about a value rather than the form of the text, adds the path of the value.
template <class F>
auto located(std::string_view where, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_text || where.empty()) throw;
    throw error.with_message(fmt::format("{}: {}", where, error.message()));
  }
}

Json json_of(const Grid& grid) {
  Json out = {{"extents", json_of(grid.extents())}};
  if (grid.replicas() > 1) out["replicas"] = grid.replicas();
  const Grid row_major(grid.extents(), {.replicas = grid.replicas()});
  if (!(Grid(grid.extents(), {.replicas = grid.replicas(), .order = grid.order()}) == row_major))
    for (const int axis : grid.order()) out["order"].push_back(axis == grid.dims() ? Json("r") : Json(axis));
  if (grid.ranks_listed()) {
    out["ranks"] = grid.ranks();
  } else {
    if (grid.first() != 0) out["first"] = grid.first();
    if (grid.stride() != 1 && grid.size() > 1) out["step"] = grid.stride();
  }
  return out;
}

Json json_of(const Partition& partition) {
  Json out = {{"kind", name_of(partition.kind)}};
  if (partition.remainder != Remainder::low) out["remainder"] = name_of(partition.remainder);
  if (partition.kind == PartitionKind::cyclic) out["block_size"] = partition.block_size;
  if (partition.kind == PartitionKind::irregular) out["bounds"] = partition.bounds;
  if (partition.minimum != 0) out["min"] = partition.minimum;
  if (partition.modulo != 1) out["mod"] = partition.modulo;
  if (partition.points == Points::interfaces) out["interfaces"] = true;
  if (partition.overlap != Overlap{}) {
    Json& overlap = out["overlap"];
    const auto& [left, right] = partition.overlap;
    overlap["left"] = left.width;
    overlap["right"] = right.width;
    if (left.edge != EdgePolicy::truncate) overlap["left_edge"] = name_of(left.edge);
    if (right.edge != EdgePolicy::truncate) overlap["right_edge"] = name_of(right.edge);
  }
  return out;
}

Json json_of(const MemoryLayout& memory) {
  Json out = Json::object();
  if (!memory.order.empty()) out["order"] = json_of(memory.order);
  if (!memory.strides.empty()) out["strides"] = json_of(memory.strides);
  if (!memory.spacing.empty()) out["spacing"] = json_of(memory.spacing);
  if (memory.align != 1) out["align"] = memory.align;
  if (memory.offset != 0) out["offset"] = memory.offset;
  if (memory.parts == ComplexParts::split) out["split"] = true;
  return out;
}

template <class Enum, std::size_t n>
Enum enum_of(const Enum (&all)[n], const Json& value, std::string_view where) {
  const std::optional<Enum> out = value.is_string() ? named(all, word_of(value, where)) : std::nullopt;
  if (!out) wrong(where, listing(all), value);
  return *out;
}

const Json& array_of(const Json& value, std::string_view where) {
  if (!value.is_array()) wrong(where, "an array", value);
  return value;
}

std::string item(std::string_view where, std::size_t i) {
  return fmt::format("{}[{}]", where, i);
}

Rank rank_of(const Json& value, std::string_view where) {
  const Index out = index_of(value, where);
  if (out < 0 || out >= INT_MAX)
    throw_error(ErrorCode::invalid_use, "{}: rank {} is not between 0 and {}", where, out, INT_MAX - 1);
  return static_cast<Rank>(out);
}

Grid grid_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  const Indices extents = indices_of(object.at("extents"), object.path("extents"));
  GridOptions options;
  if (const Json* replicas = object.find("replicas")) options.replicas = index_of(*replicas, object.path("replicas"));
  if (const Json* order = object.find("order")) {
    const std::string path = object.path("order");
    for (std::size_t i = 0; i < array_of(*order, path).size(); ++i) {
      const Json& axis = (*order)[i];
      if (axis == "r") {
        options.order.push_back(extents.size());
      } else {
        const Index number = index_of(axis, item(path, i));
        if (number < 0 || number >= extents.size()) wrong(item(path, i), "the number of an axis or \"r\"", axis);
        options.order.push_back(static_cast<int>(number));
      }
    }
  }
  if (const Json* ranks = object.find("ranks")) {
    const std::string path = object.path("ranks");
    for (const char* other : {"first", "step"})
      if (object.has(other)) wrong(object.path(other), "no such key beside ranks", *object.find(other));
    for (std::size_t i = 0; i < array_of(*ranks, path).size(); ++i)
      options.ranks.push_back(rank_of((*ranks)[i], item(path, i)));
    if (options.ranks.empty()) wrong(path, "at least one rank", *ranks);
  }
  if (const Json* first = object.find("first")) options.first = rank_of(*first, object.path("first"));
  if (const Json* step = object.find("step")) options.stride = rank_of(*step, object.path("step"));
  object.finish();
  return located(where, [&] { return Grid(extents, std::move(options)); });
}

OverlapSide side_of(JsonObject& object, const char* side, const char* edge) {
  OverlapSide out{.width = index_of(object.at(side), object.path(side))};
  if (const Json* policy = object.find(edge)) out.edge = enum_of(edge_policies, *policy, object.path(edge));
  return out;
}

Partition partition_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  Partition out;
  out.kind = enum_of(partition_kinds, object.at("kind"), object.path("kind"));
  if (out.kind == PartitionKind::block)
    if (const Json* remainder = object.find("remainder"))
      out.remainder = enum_of(remainders, *remainder, object.path("remainder"));
  if (out.kind == PartitionKind::cyclic) out.block_size = index_of(object.at("block_size"), object.path("block_size"));
  if (out.kind == PartitionKind::irregular) out.bounds = index_list_of(object.at("bounds"), object.path("bounds"));
  if (const Json* minimum = object.find("min")) out.minimum = index_of(*minimum, object.path("min"));
  if (const Json* modulo = object.find("mod")) out.modulo = index_of(*modulo, object.path("mod"));
  if (const Json* interfaces = object.find("interfaces"))
    out.points = flag_of(*interfaces, object.path("interfaces")) ? Points::interfaces : Points::cells;
  if (const Json* overlap = object.find("overlap")) {
    JsonObject sides(*overlap, object.path("overlap"));
    out.overlap.left = side_of(sides, "left", "left_edge");
    out.overlap.right = side_of(sides, "right", "right_edge");
    sides.finish();
  }
  object.finish();
  return out;
}

MemoryLayout memory_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  MemoryLayout out;
  if (const Json* order = object.find("order")) out.order = indices_of(*order, object.path("order"));
  if (const Json* strides = object.find("strides")) out.strides = indices_of(*strides, object.path("strides"));
  if (const Json* spacing = object.find("spacing")) out.spacing = indices_of(*spacing, object.path("spacing"));
  if (const Json* align = object.find("align")) out.align = index_of(*align, object.path("align"));
  if (const Json* offset = object.find("offset")) out.offset = index_of(*offset, object.path("offset"));
  if (const Json* split = object.find("split"))
    out.parts = flag_of(*split, object.path("split")) ? ComplexParts::split : ComplexParts::interleaved;
  object.finish();
  return out;
}

Distribution indexed_of(const Json& value, const std::string& where, const Indices& extents, Grid grid,
                        MemoryLayout memory) {
  JsonObject object(value, where);
  const Index dims = index_of(object.at("dims"), object.path("dims"));
  if (dims < 1 || dims > extents.size())
    throw_error(ErrorCode::invalid_use, "{}: {}, but an array of {} has 1 to {}", object.path("dims"),
                amount(dims, "indexed dimension"), amount(extents.size(), "dimension"), extents.size());
  const std::string path = object.path("parts");
  const Json& lists = array_of(object.at("parts"), path);
  std::vector<IndexedPart> parts;
  Index listed = 0;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    JsonObject part(lists[i], item(path, i));
    parts.push_back({.owned = index_list_of(part.at("owned"), part.path("owned")), .ghosts = {}});
    if (const Json* ghosts = part.find("ghosts")) parts.back().ghosts = index_list_of(*ghosts, part.path("ghosts"));
    part.finish();
    listed += static_cast<Index>(parts.back().owned.size());
  }
  object.finish();
  return located(where, [&] {
    Indices indexed;
    for (Index d = 0; d < dims; ++d) indexed.push_back(extents[static_cast<int>(d)]);
    const Index ids = checked_product(indexed);
    if (ids > std::max(ids_always_allowed, listed * ids_per_listed_max))
      throw_error(ErrorCode::invalid_use,
                  "{}, of which {} are owned: there may be at most {} times as many ids as owned ones",
                  amount(ids, "id"), listed, ids_per_listed_max);
    return Distribution::indexed(extents, static_cast<int>(dims), std::move(grid), std::move(parts), std::move(memory));
  });
}

// Reads the members of a distribution from an object that may have other members.
Distribution distribution_in(JsonObject& object, const std::string& where) {
  const Indices extents = indices_of(object.at("extents"), object.path("extents"));
  located(object.path("extents"), [&] { check_extents(extents); });
  Grid grid = grid_of(object.at("grid"), object.path("grid"));
  MemoryLayout memory;
  if (const Json* value = object.find("memory")) memory = memory_of(*value, object.path("memory"));
  if (const Json* indexed = object.find("indexed"))
    return indexed_of(*indexed, object.path("indexed"), extents, std::move(grid), std::move(memory));

  const std::string path = object.path("partitions");
  const Json& values = array_of(object.at("partitions"), path);
  std::vector<Partition> partitions;
  for (std::size_t i = 0; i < values.size(); ++i) {
    partitions.push_back(partition_of(values[i], item(path, i)));
    if (int(i) < std::min(extents.size(), grid.dims()))
      located(item(path, i), [&] { return AxisParts(extents[int(i)], grid.extents()[int(i)], partitions[i]); });
  }
  // Builds it without the memory layout first, to tell an error about the memory from other errors.
  located(where, [&] { Distribution(extents, grid, partitions); });
  return located(object.path("memory"),
                 [&] { return Distribution(extents, std::move(grid), std::move(partitions), std::move(memory)); });
}

}  // namespace

JsonObject::JsonObject(const Json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) wrong(where_, "an object", value);
}

const Json* JsonObject::find(std::string_view key) {
  known_.emplace(key);
  return value_.find(key);
}

const Json& JsonObject::at(std::string_view key) {
  const Json* out = find(key);
  if (!out) throw_error(ErrorCode::bad_text, "{} is missing", path(key));
  return *out;
}

std::string JsonObject::path(std::string_view key) const {
  return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
}

void JsonObject::finish() const {
  for (const auto& [key, value] : value_.members())
    if (!known_.contains(key))
      throw_error(ErrorCode::bad_text, "{} is unknown; the keys here are {}", path(json_in_message(key)),
                  join_text(known_, ", "));
}

Index index_of(const Json& value, std::string_view where) {
  if (!value.is_integer()) wrong(where, "an integer", value);
  if (value.type() == JsonType::large_integer)
    throw_error(ErrorCode::overflow, "{}: {} does not fit in 63 bits; at most {} does", where, value.as_unsigned(),
                INT64_MAX);
  return value.as_integer();
}

std::vector<Index> index_list_of(const Json& value, std::string_view where) {
  std::vector<Index> out;
  for (std::size_t i = 0; i < array_of(value, where).size(); ++i) {
    // Builds the path of an item only for an error.
    out.push_back(value[i].is_integer() ? index_of(value[i], where) : index_of(value[i], item(where, i)));
  }
  return out;
}

Indices indices_of(const Json& value, std::string_view where) {
  Indices out;
  for (std::size_t i = 0; i < array_of(value, where).size(); ++i) {
    const Index number = index_of(value[i], item(where, i));
    located(where, [&] { out.push_back(number); });
  }
  return out;
}

const std::string& word_of(const Json& value, std::string_view where) {
  if (!value.is_string()) wrong(where, "a string", value);
  return value.as_string();
}

bool flag_of(const Json& value, std::string_view where) {
  if (!value.is_boolean()) wrong(where, "true or false", value);
  return value.as_boolean();
}

Json json_of(const Indices& values) {
  Json out = Json::array();
  for (const Index value : values) out.push_back(value);
  return out;
}

Json json_of(const Distribution& distribution) {
  Json out;
  out["extents"] = json_of(distribution.extents());
  out["grid"] = json_of(distribution.grid());
  if (distribution.is_indexed()) {
    Json& indexed = out["indexed"];
    indexed["dims"] = distribution.indexed_dims();
    indexed["parts"] = Json::array();
    for (Index i = 0; i < distribution.grid().size(); ++i) {
      const IndexedPart& part = distribution.indexed_part(i);
      Json lists = {{"owned", part.owned}};
      if (!part.ghosts.empty()) lists["ghosts"] = part.ghosts;
      indexed["parts"].push_back(std::move(lists));
    }
  } else {
    out["partitions"] = Json::array();
    for (int d = 0; d < distribution.dims(); ++d)
      out["partitions"].push_back(json_of(distribution.axis(d).partition()));
  }
  if (Json memory = json_of(distribution.memory()); !memory.empty()) out["memory"] = std::move(memory);
  return out;
}

Json json_of(const ArraySpec& spec) {
  Json out = {{"type", name_of(spec.type)}};
  out.update(json_of(spec.distribution));
  return out;
}

Distribution distribution_of(const Json& value, std::string_view where) {
  JsonObject object(value, std::string(where));
  Distribution out = distribution_in(object, std::string(where));
  object.finish();
  return out;
}

ArraySpec array_spec_of(const Json& value, std::string_view where) {
  JsonObject object(value, std::string(where));
  const std::string path = object.path("type");
  const Result<ElementType> type = element_type_named(word_of(object.at("type"), path));
  if (!type) throw_error(type.error().code(), "{}: {}", path, type.error().message());
  ArraySpec out{type.value(), distribution_in(object, std::string(where))};
  located(object.path("extents"), [&] { check_bytes(out.type, out.distribution.extents()); });
  object.finish();
  if (out.distribution.memory().parts == ComplexParts::split && !is_complex(out.type))
    throw_error(ErrorCode::invalid_use, "{}: split needs a complex element type, found {}", object.path("memory.split"),
                name_of(out.type));
  return out;
}

std::string to_json(const Distribution& distribution) {
  return json_of(distribution).dump();
}

std::string to_json(const ArraySpec& spec) {
  return json_of(spec).dump();
}

Result<Distribution> try_distribution_from_json(std::string_view text) {
  return attempt([&] { return distribution_of(parse_json(text)); });
}

Result<ArraySpec> try_array_spec_from_json(std::string_view text) {
  return attempt([&] { return array_spec_of(parse_json(text)); });
}

Distribution distribution_from_json(std::string_view text) {
  return try_distribution_from_json(text).value();
}

ArraySpec array_spec_from_json(std::string_view text) {
  return try_array_spec_from_json(text).value();
}

}  // namespace tranship
