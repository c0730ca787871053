#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/calibration_json.h"
#include "core/formats/machine_json.h"
#include "core/paths.h"
#include "experiments/calibration_run.h"
#include "experiments/device_choice.h"
#include "experiments/json.h"
#include "experiments/verb.h"
#include "kernels/cuda/gpu_session.h"
#include "kernels/launcher.h"

namespace ring {

namespace {

class CalibrateVerb final : public Verb {
 public:
  std::string_view name() const override { return "calibrate"; }
  std::string_view summary() const override { return "Measure this machine and write its profile"; }

  void declare(VerbOptions& options) override {
    options.heading("Calibration");
    options.time("--budget", budget_ps_, "Time that the measurements may take [45s]");
    options.text("--device", device_, "NAME", "cpu or cuda [cpu]");
    options.count("--cores", cores_, "Cores to use [all]", {1, 1 << 16});
    options.text("--carrier", carrier_, "NAME",
                 "How GPUs pass messages: copies, or exchanges over NCCL [copies]");
    options.text("--kernels", kernels_, "NAME",
                 "Attention kernels of GPUs: best, mma, wgmma or cudnn [best]");
    options.heading("Files");
    options.text("-o,--output", output_, "FILE",
                 "Write the profile there [the one that other verbs look for]");
  }

  int run(VerbContext& context) override {
    Console& console = context.console;
    const std::string device = device_.value_or("cpu");
    const std::optional<GpuCalibration> gpu = gpu_calibration(device);
    const std::string path =
        output_.value_or(gpu ? default_gpu_machine_path() : default_machine_path());
    CalibrationOptions options;
    if (budget_ps_) options.budget_s = seconds_from_picoseconds(*budget_ps_);
    if (options.budget_s <= 0) throw_usage("--budget must be more than 0");
    options.cores = static_cast<int>(cores_.value_or(0));
    if (cores_ && gpu) throw_usage("--cores is for --device cpu");
    if (launched_processes() > 1)
      throw_usage("several processes were launched, and a calibration is one",
                  "calibrate without mpirun or srun: one process uses all GPUs of its host");
    require_device(device);
    if (cores_) require_cores(*cores_);
    require_place_for(path);
    const CalibrationResult result = run_calibration(context, options, gpu);
    // What is shown is not lost where the disk is full.
    if (!console.is_json()) console.print(calibration_text(result, console.style()));
    const std::string written = write_calibration(result, path);
    if (console.is_json()) {
      Json document = json_document("calibration-report");
      document["file"] = written;
      document["partial"] = !result.is_complete;
      document["elapsed_s"] = result.elapsed_s;
      document["calibration"] = calibration_to_json(result.calibration);
      console.print_document(document);
    }
    console.note(fmt::format("wrote {}", written));
    const std::string unsteady = unsteady_text(result.calibration);
    if (!unsteady.empty()) console.note(unsteady);
    if (!result.is_complete) {
      throw Error(
          ErrorKind::kInterrupted,
          fmt::format("stopped: {} holds what was measured and is no profile to use", written));
    }
    return 0;
  }

 private:
  /// Throws Error(kUsage).
  std::optional<GpuCalibration> gpu_calibration(const std::string& device) const {
    if (device != "cuda") {
      if (carrier_) throw_usage("--carrier is for --device cuda");
      if (kernels_) throw_usage("--kernels is for --device cuda");
      return std::nullopt;
    }
    return GpuCalibration{cuda::parse_carrier(carrier_.value_or("copies")),
                          cuda::parse_attend_kernels(kernels_.value_or("best"))};
  }

  std::optional<Picoseconds> budget_ps_;
  std::optional<int64_t> cores_;
  std::optional<std::string> output_, device_, carrier_, kernels_;
};

}  // namespace

std::unique_ptr<Verb> make_calibrate_verb() { return std::make_unique<CalibrateVerb>(); }

}  // namespace ring
