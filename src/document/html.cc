#include "document/html.h"

#include <libxml/HTMLparser.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/utf8.h"

namespace reprise::document {
namespace {

// Elements within a line. All others begin and end one, so that texts of neighbouring blocks stay apart.
constexpr std::array<std::string_view, 50> kInline = {
    "a",    "abbr", "acronym", "audio", "b",    "bdi",   "bdo",  "big",    "canvas", "cite", "code", "data", "del",
    "dfn",  "em",   "embed",   "font",  "i",    "img",   "ins",  "kbd",    "map",    "mark", "nobr", "q",    "rb",
    "rp",   "ruby", "s",       "samp",  "slot", "small", "span", "strike", "strong", "sub",  "sup",  "td",   "th",
    "time", "tt",   "u",       "var",   "wbr",  "rtc",   "area", "html",   "body",   "head", "link"};
// Drawn beside one another, each as a box of its own.
constexpr std::array<std::string_view, 8> kBoxes = {"button",   "input",  "label", "meter",
                                                    "progress", "select", "video", "iframe"};
constexpr std::array<std::string_view, 7> kHidden = {"script", "style", "noscript", "template", "svg", "object", "rt"};

template <std::size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Page {
  Output& out;
  int hidden = 0;
  int as_written = 0;    // in elements whose white space counts
  bool at_item = false;  // nothing but the mark of a list's item stands on the line
};

bool IsBlock(std::string_view name) { return !IsOneOf(name, kInline) && !IsOneOf(name, kBoxes); }

bool IsAsWritten(std::string_view name) {
  return name == "pre" || name == "textarea" || name == "listing" || name == "xmp";
}

std::string_view TagText(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

void Begin(void* context, const xmlChar* tag, const xmlChar** /*attributes*/) {
  auto& page = *static_cast<Page*>(context);
  const std::string_view name = TagText(tag);
  if (IsOneOf(name, kHidden)) ++page.hidden;
  if (page.hidden > 0) return;
  if (name == "br" && page.as_written > 0) {
    page.out.Add("\n");
  } else if (IsBlock(name) && !page.at_item) {
    page.out.EndLine();
  }
  if (IsOneOf(name, kBoxes)) page.out.AddSpace();
  if (name == "li") page.out.Add("- "), page.at_item = true;
  if (IsAsWritten(name)) ++page.as_written;
}

void End(void* context, const xmlChar* tag) {
  auto& page = *static_cast<Page*>(context);
  const std::string_view name = TagText(tag);
  if (IsOneOf(name, kHidden) && page.hidden > 0) --page.hidden;
  if (page.hidden > 0) return;
  if (IsAsWritten(name) && page.as_written > 0) --page.as_written;
  if (name == "li") page.at_item = false;
  if (IsBlock(name) && !page.at_item && (name != "br" || page.as_written == 0)) page.out.EndLine();
  if (IsOneOf(name, kBoxes)) page.out.AddSpace();
  if (name == "td" || name == "th") page.out.Add("\t");
}

void Text(void* context, const xmlChar* text, int size) {
  auto& page = *static_cast<Page*>(context);
  if (page.hidden > 0) return;
  std::string_view rest(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
  if (rest.find_first_not_of(" \t\r\n") != std::string_view::npos) page.at_item = false;
  if (page.as_written > 0) return page.out.Add(rest);
  constexpr std::string_view kSpace = " \t\r\n";
  while (!rest.empty()) {
    if (kSpace.find(rest.front()) != std::string_view::npos) page.out.AddSpace();
    rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
    const std::string_view word = rest.substr(0, rest.find_first_of(kSpace));
    page.out.Add(word);
    rest.remove_prefix(word.size());
  }
}

// What a page's first bytes tell of its encoding.
struct Encoding {
  xmlCharEncoding name = XML_CHAR_ENCODING_NONE;
  bool is_sure = false;  // whatever the page says of itself
};

Encoding EncodingOf(std::string_view first) {
  if (first.starts_with("\xff\xfe")) return {XML_CHAR_ENCODING_UTF16LE, true};
  if (first.starts_with("\xfe\xff")) return {XML_CHAR_ENCODING_UTF16BE, true};
  const std::string_view whole = first.substr(0, first.size() - IncompleteUtf8Tail(first));
  const bool is_ascii = std::none_of(whole.begin(), whole.end(), [](char c) { return (c & 0x80) != 0; });
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
      if (encoding.is_sure && !is_utf8) first.remove_prefix(2);  // the mark of UTF-16
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
