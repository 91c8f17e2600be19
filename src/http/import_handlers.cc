#include "http/import_handlers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/chat_document.h"

namespace reprise {
namespace {

tl::unexpected<Error> InvalidRequest(std::string reason, std::string message) {
  return Fail(Error{.code = ErrorCode::kInvalidArgument, .reason = std::move(reason), .message = std::move(message)});
}

Result<ForeignChat> ReadBody(const Request& request) {
  auto document = TRY(ParseJson(request.body, kMaxChatDepth));
  // An interaction alone does not say of which chat it is.
  if (document.is_object() && !document.contains("interactions") && !document.contains("ciphertext")) {
    return InvalidRequest("invalid_document", "the document: it is no chat, as it has no interactions");
  }
  return ReadChatDocument(std::move(document), "the document");
}

// Under its own name, or that with the first number that is free.
Result<ChatListEntry> ImportUnderFreeName(Engine& engine, const IncomingChat& chat) {
  auto imported = engine.ImportChat(chat);
  for (int number = 2; !imported && imported.error().reason == "chat_exists"; ++number) {
    imported = engine.ImportChat(RenamedTo(NumberedName(chat.summary.id, number), chat));
  }
  return imported;
}

Result<Outcome> Import(Engine& engine, const Request& request) {
  const auto as = request.Query("as");
  if (as && !ChatId::Parse(*as)) return InvalidRequest("invalid_parameter", "\"as\" cannot be a chat's name");
  auto foreign = TRY(ReadBody(request));
  const auto name = ChatId::Parse(as.value_or(foreign.name));
  if (!name) {
    return InvalidRequest("invalid_document",
                          "the document's chat has no id that can be its name here; give it one (?as=NAME)");
  }
  Json notes = foreign.notes;
  const IncomingChat chat = ToIncomingChat(*name, std::move(foreign));
  const auto imported = TRY(as ? engine.ImportChat(chat) : ImportUnderFreeName(engine, chat));
  Json json = ToJson(imported.summary);
  json["status"] = imported.status ? Json(ToString(*imported.status)) : Json(nullptr);
  json["notes"] = std::move(notes);
  Reply reply{.status = 201, .body = DumpJson(json)};
  reply.headers.emplace_back("Location", "/chats/" + imported.summary.id.str());
  return reply;
}

}  // namespace

void AddImportRoutes(Router& router, const HandlerContext& context) {
  const auto import = [&engine = context.engine](const Request& request) { return Import(engine, request); };
  router.Add("POST", "/import", import, Lane::kLong, BodyKind::kChat);
}

}  // namespace reprise
