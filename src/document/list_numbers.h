#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "document/archive.h"

namespace reprise::document {

// Counts the numbered paragraphs of a docx. Give it the elements of numbering.xml and styles.xml first.
class ListNumbers {
 public:
  // What a paragraph, or a style, says of its list.
  struct Place {
    std::optional<std::string> list{}, level{};  // w:numId, w:ilvl
    std::string style{};                         // of the paragraph, or the one that a style is based on
    std::optional<bool> is_hidden{};             // of a style: its text
  };

  void LearnList(const Element& element);
  void LearnStyle(const Element& element);
  bool IsHidden(std::string style) const;
  // The number of the next paragraph as it is shown, with a blank: "§3. ", "a) ", "- ". Empty if it has none.
  std::string Next(Place place);

 private:
  static constexpr std::size_t kLevels = 9;
  struct Level {
    int start = 1;
    std::string form = "decimal", text{}, style{}, after = " ";
    bool is_plain = false;          // all numbers in it are decimal
    std::size_t restart = kLevels;  // it begins anew after levels before this one
  };
  using Levels = std::array<std::optional<Level>, kLevels>;
  struct Definition {
    Levels levels{};
    std::array<int, kLevels> counts{};  // 0: none yet; else how many have been counted
    std::string link{};                 // the style that defines the list instead
  };
  struct List {
    std::string definition{};
    Levels levels{};                                   // instead of the definition's
    std::array<std::optional<int>, kLevels> starts{};  // counted anew from there
    bool has_begun = false;
  };

  Definition* DefinitionOf(const List& list);

  std::map<std::string, Definition> definitions_;  // w:abstractNum
  std::map<std::string, List> lists_;              // w:num
  std::map<std::string, Place> styles_;
  std::string definition_, list_, style_;  // while learning: the open one
  std::size_t level_ = 0;
};

}  // namespace reprise::document
