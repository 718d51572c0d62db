// Private: What a new target may take the place of: things of its own kind, so that a mistyped name costs nothing.
#pragma once

#include <string>

namespace tranship {

/// Each throws `invalid_use` where something stands at `target` that is not to be replaced.
void check_replaceable_npy(const std::string& target);
/// An archive of one member, which is a .npy file.
void check_replaceable_npz(const std::string& target);
void check_replaceable_safetensors(const std::string& target);
/// Bare elements look like nothing: any regular file will do.
void check_replaceable_raw(const std::string& target);
/// A directory must hold a manifest, of parts or of tensors, the files that it names, and nothing else, in
/// particular no other directories.
void check_replaceable_directory(const std::string& target);

}  // namespace tranship
