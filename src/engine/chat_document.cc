#include "engine/chat_document.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "agent/history.h"
#include "agent/told.h"
#include "base/try.h"
#include "domain/codec.h"

namespace reprise {
namespace {

constexpr std::size_t kMostRepeatedBytes = 64 << 20;  // of a document, because a few bytes of it can stand for many
constexpr std::string_view kNoResult = "The result of this call is not known.";
constexpr std::size_t kMaxChatId = 64;

tl::unexpected<Error> Unusable(const std::string& where, std::string_view what) {
  return Fail(Reason::kInvalidDocument, where + ": " + std::string(what));
}

bool IsSystem(const Message& message) { return message.role == Role::kSystem; }

// --- filling in what is missing --------------------------------------------------------------------------------------

// Derives the messages of an interaction without a stored state from its events.
std::vector<Message> MessagesOfEvents(const Interaction& interaction) {
  std::vector<Message> messages;
  messages.push_back(Message{.role = Role::kUser, .content = interaction.user_message});
  for (const AgentEvent& agent_event : interaction.events) {
    const EventPayload& payload = agent_event.payload;
    const auto say = [&](const std::string& text) {
      messages.push_back(Message{.role = Role::kAssistant, .content = text});
    };
    if (const auto* answer = std::get_if<event::Answer>(&payload)) say(answer->content);
    if (const auto* message = std::get_if<event::MessageText>(&payload)) say(message->content);
    if (const auto* call = std::get_if<event::ToolCallStarted>(&payload)) {
      if (messages.back().role != Role::kAssistant) messages.push_back(Message{.role = Role::kAssistant});
      messages.back().tool_calls.push_back({call->id, call->tool_name, call->tool_input});
    }
    if (const auto* result = std::get_if<event::ToolResult>(&payload)) {
      Message message{.role = Role::kTool, .content = ToldOutput(result->tool_name, result->tool_output)};
      message.tool_call_id = result->id;
      message.name = result->tool_name;
      messages.push_back(std::move(message));
    }
  }
  return messages;
}

auto PlaceOf(const ForeignChat& chat, InteractionId id) {
  return std::lower_bound(chat.interactions.begin(), chat.interactions.end(), id,
                          [](const Interaction& one, InteractionId other) { return one.id < other; });
}

// The least bytes that the message takes on disk.
std::size_t BytesOf(const Message& message) {
  std::size_t bytes = 64 + message.content.value_or("").size();
  for (const ToolCall& call : message.tool_calls) bytes += call.arguments.size();
  return bytes;
}

// Puts states together. Starts from the state asked for last, if that is an ancestor.
class WholeStates {
 public:
  explicit WholeStates(const ForeignChat& chat) : chat_(chat) {}

  // The result is valid until the next call.
  const Messages& MessagesAfter(InteractionId id) {
    std::vector<std::vector<Interaction>::const_iterator> added;  // newest first, up to one whose messages are known
    auto one = PlaceOf(chat_, id);
    while (last_ != one->id) {
      added.push_back(one);
      if (!chat_.kept_messages.contains(one->id)) break;
      one = PlaceOf(chat_, *one->parent_id);
    }
    while (!added.empty()) {
      const auto kept = chat_.kept_messages.find(added.back()->id);
      const Messages& own = added.back()->final_agent_state->messages;
      messages_.Truncate(kept == chat_.kept_messages.end() ? 0 : kept->second);
      messages_.Append(own, 0, own.size());
      added.pop_back();
    }
    last_ = id;
    return messages_;
  }

  Interaction Whole(InteractionId id) {
    Interaction whole = *PlaceOf(chat_, id);
    whole.final_agent_state->messages = MessagesAfter(id);
    return whole;
  }

 private:
  const ForeignChat& chat_;
  std::optional<InteractionId> last_;  // the interaction whose messages are in messages_
  Messages messages_;
};

class ForeignChatReader {
 public:
  explicit ForeignChatReader(ForeignChat& chat) : chat_(chat), states_(chat) {}

  Result<void> Read(std::vector<ForeignInteraction> documents, const Json& about) {
    NoteSettings(about);
    chat_.title = TextMember(about, "title");
    chat_.created_at = ParseForeignTime(TextMember(about, "created_at"));
    chat_.updated_at = ParseForeignTime(TextMember(about, "updated_at"));
    if (auto numbered = Number(documents); !numbered) return numbered;
    for (ForeignInteraction& document : documents) {
      if (auto added = Add(std::move(document)); !added) return added;
    }
    if (chat_.interactions.empty()) return {};
    const auto head = numbers_.find(TextMember(about, "head"));
    const Json& named = MemberOf(about, "head");
    if (head == numbers_.end() && !named.is_null()) {
      const std::string name = named.is_string() ? named.get<std::string>() : DumpJson(named);
      chat_.gaps.push_back(name + ", where the chat ends, is not here");
    }
    chat_.head = head != numbers_.end() ? head->second : chat_.interactions.back().id;
    return {};
  }

 private:
  // A document from anywhere chooses no model and puts no words into the prompt.
  void NoteSettings(const Json& about) {
    constexpr std::pair<const char*, const char*> kSettings[] = {
        {"chosen_model", "the model"}, {"effort", "the effort"}, {"instructions", "the instructions"}};
    std::string left;
    for (const auto& [member, name] : kSettings) {
      if (!TextMember(about, member).empty()) left += (left.empty() ? "" : ", ") + std::string(name);
    }
    if (!left.empty()) chat_.notes.push_back("left out: " + left + " that were chosen for the chat");
  }

  // Keeps the documents' numbers if all have one; otherwise numbers them in order of creation.
  Result<void> Number(std::vector<ForeignInteraction>& documents) {
    const bool own = std::ranges::all_of(
        documents, [](const ForeignInteraction& document) { return InteractionId::Parse(document.name).has_value(); });
    const auto key = [own](const ForeignInteraction& document) {
      const auto time = own ? std::nullopt : ParseForeignTime(TextMember(document.json, "created_at"));
      return std::pair(own ? InteractionId::Parse(document.name)->number() : 0, time.value_or(Timestamp()));
    };
    std::ranges::stable_sort(documents,
                             [&](const ForeignInteraction& a, const ForeignInteraction& b) { return key(a) < key(b); });
    std::uint32_t next = 1;
    for (const ForeignInteraction& document : documents) {
      const auto id = own ? *InteractionId::Parse(document.name) : InteractionId::FromNumber(next++);
      if (!numbers_.emplace(document.name, id).second) {
        return Unusable(document.where, "there are two interactions of this name");
      }
    }
    if (!own && !documents.empty()) chat_.notes.push_back("the interactions were given numbers");
    return {};
  }

  Result<void> Add(ForeignInteraction document) {
    const InteractionId id = numbers_.at(document.name);
    if (document.json.contains("schema") && document.json["schema"] != 1) {
      return Unusable(document.where, "its schema is not known here");
    }
    const auto parent = TRY(ParentOf(document, id));
    const auto created = TimeOf(document, "created_at");
    const auto completed = TimeOf(document, "completed_at");
    if (!created) return Fail(created.error());
    if (!completed) return Fail(completed.error());
    const Messages before = parent ? states_.MessagesAfter(*parent) : Messages();
    const auto kept = TRY(TakeKeptMessages(document, id, parent, before.size()));
    const Timestamp begun = created->value_or(last_time_.value_or(chat_.created_at.value_or(Now())));

    Json out = std::move(document.json);
    const auto edited = numbers_.find(TextMember(out, "edited_from"));
    out["schema"] = 1;
    out["id"] = id.str();
    out["chat_id"] = "imported";  // the caller sets it
    out["parent_id"] = parent ? Json(parent->str()) : Json();
    out["edited_from"] = edited == numbers_.end() ? Json() : Json(edited->second.str());
    out["created_at"] = FormatTimestamp(begun);
    out["completed_at"] = FormatTimestamp(completed->value_or(begun));
    if (!out.contains("agent_events")) out["agent_events"] = Json::array();
    if (out.contains("usage") && out["usage"].is_null()) out.erase("usage");
    FillEvents(out["agent_events"], FormatTimestamp(begun));
    if (const auto state = out.find("final_agent_state"); state != out.end()) CleanMessages(*state);

    auto interaction = InteractionFromJson(out);
    if (!interaction) {
      const std::string& detail = interaction.error().detail;
      return Unusable(document.where, interaction.error().message + (detail.empty() ? "" : " (" + detail + ")"));
    }
    NameRequests(*interaction);
    if (kept > 0) {
      if (kept < before.size()) {  // such a state is stored whole
        for (std::size_t i = 0; i < kept; ++i) repeated_bytes_ += BytesOf(before[i]);
        if (repeated_bytes_ > kMostRepeatedBytes)
          return Unusable(document.where, std::string(kKeptMessages) + " repeats too much of what came before");
      }
      Messages whole = before;
      whole.Truncate(kept);
      const Messages& own = interaction->final_agent_state->messages;
      whole.Append(own, 0, own.size());
      interaction->final_agent_state->messages = std::move(whole);
    }
    Finish(*interaction, before);
    last_time_ = interaction->completed_at;
    Keep(*std::move(interaction), before);
    return {};
  }

  // Requests on record repeat those of interactions that may have other numbers here, or are missing.
  void NameRequests(Interaction& interaction) const {
    const auto name = [&](RequestPlace& place) {
      const auto found = numbers_.find(place.interaction.str());
      if (found == numbers_.end() || found->second > interaction.id) return false;
      place.interaction = found->second;
      return true;
    };
    // New turns must not depend on requests that somebody may have changed.
    if (auto& state = interaction.final_agent_state) state->request.reset();
    if (!interaction.record || !interaction.record->requests) return;
    for (SentRequest& each : *interaction.record->requests) {
      if (each.body.before && !name(*each.body.before)) return interaction.record->requests.reset();
    }
  }

  Result<std::optional<InteractionId>> ParentOf(const ForeignInteraction& document, InteractionId id) {
    const auto member = document.json.find("parent_id");
    if (member == document.json.end()) {
      return chat_.interactions.empty() ? std::nullopt : std::optional(chat_.interactions.back().id);
    }
    if (member->is_null()) return std::nullopt;
    const auto found = numbers_.find(TextMember(document.json, "parent_id"));
    if (found == numbers_.end()) {
      chat_.notes.push_back(id.str() + " begins a branch: what it continued is not here");
      chat_.gaps.push_back(TextMember(document.json, "parent_id") + ", which " + id.str() + " continues, is not here");
      return std::nullopt;
    }
    if (found->second >= id) return Unusable(document.where, "it comes before the one that it continues");
    return found->second;
  }

  static Result<std::optional<Timestamp>> TimeOf(const ForeignInteraction& document, const char* name) {
    const auto member = document.json.find(name);
    if (member == document.json.end() || member->is_null()) return std::optional<Timestamp>();
    const auto time = ParseForeignTime(TextMember(document.json, name));
    if (!time) return Unusable(document.where, std::string(name) + " is no time");
    return time;
  }

  // How many messages of the parent's state, at most `most`, this state begins with, if it is stored as additions.
  Result<std::size_t> TakeKeptMessages(ForeignInteraction& document, InteractionId id,
                                       std::optional<InteractionId> parent, std::size_t most) {
    const auto state = document.json.find("final_agent_state");
    if (state == document.json.end() || !state->is_object() || !state->contains(kKeptMessages)) return 0;
    const Json kept = std::move((*state)[kKeptMessages]);
    state->erase(kKeptMessages);
    const bool lacks_parent = !parent && !MemberOf(document.json, "parent_id").is_null();
    if (lacks_parent || (parent && lost_.contains(*parent))) {  // the interaction it continues is missing
      *state = nullptr;
      lost_.insert(id);
      return 0;
    }
    if (kept.is_number_unsigned() && kept.get<std::uint64_t>() <= most) return kept.get<std::size_t>();
    return Unusable(document.where, std::string(kKeptMessages) + " is not a number of messages that its parent has");
  }

  static void FillEvents(Json& events, const std::string& time) {
    if (!events.is_array()) return;  // the codec reports this
    std::uint64_t last_seq = 0;
    std::uint32_t round = 0;
    bool after_result = false;
    for (Json& event : events) {
      if (!event.is_object()) return;
      const auto seq = event.find("seq");
      const bool rising = seq != event.end() && seq->is_number_unsigned() && *seq > last_seq;
      if (!rising) event["seq"] = last_seq + 1;
      last_seq = event["seq"].get<std::uint64_t>();
      const bool result = TextMember(event, "type") == event::ToolResult::kType;
      if (after_result && !result) ++round;
      after_result = result;
      if (const auto given = event.find("round_index"); given == event.end()) {
        event["round_index"] = round;
      } else if (given->is_number_unsigned()) {
        round = given->get<std::uint32_t>();
      }
      const auto at = ParseForeignTime(TextMember(event, "at"));
      event["at"] = at ? FormatTimestamp(*at) : time;
      for (const char* name : {"tool_input", "tool_output"}) {
        const auto text = event.find(name);
        if (text != event.end() && !text->is_string()) *text = DumpJson(*text);
      }
    }
  }

  // Some libraries print null for absent members of a message.
  static void CleanMessages(Json& state) {
    const auto messages = state.is_object() ? state.find("messages") : state.end();
    if (!state.is_object() || messages == state.end() || !messages->is_array()) return;
    for (Json& message : *messages) {
      if (!message.is_object()) continue;
      for (auto member = message.begin(); member != message.end();) {
        member = member.value().is_null() && member.key() != "content" ? message.erase(member) : std::next(member);
      }
    }
  }

  // Gives the interaction an end, and a state that providers accept.
  void Finish(Interaction& interaction, const Messages& before) {
    if (!IsFinished(interaction.status)) {
      interaction.status = InteractionStatus::kFailed;
      interaction.error = InteractionError{"interrupted", "it had not ended when it was taken out", true};
      chat_.notes.push_back(interaction.id.str() + " had not ended");
    }
    if (!interaction.final_agent_state) {
      AgentState& state = interaction.final_agent_state.emplace();
      if (interaction.parent_id) state = *PlaceOf(chat_, *interaction.parent_id)->final_agent_state;
      state.messages = before;
      state.messages.Append(MessagesOfEvents(interaction));
      chat_.notes.push_back(interaction.id.str() + " had no state; it was made from its events");
    }
    AgentState& state = *interaction.final_agent_state;
    // A document from anywhere may claim grants that no person here has given.
    if (!std::exchange(state.grants, {}).empty()) chat_.notes.push_back(interaction.id.str() + " had grants");
    for (AgentEvent& each : interaction.events) {
      if (auto* updated = std::get_if<event::GrantsUpdated>(&each.payload)) updated->grants.clear();
    }
    if (std::ranges::any_of(state.messages, IsSystem)) {
      Messages said;
      for (Message message : state.messages) {
        if (IsSystem(message)) message.role = Role::kUser;
        said.push_back(std::move(message));
      }
      state.messages = std::move(said);
      chat_.notes.push_back(interaction.id.str() + " had words for the system prompt; they count as the user's");
    }
    Messages& messages = state.messages;
    const std::size_t complete = messages.StartsWith(before) ? before.size() : 0;
    if (CompleteToolCalls(messages, kNoResult, complete) > 0) {
      chat_.notes.push_back(interaction.id.str() + " had tool calls without a result");
    }
  }

  // Adds it without the messages of its parent's state.
  void Keep(Interaction interaction, const Messages& before) {
    Messages& messages = interaction.final_agent_state->messages;
    if (!before.empty() && messages.StartsWith(before)) {
      Messages added;
      added.Append(messages, before.size(), messages.size());
      messages = std::move(added);
      chat_.kept_messages.emplace(interaction.id, before.size());
    }
    chat_.interactions.push_back(std::move(interaction));
  }

  ForeignChat& chat_;
  std::map<std::string, InteractionId> numbers_;  // by their names in the document
  std::optional<Timestamp> last_time_;
  WholeStates states_;
  std::size_t repeated_bytes_ = 0;  // in states that leave their parent's before its end
  std::set<InteractionId> lost_;    // their states cannot be put together
};

Result<std::vector<ForeignInteraction>> InteractionsIn(Json list, const std::string& where) {
  std::vector<ForeignInteraction> documents;
  for (Json& json : list) {
    const std::string number = std::to_string(documents.size() + 1);
    std::string place = where + ", interaction " + number;
    if (!json.is_object()) return Unusable(place, "it is no JSON object");
    std::string id = TextMember(json, "id");
    if (id.empty()) id = "#" + number;
    documents.push_back({.where = std::move(place), .name = std::move(id), .json = std::move(json)});
  }
  return documents;
}

Result<void> ReadFiles(const Json& list, const std::string& where, ForeignChat& chat) {
  if (!list.is_array()) return Unusable(where, "files is no array");
  for (const Json& json : list) {
    const std::string place = where + ", file " + std::to_string(chat.files.size() + 1);
    auto file = StoredFileFromJson(json);
    if (!file) return Unusable(place, file.error().detail.empty() ? file.error().message : file.error().detail);
    if (auto added = AddForeignFile(*std::move(file), place, chat); !added) return added;
  }
  return {};
}

Result<void> ReadBlobs(const Json& list, const std::string& where, ForeignChat& chat) {
  if (!list.is_array()) return Unusable(where, "blobs is no array");
  for (const Json& json : list) {
    auto blob = BlobFromJson(json);
    if (!blob) return Unusable(where + ", blob " + std::to_string(chat.blobs.size() + 1), blob.error().detail);
    chat.blobs.push_back(*std::move(blob));
  }
  return {};
}

}  // namespace

std::optional<Timestamp> ParseForeignTime(std::string text) {
  constexpr std::size_t kSeconds = 19;  // the length up to the seconds
  if (text.size() < kSeconds) return std::nullopt;
  if (text[10] == ' ') text[10] = 'T';
  const auto seconds = ParseTimestamp(text.substr(0, kSeconds) + "Z");
  if (!seconds) return std::nullopt;
  Timestamp time = *seconds;
  std::string_view rest = std::string_view(text).substr(kSeconds);
  if (rest.starts_with('.')) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    std::string millis(rest.substr(1, std::min<std::size_t>(end - 1, 3)));
    millis.resize(3, '0');
    time += std::chrono::milliseconds(std::stoi(millis));
    rest.remove_prefix(end);
  }
  if (rest.empty() || rest == "Z" || rest == "z") return time;
  int hours = 0, minutes = 0;
  const auto digits = [&](std::size_t at, int& out) {
    return std::from_chars(rest.data() + at, rest.data() + at + 2, out).ptr == rest.data() + at + 2;
  };
  const bool offset = rest.size() == 6 && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':';
  if (!offset || !digits(1, hours) || !digits(4, minutes) || hours > 23 || minutes > 59) return std::nullopt;
  const auto shift = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return rest[0] == '+' ? time - shift : time + shift;
}

Interaction ForeignChat::Whole(InteractionId id) const { return WholeStates(*this).Whole(id); }

Result<void> ReadInteractions(std::vector<ForeignInteraction> documents, const Json& about, ForeignChat& chat) {
  return ForeignChatReader(chat).Read(std::move(documents), about);
}

Result<void> AddForeignFile(StoredFile file, const std::string& where, ForeignChat& chat) {
  for (const StoredFile& other : chat.files) {
    if (other.info.id == file.info.id) return Unusable(where, "there are two files of this id");
  }
  auto clean = MakeFile(file.info.filename, file.info.mime_type, std::move(file.content));
  if (!clean) return Unusable(where, clean.error().message);
  clean->info.id = file.info.id;
  clean->info.created_at = file.info.created_at;
  chat.files.push_back(*std::move(clean));
  return {};
}

Result<ForeignChat> ReadChatDocument(Json document, const std::string& where) {
  if (!document.is_object()) return Unusable(where, "it is no JSON object");
  if (document.contains("ciphertext")) {
    return Unusable(where, "it is sealed; `reprise decrypt` makes a plain copy where its key is");
  }
  ForeignChat chat;
  Json list;
  bool is_alone = false;
  if (document.contains("user_message")) {
    chat.name = TextMember(document, "chat_id");
    list = Json::array();
    list.push_back(std::move(document));
    document = Json::object();
    is_alone = true;
  } else if (document.contains("interactions") && document["interactions"].is_array()) {
    chat.name = TextMember(document, "id");
    list = std::move(document["interactions"]);
  } else {
    return Unusable(where, "it is neither a chat nor an interaction");
  }
  auto interactions = TRY(InteractionsIn(std::move(list), where));
  if (document.contains("damaged")) chat.notes.push_back("the export lacks interactions that were damaged");
  auto read = ReadInteractions(std::move(interactions), document, chat);
  if (const Json& files = MemberOf(document, "files"); read && !files.is_null()) read = ReadFiles(files, where, chat);
  if (const Json& blobs = MemberOf(document, "blobs"); read && !blobs.is_null()) read = ReadBlobs(blobs, where, chat);
  if (!read) return Fail(std::move(read.error()));
  if (is_alone) chat.gaps.clear();
  return chat;
}

void NoteMissingFiles(ForeignChat& chat) {
  std::set<FileId> missing;
  for (const Interaction& interaction : chat.interactions) {
    for (const Attachment& attached : interaction.attachments) missing.insert(attached.id);
    if (!interaction.final_agent_state) continue;
    for (const Message& message : interaction.final_agent_state->messages) {
      for (const MessagePart& part : message.parts) missing.insert(part.file_id);
    }
  }
  for (const StoredFile& file : chat.files) missing.erase(file.info.id);
  if (missing.empty()) return;
  chat.notes.push_back(std::to_string(missing.size()) + " attached file" + (missing.size() == 1 ? " is" : "s are") +
                       " not in the export (`reprise export --output FOLDER` takes them along)");
}

Json ToChatDocument(const ForeignChat& chat) {
  Json document = {{"id", chat.name}, {"title", chat.title}};
  if (chat.created_at) document["created_at"] = FormatTimestamp(*chat.created_at);
  if (chat.updated_at) document["updated_at"] = FormatTimestamp(*chat.updated_at);
  document["head"] = chat.head ? Json(chat.head->str()) : Json();
  Json& interactions = document["interactions"] = Json::array();
  for (const Interaction& interaction : chat.interactions) {
    const auto kept = chat.kept_messages.find(interaction.id);
    interactions.push_back(ToJson(AddedInteraction{
        .interaction = interaction, .kept_messages = kept == chat.kept_messages.end() ? 0 : kept->second}));
  }
  for (const StoredFile& file : chat.files) document["files"].push_back(ToJson(file));
  for (const Blob& blob : chat.blobs) document["blobs"].push_back(ToJson(blob));
  return document;
}

IncomingChat ToIncomingChat(const ChatId& name, ForeignChat foreign) {
  IncomingChat chat{
      .summary = {.id = name, .title = std::move(foreign.title), .head = foreign.head}, .interactions = {}, .load = {}};
  Timestamp first = Now(), last{};
  for (Interaction& interaction : foreign.interactions) {
    interaction.chat_id = name;
    interaction.imported = true;
    chat.interactions.push_back(interaction.id);
    first = std::min(first, interaction.created_at);
    last = std::max(last, interaction.completed_at.value_or(interaction.created_at));
    if (interaction.id == foreign.head) chat.summary.head_status = interaction.status;
    if (chat.summary.title.empty()) chat.summary.title = TitleFromMessage(interaction.user_message);
  }
  chat.summary.created_at = foreign.created_at.value_or(first);
  chat.summary.updated_at = foreign.updated_at.value_or(std::max(last, chat.summary.created_at));
  for (const StoredFile& file : foreign.files) chat.files.push_back(file.info.id);
  for (const Blob& blob : foreign.blobs) chat.blobs.push_back(blob.digest);
  const auto held = std::make_shared<const ForeignChat>(std::move(foreign));
  chat.load = [held, states = std::make_shared<WholeStates>(*held)](InteractionId id) -> Result<Interaction> {
    return states->Whole(id);
  };
  chat.load_file = [held](const FileId& id) -> Result<StoredFile> {
    return *std::ranges::find_if(held->files, [&](const StoredFile& file) { return file.info.id == id; });
  };
  chat.load_blob = [held](const std::string& digest) -> Result<std::string> {
    return std::ranges::find(held->blobs, digest, &Blob::digest)->content;
  };
  return chat;
}

IncomingChat RenamedTo(const ChatId& name, const IncomingChat& chat) {
  IncomingChat renamed = chat;
  renamed.summary.id = name;
  renamed.load = [load = chat.load, name](InteractionId id) {
    return load(id).map([&](Interaction interaction) {
      interaction.chat_id = name;
      return interaction;
    });
  };
  return renamed;
}

ChatId NumberedName(const ChatId& name, int number) {
  const std::string suffix = "-" + std::to_string(number);
  return ChatId::Parse(name.str().substr(0, kMaxChatId - suffix.size()) + suffix).value();
}

}  // namespace reprise
