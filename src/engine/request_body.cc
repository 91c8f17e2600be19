#include "engine/request_body.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/interned.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

// Providers take far less. A damaged record cannot make us allocate more.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
// A record made elsewhere may have a longer row of repeated requests than ours.
constexpr std::size_t kMostInRow = 1024;

// Marks at the ends of that many last elements: the last three may change when others follow, such as by cache marks at
// the last two messages of the user, which move on.
constexpr std::size_t kHeads = 4;

struct Conversation {
  std::size_t open = 0;             // offset just after the '['
  std::vector<std::size_t> ends{};  // offsets just after its last elements, at most kHeads
  std::size_t close = 0;            // offset of the ']'
};

// The offset just after the string that begins at `at`.
std::size_t EndOfString(std::string_view json, std::size_t at) {
  for (std::size_t quote = json.find('"', at + 1); quote != json.npos; quote = json.find('"', quote + 1)) {
    std::size_t escape = quote;
    while (json[escape - 1] == '\\') --escape;
    if ((quote - escape) % 2 == 0) return quote + 1;
  }
  return json.size();
}

// Finds the array "messages" or "input" of the outermost object. Text that is not JSON may give any offsets, or none.
std::optional<Conversation> FindConversation(std::string_view body) {
  Conversation found;
  std::string_view name;  // of the outermost object's present member, with its quotes
  bool inside = false;    // the array
  std::size_t depth = 0;
  std::size_t end = 0;  // offset just after the last character that is no space
  for (std::size_t i = 0; i < body.size(); end = i) {
    while (i < body.size() && IsSpace(body[i])) ++i;
    if (i == body.size() || (depth == 0 && body[i] != '{')) break;
    const char c = body[i];
    if (c == '"') {
      const std::size_t begin = i;
      i = EndOfString(body, i);
      if (depth == 1 && name.empty()) name = body.substr(begin, i - begin);
      continue;
    }
    if (inside && ((c == ',' && depth == 2) || (c == ']' && depth == 2 && end > found.open))) {
      if (found.ends.size() == kHeads) found.ends.erase(found.ends.begin());
      found.ends.push_back(end);
    }
    if (c == '{' || c == '[') {
      if (depth == 1 && c == '[' && (name == R"("messages")" || name == R"("input")")) {
        inside = true;
        found.open = i + 1;
      }
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
      if (inside && depth == 1) {
        found.close = i;
        return found;
      }
      if (depth == 0) break;
    } else if (c == ',' && depth == 1) {
      name = {};
    }
    ++i;
  }
  return std::nullopt;
}

// The digests that marks need, each computed once.
class Digests {
 public:
  // Of `body` as a whole, and of its first so many bytes. `sizes` may be beyond it.
  Digests(std::string_view body, std::vector<std::size_t> sizes) : sizes_(std::move(sizes)) {
    sizes_.push_back(body.size());
    std::ranges::sort(sizes_);
    const auto same = std::ranges::unique(sizes_);
    sizes_.erase(same.begin(), same.end());
    sizes_.erase(std::ranges::upper_bound(sizes_, body.size()), sizes_.end());
    digests_ = Sha256OfPrefixes(body, sizes_);
  }

  const std::string& whole() const { return digests_.back(); }
  // Empty if that is longer than the body.
  std::string OfHead(std::size_t bytes) const {
    const auto at = std::ranges::lower_bound(sizes_, bytes);
    if (at == sizes_.end() || *at != bytes) return "";
    return Shortened(digests_[static_cast<std::size_t>(at - sizes_.begin())]);
  }
  static std::string Shortened(const std::string& digest) {
    constexpr std::size_t kDigits = 20;
    return digest.substr(std::string_view("sha256:").size(), kDigits);
  }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<std::string> digests_;
};

// A text that is the same in a thousand new chats, with what each of them needs of it.
struct KnownText {
  explicit KnownText(std::string_view of)
      : text(of), digest(Digests::Shortened(Sha256Digest({of}))), literal(PackedLiteral(of)) {}
  bool operator==(std::string_view other) const { return text == other; }

  const std::string text, digest, literal;
};

// Prompts and lists of tools are long; what is longer still is somebody's message. null: `text` is neither.
std::shared_ptr<const KnownText> Known(std::string_view text) {
  constexpr std::size_t kLong = std::size_t{1} << 10, kTooLong = std::size_t{1} << 18;
  static Interned<KnownText, 4> known;
  return text.size() < kLong || text.size() > kTooLong ? nullptr : known.Share(text);
}

SharedText Kept(std::string_view text) {
  const auto known = Known(text);
  if (!known) return std::string(text);
  return {std::shared_ptr<const std::string>(known, &known->text),
          std::shared_ptr<const std::string>(known, &known->literal)};
}

std::string TailDigest(std::string_view tail) {
  const auto known = Known(tail);
  return known ? known->digest : Digests::Shortened(Sha256Digest({tail}));
}

// The inside of the JSON string that clients write for `text`.
std::string Escaped(std::string_view text) {
  std::string quoted;
  AppendJsonString(quoted, text);
  return quoted.substr(1, quoted.size() - 2);
}

// The bytes of a piece, perhaps held by `buffer`; nullopt if there is no such piece.
std::optional<std::string_view> BytesOf(const BodyPiece& piece, std::string_view before, const Messages& messages,
                                        std::string& buffer) {
  const auto escaped = [&](std::string_view text) -> std::string_view { return buffer = Escaped(text); };
  switch (piece.kind) {
    case BodyPiece::Kind::kText:
      return piece.text.view();
    case BodyPiece::Kind::kHead:
      if (piece.first > before.size()) return std::nullopt;
      return before.substr(0, piece.first);
    case BodyPiece::Kind::kTail:
      if (piece.first > before.size()) return std::nullopt;
      return before.substr(before.size() - piece.first);
    case BodyPiece::Kind::kContent:
      if (piece.first >= messages.size() || !messages[piece.first].content) return std::nullopt;
      return escaped(*messages[piece.first].content);
    case BodyPiece::Kind::kFile:
      return std::nullopt;
    case BodyPiece::Kind::kArguments:
    case BodyPiece::Kind::kQuoted:
      break;
  }
  if (piece.first >= messages.size()) return std::nullopt;
  const std::vector<ToolCall>& calls = messages[piece.first].tool_calls;
  if (piece.second >= calls.size()) return std::nullopt;
  const std::string& arguments = calls[piece.second].arguments;
  return piece.kind == BodyPiece::Kind::kQuoted ? escaped(arguments) : arguments;
}

// Finds the texts of messages in a body. An index of their first bytes keeps this linear; a search for each text would
// look through the body as often as there are messages.
class MessageFinder {
 public:
  // Looks for the messages from `first` on. `messages` must outlive this.
  MessageFinder(const Messages& messages, std::size_t first);

  // Appends the pieces that make up `text`.
  void Cut(std::string_view text, std::vector<BodyPiece>& pieces);

  static constexpr std::size_t kShortest = 24;  // of a text that is worth a piece

 private:
  using Beginning = std::array<char, kShortest>;
  struct Known {
    Beginning beginning;
    std::size_t order;
    BodyPiece piece;
    std::size_t least_bytes;
  };

  void Add(BodyPiece::Kind kind, std::size_t message, std::size_t call, std::string_view text);
  // The known text at the beginning of `text`, which is then in buffer_ or in messages_.
  const Known* FindAt(std::string_view text, std::size_t& size);
  static std::size_t FilterBit(const char* text) {
    std::uint64_t word = 0;
    std::memcpy(&word, text, sizeof(word));
    return (word * 0x9E3779B97F4A7C15) >> 48;
  }

  const Messages& messages_;
  std::vector<Known> known_;                  // by beginning, then by order
  std::bitset<std::size_t{1} << 16> filter_;  // of the first 8 bytes of each
  std::size_t next_ = 0;                      // order of the text that probably comes next
  std::size_t effort_ = 0;                    // bytes that may still be compared in vain
  std::string buffer_;
};

MessageFinder::MessageFinder(const Messages& messages, std::size_t first) : messages_(messages) {
  for (std::size_t i = first; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.content) Add(BodyPiece::Kind::kContent, i, 0, *message.content);
    for (std::size_t call = 0; call < message.tool_calls.size(); ++call) {
      const std::string& arguments = message.tool_calls[call].arguments;
      Add(BodyPiece::Kind::kQuoted, i, call, arguments);
      // Other bytes could end the text before them within a character, and JSON cannot store such a text.
      if (IsUtf8(arguments)) Add(BodyPiece::Kind::kArguments, i, call, arguments);
    }
  }
  std::stable_sort(known_.begin(), known_.end(),
                   [](const Known& a, const Known& b) { return a.beginning < b.beginning; });
}

void MessageFinder::Add(BodyPiece::Kind kind, std::size_t message, std::size_t call, std::string_view text) {
  if (text.size() < kShortest) return;
  // A character at the cut does not matter, because no escape is shorter than what it stands for.
  constexpr std::size_t kLongestCharacter = 4;
  std::string beginning(text.substr(0, kShortest + kLongestCharacter));
  if (kind != BodyPiece::Kind::kArguments) beginning = Escaped(beginning);
  Known& known = known_.emplace_back(Known{.beginning = {},
                                           .order = known_.size(),
                                           .piece = {.kind = kind, .first = message, .second = call},
                                           .least_bytes = text.size()});
  std::copy_n(beginning.begin(), kShortest, known.beginning.begin());
  filter_.set(FilterBit(beginning.data()));
}

const MessageFinder::Known* MessageFinder::FindAt(std::string_view text, std::size_t& size) {
  Beginning beginning;
  std::copy_n(text.begin(), kShortest, beginning.begin());
  const auto first = std::ranges::lower_bound(known_, beginning, {}, &Known::beginning);
  const auto end = std::ranges::upper_bound(first, known_.end(), beginning, {}, &Known::beginning);
  const auto count = static_cast<std::size_t>(end - first);
  const auto skipped = static_cast<std::size_t>(std::ranges::lower_bound(first, end, next_, {}, &Known::order) - first);
  constexpr std::size_t kMostTries = 16;
  for (std::size_t i = 0; i < std::min(count, kMostTries); ++i) {
    const Known& known = first[static_cast<std::ptrdiff_t>((skipped + i) % count)];
    if (known.least_bytes > text.size()) continue;
    const std::string_view bytes = BytesOf(known.piece, {}, messages_, buffer_).value_or(std::string_view());
    if (text.starts_with(bytes)) {
      size = bytes.size();
      next_ = known.order + 1;
      return &known;
    }
    effort_ -= std::min(effort_, bytes.size());
  }
  return nullptr;
}

void MessageFinder::Cut(std::string_view text, std::vector<BodyPiece>& pieces) {
  constexpr std::size_t kLeastEffort = std::size_t{1} << 20;
  effort_ = 8 * text.size() + kLeastEffort;
  std::size_t literal = 0;  // begins there
  const auto add_literal = [&](std::size_t end) {
    if (end > literal) pieces.push_back({.text = Kept(text.substr(literal, end - literal))});
  };
  const std::size_t end = known_.empty() || text.size() < kShortest ? 0 : text.size() - kShortest + 1;
  for (std::size_t at = 0; effort_ > 0;) {
    while (at < end && !filter_[FilterBit(text.data() + at)]) ++at;
    if (at >= end) break;
    std::size_t size = 0;
    const Known* const known = FindAt(text.substr(at), size);
    if (known == nullptr) {
      ++at;
      continue;
    }
    add_literal(at);
    pieces.push_back(known->piece);
    at += size;
    literal = at;
  }
  add_literal(text.size());
}

Result<std::string> Base64Of(const FileId& id, FilesOfChat* files) {
  const auto file = TRY(files != nullptr ? files->Get(id) : Fail(ErrorCode::kNotFound, "chats have no files here"));
  std::string text;
  AppendBase64(text, file.content);
  return text;
}

tl::unexpected<Error> NotTheBody() {
  return Fail(Reason::kIntegrityAuth, "a stored request does not add up to its body");
}

}  // namespace

ShortBody ShortenBody(std::string_view body, const RequestMarks* before, const Messages& messages, FilesOfChat* files) {
  const auto conversation = FindConversation(body);
  std::vector<std::size_t> sizes;
  if (conversation) {
    // After a change of all messages, such as by a compaction, what is before them may still be the same.
    sizes = conversation->ends;
    sizes.insert(sizes.begin(), conversation->open);
  }
  const std::string_view end = conversation ? body.substr(conversation->close) : std::string_view();
  const std::size_t own = sizes.size();
  for (const BodyMark& mark : before != nullptr ? before->heads : std::vector<BodyMark>()) sizes.push_back(mark.bytes);
  const Digests digests(body, sizes);
  ShortBody result{.body = {.digest = digests.whole(), .bytes = body.size()},
                   .marks = {.place = {InteractionId::FromNumber(1)}}};
  for (std::size_t i = 0; i < own; ++i) result.marks.heads.push_back({sizes[i], digests.OfHead(sizes[i])});
  if (conversation) result.marks.tail = BodyMark{end.size(), TailDigest(end)};
  std::vector<BodyPiece>& pieces = result.body.pieces;
  std::string_view rest = body;
  std::optional<BodyPiece> tail;
  bool only_new = false;  // messages may be in the rest
  // A long row of repeated requests would have to be read for one.
  constexpr std::uint32_t kMostRepeated = 128;
  if (before != nullptr && before->depth < kMostRepeated) {
    const auto fits = [&](const BodyMark& mark) {
      return mark.bytes <= body.size() && digests.OfHead(mark.bytes) == mark.digest;
    };
    const auto head = std::find_if(before->heads.rbegin(), before->heads.rend(), fits);
    if (head != before->heads.rend()) {
      pieces.push_back({.kind = BodyPiece::Kind::kHead, .first = head->bytes});
      rest.remove_prefix(head->bytes);
      only_new = head + 1 != before->heads.rend();
    }
    if (before->tail && before->tail->bytes <= rest.size() &&
        TailDigest(rest.substr(rest.size() - before->tail->bytes)) == before->tail->digest) {
      tail = {.kind = BodyPiece::Kind::kTail, .first = before->tail->bytes};
      rest.remove_suffix(before->tail->bytes);
    }
    // A body that repeats no message must not depend on a file that may be deleted.
    if (!only_new && before->has_files) {
      pieces.clear();
      tail.reset();
      rest = body;
    }
    if (tail || !pieces.empty()) {
      result.body.before = before->place;
      result.marks.depth = before->depth + 1;
      result.marks.has_files = before->has_files;
    }
  }
  // Nothing behind the conversation is a message.
  const std::string_view after = tail || end.size() > rest.size() ? std::string_view() : end;
  rest.remove_suffix(after.size());
  // What follows a repeated message is new, and so are its messages. No more can be in so many bytes.
  const std::size_t new_messages = std::min(messages.size(), 2 + rest.size() / MessageFinder::kShortest);
  const std::size_t first = only_new ? messages.size() - new_messages : 0;
  MessageFinder finder(messages, first);
  for (std::size_t i = first; files != nullptr && i < messages.size(); ++i) {
    for (const MessagePart& part : messages[i].parts) {
      if (part.size_bytes > rest.size()) continue;
      const auto content = Base64Of(part.file_id, files);
      const std::size_t at = content && !content->empty() ? rest.find(*content) : std::string_view::npos;
      if (at == std::string_view::npos) continue;
      result.marks.has_files = true;
      finder.Cut(rest.substr(0, at), pieces);
      pieces.push_back({.kind = BodyPiece::Kind::kFile, .text = part.file_id.str()});
      rest.remove_prefix(at + content->size());
    }
  }
  finder.Cut(rest, pieces);
  if (!after.empty()) pieces.push_back({.text = Kept(after)});
  if (tail) pieces.push_back(*std::move(tail));
  return result;
}

namespace {

// The pieces together, whatever their digest is.
Result<std::string> AddUp(const SentBody& sent, std::string_view before, const Messages& messages, FilesOfChat* files) {
  if (sent.bytes > kMostBytes) return NotTheBody();
  if (!sent.before) before = {};
  std::string body, buffer;
  for (const BodyPiece& piece : sent.pieces) {
    std::optional<std::string_view> bytes = BytesOf(piece, before, messages, buffer);
    if (piece.kind == BodyPiece::Kind::kFile) {
      const auto id = FileId::Parse(piece.text.view());
      if (!id) return NotTheBody();
      auto content = Base64Of(*id, files);
      if (!content && IsNotFound(content.error())) {
        return Fail(ErrorCode::kNotFound, "the request held " + piece.text.str() +
                                              ", which is not here: it was deleted, or did not come along");
      }
      bytes = buffer = TRY(std::move(content));
    }
    if (!bytes || bytes->size() > sent.bytes - body.size()) return NotTheBody();
    body += *bytes;
  }
  if (body.size() != sent.bytes) return NotTheBody();
  return body;
}

}  // namespace

Result<std::string> RestoreBody(const SentBody& sent, std::string_view before, const Messages& messages,
                                FilesOfChat* files) {
  std::string body = TRY(AddUp(sent, before, messages, files));
  if (Sha256Digest({body}) != sent.digest) return NotTheBody();
  return body;
}

// The requests of `asked` or of an earlier interaction: none if that has gone, or has none on record.
Result<const std::vector<SentRequest>*> RequestBodies::RequestsOf(const Interaction& asked, InteractionId id) {
  static const std::vector<SentRequest> kNone;
  if (id == asked.id) return asked.record && asked.record->requests ? &*asked.record->requests : &kNone;
  if (const auto known = earlier_.find(id); known != earlier_.end()) return &known->second;
  auto added = store_.LoadAdded(asked.chat_id, id);
  if (!added && IsNotFound(added.error())) return &kNone;
  std::optional<RunRecord> record = TRY(std::move(added)).interaction.record;
  auto& kept = earlier_[id];
  if (record && record->requests) kept = *std::move(record->requests);
  return &kept;
}

Result<std::optional<SentRequest>> RequestBodies::WithLists(const Interaction& asked, std::uint64_t index) {
  RequestPlace place{asked.id, index};
  for (std::size_t steps = 0; steps < kMostInRow; ++steps) {
    const std::vector<SentRequest>& requests = *TRY(RequestsOf(asked, place.interaction));
    if (place.index >= requests.size()) break;
    const SentRequest& request = requests[place.index];
    if (request.modules) return request;
    if (!request.body.before) break;
    place = *request.body.before;
  }
  return std::optional<SentRequest>();
}

Result<RequestsOnRecord> RequestBodies::AllOf(const Interaction& asked) {
  RequestsOnRecord all;
  if (!asked.record) return all;
  all.program = asked.record->program;
  all.requests = asked.record->requests;
  for (std::size_t i = 0; all.requests && i < all.requests->size(); ++i) {
    SentRequest& request = (*all.requests)[i];
    const auto& before = request.body.before;
    if (request.modules || !before) continue;
    const bool is_known = before->interaction == asked.id && before->index < i;
    const auto listed = is_known ? std::optional((*all.requests)[before->index]) : TRY(WithLists(asked, i));
    if (!listed) continue;
    request.modules = listed->modules;
    request.tools = listed->tools;
  }
  return all;
}

std::vector<std::string> RequestBodies::FaultsOf(const Interaction& asked) {
  std::vector<std::string> faults;
  const std::size_t count = asked.record && asked.record->requests ? asked.record->requests->size() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto body = Of(asked, i);
    if (!body && !IsNotFound(body.error())) {
      faults.push_back("request " + std::to_string(i) + ": " + body.error().message);
    }
  }
  return faults;
}

namespace {

// Has other content of the same size for files that were deleted.
class FilesWithDeleted final : public FilesOfChat {
 public:
  FilesWithDeleted(FilesOfChat* files, const Messages& messages) : files_(files), messages_(messages) {}

  Result<FileListing> List() override { return Nothing(); }
  Result<StoredFile> Get(const FileId& id) override {
    auto found = files_ != nullptr ? files_->Get(id) : Nothing();
    if (found || !IsNotFound(found.error())) return found;
    for (const Message& message : messages_) {
      const auto part = std::ranges::find(message.parts, id, &MessagePart::file_id);
      if (part == message.parts.end() || part->size_bytes > kMostBytes) continue;
      StoredFile file{.info = {.id = id}, .content = {}};
      while (file.content.size() < part->size_bytes) file.content += id.str();
      file.content.resize(part->size_bytes);
      deleted_[id.str()] = file.content;
      return file;
    }
    return found;
  }
  Result<FileInfo> Add(std::string_view, std::string_view, std::string) override { return Nothing(); }
  Result<void> Delete(const FileId&) override { return Nothing(); }

  void NameIn(std::string& body) const {
    for (const auto& [id, content] : deleted_) {
      std::string text;
      AppendBase64(text, content);
      const std::string note = "deleted: " + id;
      for (std::size_t at = body.find(text); !text.empty() && at != body.npos; at = body.find(text, at + note.size())) {
        body.replace(at, text.size(), note);
      }
    }
  }

 private:
  static tl::unexpected<Error> Nothing() { return Fail(ErrorCode::kNotFound, "there is no such file"); }

  FilesOfChat* const files_;
  const Messages& messages_;
  std::map<std::string, std::string> deleted_;  // id, content
};

}  // namespace

Result<std::string> RequestBodies::ForPeople(const Interaction& asked, std::uint64_t index) {
  auto body = Of(asked, index);
  if (body || !IsNotFound(body.error()) || !asked.final_agent_state) return body;
  FilesWithDeleted files(files_, asked.final_agent_state->messages);
  body = RequestBodies(store_, &files, Digests::kIgnored).Of(asked, index);
  if (body) files.NameIn(*body);
  return body;
}

Result<std::string> RequestBodies::Of(const Interaction& asked, std::uint64_t index) {
  if (earlier_.size() > 2 * kMostInRow) earlier_.clear();
  std::vector<std::pair<RequestPlace, const SentBody*>> chain;  // the request, and those that it repeats
  std::string body;
  for (std::optional<RequestPlace> place = RequestPlace{asked.id, index}; place; place = chain.back().second->before) {
    const auto same = std::ranges::find(last_, *place, &std::pair<RequestPlace, std::string>::first);
    if (same != last_.end()) {
      body = same->second;
      break;
    }
    const auto& [id, at] = *place;
    const std::vector<SentRequest>& requests = *TRY(RequestsOf(asked, id));
    if (at >= requests.size()) {
      return chain.empty() ? Fail(ErrorCode::kNotFound, "no such request is on record") : NotTheBody();
    }
    if (chain.size() == kMostInRow) return NotTheBody();
    // Each repeats an earlier one, so a damaged record cannot make this endless.
    if (!chain.empty() && std::pair(id, at) >= std::pair(chain.back().first.interaction, chain.back().first.index)) {
      return NotTheBody();
    }
    chain.emplace_back(*place, &requests[at].body);
  }
  static const Messages kNoMessages;
  const Messages& messages = asked.final_agent_state ? asked.final_agent_state->messages : kNoMessages;
  for (; !chain.empty(); chain.pop_back()) {
    const auto& [place, sent] = chain.back();
    const auto restore = digests_ == Digests::kChecked ? RestoreBody : AddUp;
    auto restored = restore(*sent, body, messages, files_);
    // An interaction that another one resumed may have messages that are not in that one's state.
    if (!restored && place.interaction != asked.id) {
      const auto state = TRY(store_.LoadFinalState(asked.chat_id, place.interaction));
      if (state) restored = restore(*sent, body, state->messages, files_);
    }
    body = TRY(std::move(restored));
  }
  constexpr std::size_t kKept = 4;  // a turn's, a summary's and some of sub-agents
  if (last_.size() == kKept) last_.erase(last_.begin());
  last_.emplace_back(RequestPlace{asked.id, index}, body);
  return body;
}

}  // namespace reprise
