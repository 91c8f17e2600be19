#include "document/readers.h"

#include <libxml/HTMLparser.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/text.h"
#include "document/equation.h"

namespace reprise::document {

namespace {

// 0x80 to 0x9f of Windows-1252; 0 is no character. The rest is as in Unicode.
constexpr std::array<std::uint16_t, 32> kWindows1252 = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                                        0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
                                                        0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                                        0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};
constexpr char32_t kReplacement = 0xfffd;

std::string ReadAll() {
  std::string all;
  std::array<char, 64 * 1024> buffer{};
  while (all.size() < 4 * Output::kMaxBytes) {
    const ssize_t got = ::read(0, buffer.data(), buffer.size());
    if (got <= 0) break;
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return all;
}

void AddUtf16(std::string_view text, bool high_first, Output& out) {
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]), second = static_cast<unsigned char>(text[at + 1]);
    return static_cast<char32_t>(high_first ? first << 8 | second : second << 8 | first);
  };
  for (std::size_t i = 0; i + 1 < text.size() && !out.full(); i += 2) {
    char32_t code = unit(i);
    if (code >= 0xd800 && code < 0xe000) {
      const char32_t low = code < 0xdc00 && i + 3 < text.size() ? unit(i + 2) : 0;
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i += 2;
      } else {
        code = kReplacement;
      }
    }
    if (code != '\r') out.Add(Utf8Of(code == 0 ? kReplacement : code));
  }
  if (text.size() % 2 != 0) out.Add(Utf8Of(kReplacement));
}

void AddWindows1252(std::string_view text, Output& out) {
  for (const char c : text) {
    if (out.full()) return;
    char32_t code = static_cast<unsigned char>(c);
    if (code >= 0x80 && code < 0xa0) code = kWindows1252[code - 0x80] == 0 ? kReplacement : kWindows1252[code - 0x80];
    if (code != '\r') out.Add(Utf8Of(code == 0 ? kReplacement : code));
  }
}

}  // namespace

void ReadEncodedText(Output& out) {
  const std::string all = ReadAll();
  const std::string_view text = all;
  if (text.starts_with("\xff\xfe")) return AddUtf16(text.substr(2), false, out);
  if (text.starts_with("\xfe\xff")) return AddUtf16(text.substr(2), true, out);
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    return AddUtf16(text, zero % 2 == 0, out);
  AddWindows1252(text, out);
}

namespace {

// Inline elements. All others begin and end a line, so that neighbouring blocks stay apart.
constexpr std::array<std::string_view, 50> kInline = {
    "a",    "abbr", "acronym", "audio", "b",    "bdi",   "bdo",  "big",    "canvas", "cite", "code", "data", "del",
    "dfn",  "em",   "embed",   "font",  "i",    "img",   "ins",  "kbd",    "map",    "mark", "nobr", "q",    "rb",
    "rp",   "ruby", "s",       "samp",  "slot", "small", "span", "strike", "strong", "sub",  "sup",  "td",   "th",
    "time", "tt",   "u",       "var",   "wbr",  "rtc",   "area", "html",   "body",   "head", "link"};
// Boxes drawn side by side.
constexpr std::array<std::string_view, 8> kBoxes = {"button",   "input",  "label", "meter",
                                                    "progress", "select", "video", "iframe"};
constexpr std::array<std::string_view, 8> kHidden = {"script", "style",  "noscript", "template",
                                                     "svg",    "object", "rt",       "rp"};

template <std::size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

struct Page {
  Output& out;
  int hidden = 0;        // depth within an element that is not shown
  int as_written = 0;    // depth of elements whose white space counts
  int raised = 0;        // 1 is superscript, -1 subscript
  bool at_item = false;  // the line holds only the marker of a list item
};

bool IsBlock(std::string_view name) { return !IsOneOf(name, kInline) && !IsOneOf(name, kBoxes); }

bool IsAsWritten(std::string_view name) {
  return name == "pre" || name == "textarea" || name == "listing" || name == "xmp";
}

std::string_view TagText(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

// The C1 control characters are those of Windows-1252, as in browsers: pages in it claim to be in Latin-1.
std::string WithoutC1(std::string_view text) {
  std::string shown;
  for (std::size_t at = text.find('\xc2'); at < text.size(); at = text.find('\xc2')) {
    const unsigned low = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0;
    const bool is_c1 = low >= 0x80 && low < 0xa0 && kWindows1252[low - 0x80] != 0;
    shown += text.substr(0, is_c1 ? at : at + 1);
    if (is_c1) shown += Utf8Of(kWindows1252[low - 0x80]);
    text.remove_prefix(is_c1 ? at + 2 : at + 1);
  }
  return shown.append(text);
}

// An attribute's value; nullopt if the element has none of that name.
std::optional<std::string> AttributeOf(const xmlChar** attributes, std::string_view name) {
  for (; attributes != nullptr && attributes[0] != nullptr; attributes += 2) {
    if (TagText(attributes[0]) == name)
      return attributes[1] == nullptr ? std::string() : WithoutC1(TagText(attributes[1]));
  }
  return std::nullopt;
}

// By the element's own attributes; style sheets are not read.
bool IsHidden(const xmlChar** attributes) {
  if (AttributeOf(attributes, "hidden")) return true;
  std::string style = LowerCase(AttributeOf(attributes, "style").value_or(""));
  std::erase_if(style, IsSpace);
  return style.find("display:none") != std::string::npos || style.find("visibility:hidden") != std::string::npos;
}

void Begin(void* context, const xmlChar* tag, const xmlChar** attributes) {
  auto& page = *static_cast<Page*>(context);
  const std::string_view name = TagText(tag);
  const bool is_all = name == "html" || name == "body";  // a script shows it, as there is nothing else
  if (page.hidden > 0 || IsOneOf(name, kHidden) || (!is_all && IsHidden(attributes))) {
    ++page.hidden;
    return;
  }
  if (name == "br" && page.as_written > 0) {
    page.out.Add("\n");
  } else if (IsBlock(name) && !page.at_item) {
    page.out.EndLine();
  }
  if (IsOneOf(name, kBoxes)) page.out.AddSpace();
  if (name == "sup" || name == "sub") page.raised = name == "sup" ? 1 : -1;
  if (name == "li") page.out.Add("- "), page.at_item = true;
  if (name == "img") {  // without a description it is an ornament
    const std::string description = AttributeOf(attributes, "alt").value_or("");
    if (!IsBlank(description)) page.out.AddSpace(), page.out.Add("[picture not shown: " + description + "]");
  }
  if (IsAsWritten(name)) ++page.as_written;
}

void End(void* context, const xmlChar* tag) {
  auto& page = *static_cast<Page*>(context);
  if (page.hidden > 0) {
    --page.hidden;
    return;
  }
  const std::string_view name = TagText(tag);
  if (IsAsWritten(name) && page.as_written > 0) --page.as_written;
  if (name == "sup" || name == "sub") page.raised = 0;
  if (name == "li") page.at_item = false;
  if (IsBlock(name) && !page.at_item && (name != "br" || page.as_written == 0)) page.out.EndLine();
  if (IsOneOf(name, kBoxes)) page.out.AddSpace();
  if (name == "td" || name == "th") page.out.Add("\t");
}

void Text(void* context, const xmlChar* text, int size) {
  auto& page = *static_cast<Page*>(context);
  if (page.hidden > 0) return;
  const std::string shown = WithoutC1({reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)});
  std::string_view rest = shown;
  if (rest.find_first_not_of(" \t\r\n") != std::string_view::npos) page.at_item = false;
  if (page.as_written > 0) return page.out.Add(rest);
  constexpr std::string_view kSpace = " \t\r\n";
  while (!rest.empty()) {
    if (kSpace.find(rest.front()) != std::string_view::npos) page.out.AddSpace();
    rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
    const std::string_view word = rest.substr(0, rest.find_first_of(kSpace));
    page.out.Add(page.raised == 0 ? std::string(word) : Raised(word, page.raised < 0));
    rest.remove_prefix(word.size());
  }
}

// The encoding that a page's first bytes show.
struct Encoding {
  xmlCharEncoding name = XML_CHAR_ENCODING_NONE;
  bool is_sure = false;  // even if the page declares another
};

Encoding EncodingOf(std::string_view first) {
  if (first.starts_with("\xff\xfe")) return {XML_CHAR_ENCODING_UTF16LE, true};
  if (first.starts_with("\xfe\xff")) return {XML_CHAR_ENCODING_UTF16BE, true};
  const std::string_view whole = first.substr(0, first.size() - IncompleteUtf8Tail(first));
  const bool is_ascii = std::ranges::none_of(whole, [](char c) { return (c & 0x80) != 0; });
  return IsUtf8(whole) ? Encoding{XML_CHAR_ENCODING_UTF8, !is_ascii} : Encoding{};
}

struct FreePage {
  void operator()(htmlParserCtxt* parser) const { htmlFreeParserCtxt(parser); }
};

}  // namespace

void ReadHtml(Output& out) {
  Page page{out};
  htmlSAXHandler handler{};
  handler.startElement = Begin;
  handler.endElement = End;
  handler.characters = Text;
  handler.ignorableWhitespace = Text;
  std::array<char, 64 * 1024> buffer{};
  std::unique_ptr<htmlParserCtxt, FreePage> parser;
  for (;;) {
    const ssize_t got = ::read(0, buffer.data(), buffer.size());
    if (got <= 0 || out.full()) break;
    if (!parser) {
      std::string_view first(buffer.data(), static_cast<std::size_t>(got));
      const Encoding encoding = EncodingOf(first);
      const bool is_utf8 = encoding.name == XML_CHAR_ENCODING_UTF8;
      if (encoding.is_sure && !is_utf8) first.remove_prefix(2);  // the byte order mark of UTF-16
      parser.reset(htmlCreatePushParserCtxt(&handler, &page, first.data(), static_cast<int>(first.size()), nullptr,
                                            encoding.name));
      if (!parser) throw Unreadable{"there is no memory to read it"};
      const int ignores = encoding.is_sure ? HTML_PARSE_IGNORE_ENC : 0;
      htmlCtxtUseOptions(parser.get(),
                         HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | HTML_PARSE_NONET | ignores);
    } else {
      htmlParseChunk(parser.get(), buffer.data(), static_cast<int>(got), 0);
    }
  }
  if (parser) htmlParseChunk(parser.get(), nullptr, 0, 1);
  out.EndLine();
}

}  // namespace reprise::document
