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

constexpr std::array<std::string_view, 28> kBlocks = {
    "address", "article", "aside", "blockquote", "br",  "dd", "div",   "dl", "dt", "figcaption",
    "footer",  "form",    "h1",    "h2",         "h3",  "h4", "h5",    "h6", "hr", "li",
    "main",    "nav",     "ol",    "p",          "pre", "tr", "table", "ul"};
constexpr std::array<std::string_view, 6> kHidden = {"script", "style", "noscript", "template", "svg", "object"};

template <std::size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Page {
  Output& out;
  int hidden = 0;
};

std::string_view TagText(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

void Begin(void* context, const xmlChar* tag, const xmlChar** /*attributes*/) {
  auto& page = *static_cast<Page*>(context);
  const std::string_view name = TagText(tag);
  if (IsOneOf(name, kHidden)) ++page.hidden;
  if (page.hidden > 0) return;
  if (IsOneOf(name, kBlocks)) page.out.EndLine();
  if (name == "li") page.out.Add("- ");
}

void End(void* context, const xmlChar* tag) {
  auto& page = *static_cast<Page*>(context);
  const std::string_view name = TagText(tag);
  if (IsOneOf(name, kHidden) && page.hidden > 0) --page.hidden;
  if (page.hidden > 0) return;
  if (IsOneOf(name, kBlocks) || name == "title") page.out.EndLine();
  if (name == "td" || name == "th") page.out.Add("\t");
}

void Text(void* context, const xmlChar* text, int size) {
  auto& page = *static_cast<Page*>(context);
  if (page.hidden > 0) return;
  std::string_view rest(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
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
