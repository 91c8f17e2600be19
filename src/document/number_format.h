#pragma once

#include <string>
#include <string_view>

namespace reprise::document {

// The code of a built-in number format (ECMA-376 part 1, 18.8.30); "General" for others. Dates whose order depends on
// the reader's country use the ISO 8601 order.
std::string_view BuiltInFormat(unsigned id);

// A number as a cell shows it: FormatNumber("17816.5", "d-mmm-yy", false) is "11-Oct-48". `value` is the file's text,
// returned unchanged if it is not a number. `from_1904` if the workbook counts days from 1904 instead of 1900.
std::string FormatNumber(const std::string& value, std::string_view code, bool from_1904);

}  // namespace reprise::document
