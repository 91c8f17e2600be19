#include "store/head_file.h"

#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "crypto/jwe.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr int kHeadVersion = 1;
constexpr std::uint64_t kMaxHeadFile = 64 * 1024;

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Error LoneRecordDamage(std::string_view name, std::string_view kind, std::string_view what) {
  return Error{.code = ErrorCode::kCorruption,
               .reason = "integrity_" + std::string(kind),
               .message = std::string(name) + ": " + std::string(what),
               .detail = std::string(name),
               .details_json = DumpJson({{"file", std::string(name)}})};
}

Result<std::string> OpenLoneRecord(std::string_view text, std::string_view name, std::string_view type, int version,
                                   const KeySet* keys) {
  const auto damaged = [&](std::string_view kind, std::string_view what) {
    return Fail(LoneRecordDamage(name, kind, what));
  };
  const bool sealed = LooksLikeJwe(text);
  if (keys == nullptr && sealed) {
    return damaged("plain", "it is sealed, and this data folder is used as a plain one");
  }
  if (keys == nullptr) return std::string(text);
  if (!sealed && ParseJson(text)) return damaged("plain", "it is not sealed, and this data folder is");
  auto opened = OpenJwe(text, *keys);
  if (!opened && opened.error().code == ErrorCode::kCorruption) return damaged("auth", opened.error().message);
  if (!opened) return Fail(std::move(opened.error()));
  const auto header = ParseJson(opened->protected_header);
  if (!header || JsonReader(*header, "header").String("typ") != type) {
    return damaged("swap", "it holds a record of another kind");
  }
  if (JsonReader(*header, "header").Integer("ver") != version) {
    return damaged("version", "it was written by a version of this program that is not known here");
  }
  return std::move(opened->plaintext);
}

Result<std::optional<std::string>> ReadHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                                                const KeySet* keys) {
  const auto text = file_system.ReadFile(path, kMaxHeadFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
  if (!text && text.error().code == ErrorCode::kTooLarge) {
    return Fail(LoneRecordDamage(NameOf(path), "auth", "it is too large"));
  }
  if (!text) return Fail(text.error());
  return OpenLoneRecord(*text, NameOf(path), type, kHeadVersion, keys).map([](std::string plaintext) {
    return std::optional(std::move(plaintext));
  });
}

Result<std::string> HeadText(std::string_view type, std::string_view json, const KeySet* keys) {
  if (keys == nullptr) return std::string(json);
  return SealJwe({{"typ", type}, {"ver", kHeadVersion}}, json, *keys);
}

Result<void> WriteHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                           std::string_view json, const KeySet* keys) {
  auto text = HeadText(type, json, keys);
  if (!text) return Fail(std::move(text.error()));
  return ReplaceFile(file_system, path, *text).and_then([&] {
    return file_system.SyncDirectory(ParentDirectory(path));
  });
}

}  // namespace reprise
