// Private: layouts as JSON values, and the strict reading that all JSON formats of tranship share. `where` is the path
// of a value ("grid.extents[1]"); errors name it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/json.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship {

/// Reads the members of an object by name. finish() throws for members that were not asked for; for_each_other() lists
/// them.
class JsonObject {
 public:
  JsonObject(const Json& value, std::string where);

  /// Returns the member, or nullptr when there is none.
  const Json* find(std::string_view key);
  const Json& at(std::string_view key);
  bool has(std::string_view key) const { return value_.contains(key); }
  /// Returns the path of a member.
  std::string path(std::string_view key) const;
  void finish() const;
  /// Returns the path of the object.
  const std::string& where() const { return where_; }
  /// Calls f(key, value) for each member that was not asked for.
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
/// Accepts at most dims_max numbers.
Indices indices_of(const Json& value, std::string_view where);
const std::string& word_of(const Json& value, std::string_view where);
bool flag_of(const Json& value, std::string_view where);

Json json_of(const Indices& values);
Json json_of(const Distribution& distribution);
Json json_of(const ArraySpec& spec);
Distribution distribution_of(const Json& value, std::string_view where = "");
ArraySpec array_spec_of(const Json& value, std::string_view where = "");

}  // namespace tranship
