// Private: layouts as JSON values, and the strict reading that every format of tranship shares. `where` is the path of
// a value ("grid.extents[1]"), which errors name.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/json.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship {

/// The members of an object, each asked for by name; finish() refuses what was not asked for, for_each_other() tells
/// it.
class JsonObject {
 public:
  JsonObject(const Json& value, std::string where);

  /// The member, or nullptr when there is none.
  const Json* find(std::string_view key);
  const Json& at(std::string_view key);
  bool has(std::string_view key) const { return value_.contains(key); }
  /// The path of a member.
  std::string path(std::string_view key) const;
  void finish() const;
  /// The path of the object.
  const std::string& where() const { return where_; }
  /// Calls f(key, value) for the members that were not asked for.
  template <class F>
  void for_each_other(F&& f) const {
    for (const auto& [key, value] : value_.members())
      if (!known_.contains(key)) f(key, value);
  }

 private:
  const Json& value_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

Index index_of(const Json& value, std::string_view where);
std::vector<Index> index_list_of(const Json& value, std::string_view where);
/// At most dims_max numbers.
Indices indices_of(const Json& value, std::string_view where);
const std::string& word_of(const Json& value, std::string_view where);
bool flag_of(const Json& value, std::string_view where);

Json json_of(const Indices& values);
Json json_of(const Distribution& distribution);
Json json_of(const ArraySpec& spec);
Distribution distribution_of(const Json& value, std::string_view where = "");
ArraySpec array_spec_of(const Json& value, std::string_view where = "");

}  // namespace tranship
