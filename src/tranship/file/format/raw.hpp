// Private: Files of bare elements, which have no description of their own.
#pragma once

#include <tranship/file/format/formats.hpp>

namespace tranship {

/// Opens a file of bare elements in this machine's byte order, in the order of the layout, which has one part. Fails
/// with `mismatch` if the file does not have exactly the length that the layout implies, and with `io`, `bad_file`,
/// `unsupported` and `invalid_use`.
Result<OpenArray> open_raw(const ArraySource& source);

}  // namespace tranship
