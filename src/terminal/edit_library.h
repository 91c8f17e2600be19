#pragma once

#include <histedit.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/shared_library.h"
#include "base/terminal_text.h"
#include "base/text.h"

// libedit, and what LineEditor makes of its keys.
namespace reprise {

// Looked up at run time, like libcurl, because only terminal clients need it.
struct EditLibrary : SharedLibrary {
  EditLibrary() : SharedLibrary(kEditLibrary) {}

  decltype(&::el_init_fd) init = Find("el_init_fd");
  decltype(&::el_end) end = Find("el_end");
  decltype(&::el_wset) set = Find("el_wset");
  decltype(&::el_wget) get = Find("el_wget");
  decltype(&::el_wgets) gets = Find("el_wgets");
  decltype(&::el_wline) line = Find("el_wline");
  decltype(&::el_winsertstr) insert = Find("el_winsertstr");
  decltype(&::el_deletestr) remove = Find("el_deletestr");
  decltype(&::el_cursor) move = Find("el_cursor");
  decltype(&::el_resize) resize = Find("el_resize");
  decltype(&::history_winit) history_init = Find("history_winit");
  decltype(&::history_wend) history_end = Find("history_wend");
  decltype(&::history_w) history = Find("history_w");
};

// Its characters.
inline std::wstring Wide(std::string_view text) {
  const std::string valid = ToValidUtf8(text);
  std::wstring wide;
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view next = Utf8Prefix(rest, 1);
    rest.remove_prefix(next.size());
    if (next != std::string_view("\0", 1))
      wide += static_cast<wchar_t>(CodePointOf(next));  // libedit takes it for an end
  }
  return wide;
}

inline std::string Narrow(std::wstring_view wide) {
  std::string text;
  for (const wchar_t character : wide) text += Utf8Of(static_cast<char32_t>(character));
  return text;
}

// Keys of libedit that are in no table of keys, and make the next key literal, or swap or mark texts.
constexpr const wchar_t* kUnused[] = {L"^V", L"^Q", L"^S", L"^]", L"^^", L"^_"};
// Keys that move by a character as a person sees it, or delete one; the others have another meaning in vi's command
// mode.
constexpr std::pair<const wchar_t*, const wchar_t*> kOfCharacters[] = {{L"\\e[C", L"reprise-right"},
                                                                       {L"\\e[D", L"reprise-left"},
                                                                       {L"\\e[3~", L"reprise-delete"},
                                                                       {L"^D", L"reprise-delete"}};
constexpr std::pair<const wchar_t*, const wchar_t*> kOfInsertedCharacters[] = {
    {L"^H", L"reprise-erase"}, {L"^?", L"reprise-erase"}, {L"^B", L"reprise-left"}, {L"^F", L"reprise-right"}};
// Commands of vi that libedit has for lines of a shell: they would search in its own history, send the text as a
// comment, or run commands of its own.
constexpr std::pair<const wchar_t*, const wchar_t*> kViCommands[] = {
    {L"k", L"reprise-up"},      {L"\\055", L"reprise-up"},  {L"j", L"reprise-down"},    {L"+", L"reprise-down"},
    {L"v", L"reprise-editor"},  {L"/", L"reprise-nothing"}, {L"?", L"reprise-nothing"}, {L"n", L"reprise-nothing"},
    {L"N", L"reprise-nothing"}, {L"#", L"reprise-nothing"}, {L":", L"reprise-nothing"}, {L"@", L"reprise-nothing"},
    {L"_", L"reprise-nothing"}, {L"G", L"reprise-nothing"}, {L"K", L"reprise-nothing"}, {L"J", L"reprise-nothing"},
    {L"=", L"reprise-nothing"}};

}  // namespace reprise
