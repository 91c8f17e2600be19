// The export of ChatGPT: conversations.json, each a tree of messages ("mapping").
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"
#include "engine/moves/trees.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

constexpr std::uintmax_t kMostOfImage = 20 << 20;

class ChatGptReader {
 public:
  explicit ChatGptReader(const std::string& path)
      : folder_(path.empty() ? path : std::filesystem::path(path).parent_path().string()) {}

  ReadSession Read(const Json& session) {
    ReadSession read;
    read.facts = {.id = TextMember(session, session.contains("conversation_id") ? "conversation_id" : "id"),
                  .title = TextMember(session, "title"),
                  .head = TextMember(session, "current_node"),
                  .created = TimeIn(MemberOf(session, "create_time")),
                  .updated = TimeIn(MemberOf(session, "update_time"))};
    std::vector<MessageNode> nodes;
    for (const auto& [id, node] : MemberOf(session, "mapping").items()) {
      nodes.push_back(
          {.id = id, .parent = TextMember(node, "parent"), .steps = StepsOf(id, MemberOf(node, "message"))});
    }
    NameCalls(nodes);
    read.messages = StepsOfTree(std::move(nodes), left_out_);
    read.left_out = std::move(left_out_);
    return read;
  }

 private:
  std::vector<MovedMessage> StepsOf(const std::string& id, const Json& message) {
    if (message.is_null()) return {};
    const Json& metadata = MemberOf(message, "metadata");
    const std::string role = TextMember(MemberOf(message, "author"), "role");
    const std::string recipient = TextMember(message, "recipient");
    MovedMessage step{.at = TimeIn(MemberOf(message, "create_time")), .model = TextMember(metadata, "model_slug")};
    const bool is_thinking = TakeContent(MemberOf(message, "content"), step);
    if (MemberOf(metadata, "is_visually_hidden_from_conversation") == true || role == "system") {
      if (!IsBlank(step.text)) left_out_.Add("message that the tool added by itself");
      return {};
    }
    if (role == "tool") {
      step.kind = Kind::kResult;
    } else if (role == "assistant") {
      step.kind = Kind::kAnswer;
      const bool is_call = !recipient.empty() && recipient != "all";
      MovedBlock block{.text = std::exchange(step.text, {})};
      if (is_thinking) block.kind = MovedBlock::Kind::kThinking;
      if (is_call)
        block = {.kind = MovedBlock::Kind::kCall, .text = Arguments(block.text), .id = "call_" + id, .name = recipient};
      if (block.kind != MovedBlock::Kind::kText || !block.text.empty()) step.blocks.push_back(std::move(block));
      if (!step.files.empty()) left_out_.Add("image of an answer", step.files.size());
      step.files.clear();
      if (step.blocks.empty()) return {};
    } else if (role != "user" || (step.text.empty() && step.files.empty())) {
      return {};
    }
    return {std::move(step)};
  }

  static std::string Arguments(const std::string& text) {
    return Json::accept(text) && Trimmed(text).starts_with("{") ? text : DumpJson({{"input", text}});
  }

  // True if it is thinking.
  bool TakeContent(const Json& content, MovedMessage& step) {
    const auto add = [&](const std::string& text) { step.text += (step.text.empty() ? "" : "\n") + text; };
    const std::string type = TextMember(content, "content_type");
    if (type == "thoughts") {
      for (const Json& thought : ListIn(content, "thoughts")) {
        add(TextMember(thought, "content").empty() ? TextMember(thought, "summary") : TextMember(thought, "content"));
      }
      return true;
    }
    for (const char* member : {"text", "result", "content"}) add(TextMember(content, member));
    step.text = Trimmed(step.text);
    for (const Json& part : ListIn(content, "parts")) {
      if (part.is_string()) {
        add(part.get<std::string>());
      } else if (part.contains("text")) {
        add(TextMember(part, "text"));
      } else if (auto file = FileOf(TextMember(part, "asset_pointer"))) {
        step.files.push_back(*std::move(file));
      } else {
        left_out_.Add("attachment (" + FirstWords(TextMember(part, "content_type")) + ")");
      }
    }
    return type == "reasoning_recap";
  }

  // The export has the images beside conversations.json, under names that begin with their ids.
  std::optional<MovedFile> FileOf(const std::string& pointer) {
    const std::string id = pointer.substr(std::min(pointer.rfind('/') + 1, pointer.size()));
    if (folder_.empty() || id.empty()) return std::nullopt;
    std::error_code failed;
    for (std::filesystem::recursive_directory_iterator each(folder_, failed), end; !failed && each != end;
         each.increment(failed)) {
      const std::string name = each->path().filename().string();
      if (each.depth() > 1) each.disable_recursion_pending();
      const bool is_it = name.starts_with(id) && std::filesystem::is_regular_file(each->symlink_status(failed));
      if (!is_it || each->file_size(failed) > kMostOfImage) continue;
      const auto source = SourceText::Open(each->path().string());
      auto content = source ? source->Read(0, source->size()) : std::string();
      if (!content || content->empty()) return std::nullopt;
      const std::string extension = each->path().extension().string();
      const std::string type =
          extension == ".jpg" || extension == ".jpeg" ? "jpeg" : extension.substr(extension.empty() ? 0 : 1);
      return MovedFile{
          .filename = name, .mime_type = "image/" + (type.empty() ? "png" : type), .content = *std::move(content)};
    }
    return std::nullopt;
  }

  // A result says no call: it is that of the call before it.
  static void NameCalls(std::vector<MessageNode>& nodes) {
    std::map<std::string, const MessageNode*> by_id;
    for (const MessageNode& node : nodes) by_id.emplace(node.id, &node);
    for (MessageNode& node : nodes) {
      if (node.steps.empty() || node.steps.front().kind != Kind::kResult) continue;
      const MessageNode* before = &node;
      for (int steps = 0; steps < 32 && node.steps.front().call_id.empty(); ++steps) {
        const auto parent = by_id.find(before->parent);
        if (parent == by_id.end()) break;
        before = parent->second;
        if (before->steps.empty() || before->steps.front().blocks.empty()) continue;
        const MovedBlock& block = before->steps.front().blocks.front();
        if (block.kind == MovedBlock::Kind::kCall) node.steps.front().call_id = block.id;
      }
    }
  }

  const std::string folder_;  // of the export; empty: not known
  LeftOut left_out_;
};

}  // namespace

ReadSession ReadChatGpt(const Json& session, const std::string& path) { return ChatGptReader(path).Read(session); }

}  // namespace reprise
