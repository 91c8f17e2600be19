#include "terminal/code_colours.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.h"

namespace reprise {

// What the table tells of a language. Words stand between blanks.
struct Language {
  std::string_view names;          // also the ends of file names
  std::string_view line_comments;  // up to the line's end
  std::string_view comment_begin, comment_end;
  std::string_view quotes;       // each encloses a text within a line
  std::string_view long_quotes;  // the same over several lines
  std::string_view keywords;
  enum class Kind { kProgram, kData, kTags } kind = Kind::kProgram;
};

namespace {

using enum Language::Kind;

constexpr std::array kLanguages = {
    Language{
        " c h cpp c++ cc cxx hpp hh hxx objc m cuda cu glsl arduino ino ", " // ", "/*", "*/", "\"'", "",
        " alignas alignof auto bool break case catch char class co_await co_return co_yield concept const consteval "
        "constexpr constinit continue decltype default delete do double else enum explicit export extern false "
        "final float for friend goto if inline int long mutable namespace new noexcept nullptr operator override "
        "private protected public requires return short signed sizeof static static_assert struct switch template "
        "this throw true try typedef typename union unsigned using virtual void volatile while NULL "},
    Language{
        " java kt kts kotlin cs csharp c# scala swift dart groovy ", " // ", "/*", "*/", "\"'", " \"\"\" ",
        " abstract actor as async await base boolean break byte case catch char class companion const continue data "
        "default defer def do double else enum extends extension false final finally float for foreach fun func "
        "guard if implements import in init inner instanceof int interface internal is let long module mut "
        "namespace native new nil null object open operator out override package private protected protocol public "
        "readonly record return sealed self short static string struct super switch this throw throws trait true "
        "try type typealias using val var virtual void volatile when where while with yield "},
    Language{
        " js jsx mjs cjs javascript node ts tsx typescript ", " // ", "/*", "*/", "\"'", " ` ",
        " abstract any as async await boolean break case catch class const continue debugger declare default delete "
        "do else enum export extends false finally for from function get if implements import in infer instanceof "
        "interface keyof let namespace new null number of private protected public readonly return satisfies set "
        "static string super switch this throw true try type typeof undefined unknown var void while yield "},
    Language{
        " go golang ", " // ", "/*", "*/", "\"'", " ` ",
        " any bool break byte case chan const continue default defer else error fallthrough false float64 for func "
        "go goto if import int int64 interface iota map nil package range return rune select string struct switch "
        "true type uint var "},
    Language{
        " rs rust ", " // ", "/*", "*/", "\"'", "",
        " as async await bool break char const continue crate dyn else enum extern false f32 f64 fn for i32 i64 if "
        "impl in let loop match mod move mut pub ref return self Self static str struct super trait true type u8 "
        "u32 u64 unsafe use usize where while "},
    Language{" py python py3 python3 pyi gyp bzl ", " # ", "", "", "\"'", " \"\"\" ''' ",
             " and as assert async await break case class continue def del elif else except False finally for from "
             "global if import in is lambda match None nonlocal not or pass raise return self True try while with "
             "yield "},
    Language{" rb ruby gemspec rake ", " # ", "", "", "\"'", "",
             " alias and begin break case class def defined? do else elsif end ensure false for if in module next nil "
             "not or raise redo require rescue retry return self super then true undef unless until when while yield "},
    Language{
        " php ", " // # ", "/*", "*/", "\"'", "",
        " abstract array as break case catch class const continue default do echo else elseif extends false final "
        "finally fn for foreach function global if implements interface match namespace new null private protected "
        "public readonly require return static switch this throw trait true try use var while yield "},
    Language{" sh bash zsh shell ksh fish console dockerfile docker ", " # ", "", "", "\"'", "",
             " alias break case cd continue do done echo elif else esac eval exec exit export fi for function if in "
             "local read return select set shift source test then trap unset until while FROM RUN COPY ADD ENV ARG CMD "
             "ENTRYPOINT WORKDIR EXPOSE USER VOLUME LABEL "},
    Language{" sql mysql postgres postgresql sqlite plsql ", " -- ", "/*", "*/", "\"'", "",
             " add all alter and as asc begin between by case check commit create cross cascade default delete desc "
             "distinct drop else end exists false foreign from full group having if in index inner insert int integer "
             "into is join key left like limit not null on or order outer primary references returning right rollback "
             "select set table text then true union unique update using values varchar view when where with "},
    Language{" lua ", " -- ", "--[[", "]]", "\"'", "",
             " and break do else elseif end false for function goto if in local nil not or repeat return then true "
             "until while "},
    Language{" hs haskell ml ocaml elm ", " -- ", "{-", "-}", "\"", "",
             " case class data deriving do else if import in instance let module newtype of then type where match with "
             "fun rec val open begin end "},
    Language{" json jsonc json5 jsonl ndjson ", " // ", "/*", "*/", "\"", "", " true false null ", kData},
    Language{" yaml yml toml ini cfg conf properties env ", " # ; ", "", "", "\"'", "",
             " true false null yes no on off ", kData},
    Language{" css scss less ", " // ", "/*", "*/", "\"'", "", " important media import keyframes supports ", kData},
    Language{" html xml svg xhtml vue svelte htm xsd plist ", "", "<!--", "-->", "\"'", "", "", kTags},
    Language{
        " make makefile mk cmake ", " # ", "", "", "\"", "",
        " define else endef endif ifdef ifeq ifndef ifneq include override export unexport function endfunction "
        "foreach endforeach if elseif macro endmacro set target_link_libraries add_library add_executable option "},
    Language{" pl perl r jl julia nim elixir ex exs ", " # ", "", "", "\"'", "",
             " and begin break case def defmodule do else elsif end false fn for foreach function if in last let local "
             "module my next not or our package return sub then true undef unless until use using while "},
};

bool HasWord(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    if (at > 0 && words[at - 1] == ' ' && at + word.size() < words.size() && words[at + word.size()] == ' ')
      return true;
  }
  return false;
}

const Language* LanguageOf(std::string_view name) {
  name = Trimmed(name.substr(0, name.find_first_of(" \t{,")));
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
  const std::string wanted = LowerCase(name);
  if (wanted.empty()) return nullptr;
  const auto found =
      std::ranges::find_if(kLanguages, [&](const Language& language) { return HasWord(language.names, wanted); });
  return found == kLanguages.end() ? nullptr : &*found;
}

bool IsWordLetter(char c) { return IsAsciiLetter(c) || (c >= '0' && c <= '9') || c == '_' || c == '$'; }

// The word of the list that the line has at this place; empty if none.
std::string_view WordAt(std::string_view words, std::string_view line, std::size_t at) {
  while (!words.empty()) {
    const std::size_t begin = std::min(words.find_first_not_of(' '), words.size());
    words.remove_prefix(begin);
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(word.size());
    if (!word.empty() && line.substr(at).starts_with(word)) return word;
  }
  return {};
}

}  // namespace

Style::Role RoleOfDiffLine(std::string_view line) {
  return line.starts_with('+')    ? Style::kAdded
         : line.starts_with('-')  ? Style::kRemoved
         : line.starts_with("@@") ? Style::kAccent
         : line.starts_with(' ')  ? Style::kPlain
                                  : Style::kDim;
}

CodeColours::CodeColours(std::string_view name, const Style& style)
    : style_(style),
      is_diff_(HasWord(" diff patch ", name.substr(0, name.find_first_of(" \t")))),
      language_(style.has_colour() ? LanguageOf(name) : nullptr) {}

// A mark such as # begins a comment only where a word can begin: not in $# or ${#x}.
bool CodeColours::BeginsComment(std::string_view line, std::size_t at) const {
  const std::string_view mark = WordAt(language_->line_comments, line, at);
  return !mark.empty() && (mark.size() > 1 || at == 0 || line[at - 1] == ' ');
}

// The end of a text in quotes. A quote that is not closed soon is a lifetime or an apostrophe: not a text.
std::size_t CodeColours::EndOfText(std::string_view line, std::size_t at) const {
  const char quote = line[at];
  std::size_t end = at + 1;
  while (end < line.size() && line[end] != quote) end += line[end] == '\\' ? 2 : 1;
  if (end >= line.size()) return quote == '\'' ? at + 1 : line.size();
  const bool is_letter = quote == '\'' && HasWord(language_->names, "rs");
  const bool is_one = line[at + 1] == '\\' || Utf8Prefix(line.substr(at + 1), 1).size() == end - at - 1;
  return is_letter && !is_one ? at + 1 : end + 1;
}

// Up to the end of the comment or text that is open.
std::size_t CodeColours::EndOfOpen(std::string_view line, std::size_t from) {
  const std::size_t end = line.find(open_, from);
  if (end == std::string_view::npos) return line.size();
  const std::size_t behind = end + open_.size();
  open_ = {};
  return behind;
}

std::size_t CodeColours::EndOfToken(std::string_view line, std::size_t at, Style::Role& role) {
  const Language& language = *language_;
  const char c = line[at];
  if (!language.comment_begin.empty() && line.substr(at).starts_with(language.comment_begin)) {
    open_ = language.comment_end;
    role = open_role_ = Style::kComment;
    return EndOfOpen(line, at + language.comment_begin.size());
  }
  if (BeginsComment(line, at)) {
    role = Style::kComment;
    return line.size();
  }
  if (const std::string_view mark = WordAt(language.long_quotes, line, at); !mark.empty()) {
    open_ = mark;
    role = open_role_ = Style::kString;
    return EndOfOpen(line, at + mark.size());
  }
  if (language.kind == kTags && c == '<') in_tag_ = true;
  if (language.kind == kTags && c == '>') in_tag_ = false;
  if (language.quotes.find(c) != std::string_view::npos && (language.kind != kTags || in_tag_)) {
    const std::size_t end = EndOfText(line, at);
    const std::size_t next = std::min(line.find_first_not_of(' ', end), line.size());
    const bool is_key = language.kind == kData && next < line.size() && line[next] == ':';
    if (end > at + 1) role = is_key ? Style::kKeyword : Style::kString;
    return end;
  }
  if (!IsWordLetter(c)) return at + 1;
  std::size_t end = at;
  const bool is_number = c >= '0' && c <= '9';
  while (end < line.size() && (IsWordLetter(line[end]) || (is_number && line[end] == '.'))) ++end;
  const std::string_view word = line.substr(at, end - at);
  const bool is_tag = language.kind == kTags && in_tag_ && at > 0 && (line[at - 1] == '<' || line[at - 1] == '/');
  const bool is_key =
      language.kind == kData && end < line.size() && (line[end] == ':' || line.substr(end).starts_with(" ="));
  if (is_number) {
    role = Style::kNumber;
  } else if (is_tag || is_key || HasWord(language.keywords, word) ||
             (language.line_comments == " -- " && HasWord(language.keywords, LowerCase(word)))) {
    role = Style::kKeyword;
  }
  return end;
}

std::string CodeColours::Paint(std::string_view line) {
  if (is_diff_) return style_.Paint(RoleOfDiffLine(line), line);
  if (language_ == nullptr) return std::string(line);
  std::string painted;
  std::size_t at = 0;
  if (!open_.empty()) {
    at = EndOfOpen(line, 0);
    painted = style_.Paint(open_role_, line.substr(0, at));
  }
  std::size_t plain_from = at;
  while (at < line.size()) {
    Style::Role role = Style::kPlain;
    const std::size_t end = EndOfToken(line, at, role);
    if (role != Style::kPlain) {
      painted += line.substr(plain_from, at - plain_from);
      painted += style_.Paint(role, line.substr(at, end - at));
      plain_from = end;
    }
    at = end;
  }
  return painted + std::string(line.substr(std::min(plain_from, line.size())));
}

}  // namespace reprise
