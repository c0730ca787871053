// What `ringscope import` writes: the file of ours that fits what was read.
#pragma once

#include <string>

#include "core/formats/import/imported.h"

namespace ring {

struct ImportOutput {
  std::string what;  ///< "machine file", "topology", "link curve", ...
  std::string text;
};

struct ImportChoices {
  std::string source;   ///< The file as given, with its keys if it is a topology.
  int64_t layer = -1;   ///< Of a model; -1: the kind that costs most.
  int64_t seq_len = 0;  ///< Of the scenario of a model; 0: as many tokens as the model allows.
};

/// A topology becomes a machine file, or a topology in TOML where the name ends in ".toml"; a link
/// test a CSV of its curve; a model config a scenario; a trace a run file, or a Chrome trace where
/// the name ends in ".trace.json" (or .gz of it); benchmark logs a CSV in the columns of published
/// measurements; a Chakra trace a program in text form; run and machine files themselves.
/// Throws Error(kUsage) for files that hold none of these, saying what they are good for.
ImportOutput import_output(const Imported& file, const std::string& path,
                           const ImportChoices& choices);

}  // namespace ring
