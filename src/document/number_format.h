#pragma once

#include <string>
#include <string_view>

namespace reprise::document {

// The format code of a number format that every workbook has (ECMA-376 part 1, 18.8.30); "General" for the others.
// Dates whose order depends on the reader's country are written as ISO 8601 has them.
std::string_view BuiltInFormat(unsigned id);

// A number as a cell shows it: "FormatNumber("17816.5", "d-mmm-yy", false)" is "11-Oct-48". `value` is what the file
// has and comes back unchanged where it is no number. `from_1904`: the workbook counts its days from 1904 and not from
// 1900.
std::string FormatNumber(const std::string& value, std::string_view code, bool from_1904);

}  // namespace reprise::document
