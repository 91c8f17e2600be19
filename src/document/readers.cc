#include "document/readers.h"

#include <iconv.h>
#include <libxml/HTMLparser.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

std::string ReadAll(std::size_t most) {
  std::string all;
  std::array<char, 64 * 1024> buffer{};
  while (all.size() < most) {
    const ssize_t got = ::read(0, buffer.data(), buffer.size());
    if (got <= 0) break;
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return all;
}

char32_t OfWindows1252(char c) {
  const auto code = static_cast<unsigned char>(c);
  if (code < 0x80 || code >= 0xa0) return code;
  return kWindows1252[code - 0x80] == 0 ? kReplacement : kWindows1252[code - 0x80];
}

struct CloseConversion {
  using pointer = iconv_t;
  void operator()(iconv_t conversion) const { ::iconv_close(conversion); }
};

// In UTF-8. Goes on after invalid bytes: in UTF-8 they are taken for Windows-1252, else each becomes U+FFFD. nullopt if
// the C library does not know the encoding.
std::optional<std::string> Decoded(std::string bytes, const std::string& encoding) {
  const iconv_t opened = ::iconv_open("UTF-8", encoding.c_str());
  if (opened == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  const std::unique_ptr<iconv_t, CloseConversion> conversion(opened);
  std::string text;
  std::array<char, 64 * 1024> buffer{};
  char* from = bytes.data();
  for (std::size_t left = bytes.size();;) {
    const bool is_end = left == 0;
    char* to = buffer.data();
    std::size_t room = buffer.size();
    const bool failed =
        ::iconv(conversion.get(), is_end ? nullptr : &from, &left, &to, &room) == static_cast<std::size_t>(-1);
    text.append(buffer.data(), buffer.size() - room);
    if (is_end) return text;
    if (!failed || errno == E2BIG) continue;
    text += Utf8Of(encoding == "UTF-8" ? OfWindows1252(*from) : kReplacement);
    const std::size_t bad = std::min<std::size_t>(left, encoding.starts_with("UTF-16") ? 2 : 1);
    from += bad, left -= bad;
  }
}

}  // namespace

void ReadEncodedText(Output& out) {
  std::string text = ReadAll(4 * Output::kMaxBytes);
  std::string encoding = "WINDOWS-1252";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    encoding = text.starts_with("\xff") ? "UTF-16LE" : "UTF-16BE";
    text.erase(0, 2);
  } else if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    encoding = zero % 2 == 0 ? "UTF-16BE" : "UTF-16LE";
  }
  text = Decoded(std::move(text), encoding).value_or("");
  std::erase(text, '\r');
  for (std::size_t zero = 0; (zero = text.find('\0', zero)) != std::string::npos;)
    text.replace(zero, 1, Utf8Of(kReplacement));
  out.Add(text);
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
  int hidden = 0;                           // depth within an element that is not shown
  int as_written = 0;                       // depth of elements whose white space counts
  int raised = 0;                           // 1 is superscript, -1 subscript
  bool at_item = false;                     // the line holds only the marker of a list item
  std::vector<std::optional<int>> lists{};  // the open ones; the next number of each that has numbers
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

void BeginItem(Page& page, const xmlChar** attributes) {
  page.at_item = true;
  if (page.lists.empty() || !page.lists.back()) return page.out.Add("- ");
  int& next = *page.lists.back();
  next = ParseNumber<int>(AttributeOf(attributes, "value").value_or("")).value_or(next);
  page.out.Add(std::to_string(next) + ". ");
  if (next < std::numeric_limits<int>::max()) ++next;
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
  if (name == "ul") page.lists.emplace_back();
  if (name == "ol")
    page.lists.emplace_back(ParseNumber<int>(AttributeOf(attributes, "start").value_or("1")).value_or(1));
  if (name == "li") BeginItem(page, attributes);
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
  if ((name == "ul" || name == "ol") && !page.lists.empty()) page.lists.pop_back();
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

// Labels of encodings that browsers read as a larger one (encoding.spec.whatwg.org, "names and labels").
constexpr std::array<std::pair<const char*, std::string_view>, 9> kLargerEncodings = {
    {{"UTF-8", " utf-8 utf8 utf-16 utf-16le utf-16be "},
     {"WINDOWS-1252", " us-ascii ascii latin1 l1 iso-8859-1 iso8859-1 iso_8859-1 "},
     {"WINDOWS-1254", " iso-8859-9 latin5 "},
     {"CP874", " iso-8859-11 tis-620 "},
     {"GB18030", " gb2312 gbk x-gbk gb_2312-80 chinese "},
     {"CP932", " shift_jis shift-jis x-sjis sjis ms_kanji "},
     {"CP949", " euc-kr ks_c_5601-1987 ksc5601 korean "},
     {"EUC-JP-MS", " euc-jp x-euc-jp "},
     {"BIG5-HKSCS", " big5 x-x-big5 "}}};

// The encoding that the page declares at its beginning, as the C library calls it; UTF-8 if it declares none.
std::string DeclaredEncoding(std::string_view page) {
  const std::string head = LowerCase(page.substr(0, 4096));
  for (std::size_t at = 0; (at = head.find("<meta", at)) != std::string::npos;) {
    const std::size_t end = std::min(head.find('>', at), head.size());
    std::string_view label = std::string_view(head).substr(at, end - at);
    at = end;
    const std::size_t charset = label.find("charset");
    if (charset == std::string_view::npos) continue;
    label.remove_prefix(charset + 7);
    label.remove_prefix(std::min(label.find_first_not_of("= \t\r\n\"'"), label.size()));
    label = label.substr(0, label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_:."));
    if (label.empty()) continue;
    for (const auto& [larger, labels] : kLargerEncodings) {
      if (labels.find(" " + std::string(label) + " ") != std::string_view::npos) return larger;
    }
    return std::string(label);
  }
  return "UTF-8";
}

// The page in UTF-8. What is valid UTF-8 is taken for it, whatever the page declares.
std::string PageInUtf8(std::string page) {
  if (page.starts_with("\xff\xfe")) return Decoded(page.substr(2), "UTF-16LE").value_or("");
  if (page.starts_with("\xfe\xff")) return Decoded(page.substr(2), "UTF-16BE").value_or("");
  const bool is_ascii = std::ranges::none_of(page, [](char c) { return (c & 0x80) != 0; });
  if (!is_ascii && IsUtf8(page)) return page;
  auto text = Decoded(page, DeclaredEncoding(page));
  return text ? *std::move(text) : Decoded(std::move(page), "UTF-8").value_or("");
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
  constexpr std::size_t kMaxPage = 64u << 20, kChunk = 64u << 10;
  const std::string all = PageInUtf8(ReadAll(kMaxPage));
  if (all.size() >= kMaxPage) throw Unreadable{"it is larger than 64 MiB"};
  const std::unique_ptr<htmlParserCtxt, FreePage> parser(
      htmlCreatePushParserCtxt(&handler, &page, nullptr, 0, nullptr, XML_CHAR_ENCODING_UTF8));
  if (!parser) throw Unreadable{"there is no memory to read it"};
  htmlCtxtUseOptions(parser.get(), HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | HTML_PARSE_NONET |
                                       HTML_PARSE_IGNORE_ENC);
  for (std::string_view rest = all; !rest.empty() && !out.full(); rest.remove_prefix(std::min(kChunk, rest.size())))
    htmlParseChunk(parser.get(), rest.data(), static_cast<int>(std::min(kChunk, rest.size())), 0);
  htmlParseChunk(parser.get(), nullptr, 0, 1);
  out.EndLine();
}

}  // namespace reprise::document
