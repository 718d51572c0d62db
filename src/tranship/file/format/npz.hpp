// Private: Members of .npz files: "data.npz", which has one, or "data.npz:weights", the member "weights.npy".
//
// A stored member is read where it lies in the archive, and its checksum is that of a stretch of the archive's file. A
// deflated one is inflated once, into a file without a name, and its checksum is checked then.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tranship/file/format/formats.hpp>

namespace tranship {

struct NpzName {
  std::string archive;
  std::optional<std::string> member;
};

/// What a path means: empty where it names no .npz file. Whatever exists under the whole path is that.
std::optional<NpzName> npz_name_of(const std::string& path);

/// The only member of an archive that is written: "arr_0.npy" where the name says none, as NumPy's savez calls it.
/// Throws `invalid_use`.
std::string npz_member_name(const NpzName& name);

/// The header of a member. Fails with `io`, `bad_file`, `unsupported` and `invalid_use` (which member?), naming both.
Result<NpyHeader> read_npz_header(const NpzName& name);

/// Opens a member: packed, where it is deflated. `layout` is as of open_parts. Fails likewise.
Result<OpenArray> open_npz(const NpzName& name, const std::optional<ArraySpec>& layout);

/// Inflates a member that was opened packed, and lets its part lie there. Throws likewise.
void unpack_npz(const NpzName& name, const std::string& folder, StoredParts& array);

}  // namespace tranship
