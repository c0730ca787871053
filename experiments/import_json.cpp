#include "experiments/import_json.h"

#include <map>

#include "core/formats/import/link_curve.h"

namespace ring {

namespace {

Json hops_json(const std::vector<std::vector<HopClass>>& hops) {
  Json rows = Json::array();
  for (const auto& row : hops) {
    Json cells = Json::array();
    for (const HopClass& hop : row) cells.push_back(hop.text());
    rows.push_back(cells);
  }
  return rows;
}

std::string_view word(TopoDeviceKind kind) {
  switch (kind) {
    case TopoDeviceKind::kGpu:
      return "gpu";
    case TopoDeviceKind::kNic:
      return "nic";
    case TopoDeviceKind::kOther:
      return "other";
  }
  return "?";
}

Json content(const TopoMatrix& matrix) {
  Json devices = Json::array();
  for (const TopoDevice& device : matrix.devices) {
    devices.push_back({{"name", device.name},
                       {"alias", device.alias},
                       {"kind", word(device.kind)},
                       {"cpu_affinity", device.cpu_affinity},
                       {"numa", device.numa}});
  }
  Json access = Json::array();
  for (const auto& row : matrix.peer_access) {
    Json cells = Json::array();
    for (const PeerAccess peer : row) {
      cells.push_back(peer == PeerAccess::kUnknown ? Json() : Json(peer == PeerAccess::kYes));
    }
    access.push_back(cells);
  }
  Json out = {{"tool", matrix.tool},
              {"gpus", matrix.of_kind(TopoDeviceKind::kGpu).size()},
              {"nics", matrix.of_kind(TopoDeviceKind::kNic).size()},
              {"devices", devices},
              {"hops", hops_json(matrix.hops)}};
  if (!matrix.peer_access.empty()) out["peer_access"] = access;
  if (!matrix.rocm_weights.empty()) out["rocm_weights"] = matrix.rocm_weights;
  if (!matrix.rocm_hops.empty()) out["rocm_hops"] = matrix.rocm_hops;
  return out;
}

Json rate_json(double bytes_per_s) { return bytes_per_s > 0 ? Json(bytes_per_s) : Json(); }

Json content(const NcclTopology& topology) {
  Json gpus = Json::array(), nics = Json::array();
  for (const NcclGpu& gpu : topology.gpus) {
    gpus.push_back({{"bus_id", gpu.bus_id},
                    {"numa", gpu.numa},
                    {"dev", gpu.dev},
                    {"rank", gpu.rank},
                    {"sm", gpu.sm},
                    {"links", gpu.links},
                    {"pcie_bytes_per_s", rate_json(gpu.pcie_bytes_per_s)}});
  }
  for (const NcclNic& nic : topology.nics) {
    nics.push_back({{"bus_id", nic.bus_id},
                    {"name", nic.name},
                    {"numa", nic.numa},
                    {"bytes_per_s", rate_json(nic.bytes_per_s)}});
  }
  return {{"gpus", gpus},
          {"nics", nics},
          {"gpu_hops", hops_json(topology.gpu_hops)},
          {"gpu_nic_hops", hops_json(topology.gpu_nic_hops)},
          {"pci_devices", topology.pci_devices},
          {"numa_nodes", topology.numa_nodes}};
}

Json content(const NcclGraphs& graphs) {
  Json list = Json::array();
  for (const NcclGraph& graph : graphs.graphs) {
    Json channels = Json::array();
    for (const NcclChannel& channel : graph.channels) {
      channels.push_back({{"gpus", channel.gpus}, {"nets", channel.nets}});
    }
    list.push_back({{"id", graph.id},
                    {"algorithm", graph.algorithm},
                    {"pattern", graph.pattern},
                    {"pattern_name", graph.pattern_name},
                    {"speed_intra_gb_s", graph.speed_intra},
                    {"speed_inter_gb_s", graph.speed_inter},
                    {"type_intra", graph.type_intra},
                    {"type_inter", graph.type_inter},
                    {"channels", channels}});
  }
  return {{"graphs", list}};
}

Json time_json(const CollectiveTime& time) {
  return {{"time_us", time.time_us},
          {"algbw_gb_s", time.algbw},
          {"busbw_gb_s", time.busbw},
          {"wrong", time.wrong ? Json(*time.wrong) : Json()}};
}

Json peak_json(const CollectiveRun& run, bool in_place) {
  const CollectiveRow* row = run.peak(in_place);
  if (row == nullptr || (in_place && !row->in_place)) return {};
  const CollectiveTime& time = in_place ? *row->in_place : row->out_of_place;
  return {{"busbw_gb_s", time.busbw}, {"size_bytes", row->size_bytes}};
}

Json curves_json(const LinkCurves& curves) {
  Json list = Json::array();
  for (const LinkCurve& curve : curves.curves) {
    list.push_back({{"from", curve.from},
                    {"to", curve.to},
                    {"how", curve.how},
                    {"crosses_hosts", curve.crosses_hosts},
                    {"both_ways", curve.is_both_ways},
                    {"points", curve.points.size()},
                    {"start_s", curve.start_s > 0 ? Json(curve.start_s) : Json()},
                    {"bytes_per_s", curve.bytes_per_s}});
  }
  return list;
}

Json content(const NcclTestsLog& log) {
  Json runs = Json::array();
  for (const CollectiveRun& run : log.runs) {
    Json rows = Json::array();
    for (const CollectiveRow& row : run.rows) {
      rows.push_back({{"size_bytes", row.size_bytes},
                      {"count", row.count},
                      {"type", row.type},
                      {"redop", row.redop},
                      {"out_of_place", time_json(row.out_of_place)},
                      {"in_place", row.in_place ? time_json(*row.in_place) : Json()}});
    }
    runs.push_back({{"collective", run.collective},
                    {"is_inferred", run.is_inferred},
                    {"ranks", run.ranks.size()},
                    {"hosts", run.hosts()},
                    {"is_checked", run.is_checked()},
                    {"wrong", run.wrong()},
                    {"peak_out_of_place", peak_json(run, false)},
                    {"peak_in_place", peak_json(run, true)},
                    {"rows", rows}});
  }
  return {{"runs", runs}, {"hops", curves_json(link_curves(log))}};
}

Json nccl_hops_json(const std::set<NcclHop>& hops) {
  Json list = Json::array();
  for (const NcclHop& hop : hops) {
    list.push_back(
        {{"channel", hop.channel}, {"from", hop.from}, {"to", hop.to}, {"via", hop.via}});
  }
  return list;
}

Json content(const NcclInfoLog& log) {
  Json ranks = Json::array(), rings = Json::array();
  for (const auto& [number, rank] : log.rank_of) {
    ranks.push_back({{"rank", number},
                     {"host", rank.host},
                     {"cuda_dev", rank.cuda_dev},
                     {"nvml_dev", rank.nvml_dev},
                     {"bus_id", rank.bus_id}});
  }
  for (const auto& [channel, ring] : log.ring_of_channel) {
    rings.push_back({{"channel", channel}, {"ranks", ring}});
  }
  return {{"ranks", log.ranks},
          {"nodes", log.nodes},
          {"channels", log.channels},
          {"p2p_channels", log.p2p_channels},
          {"p2p_channels_per_peer", log.p2p_per_peer},
          {"version", log.version},
          {"network", log.network},
          {"is_gdr_off", log.is_gdr_off},
          {"has_whole_rings", log.has_whole_rings()},
          {"rank_list", ranks},
          {"rings", rings},
          {"ring_hops", nccl_hops_json(log.ring_hops)},
          {"tree_hops", nccl_hops_json(log.tree_hops)},
          {"p2p_hops", nccl_hops_json(log.p2p_hops)}};
}

std::string_view word(LinkFigureKind kind) {
  switch (kind) {
    case LinkFigureKind::kOneWay:
      return "one way";
    case LinkFigureKind::kBothWays:
      return "both ways";
    case LinkFigureKind::kLatency:
      return "latency";
  }
  return "?";
}

Json content(const LinkLog& log) {
  Json figures = Json::array();
  for (const LinkFigure& figure : log.figures) {
    const bool is_latency = figure.kind == LinkFigureKind::kLatency;
    figures.push_back({{"kind", word(figure.kind)},
                       {"from", figure.from},
                       {"to", figure.to},
                       {is_latency ? "seconds" : "bytes_per_s", figure.value},
                       {"size_bytes", figure.size_bytes > 0 ? Json(figure.size_bytes) : Json()},
                       {"how", figure.how},
                       {"line", figure.line}});
  }
  return {{"tool", log.tool},
          {"devices", log.devices},
          {"has_peer_access", log.knows_peer_access ? Json(log.has_peer_access) : Json()},
          {"hops", curves_json(link_curves(log))},
          {"figures", figures}};
}

Json content(const HfConfig& config) {
  const ModelShape& model = config.model;
  Json groups = Json::array();
  for (const LayerGroup& group : model.groups) {
    const AttentionShape& shape = group.shape;
    Json item = {{"kind", name(shape.kind)}, {"layers", group.layers}};
    if (shape.kind != LayerKind::kOther) {
      item["heads"] = shape.heads;
      item["kv_heads"] = shape.kv_heads;
      item["head_dim"] = shape.head_dim;
      item["head_dim_v"] = shape.head_dim_v;
      if (shape.window > 0) item["window"] = shape.window;
      item["is_value_key"] = shape.is_value_key;
      item["kv_bytes_per_token"] = shape.kv_bytes_per_token(model.dtype);
      if (shape.latent_dim > 0) {
        item["latent_dim"] = shape.latent_dim;
        item["latent_bytes_per_token"] = shape.latent_bytes_per_token(model.dtype);
      }
    }
    groups.push_back(item);
  }
  return {{"name", model.name},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"max_positions", model.max_positions},
          {"groups", groups}};
}

Json content(const KernelTrace& trace) {
  const KernelTotals totals = totals_of(trace);
  Json lanes = Json::array();
  std::map<std::pair<int32_t, int64_t>, int64_t> kernels_of;
  for (const KernelSlice& slice : trace.slices) {
    kernels_of[{slice.device, slice.stream}] += slice.is_copy ? 0 : 1;
  }
  for (const auto& [key, kernels] : kernels_of) {
    lanes.push_back({{"device", key.first}, {"stream", key.second}, {"kernels", kernels}});
  }
  return {{"rank", trace.rank >= 0 ? Json(trace.rank) : Json()},
          {"world_size", trace.world_size > 0 ? Json(trace.world_size) : Json()},
          {"device_name", trace.device_name},
          {"listed_devices", trace.listed_devices},
          {"sms", trace.sms},
          {"slices", trace.slices.size()},
          {"kernels", totals.kernels},
          {"communication_kernels", totals.communication_kernels},
          {"busy_ns", totals.busy_ns},
          {"communication_ns", totals.communication_ns},
          {"compute_ns", totals.compute_ns},
          {"overlap_ns", totals.overlap_ns},
          {"streams", lanes},
          {"collectives", trace.collectives}};
}

Json content(const KernelSummary& summary) {
  Json rows = Json::array();
  for (const KernelSummaryRow& row : summary.rows) {
    rows.push_back({{"name", row.name},
                    {"is_name_cut", row.is_name_cut},
                    {"total_ns", row.total_ns},
                    {"count", row.count},
                    {"mean_ns", row.mean_ns},
                    {"median_ns", row.median_ns},
                    {"min_ns", row.min_ns},
                    {"max_ns", row.max_ns}});
  }
  return {{"is_whole", summary.is_whole}, {"total_ns", summary.total_ns()}, {"rows", rows}};
}

Json content(const AttentionBenchLog& log) {
  Json rows = Json::array();
  for (const AttentionBenchRow& row : log.rows) {
    rows.push_back({{"nodes", row.nodes},
                    {"ranks_per_node", row.ranks_per_node},
                    {"seq_len", row.seq_len},
                    {"heads", row.heads},
                    {"kv_heads", row.kv_heads},
                    {"head_dim", row.head_dim},
                    {"batch", row.batch},
                    {"is_causal", row.is_causal},
                    {"is_backward", row.is_backward},
                    {"method", row.method},
                    {"variant", row.variant},
                    {"seconds", row.seconds},
                    {"tflops_per_rank", row.tflops_per_rank},
                    {"line", row.line}});
  }
  return {{"rows", rows}};
}

Json content(const TrainingBench& bench) {
  Json rows = Json::array();
  for (const TrainingBenchRow& row : bench.rows) {
    rows.push_back({{"caption", row.caption},
                    {"gpus", row.gpus > 0 ? Json(row.gpus) : Json()},
                    {"context_parallel", row.context_parallel},
                    {"data_parallel", row.data_parallel},
                    {"seq_len", row.seq_len},
                    {"tokens_per_s_per_gpu", row.tokens_per_s_per_gpu},
                    {"memory_gib", row.memory_gib},
                    {"line", row.line}});
  }
  return {{"rows", rows}};
}

Json content(const RingProgram& program) {
  int64_t sends = 0;
  Bytes bytes = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) {
      sends += op.kind == OpKind::kSend ? 1 : 0;
      bytes += op.kind == OpKind::kSend ? op.bytes : 0;
    }
  }
  return {{"ranks", program.ranks()},
          {"lanes", program.lanes},
          {"ops", program.op_count()},
          {"sends", sends},
          {"bytes_sent", bytes}};
}

Json content(const RunFile& run) {
  const auto timeline = [](const std::optional<Timeline>& line) -> Json {
    if (!line) return {};
    return {{"ranks", line->ranks},
            {"slices", line->slices.size()},
            {"makespan_ps", line->makespan_ps()},
            {"complete", line->is_complete}};
  };
  return {{"name", run.name},
          {"machine", run.machine},
          {"measured", timeline(run.measured)},
          {"predicted", timeline(run.predicted)}};
}

Json content(const MachineFile& file) {
  return {{"name", file.machine.name},
          {"is_calibrated", file.machine.is_calibrated},
          {"processors", file.machine.processors.size()},
          {"nodes", file.machine.topology.nodes().size()},
          {"links", file.machine.topology.links().size()},
          {"samples", file.calibration.samples.size()}};
}

}  // namespace

Json content_json(const Imported& file) {
  return std::visit([](const auto& found) { return content(found); }, file.content);
}

Json findings_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"kind", name(finding.kind)},
                    {"text", finding.text},
                    {"line", finding.line > 0 ? Json(finding.line) : Json()}});
  }
  return list;
}

}  // namespace ring
