// The terminal that a command writes to: colours, bars and a block of lines that is redrawn in place.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

enum class Colour { kNone, kGreen, kRed, kYellow, kDim, kBold };

// Colours say state and never carry it alone.
class Palette {
 public:
  explicit Palette(bool enabled) : enabled_(enabled) {}
  std::string Paint(Colour colour, absl::string_view text) const;

 private:
  const bool enabled_;
};

// stdout is a terminal, NO_COLOR is not set and `no_color` is false.
bool ColoursWanted(bool no_color);
bool StdoutIsTerminal();
// Of stdout; 100 where it is not a terminal.
int TerminalWidth();

// ██████▎···  `fraction` of `width` cells, in eighths of a cell.
std::string Bar(double fraction, int width);
// ▇▅▃▂▁  the values scaled between their least and greatest, thinned to `width`.
std::string Sparkline(const std::vector<double>& values, int width);

// Redraws the same lines over and over. Destroying it leaves the last drawing.
class LiveBlock {
 public:
  // Replaces what was drawn before.
  void Draw(const std::vector<std::string>& lines);
  // Prints a line above the block, for good.
  void PrintAbove(const std::string& line);

 private:
  void Erase();

  std::vector<std::string> drawn_;
};

}  // namespace muster
