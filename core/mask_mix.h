// Mixes of text and video as text: "text=512,frames=8x256+1+1,new,text=100".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/mask.h"

namespace ring {

/// Reads comma-separated parts: text=TOKENS, frames=FRAMESxTOKENS with +BEFORE or +BEFORE+AFTER
/// boundary tokens at each frame, new (a new document). Throws Error(kUsage).
std::vector<MixPart> parse_mix(std::string_view text);
/// What parse_mix reads back to the same parts.
std::string mix_text(const std::vector<MixPart>& parts);

}  // namespace ring
