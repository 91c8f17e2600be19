#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/agenda.h"
#include "reprise/approval.h"
#include "reprise/document_reader.h"
#include "reprise/editor_files.h"
#include "reprise/event.h"
#include "reprise/file_store.h"
#include "reprise/jobs.h"
#include "reprise/result.h"
#include "reprise/telemetry.h"

namespace reprise {

// A tool's description for models.
struct ToolSpec {
  std::string name;
  std::string description;
  std::string parameters;  // JSON Schema (draft-07) text of the arguments, an object schema
  bool strict = false;     // the provider is asked to hold the model to the schema
  bool operator==(const ToolSpec&) const = default;
};

// Who defined a tool.
struct ToolOrigin {
  enum class Kind { kBuiltIn, kServer, kClient };
  Kind kind = Kind::kBuiltIn;
  std::string name = {};      // kServer: of the MCP server, from the configuration; kClient: of the server beside it
  std::string version = {};   // kServer: the server's name and version, as it says; valid UTF-8, of bounded length
  std::string revision = {};  // kServer: of the protocol
  std::string digest = {};    // "sha256:" and hexadecimal digits; of the definition as it was offered
  bool operator==(const ToolOrigin&) const = default;
};

enum class Risk { kLow, kMedium, kHigh };

// Whether a call may run in parallel with other such calls of its round.
enum class Concurrency {
  kIfReadOnly,
  kAllowed,
  kNever,  // it asks a person, or changes the agent's state
};

// Which workspace files a call may change.
enum class FileEffect {
  kNothing,
  kOneFile,       // the one that its "path" names
  kPatchedFiles,  // those that the patch in its "input" names
  kAnything,
};

struct ToolTraits {
  ToolSpec spec;
  bool read_only = true;           // changes nothing outside the agent
  bool idempotent = true;          // may run again after a crash
  bool requires_approval = false;  // asks first unless the configuration says otherwise
  Risk risk = Risk::kLow;
  Concurrency concurrency = Concurrency::kIfReadOnly;
  std::string approval_reason;  // shown with the request: "runs a shell command"
  // Its definition comes from elsewhere and is not approved in its present form: it asks, whatever was granted before.
  bool needs_consent = false;
  // The missing confinement; empty: complete. With asks_each_time a person must then agree to each call, whatever the
  // mode, a grant or a rule says.
  std::string lacks = {};
  bool asks_each_time = false;
  // All that a call can do is to change files that RunRecorder can restore, in the workspace or the sandbox: it does
  // not ask in ApprovalMode::kAuto.
  bool confined = false;
  // Only asks a person: QuestionOf and Answered replace Run. No thread waits meanwhile, and after a crash the answer to
  // the question already shown counts.
  bool only_asks = false;
  // Terms that a person agrees to beyond the arguments and the spec: place of work, confinement, owner of the program.
  // Part of the digest in approvals and grants (TermsDigest). nullopt: not known yet.
  std::optional<std::string> terms = std::string();
  // nullopt: kNothing if read-only, else kAnything.
  std::optional<FileEffect> file_effect = std::nullopt;
  bool delegates = false;  // starts sub-agents, which do not get this tool
  // Ends ApprovalMode::kPlan: models know it in that mode alone, and a person must agree to each call.
  bool ends_planning = false;
  // Tools whose work its calls can do too: rules of the configuration that deny or ask about those hold it as well.
  std::vector<std::string> acts_as = {};
  ToolOrigin origin = {};
};

// A tool's question to a person.
struct ToolQuestion {
  std::string text;
  std::string schema;                  // JSON Schema text of the answer, a flat object; empty for any text
  std::string url;                     // to open instead
  std::vector<std::string> options{};  // texts to choose from
};
struct ToolAnswer {
  enum class Action { kAccept, kDecline, kCancel };
  Action action = Action::kDecline;
  // kAccept: the text, or JSON object text that satisfies the schema; fields with a default may be missing.
  std::string content = {};
};

// A tool's binary result: an image, a recording, a PDF. It becomes a file of the chat.
struct ToolFile {
  std::string mime_type{};  // "image/png", as stated by the tool
  std::string filename{};   // for people; empty: made from the tool's name and the type
  std::string content{};    // the bytes
};

// The result that the model reads. Always valid UTF-8.
struct ToolOutcome {
  std::string output;
  bool is_error = false;
  TokenUsage usage = {};                // of models that the tool called
  std::optional<int> exit_status = {};  // of a command
  bool transient = false;               // failed for a temporary reason, without an effect
  // Without an effect: the user must agree first. `output` says to what; the model asks, and repeats the call with
  // `"confirmed": true` after the user's answer.
  bool requires_confirmation = false;
  std::optional<StartedJob> job = {};  // it has started one
  std::vector<Grant> grants = {};      // for the chat, given by people to a sub-agent during the call
  // Beside the text. `files` become files of the chat; `parts` refer to existing files of the chat.
  std::vector<ToolFile> files = {};
  std::vector<MessagePart> parts = {};
};

// Keeps the whole of an output of which a model gets only parts. For one thread at a time.
class OutputKeeper {
 public:
  virtual ~OutputKeeper() = default;
  // Takes any bytes. Blocks while they are stored.
  virtual void Add(std::string_view bytes) = 0;
  // Ends the output. Returns a sentence for the model that says where it is; empty: it is short, and nothing was kept.
  virtual std::string Finish() = 0;
};

// What a command sent to a host and received from it.
struct NetworkUse {
  std::string host{};  // in lower case, or an IP address
  std::uint16_t port = 0;
  std::uint64_t sent = 0, received = 0;  // bytes
};

// Whether a call may run outside its tool's sandbox, if a person says so about this very call.
enum class OutsideSandbox {
  kNo,       // there is no sandbox, or the configuration keeps every call in it
  kOffered,  // a person who is asked about the call may choose it
  kAsked,    // the call itself asks for it: no mode, grant or rule lets it run
};

// The resources of one execution.
struct ToolContext {
  std::stop_token stop;  // must end the tool and its processes within 50 ms
  std::chrono::milliseconds timeout{60'000};
  // Live output for tool_output_delta; may be empty. Any bytes; called from the tool's thread.
  std::function<void(std::string_view)> on_output;
  bool approved = false;         // a person agreed to this very call, or to all equal ones
  bool knows_secrets = false;    // that person knew, or set, where it leads (ReasonToAsk)
  bool outside_sandbox = false;  // that person lets this one call run outside the tool's sandbox
  // Asks the run's client, and blocks until there is an answer or `over` is requested (the answer is then dropped).
  // Called from the tool's thread. Empty: questions are declined, because no client can answer.
  std::function<ToolAnswer(const ToolQuestion& question, const std::stop_token& over)> ask;
  // Asks a person whether this call may reach `place` ("HOST:PORT") outside its sandbox. Blocks until there is an
  // answer or `over` is requested. Returns why not, for the model; empty: it may. Called from any thread while the tool
  // runs. Empty: nobody can be asked.
  std::function<std::string(const std::string& place, const std::stop_token& over)> may_reach = {};
  // Runs `change` on the agent's tasks and plan, within the call, one at a time. The result is stored in the agent's
  // state and shown before this returns. Empty: the agent has none.
  std::function<void(const std::function<void(Agenda& agenda)>& change)> change_agenda = {};
  // Gives a question to a sub-agent, and blocks until its answer, which is the outcome, or until `stop` is requested.
  // `agent` names one of ProjectInstructions; empty: the one that only reads. Empty: no sub-agents.
  std::function<ToolOutcome(const std::string& question, const std::string& agent)> research = {};
  // Sets the chat's mode to that with which a person has approved this call, and returns it. Empty: there is no chat.
  std::function<Result<ApprovalMode>()> end_planning = {};
  // Searches earlier turns of the chat, and of the other chats of its folder if `everywhere`. Blocks until the search
  // has ended or `stop` is requested. Empty: no turns are kept.
  std::function<ToolOutcome(const std::string& query, bool everywhere)> recall = {};
  // Makes a keeper for the output of this call. Empty: outputs are not kept.
  std::function<std::unique_ptr<OutputKeeper>()> keep_output = {};
  JobsOfChat* jobs = nullptr;           // of the call's chat; null: no background jobs
  FilesOfChat* files = nullptr;         // of the call's chat; null: none
  DocumentReader* documents = nullptr;  // extracts text of documents; null: none
  EditorFiles* editor = nullptr;        // with unsaved changes; null: no editor
  // For the audit log, once for each host and port. Empty: not recorded.
  std::function<void(const NetworkUse& use)> note_network = {};
  const Span* span = nullptr;  // of the execution, parent of the tool's own; null: no telemetry
};

// The change of a file by a call, based on its present content. All texts may have invisible characters.
struct FileChange {
  std::string path;                   // relative to the workspace
  std::optional<std::string> before;  // nullopt: a new file
  std::optional<std::string> after;   // nullopt: a deletion
  std::vector<FileChange> more = {};  // of a call that changes several files: the others, each without `more`
};

// The failure of Tool::PreviewChange; `why` is for the person who decides on the call.
inline Error NoChangeToShow(std::string why) { return Refused(Reason::kNoChangeToShow, std::move(why)); }

// The use of a call pattern: kAllow lets a call pass only if the pattern surely covers it; kHold holds each call that
// the pattern might cover.
enum class PatternUse { kAllow, kHold };
// Whether a pattern holds a call.
enum class Touch {
  kNo,
  kMaybe,  // the call's effect is unclear
  kYes,
};

// An action for agents. Thread-safe. A tool's failures are outcomes that the model reads (is_error), not Errors.
//
//   struct Weather : reprise::Tool {
//     const reprise::ToolTraits& traits() const override { return traits_; }
//     reprise::ToolOutcome Run(std::string_view, const reprise::ToolContext&) override { return {.output = "sunny"}; }
//     reprise::ToolTraits traits_{.spec = {"weather", "Tells the weather.", R"({"type":"object"})"}};
//   };
class Tool {
 public:
  virtual ~Tool() = default;
  virtual const ToolTraits& traits() const = 0;
  // The same, but what depends on the machine's state may be out of date: the approval that it needs, its confinement.
  // Never waits.
  virtual const ToolTraits& fixed_traits() const { return traits(); }
  // For a tool of another program, which may be changing it: returns when ToolRegistry::Current has the new state of
  // its name, when that cannot be known soon, or when `stop` is requested.
  virtual void AwaitOffer(const std::stop_token& /*stop*/) {}
  // Whether a call with these arguments may run again after a crash.
  virtual bool IsIdempotent(std::string_view /*arguments*/) const { return traits().idempotent; }
  // Why a call with these arguments (valid for the schema) needs approval even if the tool does not: for example it
  // reaches private data. nullopt: no such reason. Quick; shown with the request.
  virtual std::optional<std::string> ReasonToAsk(std::string_view /*arguments*/) const { return std::nullopt; }
  // Whether a call with these arguments (valid for the schema) may leave the tool's sandbox. Quick.
  virtual OutsideSandbox OutsideOf(std::string_view /*arguments*/) const { return OutsideSandbox::kNo; }
  // The failure of a call with these arguments (valid for the schema) that no approval could prevent at present: then
  // no person is asked. nullopt: it may succeed, or only the person's answer decides. Uses `stop` and `editor` of the
  // context. Has no effect; quick, except with a connected editor.
  virtual std::optional<std::string> FailureOf(std::string_view /*arguments*/, const ToolContext& /*context*/) const {
    return std::nullopt;
  }
  // The effect of a call with these arguments (valid for the schema), for the person who decides on it. Has no effect;
  // quick. NoChangeToShow: the call is not about one text file, the file may not be opened before approval, or the call
  // would fail at present.
  virtual Result<FileChange> PreviewChange(std::string_view /*arguments*/) const {
    return Fail(NoChangeToShow("this tool does not change one file as a whole"));
  }
  // --- patterns of calls, in a language of the tool's own, or none. All are quick and read no files.
  // Patterns that a person may allow with a call of these arguments (valid for the schema): a handful at most, the
  // narrowest first.
  virtual std::vector<CallPattern> PatternsOf(std::string_view /*arguments*/) const { return {}; }
  // One sentence that says what the pattern covers. kInvalidArgument: the pattern is not in this tool's language, or
  // could never match; the message says why. People agree to the sentence: a pattern that covers more than before must
  // get a new sentence, and earlier grants of the pattern end.
  virtual Result<std::string> MeaningOf(std::string_view /*pattern*/, PatternUse /*use*/) const {
    return Fail(ErrorCode::kInvalidArgument, "this tool has no patterns");
  }
  // Indexes of the patterns that cover the call together: parts of a command line may need different ones. nullopt:
  // they do not cover it, or not surely. A pattern that MeaningOf rejects for kAllow covers nothing.
  virtual std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& /*patterns*/,
                                                            std::string_view /*arguments*/) const {
    return std::nullopt;
  }
  // Whether the pattern, which MeaningOf accepts for kHold, holds the call.
  virtual Touch Touches(std::string_view /*pattern*/, std::string_view /*arguments*/) const { return Touch::kMaybe; }

  // `arguments` is a JSON object that satisfies the schema. A tool that no longer matches its traits has no effect, and
  // says so.
  virtual ToolOutcome Run(std::string_view arguments, const ToolContext& context) = 0;
  // For a tool that only asks: the question of a call with these arguments, and the outcome of its answer.
  virtual ToolQuestion QuestionOf(std::string_view /*arguments*/) const { return {}; }
  virtual ToolOutcome Answered(ToolAnswer /*answer*/) const { return {}; }
};

// Makes a tool that a server may turn out to have, before the server has listed its tools; null: not its name. For a
// call shown before this process began, whose tool is not listed yet.
using UnlistedTool = std::function<std::shared_ptr<Tool>(std::string_view name)>;

// The tools at one moment. Immutable and thread-safe; its tools live as long as it does.
class ToolSet {
 public:
  virtual ~ToolSet() = default;
  // Null if there is none of that name (or the configuration denies it). Also finds tools of UnlistedTool.
  virtual Tool* Find(std::string_view name) const = 0;
  // Checks `arguments` (raw text from a model) against the tool's schema. An empty text counts as {}. kInvalidArgument:
  // the message tells the model how to correct them.
  virtual Result<void> Validate(const Tool& tool, std::string_view arguments) const = 0;
  // In order of registration.
  virtual const std::vector<Tool*>& tools() const = 0;
  virtual const std::vector<ToolSpec>& specs() const = 0;
  virtual bool RequiresApproval(const Tool& tool) const = 0;
  // Whether a model gets the tool's description only when it has looked for it (agent/deferred_tools).
  virtual bool IsDeferred(std::string_view /*name*/) const { return false; }
  // Whether the configuration lets the model use its provider's web search, which nobody can be asked about.
  virtual bool AllowsWebSearch() const { return true; }
};

// The name of the provider's web search in lists of tools that are allowed, denied or need approval.
inline constexpr std::string_view kWebSearchName = "web_search";

// Another program that offers tools.
struct ToolServer {
  enum class State { kConnecting, kReady, kFailed };
  enum class Login { kNotNeeded, kLoggedOut, kLoggedIn };
  std::string name;
  State state = State::kConnecting;
  std::string message = {};       // why it is not ready, or its title; valid UTF-8
  std::string instructions = {};  // its own words on the use of its tools; valid UTF-8, of bounded length
  std::size_t tools = 0;
  Login login = Login::kNotNeeded;  // as of the last change of `state`
  bool operator==(const ToolServer&) const = default;
};

// A person's logins at tool servers. Thread-safe.
class ToolServerLogins {
 public:
  virtual ~ToolServerLogins() = default;
  // Starts a login, and replaces an unfinished one. Returns the URL to open in a browser on this machine; empty: the
  // server wants no login, or the person is logged in. The rest happens in the background, within a quarter of an hour;
  // ToolServer shows the result. Blocks until the URL is known. kNotFound, kInvalidArgument (reason "no_login": this
  // server has no login), kForbidden (reason "mcp_oauth": it is impossible; the message says why), kUnavailable.
  virtual Result<std::string> BeginLogin(const std::string& server) = 0;
  // Deletes a login. False: there was none. kNotFound, kIo.
  virtual Result<bool> LogOut(const std::string& server) = 0;
};

// The tools of this server, which may change while it runs. Thread-safe.
class ToolRegistry {
 public:
  virtual ~ToolRegistry() = default;
  // Never null. Cheap; keep it as long as its tools are in use.
  virtual std::shared_ptr<const ToolSet> Current() const = 0;
  // The same with additional tools of another program, as far as the configuration allows them, and except those whose
  // names are taken or reserved for a configured server. Their schemas are not trusted. Not cheap. The default ignores
  // `more`.
  virtual std::shared_ptr<const ToolSet> With(const std::vector<std::shared_ptr<Tool>>& /*more*/) const {
    return Current();
  }
  virtual std::vector<ToolServer> Servers() const { return {}; }
};

}  // namespace reprise
