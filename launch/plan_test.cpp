#include "launch/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/spec/spec.hpp"
#include "launch/ending.hpp"
#include "launch/environment.hpp"

using namespace dryfly;
using namespace dryfly::launch;

TEST_CASE("a plan is read item by item, values verbatim to the end of the line") {
  const Plan plan = parse_plan(
      "# two ranks\n"
      "rank 1 node 40 local 0\n"
      "rank 0 node 7 local 3\n"
      "\n"
      "env TEXT= two  words = here \n"
      "rankenv 1 PORT=\n"
      "cwd /tmp/a directory\n"
      "stdin-rank 1");
  REQUIRE(plan.size() == 2);
  CHECK(plan.ranks[0].node == 7);
  CHECK(plan.ranks[0].local == 3);
  CHECK(plan.ranks[1].node == 40);
  CHECK(plan.environment == std::vector<std::string>{"TEXT= two  words = here "});
  CHECK(plan.ranks[1].environment == std::vector<std::string>{"PORT="});
  CHECK(plan.directory == "/tmp/a directory");
  CHECK(plan.stdin_rank == 1);
}

TEST_CASE("a plan for PMIx names the server's library, its folder and every node") {
  const std::string ranks = "rank 0 node 7 local 0\nrank 1 node 9 local 0\n";
  const Plan plan = parse_plan(ranks + "node 7 nid 7\nnode 9 nid9\npmix /a b/libpmix.so.2\npmix-folder /tmp/x");
  CHECK(plan.node_names.at(7) == "nid 7");
  CHECK(plan.pmix_library == "/a b/libpmix.so.2");
  CHECK(plan.pmix_folder == "/tmp/x");
  CHECK_THROWS_WITH_AS(parse_plan(ranks + "node 7 a\npmix /l\npmix-folder /f"),
                       "launch plan: `pmix` needs a name for node 9", SpecError);
  CHECK_THROWS_WITH_AS(parse_plan(ranks + "node 7 a\nnode 9 b\npmix /l"), "launch plan: `pmix` needs a `pmix-folder`",
                       SpecError);
}

TEST_CASE("a plan for another launcher has its command word by word and the variable with the rank") {
  const std::string ranks = "rank 0 node 7 local 0\n";
  const Plan plan = parse_plan(ranks + "starter mpiexec\nstarter -f\nstarter a b\nstarter-rank PMI_RANK\n" +
                               "starter-env A=1\nstarter-pmi");
  CHECK(plan.starter == std::vector<std::string>{"mpiexec", "-f", "a b"});
  CHECK(plan.starter_rank == "PMI_RANK");
  CHECK(plan.starter_environment == std::vector<std::string>{"A=1"});
  CHECK(plan.starter_serves_pmi);
  CHECK_FALSE(parse_plan(ranks).starter_serves_pmi);
  CHECK_THROWS_WITH_AS(parse_plan(ranks + "starter mpiexec"), "launch plan: `starter` needs a `starter-rank`",
                       SpecError);
}

TEST_CASE("a shim is told what its rank needs, and of PMI only where dryfly-launch serves it") {
  Plan plan = parse_plan("rank 0 node 7 local 0\nnode 7 nid7\nenv A=1\nrankenv 0 A=2\nstarter s\nstarter-rank R\n");
  const char* inherited[] = {"OWN=1", nullptr};
  const auto texts = [&] { return Environments(plan, inherited).for_shim(0, {}); };
  const auto has = [](const auto& all, const char* text) { return std::ranges::find(all, text) != all.end(); };
  CHECK(has(texts(), "env A=2"));
  CHECK(has(texts(), "env DRYFLY_NODE_NAME=nid7"));
  CHECK(has(texts(), "env PMI_RANK=0"));
  CHECK(has(texts(), "unset PMI_PORT"));
  CHECK_FALSE(has(texts(), "env OWN=1"));
  plan.starter_serves_pmi = true;
  CHECK_FALSE(has(texts(), "env PMI_RANK=0"));
  CHECK_FALSE(has(texts(), "unset PMI_PORT"));
}

TEST_CASE("a rank finds the name of its node and its own PMIx server, not one of the caller's") {
  const Plan plan = parse_plan("rank 0 node 7 local 0\nnode 7 nid7\n");
  const char* inherited[] = {"PMIX_SERVER_URI2=theirs", "PMIX_NAMESPACE=theirs", nullptr};
  const auto variables = Environments(plan, inherited).of_rank(0, 5, {"PMIX_SERVER_URI41=ours"});
  const auto has = [&](const char* assignment) { return std::ranges::find(variables, assignment) != variables.end(); };
  CHECK(has("DRYFLY_NODE_NAME=nid7"));
  CHECK(has("PMIX_SERVER_URI41=ours"));
  CHECK_FALSE(has("PMIX_SERVER_URI2=theirs"));
  CHECK_FALSE(has("PMIX_NAMESPACE=theirs"));
}

TEST_CASE("a plan that cannot be meant is refused with its line") {
  CHECK_THROWS_WITH_AS(parse_plan("rank 0 node 1\n"), "launch plan, line 1, `rank 0 node 1`: `local` is missing",
                       SpecError);
  CHECK_THROWS_WITH_AS(parse_plan("rank 0 node 1 local 0\nrank 0 node 2 local 0"),
                       "launch plan, line 2, `rank 0 node 2 local 0`: this rank is given twice", SpecError);
  CHECK_THROWS_WITH_AS(parse_plan("rank 0 node 1 local 0 x"),
                       "launch plan, line 1, `rank 0 node 1 local 0 x`: `x` is too much", SpecError);
  CHECK_THROWS_WITH_AS(parse_plan("rank 1 node 1 local 0"), "launch plan: rank 0 has no `rank` line", SpecError);
  CHECK_THROWS_WITH_AS(parse_plan("env =x"), "launch plan, line 1, `env =x`: NAME=VALUE is missing", SpecError);
  CHECK_THROWS_WITH_AS(parse_plan("rank 99999999 node 1 local 0"),
                       "launch plan, line 1, `rank 99999999 node 1 local 0`: ranks go up to 1048575", SpecError);
  CHECK_THROWS_WITH_AS(parse_plan("nodes 3"),
                       "launch plan, line 1, `nodes 3`: items are rank, env, rankenv, cwd, stdin-rank, node, pmix, "
                       "pmix-folder, starter, starter-rank, starter-env and starter-pmi",
                       SpecError);
  CHECK_THROWS_WITH_AS(parse_plan("rank 0 node 1 local 0\nstdin-rank 1"),
                       "launch plan: stdin-rank 1 is no rank of the job", SpecError);
  CHECK_THROWS_WITH_AS(parse_plan(""), "launch plan: there is no rank", SpecError);
}

TEST_CASE("a rank's environment: the more specific setting wins, and another launcher's PMI is gone") {
  const Plan plan = parse_plan(
      "rank 0 node 0 local 0\nrank 1 node 0 local 1\nrank 2 node 5 local 0\n"
      "env B=plan\nenv C=plan\nrankenv 1 C=rank\nrankenv 1 PMI_RANK=99\n");
  const char* inherited[] = {"A=inherited", "B=inherited",     "C=inherited", "PMI_PORT=host:1",
                             "PMI_ID=3",    "SLURM_LOCALID=7", nullptr};
  CHECK(Environments(plan, inherited).of_rank(1, 12) ==
        std::vector<std::string>{"A=inherited", "B=plan", "C=rank", "DRYFLY_RANK=1", "MPI_LOCALNRANKS=2",
                                 "MPI_LOCALRANKID=1", "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                                 "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=3", "PALS_LOCAL_RANKID=1",
                                 "PALS_RANKID=1", "PMI_FD=12", "PMI_RANK=1", "PMI_SIZE=3", "PMI_SPAWNED=0",
                                 "SLURM_LOCALID=1", "SLURM_PROCID=1"});
}

TEST_CASE("a launcher that starts ranks keeps its own numbers of them, and passes none on from before it") {
  const Plan plan = parse_plan("rank 0 node 0 local 0\nrank 1 node 5 local 0\n");
  const char* inherited[] = {"A=inherited", "SLURM_JOB_ID=12", "SLURM_LOCALID=7", "SLURM_PROCID=7", nullptr};
  const Environments environments(plan, inherited);
  CHECK(environments.of_starter() == std::vector<std::string>{"A=inherited", "SLURM_JOB_ID=12"});
  const std::vector<std::string> texts = environments.for_shim(1, {});
  const auto has = [&texts](const char* text) { return std::ranges::count(texts, text) == 1; };
  CHECK(has("default SLURM_LOCALID=0"));
  CHECK(has("default SLURM_PROCID=1"));
  CHECK(has("default MPI_LOCALNRANKS=1"));
  CHECK(has("env PMI_RANK=1"));
}

TEST_CASE("a wrapper's exit code may stand for a signal") {
  CHECK(signal_in_exit_code(139) == 11);  // a shell: 128 + SIGSEGV
  CHECK(signal_in_exit_code(247) == 9);   // Python, sys.exit(-9): 256 - SIGKILL
  CHECK_FALSE(signal_in_exit_code(128));
  CHECK_FALSE(signal_in_exit_code(1));
  CHECK_FALSE(signal_in_exit_code(0));
}
