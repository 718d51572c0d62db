// Golden files: text that a test compares with tests/golden/<name>. TRANSHIP_UPDATE_GOLDEN=1 writes the files instead.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace tranship::test {

::testing::AssertionResult matches_golden(const std::string& name, const std::string& text);

}  // namespace tranship::test
