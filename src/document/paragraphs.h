#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "document/archive.h"
#include "document/equation.h"
#include "document/list_numbers.h"
#include "document/readers.h"

namespace reprise::document {

// What a program says of a picture or drawing that a text cannot show.
std::string NotShown(std::string_view what, std::string description);

// The numbers of notes, in the order in which the text refers to them.
using NoteNumbers = std::map<std::string, int>;

// Writes the text of a part of docx and pptx: paragraphs of runs, in tables and shapes too.
class Paragraphs {
 public:
  // The numbers are filled while reading the text, and used while reading the notes. Null: there are none.
  Paragraphs(Output& out, NoteNumbers* footnotes, NoteNumbers* endnotes, ListNumbers* lists)
      : out_(out), footnotes_(footnotes), endnotes_(endnotes), lists_(lists) {}

  XmlHandler Handler();

 private:
  void Add(std::string_view text);
  void EndEquation();
  // What the paragraph's and the run's properties say of their text.
  void TakeProperty(const Element& element);
  // Moved or deleted text, properties of before, phonetic guides and slide numbers.
  bool IsLeftOut(const Element& element) const;
  // Whether it is a property that hides its element: a hidden run, a style that hides, a hidden row or shape, a deleted
  // row or cell, or a cell that only continues the one above it.
  bool Hides(const Element& element) const;
  void Refer(NoteNumbers* numbers, const Element& element, const char* before);
  void Begin(const Element& element);
  void End(std::string_view name);
  // Names what cannot be shown: each picture, and each other drawing with a description.
  void Describe(std::string_view name);

  Output& out_;
  NoteNumbers* const footnotes_;
  NoteNumbers* const endnotes_;
  ListNumbers* const lists_;
  int in_text_ = 0, in_cell_ = 0, in_stops_ = 0;  // in_stops_: definitions of tab stops
  int in_run_ = 0, in_row_properties_ = 0, in_paragraph_properties_ = 0;
  int left_out_ = 0;                         // in content that is not shown
  int depth_ = 0, hidden_ = 0;               // hidden_: the depth of the element that its own properties hide, or 0
  std::string description_;                  // of the picture or drawing
  std::optional<ListNumbers::Place> place_;  // of the paragraph; nullopt if its end is deleted
  Equation equation_;
  bool after_equation_ = false;
  int raised_ = 0;  // the run: 1 is superscript, -1 subscript
};

}  // namespace reprise::document
