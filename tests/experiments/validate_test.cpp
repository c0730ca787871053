// Validation: what rows mean, how predictions are scored, and that the targets hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/library.h"
#include "experiments/validation/scores.h"
#include "tests/experiments/fixture.h"

namespace ring::testing {
namespace {

using ::testing::HasSubstr;

PublishedRow row() {
  PublishedRow row;
  row.file = "test";
  row.id = "T-001";
  row.gpu = "A100-SXM4-80GB";
  row.link = "NVLink";
  row.impl = "flash-attn 2.x";
  row.algorithm = "zigzag ring x ulysses";
  row.cp = "ring 4 x ulysses 2";
  row.dtype = "bf16";
  row.causal = "true";
  row.pass = "fwd";
  row.metric = "throughput";
  row.unit = "iter/s";
  row.gpus = 8;
  row.nodes = 1;
  row.batch = 1;
  row.seq = 65536;
  row.heads = row.kv_heads = 8;
  row.head_dim = 128;
  row.value = 20;
  return row;
}

TEST(Interpret, SaysMachineKernelsStackAndDegrees) {
  const RowCase meaning = interpret(row());
  EXPECT_EQ(meaning.skip, "");
  EXPECT_EQ(meaning.machine, "a100-sxm-8");
  EXPECT_EQ(meaning.kernels, "fa2");
  EXPECT_EQ(meaning.stack, "ring-flash-attention");
  EXPECT_EQ(meaning.partition, "zigzag");
  EXPECT_EQ(meaning.ring, 4);
  EXPECT_EQ(meaning.ulysses, 2);
  EXPECT_EQ(meaning.counted_flops, 4.0 * 65536 * 65536 * 8 * 128 / 2);
}

TEST(Interpret, SkipsWhatItCannotKnowAndSaysWhy) {
  const auto skip = [](auto change) {
    PublishedRow changed = row();
    change(changed);
    return interpret(changed).skip;
  };
  EXPECT_THAT(skip([](PublishedRow& r) { r.value.reset(); }), HasSubstr("no number"));
  EXPECT_THAT(skip([](PublishedRow& r) { r.gpu = "TPU v4"; }), HasSubstr("not in the machine"));
  EXPECT_THAT(skip([](PublishedRow& r) { r.batch.reset(); }), HasSubstr("batch"));
  EXPECT_THAT(skip([](PublishedRow& r) { r.layers = 32; }), HasSubstr("whole model"));
  EXPECT_THAT(skip([](PublishedRow& r) { r.unit = "tokens"; }), HasSubstr("unit"));
  EXPECT_THAT(skip([](PublishedRow& r) { r.cp = "ring 3 x ulysses 2"; }), HasSubstr("ring 3"));
  EXPECT_THAT(skip([](PublishedRow& r) { r.algorithm = "FancyAttention", r.cp = "8"; }),
              HasSubstr("no strategy of ours"));
}

TEST(Interpret, UnstatedDegreesAreNamedAsAssumed) {
  PublishedRow usp = row();
  usp.algorithm = "usp";
  usp.cp = "8";
  EXPECT_THAT(interpret(usp).assumptions, ::testing::ElementsAre("ring 2 x Ulysses 4"));
}

TEST(PredictRow, MoreHeadsTakeLongerAndUnitsAgree) {
  MachineShelf shelf;
  const RowCase small = interpret(row());
  PublishedRow twice = row();
  twice.heads = twice.kv_heads = 16;
  const double seconds = predict_row(small, shelf).seconds;
  // Four heads a rank leave a wave of tiles half empty, eight less so: more than 1, not above 2.
  const double ratio = predict_row(interpret(twice), shelf).seconds / seconds;
  EXPECT_GT(ratio, 1.3);
  EXPECT_LT(ratio, 2.02);
  EXPECT_DOUBLE_EQ(in_unit_of(small, seconds), 1 / seconds);
  PublishedRow flops = row();
  flops.unit = "TFLOP/s/GPU";
  EXPECT_NEAR(in_unit_of(interpret(flops), seconds),
              4.0 * 65536 * 65536 * 8 * 128 / 2 / 8 / seconds / 1e12, 1e-9);
}

ScoredRow scored(const std::string& algorithm, double published, double predicted) {
  ScoredRow scored;
  scored.row = row();
  scored.row.algorithm = algorithm;
  scored.row.value = published;
  scored.meaning.quantity = Quantity::kSeconds;
  scored.predicted = predicted;
  scored.error = predicted / published - 1;
  scored.is_covered = std::abs(scored.error) < 0.2;
  return scored;
}

TEST(Score, CountsErrorsCoverageRanksAndPicks) {
  const ScoredRow a = scored("a", 10, 11), b = scored("b", 20, 19), c = scored("c", 40, 60);
  const Score score = ring::score("all", {&a, &b, &c});
  EXPECT_NEAR(score.median_abs_error, 0.1, 1e-12);
  EXPECT_NEAR(score.mean_abs_error, (0.1 + 0.05 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(score.worst_abs_error, 0.5, 1e-12);
  EXPECT_NEAR(score.bias, 0.1, 1e-12);
  EXPECT_NEAR(score.coverage, 2.0 / 3, 1e-12);
  EXPECT_EQ(score.groups, 1);
  EXPECT_NEAR(*score.rank_correlation, 1, 1e-12);
  EXPECT_EQ(*score.picked_best, 1);
}

TEST(Score, APickWithinTheNoiseOfTheBestIsRight) {
  const ScoredRow a = scored("a", 10, 12), b = scored("b", 10.2, 11), c = scored("c", 11, 30);
  EXPECT_EQ(*ring::score("near", {&a, &b, &c}).picked_best, 1);
  const ScoredRow d = scored("d", 11, 10);
  EXPECT_EQ(*ring::score("far", {&a, &d}).picked_best, 0);
  EXPECT_LT(*ring::score("far", {&a, &d}).rank_correlation, 0);
}

TEST(Score, SkippedRowsCountAsRowsOnly) {
  ScoredRow skipped = scored("a", 1, 5);
  skipped.skip = "why not";
  const ScoredRow good = scored("b", 1, 1);
  const Score score = ring::score("all", {&skipped, &good});
  EXPECT_EQ(score.rows, 2);
  EXPECT_EQ(score.predicted, 1);
  EXPECT_EQ(score.worst_abs_error, 0);
  EXPECT_FALSE(score.picked_best.has_value());
}

/// One validation of all published rows for the tests below.
const nlohmann::json& validation() {
  static const nlohmann::json document = run_json_verb({"validate"});
  return document;
}

nlohmann::json grade(const std::string& name) {
  for (const auto& item : validation().at("grades")) {
    if (item.at("name") == name) return item;
  }
  return {};
}

TEST(Validate, MeetsItsTargets) {
  EXPECT_LE(grade("A, A-").at("median_abs_error").get<double>(), 0.10);
  EXPECT_GE(grade("A, A-").at("picked_best").get<double>(), 0.90);
  EXPECT_LE(grade("B+, B, B-").at("median_abs_error").get<double>(), 0.20);
}

TEST(Validate, EveryRowIsPredictedOrSaysWhyNot) {
  for (const auto& item : validation().at("rows")) {
    const bool is_predicted = item.contains("predicted");
    EXPECT_NE(is_predicted, item.contains("skipped")) << item.dump();
    if (!is_predicted) continue;
    EXPECT_FALSE(item.at("method").get<std::string>().empty());
    EXPECT_LE(item.at("interval").at(0).get<double>(), item.at("predicted").get<double>());
    EXPECT_GE(item.at("interval").at(1).get<double>(), item.at("predicted").get<double>());
  }
}

TEST(Validate, CalibrationRowsAreNotJudged) {
  int64_t judged = 0;
  for (const auto& item : validation().at("rows")) {
    if (item.at("role") == "judged") ++judged;
  }
  EXPECT_EQ(validation().at("overall").at("rows").get<int64_t>(), judged);
  EXPECT_LT(judged, static_cast<int64_t>(validation().at("rows").size()));
}

TEST(Validate, TakesOtherFilesOfTheSameColumns) {
  const TemporaryFolder folder;
  folder.write("mine.csv",
               "id,source,location,gpu,n_gpus,nodes,link,link_bw_stated,impl,algorithm,cp,tp,pp,dp,"
               "batch,seqlen_total,seqlen_per_gpu,heads,kv_heads,head_dim,layers,dtype,causal,pass,"
               "metric,value,unit,value_kind,note\n"
               "M-1,me,here,H100,8,1,NVLink,,FA3,ring_p2p,8,,,,1,65536,8192,64,8,128,attention op "
               "only,bf16,false,fwd,elapsed time,30,ms,printed,\n"
               "M-2,me,here,H100,8,1,NVLink,,FA3,ring_p2p,8,,,,1,65536,8192,64,8,128,attention op "
               "only,bf16,false,fwd,elapsed time,OOM,ms,printed,\n");
  const std::string svg = folder.file("scatter.svg");
  const auto document = run_json_verb({"validate", "--published", folder.path(), "--svg", svg});
  ASSERT_EQ(document.at("files").size(), 1U);
  const auto& file = document.at("files").at(0);
  EXPECT_EQ(file.at("name"), "mine");
  EXPECT_EQ(file.at("rows"), 2);
  EXPECT_EQ(file.at("predicted"), 1);
  EXPECT_LT(file.at("median_abs_error").get<double>(), 0.3);
  EXPECT_THAT(read_text(svg), HasSubstr("mine (1)"));
  EXPECT_EQ(run_ringscope({"validate", "--published", folder.file("nothing")}).code, 2);
  EXPECT_EQ(run_ringscope({"validate", "--file", "no-such-file"}).code, 2);
}

std::string with_columns(const std::string& rows) {
  return "id,gpu,n_gpus,nodes,link,impl,algorithm,cp,batch,seqlen_total,heads,kv_heads,head_dim,"
         "dtype,causal,pass,metric,value,unit,colour\n" +
         rows;
}

TEST(Validate, RowsOfWhatIsNotKnownNameTheReason) {
  const TemporaryFolder folder;
  const std::string tail = ",8,1,NVLink,FA3,ring_p2p,8,1,65536,64,8,128,bf16,false,fwd,elapsed,";
  folder.write("other.csv",
               with_columns("O-1,H100" + tail + "30,ms,red\n" +        //
                            "O-2,MI300X" + tail + "30,ms,red\n" +      //
                            "O-3,H100" + tail + "30,furlongs,red\n" +  //
                            "O-4,H100,8,1,NVLink,FA3,FancyAttention,8,1,65536,64,8,128,bf16,"
                            "false,fwd,elapsed,30,ms,red\n"
                            "O-5,H200,64,8,NVLink,FA3,ring_p2p,64,1,65536,64,8,128,bf16,false,fwd,"
                            "elapsed,30,ms,red\n"));
  const auto document = run_json_verb({"validate", "--published", folder.path()});
  const auto& rows = document.at("rows");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_TRUE(rows.at(0).contains("predicted"));
  EXPECT_THAT(rows.at(1).at("skipped").get<std::string>(), HasSubstr("MI300X"));
  EXPECT_THAT(rows.at(2).at("skipped").get<std::string>(), HasSubstr("furlongs"));
  EXPECT_THAT(rows.at(3).at("skipped").get<std::string>(), HasSubstr("FancyAttention"));
  EXPECT_THAT(rows.at(4).at("skipped").get<std::string>(), HasSubstr("64 H200"));
  const ProcessResult text = run_ringscope({"validate", "--published", folder.path()});
  EXPECT_THAT(text.out, HasSubstr("not in the machine library: MI300X"));
}

TEST(Validate, ValuesThatNothingMeasuredHasAndRepeatedRowsAreNotJudged) {
  const TemporaryFolder folder;
  const std::string tail =
      ",H100,8,1,NVLink,FA3,ring_p2p,8,1,65536,64,8,128,bf16,false,fwd,elapsed,";
  folder.write("odd.csv", with_columns("O-1" + tail + "0,ms,red\nO-2" + tail + "nan,ms,red\nO-3" +
                                       tail + "-4,ms,red\nO-4" + tail + "inf,ms,red\nO-5" + tail +
                                       "30,ms,red\nO-5" + tail + "30,ms,red\n"));
  const auto document = run_json_verb({"validate", "--published", folder.path()});
  const auto& rows = document.at("rows");
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(rows.at(i).at("skipped").get<std::string>(), HasSubstr("nothing measured"));
  }
  EXPECT_TRUE(rows.at(4).contains("predicted"));
  EXPECT_THAT(rows.at(5).at("skipped").get<std::string>(), HasSubstr("stands above"));
  EXPECT_EQ(document.at("overall").at("predicted"), 1);
}

TEST(Validate, OfNoPredictionThereIsNoError) {
  const TemporaryFolder folder;
  folder.write("none.csv", with_columns("O-1,MI300X,8,1,x,y,ring_p2p,8,1,65536,64,8,128,bf16,false,"
                                        "fwd,elapsed,30,ms,red\n"));
  const auto document = run_json_verb({"validate", "--published", folder.path()});
  EXPECT_TRUE(document.at("overall").at("median_abs_error").is_null());
  EXPECT_TRUE(document.at("files").at(0).at("coverage").is_null());
  EXPECT_EQ(document.at("partial"), false);
  const ProcessResult text = run_ringscope({"validate", "--published", folder.path()});
  EXPECT_THAT(text.out, ::testing::Not(HasSubstr("0.0 %")));
}

TEST(Validate, CtrlCKeepsWhatWasPredictedAndMarksIt) {
  ProcessOptions options;
  int looks = 0;
  options.interrupt_when = [&looks](const std::string&) { return ++looks == 2; };
  const ProcessResult result = run_ringscope({"validate", "--json"}, options);
  if (result.code == 0) GTEST_SKIP() << "all rows were predicted before the signal";
  EXPECT_EQ(result.code, 130);
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document.at("partial"), true);
  EXPECT_EQ(document.at("schema"), "ringscope-validate");
  EXPECT_THAT(result.err, HasSubstr("stopped after"));
}

TEST(Validate, DamagedFilesAreRefusedByNameAndLine) {
  const auto refusal = [](const std::string& text) {
    const TemporaryFolder folder;
    folder.write("damaged.csv", text);
    const ProcessResult result = run_ringscope({"validate", "--published", folder.path()});
    EXPECT_EQ(result.code, 2) << text;
    return result.err;
  };
  EXPECT_THAT(refusal(""), HasSubstr("damaged.csv"));
  EXPECT_THAT(refusal(with_columns("")), HasSubstr("no CSV file with published measurements"));
  EXPECT_THAT(refusal(with_columns("D-1,H100,8,1,NVLi")), HasSubstr("damaged.csv:2"));
  EXPECT_THAT(refusal("id,algorithm,cp\nD-1,ring,8\n"), HasSubstr("gpu"));
}

TEST(Machines, AreListedShownAndFoundByEveryVerb) {
  const auto list = run_json_verb({"machines"});
  EXPECT_GE(list.at("machines").size(), 12U);
  const auto shown = run_json_verb({"machines", "h100-sxm-8"});
  EXPECT_THAT(shown.at("provenance").at("kernels fa3").get<std::string>(), HasSubstr("fitted"));
  const auto simulated =
      run_json_verb({"simulate", "--machine", "h100-sxm-8", "--model", "llama-3-8b", "--seq",
                     "64Ki", "--ranks", "8", "--block", "8Ki"});
  EXPECT_GT(simulated.at("prediction").at("makespan_ps").get<int64_t>(), 0);
  const ProcessResult wrong = run_ringscope({"simulate", "--machine", "h100-sxm8"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("h100-sxm-8"));
  EXPECT_EQ(run_ringscope({"machines", "build"}).code, 2);
}

}  // namespace
}  // namespace ring::testing
