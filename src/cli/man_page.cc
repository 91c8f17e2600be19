#include "cli/man_page.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "app/embedded.h"
#include "app/settings.h"
#include "cli/command_notes.h"

namespace reprise {
namespace {

constexpr std::size_t kLineWidth = 76;

// One character as troff prints it. A plain "-" would become a hyphen, which nobody can paste into a shell.
std::string TroffEscaped(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '"':
      return "\\(dq";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    default:
      return {c};
  }
}
std::string TroffEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '`' ? "\\(ga" : TroffEscaped(c);
  return escaped;
}
std::string TroffBold(std::string_view text) { return "\\fB" + TroffEscaped(text) + "\\fP"; }
std::string TroffItalic(std::string_view text) { return "\\fI" + TroffEscaped(text) + "\\fP"; }

// Text in which `this` is a command. Hyphens within words are hyphens; others belong to flags.
std::string TroffText(std::string_view text) {
  std::string prose;
  bool bold = false;
  std::size_t word = 0;  // where the current one begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') word = i + 1;
    if (text[i] == '`') {
      bold = !bold;
      prose += bold ? "\\fB" : "\\fP";
    } else if (text[i] == '-' && !bold && std::isalpha(static_cast<unsigned char>(text[word])) != 0) {
      prose += '-';
    } else {
      prose += TroffEscaped(text[i]);
    }
  }
  return prose;
}

class TroffPage {
 public:
  const std::string& text() const { return text_; }

  void Macro(const std::string& line) { text_ += line + "\n"; }
  void Section(std::string_view name) { text_ += ".SH " + std::string(name) + "\n"; }
  // Text that is troff already, in lines of a length that a person can read.
  void Text(const std::string& troff) {
    std::string line;
    const auto end_line = [&] {
      // A line that begins so would be a macro.
      text_ += (line.starts_with('.') || line.starts_with('\'') ? "\\&" : "") + line + "\n";
      line.clear();
    };
    for (std::size_t at = 0; at < troff.size();) {
      const std::size_t end = std::min(troff.find(' ', at), troff.size());
      const std::string word = troff.substr(at, end - at);
      at = end + 1;
      if (word.empty()) continue;
      if (!line.empty() && line.size() + 1 + word.size() > kLineWidth) end_line();
      line += (line.empty() ? "" : " ") + word;
    }
    if (!line.empty()) end_line();
  }
  void Entry(const std::string& term, const std::string& troff) {
    Macro(".TP");
    Macro(term);
    Text(troff);
  }
  void Paragraphs(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find("\n\n", at), text.size());
      if (at > 0) Macro(".PP");
      Text(TroffText(text.substr(at, end - at)));
      at = end + 2;
    }
  }

 private:
  std::string text_;
};

std::string FullName(const CommandDoc& command) { return command.name.empty() ? "reprise" : "reprise " + command.name; }

// The first letter stays as it is: it may begin a value ("json, markdown or jsonl").
std::string Sentence(std::string_view text) {
  return std::string(text) + (text.empty() || text.ends_with('.') || text.ends_with('?') ? "" : ".");
}

std::string InSynopsis(const OptionDoc& argument) {
  const std::string name = TroffItalic(argument.value) + (argument.repeated ? "\\~..." : "");
  return argument.required ? name : "[" + name + "]";
}

std::string Synopsis(const CommandDoc& command) {
  std::string line = TroffBold(FullName(command));
  if (!command.commands.empty()) {
    const bool needs_command = command.arguments.empty() && !command.name.empty();
    line += needs_command ? " " + TroffItalic("COMMAND") : " [" + TroffItalic("COMMAND") + "]";
  }
  line += " [" + TroffItalic("OPTION") + "\\~...]";
  for (const OptionDoc& argument : command.arguments) line += " " + InSynopsis(argument);
  return line;
}

std::string TermOf(const OptionDoc& option) {
  if (option.names.empty()) return TroffItalic(option.value);
  std::string term;
  for (const std::string& name : option.names) term += (term.empty() ? "" : ", ") + TroffBold(name);
  return option.value.empty() ? term : term + " " + TroffItalic(option.value);
}

std::string HelpOfOption(const OptionDoc& option) {
  std::string missing;  // of the choices that the text does not name
  for (const std::string& choice : option.choices) {
    if (option.help.find(choice) == std::string::npos) missing += (missing.empty() ? "" : ", ") + choice;
  }
  return TroffText(Sentence(option.help) + (missing.empty() ? "" : " One of: " + missing + "."));
}

bool HasFlag(const CommandDoc& command, std::string_view name) {
  return std::any_of(command.flags.begin(), command.flags.end(), [name](const OptionDoc& flag) {
    return std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end();
  });
}

void AddEnvironmentSection(const CommandDoc& command, TroffPage& page) {
  TroffPage entries;
  for (const OptionDoc& flag : command.flags) {
    const std::string& name = flag.names.back();
    const Setting* setting = name.starts_with("--") ? FindSetting(name.substr(2)) : nullptr;
    if (setting != nullptr) entries.Entry(TroffBold(EnvironmentName(*setting)), "As " + TroffBold(name) + ".");
  }
  if (HasFlag(command, "--config")) {
    entries.Entry(TroffBold("REPRISE_CONFIG"), "As " + TroffBold("--config") + ".");
    entries.Entry(TroffBold("XDG_CONFIG_HOME"), TroffText("Where configuration and key file are (default ~/.config)."));
  }
  if (HasFlag(command, "--data-dir")) {
    entries.Entry(TroffBold("XDG_DATA_HOME"),
                  TroffText("Where the data folder is by default (default ~/.local/share)."));
  }
  if (HasFlag(command, "--url")) entries.Entry(TroffBold("REPRISE_URL"), "As " + TroffBold("--url") + ".");
  if (HasFlag(command, "--color")) {
    entries.Entry(TroffBold("NO_COLOR"), TroffText("If it is set, nothing is coloured by default."));
  }
  if (HasFlag(command, "--model") || command.name.empty()) {
    entries.Entry(TroffBold("OPENAI_API_KEY") + ", " + TroffBold("OPENAI_BASE_URL") + ", " +
                      TroffBold("ANTHROPIC_API_KEY") + ", " + TroffBold("ANTHROPIC_BASE_URL"),
                  TroffText("Keys and addresses of the two providers that need no configuration."));
  }
  if (command.name.empty()) {
    entries.Entry(TroffBold("REPRISE_*"),
                  TroffText("Every flag of `reprise serve` is also an environment variable: see "
                            "`reprise-serve`(1)."));
  }
  if (entries.text().empty()) return;
  page.Section("ENVIRONMENT");
  for (std::size_t at = 0; at < entries.text().size();) {
    const std::size_t end = entries.text().find('\n', at);
    page.Macro(entries.text().substr(at, end - at));
    at = end + 1;
  }
}

void AddFilesSection(const CommandDoc& command, TroffPage& page) {
  const bool all = command.name.empty();
  const bool config = all || HasFlag(command, "--config"), keys = all || HasFlag(command, "--key-file");
  if (!config && !keys) return;
  page.Section("FILES");
  if (all || HasFlag(command, "--data-dir")) {
    page.Entry(
        TroffItalic("./chats") + ", " + TroffItalic("~/.local/share/reprise/chats"),
        TroffText("The data folder. The first one if Reprise has made it, or if there is a configuration here."));
  }
  if (config) {
    page.Entry(TroffItalic("./reprise.json") + ", " + TroffItalic("~/.config/reprise/reprise.json"),
               TroffText("The configuration: JSON with comments. The first one only if it is trusted; see "
                         "`reprise-trust`(1)."));
  }
  if (keys) {
    page.Entry(
        TroffItalic("~/.config/reprise/keys.jwks"),
        TroffText("The keys that chats are encrypted with. Keep a copy elsewhere: without it the chats are lost."));
  }
}

void AddSeeAlso(const CommandDoc& root, const CommandDoc& command, TroffPage& page) {
  std::vector<const CommandDoc*> pages;
  if (&root == &command) {
    pages = AllCommands(root);
    pages.erase(pages.begin());
  } else {
    const std::size_t space = command.name.rfind(' ');
    pages.push_back(&root);
    if (space != std::string::npos) pages.push_back(FindCommand(root, command.name.substr(0, space)));
    for (const CommandDoc& below : command.commands) pages.push_back(&below);
  }
  page.Section("SEE ALSO");
  for (const CommandDoc* other : pages) {
    page.Macro(".BR " + TroffEscaped(ManPageName(*other)) + " (1)" + (other == pages.back() ? "" : ","));
  }
}

}  // namespace

std::string ManPageName(const CommandDoc& command) {
  std::string name = FullName(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string ManPage(const CommandDoc& root, const CommandDoc& command) {
  TroffPage page;
  std::string title = ManPageName(command);
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  page.Macro(".TH " + TroffEscaped(title) + " 1 \"\" \"reprise " + std::string(Version()) + "\" \"Reprise manual\"");
  // Left-aligned, words unbroken: what is read here is often typed.
  page.Macro(".ad l");
  page.Macro(".nh");

  page.Section("NAME");
  std::string help = command.help;
  if (help.ends_with('.')) help.pop_back();
  page.Macro(TroffEscaped(ManPageName(command)) + " \\- " + TroffText(help));
  page.Section("SYNOPSIS");
  page.Text(Synopsis(command));
  page.Section("DESCRIPTION");
  page.Text(TroffText(Sentence(command.help)));
  if (const std::string_view more = DescriptionOf(command.name); !more.empty()) {
    page.Macro(".PP");
    page.Paragraphs(more);
  }

  if (!command.commands.empty()) page.Section("COMMANDS");
  for (const CommandDoc& below : command.commands)
    page.Entry(TroffBold(FullName(below)), TroffText(Sentence(below.help)));
  page.Section("OPTIONS");
  for (const OptionDoc& argument : command.arguments) page.Entry(TermOf(argument), HelpOfOption(argument));
  for (const OptionDoc& flag : command.flags) page.Entry(TermOf(flag), HelpOfOption(flag));

  page.Section("EXIT STATUS");
  page.Entry(TroffBold("0"), "Done.");
  page.Entry(TroffBold("1"), "Failed, not found, or damaged.");
  page.Entry(TroffBold("2"), "Wrong usage: of flags, variables or configuration.");
  AddEnvironmentSection(command, page);
  AddFilesSection(command, page);

  if (const auto examples = ExamplesOf(command.name); !examples.empty()) {
    page.Section("EXAMPLES");
    for (const CommandExample& example : examples) {
      page.Entry(TroffBold(example.line), TroffText(Sentence(example.what)));
    }
  }
  AddSeeAlso(root, command, page);
  return page.text();
}

}  // namespace reprise
