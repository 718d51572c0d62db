#include "tranship/file/format/safetensors_index.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/format/json_events.hpp>

namespace tranship {
namespace {

constexpr std::string_view total_key = "total_size";

/// Accepts a plain name in the folder of the index that can stand in a message.
void check_file_name(const std::string& name, std::string_view where) {
  constexpr std::size_t length_max = 255;
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~' && c != '/' && c != '\\'; });
  if (name.empty() || name.size() > length_max || !plain || name.front() == '.' || name.find("..") != std::string::npos)
    throw_error(
        ErrorCode::bad_file,
        "{}: '{}' is not the name of a file beside the index: 1 to {} printable characters, no '/', no '\\', no "
        "'..', no '.' in front",
        where, printable(name), length_max);
}

class IndexEvents final : public JsonEvents {
 public:
  void start_object() override {
    if (place_ == Place::document) return go(Place::index);
    if (place_ == Place::index && key_ == "metadata") return go(Place::metadata);
    if (place_ == Place::index && key_ == "weight_map") return go(Place::weight_map);
    return JsonEvents::start_object();
  }

  void key(std::string& name) override {
    key_ = name;
    if (place_ == Place::index) start_member();
    if (place_ == Place::weight_map) {
      if (static_cast<Index>(index_.tensors.size()) == safetensors_index_tensors_max)
        throw_error(ErrorCode::unsupported, "more than {} tensors in an index", safetensors_index_tensors_max);
      index_.tensors.push_back({.tensor = std::move(name)});
    }
  }

  void end_object() override { return go(place_ == Place::index ? Place::end : Place::index); }

  void string(std::string& text) override {
    if (place_ == Place::metadata && key_ != total_key) return keep(json_string(text));
    if (place_ != Place::weight_map) return JsonEvents::string(text);
    check_file_name(text, where());
    index_.tensors.back().file = std::move(text);
  }

  void number_unsigned(std::uint64_t value) override {
    if (place_ != Place::metadata) return JsonEvents::number_unsigned(value);
    if (key_ != total_key) return keep(fmt::format("{}", value));
    return set_total(index_in_json(value, where()));
  }

  void number_float(double value, const std::string& text) override {
    if (place_ != Place::metadata) return JsonEvents::number_float(value, text);
    if (key_ != total_key) return keep(text);
    // Some writers make the sum a float. Beyond 2**53 it is not exact.
    if (!(value >= 0 && value <= 0x1p53 && std::trunc(value) == value)) return JsonEvents::number_float(value, text);
    return set_total(static_cast<Index>(value));
  }

  void number_integer(std::int64_t value) override {
    if (place_ != Place::metadata || key_ == total_key) return JsonEvents::number_integer(value);
    return keep(fmt::format("{}", value));
  }
  void boolean(bool value) override {
    if (place_ != Place::metadata || key_ == total_key) return JsonEvents::boolean(value);
    return keep(value ? "true" : "false");
  }
  void null() override {
    if (place_ != Place::metadata || key_ == total_key) return JsonEvents::null();
    return keep("null");
  }

  SafetensorsIndex finish() {
    if (weight_map_seen_ == 0) throw_error(ErrorCode::bad_file, "the index: weight_map is missing");
    std::vector<std::string_view> names;
    for (const auto& [tensor, file] : index_.tensors) names.push_back(tensor);
    refuse_equal(std::move(names), "tensor");
    names.clear();
    for (const auto& [name, value] : index_.metadata) names.push_back(name);
    refuse_equal(std::move(names), "metadata");
    return std::move(index_);
  }

 protected:
  std::string expected() const override {
    const bool total = place_ == Place::metadata && key_ == total_key;
    const char* what = place_ == Place::weight_map ? "a string"
                       : total                     ? "a whole number of 0 or more"
                       : place_ == Place::metadata ? "a string, a number, true, false or null"
                       : place_ == Place::end      ? "the end"
                                                   : "an object";
    return fmt::format("{}: expected {}", where(), what);
  }

 private:
  enum class Place : std::uint8_t { document, index, metadata, weight_map, end };

  void go(Place place) { place_ = place; }

  void keep(std::string value) { index_.metadata.emplace_back(key_, std::move(value)); }

  void set_total(Index value) {
    if (index_.total_size_bytes) throw_error(ErrorCode::bad_file, "{} is given twice", where());
    index_.total_size_bytes = value;
  }

  std::string where() const {
    switch (place_) {
      case Place::document:
      case Place::end:
        return "the index";
      case Place::index:
        return fmt::format("the index: '{}'", printable(key_, name_chars_max));
      case Place::metadata:
        return fmt::format("metadata: '{}'", printable(key_, name_chars_max));
      case Place::weight_map:
        return fmt::format("weight_map: '{}'", printable(key_, name_chars_max));
    }
    return "";
  }

  void start_member() {
    int* seen = key_ == "metadata" ? &metadata_seen_ : key_ == "weight_map" ? &weight_map_seen_ : nullptr;
    if (!seen)
      throw_error(ErrorCode::unsupported, "the index: unknown key '{}', its keys are metadata and weight_map",
                  printable(key_, name_chars_max));
    if ((*seen)++ > 0) throw_error(ErrorCode::bad_file, "the index: {} is given twice", key_);
  }

  SafetensorsIndex index_;
  Place place_ = Place::document;
  std::string key_;
  int metadata_seen_ = 0, weight_map_seen_ = 0;
};

SafetensorsIndex read(std::string_view text) {
  if (static_cast<Index>(text.size()) > safetensors_index_bytes_max)
    throw_error(ErrorCode::unsupported, "an index of {}: at most {} are read", amount(text.size(), "byte"),
                safetensors_index_bytes_max);
  IndexEvents events;
  read_json(text, events);
  return events.finish();
}

std::string text_of(const SafetensorsIndex& index) {
  std::string metadata, tensors;
  const auto add = [](std::string& object, const std::string& key, const std::string& value) {
    object += fmt::format("{}\n    {}: {}", object.empty() ? "" : ",", json_string(key), value);
  };
  if (index.total_size_bytes) add(metadata, std::string(total_key), fmt::format("{}", *index.total_size_bytes));
  for (const auto& [key, value] : index.metadata) add(metadata, key, value);
  for (const auto& [tensor, file] : index.tensors) add(tensors, tensor, json_string(file));
  const auto object = [](const std::string& members) { return members.empty() ? "{}" : "{" + members + "\n  }"; };
  return fmt::format("{{\n  \"metadata\": {},\n  \"weight_map\": {}\n}}\n", object(metadata), object(tensors));
}

}  // namespace

std::vector<std::string> SafetensorsIndex::files() const {
  std::vector<std::string> out;
  std::unordered_set<std::string_view> seen;
  for (const auto& [tensor, file] : tensors)
    if (seen.insert(file).second) out.push_back(file);
  return out;
}

std::string safetensors_shard_name(Index shard, Index shard_count) {
  if (shard < 0 || shard >= shard_count)
    throw_error(ErrorCode::invalid_use, "shard {} does not exist: there are {}, numbered from 0", shard, shard_count);
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shard_count);
}

Result<SafetensorsIndex> parse_safetensors_index(std::string_view text) {
  return attempt([&] { return read(text); });
}

std::string format_safetensors_index(const SafetensorsIndex& index) {
  std::string out = text_of(index);
  const Result<SafetensorsIndex> again = parse_safetensors_index(out);
  if (!again) throw_error(ErrorCode::invalid_use, "this cannot be written as an index: {}", again.error().message());
  if (!(again.value() == index))
    throw_error(ErrorCode::invalid_use,
                "this cannot be written as an index: its metadata would change when it is read again");
  return out;
}

}  // namespace tranship
