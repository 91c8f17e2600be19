#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/text_match.h"
#include "reprise/result.h"

namespace reprise {

struct TextEdit {
  std::string old_text, new_text;
  bool replace_all = false;
};

// The edits in the arguments of edit_file: one beside the path, or several in `edits`. kInvalidArgument.
Result<std::vector<TextEdit>> EditsIn(const Json& arguments);

struct EditedText {
  std::string text;
  std::vector<std::string> notes;  // one sentence for each place that was not exactly as wanted
};

// Applies the edits one after the other, all or none. A text must occur exactly once, unless all are to be replaced; if
// it does not occur, the only place that differs in the ways of Likeness counts. kInvalidArgument: the message tells
// the model which edit is wrong, and where the nearest place is.
Result<EditedText> ApplyEdits(std::string text, const std::vector<TextEdit>& edits,
                              Quoting quoting = Quoting::kForbidden);

// "in lines 3, 10 and 17", with the line above each if it may be quoted.
std::string PlacesNamed(std::string_view text, const std::vector<TextPlace>& places, Quoting quoting);

}  // namespace reprise
