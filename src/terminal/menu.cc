#include "terminal/menu.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

enum : std::size_t { kSame, kStart, kStartOfFile, kInFile, kInside, kInOrder };
constexpr std::size_t kStep = 1 << 16;

// Whether the letters occur in this order. `name` and `words` are in lower case.
bool HasInOrder(std::string_view name, std::string_view words) {
  for (const char letter : words) {
    const std::size_t at = name.find(letter);
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at + 1);
  }
  return true;
}

}  // namespace

std::optional<std::size_t> MatchRank(const MenuPlace& place, std::string_view name) {
  const std::string wanted = LowerCase(place.words), whole = LowerCase(name);
  const std::size_t file = whole.rfind('/') + 1;
  const std::size_t length =
      place.takes_gaps ? std::min(whole.size(), kStep - 1) : 0;  // else the order of a list holds
  const auto rank = [&](std::size_t kind) { return kind * kStep + length; };
  if (whole == wanted) return rank(kSame);
  if (whole.starts_with(wanted)) return rank(kStart);
  const std::size_t at = whole.find(wanted, file);
  if (at != std::string::npos) return rank(at == file ? kStartOfFile : kInFile);
  if (whole.find(wanted) != std::string::npos) return rank(kInside);
  return place.takes_gaps && HasInOrder(whole, wanted) ? std::optional(rank(kInOrder)) : std::nullopt;
}

void Menu::Open(const std::string& before_cursor) {
  is_closed_by_person_ = false;
  Update(before_cursor, /*opens=*/true);
}

void Menu::Update(const std::string& before_cursor, bool opens) {
  auto place = source_.place(before_cursor);
  const bool is_new = place && (!place_ || place_->id != place->id);
  const bool was_open = is_open_, is_other = before_cursor != before_;
  before_ = before_cursor;
  place_ = std::move(place);
  if (!place_ || is_new) is_closed_by_person_ = false;
  if (is_new) {
    items_ = source_.items(before_cursor);
    matches_.clear();
  }
  if (!place_) items_.clear();
  Filter();
  if (is_other && !opens) is_closed_by_person_ = true;
  const bool is_typed = matches_.size() == 1 && items_[matches_.front()].line == before_cursor;
  is_open_ = !matches_.empty() && !is_closed_by_person_ && !is_typed;
  if (is_new || is_other || !was_open) is_seen_ = false;
  if (is_open_ || was_open) source_.changed();
}

// Items that match equally well keep their order.
void Menu::Filter() {
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const std::string& words = place_->words;
    auto rank = words.empty() ? std::optional<std::size_t>(0) : MatchRank(*place_, items_[i].name);
    // Of the details only whole words count, behind all names.
    if (!rank && LowerCase(items_[i].details).find(LowerCase(words)) != std::string::npos) rank = SIZE_MAX;
    if (rank) ranked.emplace_back(*rank, i);
  }
  std::ranges::sort(ranked);
  std::vector<std::size_t> matches;
  for (const auto& [rank, index] : ranked) matches.push_back(index);
  is_first_loose_ = !ranked.empty() && ranked.front().first / kStep == kInOrder;
  if (std::exchange(matches_, matches) == matches) return;
  chosen_ = 0;
  has_moved_ = false;
}

void Menu::Close() {
  is_closed_by_person_ = true;
  if (std::exchange(is_open_, false)) source_.changed();
}

void Menu::Forget() {
  place_.reset();
  before_.clear();
  matches_.clear();
  is_open_ = is_closed_by_person_ = is_seen_ = false;
}

void Menu::Move(int by) {
  const auto count = static_cast<std::ptrdiff_t>(matches_.size());
  chosen_ = static_cast<std::size_t>((static_cast<std::ptrdiff_t>(chosen_) + by + count) % count);
  has_moved_ = true;
  source_.changed();
}

const MenuItem* Menu::Chosen() const { return is_open_ ? &items_[matches_[chosen_]] : nullptr; }

const MenuItem* Menu::EnteredFor(const std::string& before_cursor) const {
  const bool is_seen = is_seen_ && before_cursor == before_;
  return is_seen && is_open_ && EnterTakes() ? Chosen() : nullptr;
}

bool Menu::EnterTakes() const {
  if (has_moved_) return true;
  const auto is_typed = [&](const MenuItem& item) { return item.name == place_->words || item.line == before_; };
  return !is_first_loose_ && !place_->is_complete && std::ranges::none_of(items_, is_typed);
}

std::vector<const MenuItem*> Menu::Matches() const {
  std::vector<const MenuItem*> all;
  for (const std::size_t index : matches_) all.push_back(&items_[index]);
  return all;
}

std::string Menu::CommonLine() const {
  std::string common = matches_.empty() ? "" : items_[matches_.front()].line;
  for (const std::size_t index : matches_) {
    common.resize(static_cast<std::size_t>(std::ranges::mismatch(common, items_[index].line).in1 - common.begin()));
  }
  common.resize(common.size() - IncompleteUtf8Tail(common));
  return common;
}

std::vector<std::string> Menu::Lines(int columns, std::size_t most, const Style& style) const {
  std::vector<std::string> lines;
  if (!is_open_ || most < 2) return lines;
  const std::string place = std::to_string(chosen_ + 1) + "/" + std::to_string(matches_.size());
  const std::string keys = EnterTakes() ? "Enter or Tab" : "Tab";
  lines = ItemLines(Matches(), chosen_, most - 1, columns, style);
  lines.insert(lines.begin(),
               style.Paint(Style::kDim, CutToWidth(place + " · " + keys + " takes it · Esc closes", columns)));
  return lines;
}

std::vector<std::string> ItemLines(const std::vector<const MenuItem*>& items, std::size_t chosen, std::size_t most,
                                   int columns, const Style& style) {
  std::vector<std::string> lines;
  const std::size_t room = std::min(most, items.size());
  const std::size_t first = chosen < room ? 0 : chosen - room + 1;
  int widest = 0;
  for (std::size_t i = first; i < first + room; ++i) {
    widest = std::max(widest, DisplayWidth(VisibleLine(items[i]->name)));
  }
  const bool has_details =
      std::ranges::any_of(items, [](const MenuItem* const item) { return !item->details.empty(); });
  if (has_details) widest = std::min(widest, std::max(8, columns * 3 / 5));
  for (std::size_t i = first; i < first + room; ++i) {
    const MenuItem& item = *items[i];
    std::string name = CutToWidth(VisibleLine(item.name), widest);
    if (!item.details.empty()) name.append(static_cast<std::size_t>(widest - DisplayWidth(name)), ' ');
    const std::string line = CutToWidth((i == chosen ? "› " : "  ") + name, columns);
    const int left = columns - DisplayWidth(line) - 2;
    const std::string details = left < 4 || item.details.empty() ? "" : CutToWidth(VisibleLine(item.details), left);
    lines.push_back(style.Paint(i == chosen ? Style::kAccent : Style::kPlain, line) +
                    (details.empty() ? "" : "  " + style.Paint(Style::kDim, details)));
  }
  return lines;
}

}  // namespace reprise
