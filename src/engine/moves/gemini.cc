// Gemini CLI: a session's record (one JSON file; later a log in lines), and the checkpoints of /chat save.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// A summary of what was said before, which the tool tells the model in a person's message.
constexpr std::string_view kSummaryTag = "<state_snapshot>";

bool IsPart(const Json& part, const char* name) { return part.is_object() && part.contains(name); }

// Parts of Gemini's API, or a text. Calls, results and thoughts are taken elsewhere.
void TakeParts(const Json& content, MovedMessage& message, LeftOut& left_out) {
  if (content.is_string()) message.text += content.get<std::string>();
  for (const Json& part : content.is_array() ? content : Json::array()) {
    if (MemberOf(part, "thought") == true) {
      continue;
    } else if (part.is_string() || part.contains("text")) {
      message.text += part.is_string() ? part.get<std::string>() : TextMember(part, "text");
    } else if (IsPart(part, "functionCall") || IsPart(part, "functionResponse")) {
      continue;
    } else if (const Json& data = MemberOf(part, "inlineData"); !data.is_null()) {
      AddBase64(TextMember(data, "data"), TextMember(data, "mimeType"), message.files, left_out);
    } else {
      left_out.AddUnknown("part of a message", part.is_object() && !part.empty() ? part.begin().key() : "");
    }
  }
}

std::string OutputIn(const Json& response) {
  const Json& output = MemberOf(response, "output");
  if (output.is_string()) return output.get<std::string>();
  const Json& error = MemberOf(response, "error");
  return error.is_string() ? error.get<std::string>() : response.is_null() ? std::string() : DumpJson(response);
}

// The text of a result, and the files that the tool returned.
void TakeResponse(const Json& response, MovedMessage& result, LeftOut& left_out) {
  AddLine(result.text, OutputIn(MemberOf(response, "response")));
  TakeParts(ListIn(response, "parts"), result, left_out);
}

// Removes what the tool tells the model of its own at the beginning of a message. False: there is nothing of it.
bool DropContext(std::string& text) {
  for (const std::string tag : {"session_context>", "hook_context>"}) {
    if (!Trimmed(text).starts_with("<" + tag)) continue;
    const std::string end = "</" + tag;
    const std::size_t at = text.find(end);
    text = at == std::string::npos ? std::string() : std::string(Trimmed(text.substr(at + end.size())));
    return true;
  }
  return false;
}

class GeminiReader final : public RecordReader {
 public:
  std::vector<MovedMessage> Take(const Json& line) override {
    const std::string type = TextMember(line, "type");
    const auto at = TimeIn(MemberOf(line, "timestamp"));
    std::vector<MovedMessage> messages;
    if (line.contains("sessionId") || line.contains("$set")) {
      const Json& about = line.contains("$set") ? MemberOf(line, "$set") : line;
      TakeFacts(about);
      for (const Json& message : ListIn(about, "messages")) {  // to look at the beginning; GeminiLog takes them apart
        if (!message.contains("sessionId") && !message.contains("$set"))
          std::ranges::move(Take(message), std::back_inserter(messages));
      }
    } else if (type == "user") {
      messages = TakePrompt(line);
    } else if (type == "gemini" || type == "model") {
      messages = TakeAnswer(line);
    } else if (type == "info" || type == "error" || type == "warning") {
      messages = TakeRemark(line);
    } else {
      left_out.AddUnknown("message", type);
    }
    for (MovedMessage& message : messages) message.at = message.at ? message.at : at;
    return messages;
  }

  void TakeFacts(const Json& about) {
    if (about.contains("sessionId")) facts.id = TextMember(about, "sessionId");
    if (about.contains("summary")) facts.title = TextMember(about, "summary");
    if (about.contains("startTime")) facts.created = TimeIn(MemberOf(about, "startTime"));
    if (about.contains("lastUpdated")) facts.updated = TimeIn(MemberOf(about, "lastUpdated"));
    for (const Json& folder : ListIn(about, "directories"))
      facts.folder = folder.is_string() ? folder.get<std::string>() : "";
  }

 private:
  std::vector<MovedMessage> TakePrompt(const Json& line) {
    std::vector<MovedMessage> messages;
    MovedMessage said;
    const Json& content = MemberOf(line, "content");
    TakeParts(content, said, left_out);
    bool has_results = false;
    for (const Json& part : content.is_array() ? content : Json::array()) {
      const Json& response = MemberOf(part, "functionResponse");
      has_results = has_results || !response.is_null();
      if (response.is_null() || HasResult(TextMember(response, "id"))) continue;  // its call has it
      messages.push_back({.kind = Kind::kResult, .call_id = TextMember(response, "id")});
      TakeResponse(response, messages.back(), left_out);
    }
    const bool is_of_tool = DropContext(said.text);
    if (is_of_tool) left_out.Add("message that the tool added by itself");
    const bool may_be_blank = !has_results && !is_of_tool;
    if (may_be_blank || !IsBlank(said.text) || !said.files.empty()) messages.push_back(std::move(said));
    return messages;
  }

  // A message of the interface, which shows in these forms how a turn ended.
  std::vector<MovedMessage> TakeRemark(const Json& line) {
    constexpr std::string_view kFailures[] = {"[API Error", "The model returned ",
                                              "The model response was blocked due to ",
                                              "Model response was truncated because "};
    const std::string type = TextMember(line, "type");
    MovedMessage remark;
    LeftOut unread;
    TakeParts(MemberOf(line, "content"), remark, unread);
    const auto begins = [&remark](std::string_view form) { return remark.text.starts_with(form); };
    if (type == "error" && std::ranges::any_of(kFailures, begins)) {
      remark.kind = Kind::kFailed;
      return {std::move(remark)};
    }
    if (type == "info" && (begins("Request cancelled.") || begins("User cancelled the request.")))
      return {{.kind = Kind::kStopped}};
    left_out.Add("message of the interface");
    return {};
  }

  std::vector<MovedMessage> TakeAnswer(const Json& line) {
    MovedMessage answer{.kind = Kind::kAnswer, .group = TextMember(line, "id"), .model = TextMember(line, "model")};
    for (const Json& thought : ListIn(line, "thoughts")) {
      const std::string subject = TextMember(thought, "subject"), text = TextMember(thought, "description");
      answer.blocks.push_back(
          {.kind = MovedBlock::Kind::kThinking, .text = subject + (subject.empty() ? "" : "\n") + text});
    }
    const Json& content = MemberOf(line, "content");
    TakeParts(content, answer, left_out);
    answer.blocks.push_back({.text = std::exchange(answer.text, {})});
    const Json& tokens = MemberOf(line, "tokens");
    answer.usage = {.input_tokens = CountIn(tokens, "input") + CountIn(tokens, "tool"),
                    .output_tokens = CountIn(tokens, "output") + CountIn(tokens, "thoughts"),
                    .cache_read_tokens = CountIn(tokens, "cached")};
    std::vector<MovedMessage> results;
    for (const Json& call : ListIn(line, "toolCalls")) AddCall(call, answer, results);
    // What the model is told has calls as parts, and their results in a message of their own.
    for (const Json& part : content.is_array() && ListIn(line, "toolCalls").empty() ? content : Json::array()) {
      const Json& call = MemberOf(part, "functionCall");
      if (!call.is_null()) AddCall(call, answer, results);
    }
    results.insert(results.begin(), std::move(answer));
    return results;
  }

  void AddCall(const Json& call, MovedMessage& answer, std::vector<MovedMessage>& results) {
    const std::string id = TextMember(call, "id");
    answer.blocks.push_back({.kind = MovedBlock::Kind::kCall,
                             .text = ArgumentsIn(MemberOf(call, "args")),
                             .id = id,
                             .name = TextMember(call, "name")});
    const std::string status = TextMember(call, "status");
    const Json& made = MemberOf(call, "result");
    if (made.is_null() && status != "cancelled" && status != "error") return;
    if (!id.empty()) answered_.try_emplace(id, record);
    MovedMessage result{.kind = Kind::kResult, .at = TimeIn(MemberOf(call, "timestamp")), .call_id = id};
    result.is_error = status == "error" || status == "cancelled";
    for (const Json& part : made.is_array() ? made : Json::array({made})) {
      const Json& response = MemberOf(part, "functionResponse");
      if (response.is_null()) {
        if (!part.is_null()) TakeParts(Json::array({part}), result, left_out);
        continue;
      }
      TakeResponse(response, result, left_out);
    }
    results.push_back(std::move(result));
  }

  bool HasResult(const std::string& call) const {
    const auto found = answered_.find(call);
    return found != answered_.end() && found->second <= record;
  }

  // Calls that have their result with them, and the records that said so first.
  std::unordered_map<std::string, std::size_t> answered_;
};

// A message of a session.
struct GeminiEntry {
  enum What { kOther, kSaid, kSummary, kRemark };  // kSaid: by a person or the model
  std::vector<std::string> ids;                    // a copy of the message may have another
  SourcePlace place;                               // unless `text` is there
  std::string text{};
  What is = kOther;
};

// The text, and the calls and results by their ids: the same for a copy of the message.
std::string WordsOf(const Json& message) {
  MovedMessage said;
  LeftOut ignored;
  const Json& content = MemberOf(message, "content");
  TakeParts(content, said, ignored);
  std::string words(Trimmed(said.text));
  for (const Json& call : ListIn(message, "toolCalls")) words += "\n" + TextMember(call, "id");
  for (const Json& part : content.is_array() && ListIn(message, "toolCalls").empty() ? content : Json::array()) {
    if (IsPart(part, "functionCall")) words += "\n" + TextMember(MemberOf(part, "functionCall"), "id");
  }
  return words;
}

// Reads the messages that remain of a session, one for each entry.
class GeminiEntries final : public RecordReader {
 public:
  explicit GeminiEntries(std::vector<GeminiEntry::What> entries) : entries_(std::move(entries)) {}

  std::vector<MovedMessage> Take(const Json& message) override {
    const auto is = entries_[record];
    if (is == GeminiEntry::kRemark) left_out.Add("message that the tool added by itself");
    if (is == GeminiEntry::kRemark) return {};
    if (is == GeminiEntry::kSummary) {
      const std::string text = WordsOf(message);
      return {{.kind = Kind::kSummary,
               .at = TimeIn(MemberOf(message, "timestamp")),
               .text = text.substr(std::min(text.find(kSummaryTag), text.size()))}};
    }
    reader_.record = record;
    auto messages = reader_.Take(message);
    left_out.Add(std::exchange(reader_.left_out, {}));
    return messages;
  }

 private:
  const std::vector<GeminiEntry::What> entries_;
  GeminiReader reader_;
};

// The messages of a session, which later lines write again, take back or replace by what the model is told from there
// on. They stay in the source, but for those of a list in a line.
class GeminiLog {
 public:
  explicit GeminiLog(SourceText source) : source_(std::move(source)) {}

  void Take(const Json& line, const SourcePlace& place) {
    if (const Json& to = MemberOf(line, "$rewindTo"); to.is_string()) return Rewind(to.get<std::string>());
    if (MemberOf(line, "id").is_string() && !line.contains("sessionId")) return Put(line, &place);
    const bool is_change = line.contains("$set");
    const Json& about = is_change ? MemberOf(line, "$set") : line;
    if (!is_change && !line.contains("sessionId")) left_out_.AddUnknown("line", TextMember(line, "type"));
    TakeFacts(about);
    if (MemberOf(about, "messages").is_array()) Replace(ListIn(about, "messages"));
  }
  std::size_t bytes() const { return bytes_; }

  // The list of a document, message by message, as if it were all of a line.
  void TakeFacts(const Json& about) {
    is_of_sub_agent_ = is_of_sub_agent_ || TextMember(about, "kind") == "subagent";
    reader_.TakeFacts(about);
  }
  void TakeMessage(const Json& message, const SourcePlace& place) {
    if (!has_summary_ && IsSummary(message)) {
      has_summary_ = true;
      CutFrom(0);
      Add({.ids = {IdOf(message)}, .place = place, .is = Entry::kSummary});
    } else if (has_summary_ && entries_.size() == 1 && WordsOf(message) == kReply) {
      Add({.ids = {IdOf(message)}, .place = place, .is = Entry::kRemark});
    } else {
      Put(message, &place);
    }
  }

  std::unique_ptr<MovedSession> Open(bool cut_off) && {
    std::vector<Entry::What> kinds;
    for (const Entry& entry : entries_) kinds.push_back(entry.is);
    auto reader = std::make_unique<GeminiEntries>(std::move(kinds));
    reader->facts = std::move(reader_.facts);
    reader->left_out = std::move(left_out_);
    if (cut_off) reader->left_out.Add("last line, which is not complete");
    // It is in a folder with the name of the session that has the call.
    const std::string parent = std::filesystem::path(source_.name()).parent_path().filename().string();
    if (is_of_sub_agent_)
      reader->left_out.Add("session whose sub-agent this is" + (parent.empty() ? "" : " (" + parent + ")"));
    const std::size_t count = entries_.size();
    auto load = [entries = std::move(entries_), source = std::move(source_)](std::size_t record) {
      return Load(source, entries[record]);
    };
    return OpenRecords({.count = count, .load = std::move(load)}, std::move(reader));
  }

 private:
  using Entry = GeminiEntry;
  static constexpr std::string_view kReply = "Got it. Thanks for the additional context!";

  static Result<Json> Load(const SourceText& source, const Entry& entry) {
    return entry.text.empty() ? LoadElement(source, entry.place) : ParseForeignJson(entry.text, source.name());
  }
  static std::string IdOf(const Json& message) { return TextMember(message, "id"); }
  bool IsSummary(const Json& message) const {
    return TextMember(message, "type") == "user" && !places_.contains(IdOf(message)) &&
           WordsOf(message).find(kSummaryTag) != std::string::npos;
  }

  // `at` is null for a message within a line.
  void Put(const Json& message, const SourcePlace* at) {
    const std::string type = TextMember(message, "type");
    std::string id = IdOf(message);
    if (id.empty()) id = "#" + std::to_string(++nameless_);
    const auto [place, is_new] = places_.try_emplace(id, entries_.size());
    if (is_new) {
      const bool is_said = type == "user" || type == "gemini" || type == "model";
      entries_.push_back({.ids = {id}, .place = {}, .is = is_said ? Entry::kSaid : Entry::kOther});
    }
    Entry& entry = entries_[place->second];
    if (entry.ids.front() != id) return;  // of a copy, which has less
    bytes_ -= entry.text.size();
    if (at != nullptr) entry.place = *at;
    entry.text = at != nullptr ? std::string() : DumpJson(message);
    entry.text.shrink_to_fit();
    bytes_ += entry.text.size();
  }

  void Rewind(const std::string& id) {
    const auto place = places_.find(id);
    if (place == places_.end()) return left_out_.Add("undoing that names no message");
    for (Entry& entry : CutFrom(place->second)) Drop(entry);
  }

  // Removes the entries from there on.
  std::vector<Entry> CutFrom(std::size_t from) {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(from);
    std::vector<Entry> cut(std::make_move_iterator(begin), std::make_move_iterator(entries_.end()));
    entries_.erase(begin, entries_.end());
    for (const Entry& entry : cut) {
      for (const std::string& id : entry.ids) places_.erase(id);
    }
    return cut;
  }
  void Add(Entry entry) {
    for (const std::string& id : entry.ids) places_.insert_or_assign(id, entries_.size());
    entries_.push_back(std::move(entry));
  }
  void Drop(const Entry& entry) {
    bytes_ -= entry.text.size();
    if (entry.is == Entry::kSaid) left_out_.Add("message that was taken back");
  }

  // The list is what the model is told from here on. What a summary in it stands for stays before that.
  void Replace(const Json& messages) {
    std::size_t kept = 0;
    for (const Json& message : messages) {
      const auto place = places_.find(IdOf(message));
      if (place != places_.end() && entries_[place->second].is == Entry::kSummary) kept = place->second;
    }
    const auto summary =
        std::find_if(messages.begin(), messages.end(), [&](const Json& message) { return IsSummary(message); });
    if (summary != messages.end()) return SumUp(*summary, std::vector<Json>(std::next(summary), messages.end()));
    std::unordered_map<std::string, std::size_t> known;
    auto before = CutFrom(kept);
    for (std::size_t i = 0; i < before.size(); ++i) {
      for (const std::string& id : before[i].ids) known.emplace(id, i);
    }
    std::vector<bool> stays(before.size());
    for (const Json& message : messages) {
      const auto found = known.find(IdOf(message));
      if (found != known.end() && !stays[found->second]) {
        stays[found->second] = true;
        Add(std::move(before[found->second]));
      }
      Put(message, nullptr);
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (!stays[i]) Drop(before[i]);
    }
  }

  // A summary of all but the last messages, of which the list has copies.
  void SumUp(const Json& summary, std::vector<Json> last) {
    std::vector<Entry> added{{.ids = {IdOf(summary)}, .place = {}, .text = DumpJson(summary), .is = Entry::kSummary}};
    if (!last.empty() && WordsOf(last.front()) == kReply) {
      added.push_back({.ids = {IdOf(last.front())}, .place = {}, .text = DumpJson(last.front()), .is = Entry::kRemark});
      last.erase(last.begin());
    }
    for (const Entry& entry : added) bytes_ += entry.text.size();
    const auto copied = CopiedBy(last);
    const std::size_t first = copied.empty() ? entries_.size() : copied.back().entry;
    auto after = CutFrom(first);
    for (Entry& entry : added) Add(std::move(entry));
    for (const auto& [entry, id] : copied) {
      constexpr std::size_t kMostNames = 8;
      std::vector<std::string>& ids = after[entry - first].ids;
      ids.push_back(id);
      if (ids.size() > kMostNames) ids.erase(ids.begin() + 1);  // the first is its own
    }
    for (Entry& entry : after) Add(std::move(entry));
    if (!copied.empty()) return;
    for (const Json& message : last) Put(message, nullptr);
  }

  struct Copied {
    std::size_t entry;
    std::string id;
  };
  // The last entries, the last first, if the messages say what they say; else none.
  std::vector<Copied> CopiedBy(const std::vector<Json>& messages) const {
    constexpr std::size_t kMostBetween = 64;  // entries of the interface, and without words
    std::vector<Copied> copied;
    std::size_t entry = entries_.size();
    for (std::size_t i = messages.size(); i-- > 0;) {
      const std::string words = WordsOf(messages[i]);
      if (words.empty()) continue;
      std::string said;
      for (std::size_t between = 0; said.empty() && entry > 0 && between < kMostBetween; ++between) {
        if (entries_[--entry].is != Entry::kSaid) continue;
        said = WordsOf(Load(source_, entries_[entry]).value_or(Json()));
      }
      if (said != words) return {};
      copied.push_back({.entry = entry, .id = IdOf(messages[i])});
    }
    return copied;
  }

  SourceText source_;
  GeminiReader reader_;
  LeftOut left_out_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> places_;  // by id
  std::size_t bytes_ = 0, nameless_ = 0;                 // bytes_: of texts
  bool has_summary_ = false;                             // of a document
  bool is_of_sub_agent_ = false;
};

}  // namespace

std::unique_ptr<RecordReader> ReadGeminiLines(const std::string&) { return std::make_unique<GeminiReader>(); }

Result<std::unique_ptr<MovedSession>> OpenGeminiLog(const SourceText& source) {
  GeminiLog log(source);
  bool cut_off = false;
  TRY(ForEachLine(source, [&](const SourcePlace& place, std::string_view text) -> Result<bool> {
    const auto line = ParseForeignJson(text, PlaceIn(source, place));
    cut_off = !line && place.offset + place.length + 1 >= source.size();
    if (cut_off) return true;
    if (!line) return Fail(line.error());
    log.Take(*line, place);
    if (log.bytes() <= kMaxSourceRecord) return true;
    return Fail(Reason::kInvalidDocument, source.name() + ": the messages that it has as lists are larger than " +
                                              std::to_string(kMaxSourceRecord >> 20) + " MiB");
  }));
  return std::move(log).Open(cut_off);
}

OpenedDocument OpenGemini(MovedDocument document, const std::string&) {
  GeminiLog log(document.source);
  log.TakeFacts(document.rest);
  for (const SourcePlace& place : document.In("messages[")) {
    log.TakeMessage(TRY(LoadElement(document.source, place)), place);
  }
  return std::move(log).Open(/*cut_off=*/false);
}

namespace {

// A list of contents of Gemini's API. The first two are the tool's own words.
class GeminiContents final : public RecordReader {
 public:
  std::vector<MovedMessage> Take(const Json& content) override {
    MovedMessage said;
    const bool is_first = record >= read_;  // reading
    read_ = std::max(read_, record + 1);
    if (TextMember(content, "role") == "model") {
      said.kind = Kind::kAnswer, said.group = "content " + std::to_string(record);
      if (is_first) open_ = {};  // results follow their calls directly
    }
    std::vector<MovedMessage> messages;
    std::size_t calls = 0, results = 0;
    for (const Json& part : ListIn(content, "parts")) {
      if (const Json& call = MemberOf(part, "functionCall"); !call.is_null()) {
        const std::string name = TextMember(call, "name");
        const std::string id = "call_" + std::to_string(record) + "_" + std::to_string(++calls);
        if (is_first) open_.Add({.id = id, .name = name, .given_id = TextMember(call, "id")});
        said.blocks.push_back(
            {.kind = MovedBlock::Kind::kCall, .text = ArgumentsIn(MemberOf(call, "args")), .id = id, .name = name});
      } else if (const Json& response = MemberOf(part, "functionResponse"); !response.is_null()) {
        const auto [call_id, is_new] = calls_of_.try_emplace({record, results++});
        if (is_new) call_id->second = open_.Take(TextMember(response, "id"), TextMember(response, "name"));
        messages.push_back({.kind = Kind::kResult, .call_id = call_id->second});
        TakeResponse(response, messages.back(), left_out);
      } else if (MemberOf(part, "thought") == true) {
        said.blocks.push_back({.kind = MovedBlock::Kind::kThinking, .text = TextMember(part, "text")});
      } else {
        TakeParts(Json::array({part}), said, left_out);
        if (said.kind == Kind::kAnswer) said.blocks.push_back({.text = std::exchange(said.text, {})});
      }
    }
    if (!said.text.empty() || !said.blocks.empty() || !said.files.empty()) messages.push_back(std::move(said));
    return messages;
  }

 private:
  std::size_t read_ = 0;  // records
  OpenCalls open_;
  // The calls that results are of, by record and number, as they were found when the records were read in order.
  std::map<std::pair<std::size_t, std::size_t>, std::string> calls_of_;
};

}  // namespace

OpenedDocument OpenGeminiCheckpoint(MovedDocument document, const std::string& path) {
  auto reader = std::make_unique<GeminiContents>();
  reader->facts.id = path;
  return OpenRecords(ElementsOf(document, document.rest.is_array() ? "[" : "history["), std::move(reader));
}

}  // namespace reprise
