// Private: Bare elements: a file that says nothing of itself.
#pragma once

#include <tranship/file/format/formats.hpp>

namespace tranship {

/// Opens a file of bare elements of this machine's byte order, in the order of the layout, which has one part. Fails
/// with `mismatch` where the file has not exactly the length that it says, and with `io`, `bad_file`, `unsupported` and
/// `invalid_use`.
Result<OpenArray> open_raw(const ArraySource& source);

}  // namespace tranship
