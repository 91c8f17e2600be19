#include "document/number_format.h"

#include <string>
#include <vector>

#include "support/test.h"

namespace reprise::document {
namespace {

struct Shown {
  std::string value, code, text;
};

TEST_CASE("FormatNumber: a number is shown as its cell shows it", "[document]") {
  const std::vector<Shown> cells = {{"1234.5", "#,##0.00", "1,234.50"},
                                    {"-1234.5", "#,##0.00", "-1,234.50"},
                                    {"0.12", "0%", "12%"},
                                    {"0.12345", "0.00%", "12.35%"},
                                    {"12345", "0.00E+00", "1.23E+04"},
                                    {"1234", "0.0E+00", "1.2E+03"},
                                    {"12345", "##0.0E+0", "12.3E+3"},
                                    {"-5", "#,##0;(#,##0)", "(5)"},
                                    {"1234", "[$$-409]#,##0", "$1,234"},
                                    {"3.5", "[$€-2] 0.00", "€ 3.50"},
                                    {"42", "00000", "00042"},
                                    {"5551234", "000-0000", "555-1234"},
                                    {"0.30000000000000004", "General", "0.3"},
                                    {"3.25", "# ?/?", "3 1/4"},
                                    {"0.5", "# ?/?", "1/2"},
                                    {"1234567", "#,##0,", "1,235"},
                                    {"1234567", "0.0,,\"M\"", "1.2M"},
                                    {"1234567", "#,##0,.0", "1,234.6"},
                                    {"1234567", "0,.0", "1234.6"},
                                    {"12345678", "0,,.0\"M\"", "12.3M"},
                                    {"0", "0;0;-", "-"},
                                    {"200", "[>100]\"big\";0", "big"},
                                    {"50", "[>100]\"big\";0", "50"},
                                    {"1.0625", "[h]:mm:ss", "25:30:00"},
                                    {"0.001047454", "mm:ss.0", "01:30.5"},
                                    {"43890", "yyyy-mm-dd", "2020-02-29"},
                                    {"43890", "d-mmm-yy", "29-Feb-20"},
                                    {"43890", "mmmmm", "F"},
                                    {"-5", "0", "-5"},
                                    {"-0.2", "0", "0"},
                                    {"0.5", ".0#", ".5"},
                                    {"5", "0 \"kg\"", "5 kg"},
                                    {"5", "_(0_)", " 5 "},
                                    {"1234567", "#", "1234567"},
                                    {"0", "#", ""},
                                    {"-3", "0.00;[Red]-0.00", "-3.00"},
                                    {"1", "h:mm AM/PM", "12:00 AM"},
                                    {"2", "m/d/yyyy", "1/2/1900"},
                                    {"1e300", "General", "1e+300"},
                                    {"12345678901234", "General", "12345678901234"},
                                    {"999999.9", "#,##0", "1,000,000"}};
  for (const Shown& cell : cells) {
    INFO(cell.value << " as " << cell.code);
    CHECK(FormatNumber(cell.value, cell.code, false) == cell.text);
  }
}

TEST_CASE("FormatNumber: rounds the decimal number of 15 digits, half away from zero", "[document]") {
  const std::vector<Shown> cells = {{"0.5", "0", "1"},
                                    {"2.5", "0", "3"},
                                    {"1234.5", "0", "1235"},
                                    {"1234.5", "#,##0", "1,235"},
                                    {"-2.5", "0", "-3"},
                                    {"-1234.5", "#,##0;(#,##0)", "(1,235)"},
                                    {"0.125", "0.00", "0.13"},
                                    {"1.005", "0.00", "1.01"},
                                    {"2.675", "0.00", "2.68"},
                                    {"10.045", "#,##0.00", "10.05"},
                                    {"1.005", "[$€-407]#,##0.00", "€1.01"},
                                    {"0.285", "0%", "29%"},
                                    {"0.0005", "0.0%", "0.1%"},
                                    {"1234500", "#,##0,", "1,235"},
                                    {"0.4999999999999999", "0", "1"},  // 0.5 in 15 digits
                                    {"0.49999", "0", "0"},
                                    {"9.995", "0.00", "10.00"},
                                    {"99.5", "0", "100"},
                                    {"0.005", "#.##", ".01"},
                                    {"0.004", "0.00", "0.00"},
                                    {"-0.004", "0.00", "0.00"},
                                    {"12500", "0E+00", "1E+04"},
                                    {"25000", "0E+00", "3E+04"},
                                    {"99950", "0.00E+00", "1.00E+05"},
                                    {"999960", "##0.0E+0", "1.0E+6"},
                                    {"0.00012345", "0.000E+00", "1.235E-04"},
                                    {"123456789012345678", "0", "123456789012346000"},
                                    {"1e22", "0", "10000000000000000000000"},
                                    {"1e-300", "0.00", "0.00"}};
  for (const Shown& cell : cells) {
    INFO(cell.value << " as " << cell.code);
    CHECK(FormatNumber(cell.value, cell.code, false) == cell.text);
  }
}

TEST_CASE("FormatNumber: counts days from 1904 if the workbook does", "[document]") {
  const std::vector<Shown> cells = {{"17816.607951388887", "d-m-y", "11-10-52"},
                                    {"17816.607951388887", "DDDD-MMMM-YYYY", "Saturday-October-1952"},
                                    {"17816.607951388887", "hh:mm:ss a/p", "02:35:27 p"},
                                    {"17816.607951388887", "h:m:s.000 A/P", "2:35:27.000 P"},
                                    {"36191.170208437499", "ddd-mmm-yyy", "Sat-Feb-2003"},
                                    {"17816.607951388887", "d \"days\" h", "11 days 14"},
                                    {"17816.607951388887", "d \\d\\a\\y\\s h", "11 days 14"},
                                    {"44196", "dd-mm-yyyy", "01-01-2025"}};
  for (const Shown& cell : cells) {
    INFO(cell.value << " as " << cell.code);
    CHECK(FormatNumber(cell.value, cell.code, true) == cell.text);
  }
}

TEST_CASE("FormatNumber: invalid numbers, dates and formats stay readable", "[document]") {
  CHECK(FormatNumber("n/a", "0.00", false) == "n/a");
  CHECK(FormatNumber("", "0.00", false).empty());
  CHECK(FormatNumber("nan", "0.00", false) == "nan");
  CHECK(FormatNumber("-1", "yyyy-mm-dd", false) == "-1");
  CHECK(FormatNumber("1e12", "yyyy-mm-dd", false) == "1000000000000");
  for (const char* code : {"", ";", ";;;", "[", "\"", "\\", "_", "*", "[$", "0.", ".", "/", "E+", "?/",
                           "yyyyyyyyyyyyyyyyyyyyy", "0.000000000000000000000000000000000000000000000"}) {
    INFO(code);
    for (const char* value : {"1", "-1", "0", "1e308", "-1e308", "1e-308", "45000.5"})
      CHECK(FormatNumber(value, code, false).size() < 500);
  }
}

TEST_CASE("BuiltInFormat: dates whose order depends on the country use ISO 8601", "[document]") {
  CHECK(FormatNumber("43890", BuiltInFormat(14), false) == "2020-02-29");
  CHECK(FormatNumber("43890.75", BuiltInFormat(22), false) == "2020-02-29 18:00");
  CHECK(FormatNumber("0.3", BuiltInFormat(9), false) == "30%");
  CHECK(BuiltInFormat(4711) == "General");
}

}  // namespace
}  // namespace reprise::document
