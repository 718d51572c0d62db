// Private: What files and directories that replace others share: which path is meant, and what may be replaced.
#pragma once

#include <string>
#include <string_view>

#include <tranship/base/result.hpp>

namespace tranship {

/// The target without symbolic links where it exists, and with a name at its end. Throws `invalid_use`, also for a link
/// that leads nowhere.
std::string resolved_target(const std::string& target);

/// The folder that a path lies in.
std::string folder_of(const std::string& path);

/// ".<name>.<suffix>" beside `target`; a long name is cut so that the whole fits in NAME_MAX.
std::string name_beside(const std::string& target, std::string_view suffix);

/// Waits until the new name in the folder is on the disk. Fails with `io`, which says that the target is in place.
Result<void> sync_what_took_its_place(const std::string& target);

/// Six letters and digits that are very likely new.
std::string random_letters();

/// True where `target` exists; throws `invalid_use` where it is not an empty directory, or one that `marker`
/// makes one of ours.
bool directory_may_be_replaced(const std::string& target, const std::string& marker);

/// True where `target` exists; throws `invalid_use` where it is not a regular file.
bool file_may_be_replaced(const std::string& target);

/// Throws where what is made beside `target` could not take its place in the end: `io` where this process may not read
/// and write the folder, or to a directory that must move out of the way; `invalid_use` for a mount point, for the
/// current directory, for what is marked as immutable or append-only, and for what belongs to another user in a sticky
/// folder.
void check_replacing_is_permitted(const std::string& target);

}  // namespace tranship
