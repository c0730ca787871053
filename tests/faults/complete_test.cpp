// That every known fault has a test, by its number.
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ring {
namespace {

/// The numbers of the tests of this suite: "F28LegalDegreesAreNamed" is of 28.
std::set<int> tested_numbers() {
  std::set<int> numbers;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
    const testing::TestSuite& tests = *all.GetTestSuite(suite);
    for (int i = 0; i < tests.total_test_count(); ++i) {
      const std::string name = tests.GetTestInfo(i)->name();
      if (name.size() > 1 && name[0] == 'F' && std::isdigit(static_cast<unsigned char>(name[1])))
        numbers.insert(std::stoi(name.substr(1)));
    }
  }
  return numbers;
}

TEST(Faults, EveryNumberHasATest) {
  const std::set<int> tested = tested_numbers();
  for (const int number :
       {1, 3, 4, 5, 6, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 24, 25, 27, 28, 29, 30})
    EXPECT_TRUE(tested.contains(number)) << "F" << number;
}

}  // namespace
}  // namespace ring
