#include "reprise/timestamp.h"

#include <charconv>
#include <cstdio>

namespace reprise {

std::string FormatTimestamp(Timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string text = std::to_string(static_cast<int>(date.year()));
  if (text.size() < 4) text.insert(0, 4 - text.size(), '0');
  const std::size_t year = text.size();
  text += "-00-00T00:00:00.000Z";
  const auto put = [&](std::size_t end, auto value) {
    for (auto rest = static_cast<unsigned>(value); rest > 0; rest /= 10)
      text[year + --end] = static_cast<char>('0' + rest % 10);
  };
  put(3, static_cast<unsigned>(date.month()));
  put(6, static_cast<unsigned>(date.day()));
  put(9, clock.hours().count());
  put(12, clock.minutes().count());
  put(15, clock.seconds().count());
  put(19, clock.subseconds().count());
  return text;
}

Result<Timestamp> ParseTimestamp(std::string_view text) {
  const auto fail = [] { return Fail(ErrorCode::kInvalidArgument, "a time must look like 2025-01-15T10:00:00.000Z"); };
  static constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddZ", kShortShape = "dddd-dd-ddTdd:dd:ddZ";
  const std::string_view shape = text.size() == kShape.size() ? kShape : kShortShape;
  if (text.size() != shape.size()) return fail();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == 'd' ? !digit : text[i] != shape[i]) return fail();
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + length, value);
    return value;
  };
  using namespace std::chrono;
  const year_month_day date(year(number(0, 4)), month(static_cast<unsigned>(number(5, 2))),
                            day(static_cast<unsigned>(number(8, 2))));
  if (!date.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 59) return fail();
  const int millis = shape == kShape ? number(20, 3) : 0;
  return Timestamp(sys_days(date)) + hours(number(11, 2)) + minutes(number(14, 2)) + seconds(number(17, 2)) +
         milliseconds(millis);
}

Timestamp Now() { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); }

}  // namespace reprise
