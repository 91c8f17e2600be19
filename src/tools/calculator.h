#pragma once

#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Evaluates an arithmetic expression: + - * / % ^ (or **), parentheses, decimals, scientific notation, pi, e, and the
// functions abs ceil cos exp floor ln log (base 10) max min round sin sqrt tan (radians). Unary minus binds less
// tightly than ^, and ^ groups to the right, as on paper. Computes in doubles. kInvalidArgument, with a message for the
// model, if it is not an expression or has no finite value.
Result<double> EvaluateExpression(std::string_view expression);

// Whole numbers have no fraction, others up to 15 significant digits (so 0.1+0.2 is 0.3).
std::string FormatNumber(double value);

}  // namespace reprise
