// Cline: a task's folder, with the messages of Anthropic's API and what its interface showed.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// A person's text without what the tool tells the model of the workspace.
std::string WithoutDetails(std::string text) {
  constexpr std::string_view kBegin = "<environment_details>", kEnd = "</environment_details>";
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd, begin == std::string::npos ? 0 : begin);
  if (begin != std::string::npos && end != std::string::npos) text.erase(begin, end + kEnd.size() - begin);
  for (const std::string_view tag :
       {"<task>", "</task>", "<feedback>", "</feedback>", "<user_message>", "</user_message>"}) {
    if (const std::size_t at = text.find(tag); at != std::string::npos) text.erase(at, tag.size());
  }
  return std::string(Trimmed(text));
}

Json FileBeside(const std::string& path, const char* name) {
  return ReadForeignJson((std::filesystem::path(path).parent_path() / name).string()).value_or(Json());
}

// The tokens of each request, as the interface was told of them.
std::vector<MovedMessage> RequestsIn(const Json& shown) {
  std::vector<MovedMessage> requests;
  for (const Json& each : shown.is_array() ? shown : Json::array()) {
    if (TextMember(each, "say") != "api_req_started") continue;
    const auto told = ParseForeignJson(TextMember(each, "text"), {});
    if (!told) continue;
    MovedMessage request{.at = TimeIn(MemberOf(each, "ts"))};
    request.usage = UsageOf(CountIn(*told, "tokensIn"), CountIn(*told, "tokensOut"), CountIn(*told, "cacheReads"),
                            CountIn(*told, "cacheWrites"));
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace

ReadSession ReadCline(const Json& session, const std::string& path) {
  ReadSession read;
  const Json shown = path.empty() ? Json() : FileBeside(path, "ui_messages.json");
  const Json metadata = path.empty() ? Json() : FileBeside(path, "task_metadata.json");
  const auto requests = RequestsIn(shown);
  const Json& models = ListIn(metadata, "model_usage");
  if (!models.empty()) {
    read.messages.push_back({.kind = Kind::kModel, .model = TextMember(models.back(), "model_id")});
  }
  read.facts.id = std::filesystem::path(path).parent_path().filename().string();
  std::size_t answers = 0;
  for (const Json& message : session) {
    AnthropicContent content = ReadAnthropicContent(MemberOf(message, "content"), read.left_out);
    MovedMessage& said = content.message;
    auto at = TimeIn(MemberOf(message, "ts"));
    if (TextMember(message, "role") == "assistant") {
      said.kind = Kind::kAnswer;
      said.text.clear();
      said.group = "answer " + std::to_string(answers);
      said.model = TextMember(MemberOf(message, "modelInfo"), "modelId");
      if (answers < requests.size()) said.usage = requests[answers].usage, at = at ? at : requests[answers].at;
      ++answers;
    } else {
      said.blocks.clear();
      said.text = WithoutDetails(std::move(said.text));
    }
    said.at = at;
    for (MovedMessage& result : content.results) {
      result.at = at;
      read.messages.push_back(std::move(result));
    }
    if (said.kind == Kind::kAnswer || !said.text.empty() || !said.files.empty())
      read.messages.push_back(std::move(said));
    if (!read.facts.created) read.facts.created = at;
    read.facts.updated = std::max(read.facts.updated, at);
  }
  return read;
}

}  // namespace reprise
