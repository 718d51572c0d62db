// Private: Members of .npz files: "data.npz", which has one, or "data.npz:weights", the member "weights.npy".
//
// A stored member is read in place in the archive, and its checksum covers a stretch of the archive's file. A deflated
// member is inflated once, into a nameless file, and its checksum is checked then.
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

/// Splits a path into archive and member; empty if it does not name a .npz file. A file with the whole path as its name
/// takes precedence.
std::optional<NpzName> npz_name_of(const std::string& path);

/// Returns the name of the only member of an archive that is written: "arr_0.npy" if `name` has none, as NumPy's savez
/// does. Throws `invalid_use`.
std::string npz_member_name(const NpzName& name);

/// Reads the header of a member. Fails with `io`, `bad_file`, `unsupported` and `invalid_use` (no member is named and
/// the archive has several), naming archive and member.
Result<NpyHeader> read_npz_header(const NpzName& name);

/// Opens a member; a deflated member is opened packed. `layout` is that of open_parts. Fails as read_npz_header does.
Result<OpenArray> open_npz(const NpzName& name, const std::optional<ArraySpec>& layout);

/// Inflates a member that was opened packed, and makes its part lie in the new file. Throws these errors, too.
void unpack_npz(const NpzName& name, const std::string& folder, StoredParts& array);

}  // namespace tranship
