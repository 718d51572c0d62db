// Private: rules for files and directories that replace others: which path a target names, and what may be replaced.
#pragma once

#include <string>
#include <string_view>

#include <tranship/base/result.hpp>

namespace tranship {

/// Returns the target without symbolic links, as far as it exists, and with a name at its end. Throws `invalid_use`,
/// also for a link that leads nowhere.
std::string resolved_target(const std::string& target);

/// Returns the folder of a path.
std::string folder_of(const std::string& path);

/// Returns ".<name>.<suffix>" beside `target`; a long name is cut so that the whole fits in NAME_MAX.
std::string name_beside(const std::string& target, std::string_view suffix);

/// Waits until the new name in the folder is on the disk. Fails with `io`; the message says that the target is in
/// place.
Result<void> sync_what_took_its_place(const std::string& target);

/// Returns six letters and digits that are very likely unused.
std::string random_letters();

/// Returns true if `target` exists. Throws `invalid_use` unless it is an empty directory, or one that has the file
/// `marker`.
bool directory_may_be_replaced(const std::string& target, const std::string& marker);

/// Returns true if `target` exists. Throws `invalid_use` unless it is a regular file.
bool file_may_be_replaced(const std::string& target);

/// Throws if a file made beside `target` could not replace it in the end: `io` if this process may not read and write
/// the folder, or write to a directory that must move away; `invalid_use` for a mount point, for the current directory,
/// for a path marked as immutable or append-only, and for a path of another user in a sticky folder.
void check_replacing_is_permitted(const std::string& target);

}  // namespace tranship
