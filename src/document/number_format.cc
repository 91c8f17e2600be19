#include "document/number_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace reprise::document {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr int kMaxDecimals = 30;
constexpr double kMaxDay = 2'958'466;  // the day after 9999-12-31

// A piece of a format code: a repeated letter ("yyyy"), a literal text or a single sign.
struct Token {
  enum class Kind { kDate, kElapsed, kHalfDay, kLiteral, kSign, kText, kGeneral };
  Kind kind;
  std::string text;
};

// Adds the content of square brackets: a colour, a condition, a currency, or hours beyond 24.
void AddBracket(std::string_view inside, std::vector<Token>& tokens, std::string& condition) {
  if (inside.empty()) return;
  const std::string lower = LowerCase(inside);
  if (lower.find_first_not_of(lower[0]) == std::string::npos &&
      (lower[0] == 'h' || lower[0] == 'm' || lower[0] == 's')) {
    tokens.push_back({Token::Kind::kElapsed, lower});
  } else if (inside[0] == '$') {
    tokens.push_back({Token::Kind::kLiteral, std::string(inside.substr(1, inside.find('-') - 1))});
  } else if (inside[0] == '<' || inside[0] == '>' || inside[0] == '=') {
    condition = inside;
  }
}

struct Section {
  std::vector<Token> tokens;
  std::string condition;

  bool Has(Token::Kind kind) const {
    return std::ranges::any_of(tokens, [&](const Token& token) { return token.kind == kind; });
  }
  bool IsDate() const { return Has(Token::Kind::kDate) || Has(Token::Kind::kElapsed) || Has(Token::Kind::kHalfDay); }
};

std::vector<Section> Parse(std::string_view code) {
  std::vector<Section> sections(1);
  for (std::size_t at = 0; at < code.size();) {
    std::vector<Token>& tokens = sections.back().tokens;
    const char c = code[at], lower = LowerCase(c);
    const std::string rest = LowerCase(code.substr(at, 7));
    if (c == ';') {
      sections.emplace_back();
      ++at;
    } else if (c == '"') {
      const std::size_t end = std::min(code.find('"', at + 1), code.size());
      tokens.push_back({Token::Kind::kLiteral, std::string(code.substr(at + 1, end - at - 1))});
      at = end + 1;
    } else if (c == '[') {
      const std::size_t end = std::min(code.find(']', at), code.size());
      AddBracket(code.substr(at + 1, end - at - 1), tokens, sections.back().condition);
      at = end + 1;
    } else if (c == '\\') {
      // Take the whole UTF-8 character after it.
      std::size_t end = at + 2;
      while (end < code.size() && (code[end] & 0xc0) == 0x80) ++end;
      tokens.push_back({Token::Kind::kLiteral, std::string(code.substr(std::min(at + 1, code.size()), end - at - 1))});
      at = end;
    } else if (c == '_' || c == '*') {  // "_": a space as wide as the next character; "*": repeats it
      if (c == '_') tokens.push_back({Token::Kind::kLiteral, " "});
      at += 2;
    } else if (rest == "general") {
      tokens.push_back({Token::Kind::kGeneral, {}});
      at += 7;
    } else if (rest.starts_with("am/pm") || rest.starts_with("a/p")) {
      const std::size_t size = rest.starts_with("a/p") ? 3 : 5;
      tokens.push_back({Token::Kind::kHalfDay, std::string(code.substr(at, size))});
      at += size;
    } else if (std::string_view("ymdhs").find(lower) != std::string_view::npos) {
      std::size_t end = at;
      while (end < code.size() && LowerCase(code[end]) == lower) ++end;
      tokens.push_back({Token::Kind::kDate, std::string(end - at, lower)});
      at = end;
    } else if (c == '@') {
      tokens.push_back({Token::Kind::kText, {}});
      ++at;
    } else {
      const bool is_sign = std::string_view("0#?.,%/").find(c) != std::string_view::npos;
      const bool is_exponent = lower == 'e' && at + 1 < code.size() && (code[at + 1] == '+' || code[at + 1] == '-');
      tokens.push_back({is_sign || is_exponent ? Token::Kind::kSign : Token::Kind::kLiteral, std::string(1, c)});
      at += is_exponent ? 2 : 1;
    }
  }
  return sections;
}

std::string General(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.15g", value);
  return text.data();
}

std::string Digits(std::int64_t value, std::size_t width) {
  const std::string text = std::to_string(value);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

struct Day {
  std::int64_t year;
  unsigned month, day, weekday;
};

// The date of a day's number. Workbooks that count from 1900 have a 29 February 1900, which never existed.
Day DayOf(std::int64_t number, bool from_1904) {
  if (!from_1904 && number == 60) return {1900, 2, 29, 3};
  const std::int64_t since_1970 = from_1904 ? number - 24'107 : number < 60 ? number - 25'568 : number - 25'569;
  // Converts days to a Gregorian date, in eras of 400 years that begin in March.
  const std::int64_t shifted = since_1970 + 719'468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const auto of_era = static_cast<unsigned>(shifted - era * 146'097);
  const unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned month = (5 * of_year + 2) / 153;
  const unsigned day = of_year - (153 * month + 2) / 5 + 1;
  const unsigned calendar_month = month < 10 ? month + 3 : month - 9;
  const std::int64_t year = static_cast<std::int64_t>(year_of_era) + era * 400 + (calendar_month <= 2 ? 1 : 0);
  // Day 1 of the 1900 count is a Sunday, so that weekdays are right from March 1900 on.
  const auto weekday = static_cast<unsigned>((from_1904 ? number + 5 : number + 6) % 7);
  return {year, calendar_month, day, weekday};
}

std::string Date(double value, const Section& section, bool from_1904) {
  // The time is rounded to the number of digits shown of a second.
  std::size_t decimals = 0;
  for (std::size_t i = 1; i + 1 < section.tokens.size(); ++i) {
    if (section.tokens[i].text != "." || section.tokens[i - 1].text.find('s') == std::string::npos) continue;
    while (i + 1 + decimals < section.tokens.size() && section.tokens[i + 1 + decimals].text == "0" && decimals < 6)
      ++decimals;
  }
  const auto per_second = static_cast<std::int64_t>(std::pow(10, decimals));
  const std::int64_t total = std::llround(value * 86'400 * static_cast<double>(per_second));
  const std::int64_t seconds = total / per_second, of_day = seconds % 86'400;
  const Day day = DayOf(seconds / 86'400, from_1904);
  const bool half_days = section.Has(Token::Kind::kHalfDay);
  std::int64_t hour = of_day / 3600;
  const bool afternoon = hour >= 12;
  if (half_days) hour = hour % 12 == 0 ? 12 : hour % 12;

  // "m" is a minute after hours or before seconds, else a month.
  const auto is_minute = [&](std::size_t at) {
    const auto is_time = [&](std::size_t i, char letter) {
      const Token& token = section.tokens[i];
      return (token.kind == Token::Kind::kDate || token.kind == Token::Kind::kElapsed) && token.text[0] == letter;
    };
    const auto is_part = [&](std::size_t i) {
      return section.tokens[i].kind == Token::Kind::kDate || section.tokens[i].kind == Token::Kind::kElapsed;
    };
    if (section.tokens[at].text.size() > 2) return false;
    for (std::size_t i = at; i-- > 0;) {
      if (is_part(i)) {
        if (is_time(i, 'h')) return true;
        break;
      }
    }
    for (std::size_t i = at + 1; i < section.tokens.size(); ++i) {
      if (is_part(i)) return is_time(i, 's');
    }
    return false;
  };

  std::string shown;
  for (std::size_t i = 0; i < section.tokens.size(); ++i) {
    const Token& token = section.tokens[i];
    const std::size_t size = token.text.size();
    switch (token.kind) {
      case Token::Kind::kElapsed:
        shown += Digits(token.text[0] == 'h' ? seconds / 3600 : token.text[0] == 'm' ? seconds / 60 : seconds, size);
        break;
      case Token::Kind::kHalfDay:
        shown += size == 3 ? (afternoon ? token.text.substr(2) : token.text.substr(0, 1)) : (afternoon ? "PM" : "AM");
        break;
      case Token::Kind::kDate:
        if (token.text[0] == 'y') {
          shown += size <= 2 ? Digits(day.year % 100, 2) : Digits(day.year, 4);
        } else if (token.text[0] == 'd') {
          shown += size <= 2 ? Digits(day.day, size)
                             : std::string(kDays[day.weekday].substr(0, size == 3 ? 3 : std::string::npos));
        } else if (token.text[0] == 'h') {
          shown += Digits(hour, std::min<std::size_t>(size, 2));
        } else if (token.text[0] == 's') {
          shown += Digits(of_day % 60, std::min<std::size_t>(size, 2));
        } else if (is_minute(i)) {
          shown += Digits(of_day / 60 % 60, size);
        } else if (size <= 2) {
          shown += Digits(day.month, size);
        } else {
          shown += kMonths[day.month - 1].substr(0, size == 3 ? 3 : size == 5 ? 1 : std::string::npos);
        }
        break;
      case Token::Kind::kSign:
        if (token.text == "." && decimals > 0) {
          shown += "." + Digits(total % per_second, decimals);
          i += decimals;
        } else {
          shown += token.text;
        }
        break;
      case Token::Kind::kLiteral:
        shown += token.text;
        break;
      case Token::Kind::kText:
      case Token::Kind::kGeneral:
        break;
    }
  }
  return shown;
}

// The nearest fraction whose denominator has at most `digits` digits, or is `fixed`: "3 1/4".
std::string Fraction(double value, std::size_t digits, std::int64_t fixed, bool has_whole) {
  double whole = has_whole ? std::floor(value) : 0;
  const double rest = value - whole;
  std::int64_t best_over = 0, best_under = 1;
  const std::int64_t most =
      fixed > 0 ? fixed : static_cast<std::int64_t>(std::pow(10, std::clamp<std::size_t>(digits, 1, 3))) - 1;
  double least = 2;
  for (std::int64_t under = fixed > 0 ? fixed : 1; under <= most; ++under) {
    const std::int64_t over = std::llround(rest * static_cast<double>(under));
    const double off = std::fabs(rest - static_cast<double>(over) / static_cast<double>(under));
    if (off < least - 1e-12) least = off, best_over = over, best_under = under;
  }
  if (has_whole && best_over == best_under) whole += 1, best_over = 0;
  if (has_whole && best_over == 0) return General(whole);
  const std::string part = std::to_string(best_over) + "/" + std::to_string(best_under);
  return has_whole && whole != 0 ? General(whole) + " " + part : part;
}

bool IsComma(const Token& token) { return token.kind == Token::Kind::kSign && token.text == ","; }

bool IsPlace(const Token& token) {
  return token.kind == Token::Kind::kSign && (token.text == "0" || token.text == "#" || token.text == "?");
}

// The integer part and the decimals of a number that is not negative. Like Excel, it takes the first 15 significant
// digits and rounds half away from zero: 1.005 is 1.01, though its binary value is a little less.
std::pair<std::string, std::string> Rounded(double value, std::size_t decimals) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.14e", value);  // "1.00500000000000e+00"
  const int power = std::atoi(text.data() + 17);
  std::string digits = text[0] + std::string(text.data() + 2, 14);
  if (power < 0) digits.insert(0, static_cast<std::size_t>(-power), '0');
  std::size_t whole = power < 0 ? 1 : static_cast<std::size_t>(power) + 1;
  digits.resize(std::max(digits.size(), whole + decimals + 1), '0');
  const bool up = digits[whole + decimals] >= '5';
  digits.resize(whole + decimals);
  std::size_t at = digits.size();
  while (up && at > 0 && digits[at - 1] == '9') digits[--at] = '0';
  if (up && at > 0) ++digits[at - 1];
  if (up && at == 0) digits.insert(0, 1, '1'), ++whole;
  return {digits.substr(0, whole), digits.substr(whole)};
}

// What stands around the digit places.
std::string TextOf(const std::vector<Token>& tokens, std::size_t from, std::size_t until, double value) {
  std::string text;
  for (std::size_t i = from; i < until; ++i) {
    if (tokens[i].kind == Token::Kind::kGeneral) text += General(value);
    if (tokens[i].kind == Token::Kind::kLiteral ||
        (tokens[i].kind == Token::Kind::kSign && !IsPlace(tokens[i]) && tokens[i].text != ",")) {
      text += tokens[i].text;
    }
  }
  return text;
}

// "# ?/?" and "# ?/16": the places begin at `first`.
std::string FractionNumber(double value, const std::vector<Token>& tokens, std::size_t first, std::size_t slash) {
  std::size_t digits = 0, fixed = 0, end = slash + 1;
  for (; end < tokens.size() &&
         (IsPlace(tokens[end]) || (tokens[end].kind == Token::Kind::kLiteral &&
                                   tokens[end].text.find_first_not_of("0123456789") == std::string::npos));
       ++end) {
    if (IsPlace(tokens[end]) && fixed == 0) ++digits;
    if (tokens[end].kind == Token::Kind::kLiteral || fixed > 0)
      fixed = fixed * 10 + static_cast<std::size_t>(std::atoi(tokens[end].text.c_str()));
  }
  const bool has_whole = std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                     tokens.begin() + static_cast<std::ptrdiff_t>(slash),
                                     [](const Token& token) { return token.kind == Token::Kind::kLiteral; });
  return TextOf(tokens, 0, first, value) +
         Fraction(value, digits, static_cast<std::int64_t>(std::min<std::size_t>(fixed, 9999)), has_whole) +
         TextOf(tokens, end, tokens.size(), value);
}

// The digits of `whole` at the places before the point, as many as `places`. Literals among them ("00-00") keep their
// position counted from the right.
std::string AtPlaces(const std::string& whole, std::span<const Token> tokens, std::size_t places, bool groups) {
  std::string shown;
  std::size_t left = places, digit = 0;
  const std::size_t more = whole.size() > places ? whole.size() - places : 0;
  const auto add_digit = [&] {
    shown += whole[digit++];
    if (groups && digit < whole.size() && (whole.size() - digit) % 3 == 0) shown += ',';
  };
  for (const Token& token : tokens) {
    if (!IsPlace(token)) {
      if (token.kind == Token::Kind::kLiteral && digit > 0) shown += token.text;
      continue;
    }
    for (std::size_t extra = 0; left == places && extra < more; ++extra) add_digit();
    if (left <= whole.size() && digit < whole.size()) add_digit();
    --left;
  }
  return places == 0 ? shown + whole : shown;
}

std::string Number(double value, const Section& section) {
  const std::vector<Token>& tokens = section.tokens;
  // Find the digit places, from the first to the last.
  std::size_t first = tokens.size(), last = 0, point = tokens.size(), exponent = tokens.size(), slash = tokens.size();
  std::size_t percent = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kSign) continue;
    if (IsPlace(tokens[i])) first = std::min(first, i), last = i;
    if (tokens[i].text == "." && point == tokens.size()) point = i;
    if (LowerCase(tokens[i].text[0]) == 'e') exponent = std::min(exponent, i);
    if (tokens[i].text == "/") slash = i;
    if (tokens[i].text == "%") ++percent;
  }
  if (first == tokens.size()) return TextOf(tokens, 0, tokens.size(), value);
  if (slash < tokens.size() && slash > first) return FractionNumber(value, tokens, first, slash);
  value *= std::pow(100, percent);
  // A comma between places groups thousands; one after the last integer place divides by a thousand.
  std::size_t whole_end = std::min({point, exponent, last + 1}), end_of_whole = std::min(exponent, last + 1);
  while (whole_end > first && IsComma(tokens[whole_end - 1])) value /= 1000, --whole_end;
  while (end_of_whole < tokens.size() && IsComma(tokens[end_of_whole])) value /= 1000, ++end_of_whole;
  bool groups = false;
  std::size_t places = 0, zeros = 0;
  for (std::size_t i = first; i < whole_end; ++i) {
    if (IsPlace(tokens[i])) ++places, zeros += tokens[i].text == "0" || zeros > 0;
    if (IsComma(tokens[i])) groups = true;
  }
  std::size_t decimals = 0, least_decimals = 0;
  if (point < tokens.size()) {
    for (std::size_t i = point + 1; i < std::min(exponent, tokens.size()) && decimals < kMaxDecimals; ++i) {
      if (!IsPlace(tokens[i])) continue;
      ++decimals;
      if (tokens[i].text == "0") least_decimals = decimals;
    }
  }
  int power = 0;
  if (exponent < tokens.size() && value != 0) {
    power = static_cast<int>(std::floor(std::log10(value)));
    const int step = std::max<int>(1, static_cast<int>(places));
    power = static_cast<int>(std::floor(static_cast<double>(power) / step)) * step;
    value /= std::pow(10, power);
    if (Rounded(value, decimals).first.size() > static_cast<std::size_t>(step))
      value /= std::pow(10, step), power += step;
  }
  auto [whole, part] = Rounded(value, decimals);
  while (part.size() > least_decimals && part.ends_with('0')) part.pop_back();
  if (whole == "0" && zeros == 0) whole.clear();
  if (whole.size() < zeros) whole.insert(0, zeros - whole.size(), '0');

  const std::span<const Token> before_point(tokens.data() + first, whole_end > first ? whole_end - first : 0);
  std::string shown = AtPlaces(whole, before_point, places, groups);
  std::size_t end = std::max(end_of_whole, last + 1);
  if (point < tokens.size() && point > first) shown += "." + part;
  if (point < tokens.size() && point < first) shown = "." + part;
  if (exponent < tokens.size()) {
    std::size_t width = 0;
    for (std::size_t i = exponent + 1; i < tokens.size() && IsPlace(tokens[i]); ++i) ++width, end = i + 1;
    shown += std::string("E") + (power < 0 ? "-" : "+") + Digits(std::abs(power), width);
  }
  return TextOf(tokens, 0, std::min(first, point), value) + shown + TextOf(tokens, end, tokens.size(), value);
}

bool Meets(double value, std::string_view condition) {
  const std::size_t sign = condition.find_first_not_of("<>=");
  const double limit = sign == std::string_view::npos ? 0 : std::atof(std::string(condition.substr(sign)).c_str());
  const std::string_view how = condition.substr(0, sign);
  if (how == "<") return value < limit;
  if (how == "<=") return value <= limit;
  if (how == ">") return value > limit;
  if (how == ">=") return value >= limit;
  if (how == "<>") return value != limit;
  return value == limit;
}

}  // namespace

std::string_view BuiltInFormat(unsigned id) {
  switch (id) {
    case 1:
      return "0";
    case 2:
      return "0.00";
    case 3:
      return "#,##0";
    case 4:
      return "#,##0.00";
    case 9:
      return "0%";
    case 10:
      return "0.00%";
    case 11:
      return "0.00E+00";
    case 12:
      return "# ?/?";
    case 13:
      return "# ?\?/??";
    case 14:
      return "yyyy-mm-dd";
    case 15:
      return "d-mmm-yy";
    case 16:
      return "d-mmm";
    case 17:
      return "mmm-yy";
    case 18:
      return "h:mm AM/PM";
    case 19:
      return "h:mm:ss AM/PM";
    case 20:
      return "h:mm";
    case 21:
      return "h:mm:ss";
    case 22:
      return "yyyy-mm-dd h:mm";
    case 37:
    case 38:
      return "#,##0;(#,##0)";
    case 39:
    case 40:
      return "#,##0.00;(#,##0.00)";
    case 45:
      return "mm:ss";
    case 46:
      return "[h]:mm:ss";
    case 47:
      return "mm:ss.0";
    case 48:
      return "##0.0E+0";
    default:
      break;
  }
  // Dates in East Asian versions.
  if ((id >= 27 && id <= 31) || id == 36 || (id >= 50 && id <= 58)) return "yyyy-mm-dd";
  if (id >= 32 && id <= 35) return "h:mm:ss";
  return "General";
}

std::string FormatNumber(const std::string& value, std::string_view code, bool from_1904) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !std::isfinite(number)) return value;
  const std::vector<Section> sections = Parse(code.substr(0, 255));
  // One section for all numbers, or one each for positive, negative and zero, or sections with conditions.
  std::size_t chosen = 0;
  const bool has_conditions = !sections[0].condition.empty();
  if (has_conditions) {
    while (chosen + 1 < sections.size() && !sections[chosen].condition.empty() &&
           !Meets(number, sections[chosen].condition))
      ++chosen;
  } else if (number < 0 && sections.size() > 1) {
    chosen = 1;
  } else if (number == 0 && sections.size() > 2) {
    chosen = 2;
  }
  const Section& section = sections[std::min<std::size_t>(chosen, 2)];
  if (section.IsDate()) return number < 0 || number >= kMaxDay ? General(number) : Date(number, section, from_1904);
  if (sections.size() == 1 && (section.tokens.empty() || section.Has(Token::Kind::kText))) return General(number);
  const bool has_sign = number < 0 && (chosen == 0 || has_conditions);
  if (section.tokens.size() == 1 && section.Has(Token::Kind::kGeneral))
    return General(has_sign ? number : std::fabs(number));
  const std::string shown = Number(std::fabs(number), section);
  const bool is_zero = shown.find_first_of("123456789") == std::string::npos && shown.find('0') != std::string::npos;
  return (has_sign && !is_zero ? "-" : "") + shown;
}

}  // namespace reprise::document
