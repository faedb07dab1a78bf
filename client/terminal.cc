#include "client/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

const char* Code(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kGreen:
      return "\033[32m";
    case Colour::kRed:
      return "\033[31m";
    case Colour::kYellow:
      return "\033[33m";
    case Colour::kDim:
      return "\033[2m";
    case Colour::kBold:
      return "\033[1m";
  }
  return "";
}

}  // namespace

std::string Palette::Paint(Colour colour, absl::string_view text) const {
  if (!enabled_ || colour == Colour::kNone) return std::string(text);
  return absl::StrCat(Code(colour), text, "\033[0m");
}

bool StdoutIsTerminal() { return isatty(STDOUT_FILENO) == 1; }

bool ColoursWanted(bool no_color) {
  const char* variable = std::getenv("NO_COLOR");
  const bool unwanted = no_color || (variable != nullptr && variable[0] != '\0');
  return StdoutIsTerminal() && !unwanted;
}

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return size.ws_col;
}

std::string Bar(double fraction, int width) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction >= 0)) fraction = 0;  // NaN as well
  const int eighths = static_cast<int>(std::lround(std::min(fraction, 1.0) * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  for (int i = (eighths + 7) / 8; i < width; ++i) bar += "·";
  return bar;
}

std::string Sparkline(const std::vector<double>& values, int width) {
  constexpr const char* kLevels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  if (finite.empty()) return "";
  const auto [least, greatest] = std::minmax_element(finite.begin(), finite.end());
  const double range = *greatest - *least;
  const size_t points = std::min(finite.size(), static_cast<size_t>(std::max(width, 1)));
  std::string line;
  for (size_t i = 0; i < points; ++i) {
    const double value = finite[points == 1 ? 0 : i * (finite.size() - 1) / (points - 1)];
    line += kLevels[range > 0 ? static_cast<int>(std::min((value - *least) / range * 8, 7.0)) : 0];
  }
  return line;
}

void LiveBlock::Erase() {
  if (!drawn_.empty()) std::printf("\033[%zuA\033[J", drawn_.size());
}

void LiveBlock::Draw(const std::vector<std::string>& lines) {
  Erase();
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  drawn_ = lines;
  std::fflush(stdout);
}

void LiveBlock::PrintAbove(const std::string& line) {
  Erase();
  std::printf("%s\n", line.c_str());
  for (const std::string& drawn : drawn_) std::printf("%s\n", drawn.c_str());
  std::fflush(stdout);
}

}  // namespace muster
