#include "terminal/run_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/terminal_text.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

std::string SizeText(std::uint64_t bytes) {
  constexpr std::uint64_t kKilo = 1000, kMega = 1000 * 1000;
  if (bytes < kKilo) return Counted(bytes, "byte");
  if (bytes < kMega) return std::to_string((bytes + kKilo / 2) / kKilo) + " KB";
  return std::to_string(bytes / kMega) + "." + std::to_string(bytes % kMega / (kMega / 10)) + " MB";
}

}  // namespace

std::string FileText(const Attachment& file) {
  const std::string kind = file.mime_type.starts_with("image/") ? "image " : "";
  std::string text = "[" + kind + VisibleLine(file.filename) + ", " + SizeText(file.size_bytes) + "]";
  if (!file.note.empty()) text += " " + VisibleLine(file.note);
  return text;
}

namespace {

// The place of a provider's key.
std::string KeyOf(std::string_view provider) {
  const std::string setting = "\"api_key\" of provider " + VisibleLine(provider) + " in the configuration";
  if (provider == "openai") return "OPENAI_API_KEY, or " + setting;
  if (provider == "anthropic") return "ANTHROPIC_API_KEY, or " + setting;
  return setting;
}

}  // namespace

std::string NextStep(std::string_view code, std::string_view model) {
  if (code == "provider_auth") {
    const std::string_view provider = model.substr(0, model.find('/'));
    return "the key is " + KeyOf(provider) +
           ": set it and start Reprise again, then /continue tries again; `reprise doctor` tests it";
  }
  if (code == "provider_context_length" || code == "context_length") {
    return "/compact MESSAGE sends a summary in place of what was said before; /undo takes the message back";
  }
  if (code == "provider_not_found")
    return "/model lists the models, and /model NAME chooses one; /continue tries again";
  return "/continue tries again";
}

namespace {

constexpr char kEscape = '\x1b';

// The style of the text that follows.
class Paint {
 public:
  // `parameters`: "1;31".
  void Take(std::string_view parameters) {
    std::vector<int> codes;
    for (std::size_t at = 0; at <= parameters.size();) {
      const std::size_t end = std::min(parameters.find(';', at), parameters.size());
      int code = 0;  // an omitted number is 0
      const auto [rest, error] = std::from_chars(parameters.data() + at, parameters.data() + end, code);
      if (error == std::errc::result_out_of_range || (error == std::errc() && rest != parameters.data() + end)) return;
      codes.push_back(code);
      at = end + 1;
    }
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const int code = codes[i];
      if (code == 38 || code == 48) {
        const auto colour = TakeColour(codes, i);
        if (code == 38) colour_ = colour;
      } else {
        TakeOne(code);
      }
    }
  }

  std::string sequence() const {
    std::string codes;
    for (const auto& [is_on, code] : {std::pair(bold_, 1), std::pair(dim_, 2), std::pair(italic_, 3),
                                      std::pair(underlined_, 4), std::pair(colour_ != 0, colour_)}) {
      if (is_on) codes += (codes.empty() ? "" : ";") + std::to_string(code);
    }
    return codes.empty() ? "" : "\x1b[" + codes + "m";
  }

 private:
  void TakeOne(int code) {
    if (code == 0) *this = {};
    if (code == 1) bold_ = true;
    if (code == 2) dim_ = true;
    if (code == 3) italic_ = true;
    if (code == 4) underlined_ = true;
    if (code == 22) bold_ = dim_ = false;
    if (code == 23) italic_ = false;
    if (code == 24) underlined_ = false;
    if (code == 39) colour_ = 0;
    if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour_ = Readable(code);
  }

  // The colours that are readable on dark and on light; 0 for the default one.
  static int Readable(int code) { return code % 10 == 0 || code % 10 == 7 ? 0 : code; }

  // "5;N" or "2;R;G;B" after index `i`: the nearest of the 16. Moves `i` to its end.
  static int TakeColour(const std::vector<int>& codes, std::size_t& i) {
    const auto at = [&](std::size_t n) { return i + n < codes.size() ? codes[i + n] : 0; };
    int red = at(2), green = at(3), blue = at(4);
    if (at(1) == 5) {
      const int number = at(2);
      i = std::min(i + 2, codes.size());
      if (number < 16) return Readable(number < 8 ? 30 + number : 82 + number);  // 8 is 90
      if (number > 231) return 0;
      red = (number - 16) / 36, green = (number - 16) / 6 % 6, blue = (number - 16) % 6;
    } else if (at(1) == 2) {
      i = std::min(i + 4, codes.size());
    } else {
      return 0;
    }
    const int most = std::max({red, green, blue});
    const auto bit = [most](int part, int value) { return most > 0 && part * 2 > most ? value : 0; };
    return Readable(30 + bit(red, 1) + bit(green, 2) + bit(blue, 4));
  }

  bool bold_ = false, dim_ = false, italic_ = false, underlined_ = false;
  int colour_ = 0;
};

// Draws one line, beginning with the style of the line before.
std::string OutputLine(std::string_view line, bool has_colour, Paint& paint, bool& is_blank) {
  std::string shown, plain;
  const auto put_plain = [&] {
    shown += VisibleLine(plain);
    plain.clear();
  };
  const auto begin = [&] {
    shown = has_colour ? paint.sequence() : "";
    plain.clear();
    is_blank = true;
  };
  begin();
  bool returns = false;  // the following text overwrites the line
  while (!line.empty()) {
    std::size_t length = line[0] == kEscape ? ControlSequenceLength(line) : 0;
    if (line[0] == '\r') {
      returns = true;
      length = 1;
    } else if (length > 0) {
      const std::string_view sequence = line.substr(0, length);
      const bool erases = sequence.ends_with('K') && sequence[1] == '[';
      if (returns && erases) begin();
      if (sequence.ends_with('m') && sequence[1] == '[') {
        put_plain();
        paint.Take(sequence.substr(2, length - 3));
        if (has_colour) shown += std::string(kPaintReset) + paint.sequence();
      }
    } else {
      if (std::exchange(returns, false)) begin();
      is_blank = is_blank && (line[0] == ' ' || line[0] == '\t');
      plain += line[0];
      length = 1;
    }
    line.remove_prefix(length);
  }
  put_plain();
  if (shown.find(kEscape) != std::string::npos) shown += kPaintReset;
  return WithoutTabs(shown);
}

}  // namespace

std::vector<std::string> OutputLines(std::string_view text, const Style& style) {
  std::vector<std::string> lines;
  Paint paint;
  std::size_t blank = 0;
  const auto count_blank = [&] {
    if (blank > kMostBlankLines) {
      lines.resize(lines.size() - blank);
      lines.push_back("<" + Counted(blank, "blank line") + ">");
    }
    blank = 0;
  };
  for (const std::string& line : LinesOf(text)) {
    bool is_blank = true;
    std::string shown = OutputLine(line, style.has_colour(), paint, is_blank);
    if (!is_blank) count_blank();
    lines.push_back(std::move(shown));
    blank += is_blank ? 1 : 0;
  }
  count_blank();
  return lines;
}

}  // namespace reprise
