#include "http/workspace_handlers.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "http/error_response.h"
#include "http/requests.h"

namespace reprise {
namespace {

constexpr std::size_t kUsualFiles = 20, kMostFiles = 100;

Result<Outcome> FindFiles(Engine& engine, const Request& request) {
  const auto limit = TRY(PageLimit(request, kUsualFiles, kMostFiles));
  const auto text = TRY(WordsOf(request));
  const auto listing = TRY(engine.FindWorkspaceFiles(text, limit));
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

}  // namespace

void AddWorkspaceRoutes(Router& router, const HandlerContext& context) {
  const auto with = [&engine = context.engine](Result<Outcome> (*handler)(Engine&, const Request&)) {
    return [&engine, handler](const Request& request) { return handler(engine, request); };
  };
  router.Add("GET", "/workspace/files", with(FindFiles));
  router.Add("POST", "/chats/*/workspace/files", with(AttachFile), Lane::kFiles);
}

}  // namespace reprise
