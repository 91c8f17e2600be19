#include "client/acp/prompt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/path.h"
#include "base/text.h"
#include "base/try.h"
#include "base/utf8.h"

namespace reprise::acp {
namespace {

constexpr std::size_t kMaxName = 100;

Error Wrong(std::size_t block, const std::string& what) {
  return MakeError(ErrorCode::kInvalidArgument, "prompt[" + std::to_string(block) + "] " + what);
}

// RFC 4648, section 4.
std::optional<std::string> DecodeBase64(std::string text) {
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) {
    if (c == '-' || c == '_') return std::nullopt;
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  return DecodeBase64Url(text);
}

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = i + 2 < text.size() + 0 && text[i] == '%' ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) {
      decoded += text[i];
    } else {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return ToValidUtf8(decoded);
}

// The path in the tools' form: relative if the file is in the workspace. Other URIs than files are returned unchanged.
std::string PlaceOf(const std::string& uri, const std::string& workspace) {
  constexpr std::string_view kFile = "file://";
  if (!uri.starts_with(kFile)) return uri;
  std::string_view rest = std::string_view(uri).substr(kFile.size());
  const std::size_t fragment = rest.find_first_of("#?");
  const std::string behind(fragment == std::string_view::npos ? "" : rest.substr(fragment));
  const std::string path = Decoded(rest.substr(0, fragment));
  if (workspace.empty() || !LiesBeneath(path, workspace) || path.size() <= workspace.size() + 1) return path + behind;
  return path.substr(workspace.size() + (workspace == "/" ? 0 : 1)) + behind;
}

std::string NameOf(const std::string& uri, const std::string& usual) {
  std::string_view path = std::string_view(uri).substr(0, uri.find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  std::string name = Decoded(path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '/'; }, '_');
  name = std::string(Utf8Prefix(name, kMaxName));
  return name.empty() || name == "." || name == ".." ? usual : name;
}

std::string EndingOf(const std::string& mime_type) {
  const std::string kind = mime_type.substr(mime_type.find('/') == std::string::npos ? 0 : mime_type.find('/') + 1);
  const bool is_plain =
      !kind.empty() && kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
  return kind == "jpeg" ? ".jpg" : kind == "svg+xml" ? ".svg" : is_plain ? "." + kind : "";
}

}  // namespace

Result<Prompt> ReadPrompt(const Json& blocks, const std::string& workspace) {
  if (!blocks.is_array()) return Fail(ErrorCode::kInvalidArgument, "\"prompt\" must be an array of content blocks");
  Prompt prompt;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Json& block = blocks[i];
    const std::string type = TextMember(block, "type");
    const auto text_of = [&](const Json& object, const char* name) -> Result<std::string> {
      const Json& member = MemberOf(object, name);
      if (!member.is_string()) return Fail(Wrong(i, std::string("needs the text \"") + name + "\""));
      return member.get<std::string>();
    };
    if (type == "text") {
      prompt.text += TRY(text_of(block, "text"));
    } else if (type == "resource_link") {
      const std::string uri = TRY(text_of(block, "uri"));
      const std::string name = TRY(text_of(block, "name"));
      prompt.text += "[@" + name + "](" + PlaceOf(uri, workspace) + ")";
    } else if (type == "image" || type == "audio") {
      auto bytes = DecodeBase64(TRY(text_of(block, "data")));
      if (!bytes) return Fail(Wrong(i, "has \"data\" that is not base64"));
      const std::string usual = type + EndingOf(TRY(text_of(block, "mimeType")));
      prompt.files.push_back({NameOf(TextMember(block, "uri"), usual), *std::move(bytes)});
    } else if (type == "resource") {
      const Json& resource = MemberOf(block, "resource");
      const std::string uri = TRY(text_of(resource, "uri"));
      PromptFile file{.name = NameOf(uri, "resource.txt"), .bytes = {}};
      if (MemberOf(resource, "blob").is_string()) {
        auto bytes = DecodeBase64(TextMember(resource, "blob"));
        if (!bytes) return Fail(Wrong(i, "has a \"blob\" that is not base64"));
        file.bytes = *std::move(bytes);
      } else {
        file.bytes = TRY(text_of(resource, "text"));
      }
      prompt.text += "[@" + file.name + "](" + PlaceOf(uri, workspace) + ")";
      prompt.files.push_back(std::move(file));
    } else {
      return Fail(Wrong(i, "is of a type that is not taken here; text, image, audio, resource and resource_link are"));
    }
  }
  if (prompt.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    if (prompt.files.empty()) return Fail(ErrorCode::kInvalidArgument, "the prompt is empty");
    prompt.text = prompt.files.front().name;
  }
  return prompt;
}

}  // namespace reprise::acp
