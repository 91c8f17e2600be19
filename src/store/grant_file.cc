#include "store/grant_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "domain/json_reader.h"
#include "store/file_names.h"

namespace reprise {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kType = "reprise/grants";
constexpr std::uint64_t kMaxFile = 256u << 20;

tl::unexpected<Error> Damaged(std::string_view kind, std::string_view what) {
  const std::string name = GrantsFile("").substr(1);
  return Fail(Error{.code = ErrorCode::kCorruption,
                    .reason = "integrity_" + std::string(kind),
                    .message = name + ": " + std::string(what),
                    .detail = name,
                    .details_json = DumpJson({{"file", name}})});
}

Result<std::string> Open(const std::string& text, const KeySet* keys) {
  const bool sealed = LooksLikeJwe(text);
  if (keys == nullptr && sealed) {
    return Damaged("plain", "it is sealed, and this data folder is used as a plain one");
  }
  if (keys == nullptr) return text;
  if (!sealed && ParseJson(text)) return Damaged("plain", "it is not sealed, and this data folder is");
  auto opened = OpenJwe(text, *keys);
  if (!opened && opened.error().code == ErrorCode::kCorruption) return Damaged("auth", opened.error().message);
  if (!opened) return Fail(std::move(opened.error()));
  const auto header = ParseJson(opened->protected_header);
  if (!header || JsonReader(*header, "header").String("typ") != kType) {
    return Damaged("swap", "it holds a record of another kind");
  }
  if (JsonReader(*header, "header").Integer("ver") != kVersion) {
    return Damaged("version", "it was written by a version of this program that is not known here");
  }
  return std::move(opened->plaintext);
}

Result<std::vector<StandingGrant>> Parse(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json) return Damaged("auth", "its content is not JSON");
  JsonReader reader(*json, "list of grants");
  if (reader.Integer("schema") != kVersion && !reader.error()) {
    return Damaged("version", "it was written by a version of this program that is not known here");
  }
  std::vector<StandingGrant> grants;
  if (const Json* listed = reader.Array("grants")) {
    for (const Json& each : *listed) {
      JsonReader inner(each, "grant");
      grants.push_back({.grant = {inner.String("tool_name"), inner.String("arguments_digest")},
                        .tool_input = inner.String("tool_input"),
                        .created_at = inner.Time("created_at")});
      if (inner.error()) return Damaged("auth", inner.error()->message);
    }
  }
  if (reader.error()) return Damaged("auth", reader.error()->message);
  return grants;
}

}  // namespace

Result<std::vector<StandingGrant>> ReadGrantFile(FileSystem& file_system, const std::string& root, const KeySet* keys) {
  const auto text = file_system.ReadFile(GrantsFile(root), kMaxFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::vector<StandingGrant>();
  if (!text) return Fail(text.error());
  return Open(*text, keys).and_then([](const std::string& plaintext) { return Parse(plaintext); });
}

Result<void> WriteGrantFile(FileSystem& file_system, const std::string& root, const KeySet* keys,
                            const std::vector<StandingGrant>& grants) {
  if (grants.size() > kMaxStandingGrants) return Fail(ErrorCode::kTooLarge, "there are too many grants for always");
  Json listed = Json::array();
  for (const StandingGrant& each : grants) {
    listed.push_back({{"tool_name", each.grant.tool_name},
                      {"arguments_digest", each.grant.arguments_digest},
                      {"tool_input", each.tool_input},
                      {"created_at", FormatTimestamp(each.created_at)}});
  }
  Result<std::string> text = DumpJson({{"schema", kVersion}, {"grants", std::move(listed)}});
  if (keys != nullptr) text = SealJwe({{"typ", kType}, {"ver", kVersion}}, *text, *keys);
  if (!text) return Fail(text.error());
  if (auto written = ReplaceFile(file_system, GrantsFile(root), *text); !written) return written;
  return file_system.SyncDirectory(root);
}

Result<void> FileGrantStore::ReadOnce() {
  if (grants_) return {};
  auto read = ReadGrantFile(file_system_, root_, keys_.get());
  if (read) return grants_ = *std::move(read), Result<void>();
  if (!std::exchange(told_, true)) {
    LogError("what was granted for always cannot be read, and does not count", {{"error", read.error().message}});
  }
  return Fail(std::move(read.error()));
}

Result<void> FileGrantStore::Write(std::vector<StandingGrant> grants) {
  auto written = WriteGrantFile(file_system_, root_, keys_.get(), grants);
  if (written) {
    grants_ = std::move(grants);
  } else {
    grants_.reset();  // the file may be the old one or the new one
  }
  return written;
}

Result<bool> FileGrantStore::Add(const StandingGrant& grant) {
  const std::lock_guard lock(mutex_);
  std::vector<StandingGrant> grants;
  if (auto read = ReadOnce(); read) {
    grants = *grants_;
  } else if (read.error().code != ErrorCode::kCorruption) {
    return Fail(std::move(read.error()));
  } else {  // kept for whoever wants to know what it was
    auto aside = file_system_.Rename(GrantsFile(root_), DamagedGrantsFile(root_));
    if (!aside) return Fail(std::move(aside.error()));
  }
  const auto same = [&](const StandingGrant& each) { return each.grant == grant.grant; };
  if (std::any_of(grants.begin(), grants.end(), same)) return false;
  grants.push_back(grant);
  return Write(std::move(grants)).map([] { return true; });
}

Result<void> FileGrantStore::Remove(std::string_view id) {
  const std::lock_guard lock(mutex_);
  if (auto read = ReadOnce(); !read) return read;
  std::vector<StandingGrant> grants = *grants_;
  if (std::erase_if(grants, [&](const StandingGrant& each) { return GrantId(each.grant) == id; }) == 0) {
    return Fail(ErrorCode::kNotFound, "there is no such grant");
  }
  return Write(std::move(grants));
}

Result<std::vector<StandingGrant>> FileGrantStore::List() {
  const std::lock_guard lock(mutex_);
  return ReadOnce().map([&] { return *grants_; });
}

bool FileGrantStore::Covers(const Grant& call) {
  const std::lock_guard lock(mutex_);
  return ReadOnce() &&
         std::any_of(grants_->begin(), grants_->end(), [&](const StandingGrant& each) { return each.grant == call; });
}

}  // namespace reprise
