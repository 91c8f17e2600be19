#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"file", "link", "directory"};

std::string Octal(std::uint32_t mode) {
  char digits[16];
  return {digits, std::to_chars(digits, digits + sizeof digits, mode & kDirectoryBits, 8).ptr};
}

std::optional<std::uint32_t> FromOctal(std::string_view text) {
  std::uint32_t mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode > kDirectoryBits) return std::nullopt;
  return mode;
}

FileExtras ExtrasFromJson(JsonReader& reader) {
  FileExtras extras;
  const Json* const names = reader.Find("extras");
  if (names == nullptr || !names->is_array()) return extras;
  for (const FileExtraName& each : kFileExtraNames) {
    extras.*each.member = std::ranges::find(*names, Json(each.name)) != names->end();
  }
  return extras;
}

Json ToJson(const FileVersion& version) {
  Json json = {{"type", kKinds[static_cast<std::size_t>(version.kind)]}};
  if (version.kind != FileVersion::Kind::kLink) json["mode"] = Octal(version.mode);
  if (Json extras = ToJson(version.extras); !extras.empty()) json["extras"] = std::move(extras);
  if (version.kind == FileVersion::Kind::kDirectory) return json;
  json["size"] = version.size;
  if (version.is_kept()) {
    json["digest"] = version.digest;
  } else {
    json["modified_ns"] = version.modified_ns;
  }
  return json;
}

Json OrNull(const std::optional<FileVersion>& version) { return version ? ToJson(*version) : Json(nullptr); }

Result<FileVersion> VersionFromJson(const Json& json) {
  JsonReader reader(json, "file version");
  FileVersion version;
  const std::string type = reader.String("type");
  const auto kind = std::ranges::find(kKinds, type);
  if (kind == kKinds.end()) reader.Reject("type");
  version.kind = static_cast<FileVersion::Kind>(std::min<std::size_t>(kind - kKinds.begin(), 2));
  if (version.kind != FileVersion::Kind::kLink) {
    const auto mode = FromOctal(reader.String("mode"));
    if (!mode) reader.Reject("mode");
    version.mode = mode.value_or(0);
  }
  version.extras = ExtrasFromJson(reader);
  if (version.kind != FileVersion::Kind::kDirectory) {
    version.size = static_cast<std::uint64_t>(reader.Integer("size"));
    version.digest = reader.OptionalString("digest").value_or("");
    if (version.digest.empty()) version.modified_ns = reader.Integer("modified_ns");
  }
  if (reader.error()) return Fail(*reader.error());
  return version;
}

void Write(auto& out, const WorkspaceChange& change) {
  std::string shown = ToValidUtf8(change.path);
  const bool is_text = shown == change.path;
  out["path"] = shown;
  if (!is_text) out["path_base64"] = EncodeBase64Url(change.path);
  out["before"] = OrNull(change.before);
  out["after"] = OrNull(change.after);
}

}  // namespace

Json ToJson(const FileExtras& extras) {
  Json names = Json::array();
  for (const FileExtraName& each : kFileExtraNames) {
    if (extras.*each.member) names.push_back(each.name);
  }
  return names;
}

Json ToJson(const WorkspaceChange& change) {
  Json json = Json::object();
  Write(json, change);
  return json;
}

void AppendJson(std::string& out, const WorkspaceChange& change) {
  AppendJsonObject(out, [&](auto& object) { Write(object, change); });
}

Result<WorkspaceChange> WorkspaceChangeFromJson(const Json& json) {
  JsonReader reader(json, "change");
  WorkspaceChange change{.path = reader.String("path")};
  if (const auto encoded = reader.OptionalString("path_base64")) {
    auto bytes = DecodeBase64Url(*encoded);
    if (!bytes) reader.Reject("path_base64");
    change.path = std::move(bytes).value_or("");
  }
  const auto read = [&](const char* name, std::optional<FileVersion>& version) {
    const Json* const found = reader.Find(name);
    if (found == nullptr) return reader.Reject(name);
    if (!found->is_null()) version = reader.Take(VersionFromJson(*found), FileVersion{});
  };
  read("before", change.before);
  read("after", change.after);
  if (reader.error()) return Fail(*reader.error());
  return change;
}

Json ToJson(const Blob& blob) {
  const bool is_text = IsUtf8(blob.content);
  return {{"digest", blob.digest},
          {"encoding", is_text ? "utf-8" : "base64url"},
          {"content", is_text ? blob.content : EncodeBase64Url(blob.content)}};
}

Result<Blob> BlobFromJson(const Json& json) {
  JsonReader reader(json, "blob");
  Blob blob{.digest = reader.String("digest"), .content = {}};
  const std::string encoding = reader.String("encoding");
  blob.content = reader.String("content");
  if (encoding == "base64url") {
    auto bytes = DecodeBase64Url(blob.content);
    if (!bytes) reader.Reject("content");
    blob.content = std::move(bytes).value_or("");
  } else if (encoding != "utf-8") {
    reader.Reject("encoding");
  }
  if (!reader.error() && ArgumentsDigest(blob.content) != blob.digest) reader.Reject("digest");
  if (reader.error()) return Fail(*reader.error());
  return blob;
}

std::vector<event::FilesChanged> InEvents(const std::optional<std::string>& call_id, WorkspaceChanges changes) {
  constexpr std::size_t kMost = 500;
  std::vector<event::FilesChanged> events;
  const auto add = [&] { events.push_back({.call_id = call_id, .changes = {}}); };
  for (WorkspaceChange& change : changes.recorded) {
    if (events.empty() || events.back().changes.size() == kMost) add();
    events.back().changes.push_back(std::move(change));
  }
  if (events.empty() && (changes.omitted > 0 || changes.unseen)) add();
  if (!events.empty()) {
    events.back().omitted = static_cast<std::int64_t>(changes.omitted);
    events.back().unseen = changes.unseen;
  }
  return events;
}

std::vector<std::string> BlobsOf(const Interaction& interaction) {
  std::set<std::string> digests;
  for (const AgentEvent& event : interaction.events) {
    const auto* const changed = std::get_if<event::FilesChanged>(&event.payload);
    if (changed == nullptr) continue;
    for (const WorkspaceChange& change : changed->changes) {
      for (const auto* version : {&change.before, &change.after}) {
        if (*version && !(*version)->digest.empty()) digests.insert((*version)->digest);
      }
    }
  }
  return {digests.begin(), digests.end()};
}

bool IsOfGit(std::string_view path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (LowerCase(path.substr(at, end - at)) == ".git") return true;
    at = end + 1;
  }
  return false;
}

std::vector<std::string> ShownPaths(const std::vector<WorkspaceChange>& changes) {
  std::set<std::string_view> above;  // directories named by another path
  for (const WorkspaceChange& change : changes) {
    std::string_view path = change.path;
    for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos; slash = path.rfind('/')) {
      path = path.substr(0, slash);
      above.insert(path);
    }
  }
  std::vector<std::string> paths;
  for (const WorkspaceChange& change : changes) {
    const auto is_directory = [](const std::optional<FileVersion>& version) {
      return !version || version->kind == FileVersion::Kind::kDirectory;
    };
    const bool directory = is_directory(change.before) && is_directory(change.after);
    if (directory && above.contains(change.path)) continue;
    std::string shown = ToValidUtf8(change.path);
    if (directory) shown += '/';
    paths.push_back(std::move(shown));
  }
  return paths;
}

}  // namespace reprise
