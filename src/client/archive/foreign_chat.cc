#include "client/archive/foreign_chat.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/file_names.h"
#include "store/linked_state.h"
#include "store/record.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxDocumentBytes = 1ULL << 30;  // a whole chat in one file

tl::unexpected<Error> Unusable(const std::string& where, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, where + ": " + std::string(what));
}

bool IsChatFolder(const std::string& path) {
  return IsDirectory(path + "/interactions") || IsFile(path + "/chat.json");
}

Result<Json> ReadObject(const std::string& path) {
  const auto text = TRY(Disk().ReadFile(path, kMaxDocumentBytes));
  auto json = ParseJson(text, kMaxChatDepth);
  if (!json) return Unusable(path, json.error().message);
  if (!json->is_object()) return Unusable(path, "it is no JSON object");
  if (LooksLikeJwe(text)) return Unusable(path, "it is sealed; `reprise decrypt` makes a plain copy where its key is");
  return json;
}

// Reads an interaction. Its state may be stored as additions to that of an earlier file.
Result<Json> ReadInteractionFile(const std::string& path) {
  Json json = TRY(ReadObject(path));
  const auto link = UnlinkState(json);
  if (!link) return Unusable(path, link.error().message);
  if (*link) json["final_agent_state"][kKeptMessages] = (*link)->kept;
  return json;
}

Result<std::vector<ForeignInteraction>> ReadFolder(const std::string& path) {
  std::vector<ForeignInteraction> documents;
  const std::string folder = path + "/interactions";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return documents;
  if (!entries) return Fail(entries.error());
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    const bool json = entry.name.ends_with(".json") && !entry.name.starts_with('.');
    if (json && !entry.is_directory) names.push_back(entry.name);
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string file = folder + "/" + name;
    auto json = TRY(ReadInteractionFile(file));
    std::string id = TextMember(json, "id");
    if (id.empty()) id = name.substr(0, name.size() - std::string_view(".json").size());
    documents.push_back({.where = file, .name = std::move(id), .json = std::move(json)});
  }
  return documents;
}

Result<void> ReadFiles(const std::string& path, ForeignChat& chat) {
  const std::string folder = path + "/files";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return {};
  if (!entries) return Fail(entries.error());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory || !ParseFileName(entry.name)) continue;
    const std::string where = folder + "/" + entry.name;
    const auto text = TRY(Disk().ReadFile(where, kMaxDocumentBytes));
    if (LooksLikeJwe(text))
      return Unusable(where, "it is sealed; `reprise decrypt` makes a plain copy where its key is");
    const auto place = PlaceOfFile(text);
    if (!place) return Unusable(where, place.error().message);
    auto file = FileFromJson(*place, text);
    if (!file) return Unusable(where, file.error().message);
    TRY(AddForeignFile(*std::move(file), where, chat));
  }
  return {};
}

Result<void> ReadBlobs(const std::string& path, ForeignChat& chat) {
  const std::string folder = path + "/blobs";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return {};
  if (!entries) return Fail(entries.error());
  for (const DirectoryEntry& entry : *entries) {
    const auto name = entry.is_directory ? std::nullopt : ParseBlobName(entry.name);
    if (!name || *name == kBlobNames || *name == kBlobPosition) continue;
    const std::string where = folder + "/" + entry.name;
    const auto text = TRY(Disk().ReadFile(where, kMaxDocumentBytes));
    if (LooksLikeJwe(text))
      return Unusable(where, "it is sealed; `reprise decrypt` makes a plain copy where its key is");
    const auto json = ParseJson(text);
    if (!json) return Unusable(where, "it is not JSON");
    auto blob = BlobFromJson(*json);
    if (!blob) return Unusable(where, blob.error().message);
    chat.blobs.push_back(*std::move(blob));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> FindForeignChats(const std::string& path) {
  if (IsFile(path) || (IsDirectory(path) && IsChatFolder(path))) return std::vector{path};
  if (!IsDirectory(path)) return Fail(ErrorCode::kNotFound, "there is no file or folder " + path);
  const auto entries = TRY(Disk().ListDirectory(path));
  std::vector<std::string> chats;
  for (const DirectoryEntry& entry : entries) {
    const std::string folder = path + "/" + entry.name;
    if (entry.is_directory && !entry.name.starts_with('.') && IsChatFolder(folder)) chats.push_back(folder);
  }
  std::ranges::sort(chats);
  if (chats.empty()) return Fail(ErrorCode::kInvalidArgument, "there is no chat in " + path);
  return chats;
}

Result<ForeignChat> ReadForeignChat(const std::string& path) {
  if (!IsDirectory(path)) {
    auto chat = ReadObject(path).and_then([&](Json document) { return ReadChatDocument(std::move(document), path); });
    if (chat && chat->name.empty()) chat->name = std::filesystem::path(path).stem();
    return chat;
  }
  ForeignChat chat;
  Json about = Json::object();
  chat.name = std::filesystem::absolute(path + "/").lexically_normal().parent_path().filename();
  if (IsFile(path + "/chat.json")) {
    about = TRY(ReadObject(path + "/chat.json"));
  }
  if (const std::string id = TextMember(about, "id"); !id.empty()) chat.name = id;
  auto documents = TRY(ReadFolder(path));
  // For programs that write each chat as one file in a folder of its own.
  const bool all_in_one = documents.empty() && MemberOf(about, "interactions").is_array();
  if (all_in_one) {
    auto whole = ReadChatDocument(std::move(about), path);
    if (whole) whole->name = chat.name;
    if (!whole) return whole;
    chat = *std::move(whole);
  } else {
    if (about.contains("damaged")) chat.notes.push_back("the export lacks interactions that were damaged");
    TRY(ReadInteractions(std::move(documents), about, chat));
  }
  if (auto read = ReadFiles(path, chat).and_then([&] { return ReadBlobs(path, chat); }); !read) {
    return Fail(std::move(read.error()));
  }
  return chat;
}

}  // namespace reprise
