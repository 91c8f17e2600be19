#include "cli/foreign_chat.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/history.h"
#include "base/json.h"
#include "cli/chat_reader.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/file_record.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxDocumentBytes = 1ULL << 30;  // a whole chat in one file
constexpr int kMaxChatDepth = kMaxJsonDepth + 20;
constexpr std::string_view kNoResult = "The result of this call is not known.";

tl::unexpected<Error> Unusable(const std::string& where, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, where + ": " + std::string(what));
}

bool IsChatFolder(const std::string& path) {
  return IsDirectory(path + "/interactions") || IsFile(path + "/chat.json");
}

Result<Json> ReadObject(const std::string& path) {
  const auto text = Disk().ReadFile(path, kMaxDocumentBytes);
  if (!text) return Fail(text.error());
  auto json = ParseJson(*text, kMaxChatDepth);
  if (!json) return Unusable(path, json.error().message);
  if (!json->is_object()) return Unusable(path, "it is no JSON object");
  if (LooksLikeJwe(*text)) return Unusable(path, "it is sealed; `reprise decrypt` makes a plain copy where its key is");
  return json;
}

std::string TextOf(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

// ISO 8601 as it is found in the wild: a space for the T, any number of decimals, a zone as an offset, or none (UTC).
std::optional<Timestamp> ParseForeignTime(std::string text) {
  constexpr std::size_t kSeconds = 19;  // up to the end of the seconds
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

// An interaction as it was found.
struct Document {
  std::string where;  // file, for messages
  std::string name;   // its id, whatever that looks like
  Json json;
};

// Our own files say everything, also where a state is stored as a reference to another file's.
Result<Json> ReadInteractionFile(InteractionStore* store, const std::optional<PlaceInStore>& place,
                                 const std::string& path) {
  if (store != nullptr && place && place->interaction) {
    const auto whole = store->LoadInteraction(place->chat, *place->interaction);
    if (whole) return ToJson(*whole);
  }
  return ReadObject(path);
}

Result<std::vector<Document>> ReadFolder(const std::string& path) {
  std::vector<Document> documents;
  const std::string folder = path + "/interactions";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return documents;
  if (!entries) return Fail(entries.error());
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    const bool json = entry.name.ends_with(".json") && !entry.name.starts_with('.');
    if (json && !entry.is_directory) names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  const auto chat_place = ParseStorePath(path);
  std::unique_ptr<FileInteractionStore> store;
  if (chat_place) {
    auto opened = FileInteractionStore::Open({.root = chat_place->root,
                                              .keys = nullptr,
                                              .file_system = Disk(),
                                              .access = FileInteractionStore::Access::kReadOnly});
    if (opened) store = *std::move(opened);
  }
  for (const std::string& name : names) {
    const std::string file = folder + "/" + name;
    auto json = ReadInteractionFile(store.get(), ParseStorePath(file), file);
    if (!json) return Fail(std::move(json.error()));
    std::string id = TextOf(*json, "id");
    if (id.empty()) id = name.substr(0, name.size() - std::string_view(".json").size());
    documents.push_back({.where = file, .name = std::move(id), .json = *std::move(json)});
  }
  return documents;
}

Result<std::vector<StoredFile>> ReadFiles(const std::string& path) {
  std::vector<StoredFile> files;
  const std::string folder = path + "/files";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return files;
  if (!entries) return Fail(entries.error());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory || !ParseFileName(entry.name)) continue;
    const std::string where = folder + "/" + entry.name;
    const auto text = Disk().ReadFile(where, kMaxDocumentBytes);
    if (!text) return Fail(text.error());
    if (LooksLikeJwe(*text))
      return Unusable(where, "it is sealed; `reprise decrypt` makes a plain copy where its key is");
    const auto place = PlaceOfFile(*text);
    if (!place) return Unusable(where, place.error().message);
    auto file = FileFromJson(*place, *text);
    if (!file) return Unusable(where, file.error().message);
    files.push_back(*std::move(file));
  }
  return files;
}

Result<std::vector<Document>> DocumentsIn(const std::string& path, const Json& list) {
  std::vector<Document> documents;
  for (const Json& json : list) {
    const std::string where = path + ", interaction " + std::to_string(documents.size() + 1);
    if (!json.is_object()) return Unusable(where, "it is no JSON object");
    std::string id = TextOf(json, "id");
    if (id.empty()) id = "#" + std::to_string(documents.size() + 1);
    documents.push_back({.where = where, .name = std::move(id), .json = json});
  }
  return documents;
}

// --- filling in what is missing --------------------------------------------------------------------------------------

// The messages that an interaction's events tell of, for the state that nobody stored.
void AddFromEvents(const Interaction& interaction, std::vector<Message>& messages) {
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
      Message message{.role = Role::kTool, .content = result->tool_output};
      message.tool_call_id = result->id;
      message.name = result->tool_name;
      messages.push_back(std::move(message));
    }
  }
}

class Reader {
 public:
  explicit Reader(ForeignChat& chat) : chat_(chat) {}

  Result<void> Read(std::vector<Document> documents, const Json& about) {
    chat_.title = TextOf(about, "title");
    chat_.created_at = ParseForeignTime(TextOf(about, "created_at"));
    chat_.updated_at = ParseForeignTime(TextOf(about, "updated_at"));
    if (auto numbered = Number(documents); !numbered) return numbered;
    for (const Document& document : documents) {
      if (auto added = Add(document); !added) return added;
    }
    if (chat_.interactions.empty()) return {};
    const auto head = numbers_.find(TextOf(about, "head"));
    chat_.head = head != numbers_.end() ? head->second : chat_.interactions.back().id;
    return {};
  }

 private:
  // Their own numbers if all have one, else the order in which they were made.
  Result<void> Number(std::vector<Document>& documents) {
    const bool own = std::all_of(documents.begin(), documents.end(), [](const Document& document) {
      return InteractionId::Parse(document.name).has_value();
    });
    const auto key = [own](const Document& document) {
      const auto time = own ? std::nullopt : ParseForeignTime(TextOf(document.json, "created_at"));
      return std::pair(own ? InteractionId::Parse(document.name)->number() : 0, time.value_or(Timestamp()));
    };
    std::stable_sort(documents.begin(), documents.end(),
                     [&](const Document& a, const Document& b) { return key(a) < key(b); });
    std::uint32_t next = 1;
    for (const Document& document : documents) {
      const auto id = own ? *InteractionId::Parse(document.name) : InteractionId::FromNumber(next++);
      if (!numbers_.emplace(document.name, id).second) {
        return Unusable(document.where, "there are two interactions of this name");
      }
    }
    if (!own && !documents.empty()) chat_.notes.push_back("the interactions were given numbers");
    return {};
  }

  Result<void> Add(const Document& document) {
    const InteractionId id = numbers_.at(document.name);
    const Json& in = document.json;
    if (in.contains("schema") && in["schema"] != 1) return Unusable(document.where, "its schema is not known here");
    const auto parent = ParentOf(document, id);
    if (!parent) return Fail(parent.error());
    const auto created = TimeOf(document, "created_at");
    const auto completed = TimeOf(document, "completed_at");
    if (!created) return Fail(created.error());
    if (!completed) return Fail(completed.error());
    const Timestamp begun = created->value_or(last_time_.value_or(chat_.created_at.value_or(Now())));

    Json out = in;
    out["schema"] = 1;
    out["id"] = id.str();
    out["chat_id"] = "imported";  // the caller sets it
    out["parent_id"] = *parent ? Json((*parent)->str()) : Json();
    const auto edited = numbers_.find(TextOf(in, "edited_from"));
    out["edited_from"] = edited == numbers_.end() ? Json() : Json(edited->second.str());
    out["created_at"] = FormatTimestamp(begun);
    out["completed_at"] = FormatTimestamp(completed->value_or(begun));
    if (!in.contains("agent_events")) out["agent_events"] = Json::array();
    if (in.contains("usage") && in["usage"].is_null()) out.erase("usage");
    FillEvents(out["agent_events"], FormatTimestamp(begun));
    if (const auto state = out.find("final_agent_state"); state != out.end()) CleanMessages(*state);

    auto interaction = InteractionFromJson(out);
    if (!interaction) {
      const std::string& detail = interaction.error().detail;
      return Unusable(document.where, interaction.error().message + (detail.empty() ? "" : " (" + detail + ")"));
    }
    Finish(*interaction);
    last_time_ = interaction->completed_at;
    chat_.interactions.push_back(*std::move(interaction));
    return {};
  }

  Result<std::optional<InteractionId>> ParentOf(const Document& document, InteractionId id) {
    const auto member = document.json.find("parent_id");
    if (member == document.json.end()) {
      return chat_.interactions.empty() ? std::nullopt : std::optional(chat_.interactions.back().id);
    }
    if (member->is_null()) return std::nullopt;
    const auto found = numbers_.find(TextOf(document.json, "parent_id"));
    if (found == numbers_.end()) {
      chat_.notes.push_back(id.str() + " begins a branch: what it continued is not here");
      return std::nullopt;
    }
    if (found->second >= id) return Unusable(document.where, "it comes before the one that it continues");
    return found->second;
  }

  static Result<std::optional<Timestamp>> TimeOf(const Document& document, const char* name) {
    const auto member = document.json.find(name);
    if (member == document.json.end() || member->is_null()) return std::optional<Timestamp>();
    const auto time = ParseForeignTime(TextOf(document.json, name));
    if (!time) return Unusable(document.where, std::string(name) + " is no time");
    return time;
  }

  static void FillEvents(Json& events, const std::string& time) {
    if (!events.is_array()) return;  // the codec says so
    std::uint64_t last_seq = 0;
    std::uint32_t round = 0;
    bool after_result = false;
    for (Json& event : events) {
      if (!event.is_object()) return;
      const auto seq = event.find("seq");
      const bool rising = seq != event.end() && seq->is_number_unsigned() && *seq > last_seq;
      if (!rising) event["seq"] = last_seq + 1;
      last_seq = event["seq"].get<std::uint64_t>();
      const bool result = TextOf(event, "type") == event::ToolResult::kType;
      if (after_result && !result) ++round;
      after_result = result;
      if (const auto given = event.find("round_index"); given == event.end()) {
        event["round_index"] = round;
      } else if (given->is_number_unsigned()) {
        round = given->get<std::uint32_t>();
      }
      const auto at = ParseForeignTime(TextOf(event, "at"));
      event["at"] = at ? FormatTimestamp(*at) : time;
      for (const char* name : {"tool_input", "tool_output"}) {
        const auto text = event.find(name);
        if (text != event.end() && !text->is_string()) *text = DumpJson(*text);
      }
    }
  }

  // Libraries that print every member of a message print null for those it has not.
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

  // A stored interaction has ended, and has a state that a provider accepts.
  void Finish(Interaction& interaction) {
    if (!IsFinished(interaction.status)) {
      interaction.status = InteractionStatus::kFailed;
      interaction.error = InteractionError{"interrupted", "it had not ended when it was taken out", true};
      chat_.notes.push_back(interaction.id.str() + " had not ended");
    }
    if (!interaction.final_agent_state) {
      AgentState& state = interaction.final_agent_state.emplace();
      for (const Interaction& before : chat_.interactions) {
        if (before.id == interaction.parent_id) state = *before.final_agent_state;
      }
      AddFromEvents(interaction, state.messages);
      chat_.notes.push_back(interaction.id.str() + " had no state; it was made from its events");
    }
    if (CompleteToolCalls(interaction.final_agent_state->messages, kNoResult) > 0) {
      chat_.notes.push_back(interaction.id.str() + " had tool calls without a result");
    }
  }

  ForeignChat& chat_;
  std::map<std::string, InteractionId> numbers_;  // by what they are called
  std::optional<Timestamp> last_time_;
};

}  // namespace

Result<std::vector<std::string>> FindForeignChats(const std::string& path) {
  if (IsFile(path) || (IsDirectory(path) && IsChatFolder(path))) return std::vector{path};
  if (!IsDirectory(path)) return Fail(ErrorCode::kNotFound, "there is no file or folder " + path);
  const auto entries = Disk().ListDirectory(path);
  if (!entries) return Fail(entries.error());
  std::vector<std::string> chats;
  for (const DirectoryEntry& entry : *entries) {
    const std::string folder = path + "/" + entry.name;
    if (entry.is_directory && !entry.name.starts_with('.') && IsChatFolder(folder)) chats.push_back(folder);
  }
  std::sort(chats.begin(), chats.end());
  if (chats.empty()) return Fail(ErrorCode::kInvalidArgument, "there is no chat in " + path);
  return chats;
}

Result<ForeignChat> ReadForeignChat(const std::string& path) {
  Json about = Json::object();
  Result<std::vector<Document>> documents = std::vector<Document>();
  ForeignChat chat;
  if (IsDirectory(path)) {
    chat.name = std::filesystem::absolute(path + "/").lexically_normal().parent_path().filename();
    if (IsFile(path + "/chat.json")) {
      auto read = ReadObject(path + "/chat.json");
      if (!read) return Fail(std::move(read.error()));
      about = *std::move(read);
    }
    documents = ReadFolder(path);
    auto files = ReadFiles(path);
    if (!files) return Fail(std::move(files.error()));
    chat.files = *std::move(files);
    if (const std::string id = TextOf(about, "id"); !id.empty()) chat.name = id;
  } else {
    auto read = ReadObject(path);
    if (!read) return Fail(std::move(read.error()));
    if (read->contains("user_message")) {
      chat.name = TextOf(*read, "chat_id");
      documents = DocumentsIn(path, Json::array({*read}));
    } else {
      about = *std::move(read);
      chat.name = TextOf(about, "id");
    }
    if (chat.name.empty()) chat.name = std::filesystem::path(path).stem();
  }
  if (documents && documents->empty() && about.contains("interactions") && about["interactions"].is_array()) {
    documents = DocumentsIn(path, about["interactions"]);
  } else if (!IsDirectory(path) && documents && documents->empty()) {
    return Unusable(path, "it is neither a chat nor an interaction");
  }
  if (!documents) return Fail(std::move(documents.error()));
  if (about.contains("damaged")) chat.notes.push_back("the export lacks interactions that were damaged");
  auto read = Reader(chat).Read(*std::move(documents), about);
  if (!read) return Fail(std::move(read.error()));
  return chat;
}

}  // namespace reprise
