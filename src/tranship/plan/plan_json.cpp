#include "tranship/plan/plan_json.hpp"

#include <charconv>
#include <climits>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/json_value.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/enum_names.hpp>

namespace tranship {
namespace {

constexpr Index version = 1;
constexpr std::size_t columns_max = 120;
constexpr int differences_max = 10;
constexpr std::size_t numbers_shown_max = 8;
constexpr std::size_t shown_bytes_max = 200;

// --- Writing --------------------------------------------------------------------------------------------------------

Json json_of(const Run& run) {
  Json out = {run.source, run.target, run.length};
  const bool stepped = run.source_step != 1 || run.target_step != 1;
  if (stepped || run.count != 1 || run.source_pitch != 0 || run.target_pitch != 0)
    for (const Index value : {run.count, run.source_pitch, run.target_pitch}) out.push_back(value);
  if (stepped)
    for (const Index value : {run.source_step, run.target_step}) out.push_back(value);
  return out;
}

Json json_of(const std::vector<Run>& runs) {
  Json out = Json::array();
  for (const Run& run : runs) out.push_back(json_of(run));
  return out;
}

Json json_of(const RunLattice& lattice) {
  Json out = Json::array();
  for (const LocalComb* comb : {&lattice.source, &lattice.target})
    for (const Index value : {comb->start, comb->length, comb->period, comb->pitch, comb->count}) out.push_back(value);
  out.push_back(lattice.distance);
  return out;
}

Json json_of(const AxisEntry& entry) {
  Json out = {{"peer", entry.peer}, {"runs", json_of(entry.runs)}};
  if (entry.lattices.empty()) return out;
  Json& lattices = out["lattices"] = Json::array();
  for (const RunLattice& lattice : entry.lattices) lattices.push_back(json_of(lattice));
  return out;
}

// The JSON of a distribution contains its grid; the extents that the grid cuts are irrelevant here.
Json json_of(const Grid& grid) {
  const Indices cells = Indices::filled(grid.dims(), 1);
  return json_of(Distribution(cells, grid, std::vector<Partition>(grid.dims(), whole()))).at("grid");
}

Json json_of(const Slot& slot) {
  return {{"type", name_of(slot.type)},
          {"local_extents", json_of(slot.local_extents)},
          {"fingerprint", fmt::format("{:016x}", slot.fingerprint)}};
}

template <class Moves>
Json json_of_moves(const Moves& moves) {
  Json out = {{"source_slot", moves.source_slot}, {"target_slot", moves.target_slot}};
  if (moves.map != ElementMap::copy) out["map"] = name_of(moves.map);
  return out;
}

Json json_of(const TransferGroup& group) {
  Json out = json_of_moves(group);
  out["source_dims"] = group.source_dims;
  out["target_dims"] = group.target_dims;
  if (group.peer_grid != -1) out["peer_grid"] = group.peer_grid;
  if (group.peer_replica != 0) out["peer_replica"] = group.peer_replica;
  if (!group.peers.empty()) out["peers"] = group.peers;
  out["axes"] = Json::array();
  for (const auto& table : group.axes) {
    Json entries = Json::array();
    for (const AxisEntry& entry : table) entries.push_back(json_of(entry));
    out["axes"].push_back(std::move(entries));
  }
  return out;
}

Json json_of(const IndexedTransfer& list) {
  Json out = json_of_moves(list);
  out["peer"] = list.peer;
  if (list.inner != 1) out["inner"] = list.inner;
  out["source_cells"] = list.source_cells;
  out["target_cells"] = list.target_cells;
  return out;
}

Json json_of(const LocalFill& fill) {
  Json out = {{"kind", name_of(fill.kind)}};
  if (fill.combine != Combine::sum) out["combine"] = name_of(fill.combine);
  out["slot"] = fill.slot;
  out["axes"] = Json::array();
  for (const std::vector<Run>& runs : fill.axes) out["axes"].push_back(json_of(runs));
  return out;
}

template <class T>
void add_list(Json& out, const char* key, const std::vector<T>& items) {
  if (items.empty()) return;
  Json& list = out[key] = Json::array();
  for (const T& item : items) list.push_back(json_of(item));
}

Json json_of(const TransferPlan& plan) {
  Json out = {{"tranship_plan", version}, {"kind", name_of(plan.kind)}, {"rank", plan.rank}};
  add_list(out, "slots", plan.slots);
  add_list(out, "peer_grids", plan.peer_grids);
  add_list(out, "fills_before", plan.fills_before);
  add_list(out, "receives", plan.receives);
  add_list(out, "sends", plan.sends);
  add_list(out, "indexed_receives", plan.indexed_receives);
  add_list(out, "indexed_sends", plan.indexed_sends);
  add_list(out, "fills_after", plan.fills_after);
  return out;
}

bool is_flat(const Json& value) {
  if (!value.is_structured()) return true;
  if (!value.is_array()) return false;
  for (const Json& item : value.items())
    if (item.is_structured()) return false;
  return true;
}

/// Writes a value on the rest of the line if it fits. Otherwise numbers and runs fill lines, and all other items get
/// their own lines.
void write(const Json& value, std::size_t indent, std::size_t used, std::string& out) {
  std::string line = value.dump();
  if (!value.is_structured() || used + line.size() < columns_max) {
    out += line;
    return;
  }
  const std::string margin(indent + 1, ' ');
  out += value.is_object() ? "{\n" : "[\n";
  std::size_t column = 0;
  bool first = true;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Json& item = value.is_array() ? value[i] : value.members()[i].value;
    const bool flat = value.is_array() && is_flat(item);
    const std::string text = flat ? item.dump() : "";
    if (!first && flat && column + text.size() + 3 < columns_max) {
      out += ", ";
      column += 2;
    } else {
      out += first ? margin : ",\n" + margin;
      column = margin.size();
    }
    first = false;
    if (flat) {
      out += text;
      column += text.size();
      continue;
    }
    if (value.is_object()) {
      const std::string name = json_string(value.members()[i].key) + ": ";
      out += name;
      column += name.size();
    }
    write(item, indent + 1, column, out);
    column = columns_max;
  }
  out += value.is_object() ? "}" : "]";
}

// --- Reading --------------------------------------------------------------------------------------------------------

std::string item_path(std::string_view where, std::size_t i) {
  return fmt::format("{}[{}]", where, i);
}

const Json& array_of(const Json& value, std::string_view where) {
  if (!value.is_array())
    throw_error(ErrorCode::bad_text, "{}: expected an array, found {}", where, name_of(value.type()));
  return value;
}

int int_of(const Json& value, std::string_view where) {
  const Index out = index_of(value, where);
  if (out < INT_MIN || out > INT_MAX)
    throw_error(ErrorCode::bad_text, "{}: {} is not between {} and {}", where, out, INT_MIN, INT_MAX);
  return static_cast<int>(out);
}

std::vector<int> int_list_of(const Json& value, std::string_view where) {
  std::vector<int> out;
  for (std::size_t i = 0; i < array_of(value, where).size(); ++i) out.push_back(int_of(value[i], where));
  return out;
}

template <class Enum, std::size_t n>
Enum enum_of(const Enum (&all)[n], const Json& value, std::string_view where) {
  const std::string& word = word_of(value, where);
  const std::optional<Enum> out = named(all, word);
  if (!out) throw_error(ErrorCode::bad_text, "{}: expected {}, found {}", where, listing(all), json_in_message(word));
  return *out;
}

Run run_of(const Json& value, std::string_view where) {
  const std::size_t size = array_of(value, where).size();
  if (size != 3 && size != 6 && size != 8)
    throw_error(ErrorCode::bad_text, "{}: a run has {}; expected 3, 6 or 8", where, amount(size, "number"));
  Run run;
  Index* const members[] = {&run.source,       &run.target,       &run.length,      &run.count,
                            &run.source_pitch, &run.target_pitch, &run.source_step, &run.target_step};
  for (std::size_t i = 0; i < size; ++i) *members[i] = index_of(value[i], where);
  return run;
}

std::vector<Run> runs_of(const Json& value, const std::string& where) {
  std::vector<Run> out;
  for (std::size_t i = 0; i < array_of(value, where).size(); ++i) out.push_back(run_of(value[i], item_path(where, i)));
  return out;
}

template <class T>
void read_list(JsonObject& object, const char* key, T (*read)(const Json&, const std::string&), std::vector<T>& out) {
  const Json* list = object.find(key);
  if (!list) return;
  const std::string path = object.path(key);
  for (std::size_t i = 0; i < array_of(*list, path).size(); ++i) out.push_back(read((*list)[i], item_path(path, i)));
}

RunLattice lattice_of(const Json& value, const std::string& where) {
  const std::size_t size = array_of(value, where).size();
  if (size != 11) throw_error(ErrorCode::bad_text, "{}: a lattice has {}; expected 11", where, amount(size, "number"));
  RunLattice out;
  std::size_t i = 0;
  for (LocalComb* comb : {&out.source, &out.target})
    for (Index* member : {&comb->start, &comb->length, &comb->period, &comb->pitch, &comb->count})
      *member = index_of(value[i++], where);
  out.distance = index_of(value[i], where);
  return out;
}

AxisEntry entry_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  AxisEntry out{.peer = index_of(object.at("peer"), object.path("peer")),
                .runs = runs_of(object.at("runs"), object.path("runs"))};
  read_list(object, "lattices", lattice_of, out.lattices);
  object.finish();
  return out;
}

Grid grid_of(const Json& value, const std::string& where) {
  Json layout = {{"extents", Json::array()}, {"grid", value}, {"partitions", Json::array()}};
  if (value.is_object() && value.contains("extents"))
    for (std::size_t d = 0; d < value.at("extents").size(); ++d) {
      layout["extents"].push_back(1);
      layout["partitions"].push_back({{"kind", name_of(PartitionKind::whole)}});
    }
  const Result<Distribution> out = attempt([&] { return distribution_of(layout); });
  if (out) return out.value().grid();
  std::string_view message = out.error().message();
  if (message.starts_with("grid")) message.remove_prefix(4);
  throw_error(out.error().code(), "{}{}{}", where, message.starts_with('.') || message.starts_with(':') ? "" : ": ",
              message);
}

Slot slot_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  Slot out;
  const std::string path = object.path("type");
  const Result<ElementType> type = element_type_named(word_of(object.at("type"), path));
  if (!type) throw_error(type.error().code(), "{}: {}", path, type.error().message());
  out.type = type.value();
  out.local_extents = indices_of(object.at("local_extents"), object.path("local_extents"));
  const std::string& digits = word_of(object.at("fingerprint"), object.path("fingerprint"));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.fingerprint, 16);
  if (digits.size() != 16 || error != std::errc() || end != digits.data() + digits.size())
    throw_error(ErrorCode::bad_text, "{}: expected 16 hexadecimal digits, found {}", object.path("fingerprint"),
                amount(digits.size(), "character"));
  object.finish();
  return out;
}

template <class Moves>
void read_moves(JsonObject& object, Moves& out) {
  out.source_slot = int_of(object.at("source_slot"), object.path("source_slot"));
  out.target_slot = int_of(object.at("target_slot"), object.path("target_slot"));
  if (const Json* map = object.find("map")) out.map = enum_of(element_maps, *map, object.path("map"));
}

TransferGroup group_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  TransferGroup out;
  read_moves(object, out);
  out.source_dims = int_list_of(object.at("source_dims"), object.path("source_dims"));
  out.target_dims = int_list_of(object.at("target_dims"), object.path("target_dims"));
  if (const Json* grid = object.find("peer_grid")) out.peer_grid = int_of(*grid, object.path("peer_grid"));
  if (const Json* replica = object.find("peer_replica"))
    out.peer_replica = index_of(*replica, object.path("peer_replica"));
  if (const Json* peers = object.find("peers")) out.peers = int_list_of(*peers, object.path("peers"));
  const std::string path = object.path("axes");
  const Json& axes = array_of(object.at("axes"), path);
  object.finish();
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::string table_path = item_path(path, k);
    std::vector<AxisEntry>& table = out.axes.emplace_back();
    for (std::size_t e = 0; e < array_of(axes[k], table_path).size(); ++e)
      table.push_back(entry_of(axes[k][e], item_path(table_path, e)));
  }
  return out;
}

IndexedTransfer indexed_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  IndexedTransfer out;
  read_moves(object, out);
  out.peer = int_of(object.at("peer"), object.path("peer"));
  if (const Json* inner = object.find("inner")) out.inner = index_of(*inner, object.path("inner"));
  out.source_cells = index_list_of(object.at("source_cells"), object.path("source_cells"));
  out.target_cells = index_list_of(object.at("target_cells"), object.path("target_cells"));
  object.finish();
  return out;
}

LocalFill fill_of(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  LocalFill out;
  out.kind = enum_of(local_fill_kinds, object.at("kind"), object.path("kind"));
  if (const Json* combine = object.find("combine"))
    out.combine = enum_of(combine_kinds, *combine, object.path("combine"));
  out.slot = int_of(object.at("slot"), object.path("slot"));
  const std::string path = object.path("axes");
  const Json& axes = array_of(object.at("axes"), path);
  for (std::size_t k = 0; k < axes.size(); ++k) out.axes.push_back(runs_of(axes[k], item_path(path, k)));
  object.finish();
  return out;
}

TransferPlan plan_of(const Json& value) {
  JsonObject object(value, "");
  const Index found = index_of(object.at("tranship_plan"), "tranship_plan");
  if (found != version)
    throw_error(ErrorCode::bad_file, "tranship_plan: version {}; this build reads version {}", found, version);
  TransferPlan out;
  out.kind = enum_of(plan_kinds, object.at("kind"), "kind");
  out.rank = int_of(object.at("rank"), "rank");
  read_list(object, "slots", slot_of, out.slots);
  read_list(object, "peer_grids", grid_of, out.peer_grids);
  read_list(object, "fills_before", fill_of, out.fills_before);
  read_list(object, "receives", group_of, out.receives);
  read_list(object, "sends", group_of, out.sends);
  read_list(object, "indexed_receives", indexed_of, out.indexed_receives);
  read_list(object, "indexed_sends", indexed_of, out.indexed_sends);
  read_list(object, "fills_after", fill_of, out.fills_after);
  object.finish();
  return out;
}

// --- Comparing ------------------------------------------------------------------------------------------------------

std::string shown(const Json* value) {
  if (!value) return "nothing";
  std::string out = value->dump();
  if (out.size() > shown_bytes_max) out = out.substr(0, shown_bytes_max) + "...";
  return out;
}

/// Appends differences until `differences_max` is exceeded by one; that extra line tells that there are more.
void diff(const Json* a, const Json* b, const std::string& path, std::vector<std::string>& lines) {
  if (int(lines.size()) > differences_max || (a && b && *a == *b)) return;
  // Compares lists item by item, unless they are short enough to be shown whole.
  const bool leaf = !a || !b || a->type() != b->type() || !a->is_structured();
  if (leaf || (is_flat(*a) && is_flat(*b) && std::max(a->size(), b->size()) <= numbers_shown_max)) {
    lines.push_back(fmt::format("{}: {}, {}", path, shown(a), shown(b)));
    return;
  }
  if (a->is_array()) {
    for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i)
      diff(i < a->size() ? &(*a)[i] : nullptr, i < b->size() ? &(*b)[i] : nullptr, item_path(path, i), lines);
    return;
  }
  auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : a->members()) diff(&value, b->find(key), below(key), lines);
  for (const auto& [key, value] : b->members())
    if (!a->contains(key)) diff(nullptr, &value, below(key), lines);
}

}  // namespace

std::string save_plan(const TransferPlan& plan) {
  std::string out;
  write(json_of(plan), 0, 0, out);
  return out + "\n";
}

Result<TransferPlan> try_load_plan(std::string_view text) {
  Result<TransferPlan> out = attempt([&] {
    if (text.size() > plan_text_bytes_max)
      throw_error(ErrorCode::bad_file, "the plan has {}; at most {} are read", amount(text.size(), "byte"),
                  plan_text_bytes_max);
    TransferPlan plan = plan_of(parse_json(text));
    check_plan(plan).value();
    return plan;
  });
  // Errors of values come from rules about calls and sizes; in a file, each of them means a bad file.
  if (!out && out.error().code() != ErrorCode::bad_text) return Error(ErrorCode::bad_file, out.error().message());
  return out;
}

TransferPlan load_plan(std::string_view text) {
  return try_load_plan(text).value();
}

std::string diff_plans(const TransferPlan& a, const TransferPlan& b) {
  const Json left = json_of(a), right = json_of(b);
  std::vector<std::string> lines;
  diff(&left, &right, "", lines);
  if (int(lines.size()) > differences_max) lines.back() = "and more";
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace tranship
