// `ringscope import` and `ringscope place`, and files of others wherever a file is asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/fixture.h"

namespace ring::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Two pairs of GPUs on two sockets, a NIC at each pair; a prompt above, a legend below.
const char kTopo[] =
    "me@box:~$ nvidia-smi topo -m\n"
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tSYS\tNV4\tSYS\tPIX\tSYS\t0-7\t0\n"
    "GPU1\tSYS\t X \tSYS\tNV4\tSYS\tPIX\t8-15\t1\n"
    "GPU2\tNV4\tSYS\t X \tSYS\tPIX\tSYS\t0-7\t0\n"
    "GPU3\tSYS\tNV4\tSYS\t X \tSYS\tPIX\t8-15\t1\n"
    "NIC0\tPIX\tSYS\tPIX\tSYS\t X \tSYS\n"
    "NIC1\tSYS\tPIX\tSYS\tPIX\tSYS\t X \n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

const char kTrace[] =
    R"({"distributedInfo":{"rank":0,"world_size":2},"traceEvents":[
{"ph":"X","cat":"kernel","name":"flash_fwd","ts":100.5,"dur":40,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","ts":110,"dur":60,
 "args":{"device":0,"stream":20,"In msg nelems":1000,"dtype":"BFloat16"}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoD","ts":172,"dur":3,"args":{"device":0,"stream":7}}
]})";

json import_json(const std::vector<std::string>& arguments, int code = 0) {
  std::vector<std::string> all{"import"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_json_verb(all, code);
}

TEST(Import, SaysWhatAFileIsAndWhatItCouldNotKnow) {
  const TemporaryFolder folder;
  const std::string topo = folder.write("topo.txt", kTopo);
  const ProcessResult text = run_ringscope({"import", "auto", topo});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("a topology matrix of nvidia-smi"));
  EXPECT_THAT(text.out, HasSubstr("4 GPUs, 2 NICs"));
  EXPECT_THAT(text.out, HasSubstr("25 GB/s each way for one NVLink"));
  const json document = import_json({"auto", topo});
  EXPECT_EQ(document.at("kind"), "topo");
  EXPECT_EQ(document.at("content").at("hops").at(0).at(2), "NV4");
  EXPECT_EQ(import_json({"topo", topo}), document) << "told or found, it is the same";
}

TEST(Import, DoesNotReplaceWhatItReads) {
  const TemporaryFolder folder;
  const std::string topo = folder.write("topo.txt", kTopo);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"import", "auto", topo, "-o", topo},
        {"import", "topo", topo + ":nodes=2", "-o", topo},
        {"place", "--topology", topo + ":gpu=h100", "-o", topo}}) {
    const ProcessResult result = run_ringscope(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("would be replaced"));
    EXPECT_EQ(read_text(topo), kTopo);
  }
}

TEST(Import, SaysWhyAFileIsOfNoUse) {
  const TemporaryFolder folder;
  const std::string wide = folder.write("wide.txt", std::string("\xff\xfe\tG\0P\0U\0", 9));
  EXPECT_THAT(run_ringscope({"import", "auto", wide}).err, HasSubstr("UTF-16"));
  EXPECT_THAT(run_ringscope({"import", "auto", "/dev/null"}).err,
              HasSubstr("not an ordinary file"));
  const std::string graph = folder.write("graph.xml", "<graphs version=\"1\"></graphs>\n");
  EXPECT_THAT(
      run_ringscope({"place", "--topology", graph}).err,
      HasSubstr("a graph file of NCCL or RCCL: the channels it searched, of which no machine"));
  const std::string empty = folder.write("empty.txt", "\n");
  EXPECT_THAT(run_ringscope({"simulate", "--machine", empty}).err, HasSubstr("an empty file"));
}

TEST(Import, RefusesKindsAndFilesThatAreNone) {
  const TemporaryFolder folder;
  const std::string topo = folder.write("topo.txt", kTopo);
  const ProcessResult kind = run_ringscope({"import", "tropo", topo});
  EXPECT_EQ(kind.code, 2);
  EXPECT_THAT(kind.err, HasSubstr("did you mean 'topo'"));
  const ProcessResult foreign =
      run_ringscope({"import", "auto", folder.write("a.txt", "Dear diary,\n")});
  EXPECT_EQ(foreign.code, 2);
  EXPECT_THAT(foreign.out, IsEmpty());
  EXPECT_THAT(foreign.err, HasSubstr("of no kind that can be read"));
  EXPECT_EQ(run_ringscope({"import", "nccl-tests", topo}).code, 2);
  const std::string cut = folder.write("cut.json", std::string(kTrace).substr(0, 150));
  const ProcessResult early = run_ringscope({"import", "auto", cut});
  EXPECT_EQ(early.code, 2);
  EXPECT_THAT(early.err, HasSubstr("ends early"));
}

TEST(Import, ATopologyBecomesAMachineThatReadsBackTheSame) {
  const TemporaryFolder folder;
  const std::string topo = folder.write("topo.txt", kTopo);
  const std::string first = folder.file("a.json"), second = folder.file("b.json");
  import_json({"auto", topo + ":gpu=h100", "-o", first});
  import_json({"machine", first, "-o", second});
  EXPECT_EQ(read_text(first), read_text(second));
  const std::string toml = folder.file("t.toml"), again = folder.file("again.json");
  import_json({"auto", topo, "-o", toml});
  const json one = run_json_verb({"place", "--topology", topo});
  const json other = run_json_verb({"place", "--topology", toml});
  EXPECT_EQ(one.at("rings"), other.at("rings"));
}

/// Machines that RingScope ships or makes, through `import machine`: the bytes stay.
TEST(Import, MachineFilesReadBackTheSame) {
  const TemporaryFolder folder;
  const std::string machine = write_test_machine(folder), copy = folder.file("copy.json");
  import_json({"auto", machine, "-o", copy});
  EXPECT_EQ(read_text(machine), read_text(copy));
}

TEST(Import, AModelBecomesAScenario) {
  const TemporaryFolder folder;
  const std::string model = folder.write(
      "config.json",
      R"({"num_attention_heads":16,"num_key_value_heads":4,"hidden_size":2048,)"
      R"("num_hidden_layers":3,"max_position_embeddings":8192,"torch_dtype":"bfloat16"})");
  const std::string scenario = folder.file("s.toml");
  import_json({"auto", model, "-o", scenario, "--seq", "2Ki"});
  const ProcessResult result =
      run_ringscope({"simulate", "--scenario", scenario, "--machine", "dgx-a100", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json problem = json::parse(result.out).at("problem");
  EXPECT_EQ(problem.at("heads"), 16);
  EXPECT_EQ(problem.at("kv_heads"), 4);
  EXPECT_EQ(run_ringscope({"import", "auto", folder.write("t.txt", kTopo), "--seq", "1Ki"}).code, 2)
      << "an option that does not apply is not ignored";
}

TEST(Import, ATraceIsShownComparedExplainedAndExportedWhole) {
  const TemporaryFolder folder;
  const std::string trace = folder.write("t.json", kTrace);
  const std::string run = folder.file("run.json"), out = folder.file("out.json");
  const json before = import_json({"auto", trace, "-o", run}).at("content");
  EXPECT_EQ(before.at("overlap_ns"), 30500);
  for (const std::string& from : {trace, run}) {
    ASSERT_EQ(run_ringscope({"trace", from, "-o", out, "--svg", folder.file("p.svg")}).code, 0);
    const json after = import_json({"auto", out}).at("content");
    for (const char* key : {"slices", "kernels", "communication_ns", "compute_ns", "overlap_ns"}) {
      EXPECT_EQ(before.at(key), after.at(key)) << key;
    }
    EXPECT_THAT(read_text(out), HasSubstr("ncclDevKernel_SendRecv"));
    const ProcessResult why = run_ringscope({"why", from});
    EXPECT_EQ(why.code, 0) << why.err;
    EXPECT_THAT(why.out, HasSubstr("The measured run takes 74.5 us"));
    EXPECT_THAT(why.out, HasSubstr("collectives of rank 0"));
  }
  EXPECT_EQ(run_ringscope({"compare", trace, run}).code, 0);
  EXPECT_EQ(run_ringscope({"why", trace, "--machine", "dgx-a100"}).code, 2);
}

TEST(Import, SeveralTracesAreTheRanksOfOneRun) {
  const TemporaryFolder folder;
  std::string other = kTrace;
  other.replace(other.find("\"rank\":0"), 8, "\"rank\":1");
  const std::string a = folder.write("a.json", other), b = folder.write("b.json", kTrace);
  const json document = import_json({"trace", a, b, "-o", folder.file("run.json")});
  EXPECT_EQ(document.at("content").at("measured").at("ranks"), 2);
  EXPECT_EQ(run_ringscope({"why", folder.file("run.json")}).code, 0);
  EXPECT_EQ(run_ringscope({"import", "topo", a, b}).code, 2);
}

std::string gather_log() {
  std::string text = "# Collective test starting: all_gather_perf\n# nThread 1\n#  Using devices\n";
  for (int r = 0; r < 4; ++r) {
    const std::string n = std::to_string(r);
    text += "#  Rank  " + n + " Group  0 Pid 1 on box device  " + n + " [0x0" + n + "] Some GPU\n";
  }
  text +=
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n";
  // Three steps of a quarter of the size, each 20 us + bytes / 50 GB/s.
  text += " 4000000 250000 float none -1 120.0 33.33 25.00 0 120.0 33.33 25.00 0\n";
  text += " 40000000 2500000 float none -1 660.0 60.61 45.45 0 660.0 60.61 45.45 0\n";
  return text + " 400000000 25000000 float none -1 6060.0 66.01 49.50 0 6060.0 66.01 49.50 0\n";
}

TEST(Import, ALinkTestGivesItsFiguresToAMachine) {
  const TemporaryFolder folder;
  const std::string log = folder.write("log", gather_log());
  const std::string curve = folder.file("curve.csv");
  const json hop = import_json({"auto", log, "-o", curve}).at("content").at("hops").at(0);
  EXPECT_NEAR(hop.at("start_s").get<double>(), 20e-6, 0.1e-6);
  EXPECT_NEAR(hop.at("bytes_per_s").get<double>(), 50e9, 0.1e9);
  EXPECT_THAT(read_text(curve), HasSubstr("from,to,how,both_ways,bytes,seconds,bytes_per_s\n"));
  const std::string topo = folder.write("topo.txt", kTopo);
  const json placed = run_json_verb({"place", "--topology", topo + ":links=" + log});
  for (const json& found : placed.at("rings").at(0).at("hops")) {
    if (found.at("over") != "NVLink") continue;
    EXPECT_NEAR(found.at("alone_bytes_per_s").get<double>(), 50e9, 0.1e9);
  }
  const ProcessResult wrong =
      run_ringscope({"place", "--topology", topo + ":links=" + folder.write("t.json", kTrace)});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("not a link test"));
}

TEST(Import, FilesFromWhichNothingIsWrittenSayWhy) {
  const TemporaryFolder folder;
  const std::string log =
      folder.write("nccl.log", "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 busId 1a\n");
  EXPECT_EQ(run_ringscope({"import", "auto", log}).code, 0);
  const ProcessResult result = run_ringscope({"import", "auto", log, "-o", folder.file("x.json")});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("nothing is written"));
}

TEST(Import, TopologiesOfOthersAreMachinesToSimulateOn) {
  const TemporaryFolder folder;
  const std::string topo = folder.write("topo.txt", kTopo);
  const std::vector<std::string> problem{"--seq", "8Ki", "--ranks", "4", "--dtype", "bf16"};
  const auto makespan = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "simulate");
    arguments.insert(arguments.end(), problem.begin(), problem.end());
    return run_json_verb(arguments).at("prediction").at("makespan_ps").get<int64_t>();
  };
  const int64_t plain = makespan({"--machine", topo});
  EXPECT_EQ(makespan({"--topology", topo}), plain);
  EXPECT_EQ(makespan({"--topology", topo, "--machine", "dgx-a100"}), plain);
  EXPECT_LT(makespan({"--topology", topo + ":gpu=h100"}), plain);
  EXPECT_LE(makespan({"--machine", topo + ":order=0-2-1-3"}), plain) << "neighbours over NVLink";
  EXPECT_EQ(run_ringscope({"simulate", "--topology", folder.write("t.json", kTrace)}).code, 2);
}

TEST(Place, FindsTheRingAndWritesIt) {
  const TemporaryFolder folder;
  const std::string topo = folder.write("topo.txt", kTopo);
  const json document = run_json_verb({"place", "--topology", topo});
  EXPECT_EQ(document.at("order"), (std::vector<int>{0, 1, 3, 2}));
  EXPECT_EQ(document.at("closes_over_nvlink"), false);
  EXPECT_EQ(document.at("worst_hops"), 2);
  EXPECT_EQ(document.at("is_best"), true);
  const std::string machine = folder.file("m.json"), picture = folder.file("p.svg");
  const ProcessResult result =
      run_ringscope({"place", "--topology", topo, "-o", machine, "--svg", picture});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("gpu0 gpu1 gpu3 gpu2"));
  EXPECT_THAT(read_text(picture), HasSubstr("NVLink"));
  EXPECT_THAT(read_text(picture), HasSubstr(">Best ring over topo.txt<"));
  const json again = run_json_verb({"place", "--topology", machine});
  EXPECT_EQ(again.at("order"), (std::vector<int>{0, 1, 2, 3})) << "already in ring order";
}

TEST(Place, ChosenProcessorsChannelsAndWhatHasNoRing) {
  const json four = run_json_verb({"place", "--topology", "dgx-1v", "--processors", "0-3"});
  EXPECT_EQ(four.at("processors"), 4);
  EXPECT_EQ(four.at("closes_over_nvlink"), true);
  const json fast = run_json_verb({"place", "--topology", "dgx-a100", "--channel", "50GB/s"});
  EXPECT_EQ(fast.at("channels"), 6);
  EXPECT_EQ(run_ringscope({"place", "--topology", "dgx-1v", "--processors", "0,9"}).code, 2);
  EXPECT_EQ(run_ringscope({"place", "--topology", "dgx-1v", "--processors", "0,0"}).code, 2);
  const TemporaryFolder folder;
  const std::string apart = folder.write(
      "a.toml", "[[node]]\nname = \"a\"\nkind = \"gpu\"\n[[node]]\nname = \"b\"\nkind = \"gpu\"\n");
  EXPECT_EQ(run_json_verb({"place", "--topology", apart}, 1).at("closes"), false);
}

TEST(Chakra, ARunIsWrittenReadSimulatedAndChecked) {
  const TemporaryFolder folder;
  const std::string machine = write_test_machine(folder), run = folder.file("run.json");
  ASSERT_EQ(run_ringscope(small("simulate", {"--machine", machine, "-o", run})).code, 0);
  const std::string prefix = folder.file("et");
  const ProcessResult written = run_ringscope({"trace", run, "--format", "chakra", "-o", prefix});
  EXPECT_EQ(written.code, 0) << written.err;
  const std::string first = prefix + ".0.et";
  EXPECT_EQ(import_json({"auto", first}).at("kind"), "chakra");
  EXPECT_EQ(run_ringscope({"check", first}).code, 0);
  const json simulated = run_json_verb({"simulate", "--program", first, "--machine", machine});
  EXPECT_GT(simulated.at("prediction").at("makespan_ps"), 0);
  const std::string text = folder.file("program.txt");
  import_json({"chakra", first, "-o", text});
  const json same = run_json_verb({"simulate", "--program", text, "--machine", machine});
  EXPECT_EQ(same.at("prediction"), simulated.at("prediction"));
  EXPECT_EQ(run_ringscope({"simulate", "--program", first, "--seq", "1Ki"}).code, 2);
  EXPECT_EQ(run_ringscope({"trace", run, "--format", "ashes", "-o", prefix}).code, 2);
}

}  // namespace
}  // namespace ring::testing
