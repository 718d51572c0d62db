// Plans that MSCCL++ wrote, and what is known of each: all of them where TRANSHIP_CONFORMANCE_DIR says where they are,
// else the part that the tree holds.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "support/text_file.hpp"

namespace tranship::test {

struct PlanCase {
  std::string name;  ///< without the folder
  std::string path;
  std::string collective;
  std::string result;  ///< begins with ok, ran or DEADLOCK; empty for plans of the old format
};

inline std::string mscclpp_folder() {
  const char* const all = std::getenv("TRANSHIP_CONFORMANCE_DIR");
  return all ? std::string(all) + "/mscclpp" : test_path("fixtures/mscclpp");
}

/// A plan that the tree holds: what a test asks for by its name is there everywhere.
inline std::string mscclpp_plan(const std::string& name) {
  return test_path("fixtures/mscclpp/plans/" + name + ".json");
}

inline std::vector<PlanCase> mscclpp_plans() {
  std::vector<PlanCase> out;
  std::ifstream index(mscclpp_folder() + "/INDEX.md");
  for (std::string line; std::getline(index, line);) {
    std::vector<std::string> cells;
    for (std::size_t from = 1; from < line.size();) {
      const std::size_t to = std::min(line.find('|', from), line.size());
      std::string cell = line.substr(from, to - from);
      cell.erase(0, std::min(cell.find_first_not_of(' '), cell.size()));
      cell.erase(cell.find_last_not_of(' ') + 1);
      cells.push_back(std::move(cell));
      from = to + 1;
    }
    if (cells.size() < 5 || !cells[0].ends_with(".json")) continue;
    out.push_back({.name = cells[0],
                   .path = mscclpp_folder() + "/plans/" + cells[0],
                   .collective = cells[2],
                   .result = cells[cells.size() - 2]});
  }
  return out;
}

inline std::vector<PlanCase> old_mscclpp_plans() {
  std::vector<PlanCase> out;
  for (const auto& entry : std::filesystem::directory_iterator(mscclpp_folder() + "/plans_old_format"))
    out.push_back({.name = entry.path().filename(), .path = entry.path()});
  std::sort(out.begin(), out.end(), [](const PlanCase& a, const PlanCase& b) { return a.name < b.name; });
  return out;
}

}  // namespace tranship::test
