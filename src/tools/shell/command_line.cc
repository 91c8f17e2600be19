#include "tools/shell/command_line.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxCommands = 100;
// Words with a special meaning at the start of a command, in any shell that /bin/sh may be.
constexpr std::array<std::string_view, 23> kReserved = {
    "if", "then", "else", "elif", "fi",   "do",       "done", "case", "esac",   "while",  "until",  "for",
    "in", "{",    "}",    "!",    "time", "function", "[[",   "]]",   "coproc", "select", "foreach"};

bool IsControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n') || c == 0x7f; }
bool IsSpaceOrTab(char c) { return c == ' ' || c == '\t'; }

tl::unexpected<Error> Beyond(std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); }

// A word and how it is written.
struct RawWord {
  ShellWord word;
  bool is_bare = true;           // no part is quoted
  bool has_bare_equals = false;  // an unquoted '='
};

class LineParser {
 public:
  explicit LineParser(std::string_view text) : text_(text) {}

  Result<CommandLine> Parse() {
    if (std::ranges::any_of(text_, IsControl)) return Beyond("it has control characters");
    CommandLine line;
    ShellJoint joint = ShellJoint::kFirst;
    SkipLineEnds();
    while (!AtEnd()) {
      if (line.size() == kMaxCommands) return Beyond("it has too many commands");
      line.push_back(TRY(Command(joint)));
      SkipBlanks();
      if (AtEnd()) break;
      const auto next = TRY(Joint(line.back()));
      joint = next;
      // A list may end in these; the other operators need a command after them.
      SkipLineEnds();
      if (AtEnd() && joint != ShellJoint::kThen) return Beyond("it ends in the middle");
    }
    if (line.empty()) return Beyond("there is no command");
    return line;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  void SkipBlanks() {
    while (!AtEnd() && IsSpaceOrTab(Peek())) ++at_;
  }
  void SkipLineEnds() {
    while (!AtEnd() && (IsSpaceOrTab(Peek()) || Peek() == '\n')) ++at_;
  }

  Result<ShellJoint> Joint(ShellCommand& before) {
    if (Take("\n")) return ShellJoint::kThen;
    if (Take("&&")) return ShellJoint::kAnd;
    if (Take("||")) return ShellJoint::kOr;
    if (Take("|"))
      return Peek() == '&' ? Beyond("it has an operator that not every shell knows") : Ok(ShellJoint::kPipe);
    if (Take(";")) return Peek() == ';' ? Beyond("it has ;;") : Ok(ShellJoint::kThen);
    if (Take("&")) {
      before.in_background = true;
      return Peek() == '>' ? Beyond("it has an operator that shells understand differently") : Ok(ShellJoint::kThen);
    }
    return Beyond("it has an operator that is not understood here");
  }
  static Result<ShellJoint> Ok(ShellJoint joint) { return joint; }

  Result<ShellCommand> Command(ShellJoint joint) {
    ShellCommand command{.joint = joint, .words = {}};
    bool has_something = false;
    for (;;) {
      SkipBlanks();
      const char c = Peek();
      if (AtEnd() || c == '\n' || c == ';' || c == '&' || c == '|') break;
      if (c == '(' || c == ')') return Beyond("it has parentheses");
      if (c == '#') return Beyond("it has a comment");
      if (c == '<' || c == '>') {
        TRY(Redirection(command));
        has_something = true;
        continue;
      }
      const std::size_t began = at_;
      auto raw = TRY(Word());
      // Digits directly before it belong to a redirection.
      const std::string_view written = text_.substr(began, at_ - began);
      if ((Peek() == '<' || Peek() == '>') && std::ranges::all_of(written, IsAsciiDigit)) {
        if (written.size() > 1) return Beyond("it has a redirection that shells understand differently");
        TRY(Redirection(command));
        if (c != '1' && c != '2') command.has_redirections = true;
        has_something = true;
        continue;
      }
      has_something = true;
      if (command.words.empty() && raw.is_bare && std::ranges::find(kReserved, written) != kReserved.end()) {
        return Beyond("it has a compound command");
      }
      if (command.words.empty() && raw.has_bare_equals) {
        command.has_assignments = true;
        continue;
      }
      raw.word.is_star = written == "*";
      command.words.push_back(std::move(raw.word));
    }
    if (!has_something) return Beyond("a command is missing in it");
    return command;
  }

  Result<void> Redirection(ShellCommand& command) {
    std::string_view kind;
    for (const std::string_view each : {"<<", "<&", "<>", "<", ">>", ">&", ">|", ">"}) {
      if (!Take(each)) continue;
      kind = each;
      break;
    }
    if (kind == "<<") return Beyond("it has a here-document");
    SkipBlanks();
    const char c = Peek();
    const bool is_missing = AtEnd() || c == '\n' || c == ';' || c == '&' || c == '|' || c == '<' || c == '>';
    if (is_missing || c == '(' || c == ')' || c == '#') return Beyond("it has a redirection without a file");
    const auto target = TRY(Word());
    const std::string& text = target.word.text;
    const bool to_nothing = kind != "<>" && kind != ">&" && kind != "<&" && text == "/dev/null";
    const bool is_merge = kind == ">&" && (text == "1" || text == "2");
    if (!target.word.is_literal() || !(to_nothing || is_merge)) command.has_redirections = true;
    return {};
  }

  void MakeOpaque(RawWord& raw) const { raw.word.kind = ShellWord::Kind::kOpaque; }
  static void Add(RawWord& raw, char c) {
    if (raw.word.kind != ShellWord::Kind::kGlob) raw.word.text += c;
  }

  Result<RawWord> Word() {
    RawWord raw;
    const std::size_t began = at_;
    while (!AtEnd()) {
      const char c = Peek();
      if (IsSpaceOrTab(c) || std::string_view("\n;&|<>").find(c) != std::string_view::npos) break;
      if (c == '(' || c == ')') return Beyond("it has parentheses");
      if (c == '\'' || c == '"' || c == '\\') {
        raw.is_bare = false;
        TRY(c == '\'' ? SingleQuoted(raw) : c == '"' ? DoubleQuoted(raw) : Escaped(raw));
        continue;
      }
      if (c == '`') return Beyond("it has a command substitution");
      if (c == '$') {
        TRY(Dollar(raw));
        continue;
      }
      ++at_;
      if (c == '*' || c == '?' || c == '[') {
        if (raw.word.kind == ShellWord::Kind::kLiteral) raw.word.kind = ShellWord::Kind::kGlob;
      } else if (c == '~') {
        const char before = at_ - 1 == began ? '\0' : text_[at_ - 2];
        if (before == '\0' || before == '=' || before == ':') MakeOpaque(raw);
        Add(raw, c);
      } else if (IsAsciiAlnum(c) || std::string_view("_@%+=:,./-^#").find(c) != std::string_view::npos) {
        raw.has_bare_equals = raw.has_bare_equals || c == '=';
        Add(raw, c);
      } else {
        MakeOpaque(raw);  // braces, '!', ']' and non-ASCII, where shells and locales differ
      }
    }
    return raw;
  }

  Result<void> Escaped(RawWord& raw) {
    const char c = Peek(1);
    if (at_ + 1 >= text_.size()) return Beyond("it ends in a backslash");
    if (c == '\n') return Beyond("it goes on in the next line");
    if (c == '\t') return Beyond("a word has a tab");
    if (static_cast<unsigned char>(c) >= 0x80) MakeOpaque(raw);
    Add(raw, c);
    at_ += 2;
    return {};
  }

  Result<void> SingleQuoted(RawWord& raw) {
    for (++at_;; ++at_) {
      if (AtEnd()) return Beyond("a quote is not closed");
      const char c = Peek();
      if (c == '\'') break;
      TRY(Quoted(raw, c));
    }
    ++at_;
    return {};
  }

  Result<void> DoubleQuoted(RawWord& raw) {
    ++at_;
    for (;;) {
      if (AtEnd()) return Beyond("a quote is not closed");
      const char c = Peek();
      if (c == '"') break;
      if (c == '`') return Beyond("it has a command substitution");
      if (c == '$') {
        TRY(Dollar(raw));
        continue;
      }
      if (c == '\\') {
        const char next = Peek(1);
        if (next == '\n') return Beyond("it goes on in the next line");
        // Before other characters the backslash is literal.
        if (next == '$' || next == '`' || next == '"' || next == '\\') ++at_;
      }
      TRY(Quoted(raw, Peek()));
      ++at_;
    }
    ++at_;
    return {};
  }

  Result<void> Quoted(RawWord& raw, char c) const {
    if (c == '\n' || c == '\t') return Beyond("a quoted word has more than one line, or a tab");
    if (static_cast<unsigned char>(c) >= 0x80) MakeOpaque(raw);
    Add(raw, c);
    return {};
  }

  Result<void> Dollar(RawWord& raw) {
    const char next = Peek(1);
    if (next == '(' || next == '{' || next == '[' || next == '\'') return Beyond("it has a substitution");
    if (next == '\n' || next == '\\') return Beyond("it has a substitution");
    MakeOpaque(raw);
    ++at_;
    return {};
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<CommandLine> ParseCommandLine(std::string_view text) { return LineParser(text).Parse(); }

std::string QuotedWord(std::string_view word) {
  const auto is_plain = [](char c) {
    return IsAsciiAlnum(c) || std::string_view("_@%+:,./-^").find(c) != std::string_view::npos;
  };
  const bool is_reserved = std::ranges::find(kReserved, word) != kReserved.end();
  if (!word.empty() && !is_reserved && std::ranges::all_of(word, is_plain)) return std::string(word);
  // A '=' matters only before the program, and options with one read better without quotes.
  const bool is_option =
      word.starts_with("--") && std::ranges::all_of(word, [&](char c) { return is_plain(c) || c == '='; });
  if (is_option) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace reprise
