// NDSL's own answers. A subset lies in tests/fixtures/ndsl; all of them are read when TRANSHIP_CONFORMANCE_DIR names
// the folder that holds them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tranship/file/format/zip.hpp>

namespace tranship::test {

std::string ndsl_path(const std::string& name);
/// The bytes of one file. Throws where there is none.
std::string read_ndsl(const std::string& name);

/// The arrays of an .npz file.
class NdslArrays {
 public:
  explicit NdslArrays(const std::string& name);

  bool has(const std::string& name) const;
  /// The elements, in C order.
  std::string elements(const std::string& name) const;

 private:
  std::string bytes_;
  std::span<const std::byte> archive_;
  std::vector<ZipMember> members_;
};

}  // namespace tranship::test
