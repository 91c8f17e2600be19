#include "document/paragraphs.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace reprise::document {
namespace {

// The usual signs of Wingdings.
constexpr std::array<std::pair<unsigned, char32_t>, 12> kWingdings = {{{0x6c, 0x25cf},
                                                                       {0x6e, 0x25a0},
                                                                       {0x6f, 0x2610},
                                                                       {0xa7, 0x25aa},
                                                                       {0xa8, 0x2610},
                                                                       {0xd8, 0x27a2},
                                                                       {0xdf, 0x2190},
                                                                       {0xe0, 0x2192},
                                                                       {0xfb, 0x2717},
                                                                       {0xfc, 0x2713},
                                                                       {0xfd, 0x2612},
                                                                       {0xfe, 0x2611}}};

// The character of a w:sym.
std::string SymbolOf(const Element& element) {
  const std::string font = element.Attribute("font");
  const unsigned long code = std::strtoul(element.Attribute("char").c_str(), nullptr, 16);
  const bool is_of_font = font == "Symbol" || font.starts_with("Wingdings") || font == "Webdings";
  if (!is_of_font && code >= 0x20 && code <= 0xffff && (code < 0xd800 || code >= 0xf900))
    return Utf8Of(static_cast<char32_t>(code));
  const auto sign = std::ranges::find(kWingdings, code & 0xff, [](const auto& each) { return each.first; });
  return font == "Wingdings" && sign != kWingdings.end() ? Utf8Of(sign->second) : NotShown("symbol", {});
}

}  // namespace

std::string NotShown(std::string_view what, std::string description) {
  std::ranges::replace(description, '\n', ' ');
  return "[" + std::string(what) + " not shown" + (description.empty() ? "" : ": " + description) + "]";
}

XmlHandler Paragraphs::Handler() {
  return {.begin = [this](const Element& element) { Begin(element); },
          .end = [this](std::string_view name) { End(name); },
          .text =
              [this](std::string_view text) {
                if (in_text_ > 0 && hidden_ == 0) Add(text);
              }};
}

void Paragraphs::Add(std::string_view text) {
  if (equation_.is_open()) return equation_.Add(text);
  if (std::exchange(after_equation_, false) && !text.empty() && IsAsciiAlnum(text.front())) out_.AddSpace();
  out_.Add(raised_ == 0 ? std::string(text) : Raised(text, raised_ < 0));
}

void Paragraphs::EndEquation() {
  const auto line = equation_.End();
  if (!line || line->empty()) return;
  if (!out_.text().empty() && IsAsciiAlnum(out_.text().back()) && IsAsciiAlnum(line->front())) out_.AddSpace();
  out_.Add(*line);
  after_equation_ = IsAsciiAlnum(line->back());
}

void Paragraphs::TakeProperty(const Element& element) {
  const std::string_view name = element.name();
  if (in_paragraph_properties_ > 0 && place_) {
    if (name == "pStyle") place_->style = element.Attribute("val");
    if (name == "numId") place_->list = element.Attribute("val");
    if (name == "ilvl") place_->level = element.Attribute("val");
  }
  if (in_run_ == 0) return;
  const std::string align = name == "vertAlign" ? element.Attribute("val") : std::string();
  const int baseline = name == "rPr" ? std::atoi(element.Attribute("baseline").c_str()) : 0;
  if (align == "superscript" || baseline > 0) raised_ = 1;
  if (align == "subscript" || baseline < 0) raised_ = -1;
}

bool Paragraphs::IsLeftOut(const Element& element) const {
  const std::string_view name = element.name();
  if (name == "fld") return element.Attribute("type") == "slidenum";
  return name == "moveFrom" || name == "rt" || name.ends_with("PrChange") || (name == "del" && in_row_properties_ == 0);
}

bool Paragraphs::Hides(const Element& element) const {
  const std::string_view name = element.name();
  if (name == "vanish") return in_run_ > 0 && IsOn(element);
  if (name == "del" || name == "hidden") return in_row_properties_ > 0 && IsOn(element);
  if (name == "cNvPr") return !element.Attribute("hidden").empty() && element.Attribute("hidden") != "0";
  if ((name == "rStyle" && in_run_ > 0) || (name == "pStyle" && in_paragraph_properties_ > 0))
    return lists_ != nullptr && lists_->IsHidden(element.Attribute("val"));
  return name == "cellDel" || (name == "vMerge" && element.Attribute("val") != "restart");
}

void Paragraphs::Refer(NoteNumbers* numbers, const Element& element, const char* before) {
  if (numbers == nullptr) return;
  const int number = numbers->emplace(element.Attribute("id"), static_cast<int>(numbers->size()) + 1).first->second;
  out_.Add(before + std::to_string(number) + "]");
}

void Paragraphs::Begin(const Element& element) {
  const std::string_view name = element.name();
  ++depth_;
  if (left_out_ > 0 || IsLeftOut(element)) {
    if (in_paragraph_properties_ > 0 && name == "del") place_.reset();
    ++left_out_;
    return;
  }
  if (equation_.is_open() || (name == "oMath" && hidden_ == 0)) equation_.Begin(element);
  if (hidden_ == 0 && Hides(element)) hidden_ = std::max(depth_ - 2, 0);
  if (name == "t" || name == "text") ++in_text_;
  if (name == "tc") ++in_cell_;
  if (name == "trPr") ++in_row_properties_;
  if (name == "pPr" && in_paragraph_properties_++ == 0) place_.emplace();
  if (name == "tabs" || name == "tabLst") ++in_stops_;
  if (name == "r") ++in_run_;
  if (hidden_ > 0 || equation_.is_open()) return;
  TakeProperty(element);
  if ((name == "cNvPr" || name == "docPr") && !element.Attribute("descr").empty())
    description_ = element.Attribute("descr");
  if (name == "shape" && !element.Attribute("alt").empty()) description_ = element.Attribute("alt");
  if (name == "txbxContent") out_.EndLine();
  if (name == "tab" && in_stops_ == 0) out_.Add("\t");
  if (name == "br" || name == "cr") in_cell_ > 0 ? out_.AddSpace() : out_.Add("\n");
  if (name == "noBreakHyphen") out_.Add("\u2011");
  if (name == "sym") out_.Add(SymbolOf(element));
  if (name == "textpath") out_.AddSpace(), out_.Add(element.Attribute("string"));
  if (name == "altChunk") out_.EndLine(), out_.Add(NotShown("embedded document", {})), out_.EndLine();
  if (name == "footnoteReference") Refer(footnotes_, element, "[");
  if (name == "endnoteReference") Refer(endnotes_, element, "[endnote ");
  if (name == "footnote" || name == "endnote") {
    const NoteNumbers* const numbers = name == "footnote" ? footnotes_ : endnotes_;
    const auto found = numbers == nullptr ? NoteNumbers::const_iterator() : numbers->find(element.Attribute("id"));
    if (numbers != nullptr && found != numbers->end()) out_.Add("[" + std::to_string(found->second) + "] ");
  }
  if (name == "comment" && !element.Attribute("author").empty()) out_.Add(element.Attribute("author") + ": ");
}

void Paragraphs::End(std::string_view name) {
  const bool is_hidden = hidden_ > 0;
  if (depth_-- == hidden_) hidden_ = 0;
  if (left_out_ > 0) {
    --left_out_;
    return;
  }
  if (name == "t" || name == "text") --in_text_;
  if (name == "trPr") --in_row_properties_;
  const bool ends_properties = name == "pPr" && --in_paragraph_properties_ == 0;
  if (name == "tabs" || name == "tabLst") --in_stops_;
  if (name == "r" && --in_run_ == 0) raised_ = 0;
  if (equation_.is_open()) return EndEquation();
  if (name == "tc") --in_cell_;
  if (name == "tc" && hidden_ == 0) out_.Add("\t");
  if (is_hidden) return;
  if (ends_properties && place_ && lists_ != nullptr) out_.Add(lists_->Next(*place_));
  if (name == "p") after_equation_ = false;
  if (name == "p" || name == "cm") in_cell_ > 0 ? out_.AddSpace() : out_.EndLine();
  if (name == "tr") out_.EndLine();
  Describe(name);
}

void Paragraphs::Describe(std::string_view name) {
  const bool is_picture = name == "pic" || name == "imagedata";
  const bool is_drawing =
      name == "drawing" || name == "pict" || name == "sp" || name == "cxnSp" || name == "graphicFrame";
  if (!is_picture && (!is_drawing || description_.empty())) return;
  const bool is_inline = in_run_ > 0 || in_cell_ > 0;
  is_inline ? out_.AddSpace() : out_.EndLine();
  out_.Add(NotShown(is_picture ? "picture" : "drawing", std::exchange(description_, {})));
  if (!is_inline) out_.EndLine();
}

}  // namespace reprise::document
