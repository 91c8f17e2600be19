#include "tools/calculator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

// Not muParser, because Debian's links libgomp, which costs an idle server 0.8 MB, and lacks % and **.
constexpr std::size_t kMaxLength = 4096;
constexpr int kMaxExpressionDepth = 200;  // bounds the recursion

struct Function {
  std::string_view name;
  double (*evaluate)(double);
};
constexpr std::array<Function, 11> kFunctions{{
    {"abs", [](double x) { return std::abs(x); }},
    {"ceil", [](double x) { return std::ceil(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"floor", [](double x) { return std::floor(x); }},
    {"ln", [](double x) { return std::log(x); }},
    {"log", [](double x) { return std::log10(x); }},
    {"round", [](double x) { return std::round(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"tan", [](double x) { return std::tan(x); }},
}};

// Recursive descent over one expression. Grammar:
//   sum = product (("+"|"-") product)*     product = signed (("*"|"/"|"%") signed)*
//   signed = ("-"|"+") signed | power      power = atom (("^"|"**") signed)?
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<double> Parse() {
    auto value = TRY(Sum());
    SkipSpace();
    if (at_ < text_.size()) return Unexpected();
    return value;
  }

 private:
  Result<double> Sum() {
    auto left = Product();
    while (left) {
      const bool plus = Take("+");
      if (!plus && !Take("-")) break;
      const auto right = TRY(Product());
      left = Finite(plus ? *left + right : *left - right);
    }
    return left;
  }

  Result<double> Product() {
    auto left = Signed();
    while (left) {
      const char op = Take("*") ? '*' : Take("/") ? '/' : Take("%") ? '%' : '\0';
      if (op == '\0') break;
      const auto right = TRY(Signed());
      if (op != '*' && right == 0) return Fail(ErrorCode::kInvalidArgument, "division by zero");
      left = Finite(op == '*' ? *left * right : op == '/' ? *left / right : std::fmod(*left, right));
    }
    return left;
  }

  Result<double> Signed() {
    const Nesting nesting(*this);
    if (nesting.too_deep()) return Fail(ErrorCode::kInvalidArgument, "the expression is nested too deeply");
    if (Take("+")) return Signed();
    if (!Take("-")) return Power();
    auto value = Signed();
    return value ? Result<double>(-*value) : value;
  }

  Result<double> Power() {
    const auto base = Atom();
    if (!base || (!Take("^") && !Take("**"))) return base;
    const auto exponent = TRY(Signed());
    if (*base == 0 && exponent < 0) return Fail(ErrorCode::kInvalidArgument, "division by zero");
    return Finite(std::pow(*base, exponent));
  }

  Result<double> Atom() {
    SkipSpace();
    if (at_ == text_.size()) return Fail(ErrorCode::kInvalidArgument, "the expression ends too early");
    const char c = text_[at_];
    if (IsAsciiDigit(c) || c == '.') return Number();
    if (IsAsciiLetter(c)) return Named();
    if (!Take("(")) return Unexpected();
    const auto value = Sum();
    if (value && !Take(")")) return Missing(")");
    return value;
  }

  Result<double> Number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status == std::errc::result_out_of_range) return Fail(ErrorCode::kInvalidArgument, "a number is out of range");
    if (status != std::errc()) return Unexpected();
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  Result<double> Named() {
    const std::size_t from = at_;
    while (at_ < text_.size() && IsAsciiAlnum(text_[at_])) ++at_;
    const std::string_view name = text_.substr(from, at_ - from);
    if (name == "pi") return std::numbers::pi;
    if (name == "e") return std::numbers::e;
    if (name == "min" || name == "max") return Extreme(name);
    const auto* const function = std::ranges::find(kFunctions, name, &Function::name);
    if (function == kFunctions.end()) {
      return Fail(ErrorCode::kInvalidArgument, "unknown name \"" + std::string(name.substr(0, 40)) + "\"");
    }
    const auto values = TRY(CallArguments());
    if (values.size() != 1) {
      return Fail(ErrorCode::kInvalidArgument, std::string(name) + " takes exactly one argument");
    }
    return Finite(function->evaluate(values.front()));
  }

  Result<double> Extreme(std::string_view name) {
    const auto values = TRY(CallArguments());
    return name == "min" ? *std::ranges::min_element(values) : *std::ranges::max_element(values);
  }

  // "(" sum ("," sum)* ")"
  Result<std::vector<double>> CallArguments() {
    if (!Take("(")) return Fail(Missing("(").error());
    std::vector<double> values;
    do {
      const auto value = TRY(Sum());
      values.push_back(value);
    } while (Take(","));
    if (!Take(")")) return Fail(Missing(")").error());
    return values;
  }

  static Result<double> Finite(double value) {
    if (std::isnan(value)) return Fail(ErrorCode::kInvalidArgument, "the result is not a real number");
    if (std::isinf(value)) return Fail(ErrorCode::kInvalidArgument, "the result is too large");
    return value;
  }

  Result<double> Missing(std::string_view what) const {
    return Fail(ErrorCode::kInvalidArgument,
                "expected \"" + std::string(what) + "\" at position " + std::to_string(at_ + 1));
  }

  Result<double> Unexpected() const {
    const char c = text_[at_];
    const std::string shown = c > ' ' && c < 0x7f ? " \"" + std::string(1, c) + "\"" : "";
    return Fail(ErrorCode::kInvalidArgument,
                "unexpected character" + shown + " at position " + std::to_string(at_ + 1));
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || (text_[at_] >= '\t' && text_[at_] <= '\r'))) ++at_;
  }

  // Does not take "*" out of "**".
  bool Take(std::string_view token) {
    SkipSpace();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(token) || (token == "*" && rest.starts_with("**"))) return false;
    at_ += token.size();
    return true;
  }

  // Counts the recursion; all of it passes through Signed, which holds one of these.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    bool too_deep() const { return parser_.depth_ > kMaxExpressionDepth; }

   private:
    Parser& parser_;
  };

  const std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<double> EvaluateExpression(std::string_view expression) {
  if (expression.size() > kMaxLength) return Fail(ErrorCode::kInvalidArgument, "the expression is too long");
  return Parser(expression).Parse();
}

std::string FormatNumber(double value) {
  if (value == 0) return "0";  // not "-0"
  std::array<char, 64> text{};
  constexpr double kExact = 9007199254740992.0;  // 2^53: whole numbers up to here are exact
  const bool whole = std::trunc(value) == value && std::abs(value) <= kExact;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.15g", value);
  return text.data();
}

}  // namespace reprise
