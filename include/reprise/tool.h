#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/agenda.h"
#include "reprise/document_reader.h"
#include "reprise/editor_files.h"
#include "reprise/event.h"
#include "reprise/file_store.h"
#include "reprise/result.h"
#include "reprise/telemetry.h"

namespace reprise {

// What a model is told about a tool.
struct ToolSpec {
  std::string name;
  std::string description;
  std::string parameters;  // JSON Schema (draft-07) text of the arguments, an object schema
};

enum class Risk { kLow, kMedium, kHigh };

// Whether a call may run at the same time as others of its round that may too.
enum class Concurrency {
  kIfReadOnly,
  kAllowed,
  kNever,  // it asks a person, or changes what the agent keeps
};

// What of the workspace a call may change.
enum class FileEffect { kNothing, kOneFile /* the one that its "path" names */, kAnything };

struct ToolTraits {
  ToolSpec spec;
  bool read_only = true;           // changes nothing outside the agent
  bool idempotent = true;          // may run again after a crash
  bool requires_approval = false;  // asks first unless the configuration says otherwise
  Risk risk = Risk::kLow;
  Concurrency concurrency = Concurrency::kIfReadOnly;
  std::string approval_reason;  // shown with the request: "runs a shell command"
  // Its definition comes from elsewhere and nobody has approved it as it is now: it asks, whatever was granted before.
  bool needs_consent = false;
  // What should confine it and does not; empty: nothing is missing. Then a person may have to agree each time, whatever
  // the mode, a grant or a rule says.
  std::string lacks = {};
  bool asks_each_time = false;
  // Does nothing but ask a person: in place of Run, QuestionOf and Answered are called. No thread waits meanwhile, and
  // after a crash the answer to the question that was shown counts.
  bool only_asks = false;
  // What a person agrees to with a call, beyond its arguments and the spec: where it works, what confines it, whose
  // program it is. Part of the digest that approvals and grants hold (TermsDigest). nullopt: not known yet.
  std::optional<std::string> terms = std::string();
  // nullopt: nothing if it is read-only, else anything.
  std::optional<FileEffect> file_effect = std::nullopt;
  bool delegates = false;  // sets sub-agents at work; they do not get it themselves
};

// A question of a tool for a person.
struct ToolQuestion {
  std::string text;
  std::string schema;                  // JSON Schema text of the answer, a flat object; empty if any text will do
  std::string url;                     // to be opened instead
  std::vector<std::string> options{};  // texts to choose from
};
struct ToolAnswer {
  enum class Action { kAccept, kDecline, kCancel };
  Action action = Action::kDecline;
  // If accepted: the text, or JSON object text that satisfies the schema; fields with a default may lack.
  std::string content = {};
};

// What a tool gives that is not text: an image, a recording, a PDF. It is kept as a file of the chat.
struct ToolFile {
  std::string mime_type{};  // "image/png", as the tool says
  std::string filename{};   // for people; empty: one is made of the tool's name and the type
  std::string content{};    // the bytes themselves
};

// What the model gets to read. Always valid UTF-8.
struct ToolOutcome {
  std::string output;
  bool is_error = false;
  TokenUsage usage = {};                // of what the tool had a model do
  std::optional<int> exit_status = {};  // of a command that was run
  bool transient = false;               // it failed for a reason that may pass, and nothing was done
  // Nothing was done: the user must agree first. `output` says to what; the model asks, and makes the call again with
  // `"confirmed": true` when the user has answered.
  bool requires_confirmation = false;
  // Beside the text. What is in `files` becomes files of the chat; `parts` names files that the chat has already.
  std::vector<ToolFile> files = {};
  std::vector<MessagePart> parts = {};
};

// What one execution may use.
struct ToolContext {
  std::stop_token stop;  // must end the tool within 50 ms, its processes included
  std::chrono::milliseconds timeout{60'000};
  // Live output for tool_output_delta; may be empty. Any bytes; called from the tool's thread.
  std::function<void(std::string_view)> on_output;
  bool approved = false;       // a person has agreed to this very call, or to all that are equal to it
  bool knows_secrets = false;  // and was told, or has written, that it touches what ReasonToAsk is about
  // Asks whoever started the run, and blocks until there is an answer or `over` is requested (the answer is then
  // dropped). Called from the tool's thread. Empty: nobody can be asked, questions are declined.
  std::function<ToolAnswer(const ToolQuestion& question, const std::stop_token& over)> ask;
  // Lets `change` at the agent's tasks and plan, within the call and one at a time. What it changes is kept in the
  // agent's state and shown before this returns. Empty: the agent has none.
  std::function<void(const std::function<void(Agenda& agenda)>& change)> change_agenda = {};
  // Has a sub-agent look into a question, and blocks until it has an answer, which is the outcome, or `stop` is
  // requested. Empty: there are no sub-agents here.
  std::function<ToolOutcome(const std::string& question)> research = {};
  FilesOfChat* files = nullptr;         // of the chat that the call is made in; null: there are none
  DocumentReader* documents = nullptr;  // makes text of documents; null: nobody does
  EditorFiles* editor = nullptr;        // with what its person has not saved; null: nobody edits
  const Span* span = nullptr;           // of the execution, for what the tool does beneath it; null: nobody watches
};

// What a call would make of a file, as the file is now. All of it may have characters that cannot be seen.
struct FileChange {
  std::string path;                   // relative to the workspace
  std::optional<std::string> before;  // nullopt: there is no such file yet
  std::optional<std::string> after;   // nullopt: it is deleted
};

// The failure of Tool::PreviewChange; `why` is for the person who is asked about the call.
inline Error NoChangeToShow(std::string why) {
  return Error{.code = ErrorCode::kConflict, .reason = "no_change_to_show", .message = std::move(why)};
}

// What a pattern of calls is for: to let calls pass, which it does only for those that it surely covers, or to hold
// them back, which it does for all that could be meant.
enum class PatternUse { kAllow, kHold };
// Whether a call is held back by a pattern.
enum class Touch {
  kNo,
  kMaybe,  // it cannot be told what the call does
  kYes,
};

// Something an agent can do. Thread-safe. A tool's failures are outcomes that the model reads (is_error), not Errors.
class Tool {
 public:
  virtual ~Tool() = default;
  virtual const ToolTraits& traits() const = 0;
  // For a tool that another program offers, which may be about to change it: returns when ToolRegistry::Current has
  // what there is now under its name, when that cannot be found out soon, or when `stop` is requested.
  virtual void AwaitOffer(const std::stop_token& /*stop*/) {}
  // Why a call with these arguments (which satisfy the schema) asks first though the tool may not: where it goes, a
  // person keeps what is not the agent's to read. nullopt: for no reason of its own. Quick; shown with the request.
  virtual std::optional<std::string> ReasonToAsk(std::string_view /*arguments*/) const { return std::nullopt; }
  // What a call with these arguments (which satisfy the schema) would say if it fails whatever anybody agrees to, as
  // things are: then nobody is asked about it. nullopt: it may succeed, or that cannot be told without the person.
  // Of the context, `stop` and `editor` count. Changes nothing; quick, but for an editor that is connected.
  virtual std::optional<std::string> FailureOf(std::string_view /*arguments*/, const ToolContext& /*context*/) const {
    return std::nullopt;
  }
  // What a call with these arguments (which satisfy the schema) would change, for the person who is asked about it.
  // Changes nothing; quick. NoChangeToShow: it is not about one text file, or the file is not to be opened before
  // somebody has agreed, or the call would fail as things are.
  virtual Result<FileChange> PreviewChange(std::string_view /*arguments*/) const {
    return Fail(NoChangeToShow("this tool does not change one file as a whole"));
  }
  // --- patterns of calls: each tool has a language of its own, or none. All are quick and read no files.
  // What a person may allow together with a call of these arguments (which satisfy the schema): the narrowest first, a
  // handful at most.
  virtual std::vector<CallPattern> PatternsOf(std::string_view /*arguments*/) const { return {}; }
  // One sentence that says what the pattern covers. kInvalidArgument: it is none of this tool, or could never match;
  // the message says why. People agree to the sentence: a pattern that comes to cover more gets another one, and what
  // was granted by the old one counts no longer.
  virtual Result<std::string> MeaningOf(std::string_view /*pattern*/, PatternUse /*use*/) const {
    return Fail(ErrorCode::kInvalidArgument, "this tool has no patterns");
  }
  // Which of these patterns cover the call together, by index: a command line may be in parts, each under one of them.
  // nullopt: they do not cover it, or not surely. Each is one that MeaningOf takes, to allow; others cover nothing.
  virtual std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& /*patterns*/,
                                                            std::string_view /*arguments*/) const {
    return std::nullopt;
  }
  // Whether the pattern, one that MeaningOf takes to hold, holds the call back.
  virtual Touch Touches(std::string_view /*pattern*/, std::string_view /*arguments*/) const { return Touch::kMaybe; }

  // `arguments` is a JSON object that satisfies the schema. A tool that is not any more what its traits say does
  // nothing, and says so.
  virtual ToolOutcome Run(std::string_view arguments, const ToolContext& context) = 0;
  // Of a tool that only asks: what a call with these arguments asks, and its outcome when that is answered.
  virtual ToolQuestion QuestionOf(std::string_view /*arguments*/) const { return {}; }
  virtual ToolOutcome Answered(ToolAnswer /*answer*/) const { return {}; }
};

// Makes a tool of a name that a server may turn out to have, as long as it has not said what it has; null: not of that
// name. For a call that was shown before this process began: such a tool is in no list.
using UnlistedTool = std::function<std::shared_ptr<Tool>(std::string_view name)>;

// The tools there are at one moment. Immutable and thread-safe; its tools live as long as it does.
class ToolSet {
 public:
  virtual ~ToolSet() = default;
  // Null if there is none of that name (or it is denied by configuration). Also finds what UnlistedTool makes.
  virtual Tool* Find(std::string_view name) const = 0;
  // Checks `arguments` (raw text from a model) against the tool's schema. An empty text counts as {}. The error's
  // message says what is wrong in words a model can mend: kInvalidArgument.
  virtual Result<void> Validate(const Tool& tool, std::string_view arguments) const = 0;
  // In order of registration.
  virtual const std::vector<Tool*>& tools() const = 0;
  virtual const std::vector<ToolSpec>& specs() const = 0;
  virtual bool RequiresApproval(const Tool& tool) const = 0;
};

// Another program that tools come from.
struct ToolServer {
  enum class State { kConnecting, kReady, kFailed };
  enum class Login { kNotNeeded, kLoggedOut, kLoggedIn };
  std::string name;
  State state = State::kConnecting;
  std::string message = {};       // why it is not ready, or what it calls itself; valid UTF-8
  std::string instructions = {};  // how its tools are to be used, in its own words; valid UTF-8, of bounded length
  std::size_t tools = 0;
  Login login = Login::kNotNeeded;  // as it was when the state was
  bool operator==(const ToolServer&) const = default;
};

// A person logs in at servers that tools come from. Thread-safe.
class ToolServerLogins {
 public:
  virtual ~ToolServerLogins() = default;
  // Begins a log-in, in place of one that has begun and not ended. The URL that the person must open in a browser of
  // this machine; empty: the server wants no log-in, or one counts already. The rest goes on by itself, for a quarter
  // of an hour; ToolServer tells when it is done. Blocks until the URL is known. kNotFound, kInvalidArgument (reason
  // "no_login": nobody logs in at this server), kForbidden (reason "mcp_oauth": it cannot be done, and why),
  // kUnavailable.
  virtual Result<std::string> BeginLogin(const std::string& server) = 0;
  // Forgets a log-in. False: there was none. kNotFound, kIo.
  virtual Result<bool> LogOut(const std::string& server) = 0;
};

// The tools of this server, which may come and go while it runs. Thread-safe.
class ToolRegistry {
 public:
  virtual ~ToolRegistry() = default;
  // Never null. Cheap; hold on to it for as long as its tools are used.
  virtual std::shared_ptr<const ToolSet> Current() const = 0;
  // The same, and behind them these of another program: as far as the configuration allows them, and without those
  // whose names are taken, or are for a configured server. Their schemas are not trusted. Not cheap. A registry that
  // does not override it takes none.
  virtual std::shared_ptr<const ToolSet> With(const std::vector<std::shared_ptr<Tool>>& /*more*/) const {
    return Current();
  }
  virtual std::vector<ToolServer> Servers() const { return {}; }
};

}  // namespace reprise
