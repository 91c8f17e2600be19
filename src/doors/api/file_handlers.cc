#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "engine/chat_document.h"
#include "engine/moves/formats.h"
#include "engine/moves/moved_turns.h"
#include "wire/error_response.h"
#include "wire/message.h"
#include "wire/multipart.h"
#include "wire/request_values.h"

namespace reprise {

namespace {

struct FileTarget {
  ChatId chat;
  FileId file;
};
Result<FileTarget> FileTargetOf(const Request& request) {
  auto chat = TRY(ChatInPath(request));
  auto file = FileId::Parse(request.captures.at(1));
  if (!file) return Fail(ErrorCode::kNotFound, "no such file in this chat");
  return FileTarget{std::move(chat), *std::move(file)};
}

Result<Outcome> AddFile(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  auto upload = TRY(ReadUpload(request));
  const auto file = TRY(MakeFile(upload.filename, upload.mime_type, std::move(upload.content)));
  const auto info = TRY(engine.AddFile(chat, file));
  Reply reply{.status = 201, .body = DumpJson(ToJson(info))};
  reply.headers.emplace_back("Location", "/chats/" + chat.str() + "/files/" + info.id.str());
  return reply;
}

Result<Outcome> ListFiles(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto listing = TRY(engine.ListFiles(chat));
  Json json = {{"files", Json::array()}};
  for (const FileInfo& file : listing.files) json["files"].push_back(ToJson(file));
  for (const DamagedFile& damaged : listing.damaged) {
    json["damaged"].push_back({{"file_id", damaged.id.str()},
                               {"error", {{"code", damaged.error.reason}, {"message", damaged.error.message}}}});
  }
  return Reply{.body = DumpJson(json)};
}

// Types that a page of this server could load as a script, worker or style, because its policy allows these from this
// server.
bool CouldRunInAPage(std::string_view mime_type) {
  const std::string type = LowerCase(mime_type.substr(0, mime_type.find(';')));
  return type.find("script") != std::string::npos || type.find("css") != std::string::npos ||
         type.find("wasm") != std::string::npos;
}

// The uploader chose the file's type. So a browser must neither show nor run the file as a page of this server, nor may
// such a page run it. With X-Content-Type-Options no browser runs plain text.
Result<Outcome> GetFile(Engine& engine, const Request& request) {
  const auto target = TRY(FileTargetOf(request));
  auto file = TRY(engine.GetFile(target.chat, target.file));
  Reply reply{.body = std::move(file.content),
              .content_type = CouldRunInAPage(file.info.mime_type) ? "text/plain" : file.info.mime_type};
  reply.headers.emplace_back("Content-Disposition", AttachmentDisposition(file.info.filename));
  reply.headers.emplace_back("Content-Security-Policy", "default-src 'none'; sandbox");
  reply.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  return InRange(request, std::move(reply), "\"" + file.info.digest + "\"");
}

Result<Outcome> DeleteFile(Engine& engine, const Request& request) {
  const auto target = TRY(FileTargetOf(request));
  TRY(ParseEmptyBody(request.body));
  TRY(engine.DeleteFile(target.chat, target.file));
  return Reply{.body = DumpJson({{"status", "deleted"}, {"file_id", target.file.str()}})};
}

constexpr std::size_t kUsualFiles = 20, kMostFiles = 100;

Result<Outcome> FindFiles(Engine& engine, const Request& request) {
  const auto limit = TRY(PageLimit(request, kUsualFiles, kMostFiles));
  const auto text = TRY(WordsOf(request));
  const auto listing = TRY(engine.FindWorkspaceFiles(TRY(ChatInQuery(request)), text, limit));
  Json files = Json::array();
  for (const auto& file : listing.files) files.push_back({{"path", file.path}, {"size_bytes", file.size_bytes}});
  return JsonReply({{"files", std::move(files)}, {"complete", listing.complete}});
}

Result<Outcome> AttachFile(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto path = TRY(ParseWorkspaceFileBody(request.body));
  const auto info = TRY(engine.AttachWorkspaceFile(chat, path));
  Reply reply = JsonReply(ToJson(info), 201);
  reply.headers.emplace_back("Location", "/chats/" + chat.str() + "/files/" + info.id.str());
  return reply;
}

Result<Outcome> BlameFile(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto path = request.Query("path");
  if (!path || path->empty()) return Fail(Reason::kInvalidParameter, "\"path\" is missing: a file of the workspace");
  const auto blamed = TRY(engine.Blame(chat, *path));
  return Reply{
      .body =
          DumpJson(
              {{"path", blamed.path}, {"text", blamed.text}, {"lost", blamed.lost}, {"unreadable", blamed.unreadable}})
              .insert(1, "\"lines\":" + blamed.lines + ",")};
}

// The document of a chat, or what another tool wrote of its sessions.
struct Incoming {
  std::optional<Json> document{};
  const MoveFormat* format = nullptr;
};

Result<Incoming> ReadBody(const Request& request, const SourceText& source) {
  auto document = ParseJson(request.body, kMaxChatDepth);
  const bool is_own =
      document && document->is_object() && (document->contains("interactions") || document->contains("ciphertext"));
  if (is_own) return Incoming{.document = *std::move(document)};
  const auto format = RecognizeFormat(source, {});
  if (format && *format != nullptr) return Incoming{.format = *format};
  if (!document) return Fail(std::move(document.error()));
  // A single interaction does not name its chat.
  if (document->is_object()) {
    return Fail(Reason::kInvalidDocument,
                "the document: it is no chat, as it has no interactions, and no session of a tool that is known here");
  }
  return Incoming{.document = *std::move(document)};
}

// Imports the chat under its own name, or under the first free name with a number.
Result<ChatListEntry> ImportUnderFreeName(Engine& engine, const IncomingChat& chat) {
  auto imported = engine.ImportChat(chat);
  for (int number = 2; !imported && imported.error().Is(Reason::kChatExists); ++number) {
    imported = engine.ImportChat(RenamedTo(NumberedName(chat.summary.id, number), chat));
  }
  return imported;
}

Reply ReplyWith(const ChatListEntry& imported, Json notes) {
  Json json = ToJson(imported.summary);
  json["status"] = imported.status ? Json(ToString(*imported.status)) : Json(nullptr);
  json["notes"] = std::move(notes);
  Reply reply{.status = 201, .body = DumpJson(json)};
  reply.headers.emplace_back("Location", "/chats/" + imported.summary.id.str());
  return reply;
}

// Imports the sessions that are not here yet, each for itself. The answer is about the last of them; it fails only if
// none came in.
class SessionsImport {
 public:
  SessionsImport(Engine& engine, std::optional<std::string> as) : engine_(engine), as_(std::move(as)) {}

  void Add(const FoundSession& session) {
    if (const auto added = TryToAdd(session); !added) AddFailure(added.error());
  }
  void AddFailure(const Error& error) {
    constexpr std::size_t kMostTold = 20;
    if (failures_.size() < kMostTold) failures_.push_back("not imported: " + error.message);
    ++failed_;
    if (!first_failure_) first_failure_ = error;
  }

  Result<Outcome> Answer() {
    if (!last_ && first_failure_) return Fail(*std::move(first_failure_));
    if (!last_ && !known_.empty()) {
      return Fail(Reason::kChatExists, "the session was imported earlier, and is the same since: chat " + known_);
    }
    if (!last_) return Fail(Reason::kInvalidDocument, "the document holds no message");
    if (count_ > 1) notes_.push_back(std::to_string(count_) + " chats were imported; this is the last one");
    for (std::string& failure : failures_) notes_.push_back(std::move(failure));
    if (failed_ > failures_.size()) {
      notes_.push_back("not imported: " + std::to_string(failed_ - failures_.size()) + " more");
    }
    return ReplyWith(*last_, std::move(notes_));
  }

 private:
  Result<void> TryToAdd(const FoundSession& session) {
    const std::string name = as_ ? *as_ : NameOfMoved(session, TRY(session.digest()));
    auto turns = session.plan();
    if (!turns && turns.error().code == ErrorCode::kNotFound) return {};  // without any message
    if (turns && as_ && std::exchange(is_named_, true)) {
      return Fail(Reason::kInvalidParameter, "\"as\" is for one chat, and there are several");
    }
    ForeignChat foreign = TRY(TRY(std::move(turns))->ReadAll(name));
    Json notes = foreign.notes;
    auto imported = engine_.ImportChat(ToIncomingChat(TRY(ChatId::Parse(name)), std::move(foreign)));
    if (!imported && imported.error().Is(Reason::kChatExists) && !as_) {
      known_ = name;
      return {};
    }
    last_ = TRY(std::move(imported));
    notes_ = std::move(notes);
    ++count_;
    return {};
  }

  Engine& engine_;
  const std::optional<std::string> as_;
  std::optional<ChatListEntry> last_;
  Json notes_ = Json::array();
  std::vector<std::string> failures_;  // for people
  std::optional<Error> first_failure_;
  std::string known_;  // a chat that was here
  std::size_t count_ = 0, failed_ = 0;
  bool is_named_ = false;  // a chat has the name `as_`
};

Result<Outcome> Import(Engine& engine, const Request& request) {
  const auto as = request.Query("as");
  if (as && !ChatId::Parse(*as)) return Fail(Reason::kInvalidParameter, "\"as\" cannot be a chat's name");
  const SourceText source = SourceText::Of(request.body, "the document");
  auto body = TRY(ReadBody(request, source));
  if (body.format != nullptr) {
    SessionsImport import(engine, as);
    const auto add = [&](const FoundSession& session) { return import.Add(session), Result<void>(); };
    const auto read =
        ForEachSession(source, *body.format, {}, add, [&](const Error& error) { import.AddFailure(error); });
    if (!read) import.AddFailure(read.error());
    return import.Answer();
  }
  auto foreign = TRY(ReadChatDocument(*std::move(body.document), "the document"));
  const auto name = ChatId::Parse(as.value_or(foreign.name));
  if (!name) {
    return Fail(Reason::kInvalidDocument,
                "the document's chat has no id that can be its name here; give it one (?as=NAME)");
  }
  NoteMissingFiles(foreign);
  Json notes = foreign.notes;
  const IncomingChat chat = ToIncomingChat(*name, std::move(foreign));
  return ReplyWith(TRY(as ? engine.ImportChat(chat) : ImportUnderFreeName(engine, chat)), std::move(notes));
}

Result<bool> Flag(const Request& request, const char* name, bool otherwise) {
  const auto given = request.Query(name);
  if (!given) return otherwise;
  if (*given == "true" || *given == "false") return *given == "true";
  return Fail(Reason::kInvalidParameter, std::string("\"") + name + "\" must be true or false");
}

Result<Outcome> Connect(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  EditorAbilities abilities;
  abilities.reads = TRY(Flag(request, "reads", abilities.reads));
  abilities.writes = TRY(Flag(request, "writes", abilities.writes));
  auto connected = TRY(engine.ConnectEditor(chat, abilities));
  return StreamReply{.log = std::move(connected.log), .hold = std::move(connected.hold), .forgets = true};
}

Result<Outcome> Offer(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  auto tools = TRY(ParseEditorTools(request.body));
  const std::size_t taken = TRY(engine.OfferEditorTools(chat, std::move(tools)));
  return JsonReply({{"status", "processed"}, {"tools", taken}});
}

Result<Outcome> Answer(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  auto answer = TRY(ParseEditorAnswer(request.body));
  const std::string& id = request.captures.at(1);
  TRY(engine.AnswerEditor(chat, id, std::move(answer)));
  return JsonReply({{"status", "processed"}, {"request_id", id}});
}

}  // namespace

void AddFileRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("POST", "/chats/*/files", with(AddFile), Lane::kFiles, BodyKind::kFile);
  router.Add("GET", "/chats/*/files", with(ListFiles), Lane::kFiles);
  router.Add("GET", "/chats/*/files/*", with(GetFile), Lane::kFiles);
  router.Add("DELETE", "/chats/*/files/*", with(DeleteFile), Lane::kFiles);
}

void AddWorkspaceRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("GET", "/workspace/files", with(FindFiles));
  router.Add("POST", "/chats/*/workspace/files", with(AttachFile), Lane::kFiles);
  router.Add("GET", "/chats/*/blame", with(BlameFile), Lane::kLong);
}

void AddImportRoutes(Router& router, const HandlerContext& context) {
  const auto import = [&engine = context.engine](const Request& request) { return Import(engine, request); };
  router.Add("POST", "/import", import, Lane::kLong, BodyKind::kChat);
}

void AddEditorRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("GET", "/chats/*/editor", with(Connect));
  router.Add("PUT", "/chats/*/editor", with(Offer), Lane::kWork, BodyKind::kConversation);
  // On the control threads, because a waiting tool may hold up the others.
  router.Add("POST", "/chats/*/editor/*", with(Answer), Lane::kControl, BodyKind::kConversation);
}

}  // namespace reprise
