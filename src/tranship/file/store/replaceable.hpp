// Private: checks that a new target replaces only something of its own kind, so that a mistyped name destroys nothing.
#pragma once

#include <string>

namespace tranship {

/// Each function throws `invalid_use` if something at `target` must not be replaced.
void check_replaceable_npy(const std::string& target);
/// Accepts an archive of one member, which is a .npy file.
void check_replaceable_npz(const std::string& target);
void check_replaceable_safetensors(const std::string& target);
/// Bare elements cannot be recognised, so any regular file is accepted.
void check_replaceable_raw(const std::string& target);
/// Accepts a directory that holds a manifest, of parts or of tensors, the files that it names, and nothing else; in
/// particular no other directories.
void check_replaceable_directory(const std::string& target);

}  // namespace tranship
