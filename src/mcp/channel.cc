#include "mcp/channel.h"

#include <charconv>

namespace reprise {

namespace {

constexpr std::size_t kMaxWord = 32;

}  // namespace

void AnswerScanner::Feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (!in_string_ && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    if (depth_ == 0 && c != '{') is_answer_ = false;  // a line of a log, a batch, or more than one message
    if (!is_answer_) return;
    const bool is_outermost = depth_ == 1;
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      } else if (is_outermost && word_.size() < kMaxWord) {
        word_ += c;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      if (is_outermost) EndMember();
      --depth_;
    } else if (is_outermost && c == ':') {
      name_.swap(word_);
      word_.clear();
      is_answer_ = name_ != "method";
    } else if (is_outermost && c == ',') {
      EndMember();
    } else if (is_outermost && word_.size() < kMaxWord) {
      word_ += c;
    }
  }
}

void AnswerScanner::EndMember() {
  std::int64_t number = 0;
  const char* const end = word_.data() + word_.size();
  const auto [stopped, error] = std::from_chars(word_.data(), end, number);
  // Some servers write the number as a text, or with a point.
  const bool is_whole = std::string_view(stopped, static_cast<std::size_t>(end - stopped)).find_first_not_of(".0") ==
                        std::string_view::npos;
  if (name_ == "id" && error == std::errc() && is_whole) id_ = number;
  name_.clear();
  word_.clear();
}

}  // namespace reprise
