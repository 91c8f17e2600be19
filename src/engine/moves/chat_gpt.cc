// The export of ChatGPT: conversations.json, each a tree of messages ("mapping").
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "domain/file_kind.h"
#include "engine/moves/formats.h"
#include "engine/moves/trees.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;
namespace fs = std::filesystem;

constexpr std::uintmax_t kMostOfImage = 20 << 20;
// Contents that may be blank.
constexpr std::array<std::string_view, 8> kTexts = {"text",         "multimodal_text",        "code",
                                                    "thoughts",     "reasoning_recap",        "execution_output",
                                                    "system_error", "tether_browsing_display"};

bool IsFileId(std::string_view id) {
  constexpr std::size_t kLeast = 13;  // "file-" and eight more
  return id.size() >= kLeast && (id.starts_with("file-") || id.starts_with("file_"));
}

// The images of an export, in its folder and two levels below: paths by file name.
std::map<std::string, std::string> ImagesIn(const fs::path& folder) {
  constexpr std::string_view kTypes[] = {".png", ".jpg", ".jpeg", ".webp", ".gif"};
  std::map<std::string, std::string> images;
  std::error_code failed;
  for (fs::recursive_directory_iterator each(folder, fs::directory_options::skip_permission_denied, failed), end;
       !failed && each != end; each.increment(failed)) {
    const std::string name = each->path().filename().string();
    if (each.depth() > 1 || name.starts_with('.')) each.disable_recursion_pending();
    std::error_code unknown;
    const bool is_image = IsFileId(name) &&
                          std::ranges::count(kTypes, LowerCase(each->path().extension().string())) > 0 &&
                          fs::is_regular_file(each->symlink_status(unknown));
    if (is_image) images.emplace(name, each->path().string());
  }
  return images;
}

// Its records are members of the mapping.
class ChatGptReader final : public NodeReader {
 public:
  ChatGptReader(const Json& session, const std::string& path)
      : folder_(path.empty() ? path : fs::path(path).parent_path().string()) {
    facts = {.id = TextMember(session, session.contains("conversation_id") ? "conversation_id" : "id"),
             .title = TextMember(session, "title"),
             .head = TextMember(session, "current_node"),
             .created = TimeIn(MemberOf(session, "create_time")),
             .updated = TimeIn(MemberOf(session, "update_time"))};
    are_members = finds_calls = true;
  }

  std::vector<MessageNode> Take(const Json& json) override {
    std::vector<MessageNode> nodes;
    for (const auto& [id, node] : json.items()) {
      if (!node.is_object()) left_out.AddUnknown("message", {});
      nodes.push_back(
          {.id = id, .parent = TextMember(node, "parent"), .steps = StepsOf(id, MemberOf(node, "message"))});
    }
    return nodes;
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
      if (!IsBlank(step.text)) left_out.Add("message that the tool added by itself");
      return {};
    }
    TakeFiles(message, step);
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
      if (!step.files.empty()) left_out.Add("image of an answer", step.files.size());
      step.files.clear();
    } else if (role != "user") {
      left_out.AddUnknown("message", role);
      return {};
    }
    const bool is_blank = step.text.empty() && step.files.empty() && step.blocks.empty();
    const std::string type = TextMember(MemberOf(message, "content"), "content_type");
    if (is_blank && std::ranges::find(kTexts, type) == kTexts.end()) left_out.AddUnknown("message", type);
    if (is_blank && step.kind != Kind::kResult) return {};
    return {std::move(step)};
  }

  // What was uploaded, and what code has drawn. Images are among the parts, too.
  void TakeFiles(const Json& message, MovedMessage& step) {
    const Json& parts = ListIn(MemberOf(message, "content"), "parts");
    const Json& metadata = MemberOf(message, "metadata");
    for (const Json& attachment : ListIn(metadata, "attachments")) {
      const std::string id = TextMember(attachment, "id");
      const bool is_part = !id.empty() && std::ranges::any_of(parts, [&](const Json& part) {
        return TextMember(part, "asset_pointer").ends_with(id);
      });
      if (!is_part) TakeFile(id, "file whose content the export lacks", step);
    }
    for (const Json& drawn : ListIn(MemberOf(metadata, "aggregate_result"), "messages")) {
      if (TextMember(drawn, "message_type") == "image")
        TakeFile(TextMember(drawn, "image_url"), "image of a result", step);
    }
  }

  // `what` counts a file that is not there.
  void TakeFile(const std::string& pointer, const std::string& what, MovedMessage& step) {
    if (auto file = FileOf(pointer)) {
      step.files.push_back(*std::move(file));
    } else {
      left_out.Add(what);
    }
  }

  static std::string Arguments(const std::string& text) {
    const bool is_object = Trimmed(text).starts_with("{") && ParseForeignJson(text, {});
    return is_object ? text : DumpJson({{"input", text}});
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
      } else {
        TakeFile(TextMember(part, "asset_pointer"), "attachment (" + FirstWords(TextMember(part, "content_type")) + ")",
                 step);
      }
    }
    return type == "reasoning_recap";
  }

  // The export has the images beside conversations.json, under names that begin with their ids. Nothing else there is
  // its own: it may lie among a person's files.
  std::optional<MovedFile> FileOf(const std::string& pointer) {
    const std::string id = pointer.substr(pointer.rfind('/') + 1);
    if (folder_.empty() || !IsFileId(id)) return std::nullopt;
    if (!images_) images_ = ImagesIn(folder_);
    const auto found = images_->lower_bound(id);
    if (found == images_->end() || !found->first.starts_with(id)) return std::nullopt;
    const auto source = SourceText::Open(found->second);
    if (!source || source->size() > kMostOfImage) return std::nullopt;
    auto content = source->Read(0, source->size());
    if (!content) return std::nullopt;
    std::string type = LookAtImage(*content).mime_type;
    if (type.empty()) return std::nullopt;
    return MovedFile{.filename = found->first, .mime_type = std::move(type), .content = *std::move(content)};
  }

  const std::string folder_;  // of the export; empty: not known
  std::optional<std::map<std::string, std::string>> images_;
};

}  // namespace

OpenedDocument OpenChatGpt(MovedDocument document, const std::string& path) {
  return OpenTree(ElementsOf(document, "mapping{"), std::make_unique<ChatGptReader>(document.rest, path));
}

}  // namespace reprise
