#include "cli/completion_script.h"

#include <algorithm>
#include <vector>

namespace reprise {
namespace {

std::string JoinedWords(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(separator)) + word;
  return text;
}

std::vector<std::string> NamesOf(const std::vector<CommandDoc>& commands) {
  std::vector<std::string> names;
  for (const CommandDoc& command : commands) names.push_back(command.name.substr(command.name.rfind(' ') + 1));
  return names;
}

// The values that an option has: one of a list, or empty.
std::vector<std::string> ValuesOf(const OptionDoc& option, const CommandDoc& root) {
  return option.is_command ? NamesOf(root.commands) : option.choices;
}

void ReplaceAll(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

std::string WithGrammar(std::string_view script, const std::string& grammar) {
  std::string text(script);
  ReplaceAll(text, "@GRAMMAR@", grammar);
  return text;
}

// For a text between single quotes.
std::string InSingleQuotes(std::string text, std::string_view quote) {
  ReplaceAll(text, "'", quote);
  return "'" + text + "'";
}

// ---- bash ----

// Needs nothing of the bash-completion package. The variables are those of `_reprise`.
constexpr std::string_view kBash = R"script(# bash completion for reprise, printed by `reprise completion bash`

# Sets commands, flags, values (FLAG:KIND) and arguments (a KIND for each place; * in front of one that repeats) of one
# command. A KIND is file, folder, chat, chat+file, any, or =ONE,OTHER.
_reprise_grammar() {
    commands='' flags='' values='' arguments=''
    case $1 in
@GRAMMAR@    esac
}

_reprise() {
    local commands flags values arguments
    local cur=${COMP_WORDS[COMP_CWORD]} command='' flag='' kind='' place=0 i word item
    local -a where=()
    _reprise_grammar ''
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $kind ]]; then
            # bash breaks --flag=value into three words
            [[ $word != '=' ]] || continue
            case $flag in --data-dir | --config) where+=("$flag" "${word/#\~\//$HOME/}") ;; esac
            kind=
        elif [[ $word == -* ]]; then
            flag=$word
            for item in $values; do
                [[ ${item%%:*} != "$flag" ]] || kind=${item#*:}
            done
        elif [[ " $commands " == *" $word "* ]]; then
            command+=${command:+ }$word place=0
            _reprise_grammar "$command"
        else
            place=$((place + 1))
        fi
    done
    [[ $cur != '=' ]] || cur=

    COMPREPLY=()
    if [[ -z $kind && $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
        return
    fi
    if [[ -z $kind && -n $commands && $place -eq 0 ]]; then
        COMPREPLY=($(compgen -W "$commands" -- "$cur"))
        return
    fi
    if [[ -z $kind ]]; then
        i=0
        for item in $arguments; do
            if ((i == place)) || [[ $item == \** ]]; then kind=${item#\*}; fi
            i=$((i + 1))
        done
    fi
    case $kind in
        =*) COMPREPLY=($(IFS=$' \t\n,'; compgen -W "${kind#=}" -- "$cur")) ;;
        chat*) COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" completion --chats "${where[@]}" </dev/null 2>/dev/null)" -- "$cur")) ;;
    esac
    case $kind in
        file | chat+file)
            compopt -o filenames 2>/dev/null
            local IFS=$'\n'
            COMPREPLY+=($(compgen -f -- "$cur"))
            ;;
        folder)
            compopt -o filenames 2>/dev/null
            local IFS=$'\n'
            COMPREPLY+=($(compgen -d -- "$cur"))
            ;;
    esac
}
complete -F _reprise reprise
)script";

std::string BashKind(const OptionDoc& option, const CommandDoc& root) {
  const auto choices = ValuesOf(option, root);
  if (!choices.empty()) return "=" + JoinedWords(choices, ",");
  if (option.is_chat) return option.is_file ? "chat+file" : "chat";
  return option.is_file ? "file" : option.is_folder ? "folder" : "any";
}

std::string BashScript(const CommandDoc& root) {
  std::string grammar;
  for (const CommandDoc* command : AllCommands(root)) {
    std::vector<std::string> flags, values, arguments;
    for (const OptionDoc& flag : command->flags) {
      for (const std::string& name : flag.names) {
        if (name.starts_with("--")) flags.push_back(name);
        if (!flag.value.empty()) values.push_back(name + ":" + BashKind(flag, root));
      }
    }
    for (const OptionDoc& argument : command->arguments) {
      arguments.push_back((argument.repeated ? "*" : "") + BashKind(argument, root));
    }
    grammar += "        '" + command->name + "')\n";
    grammar += "            commands='" + JoinedWords(NamesOf(command->commands), " ") + "'\n";
    grammar += "            flags='" + JoinedWords(flags, " ") + "'\n";
    grammar += "            values='" + JoinedWords(values, " ") + "'\n";
    grammar += "            arguments='" + JoinedWords(arguments, " ") + "' ;;\n";
  }
  return WithGrammar(kBash, grammar);
}

// ---- zsh ----

constexpr std::string_view kZsh = R"script(#compdef reprise
# zsh completion for reprise, printed by `reprise completion zsh`

_reprise_chats() {
    local -a where chats
    local flag
    for flag in --data-dir --config; do
        [[ -z ${opt_args[$flag]} ]] || where+=($flag ${~opt_args[$flag]})
    done
    chats=(${(f)"$(reprise completion --chats $where </dev/null 2>/dev/null)"})
    compadd -a chats
}

_reprise_chats_or_files() {
    _alternative 'chats:chat:_reprise_chats' 'files:file:_files'
}

@GRAMMAR@
if [[ ${funcstack[1]} == _reprise ]]; then
    _reprise "$@"
else
    compdef _reprise reprise
fi
)script";

std::string ZshFunction(const CommandDoc& command) {
  std::string name = "_reprise" + (command.name.empty() ? "" : "_" + command.name);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

// For the part of an _arguments specification that ends at `]` or at `:`.
std::string ZshText(std::string text) {
  ReplaceAll(text, "\\", "\\\\");
  ReplaceAll(text, "[", "\\[");
  ReplaceAll(text, "]", "\\]");
  ReplaceAll(text, ":", "\\:");
  return text;
}

std::string ZshAction(const OptionDoc& option, const CommandDoc& root) {
  const auto choices = ValuesOf(option, root);
  const std::string message = ":" + ZshText(option.value) + ":";
  if (!choices.empty()) return message + "(" + JoinedWords(choices, " ") + ")";
  if (option.is_chat) return message + (option.is_file ? "_reprise_chats_or_files" : "_reprise_chats");
  return message + (option.is_file ? "_files" : option.is_folder ? "_files -/" : " ");
}

void AddZshFunctions(const CommandDoc& command, const CommandDoc& root, std::string& text) {
  const auto quoted = [](const std::string& one) { return InSingleQuotes(one, "'\\''"); };
  for (const CommandDoc& below : command.commands) AddZshFunctions(below, root, text);
  text += ZshFunction(command) + "() {\n";
  text += "    local curcontext=$curcontext state line\n    typeset -A opt_args\n    _arguments -C";
  for (const OptionDoc& flag : command.flags) {
    for (const std::string& name : flag.names) {
      const bool takes_equals = !flag.value.empty() && name.starts_with("--");
      text += " \\\n        " + quoted((flag.repeated ? "*" : "") + name + (takes_equals ? "=" : "") + "[" +
                                       ZshText(flag.help) + "]" + (flag.value.empty() ? "" : ZshAction(flag, root)));
    }
  }
  if (!command.commands.empty()) {
    text += " \\\n        '1: :->command' \\\n        '*:: :->rest'\n";
    text += "    case $state in\n    command)\n        local -a commands=(";
    const auto names = NamesOf(command.commands);
    for (std::size_t i = 0; i < names.size(); ++i) {
      text += "\n            " + quoted(names[i] + ":" + ZshText(command.commands[i].help));
    }
    text += ")\n        _describe command commands ;;\n    rest)\n        case $words[1] in\n";
    for (std::size_t i = 0; i < names.size(); ++i) {
      text += "        " + names[i] + ") " + ZshFunction(command.commands[i]) + " ;;\n";
    }
    text += "        esac ;;\n    esac\n}\n\n";
    return;
  }
  for (const OptionDoc& argument : command.arguments) {
    text += " \\\n        " + quoted((argument.repeated   ? "*"
                                      : argument.required ? ""
                                                          : ":") +
                                     ZshAction(argument, root));
  }
  text += "\n}\n\n";
}

std::string ZshScript(const CommandDoc& root) {
  std::string functions;
  AddZshFunctions(root, root, functions);
  return WithGrammar(kZsh, functions);
}

// ---- fish ----

constexpr std::string_view kFish = R"script(# fish completion for reprise, printed by `reprise completion fish`

# The commands that stand on the line before the cursor: "", "serve", "keys init".
function __reprise_command
    set -l found
    for word in (commandline -opc)[2..-1]
        if contains -- (string join -- ' ' $found $word) $__reprise_commands
            set -a found $word
        end
    end
    string join -- ' ' $found
end
function __reprise_at
    set -l command (__reprise_command)
    test "$command" = "$argv[1]"
end
function __reprise_chats
    set -l where
    set -l words (commandline -opc)
    for i in (seq (count $words))
        switch $words[$i]
            case --data-dir --config
                set -a where $words[$i] (string replace -r '^~/' "$HOME/" -- $words[(math $i + 1)])
            case '--data-dir=*' '--config=*'
                set -a where $words[$i]
        end
    end
    reprise completion --chats $where </dev/null 2>/dev/null
end

complete -c reprise -f
@GRAMMAR@)script";

std::string FishAction(const OptionDoc& option, const CommandDoc& root) {
  const auto choices = ValuesOf(option, root);
  if (!choices.empty()) return " -a '" + JoinedWords(choices, " ") + "'";
  std::string action;
  if (option.is_chat) action = " -a '(__reprise_chats)'";
  if (option.is_file) return action + " -F";
  return option.is_folder ? action + " -a '(__fish_complete_directories)'" : action;
}

std::string FishScript(const CommandDoc& root) {
  const auto quoted = [](std::string one) {
    ReplaceAll(one, "\\", "\\\\");
    return InSingleQuotes(one, "\\'");
  };
  std::vector<std::string> all;
  std::string lines;
  for (const CommandDoc* command : AllCommands(root)) {
    if (!command->name.empty()) all.push_back("'" + command->name + "'");
    const std::string begin = "complete -c reprise -n \"__reprise_at '" + command->name + "'\"";
    const auto names = NamesOf(command->commands);
    for (std::size_t i = 0; i < names.size(); ++i) {
      lines += begin + " -a " + names[i] + " -d " + quoted(command->commands[i].help) + "\n";
    }
    for (const OptionDoc& flag : command->flags) {
      lines += begin;
      for (const std::string& name : flag.names) {
        lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!flag.value.empty()) lines += (flag.is_file ? " -r" : " -x") + FishAction(flag, root);
      lines += " -d " + quoted(flag.help) + "\n";
    }
    for (const OptionDoc& argument : command->arguments) {
      const std::string action = FishAction(argument, root);
      if (!action.empty()) lines += begin + action + " -d " + quoted(argument.value) + "\n";
    }
  }
  return WithGrammar(kFish, "set -g __reprise_commands " + JoinedWords(all, " ") + "\n" + lines);
}

}  // namespace

std::optional<std::string> CompletionScript(std::string_view shell, const CommandDoc& root) {
  if (shell == "bash") return BashScript(root);
  if (shell == "zsh") return ZshScript(root);
  if (shell == "fish") return FishScript(root);
  return std::nullopt;
}

}  // namespace reprise
