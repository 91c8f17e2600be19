#include <md4c.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "terminal/diff_view.h"
#include "terminal/markdown_stream.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

// A table with more columns has no sensible form at a terminal, and md4c fills up every row of it.
constexpr unsigned kMostColumns = 100;

// U+0000 becomes U+FFFD, as CommonMark requires.
std::string CharacterOf(std::uint32_t code) { return Utf8Of(code == 0 ? 0xfffd : code); }

// The entities that people and models write; others stay as they are.
constexpr std::array<std::pair<std::string_view, std::uint32_t>, 33> kEntities{{
    {"&amp;", '&'},      {"&lt;", '<'},       {"&gt;", '>'},       {"&quot;", '"'},     {"&apos;", '\''},
    {"&nbsp;", 0xa0},    {"&copy;", 0xa9},    {"&reg;", 0xae},     {"&deg;", 0xb0},     {"&plusmn;", 0xb1},
    {"&middot;", 0xb7},  {"&times;", 0xd7},   {"&divide;", 0xf7},  {"&para;", 0xb6},    {"&sect;", 0xa7},
    {"&pound;", 0xa3},   {"&euro;", 0x20ac},  {"&ndash;", 0x2013}, {"&mdash;", 0x2014}, {"&lsquo;", 0x2018},
    {"&rsquo;", 0x2019}, {"&ldquo;", 0x201c}, {"&rdquo;", 0x201d}, {"&bull;", 0x2022},  {"&hellip;", 0x2026},
    {"&trade;", 0x2122}, {"&larr;", 0x2190},  {"&uarr;", 0x2191},  {"&rarr;", 0x2192},  {"&darr;", 0x2193},
    {"&ne;", 0x2260},    {"&le;", 0x2264},    {"&ge;", 0x2265},
}};

std::string EntityText(std::string_view entity) {
  std::string out;
  if (entity.starts_with("&#")) {
    std::string_view digits = entity.substr(2, entity.size() - 3);
    const bool is_hex = digits.starts_with('x') || digits.starts_with('X');
    if (is_hex) digits.remove_prefix(1);
    std::uint32_t code = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
    const bool is_line_end = code == '\n' || code == '\r';
    out += is_line_end ? " " : CharacterOf(code);
    return out;
  }
  for (const auto& [name, code] : kEntities) {
    if (name != entity) continue;
    out += CharacterOf(code);
    return out;
  }
  return std::string(entity);
}

std::string AttributeText(const MD_ATTRIBUTE& attribute) {
  std::string out;
  for (std::size_t i = 0; attribute.text != nullptr && attribute.substr_offsets[i] < attribute.size; ++i) {
    const std::string_view part(attribute.text + attribute.substr_offsets[i],
                                attribute.substr_offsets[i + 1] - attribute.substr_offsets[i]);
    if (attribute.substr_types[i] == MD_TEXT_ENTITY) {
      out += EntityText(part);
    } else if (attribute.substr_types[i] == MD_TEXT_NULLCHAR) {
      out += CharacterOf(0);
    } else {
      out += part;
    }
  }
  return VisibleLine(out);
}

// Kept in the text, because many terminals do not strike it out, and it would then say the opposite.
constexpr std::string_view kStruckMark = "~~";

// Turns md4c's blocks and spans, from the outermost block to the text, into lines.
class BlockWriter {
 public:
  BlockWriter(const Style& style, int width, std::optional<unsigned> first_number)
      : style_(style), width_(width), first_number_(first_number) {}

  // False if md4c gave up.
  bool Write(std::string_view markdown) {
    static constexpr MD_PARSER kParser{
        .abi_version = 0,
        .flags = MD_FLAG_TABLES | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS | MD_FLAG_NOHTML |
                 MD_FLAG_STRIKETHROUGH,
        .enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) { return To(self).EnterBlock(type, detail); },
        .leave_block = [](MD_BLOCKTYPE type, void*, void* self) { return To(self).LeaveBlock(type); },
        .enter_span = [](MD_SPANTYPE type, void* detail, void* self) { return To(self).EnterSpan(type, detail); },
        .leave_span = [](MD_SPANTYPE type, void*, void* self) { return To(self).LeaveSpan(type); },
        .text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size,
                   void* self) { return To(self).Text(type, std::string_view(text, size)); },
        .debug_log = nullptr,
        .syntax = nullptr};
    return md_parse(markdown.data(), static_cast<MD_SIZE>(markdown.size()), &kParser, this) == 0;
  }

  std::vector<std::string> TakeLines() { return std::move(lines_); }

 private:
  // A quote or a list item: the prefix of each of its lines.
  struct Container {
    bool is_quote;
    std::string marker;  // of an item, for its first line
    int width;
    bool marker_is_due;
  };
  // A block with blocks in it.
  struct Parent {
    bool is_tight;
    bool has_child = false;
  };
  struct List {
    std::optional<unsigned> number;  // of the next item
    char delimiter;
  };
  struct Link {
    std::string address, title;
    std::size_t text_begin;  // in plain_
  };

  static BlockWriter& To(void* self) { return *static_cast<BlockWriter*>(self); }

  int EnterBlock(MD_BLOCKTYPE type, void* detail) {
    switch (type) {
      case MD_BLOCK_DOC:
        parents_.push_back({.is_tight = false});
        break;
      case MD_BLOCK_QUOTE:
        BeginChild();
        containers_.push_back({.is_quote = true, .marker = {}, .width = 2, .marker_is_due = false});
        parents_.push_back({.is_tight = false});
        break;
      case MD_BLOCK_UL:
        BeginChild();
        lists_.push_back({std::nullopt, '.'});
        parents_.push_back({.is_tight = static_cast<MD_BLOCK_UL_DETAIL*>(detail)->is_tight != 0});
        break;
      case MD_BLOCK_OL: {
        const auto& list = *static_cast<MD_BLOCK_OL_DETAIL*>(detail);
        BeginChild();
        lists_.push_back({lists_.empty() ? first_number_.value_or(list.start) : list.start, list.mark_delimiter});
        parents_.push_back({.is_tight = list.is_tight != 0});
        break;
      }
      case MD_BLOCK_LI:
        BeginChild();
        BeginItem(*static_cast<MD_BLOCK_LI_DETAIL*>(detail));
        break;
      case MD_BLOCK_HR:
        BeginChild();
        AppendLine(style_.Paint(Style::kDim, Rule()));
        break;
      case MD_BLOCK_H:
        BeginChild();
        ++roles_[Style::kHeading];
        if (static_cast<MD_BLOCK_H_DETAIL*>(detail)->level == 1) ++roles_[Style::kUnderlined];
        break;
      case MD_BLOCK_CODE:
        BeginChild();
        code_.emplace();
        AppendCodeTitle(static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->info);
        break;
      case MD_BLOCK_HTML:
      case MD_BLOCK_P:
        BeginChild();
        break;
      case MD_BLOCK_TABLE:
        if (static_cast<MD_BLOCK_TABLE_DETAIL*>(detail)->col_count > kMostColumns) return 1;
        BeginChild();
        table_ = {};
        break;
      case MD_BLOCK_TR:
        row_.clear();
        break;
      case MD_BLOCK_TH:
        table_.alignments.push_back(AlignmentOf(static_cast<MD_BLOCK_TD_DETAIL*>(detail)->align));
        ++roles_[Style::kBold];
        break;
      case MD_BLOCK_THEAD:
      case MD_BLOCK_TBODY:
      case MD_BLOCK_TD:
        break;
    }
    return 0;
  }

  int LeaveBlock(MD_BLOCKTYPE type) {
    switch (type) {
      case MD_BLOCK_DOC:
        EndText();
        break;
      case MD_BLOCK_QUOTE:
        containers_.pop_back();
        parents_.pop_back();
        break;
      case MD_BLOCK_UL:
      case MD_BLOCK_OL:
        lists_.pop_back();
        parents_.pop_back();
        break;
      case MD_BLOCK_LI:
        EndText();
        if (containers_.back().marker_is_due) AppendLine("");
        containers_.pop_back();
        parents_.pop_back();
        break;
      case MD_BLOCK_H:
        EndText();
        roles_[Style::kHeading] = roles_[Style::kUnderlined] = 0;
        break;
      case MD_BLOCK_CODE:
        AppendCode();
        break;
      case MD_BLOCK_HTML:
      case MD_BLOCK_P:
        EndText();
        break;
      case MD_BLOCK_TH:
        --roles_[Style::kBold];
        row_.push_back(TakeText());
        break;
      case MD_BLOCK_TD:
        row_.push_back(TakeText());
        break;
      case MD_BLOCK_TR:
        table_.header.empty() ? void(table_.header = row_) : table_.rows.push_back(row_);
        break;
      case MD_BLOCK_TABLE:
        for (const std::string& line : TableLines(table_, style_, Room())) AppendLine(line);
        break;
      case MD_BLOCK_HR:
      case MD_BLOCK_THEAD:
      case MD_BLOCK_TBODY:
        break;
    }
    return 0;
  }

  int EnterSpan(MD_SPANTYPE type, void* detail) {
    if (type == MD_SPAN_A) {
      const auto& link = *static_cast<MD_SPAN_A_DETAIL*>(detail);
      links_.push_back({AttributeText(link.href), AttributeText(link.title), plain_.size()});
    } else if (type == MD_SPAN_IMG) {
      const auto& image = *static_cast<MD_SPAN_IMG_DETAIL*>(detail);
      links_.push_back({AttributeText(image.src), AttributeText(image.title), plain_.size()});
    }
    if (const auto role = RoleOf(type)) ++roles_[*role];
    if (type == MD_SPAN_DEL) AppendText(kStruckMark);
    return 0;
  }

  int LeaveSpan(MD_SPANTYPE type) {
    if (type == MD_SPAN_DEL) AppendText(kStruckMark);
    if (const auto role = RoleOf(type)) --roles_[*role];
    if (type == MD_SPAN_A || type == MD_SPAN_IMG) EndLink();
    return 0;
  }

  int Text(MD_TEXTTYPE type, std::string_view text) {
    if (code_) {
      *code_ += type == MD_TEXT_NULLCHAR ? "\uFFFD" : text;
      return 0;
    }
    switch (type) {
      case MD_TEXT_BR:
      case MD_TEXT_SOFTBR:
        text_ += '\n';
        plain_ += ' ';
        break;
      case MD_TEXT_NULLCHAR:
        AppendText("\uFFFD");
        break;
      case MD_TEXT_ENTITY:
        AppendText(EntityText(text));
        break;
      case MD_TEXT_NORMAL:
      case MD_TEXT_CODE:
      case MD_TEXT_HTML:
      case MD_TEXT_LATEXMATH:
        AppendText(text);
        break;
    }
    return 0;
  }

  static std::optional<Style::Role> RoleOf(MD_SPANTYPE type) {
    switch (type) {
      case MD_SPAN_EM:
        return Style::kItalic;
      case MD_SPAN_STRONG:
        return Style::kBold;
      case MD_SPAN_A:
      case MD_SPAN_IMG:
        return Style::kLink;
      case MD_SPAN_CODE:
        return Style::kCode;
      case MD_SPAN_U:
        return Style::kUnderlined;
      case MD_SPAN_DEL:
        return Style::kStruck;
      case MD_SPAN_LATEXMATH:
      case MD_SPAN_LATEXMATH_DISPLAY:
      case MD_SPAN_WIKILINK:
        return std::nullopt;
    }
    return std::nullopt;
  }

  static TerminalTable::Alignment AlignmentOf(MD_ALIGN align) {
    switch (align) {
      case MD_ALIGN_CENTER:
        return TerminalTable::Alignment::kCentre;
      case MD_ALIGN_RIGHT:
        return TerminalTable::Alignment::kRight;
      case MD_ALIGN_DEFAULT:
      case MD_ALIGN_LEFT:
        return TerminalTable::Alignment::kLeft;
    }
    return TerminalTable::Alignment::kLeft;
  }

  // Text goes into `text_` as shown and into `plain_` as written.
  void AppendText(std::string_view text) {
    std::string visible = Indented(text, "");
    std::ranges::replace(visible, '\n', ' ');
    plain_ += visible;
    for (const auto& [role, times] : roles_) {
      if (times > 0) visible = style_.Paint(role, visible);
    }
    text_ += visible;
  }

  void EndLink() {
    const Link link = std::move(links_.back());
    links_.pop_back();
    const std::string text = plain_.substr(std::min(link.text_begin, plain_.size()));
    const bool says_address = link.address.empty() || text == link.address || "mailto:" + text == link.address;
    std::string more = says_address ? "" : link.address;
    if (!link.title.empty()) more += (more.empty() ? "\"" : " \"") + link.title + "\"";
    if (more.empty()) return;
    const std::string shown = text.empty() ? more : " (" + more + ")";
    text_ += style_.Paint(Style::kDim, shown);
    plain_ += shown;
  }

  std::string TakeText() {
    plain_.clear();
    return std::exchange(text_, {});
  }

  // Ends the text of a paragraph, a heading, or a tight item, which has no paragraph.
  void EndText() {
    if (text_.empty()) return;
    parents_.back().has_child = true;
    const std::string first = Prefix();
    for (std::string& line : Wrap(TakeText(), width_, first, Prefix())) lines_.push_back(std::move(line));
  }

  void BeginChild() {
    EndText();
    Parent& parent = parents_.back();
    if (parent.has_child && !parent.is_tight) AppendLine("");
    parent.has_child = true;
  }

  void BeginItem(const MD_BLOCK_LI_DETAIL& item) {
    List& list = lists_.back();
    std::string marker = "• ";
    if (list.number) marker = std::to_string((*list.number)++) + list.delimiter + " ";
    if (item.is_task != 0) marker = item.task_mark == ' ' ? "[ ] " : "[x] ";
    const int width = DisplayWidth(marker);
    containers_.push_back({.is_quote = false, .marker = std::move(marker), .width = width, .marker_is_due = true});
    const bool is_tight = parents_.back().is_tight;
    parents_.push_back({.is_tight = is_tight});
  }

  void AppendCodeTitle(const MD_ATTRIBUTE& info) {
    const std::string title = AttributeText(info);
    colours_ = CodeColours(title, style_);
    for (const std::string& line : CodeTitle(title, style_, Room())) AppendLine(line);
  }

  void AppendCode() {
    std::string_view rest = *code_;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      for (const std::string& piece : CodeLine(line, colours_, style_, Room())) AppendLine(piece);
    }
    code_.reset();
  }

  std::string Rule() const {
    std::string rule;
    for (int i = 0; i < Room(); ++i) rule += "─";
    return rule;
  }

  void AppendLine(const std::string& line) {
    std::string whole = Prefix() + line;
    if (line.empty()) whole = WithoutTrailingSpaces(std::move(whole));
    lines_.push_back(std::move(whole));
  }

  std::string WithoutTrailingSpaces(std::string line) const {
    const std::string quote = style_.Paint(Style::kDim, "│ ");
    while (line.ends_with(' ')) line.pop_back();
    if (style_.has_colour() && line.ends_with(quote)) {
      line.replace(line.size() - quote.size(), quote.size(), style_.Paint(Style::kDim, "│"));
    }
    return line;
  }

  // The outermost container that is shown: if they are very deep, only the innermost fit beside the text.
  std::size_t OutermostShown() const {
    int room = std::max(width_ / 2, kNarrowestMarkdown - 4);
    std::size_t at = containers_.size();
    while (at > 0 && containers_[at - 1].width <= room) room -= containers_[--at].width;
    return at;
  }

  int Room() const {
    int room = width_;
    for (std::size_t i = OutermostShown(); i < containers_.size(); ++i) room -= containers_[i].width;
    return room;
  }

  // The prefix of the next line. The markers of its items are no longer due afterwards.
  std::string Prefix() {
    std::string prefix;
    for (std::size_t i = OutermostShown(); i < containers_.size(); ++i) {
      const Container& container = containers_[i];
      if (container.is_quote) {
        prefix += style_.Paint(Style::kDim, "│ ");
      } else if (container.marker_is_due) {
        prefix += container.marker;
      } else {
        prefix.append(static_cast<std::size_t>(container.width), ' ');
      }
    }
    for (Container& container : containers_) container.marker_is_due = false;
    return prefix;
  }

  const Style& style_;
  const int width_;
  const std::optional<unsigned> first_number_;
  std::vector<std::string> lines_;
  std::vector<Container> containers_;
  std::vector<Parent> parents_;
  std::vector<List> lists_;
  std::vector<Link> links_;
  std::map<Style::Role, int> roles_;  // open spans of each role
  std::string text_, plain_;
  CodeColours colours_{"", style_};  // of code_
  std::optional<std::string> code_;
  TerminalTable table_;
  std::vector<std::string> row_;
};

}  // namespace

std::vector<std::string> MarkdownLines(std::string_view markdown, const Style& style, int width,
                                       std::optional<unsigned> first_number) {
  width = std::max(width, kNarrowestMarkdown);
  BlockWriter writer(style, width, first_number);
  return writer.Write(markdown) ? writer.TakeLines() : PlainLines(markdown, width);
}

std::vector<std::string> PlainLines(std::string_view text, int width) {
  width = std::max(width, kNarrowestMarkdown);
  std::string visible = Indented(text, "");
  std::vector<std::string> lines;
  for (std::string_view rest = visible; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    for (std::string& piece : Wrap(WithoutTabs(line), width)) lines.push_back(std::move(piece));
  }
  return lines;
}

std::vector<std::string> CodeTitle(std::string_view info, const Style& style, int width) {
  if (info.empty()) return {};
  return {"  " + style.Paint(Style::kDim, CutToWidth(WithoutTabs(VisibleLine(info)), width - 2))};
}

std::vector<std::string> CodeLine(std::string_view line, CodeColours& colours, const Style& style, int width) {
  if (line.empty()) return {""};
  const std::string text = colours.Paint(WithoutTabs(Indented(line, "")));
  return HardWrap(text, width, "  ", style.Paint(Style::kDim, "↪ "));
}

}  // namespace reprise
