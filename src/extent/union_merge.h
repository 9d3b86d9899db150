#pragma once

#include <span>

#include "extent/extent.h"
#include "extent/union_terms.h"

namespace spillway::extent {

// Appends the union of the terms by walking every piece, in file order: right for all terms, O(pieces * log
// terms). Returns the number of steps taken.
std::int64_t merge_pieces(std::span<const Term> terms, ExtentList& out);

}  // namespace spillway::extent
