#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text_edits.h"
#include "reprise/result.h"

namespace reprise {

// Patches as OpenAI's models write them (https://cookbook.openai.com/examples/gpt4-1_prompting_guide):
//
//   *** Begin Patch
//   *** Update File: src/main.cc
//   @@ int main() {
//      Start();
//   -  Stop();
//   +  StopAll();
//   *** Add File: notes.txt
//   +new line
//   *** Delete File: old.txt
//   *** End Patch

struct PatchHunk {
  std::vector<std::string> anchors;  // lines above it, each below the one before
  std::string old_text, new_text;    // whole lines; no old text: lines are added
  bool at_end = false;               // of the file
};

struct FilePatch {
  enum class Kind { kAdd, kUpdate, kDelete };
  Kind kind = Kind::kUpdate;
  std::string path;
  std::string new_path;          // of kUpdate: the file moves there; empty: it stays
  std::string content;           // of kAdd
  std::vector<PatchHunk> hunks;  // of kUpdate
};

// kInvalidArgument: the message names the line that is wrong. A patch without its end is wrong too.
Result<std::vector<FilePatch>> ParsePatch(std::string_view text);

// The paths that a call of apply_patch names, in order; empty if its patch cannot be read.
std::vector<std::string> PathsInPatch(std::string_view arguments);

// Makes the changes of one file, each in the only place where it fits. kInvalidArgument: the message tells the model
// which hunk does not fit, and where the nearest place is.
Result<EditedText> ApplyHunks(std::string text, const std::vector<PatchHunk>& hunks, Quoting quoting);

}  // namespace reprise
