#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "domain/file_kind.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/text_file.h"

namespace reprise {

namespace {

std::string Listed(const std::vector<Task>& tasks) {
  if (tasks.empty()) return "There are no tasks.";
  std::string text;
  for (const Task& task : tasks) {
    if (!text.empty()) text += '\n';
    text += task.id + " [" + task.status + "] " + task.title;
  }
  return text;
}

ToolOutcome Add(const Arguments& given, std::vector<Task>& tasks) {
  const auto title = given.String("title");
  if (!title) return ToolFailure("\"add\" needs a \"title\".");
  if (tasks.size() >= kMaxTasks) {
    return ToolFailure("There are " + std::to_string(kMaxTasks) + " tasks, which is the most there can be.");
  }
  tasks.push_back({NextTaskId(tasks), ToValidUtf8(*title), given.String("status").value_or("todo")});
  return {.output = Listed(tasks)};
}

// The task with the given id, or the end.
std::vector<Task>::iterator Meant(const Arguments& given, std::vector<Task>& tasks) {
  const auto id = given.String("id");
  return std::ranges::find_if(tasks, [&](const Task& task) { return id == task.id; });
}

ToolOutcome NoSuchTask(const std::vector<Task>& tasks) {
  return ToolFailure("There is no task of that \"id\". The tasks:\n" + Listed(tasks));
}

ToolOutcome Update(const Arguments& given, std::vector<Task>& tasks) {
  const auto task = Meant(given, tasks);
  if (task == tasks.end()) return NoSuchTask(tasks);
  const auto title = given.String("title"), status = given.String("status");
  if (!title && !status) return ToolFailure("\"update\" needs a \"title\" or a \"status\".");
  if (title) task->title = ToValidUtf8(*title);
  if (status) task->status = *status;
  return {.output = Listed(tasks)};
}

ToolOutcome Remove(const Arguments& given, std::vector<Task>& tasks) {
  const auto task = Meant(given, tasks);
  if (task == tasks.end()) return NoSuchTask(tasks);
  tasks.erase(task);
  return {.output = Listed(tasks)};
}

class ManageTasksTool final : public BuiltinTool {
 public:
  ManageTasksTool()
      : BuiltinTool({.spec = {.name = "manage_tasks",
                              .description = "Keeps your list of tasks in this chat, which the user sees. Adds a task, "
                                             "changes its title or status, removes it, or lists all; returns the list.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["action"],
"properties":{"action":{"type":"string","enum":["add","update","remove","list"]},
"id":{"type":"string","maxLength":64,"description":"Which task to update or remove."},
"title":{"type":"string","minLength":1,"maxLength":500},
"status":{"type":"string","enum":["todo","doing","done"]}}})"},
                     .idempotent = false,
                     .concurrency = Concurrency::kNever,
                     .approval_reason = "changes the agent's tasks"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (!context.change_agenda) return ToolFailure("No tasks are kept here.");
    const Arguments given(arguments);
    const std::string action = given.String("action").value_or("list");
    ToolOutcome outcome;
    context.change_agenda([&](Agenda& agenda) {
      if (action == "add") {
        outcome = Add(given, agenda.tasks);
      } else if (action == "update") {
        outcome = Update(given, agenda.tasks);
      } else if (action == "remove") {
        outcome = Remove(given, agenda.tasks);
      } else {
        outcome = {.output = Listed(agenda.tasks)};
      }
    });
    return outcome;
  }
};

class UpdatePlanTool final : public BuiltinTool {
 public:
  UpdatePlanTool()
      : BuiltinTool({.spec = {.name = "update_plan",
                              .description = "Writes down the steps you are going to take, which the user sees; they "
                                             "replace those before.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["steps"],
"properties":{"steps":{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":500}}}})"},
                     .concurrency = Concurrency::kNever,
                     .approval_reason = "changes the agent's plan"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (!context.change_agenda) return ToolFailure("No plan is kept here.");
    std::vector<std::string> steps;
    for (const std::string& step : Arguments(arguments).Strings("steps")) steps.push_back(ToValidUtf8(step));
    const std::size_t count = steps.size();
    context.change_agenda([&](Agenda& agenda) { agenda.plan = std::move(steps); });
    return {.output = "The plan has " + std::to_string(count) + (count == 1 ? " step." : " steps.")};
  }
};

class PresentPlanTool final : public BuiltinTool {
 public:
  PresentPlanTool()
      : BuiltinTool({.spec = {.name = "present_plan",
                              .description = "The user wants a plan before anything is changed. Look around with tools "
                                             "that only read; calls that could change something are not run. Ask what "
                                             "you need to know. Then present your plan with this tool: what you will "
                                             "change, where, in which order, and how you will check it. If the user "
                                             "approves it, carry it out in the same turn.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["plan"],
"properties":{"plan":{"type":"string","minLength":1,"maxLength":32768,"description":"The plan, in Markdown."}}})"},
                     .idempotent = false,
                     .requires_approval = true,
                     .concurrency = Concurrency::kNever,
                     .approval_reason = "presents its plan; approve it to have it carried out",
                     .ends_planning = true}) {}

  ToolOutcome Run(std::string_view, const ToolContext& context) override {
    if (!context.end_planning) return ToolFailure("There is nobody who could approve a plan.");
    const auto mode = context.end_planning();
    if (!mode)
      return ToolFailure("The plan was approved, but the chat's mode could not be set: " + mode.error().message);
    return {.output = "The user has approved the plan. The approval mode is \"" + std::string(ToString(*mode)) +
                      "\" from now on. Carry out the plan."};
  }
};

class AskHumanTool final : public BuiltinTool {
 public:
  AskHumanTool()
      : BuiltinTool({.spec = {.name = "ask_human",
                              .description = "Asks the user a question and returns the answer. Use it when something "
                                             "only the user can know or decide is missing.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["question"],
"properties":{"question":{"type":"string","minLength":1,"maxLength":8192,"description":"What to ask."},
"options":{"type":"array","maxItems":20,"description":"Answers to choose from; the user may give another one.",
"items":{"type":"string","minLength":1,"maxLength":512}}}})"},
                     .concurrency = Concurrency::kNever,
                     .approval_reason = "asks a question",
                     .only_asks = true}) {}

  // Called only if there is nobody to ask; an agent asks through the functions below.
  ToolOutcome Run(std::string_view, const ToolContext&) override {
    return ToolFailure("There is nobody who could be asked.");
  }

  ToolQuestion QuestionOf(std::string_view arguments) const override {
    const Arguments given(arguments);
    ToolQuestion question{.text = ToValidUtf8(given.String("question").value_or("")), .schema = {}, .url = {}};
    for (const std::string& option : given.Strings("options")) question.options.push_back(ToValidUtf8(option));
    return question;
  }

  ToolOutcome Answered(ToolAnswer answer) const override {
    switch (answer.action) {
      case ToolAnswer::Action::kAccept:
        return {.output = std::move(answer.content)};
      case ToolAnswer::Action::kDecline:
        return ToolFailure("The user declined to answer.");
      case ToolAnswer::Action::kCancel:
        break;
    }
    return {.output = {}, .is_error = true};  // cancelled; the agent writes the text
  }
};

constexpr std::size_t kMaxShownFiles = 1000;

// One line for the model. The name is quoted because a user has chosen it.
std::string Described(const FileInfo& file) {
  return file.id.str() + " " + QuotedPath(file.filename) + " " + file.mime_type + " " +
         CountOf(file.size_bytes, "byte");
}

ToolOutcome NoFiles() { return ToolFailure("This chat has no files."); }

Result<FileId> FileIn(const Arguments& given) { return FileId::Parse(given.String("file_id").value_or("")); }

class ListChatFilesTool final : public BuiltinTool {
 public:
  ListChatFilesTool()
      : BuiltinTool({.spec = {.name = "list_chat_files",
                              .description = "Lists the files of this chat, which the user has uploaded or you have "
                                             "saved: id, name, type and size, one per line. (The files of the "
                                             "workspace are others: list_files.)",
                              .parameters = R"({"type":"object","additionalProperties":false,"properties":{}})"},
                     .approval_reason = "lists the files of the chat"}) {}

  ToolOutcome Run(std::string_view, const ToolContext& context) override {
    if (context.files == nullptr) return NoFiles();
    const auto listing = context.files->List();
    if (!listing) return ToolFailure("cannot list the files: " + listing.error().message);
    std::string text;
    std::size_t shown = 0;
    for (const FileInfo& file : listing->files) {
      if (++shown > kMaxShownFiles) break;
      text += Described(file) + "\n";
    }
    for (const DamagedFile& damaged : listing->damaged) text += damaged.id.str() + " (damaged, cannot be read)\n";
    if (text.empty()) return {.output = "(the chat has no files)"};
    text.pop_back();
    return {.output = std::move(text)};
  }
};

class ReadChatFileTool final : public BuiltinTool {
 public:
  ReadChatFileTool()
      : BuiltinTool(
            {.spec = {.name = "read_chat_file",
                      .description = "Returns the content of a file of this chat: of a text file or a document "
                                     "(PDF, docx, xlsx, pptx, odt, HTML) its text, at most 256 KiB at a time; "
                                     "says so when there is more. An image is shown to you, if you take images.",
                      .parameters = R"({"type":"object","additionalProperties":false,"required":["file_id"],
"properties":{"file_id":{"type":"string","maxLength":64,"description":"The file, as list_chat_files calls it."},
"offset":{"type":"integer","minimum":1,"maximum":1000000000,"description":"Number of the first line to return, counted from 1. Default: 1."},
"limit":{"type":"integer","minimum":1,"maximum":1000000000,"description":"How many lines to return at most. Default: all."}}})"},
             .approval_reason = "reads a file of the chat"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (context.files == nullptr) return NoFiles();
    const Arguments given(arguments);
    const auto id = FileIn(given);
    if (!id) return ToolFailure("cannot read the file: " + id.error().message);
    const auto file = context.files->Get(*id);
    if (!file) return ToolFailure("cannot read the file: " + file.error().message);
    const FileNature nature = NatureOf(file->info.filename, file->info.mime_type, file->content);
    if (!nature.problem.empty()) return ToolFailure("cannot show the image: " + nature.problem);
    if (nature.kind == FileKind::kImage) return Shown(*file, nature);
    std::shared_ptr<const std::string> text;
    if (IsDocument(nature.kind) && context.documents != nullptr) {
      auto read = context.documents->Read(*file, context.stop);
      if (!read) return ToolFailure("cannot read the file: " + read.error().message);
      text = *std::move(read);
    } else if (!LooksLikeText(file->content)) {
      return ToolFailure("it is a binary file, not text: " + Described(file->info));
    }
    LinePicker lines(static_cast<std::uint64_t>(given.Integer("offset").value_or(1)),
                     static_cast<std::uint64_t>(given.Integer("limit").value_or(1'000'000'000)));
    lines.Add(text ? *text : file->content);
    auto shown = lines.Shown();
    if (!shown) return ToolFailure("cannot read the file: " + shown.error().message);
    return {.output = *std::move(shown)};
  }

 private:
  // The image is in the chat already.
  static ToolOutcome Shown(const StoredFile& file, const FileNature& nature) {
    return {.output = "the image " + Described(file.info),
            .parts = {{.kind = MessagePart::Kind::kImage,
                       .file_id = file.info.id,
                       .mime_type = nature.mime_type,
                       .filename = file.info.filename,
                       .size_bytes = file.info.size_bytes,
                       .tokens = nature.tokens}}};
  }
};

class SaveChatFileTool final : public BuiltinTool {
 public:
  SaveChatFileTool()
      : BuiltinTool({.spec = {.name = "save_chat_file",
                              .description = "Saves a text as a new file of this chat, which the user can download; "
                                             "returns its id. (write_file writes into the workspace.)",
                              .parameters = R"({"type":"object","additionalProperties":false,
"required":["filename","content"],
"properties":{"filename":{"type":"string","minLength":1,"maxLength":200,"description":"A name, not a path."},
"content":{"type":"string"},
"mime_type":{"type":"string","maxLength":127,"description":"Default: text/plain."}}})"},
                     .read_only = false,
                     .idempotent = false,
                     .requires_approval = true,
                     .risk = Risk::kLow,
                     .approval_reason = "saves a file in the chat",
                     .file_effect = FileEffect::kNothing}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (context.files == nullptr) return NoFiles();
    const Arguments given(arguments);
    const auto saved =
        context.files->Add(given.String("filename").value_or(""), given.String("mime_type").value_or("text/plain"),
                           given.String("content").value_or(""));
    if (!saved) return ToolFailure("cannot save the file: " + saved.error().message);
    return {.output = "saved " + Described(*saved)};
  }
};

class DeleteChatFileTool final : public BuiltinTool {
 public:
  DeleteChatFileTool()
      : BuiltinTool({.spec = {.name = "delete_chat_file",
                              .description = "Deletes a file of this chat for good.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["file_id"],
"properties":{"file_id":{"type":"string","maxLength":64,"description":"The file, as list_chat_files calls it."}}})"},
                     .read_only = false,
                     .idempotent = true,
                     .requires_approval = true,
                     .risk = Risk::kMedium,
                     .approval_reason = "deletes a file of the chat",
                     .file_effect = FileEffect::kNothing}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (context.files == nullptr) return NoFiles();
    const auto id = FileIn(Arguments(arguments));
    if (!id) return ToolFailure("cannot delete the file: " + id.error().message);
    const auto deleted = context.files->Delete(*id);
    if (!deleted) return ToolFailure("cannot delete the file: " + deleted.error().message);
    return {.output = "deleted " + id->str()};
  }
};

class ResearchTool final : public BuiltinTool {
 public:
  ResearchTool()
      : BuiltinTool({.spec = {.name = "research",
                              .description = "Has a sub-agent look into a question and returns its answer. It knows "
                                             "nothing of this conversation, so say all that it needs; it has only the "
                                             "tools that read. Use it for what takes many steps to find out.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["question"],
"properties":{"question":{"type":"string","minLength":1,"maxLength":32768,"description":"What to find out or do."},
"agent":{"type":"string","minLength":1,"maxLength":64,"description":"The name of the sub-agent, if you know one."}}})"},
                     .approval_reason = "has a sub-agent look into a question",
                     .delegates = true}) {}
  // A sub-agent of a person's may change things.
  bool IsIdempotent(std::string_view arguments) const override { return !Arguments(arguments).String("agent"); }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (!context.research) return ToolFailure("There are no sub-agents here.");
    const Arguments given(arguments);
    return context.research(ToValidUtf8(given.String("question").value_or("")),
                            ToValidUtf8(given.String("agent").value_or("")));
  }
};

class RecallTool final : public BuiltinTool {
 public:
  RecallTool()
      : BuiltinTool({.spec = {.name = "recall",
                              .description = "Searches what was said and done in earlier turns of this chat, also what "
                                             "was summed up or cleared. Returns excerpts with their places.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["query"],
"properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"Words to look for."},
"everywhere":{"type":"boolean","description":"Also in the other chats of this folder; the user is asked."}}})"},
                     .approval_reason = "searches the other chats of this folder"}) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    if (!Arguments(arguments).Boolean("everywhere").value_or(false)) return std::nullopt;
    return traits().approval_reason;
  }
  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (!context.recall) return ToolFailure("There are no earlier turns here.");
    const Arguments given(arguments);
    return context.recall(ToValidUtf8(given.String("query").value_or("")), given.Boolean("everywhere").value_or(false));
  }
};

}  // namespace

std::unique_ptr<BuiltinTool> MakePresentPlanTool() { return std::make_unique<PresentPlanTool>(); }
std::unique_ptr<BuiltinTool> MakeManageTasksTool() { return std::make_unique<ManageTasksTool>(); }
std::unique_ptr<BuiltinTool> MakeUpdatePlanTool() { return std::make_unique<UpdatePlanTool>(); }
std::unique_ptr<BuiltinTool> MakeAskHumanTool() { return std::make_unique<AskHumanTool>(); }
std::unique_ptr<BuiltinTool> MakeListChatFilesTool() { return std::make_unique<ListChatFilesTool>(); }
std::unique_ptr<BuiltinTool> MakeReadChatFileTool() { return std::make_unique<ReadChatFileTool>(); }
std::unique_ptr<BuiltinTool> MakeSaveChatFileTool() { return std::make_unique<SaveChatFileTool>(); }
std::unique_ptr<BuiltinTool> MakeDeleteChatFileTool() { return std::make_unique<DeleteChatFileTool>(); }
std::unique_ptr<BuiltinTool> MakeRecallTool() { return std::make_unique<RecallTool>(); }
std::unique_ptr<BuiltinTool> MakeResearchTool() { return std::make_unique<ResearchTool>(); }

}  // namespace reprise
