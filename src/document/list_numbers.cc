#include "document/list_numbers.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace reprise::document {
namespace {

constexpr std::size_t kMostLists = 50'000;
constexpr int kMostDerived = 20;  // styles based on each other

std::string Roman(int number) {
  constexpr std::array<std::pair<int, std::string_view>, 13> kSigns = {{{1000, "m"},
                                                                        {900, "cm"},
                                                                        {500, "d"},
                                                                        {400, "cd"},
                                                                        {100, "c"},
                                                                        {90, "xc"},
                                                                        {50, "l"},
                                                                        {40, "xl"},
                                                                        {10, "x"},
                                                                        {9, "ix"},
                                                                        {5, "v"},
                                                                        {4, "iv"},
                                                                        {1, "i"}}};
  std::string text;
  for (const auto& [value, sign] : kSigns) {
    for (; number >= value; number -= value) text += sign;
  }
  return text;
}

// The number in one of the forms of w:numFmt; those that are not known are decimal.
std::string InForm(int number, std::string_view form) {
  if (form == "none") return {};
  const bool is_letter = form.ends_with("Letter"), is_roman = form.ends_with("Roman");
  std::string text;
  if (is_letter && number > 0 && number <= 780)  // "aa" follows "z", "bb" follows "aa"
    text = std::string(static_cast<std::size_t>((number - 1) / 26 + 1), static_cast<char>('a' + (number - 1) % 26));
  if (is_roman && number > 0 && number < 4000) text = Roman(number);
  if (text.empty()) return (form == "decimalZero" && number < 10 ? "0" : "") + std::to_string(number);
  if (form.starts_with("upper")) std::ranges::transform(text, text.begin(), [](char c) { return c - 'a' + 'A'; });
  return text;
}

int NumberOf(const std::string& text) { return std::clamp(std::atoi(text.c_str()), 0, 1'000'000); }

std::size_t LevelOf(const std::string& text) { return static_cast<std::size_t>(std::min(NumberOf(text), 8)); }

}  // namespace

void ListNumbers::LearnList(const Element& element) {
  const std::string_view name = element.name();
  if (definitions_.size() + lists_.size() > kMostLists) return;
  if (name == "abstractNum") definition_ = element.Attribute("abstractNumId"), list_.clear();
  if (name == "num") list_ = element.Attribute("numId");
  if (name == "lvl" || name == "lvlOverride") level_ = LevelOf(element.Attribute("ilvl"));
  const std::string value = element.Attribute("val");
  if (!list_.empty() && name == "abstractNumId") lists_[list_].definition = value;
  if (!list_.empty() && name == "startOverride") lists_[list_].starts[level_] = NumberOf(value);
  if (list_.empty() && name == "numStyleLink") definitions_[definition_].link = value;
  auto& level = list_.empty() ? definitions_[definition_].levels[level_] : lists_[list_].levels[level_];
  if (name == "lvl") level = Level{};
  if (!level) return;
  if (name == "start") level->start = NumberOf(value);
  if (name == "numFmt") level->form = value;
  if (name == "lvlText") level->text = value;
  if (name == "pStyle") level->style = value;
  if (name == "lvlRestart") level->restart = static_cast<std::size_t>(NumberOf(value));
  if (name == "isLgl") level->is_plain = IsOn(element);
  if (name == "suff" && value == "nothing") level->after.clear();
}

void ListNumbers::LearnStyle(const Element& element) {
  const std::string_view name = element.name();
  if (styles_.size() > kMostLists) return;
  if (name == "style") style_ = element.Attribute("styleId");
  if (name == "basedOn") styles_[style_].style = element.Attribute("val");
  if (name == "vanish") styles_[style_].is_hidden = IsOn(element);
  if (name == "numId") styles_[style_].list = element.Attribute("val");
  if (name == "ilvl") styles_[style_].level = element.Attribute("val");
}

ListNumbers::Definition* ListNumbers::DefinitionOf(const List& list) {
  auto found = definitions_.find(list.definition);
  if (found == definitions_.end() || found->second.link.empty())
    return found == definitions_.end() ? nullptr : &found->second;
  // The list of the style that it names.
  const auto style = styles_.find(found->second.link);
  const auto other = style == styles_.end() ? lists_.end() : lists_.find(style->second.list.value_or(""));
  if (other != lists_.end()) found = definitions_.find(other->second.definition);
  return found == definitions_.end() ? nullptr : &found->second;
}

bool ListNumbers::IsHidden(std::string name) const {
  for (int i = 0; i < kMostDerived; ++i) {
    const auto style = styles_.find(name);
    if (style == styles_.end()) break;
    if (style->second.is_hidden) return *style->second.is_hidden;
    name = style->second.style;
  }
  return false;
}

std::string ListNumbers::Next(Place place) {
  const std::string own_style = place.style;
  std::string numbered_style = own_style;
  for (int i = 0; i < kMostDerived && !place.list; ++i) {
    const auto style = styles_.find(place.style);
    if (style == styles_.end()) break;
    numbered_style = place.style;
    place.list = style->second.list;
    if (!place.level) place.level = style->second.level;
    place.style = style->second.style;
  }
  const auto found = lists_.find(place.list.value_or("0"));
  Definition* const definition = found == lists_.end() ? nullptr : DefinitionOf(found->second);
  if (definition == nullptr) return {};
  List& list = found->second;
  std::size_t at = LevelOf(place.level.value_or("0"));
  for (std::size_t i = 0; i < kLevels && !place.level; ++i) {
    if (definition->levels[i] && !numbered_style.empty() && definition->levels[i]->style == numbered_style) at = i;
  }
  for (std::size_t i = 0; i < kLevels && !list.has_begun; ++i) {
    if (list.starts[i]) definition->counts[i] = 0;
  }
  list.has_begun = true;
  ++definition->counts[at];
  const auto level = [&](std::size_t i) -> const Level* {
    const auto& known = list.levels[i] ? list.levels[i] : definition->levels[i];
    return known ? &*known : nullptr;
  };
  for (std::size_t i = at + 1; i < kLevels; ++i) {
    if (level(i) == nullptr || at < level(i)->restart) definition->counts[i] = 0;
  }
  const Level* const own = level(at);
  if (own == nullptr) return {};
  if (own->form == "bullet") return "- ";
  std::string shown;
  for (std::size_t i = 0; i < own->text.size(); ++i) {
    const char next = i + 1 < own->text.size() ? own->text[i + 1] : '\0';
    if (own->text[i] != '%' || next < '1' || next > '9') {
      shown += own->text[i];
      continue;
    }
    const auto of = static_cast<std::size_t>(next - '1');
    const Level* const each = level(of);
    const int start = list.starts[of] ? *list.starts[of] : each != nullptr ? each->start : 1;
    const int number = start + std::max(definition->counts[of] - 1, 0);
    shown += InForm(number, own->is_plain || each == nullptr ? "decimal" : std::string_view(each->form));
    ++i;
  }
  return shown.empty() ? shown : shown + own->after;
}

}  // namespace reprise::document
