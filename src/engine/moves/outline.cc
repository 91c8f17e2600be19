#include "engine/moves/outline.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kPieceOfDocument = 1 << 20;
constexpr std::size_t kNoList = std::numeric_limits<std::size_t>::max();

tl::unexpected<Error> Unusable(const SourceText& source, const std::string& why) {
  return Fail(Reason::kInvalidDocument, source.name() + ": " + why);
}

// Follows a document byte by byte: through strings and brackets, and through the names that lead to its lists.
class OutlineScanner {
 public:
  OutlineScanner(const SourceText& source, std::span<const std::string_view> lists, const VisitElement& visit,
                 bool keeps_first)
      : source_(source), lists_(lists), visit_(visit), keeps_first_(keeps_first), begun_(lists.size()) {}

  // Takes a piece that begins at `offset`. False: the document has ended, or the visitor wants no more.
  Result<bool> Take(std::string_view piece, std::uint64_t offset) {
    piece_ = piece;
    kept_ = 0;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (in_string_) {
        i = EndOfString(i);
        continue;
      }
      if (is_ended_) {
        is_alone_ = is_alone_ && IsSpace(piece[i]);
        if (!is_alone_) return false;
        continue;
      }
      if (!TRY(TakeToken(piece[i], i, offset + i))) return false;
    }
    if (is_keeping_) rest_.append(piece, kept_, piece.size() - kept_);
    if (rest_.size() > kMaxSourceRecord) {
      return Unusable(source_, "a message, or all but the list of messages, is larger than " +
                                   std::to_string(kMaxSourceRecord >> 20) + " MiB");
    }
    return true;
  }
  bool is_ended() const { return is_ended_; }
  Outline Take() && { return {.rest = std::move(rest_), .begin = begin_, .end = end_, .is_alone = is_alone_}; }

 private:
  // The index at which the string ends; of the last byte if it goes on.
  std::size_t EndOfString(std::size_t i) {
    for (; i < piece_.size(); ++i) {
      const char c = piece_[i];
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      if (is_name_ && name_.size() < kLongestName) name_ += c;
      if (!in_string_) return i;
    }
    return i;
  }

  Result<bool> TakeToken(char c, std::size_t i, std::uint64_t at) {
    if (IsSpace(c)) return true;
    if (depth_ == 0 && c != '{' && c != '[') return Unusable(source_, "it is neither a JSON object nor an array");
    if (depth_ == 0) begin_ = at;
    if (list_ != kNoList && depth_ == list_depth_) {
      if (c == ',' || c == ']' || c == '}') return EndElement(c, i, at);
      if (element_.offset == 0) BeginElement(i, at);
    }
    switch (c) {
      case '"':
        in_string_ = true;
        is_name_ = IsTracked() && expects_name_;
        if (is_name_) name_ = "\"";
        return true;
      case '{':
      case '[':
        return Open(c, i);
      case '}':
      case ']':
        if (--depth_ < levels_.size()) path_.resize(levels_.back()), levels_.pop_back();
        if (depth_ == 0) End(i, at);
        return true;
      case ',':
        expects_name_ = true;
        return true;
      case ':':
        expects_name_ = false;
        return true;
      default:
        return true;
    }
  }

  // Whether the innermost open object is one whose members may lead to a list.
  bool IsTracked() const { return list_ == kNoList && depth_ > 0 && depth_ == levels_.size(); }

  Result<bool> Open(char c, std::size_t i) {
    const bool may_lead = list_ == kNoList && depth_ == levels_.size() && (depth_ == 0 || !expects_name_);
    const std::string name = may_lead && depth_ > 0 ? path_ + NameAsText() : std::string();
    ++depth_;
    if (!may_lead) return true;
    const auto found = std::ranges::find(lists_, name + c);
    if (found != lists_.end()) {
      list_ = static_cast<std::size_t>(found - lists_.begin());
      list_depth_ = depth_;
      element_ = {};
      if (begun_[list_]) return Unusable(source_, "it has the list \"" + name + "\" twice");
      begun_[list_] = true;
      StopKeeping(i + 1);
      return true;
    }
    const std::string below = name.empty() ? name : name + ".";
    const bool leads = c == '{' && std::ranges::any_of(lists_, [&](auto list) { return list.starts_with(below); });
    if (!leads) return true;
    levels_.push_back(path_.size());
    path_ = below;
    expects_name_ = true;
    return true;
  }

  std::string NameAsText() const {
    const auto text = name_.find('\\') == std::string::npos ? Result<Json>(Json()) : ParseJson(name_);
    if (text && text->is_string()) return text->get<std::string>();
    return name_.size() < 2 ? std::string() : name_.substr(1, name_.size() - 2);
  }

  void BeginElement(std::size_t i, std::uint64_t at) {
    element_.offset = at;
    ++element_.number;
    if (keeps_first_ && element_.number == 1) is_keeping_ = true, kept_ = i;
  }

  // At a comma, or at the end of the list.
  Result<bool> EndElement(char c, std::size_t i, std::uint64_t at) {
    const bool is_empty = c != ',' && element_.number == 0;
    if (element_.offset == 0 && !is_empty) BeginElement(i, at);  // a blank one, which is no JSON
    StopKeeping(i);
    element_.length = at - element_.offset;
    const std::size_t list = list_;
    const ElementPlace ended = std::exchange(element_, {.number = element_.number});
    if (c != ',') {
      list_ = kNoList;
      is_keeping_ = true, kept_ = i;
      if (--depth_ == 0) End(i, at);
    }
    return is_empty || TRY(visit_(list, ended));
  }

  void End(std::size_t i, std::uint64_t at) {
    is_ended_ = true;
    end_ = at + 1;
    StopKeeping(i + 1);
  }

  void StopKeeping(std::size_t end) {
    if (std::exchange(is_keeping_, false)) rest_.append(piece_, kept_, end - kept_);
  }

  static constexpr std::size_t kLongestName = 256;

  const SourceText& source_;
  const std::span<const std::string_view> lists_;
  const VisitElement& visit_;
  const bool keeps_first_;
  std::vector<bool> begun_;  // the lists

  std::string_view piece_;
  std::size_t kept_ = 0;  // of the piece, if is_keeping_
  bool is_keeping_ = true;
  std::string rest_;
  bool in_string_ = false, escaped_ = false, is_ended_ = false, is_alone_ = true;
  std::size_t depth_ = 0;            // open brackets
  std::vector<std::size_t> levels_;  // of the open objects that may lead to a list: path_'s size before each
  std::string path_, name_;
  bool expects_name_ = true, is_name_ = false;
  std::uint64_t begin_ = 0, end_ = 0;
  std::size_t list_ = kNoList, list_depth_ = 0;
  ElementPlace element_;  // offset 0: none begins; there is a bracket before the first one
};

Result<Outline> Scan(const SourceText& source, std::span<const std::string_view> lists, const VisitElement& visit,
                     bool keeps_first) {
  OutlineScanner scanner(source, lists, visit, keeps_first);
  std::uint64_t offset = TRY(SizeOfMark(source));
  while (offset < source.size()) {
    const std::string piece = TRY(source.Read(offset, kPieceOfDocument));
    if (!TRY(scanner.Take(piece, offset))) return std::move(scanner).Take();
    offset += piece.size();
  }
  if (!scanner.is_ended()) return Unusable(source, "it is cut off");
  return std::move(scanner).Take();
}

// Of chats whose messages are named, some exports have the last branch once more as a list.
constexpr std::string_view kDocumentLists[] = {
    "[",
    "messages[",
    "history[",
    "steps[",
    "chat_messages[",
    "conversation[",
    "mapping{",
    "history.messages{",
    "chat.history.messages{",
    "chat.messages[",
    "messagesTree[",
};

}  // namespace

Result<Outline> ReadOutline(const SourceText& source, std::span<const std::string_view> lists,
                            const VisitElement& visit) {
  return Scan(source, lists, visit, /*keeps_first=*/true);
}

Result<void> ForEachElement(const SourceText& source, const std::function<Result<bool>(const ElementPlace&)>& visit) {
  constexpr std::string_view kWhole[] = {"["};
  constexpr std::size_t kBeginning = 4096;
  const std::string beginning = TRY(source.Read(0, kBeginning));
  if (!Trimmed(WithoutMark(beginning)).starts_with('[')) {
    return visit({.offset = 0, .length = source.size(), .number = 1}).map([](bool) {});
  }
  const auto each = [&](std::size_t, const ElementPlace& place) { return visit(place); };
  if (TRY(Scan(source, kWhole, each, /*keeps_first=*/false)).is_alone) return {};
  return Unusable(source, "something follows its end");
}

std::vector<SourcePlace> MovedDocument::In(std::string_view list) const {
  const auto index = static_cast<std::uint32_t>(std::ranges::find(kDocumentLists, list) - std::begin(kDocumentLists));
  std::vector<SourcePlace> places;
  for (const Element& each : elements) {
    if (each.list == index) places.push_back(each.place);
  }
  return places;
}

Result<Json> LoadElement(const SourceText& source, const SourcePlace& place) {
  return ParseForeignJson(TRY(source.Read(place.offset, place.length)), PlaceIn(source, place, "element"));
}

Records ElementsOf(const MovedDocument& document, std::string_view list) {
  auto places = document.In(list);
  const std::size_t count = places.size();
  const bool are_members = list.ends_with('{');
  auto load = [source = document.source, places = std::move(places), are_members](std::size_t record) -> Result<Json> {
    const SourcePlace& place = places[record];
    if (!are_members) return LoadElement(source, place);
    const std::string text = TRY(source.Read(place.offset, place.length));
    return ParseForeignJson("{" + text + "}", PlaceIn(source, place, "message"));
  };
  return {.count = count, .load = std::move(load)};
}

std::span<const std::string_view> DocumentLists() { return kDocumentLists; }

Result<MovedDocument> ReadDocument(const SourceText& source) {
  MovedDocument document{.source = source};
  const auto add = [&](std::size_t list, const ElementPlace& at) -> Result<bool> {
    if (at.length > kMaxSourceRecord) return TooLong(source, "element", at.number);
    const SourcePlace place{.offset = at.offset, .length = static_cast<std::uint32_t>(at.length), .number = at.number};
    document.elements.push_back({.place = place, .list = static_cast<std::uint32_t>(list)});
    return true;
  };
  const Outline outline = TRY(ReadOutline(source, kDocumentLists, add));
  if (!outline.is_alone) return Unusable(source, "it is not one JSON value");
  document.begin = outline.begin;
  document.end = outline.end;
  document.rest = TRY(ParseForeignJson(outline.rest, source.name()));
  return document;
}

}  // namespace reprise
