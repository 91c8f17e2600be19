#include "engine/prompt_alignment.h"

#include <algorithm>
#include <limits>

namespace reprise {
namespace {

constexpr std::string_view kBlankLine = "\n\n";

// Whether `text` is `pattern` with some values.
bool Matches(std::string_view text, std::string_view pattern) {
  std::size_t star = pattern.find(kAnyValue);
  if (star == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + kAnyValue.size());
  while ((star = pattern.find(kAnyValue)) != pattern.npos) {
    const std::size_t at = text.find(pattern.substr(0, star));
    if (at == text.npos) return false;
    text.remove_prefix(at + star);
    pattern.remove_prefix(star + kAnyValue.size());
  }
  return text.ends_with(pattern);
}

// Paragraphs that no module explains cost as much as a module without paragraphs.
class Alignment {
 public:
  Alignment(std::string_view recorded, const std::vector<PresentModule>& modules)
      : recorded_(recorded), modules_(modules) {
    for (std::size_t at = 0; !recorded.empty() && at != recorded.npos;) {
      begins_.push_back(at);
      at = recorded.find(kBlankLine, at);
      while (at != recorded.npos && recorded.substr(at + kBlankLine.size()).starts_with('\n')) ++at;
      if (at != recorded.npos) at += kBlankLine.size();
    }
    paragraphs_ = begins_.size();
    begins_.push_back(recorded.size() + kBlankLine.size());
    Solve();
  }

  std::vector<PromptGap> Gaps() const {
    std::vector<PromptGap> gaps(1);
    for (std::size_t m = 0, p = 0; m < modules_.size() || p < paragraphs_;) {
      const Step& step = steps_[m * (paragraphs_ + 1) + p];
      if (!step.is_match && step.modules > 0) gaps.back().modules.push_back(&modules_[m]);
      if (!step.is_match && step.paragraphs > 0) {
        gaps.back().text += (gaps.back().text.empty() ? "" : kBlankLine);
        gaps.back().text += Text(p, p + step.paragraphs);
      }
      if (step.is_match) gaps.emplace_back();
      m += step.modules, p += step.paragraphs;
    }
    return gaps;
  }

 private:
  struct Step {
    std::size_t cost = 0, modules = 0, paragraphs = 0;
    bool is_match = false;
  };
  static constexpr std::size_t kLeftOver = 10, kMayBeEmpty = 1, kAnyParagraph = 9, kMostOfValue = 64;

  std::string_view Text(std::size_t first, std::size_t end) const {
    return recorded_.substr(begins_[first], begins_[end] - kBlankLine.size() - begins_[first]);
  }

  // From the end to the beginning.
  void Solve() {
    const std::size_t row = paragraphs_ + 1;
    steps_.resize((modules_.size() + 1) * row);
    for (std::size_t m = modules_.size() + 1; m-- > 0;) {
      for (std::size_t p = paragraphs_ + 1; p-- > 0;) {
        if (m == modules_.size() && p == paragraphs_) continue;
        Step best{.cost = std::numeric_limits<std::size_t>::max()};
        const auto consider = [&](std::size_t cost, std::size_t modules, std::size_t paragraphs, bool is_match) {
          cost += steps_[(m + modules) * row + p + paragraphs].cost;
          if (cost < best.cost) best = {cost, modules, paragraphs, is_match};
        };
        if (m < modules_.size()) {
          const PresentModule& module = modules_[m];
          const std::size_t most = std::min(paragraphs_ - p, module.may_be_empty() ? kMostOfValue : paragraphs_);
          const std::string_view rest = recorded_.substr(std::min(begins_[p], recorded_.size()));
          const bool begins = rest.starts_with(module.pattern.substr(0, module.pattern.find(kAnyValue)));
          for (std::size_t n = 1; begins && n <= most; ++n) {
            const std::string_view text = Text(p, p + n);
            if (!module.may_be_empty() && text.size() > module.pattern.size()) break;
            if (text == module.text) {
              consider(0, 1, n, true);
            } else if (Matches(text, module.pattern)) {
              consider(kAnyParagraph * n, 1, n, true);
            }
          }
          consider(module.may_be_empty() ? kMayBeEmpty : kLeftOver, 1, 0, false);
        }
        if (p < paragraphs_) consider(kLeftOver, 0, 1, false);
        steps_[m * row + p] = best;
      }
    }
  }

  const std::string_view recorded_;
  const std::vector<PresentModule>& modules_;
  std::vector<std::size_t> begins_;  // of the paragraphs, and one behind the last
  std::size_t paragraphs_ = 0;
  std::vector<Step> steps_;  // the best one, by module and paragraph
};

}  // namespace

std::vector<PromptGap> AlignPrompt(std::string_view recorded, const std::vector<PresentModule>& modules) {
  return Alignment(recorded, modules).Gaps();
}

}  // namespace reprise
