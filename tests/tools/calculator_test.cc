#include "tools/calculator.h"

#include <string>
#include <utility>

#include "support/test.h"

namespace reprise::calculator_test {
namespace {

std::string Calculate(const std::string& expression) {
  const auto value = EvaluateExpression(expression);
  return value ? FormatNumber(*value) : "error: " + value.error().message;
}

}  // namespace

TEST_CASE("Calculator: expressions have their value", "[tools]") {
  const auto [expression, value] = GENERATE(table<std::string, std::string>({
      {"2+2", "4"},
      {"2 + 3 * 4", "14"},
      {"(2 + 3) * 4", "20"},
      {"0.1+0.2", "0.3"},
      {"1/3", "0.333333333333333"},
      {"10 % 4", "2"},
      {"-7 % 3", "-1"},
      {"2^10", "1024"},
      {"2**10", "1024"},
      {"2^3^2", "512"},
      {"-2^2", "-4"},
      {"2^-1", "0.5"},
      {"--3", "3"},
      {"2 - -3", "5"},
      {"1.5e3", "1500"},
      {".5 + 1.", "1.5"},
      {"sqrt(16) + abs(-2)", "6"},
      {"min(3, 1, 2) + max(4, 5)", "6"},
      {"round(2.5) + floor(2.9) + ceil(2.1)", "8"},
      {"ln(e) + log(1000) + exp(0)", "5"},
      {"sin(0) + cos(0) + tan(0)", "1"},
      {"round(pi * 1000)", "3142"},
      {"0 * -1", "0"},
      {"9007199254740992", "9007199254740992"},
      {"10^20", "1e+20"},
  }));
  CHECK(Calculate(expression) == value);
}

TEST_CASE("Calculator: an expression without a value is an error with a message", "[tools]") {
  const auto [expression, message] = GENERATE(table<std::string, std::string>({
      {"1/0", "division by zero"},
      {"1 % 0", "division by zero"},
      {"0^-1", "division by zero"},
      {"sqrt(-1)", "the result is not a real number"},
      {"10^400", "the result is too large"},
      {"1e999", "a number is out of range"},
      {"", "the expression ends too early"},
      {"2 +", "the expression ends too early"},
      {"(2", "expected \")\" at position 3"},
      {"2)", "unexpected character \")\" at position 2"},
      {"2 $ 3", "unexpected character \"$\" at position 3"},
      {"sin 3", "expected \"(\" at position 5"},
      {"sqrt(1, 2)", "sqrt takes exactly one argument"},
      {"min()", "unexpected character \")\" at position 5"},
      {"system(1)", "unknown name \"system\""},
      {"2 3", "unexpected character \"3\" at position 3"},
      {"0x10", "unexpected character \"x\" at position 2"},
  }));
  CHECK(Calculate(expression) == "error: " + message);
}

TEST_CASE("Calculator: depth and length are bounded", "[tools]") {
  CHECK(Calculate(std::string(4000, '(')) == "error: the expression is nested too deeply");
  CHECK(Calculate(std::string(4000, '-') + "1") == "error: the expression is nested too deeply");
  CHECK(Calculate("2" + std::string(4000, '^')) != "2");
  CHECK(Calculate(std::string(5000, '1')) == "error: the expression is too long");
}

}  // namespace reprise::calculator_test
