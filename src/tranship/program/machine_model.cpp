#include "tranship/program/machine_model.hpp"

#include <algorithm>
#include <cmath>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/json_value.hpp>

namespace tranship {
namespace {

constexpr std::string_view format_name = "tranship machine 1";

[[noreturn]] void refuse(const std::string& where, std::string_view why, const Json& value) {
  throw_error(ErrorCode::bad_text, "{}: {}, not {}", where, why, json_in_message(value));
}

double number_from(double least, std::string_view expected, const Json& value, const std::string& where) {
  constexpr double number_max = 1e15;
  const double number = value.is_number() ? value.as_number() : -1;
  if (!(number >= least) || number > number_max) refuse(where, expected, value);
  return number;
}
double real_number_of(const Json& value, const std::string& where) {
  return number_from(0, "expected a number from 0 to 1e15", value, where);
}
double speed_of(const Json& value, const std::string& where) {
  return number_from(1e-6, "expected a rate from 1e-6 to 1e15", value, where);
}

Rate rate_of(const Json& value, const std::string& where) {
  if (!value.is_array()) return Rate(speed_of(value, where));
  std::vector<Rate::Point> points;
  if (value.empty()) refuse(where, "expected a rate, or at least one pair of bytes and rate", value);
  for (const Json& item : value.items()) {
    const std::string path = fmt::format("{}[{}]", where, points.size());
    if (!item.is_array() || item.size() != 2) refuse(path, "expected bytes and a rate", item);
    const Rate::Point point{.bytes = real_number_of(item[0], path), .gb_per_s = speed_of(item[1], path)};
    if (!points.empty() && point.bytes <= points.back().bytes) refuse(path, "bytes must increase", item);
    points.push_back(point);
  }
  return Rate(std::move(points));
}

Json json_of(const Rate& rate) {
  const auto& points = rate.points();
  if (points.size() == 1 && points[0].bytes == 0) return points[0].gb_per_s;
  Json out = Json::array();
  for (const Rate::Point& point : points) {
    Json pair = Json::array();
    pair.push_back(static_cast<std::int64_t>(point.bytes));
    pair.push_back(point.gb_per_s);
    out.push_back(std::move(pair));
  }
  return out;
}

double optional_number(JsonObject& from, std::string_view key) {
  const Json* const value = from.find(key);
  return value ? real_number_of(*value, from.path(key)) : 0;
}
/// 0 when not given: no limit.
double optional_speed(JsonObject& from, std::string_view key) {
  const Json* const value = from.find(key);
  return value ? speed_of(*value, from.path(key)) : 0;
}
Rate optional_rate(JsonObject& from, std::string_view key, const Rate& otherwise) {
  const Json* const value = from.find(key);
  return value ? rate_of(*value, from.path(key)) : otherwise;
}
Index count_of(JsonObject& from, std::string_view key, Index least) {
  const Json* const value = from.find(key);
  if (!value) return least;
  const Index count = index_of(*value, from.path(key));
  constexpr Index count_max = 1 << 20;
  if (count < least || count > count_max)
    throw_error(ErrorCode::bad_text, "{}: {} to {} are possible, not {}", from.path(key), least, count_max, count);
  return count;
}

LinkModel link_of(const Json& value, const std::string& where) {
  JsonObject from(value, where);
  LinkModel out;
  out.latency_ns = real_number_of(from.at("latency_ns"), from.path("latency_ns"));
  out.message_ns = optional_number(from, "message_ns");
  out.put = rate_of(from.at("put_gb_per_s"), from.path("put_gb_per_s"));
  out.get = optional_rate(from, "get_gb_per_s", out.put);
  out.short_put = optional_rate(from, "short_put_gb_per_s", out.put);
  if (const Json* const bytes = from.find("long_put_bytes")) {
    out.long_put_bytes = index_of(*bytes, from.path("long_put_bytes"));
    if (out.long_put_bytes < 0)
      throw_error(ErrorCode::bad_text, "{}: must be 0 or more, found {}", from.path("long_put_bytes"),
                  out.long_put_bytes);
  }
  if (out.long_put_bytes == 0 && from.find("short_put_gb_per_s") && !(out.short_put == out.put))
    throw_error(ErrorCode::bad_text, "{}: applies only with long_put_bytes above 0", from.path("short_put_gb_per_s"));
  out.packets = optional_rate(from, "packets_gb_per_s", out.put.times(0.5));
  out.read_reduce = optional_rate(from, "read_reduce_gb_per_s", out.get);
  out.reduce_put = optional_rate(from, "reduce_put_gb_per_s", out.put);
  out.take_back = optional_rate(from, "take_back_gb_per_s", out.put);
  if (const Json* const proxy = from.find("proxy")) out.has_proxy = flag_of(*proxy, from.path("proxy"));
  from.finish();
  return out;
}

Json json_of(const LinkModel& link) {
  Json out = {{"latency_ns", link.latency_ns},
              {"message_ns", link.message_ns},
              {"put_gb_per_s", json_of(link.put)},
              {"get_gb_per_s", json_of(link.get)},
              {"short_put_gb_per_s", json_of(link.short_put)},
              {"long_put_bytes", link.long_put_bytes},
              {"packets_gb_per_s", json_of(link.packets)},
              {"read_reduce_gb_per_s", json_of(link.read_reduce)},
              {"reduce_put_gb_per_s", json_of(link.reduce_put)},
              {"take_back_gb_per_s", json_of(link.take_back)}};
  if (link.has_proxy) out["proxy"] = true;
  return out;
}

void read_links(const Json& value, const std::string& where, MachineModel& out) {
  JsonObject from(value, where);
  out.memory = link_of(from.at("memory"), from.path("memory"));
  const Json* const port = from.find("port");
  out.port = port ? link_of(*port, from.path("port")) : out.memory;
  const Json* const far_port = from.find("far_port");
  out.far_port = far_port ? link_of(*far_port, from.path("far_port")) : out.port;
  if (const Json* const far_memory = from.find("far_memory")) {
    out.far_memory = link_of(*far_memory, from.path("far_memory"));
    out.has_far_memory = true;
  }
  if (const Json* const multicast = from.find("switch")) {
    JsonObject one(*multicast, from.path("switch"));
    out.multicast.is_present = true;
    out.multicast.latency_ns = real_number_of(one.at("latency_ns"), one.path("latency_ns"));
    out.multicast.put = rate_of(one.at("put_gb_per_s"), one.path("put_gb_per_s"));
    out.multicast.get = optional_rate(one, "get_gb_per_s", out.multicast.put);
    one.finish();
  }
  from.finish();
}

}  // namespace

double Rate::ns_per_byte(double bytes_touched) const {
  if (points_.empty()) return 0;
  const auto above =
      std::find_if(points_.begin(), points_.end(), [&](const Point& point) { return point.bytes >= bytes_touched; });
  if (above == points_.begin()) return 1 / points_.front().gb_per_s;
  if (above == points_.end()) return 1 / points_.back().gb_per_s;
  const Point &low = above[-1], &high = above[0];
  const double low_bytes = std::max(1.0, low.bytes);
  const double share =
      std::log(std::max(1.0, bytes_touched) / low_bytes) / std::max(1e-9, std::log(high.bytes / low_bytes));
  return (1 - share) / low.gb_per_s + share / high.gb_per_s;
}

Rate Rate::times(double factor) const {
  Rate out = *this;
  for (Point& point : out.points_) point.gb_per_s *= factor;
  return out;
}

MachineModel read_machine(std::string_view text) {
  const Json document = parse_json(text);
  JsonObject from(document, "");
  MachineModel out;
  if (const std::string& format = word_of(from.at("format"), "format"); format != format_name)
    throw_error(ErrorCode::bad_text, "format: expected \"{}\", not {}", format_name, json_in_message(format));
  out.name = word_of(from.at("name"), "name");
  const std::string& blocks = word_of(from.at("thread_blocks"), "thread_blocks");
  if (blocks != "together" && blocks != "in turn")
    throw_error(ErrorCode::bad_text, "thread_blocks: expected \"together\" or \"in turn\", not {}",
                json_in_message(blocks));
  out.blocks = blocks == "together" ? MachineModel::Blocks::together : MachineModel::Blocks::in_turn;
  out.ranks_per_host = count_of(from, "ranks_per_host", 1);
  out.cores_per_host = count_of(from, "cores_per_host", 0);
  if (out.cores_per_host > 0 && out.blocks == MachineModel::Blocks::together)
    throw_error(ErrorCode::bad_text, "cores_per_host is {}, but thread blocks run together: leave it out",
                amount(out.cores_per_host, "core"));
  out.core_switch_ns = optional_number(from, "core_switch_ns");
  out.launch_ns = optional_number(from, "launch_ns");
  out.launch_copy = optional_rate(from, "launch_copy_gb_per_s", {});
  out.step_ns = real_number_of(from.at("step_ns"), "step_ns");
  out.copy = rate_of(from.at("copy_gb_per_s"), "copy_gb_per_s");
  out.reduce = optional_rate(from, "reduce_gb_per_s", out.copy);
  out.pack = optional_rate(from, "pack_gb_per_s", out.copy.times(0.5));
  out.unpack = optional_rate(from, "unpack_gb_per_s", out.pack);
  out.reduce_packets = optional_rate(from, "reduce_packets_gb_per_s", out.unpack);
  out.rank_gb_per_s = optional_speed(from, "rank_gb_per_s");
  out.host_gb_per_s = optional_speed(from, "host_gb_per_s");
  read_links(from.at("links"), "links", out);
  (void)from.find("note");
  from.finish();
  return out;
}

std::string write_machine(const MachineModel& machine) {
  Json links = {
      {"memory", json_of(machine.memory)}, {"port", json_of(machine.port)}, {"far_port", json_of(machine.far_port)}};
  if (machine.has_far_memory) links["far_memory"] = json_of(machine.far_memory);
  if (machine.multicast.is_present)
    links["switch"] = {{"latency_ns", machine.multicast.latency_ns},
                       {"put_gb_per_s", json_of(machine.multicast.put)},
                       {"get_gb_per_s", json_of(machine.multicast.get)}};
  Json out = {{"format", format_name},
              {"name", machine.name},
              {"thread_blocks", machine.blocks == MachineModel::Blocks::together ? "together" : "in turn"},
              {"ranks_per_host", machine.ranks_per_host}};
  if (machine.cores_per_host > 0) out["cores_per_host"] = machine.cores_per_host;
  out["core_switch_ns"] = machine.core_switch_ns;
  out["launch_ns"] = machine.launch_ns;
  if (machine.launch_copy.is_given()) out["launch_copy_gb_per_s"] = json_of(machine.launch_copy);
  out["step_ns"] = machine.step_ns;
  out["copy_gb_per_s"] = json_of(machine.copy);
  out["reduce_gb_per_s"] = json_of(machine.reduce);
  out["pack_gb_per_s"] = json_of(machine.pack);
  out["unpack_gb_per_s"] = json_of(machine.unpack);
  out["reduce_packets_gb_per_s"] = json_of(machine.reduce_packets);
  if (machine.rank_gb_per_s > 0) out["rank_gb_per_s"] = machine.rank_gb_per_s;
  if (machine.host_gb_per_s > 0) out["host_gb_per_s"] = machine.host_gb_per_s;
  out["links"] = std::move(links);
  return out.dump({.indent = 1, .invalid = InvalidUtf8::replace}) + "\n";
}

}  // namespace tranship
