// Bare elements: a file that says nothing of itself.
#pragma once

#include <string>

#include <tranship/file/part_store.hpp>
#include <tranship/file/reshard.hpp>

namespace tranship {

/// Whether a target of this name holds bare elements: it ends in ".bin" or ".raw".
bool names_raw_file(const std::string& path);

/// Opens a file of bare elements of this machine's byte order, in the order of the layout, which has one part. Fails
/// with `mismatch` where the file has not exactly the length that it says, and with `io`, `bad_file`, `unsupported` and
/// `invalid_use`.
Result<StoredParts> open_raw(const std::string& path, const ArraySpec& layout, const RawForm& form);

}  // namespace tranship
