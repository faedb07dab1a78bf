// docs/job-file.md, written from the table of FieldRules(), so that the page and the checks cannot differ.
#pragma once

#include <string>

namespace muster {

// The whole page, Markdown.
std::string JobFileReference();

}  // namespace muster
