// Gemini CLI: a session's record (one JSON file; later a file of lines), and the checkpoints of /chat save.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// Parts of Gemini's API, or a text.
void TakeParts(const Json& content, MovedMessage& message, LeftOut& left_out) {
  if (content.is_string()) message.text += content.get<std::string>();
  for (const Json& part : content.is_array() ? content : Json::array()) {
    if (part.is_string() || part.contains("text")) {
      message.text += part.is_string() ? part.get<std::string>() : TextMember(part, "text");
    } else if (const Json& data = MemberOf(part, "inlineData"); !data.is_null()) {
      if (auto bytes = DecodeBase64(TextMember(data, "data"))) {
        message.files.push_back(
            {.filename = {}, .mime_type = TextMember(data, "mimeType"), .content = *std::move(bytes)});
      }
    } else {
      left_out.Add("part of a message");
    }
  }
}

std::string OutputIn(const Json& response) {
  const Json& output = MemberOf(response, "output");
  if (output.is_string()) return output.get<std::string>();
  const Json& error = MemberOf(response, "error");
  return error.is_string() ? error.get<std::string>() : response.is_null() ? std::string() : DumpJson(response);
}

class GeminiReader final : public RecordReader {
 public:
  std::vector<MovedMessage> Take(const Json& line) override {
    const std::string type = TextMember(line, "type");
    const auto at = TimeIn(MemberOf(line, "timestamp"));
    std::vector<MovedMessage> messages;
    if (line.contains("sessionId") || line.contains("$set")) {
      TakeFacts(line.contains("$set") ? MemberOf(line, "$set") : line);
    } else if (type == "user") {
      messages.push_back({});
      TakeParts(MemberOf(line, "content"), messages.back(), left_out);
    } else if (type == "gemini" || type == "model") {
      messages = TakeAnswer(line);
    } else if (type == "info" || type == "error" || type == "warning") {
      left_out.Add("message of the interface");
    } else {
      left_out.Add("line of a type that is not known here");
    }
    for (MovedMessage& message : messages) message.at = message.at ? message.at : at;
    return messages;
  }

  void TakeFacts(const Json& about) {
    if (about.contains("sessionId")) facts.id = TextMember(about, "sessionId");
    if (about.contains("summary")) facts.title = TextMember(about, "summary");
    if (about.contains("startTime")) facts.created = TimeIn(MemberOf(about, "startTime"));
    if (about.contains("lastUpdated")) facts.updated = TimeIn(MemberOf(about, "lastUpdated"));
    for (const Json& folder : ListIn(about, "directories"))
      facts.folder = folder.is_string() ? folder.get<std::string>() : "";
  }

 private:
  std::vector<MovedMessage> TakeAnswer(const Json& line) {
    MovedMessage answer{.kind = Kind::kAnswer, .group = TextMember(line, "id"), .model = TextMember(line, "model")};
    for (const Json& thought : ListIn(line, "thoughts")) {
      const std::string subject = TextMember(thought, "subject"), text = TextMember(thought, "description");
      answer.blocks.push_back(
          {.kind = MovedBlock::Kind::kThinking, .text = subject + (subject.empty() ? "" : "\n") + text});
    }
    TakeParts(MemberOf(line, "content"), answer, left_out);
    answer.blocks.push_back({.text = std::exchange(answer.text, {})});
    answer.files.clear();
    const Json& tokens = MemberOf(line, "tokens");
    answer.usage = {.input_tokens = CountIn(tokens, "input") + CountIn(tokens, "tool"),
                    .output_tokens = CountIn(tokens, "output") + CountIn(tokens, "thoughts"),
                    .cache_read_tokens = CountIn(tokens, "cached")};
    std::vector<MovedMessage> results;
    for (const Json& call : ListIn(line, "toolCalls")) AddCall(call, answer, results);
    results.insert(results.begin(), std::move(answer));
    return results;
  }

  void AddCall(const Json& call, MovedMessage& answer, std::vector<MovedMessage>& results) {
    const std::string id = TextMember(call, "id");
    answer.blocks.push_back({.kind = MovedBlock::Kind::kCall,
                             .text = ArgumentsIn(MemberOf(call, "args")),
                             .id = id,
                             .name = TextMember(call, "name")});
    const std::string status = TextMember(call, "status");
    const Json& made = MemberOf(call, "result");
    if (made.is_null() && status != "cancelled" && status != "error") return;
    MovedMessage result{.kind = Kind::kResult, .at = TimeIn(MemberOf(call, "timestamp")), .call_id = id};
    result.is_error = status == "error" || status == "cancelled";
    for (const Json& part : made.is_array() ? made : Json::array({made})) {
      const Json& response = MemberOf(part, "functionResponse");
      if (response.is_null()) {
        if (!part.is_null()) TakeParts(Json::array({part}), result, left_out);
        continue;
      }
      result.text += (result.text.empty() ? "" : "\n") + OutputIn(MemberOf(response, "response"));
    }
    results.push_back(std::move(result));
  }
};

}  // namespace

std::unique_ptr<RecordReader> ReadGeminiLines(const std::string&) { return std::make_unique<GeminiReader>(); }

ReadSession ReadGemini(const Json& session, const std::string&) {
  GeminiReader reader;
  reader.TakeFacts(session);
  return ReadAll(reader, ListIn(session, "messages"));
}

// A list of contents of Gemini's API. The first two are the tool's own words.
ReadSession ReadGeminiCheckpoint(const Json& session, const std::string& path) {
  ReadSession read;
  read.facts.id = path;
  const Json& history = session.is_array() ? session : ListIn(session, "history");
  std::size_t calls = 0, results = 0;  // they have no ids, and stand in the same order
  for (const Json& content : history) {
    MovedMessage said;
    if (TextMember(content, "role") == "model")
      said.kind = Kind::kAnswer, said.group = "content " + std::to_string(read.messages.size());
    std::vector<MovedMessage> outcomes;
    for (const Json& part : ListIn(content, "parts")) {
      if (const Json& call = MemberOf(part, "functionCall"); !call.is_null()) {
        said.blocks.push_back({.kind = MovedBlock::Kind::kCall,
                               .text = ArgumentsIn(MemberOf(call, "args")),
                               .id = "call_" + std::to_string(++calls),
                               .name = TextMember(call, "name")});
      } else if (const Json& response = MemberOf(part, "functionResponse"); !response.is_null()) {
        outcomes.push_back({.kind = Kind::kResult,
                            .text = OutputIn(MemberOf(response, "response")),
                            .call_id = "call_" + std::to_string(++results)});
      } else if (MemberOf(part, "thought") == true) {
        said.blocks.push_back({.kind = MovedBlock::Kind::kThinking, .text = TextMember(part, "text")});
      } else if (said.kind == Kind::kAnswer) {
        said.blocks.push_back({.text = TextMember(part, "text")});
      } else {
        TakeParts(Json::array({part}), said, read.left_out);
      }
    }
    std::ranges::move(outcomes, std::back_inserter(read.messages));
    if (!said.text.empty() || !said.blocks.empty() || !said.files.empty()) read.messages.push_back(std::move(said));
  }
  return read;
}

}  // namespace reprise
