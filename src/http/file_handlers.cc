#include "http/file_handlers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/ascii.h"
#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "http/byte_range.h"
#include "http/multipart.h"
#include "http/requests.h"

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

// The types that a page of this server could load as a script, a worker or a style, which its policy allows from here.
bool CouldRunInAPage(std::string_view mime_type) {
  const std::string type = LowerCase(mime_type.substr(0, mime_type.find(';')));
  return type.find("script") != std::string::npos || type.find("css") != std::string::npos ||
         type.find("wasm") != std::string::npos;
}

// Whoever put the file chose its type: a browser must neither show nor run it as a page of this server, nor a page of
// this server run it. With X-Content-Type-Options no browser runs plain text.
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

}  // namespace

void AddFileRoutes(Router& router, const HandlerContext& context) {
  const auto with = [&engine = context.engine](Result<Outcome> (*handler)(Engine&, const Request&)) {
    return [&engine, handler](const Request& request) { return handler(engine, request); };
  };
  router.Add("POST", "/chats/*/files", with(AddFile), Lane::kFiles, BodyKind::kFile);
  router.Add("GET", "/chats/*/files", with(ListFiles), Lane::kFiles);
  router.Add("GET", "/chats/*/files/*", with(GetFile), Lane::kFiles);
  router.Add("DELETE", "/chats/*/files/*", with(DeleteFile), Lane::kFiles);
}

}  // namespace reprise
