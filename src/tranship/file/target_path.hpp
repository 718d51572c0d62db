// What files and directories that replace others have in common: which path is meant, and what may be replaced.
#pragma once

#include <string>
#include <string_view>

namespace tranship {

/// The target without symbolic links where it exists, and with a name at its end. Throws `invalid_use`.
std::string resolved_target(const std::string& target);

/// The folder that a path lies in.
std::string folder_of(const std::string& path);

/// ".<name>.<suffix>" beside `target`; a long name is cut so that the whole fits in NAME_MAX.
std::string name_beside(const std::string& target, std::string_view suffix);

/// Six letters and digits that are very likely new.
std::string random_letters();

/// True where `target` exists; throws `invalid_use` where it is not a directory that `marker` makes one of ours.
bool directory_may_be_replaced(const std::string& target, const std::string& marker);

/// True where `target` exists; throws `invalid_use` where it is not a regular file.
bool file_may_be_replaced(const std::string& target);

}  // namespace tranship
