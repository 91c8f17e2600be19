// The exports of Claude.ai, Open WebUI and LibreChat.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"
#include "engine/moves/trees.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// A text of a web page that its attributes hold.
std::string WithoutEntities(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&quot;", "\""}, {"&#x27;", "'"}, {"&#39;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}};
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const auto entity = std::ranges::find_if(
        kEntities, [&](const auto& each) { return text.compare(at, each.first.size(), each.first) == 0; });
    const bool is_one = entity != std::end(kEntities);
    plain += is_one ? entity->second : std::string_view(text).substr(at, 1);
    at += is_one ? entity->first.size() : 1;
  }
  return plain;
}

// The steps of an answer that is a list of texts, thoughts, calls and results: each result ends a piece.
class AnswerSteps {
 public:
  explicit AnswerSteps(MovedMessage like) : like_(std::move(like)) { like_.kind = Kind::kAnswer; }
  void Add(MovedBlock block) {
    if (block.text.empty() && block.kind != MovedBlock::Kind::kCall) return;
    if (open_ == nullptr) steps_.push_back(like_), open_ = &steps_.back();
    open_->blocks.push_back(std::move(block));
  }
  void AddResult(MovedMessage result) {
    open_ = nullptr;
    result.kind = Kind::kResult;
    result.at = like_.at;
    steps_.push_back(std::move(result));
  }
  void Fail(std::string why) {
    open_ = nullptr;
    steps_.push_back({.kind = Kind::kFailed, .at = like_.at, .text = std::move(why)});
  }
  bool has_failed() const { return !steps_.empty() && steps_.back().kind == Kind::kFailed; }
  std::vector<MovedMessage> Take(const TokenUsage& usage) && {
    const auto last = std::ranges::find(steps_.rbegin(), steps_.rend(), Kind::kAnswer, &MovedMessage::kind);
    if (last != steps_.rend()) last->usage = usage;
    return std::move(steps_);
  }

 private:
  MovedMessage like_;
  std::vector<MovedMessage> steps_;
  MovedMessage* open_ = nullptr;
};

// --- Claude.ai

std::vector<MovedMessage> StepsOfClaude(const Json& message, LeftOut& left_out) {
  MovedMessage said{.at = TimeIn(MemberOf(message, "created_at"))};
  left_out.Add("file whose content the export lacks", ListIn(message, "files").size());
  if (TextMember(message, "sender") == "human") {
    MovedMessage read = ReadAnthropicContent(MemberOf(message, "content"), left_out).message;
    said.text = std::move(read.text);
    said.files = std::move(read.files);
    if (said.text.empty()) said.text = TextMember(message, "text");
    for (const Json& each : ListIn(message, "attachments")) {
      said.files.push_back({.filename = TextMember(each, "file_name"),
                            .mime_type = "text/plain",
                            .content = TextMember(each, "extracted_content")});
    }
    return {std::move(said)};
  }
  AnswerSteps steps(said);
  OpenCalls open;
  std::size_t calls = 0;
  for (const Json& part : ListIn(message, "content")) {
    AnthropicContent read = ReadAnthropicContent(Json::array({part}), left_out);
    left_out.Add("image of an answer", read.message.files.size());
    for (MovedBlock& block : read.message.blocks) {
      if (block.kind == MovedBlock::Kind::kCall) {
        const std::string given_id = block.id;
        if (given_id.empty()) block.id = "call_" + TextMember(message, "uuid") + "_" + std::to_string(++calls);
        open.Add({.id = block.id, .name = block.name, .given_id = given_id});
      }
      block.verbatim.clear();  // the export has no signatures that hold
      steps.Add(std::move(block));
    }
    for (MovedMessage& result : read.results) {
      const std::string call = open.Take(result.call_id, TextMember(part, "name"));
      if (result.call_id.empty()) result.call_id = call;
      steps.AddResult(std::move(result));
    }
  }
  if (ListIn(message, "content").empty()) steps.Add({.text = TextMember(message, "text")});
  return std::move(steps).Take({});
}

// --- Open WebUI

std::string Attribute(std::string_view tag, std::string_view name) {
  const std::string begin = " " + std::string(name) + "=\"";
  const std::size_t from = tag.find(begin);
  if (from == std::string_view::npos) return {};
  const std::size_t to = tag.find('"', from + begin.size());
  return WithoutEntities(
      std::string(tag.substr(from + begin.size(), to == std::string_view::npos ? to : to - from - begin.size())));
}

// A value that the tool may have written as JSON of a text: the text.
std::string Unquoted(std::string text) {
  const auto json = text.starts_with('"') ? ParseForeignJson(text, {}) : Result<Json>(Json());
  return json && json->is_string() ? json->get<std::string>() : text;
}

// What newer versions keep of an answer: items of OpenAI's Responses API.
void AddItem(const Json& item, AnswerSteps& steps, LeftOut& left_out) {
  const std::string type = TextMember(item, "type");
  std::vector<MovedFile> files;
  if (type == "function_call") {
    steps.Add({.kind = MovedBlock::Kind::kCall,
               .text = ArgumentsIn(MemberOf(item, "arguments")),
               .id = TextMember(item, "call_id"),
               .name = TextMember(item, "name")});
  } else if (type == "function_call_output") {
    MovedMessage result{.call_id = TextMember(item, "call_id")};
    result.text = ResultText(MemberOf(item, "output"), result.files, left_out);
    steps.AddResult(std::move(result));
  } else if (type == "message" || type == "reasoning") {
    const bool is_thinking = type == "reasoning";
    std::string text = ResultText(MemberOf(item, "content"), files, left_out);
    if (is_thinking && text.empty()) text = ResultText(MemberOf(item, "summary"), files, left_out);
    steps.Add({.kind = is_thinking ? MovedBlock::Kind::kThinking : MovedBlock::Kind::kText, .text = std::move(text)});
    left_out.Add("image of an answer", files.size());
  } else {
    left_out.Add("part of an answer (" + FirstWords(type) + ")");
  }
}

// Its answers are Markdown; calls and thoughts are <details> elements in it.
std::vector<MovedMessage> StepsOfWebUi(const Json& message, const MovedMessage& like, LeftOut& left_out) {
  AnswerSteps steps(like);
  const Json& items = ListIn(message, "output");
  for (const Json& item : items) AddItem(item, steps, left_out);
  const std::string content = items.empty() ? TextMember(message, "content") : std::string();
  std::string_view rest = content;
  constexpr std::string_view kBegin = "<details type=\"", kEnd = "</details>";
  while (!rest.empty()) {
    const std::size_t begin = std::min(rest.find(kBegin), rest.size());
    steps.Add({.text = std::string(Trimmed(rest.substr(0, begin)))});
    rest.remove_prefix(begin);
    if (rest.empty()) break;
    const std::size_t tag_end = rest.find('>'), end = rest.find(kEnd);
    if (tag_end == std::string_view::npos || end == std::string_view::npos || end < tag_end) {
      steps.Add({.text = std::string(rest)});
      break;
    }
    const std::string_view tag = rest.substr(0, tag_end);
    const std::string type = Attribute(tag, "type");
    std::string body(rest.substr(tag_end + 1, end - tag_end - 1));
    if (const std::size_t summary = body.find("</summary>"); summary != std::string::npos) body.erase(0, summary + 10);
    body = Trimmed(WithoutEntities(std::move(body)));
    AddLine(body, Attribute(tag, "output"));  // of code that the answer ran
    if (!Attribute(tag, "files").empty()) left_out.Add("list of files of a result");
    if (type == "tool_calls") {
      const std::string id = Attribute(tag, "id");
      steps.Add({.kind = MovedBlock::Kind::kCall,
                 .text = Unquoted(Attribute(tag, "arguments")),
                 .id = id,
                 .name = Attribute(tag, "name")});
      const std::string result = Attribute(tag, "result");  // newer versions have it in the body
      if (Attribute(tag, "done") == "true") {
        steps.AddResult({.text = Unquoted(result.empty() ? body : result), .call_id = id});
      }
    } else {
      const bool is_thinking = type == "reasoning";
      steps.Add({.kind = is_thinking ? MovedBlock::Kind::kThinking : MovedBlock::Kind::kText, .text = std::move(body)});
    }
    rest.remove_prefix(end + kEnd.size());
  }
  const Json& usage = MemberOf(message, "usage");
  return std::move(steps).Take(
      {.input_tokens = std::max(CountIn(usage, "prompt_tokens"), CountIn(usage, "input_tokens")),
       .output_tokens = std::max(CountIn(usage, "completion_tokens"), CountIn(usage, "output_tokens"))});
}

// How an answer failed; an old version has the error as its content. nullopt: it did not.
std::optional<std::string> FailureOf(const Json& message) {
  const Json& error = MemberOf(message, "error");
  if (error.is_null() || error == false) return std::nullopt;
  if (error == true) return TextMember(message, "content");
  const Json& why = error.is_object() ? MemberOf(error, "content") : error;
  return why.is_string() ? why.get<std::string>() : DumpJson(error);
}

// --- LibreChat

void AddLibreChatPart(const Json& part, AnswerSteps& steps, LeftOut& left_out) {
  const std::string type = TextMember(part, "type");
  const auto text_of = [&](const char* name) {
    const Json& value = MemberOf(part, name);
    return value.is_object() ? TextMember(value, "value") : TextMember(part, name);
  };
  if (type == "text" || type == "think") {
    steps.Add({.kind = type == "text" ? MovedBlock::Kind::kText : MovedBlock::Kind::kThinking,
               .text = text_of(type.c_str())});
  } else if (type == "tool_call") {
    const Json& call = MemberOf(part, "tool_call");
    const Json& function = MemberOf(call, "function");
    const std::string id = TextMember(call, "id");
    const Json& made = function.is_object() ? function : call;
    steps.Add({.kind = MovedBlock::Kind::kCall,
               .text = ArgumentsIn(MemberOf(made, function.is_object() ? "arguments" : "args")),
               .id = id,
               .name = TextMember(made, "name")});
    if (MemberOf(made, "output").is_string()) steps.AddResult({.text = TextMember(made, "output"), .call_id = id});
  } else if (type == "error") {
    steps.Fail(text_of("error"));
  } else {
    left_out.Add("part of a message (" + FirstWords(type) + ")");
  }
}

std::vector<MovedMessage> StepsOfLibreChat(const Json& message, LeftOut& left_out) {
  MovedMessage said{.at = TimeIn(MemberOf(message, "createdAt")), .text = TextMember(message, "text")};
  for (const char* list : {"files", "attachments"})
    left_out.Add("file whose content the export lacks", ListIn(message, list).size());
  if (MemberOf(message, "isCreatedByUser") == true) return {std::move(said)};
  said.model = TextMember(message, "model");
  const std::string text = std::exchange(said.text, {});
  AnswerSteps steps(said);
  for (const Json& part : ListIn(message, "content")) AddLibreChatPart(part, steps, left_out);
  const bool failed = MemberOf(message, "error") == true;
  if (ListIn(message, "content").empty() && !failed) steps.Add({.text = text});
  if (failed && !steps.has_failed()) steps.Fail(text);
  return std::move(steps).Take({.output_tokens = CountIn(message, "tokenCount")});
}

// --- The records of each

class ClaudeReader final : public NodeReader {
 public:
  explicit ClaudeReader(const Json& session) {
    facts = {.id = TextMember(session, "uuid"),
             .title = TextMember(session, "name"),
             .head = TextMember(session, "current_leaf_message_uuid"),  // not in the export: as the page loads it
             .created = TimeIn(MemberOf(session, "created_at")),
             .updated = TimeIn(MemberOf(session, "updated_at"))};
    model = TextMember(session, "model");
    if (!IsBlank(TextMember(session, "summary"))) left_out.Add("summary of the chat");
  }

  std::vector<MessageNode> Take(const Json& message) override {
    std::string id = TextMember(message, "uuid");
    if (id.empty()) id = "#" + std::to_string(record);
    std::string before = std::exchange(before_, id);
    const bool says_parent = message.contains("parent_message_uuid");
    return {{.id = std::move(id),
             .parent = says_parent ? TextMember(message, "parent_message_uuid") : std::move(before),
             .steps = StepsOfClaude(message, left_out)}};
  }

 private:
  std::string before_;  // the message before
};

// Its records are members of the list of messages.
class OpenWebUiReader final : public NodeReader {
 public:
  explicit OpenWebUiReader(const Json& session) {
    const Json& chat = session.contains("chat") ? MemberOf(session, "chat") : session;
    facts = {.id = TextMember(session, "id"),
             .title = TextMember(session, "title").empty() ? TextMember(chat, "title") : TextMember(session, "title"),
             .head = TextMember(MemberOf(chat, "history"), "currentId"),
             .created = TimeIn(MemberOf(session, "created_at")),
             .updated = TimeIn(MemberOf(session, "updated_at"))};
    are_members = true;
  }

  std::vector<MessageNode> Take(const Json& json) override {
    std::vector<MessageNode> nodes;
    for (const auto& [id, message] : json.items()) nodes.push_back(NodeOf(id, message));
    return nodes;
  }

 private:
  MessageNode NodeOf(const std::string& id, const Json& message) {
    MessageNode node{.id = id, .parent = TextMember(message, "parentId")};
    MovedMessage said{.at = TimeIn(MemberOf(message, "timestamp")), .model = TextMember(message, "model")};
    for (const Json& file : ListIn(message, "files")) {
      auto image = FileInDataUrl(TextMember(file, "url"));
      if (image && TextMember(message, "role") == "user") {
        said.files.push_back(*std::move(image));
      } else {
        left_out.Add("file whose content the export lacks");
      }
    }
    if (TextMember(message, "role") == "user") {
      said.model.clear();
      said.text = TextMember(message, "content");
      node.steps.push_back(std::move(said));
    } else {
      const auto failure = FailureOf(message);
      if (MemberOf(message, "error") != true) node.steps = StepsOfWebUi(message, said, left_out);
      if (failure) node.steps.push_back({.kind = Kind::kFailed, .at = said.at, .text = *failure});
      for (const char* list : {"sources", "citations"})
        left_out.Add("source of an answer", ListIn(message, list).size());
      left_out.Add("record of code that ran", ListIn(message, "code_executions").size());
    }
    return node;
  }
};

// Its records are messages, each perhaps with those that follow it, as deep as the chat is long.
class LibreChatReader final : public NodeReader {
 public:
  explicit LibreChatReader(const Json& session) {
    facts = {.id = TextMember(session, "conversationId"),
             .title = TextMember(session, "title"),
             .updated = TimeIn(MemberOf(session, "exportAt"))};
  }

  std::vector<MessageNode> Take(const Json& json) override {
    struct Visit {
      const Json* message;
      std::string parent;
    };
    std::vector<MessageNode> nodes;
    std::vector<Visit> open{{.message = &json, .parent = {}}};
    while (!open.empty()) {
      const Visit visit = std::move(open.back());
      open.pop_back();
      const Json& message = *visit.message;
      const std::string id = TextMember(message, "messageId");
      std::string above = TextMember(message, "parentMessageId");
      nodes.push_back({.id = id,
                       .parent = above.empty() ? visit.parent : std::move(above),
                       .steps = StepsOfLibreChat(message, left_out)});
      const Json& children = ListIn(message, "children");
      for (std::size_t i = children.size(); i-- > 0;) open.push_back({.message = &children[i], .parent = id});
    }
    return nodes;
  }
};

}  // namespace

OpenedDocument OpenClaudeExport(MovedDocument document, const std::string&) {
  return OpenTree(ElementsOf(document, "chat_messages["), std::make_unique<ClaudeReader>(document.rest));
}

OpenedDocument OpenOpenWebUi(MovedDocument document, const std::string&) {
  const bool is_within = document.rest.contains("chat");
  return OpenTree(ElementsOf(document, is_within ? "chat.history.messages{" : "history.messages{"),
                  std::make_unique<OpenWebUiReader>(document.rest));
}

OpenedDocument OpenLibreChat(MovedDocument document, const std::string&) {
  const bool is_flat = !ListIn(document.rest, "messages").empty();
  return OpenTree(ElementsOf(document, is_flat ? "messages[" : "messagesTree["),
                  std::make_unique<LibreChatReader>(document.rest));
}

}  // namespace reprise
