#include "terminal/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "terminal/edit_library.h"
#include "terminal/edit_window.h"
#include "terminal/own_programs.h"
#include "terminal/terminal_input.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr std::size_t kHistory = 500;
// Stands for the text that was chosen in a menu; no terminal sends it.
constexpr const wchar_t* kTakeKey = L"\x1b[9001~";
// Esc, which libedit would take for the beginning of a longer key.
constexpr const wchar_t* kViEscape = L"\x1b[9002~";
constexpr int kLeastEditRows = 3;  // of the edited text
constexpr std::wstring_view kWidePasteEnd = L"\x1b[201~";

// The library counts columns by the locale's character set.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

class LibEdit final : public LineEditor {
 public:
  LibEdit(const EditLibrary& library, KeySource& keys, std::FILE* out, bool can_move_cursor)
      : library_(library), keys_(keys), out_(out), nowhere_(can_move_cursor ? std::fopen("/dev/null", "we") : nullptr) {
    edit_ =
        library_.init("reprise", stdin, draws() ? nowhere_ : out, stderr, STDIN_FILENO, ::fileno(out), STDERR_FILENO);
    if (edit_ == nullptr) return;
    history_ = library_.history_init();
    HistEventW event;
    library_.history(history_, &event, H_SETSIZE, static_cast<int>(kHistory));
    library_.set(edit_, EL_CLIENTDATA, this);
    library_.set(edit_, EL_HIST, library_.history, history_);
    library_.set(edit_, EL_PROMPT, &LibEdit::PromptOf);
    library_.set(edit_, EL_GETCFN, &LibEdit::Character);
    library_.set(edit_, EL_ADDFN, L"reprise-paste", L"takes a paste as it is", &LibEdit::Paste);
    library_.set(edit_, EL_ADDFN, L"reprise-newline", L"begins another line", &LibEdit::NewLine);
    library_.set(edit_, EL_ADDFN, L"reprise-nothing", L"does nothing", &LibEdit::Nothing);
    library_.set(edit_, EL_ADDFN, L"reprise-up", L"the line above, or what was entered before", &LibEdit::Up);
    library_.set(edit_, EL_ADDFN, L"reprise-down", L"the line below, or what was entered next", &LibEdit::Down);
    library_.set(edit_, EL_ADDFN, L"reprise-complete", L"completes", &LibEdit::Complete);
    library_.set(edit_, EL_ADDFN, L"reprise-take", L"takes what was chosen in a menu", &LibEdit::Take);
    library_.set(edit_, EL_ADDFN, L"reprise-editor", L"opens the person's own editor", &LibEdit::OwnEditor);
    library_.set(edit_, EL_ADDFN, L"reprise-unfold", L"unfolds", &LibEdit::Outside<Command::kUnfold>);
    library_.set(edit_, EL_ADDFN, L"reprise-picture", L"attaches a picture", &LibEdit::Outside<Command::kPicture>);
    library_.set(edit_, EL_ADDFN, L"reprise-mode", L"the next mode", &LibEdit::Outside<Command::kNextMode>);
    library_.set(edit_, EL_ADDFN, L"reprise-search", L"searches", &LibEdit::Outside<Command::kSearch>);
    library_.set(edit_, EL_ADDFN, L"reprise-transcript", L"the transcript", &LibEdit::Transcript);
    library_.set(edit_, EL_ADDFN, L"reprise-keys", L"shows the keys", &LibEdit::ShowKeys);
    library_.set(edit_, EL_ADDFN, L"reprise-redraw", L"draws the screen again", &LibEdit::RedrawScreen);
    library_.set(edit_, EL_ADDFN, L"reprise-left", L"back by a character", &LibEdit::Left);
    library_.set(edit_, EL_ADDFN, L"reprise-right", L"on by a character", &LibEdit::Right);
    library_.set(edit_, EL_ADDFN, L"reprise-erase", L"deletes the character before the cursor", &LibEdit::Erase);
    library_.set(edit_, EL_ADDFN, L"reprise-delete", L"deletes the character at the cursor", &LibEdit::Delete);
    // A paste may hold characters that the terminal would turn into signals, or that stop its output.
    for (const wchar_t* mode : {L"-isig", L"-icrnl", L"-inlcr", L"-ixon"}) {
      library_.set(edit_, EL_SETTY, L"-d", mode, static_cast<wchar_t*>(nullptr));
    }
    SetKeys(KeyTable(), /*is_vi=*/false);
  }
  ~LibEdit() override {
    if (edit_ != nullptr) library_.end(edit_);
    if (history_ != nullptr) library_.history_end(history_);
    if (nowhere_ != nullptr) std::fclose(nowhere_);
  }
  bool opened() const { return edit_ != nullptr; }

  Came Edit(const std::string& prompt, std::string& text) override {
    prompt_ = Wide(prompt);
    prefill_ = Wide(text);
    cursor_ = given_up_ && prefill_ == cleared_ ? cursor_ : prefill_.size();
    if (!given_up_) changed_past_.clear();
    given_up_ = false;
    key_.clear();
    past_at_ = past_.size();
    drawn_ = {};
    first_row_ = 0;
    Measure();
    int count = 0;
    library_.set(edit_, EL_PREP_TERM, 1);  // earlier than the prompt, so that no paste meets the former mode
    const wchar_t* line = library_.gets(edit_, &count);
    if (given_up_) {
      text = Narrow(cleared_);
      return Came::kGivenUp;
    }
    if (line == nullptr || count <= 0) return Came::kEnd;
    cleared_.assign(line, static_cast<std::size_t>(count));
    while (cleared_.ends_with(L'\n')) cleared_.pop_back();
    text = Narrow(cleared_);
    if (draws() && !draw_all_) Write(Moves(drawn_.row, static_cast<int>(drawn_.rows.size()) - 1) + "\r\n");
    return Came::kLine;
  }

  void Remember(const std::string& text) override {
    HistEventW event;
    past_.push_back(Wide(text));
    if (past_.size() > kHistory) past_.erase(past_.begin());
    library_.history(history_, &event, H_ENTER, past_.back().c_str());
  }
  void ForgetAll() override {
    HistEventW event;
    past_.clear();
    library_.history(history_, &event, H_CLEAR);
  }

  void RememberOlder(const std::vector<std::string>& texts) override {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      past_.insert(past_.begin() + static_cast<std::ptrdiff_t>(i), Wide(texts[i]));
    }
    past_at_ += texts.size();
  }
  std::vector<std::string> Remembered() const override {
    std::vector<std::string> texts;
    for (const std::wstring& text : past_) texts.push_back(Narrow(text));
    return texts;
  }
  bool TakesEscape() const override { return is_vi_ && !IsEmpty(); }

  // Choosing the editor gives all keys their meaning of libedit, so the others follow. The keys of the table hold
  // in vi's command mode too, where letters keep vi's meaning.
  void SetKeys(const KeyTable& keys, bool is_vi) override {
    is_vi_ = is_vi;
    library_.set(edit_, EL_EDITOR, is_vi ? L"vi" : L"emacs");
    const KeyTable usual;
    for (const wchar_t* unused : kUnused) Bind(unused, L"reprise-nothing");
    for (const KeyTable::Row& row : usual.rows()) BindRow(row, L"reprise-nothing");
    for (const auto& [key, function] : kOfCharacters) Bind(key, function);
    for (const auto& [key, function] : kOfInsertedCharacters) {
      library_.set(edit_, EL_BIND, key, function, static_cast<wchar_t*>(nullptr));
    }
    if (is_vi) {
      for (const auto& [key, function] : kViCommands) BindCommand(key, function);
    }
    for (const KeyTable::Row& row : keys.rows()) BindRow(row, row.action->function);
    Bind(L"\\e[200~", L"reprise-paste");
    Bind(L"\\e[201~", L"reprise-nothing");  // the end of a paste whose beginning was lost
    Bind(kTakeKey, L"reprise-take");
    if (is_vi) Bind(kViEscape, L"vi-command-mode");
    library_.set(edit_, EL_BIND, L"?", L"reprise-keys", static_cast<wchar_t*>(nullptr));
  }

  void SetMenu(Menu& menu) override { menu_ = &menu; }
  bool CloseMenu() override {
    if (menu_ == nullptr || !menu_->is_open()) return false;
    menu_->Close();
    return true;
  }
  void SetHooks(Hooks hooks) override { hooks_ = std::move(hooks); }
  void SetDrawAll(std::function<void()> draw) override { draw_all_ = std::move(draw); }

  bool IsEmpty() const override {
    const LineInfoW* const line = library_.line(edit_);
    return prefill_.empty() && line->buffer == line->lastchar;
  }

  int RowsAboveCursor() const override { return drawn_.row; }
  int Rows() const override { return static_cast<int>(Window().rows.size()); }
  void Redraw() override {
    if (!draws()) return static_cast<void>(library_.set(edit_, EL_REFRESH));
    drawn_ = Window();
    std::string text = drawn_.rows.front();
    for (std::size_t i = 1; i < drawn_.rows.size(); ++i) text += "\r\n" + drawn_.rows[i];
    Write(text + Moves(static_cast<int>(drawn_.rows.size()) - 1, drawn_.row) + Column(drawn_.column));
  }

 private:
  // libedit shows only the end of a text that is taller than the terminal, so the text is drawn here, and libedit's own
  // drawing goes nowhere. Not on a terminal that cannot move its cursor.
  bool draws() const { return nowhere_ != nullptr; }

  void Measure() {
    winsize size{};
    if (::ioctl(::fileno(out_), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
    columns_ = std::max<int>(size.ws_col, 2);
    most_rows_ = std::max(size.ws_row / 2, kLeastEditRows);
  }

  EditWindow Window() const {
    const auto [before, behind] = AroundCursor();
    const TypedText edited{prompt_, {before.data(), before.size() + behind.size()}, before.size()};
    return WindowOf(edited, columns_, most_rows_, first_row_);
  }

  static std::string Moves(int from_row, int to_row) {
    if (from_row == to_row) return {};
    return "\x1b[" + std::to_string(std::abs(from_row - to_row)) + (from_row > to_row ? "A" : "B");
  }
  static std::string Column(int column) { return column == 0 ? "\r" : "\r\x1b[" + std::to_string(column) + "C"; }
  void Write(const std::string& text) const {
    std::fputs(text.c_str(), out_);
    std::fflush(out_);
  }

  // Draws what has changed.
  void Show() {
    if (!draws() || pastes_) return;
    const EditWindow now = Window();
    if (now == drawn_) return;
    if (now.rows.size() != drawn_.rows.size()) {
      if (draw_all_) return draw_all_();
      Write(Moves(drawn_.row, 0) + "\r\x1b[J");
      return Redraw();
    }
    std::string text;
    int row = drawn_.row;
    for (std::size_t i = 0; i < now.rows.size(); ++i) {
      if (now.rows[i] == drawn_.rows[i]) continue;
      LineChange change = ChangeOfLine(drawn_.rows[i], now.rows[i]);
      // Behind the last column this would erase the last character.
      constexpr std::string_view kErase = "\x1b[K";
      const bool is_full = DisplayWidth(now.rows[i]) >= columns_ && change.text.ends_with(kErase);
      if (is_full) change.text.resize(change.text.size() - kErase.size());
      text += Moves(row, static_cast<int>(i)) + Column(change.column) + change.text;
      row = static_cast<int>(i);
    }
    Write(text + Moves(row, now.row) + Column(now.column));
    drawn_ = now;
  }

  static LibEdit& Of(::EditLine* edit, const EditLibrary& library) {
    void* self = nullptr;
    library.get(edit, EL_CLIENTDATA, &self);
    return *static_cast<LibEdit*>(self);
  }
  static LibEdit& Of(::EditLine* edit) { return Of(edit, *loaded_); }
  static wchar_t* PromptOf(::EditLine* edit) { return Of(edit).prompt_.data(); }
  static int Character(::EditLine* edit, wchar_t* character) { return Of(edit).NextCharacter(*character) ? 1 : -1; }
  static unsigned char Paste(::EditLine* edit, wint_t) { return Of(edit).TakePaste(); }
  static unsigned char NewLine(::EditLine* edit, wint_t) { return Of(edit).Insert(L"\n"); }
  static unsigned char Nothing(::EditLine*, wint_t) { return CC_NORM; }
  static unsigned char Complete(::EditLine* edit, wint_t) { return Of(edit).CompleteLine(); }
  static unsigned char Take(::EditLine* edit, wint_t) { return Of(edit).TakeChosen(); }
  template <Command kCommand>
  static unsigned char Outside(::EditLine* edit, wint_t) {
    return Of(edit).RunCommand(kCommand);
  }
  static unsigned char Transcript(::EditLine* edit, wint_t) { return Of(edit).ShowTranscript(); }
  static unsigned char ShowKeys(::EditLine* edit, wint_t key) { return Of(edit).ShowKeysOrInsert(key); }
  static unsigned char RedrawScreen(::EditLine* edit, wint_t) {
    Of(edit).keys_.Resized();
    return CC_NORM;
  }
  static unsigned char OwnEditor(::EditLine* edit, wint_t) { return Of(edit).OpenOwnEditor(); }
  static unsigned char Left(::EditLine* edit, wint_t) { return Of(edit).GoLeft(); }
  static unsigned char Right(::EditLine* edit, wint_t) { return Of(edit).GoRight(); }
  static unsigned char Erase(::EditLine* edit, wint_t) { return Of(edit).EraseCharacter(); }
  static unsigned char Delete(::EditLine* edit, wint_t key) { return Of(edit).DeleteCharacter(key); }
  static unsigned char Up(::EditLine* edit, wint_t) { return Of(edit).GoUp(); }
  static unsigned char Down(::EditLine* edit, wint_t) { return Of(edit).GoDown(); }

  // Also in vi's command mode, whose keys are in the other map.
  void Bind(const wchar_t* keys, const wchar_t* function) {
    library_.set(edit_, EL_BIND, keys, function, static_cast<wchar_t*>(nullptr));
    if (is_vi_) BindCommand(keys, function);
  }
  void BindCommand(const wchar_t* keys, const wchar_t* function) {
    library_.set(edit_, EL_BIND, L"-a", keys, function, static_cast<wchar_t*>(nullptr));
  }

  void BindRow(const KeyTable::Row& row, const wchar_t* function) {
    if (row.action->function == nullptr) return;
    for (const std::string& key : row.keys) {
      Bind(KeySequence(key).c_str(), function);
      // Terminals have two codes for these.
      if (key == "home") Bind(L"\\e[H", function);
      if (key == "end") Bind(L"\\e[F", function);
    }
  }

  bool GiveUp() {
    given_up_ = true;
    const LineInfoW* const line = library_.line(edit_);
    cleared_.assign(line->buffer, line->lastchar);
    cursor_ = static_cast<std::size_t>(line->cursor - line->buffer);
    return false;
  }

  // The prompt is already drawn, alone in its row.
  void Prefill() {
    const std::size_t size = prefill_.size();
    library_.insert(edit_, std::exchange(prefill_, {}).c_str());
    library_.move(edit_, static_cast<int>(cursor_) - static_cast<int>(size));
    if (draws()) return;
    std::fputs("\r", out_);
    Redraw();
  }

  void Replace(const std::wstring& text) {
    const LineInfoW* const line = library_.line(edit_);
    library_.move(edit_, static_cast<int>(line->lastchar - line->cursor));
    library_.remove(edit_, static_cast<int>(line->lastchar - line->buffer));
    library_.insert(edit_, text.c_str());
  }

  // The text up to the cursor, and after it.
  std::pair<std::wstring_view, std::wstring_view> AroundCursor() const {
    const LineInfoW* const line = library_.line(edit_);
    return {{line->buffer, static_cast<std::size_t>(line->cursor - line->buffer)},
            {line->cursor, static_cast<std::size_t>(line->lastchar - line->cursor)}};
  }

  // Moves to the same place of the line above, or its end; from the first line, to the history.
  unsigned char GoUp() {
    const auto [before, behind] = AroundCursor();
    if (const std::size_t end = before.rfind(L'\n'); end != std::wstring_view::npos) {
      const std::size_t place = before.size() - end - 1;
      const std::size_t begin = end == 0 ? 0 : before.rfind(L'\n', end - 1) + 1;
      library_.move(edit_, -static_cast<int>(before.size() - std::min(begin + place, end)));
      return CC_REFRESH;
    }
    if (past_at_ == 0 && hooks_.run) hooks_.run(Command::kOlder);
    if (past_at_ == 0) return CC_ERROR;
    return ShowPast(past_at_ - 1);
  }

  unsigned char GoDown() {
    const auto [before, behind] = AroundCursor();
    if (const std::size_t end = behind.find(L'\n'); end != std::wstring_view::npos) {
      const std::size_t place = before.size() - (before.rfind(L'\n') + 1);
      const std::size_t next_end = std::min(behind.find(L'\n', end + 1), behind.size());
      library_.move(edit_, static_cast<int>(std::min(end + 1 + place, next_end)));
      return CC_REFRESH;
    }
    if (past_at_ >= past_.size()) return CC_ERROR;
    return ShowPast(past_at_ + 1);
  }

  // What was changed of a text stays until the line is entered.
  unsigned char ShowPast(std::size_t at) {
    const auto [before, behind] = AroundCursor();
    const std::wstring text = std::wstring(before) + std::wstring(behind);
    if (past_at_ == past_.size() || text != past_[past_at_]) changed_past_[past_.size() - past_at_] = text;
    past_at_ = at;
    const auto changed = changed_past_.find(past_.size() - at);
    Replace(changed != changed_past_.end() ? changed->second : at < past_.size() ? past_[at] : std::wstring());
    is_from_history_ = true;
    return CC_REFRESH;
  }

  unsigned char GoLeft() {
    const std::wstring_view before = AroundCursor().first;
    if (before.empty()) return CC_ERROR;
    library_.move(edit_, -static_cast<int>(ClusterBefore(before, before.size())));
    return CC_CURSOR;
  }
  unsigned char GoRight() {
    const std::wstring_view behind = AroundCursor().second;
    if (behind.empty()) return CC_ERROR;
    library_.move(edit_, static_cast<int>(ClusterFrom(behind, 0)));
    return CC_CURSOR;
  }
  unsigned char EraseCharacter() {
    const std::wstring_view before = AroundCursor().first;
    if (before.empty()) return CC_ERROR;
    library_.remove(edit_, static_cast<int>(ClusterBefore(before, before.size())));
    return CC_REFRESH;
  }
  unsigned char DeleteCharacter(wint_t key) {
    if (key == (L'D' & 0x1f) && IsEmpty()) return CC_EOF;  // Ctrl-D leaves
    const std::size_t size = AroundCursor().second.empty() ? 0 : ClusterFrom(AroundCursor().second, 0);
    if (size == 0) return CC_ERROR;
    library_.move(edit_, static_cast<int>(size));
    library_.remove(edit_, static_cast<int>(size));
    return CC_REFRESH;
  }

  std::string BeforeCursor() const { return Narrow(AroundCursor().first); }

  // The Tab key without an open menu: completes the line as far as all matches agree, or else shows them.
  unsigned char CompleteLine() {
    if (menu_ == nullptr) return CC_ERROR;
    const std::string before = BeforeCursor();
    OpenMenu(before);
    const std::vector<const MenuItem*> matches = menu_->Matches();
    if (!draws()) menu_->Close();  // it would not be seen
    if (matches.empty()) return CC_ERROR;
    const std::string common = menu_->CommonLine();
    const bool is_longer = common.size() > before.size() && common.starts_with(before);
    if (!is_longer && matches.size() > 1) {
      if (draws()) return CC_NORM;
      for (const MenuItem* const match : matches) std::fputs(("\r\n" + VisibleLine(match->name)).c_str(), out_);
      std::fputs("\r\n", out_);
      return CC_REDISPLAY;
    }
    taken_ = Wide(is_longer ? common : matches.front()->line);
    return TakeChosen();
  }

  // Puts what was chosen in place of the text before the cursor.
  unsigned char TakeChosen() {
    menu_->Close();
    library_.remove(edit_, static_cast<int>(AroundCursor().first.size()));
    library_.insert(edit_, std::exchange(taken_, {}).c_str());
    return CC_REFRESH;
  }

  // Shows the menu for the present line, unless more keys have come, before or while it was made: what they do must not
  // depend on a list that nobody has seen.
  void UpdateMenu() {
    if (menu_ == nullptr || !draws() || pastes_ || keys_.HasKey()) return;
    menu_->Update(BeforeCursor(), !std::exchange(is_from_history_, false));
    if (!keys_.HasKey()) menu_->MarkSeen();
  }

  void OpenMenu(const std::string& before) {
    menu_->Open(before);
    if (!keys_.HasKey()) menu_->MarkSeen();
  }

  // Whether the open menu takes this key. Enter, which may send the line, is not taken if a text follows the cursor.
  bool MenuTakes(const std::string& key) {
    if (menu_ == nullptr || pastes_ || !menu_->is_open()) return false;
    const std::string before = BeforeCursor();
    if (key == "\r") {
      const MenuItem* const entered = menu_->EnteredFor(before);
      if (entered == nullptr) return false;
      taken_ = Wide(entered->line);
      key_ = kTakeKey;
      if (entered->is_whole && AroundCursor().second.empty()) key_ += L'\r';
      return true;
    }
    const bool is_up = key == "\x1b[A" || key == "\x10", is_down = key == "\x1b[B" || key == "\x0e";
    if (key != "\t" && !is_up && !is_down) return false;
    menu_->Update(before, /*opens=*/true);
    if (!menu_->is_open()) return false;
    if (key == "\t") {
      taken_ = Wide(menu_->Chosen()->line);
      key_ = kTakeKey;
    } else {
      menu_->Move(is_up ? -1 : 1);
    }
    return true;
  }

  unsigned char RunCommand(Command command) {
    if (hooks_.run) hooks_.run(command);
    if (command == Command::kSearch && menu_ != nullptr && draws()) OpenMenu(BeforeCursor());
    return CC_NORM;
  }

  // Only if no more has come: "?what" is a text.
  unsigned char ShowKeysOrInsert(wint_t key) {
    if (!IsEmpty() || pastes_ || keys_.HasKey()) return Insert(std::wstring(1, static_cast<wchar_t>(key)));
    return RunCommand(Command::kShowKeys);
  }

  unsigned char ShowTranscript() {
    if (!hooks_.run) return CC_NORM;
    LendTerminal([this] { hooks_.run(Command::kTranscript); });
    keys_.Resized();  // not every pager leaves the screen as it was
    return CC_NORM;
  }

  void LendTerminal(const std::function<void()>& use) {
    library_.set(edit_, EL_PREP_TERM, 0);
    keys_.LeaveTerminal();
    use();
    keys_.ReturnToTerminal();
    library_.set(edit_, EL_PREP_TERM, 1);
  }

  // Opens the text in the person's own editor, in a private file, and reads it back.
  unsigned char OpenOwnEditor() {
    const auto [before, behind] = AroundCursor();
    const std::string text = Narrow(before) + Narrow(behind);
    std::optional<Result<std::string>> edited;
    LendTerminal([&] { edited = EditInOwnEditor(text); });
    if (*edited) {
      Replace(Wide(**edited));
    } else if (hooks_.complain) {
      hooks_.complain(edited->error().message);
    }
    keys_.Resized();  // not every editor leaves the screen as it was
    return draws() ? CC_NORM : CC_REDISPLAY;
  }

  void Suspend() {
    LendTerminal([] { ::raise(SIGSTOP); });
    keys_.Resized();  // the shell has written there
    if (!draws()) Redraw();
  }

  // False if this Edit is over.
  bool NextCharacter(wchar_t& character) {
    if (!prefill_.empty()) Prefill();
    while (key_.empty()) {
      UpdateMenu();
      if (!keys_.HasKey()) Show();
      std::string key;
      switch (keys_.NextKey(key)) {
        case KeySource::Came::kKey:
          if (key == "\r") Show();  // what is sent was seen
          if (!MenuTakes(key)) key_ = key == kEscapeKey && !pastes_ ? kViEscape : Wide(key);
          break;
        case KeySource::Came::kGivenUp:
          return GiveUp();
        case KeySource::Came::kSuspend:
          Suspend();
          break;
        case KeySource::Came::kResized:
          library_.resize(edit_);
          Measure();
          keys_.Resized();
          break;
      }
    }
    character = key_.front();
    key_.erase(0, 1);
    return true;
  }

  // Takes the text between the paste marks of the terminal.
  unsigned char TakePaste() {
    std::wstring pasted;
    wchar_t character = 0;
    pastes_ = true;
    while (!pasted.ends_with(kWidePasteEnd) && NextCharacter(character)) pasted += character;
    pastes_ = false;
    const bool is_whole = pasted.ends_with(kWidePasteEnd);
    if (is_whole) pasted.resize(pasted.size() - kWidePasteEnd.size());
    const std::wstring text = TextOfPaste(pasted);
    if (is_whole) return Insert(hooks_.read_paste ? Wide(hooks_.read_paste(BeforeCursor(), Narrow(text))) : text);
    library_.insert(edit_, text.c_str());
    return GiveUp(), CC_EOF;
  }

  unsigned char Insert(const std::wstring& text) {
    if (text.empty()) return CC_NORM;
    return library_.insert(edit_, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  friend std::unique_ptr<LineEditor> LineEditor::Open(KeySource& keys, bool can_move_cursor);
  static inline const EditLibrary* loaded_ = nullptr;

  const EditLibrary& library_;
  KeySource& keys_;
  std::FILE* const out_;
  std::FILE* const nowhere_;
  EditWindow drawn_;                   // on the terminal now
  mutable std::size_t first_row_ = 0;  // of the window, in the text
  int columns_ = 80, most_rows_ = 12;
  std::function<void()> draw_all_;
  ::EditLine* edit_ = nullptr;
  ::HistoryW* history_ = nullptr;
  std::wstring prompt_, cleared_, prefill_;  // cleared_: the text when it ended
  std::wstring key_;                         // its bytes that libedit has not read
  std::size_t cursor_ = 0;                   // in the text that was given up, or is filled in
  bool given_up_ = false;
  std::vector<std::wstring> past_;  // oldest first
  std::size_t past_at_ = 0;         // the one shown; after the last: none
  // Texts that were changed while one was shown, by their place from the end; 0: the text before one was shown.
  std::map<std::size_t, std::wstring> changed_past_;
  Menu* menu_ = nullptr;
  std::wstring taken_;  // what TakeChosen puts into the line
  bool is_vi_ = false;
  bool pastes_ = false;           // a paste is being read
  bool is_from_history_ = false;  // the text was not typed
  Hooks hooks_;
};

}  // namespace

std::unique_ptr<LineEditor> LineEditor::Open(KeySource& keys, bool can_move_cursor) {
  std::FILE* const out = ::isatty(STDOUT_FILENO) != 0 ? stdout : ::isatty(STDERR_FILENO) != 0 ? stderr : nullptr;
  if (::isatty(STDIN_FILENO) == 0 || out == nullptr) return nullptr;
  static const EditLibrary library;
  if (!library.problem().empty()) return nullptr;
  UseUtf8();
  LibEdit::loaded_ = &library;
  auto editor = std::make_unique<LibEdit>(library, keys, out, can_move_cursor);
  if (!editor->opened()) return nullptr;
  return editor;
}

}  // namespace reprise
