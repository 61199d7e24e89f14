"""A routing algorithm is one file and one row: this adds one in a copy of the sources and runs a scenario with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # the copy is compiled

ROOT = Path(__file__).resolve().parents[2]

# Every packet between two groups goes by way of one group, the same for all.
SOURCE = """
#include "core/route/algorithms.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::fabric {
namespace {

class ByGroup final : public Routing {
 public:
  ByGroup(const Spec& spec, const Dragonfly& dragonfly)
      : dragonfly_(dragonfly), via_{static_cast<std::uint32_t>(spec.number(fields::fabric_routing_via_group))} {}
  Way choose(const RouteQuery& query, PacketDraws& draws, const LoadView&) const override {
    const GroupId from = dragonfly_.group_of(query.source);
    const GroupId to = dragonfly_.group_of(query.target);
    Way way = draw_minimal(dragonfly_, query, draws);
    if (from == to || via_ == from || via_ == to) return way;
    way.first_global = &dragonfly_.global_ends(from, via_)[0];
    way.open_ended = true;
    return way;
  }
  Way go_on(const RouteQuery& query, PacketDraws& draws, const LoadView&) const override {
    return draw_minimal(dragonfly_, query, draws);
  }

 private:
  const Dragonfly& dragonfly_;
  GroupId via_;
};

}  // namespace

std::unique_ptr<Routing> make_by_group(const Spec& spec, const Dragonfly& dragonfly) {
  return std::make_unique<ByGroup>(spec, dragonfly);
}

}  // namespace dryfly::fabric
"""

ROW = """    "by_group": RoutingAlgorithm(
        meaning="by way of the one group that via_group names",
        fields={
            "fabric.routing.via_group": optional(count("fabric.routing.via_group", "by_group: that group", most=510))
        },
    ),
}
"""

# In the copy: how long a message of 8 bytes takes from the first NIC of group 0 to the first of group 1.
LATENCY = """
import json, sys
sys.path.insert(0, "scenario")
import run
for sets in json.loads(sys.argv[2]):
    spec = run.spec_of("testbed", sets)
    streams = "time 0 1000000000\\none 0 1 1 fixed:8 3 unordered 8 depth:1\\n"
    print(run.printed(sys.argv[1], spec, streams)["one.p50_ns"])
"""


def python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree / "python")},
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with one algorithm more: one file, one row, and what tool/generate.py makes of them."""
    tree = tmp_path_factory.mktemp("tree")
    sources = ("core", "scenario", "testing", "oracle", "python", "tool", "data")
    for folder in (*sources, "docs/example", "docs/reference", "docs/model"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CMakeLists.txt", tree)
    (tree / "core/route/by_group.cpp").write_text(SOURCE)
    registry = tree / "python/dryfly/machine/routing.py"
    text = registry.read_text()
    assert text.endswith("    ),\n}\n")
    text = text.replace("import Field, count, size, text", "import Field, count, optional, size, text")
    registry.write_text(text.removesuffix("}\n") + ROW)
    assert python(tree, "tool/generate.py", "--check").returncode == 1
    generated = python(tree, "tool/generate.py")
    assert generated.returncode == 0, generated.stderr
    return tree


@pytest.fixture(scope="module")
def program(tree: Path) -> Path:
    """What runs scenarios, and nothing else, is built; without optimisation, which results do not depend on."""
    build = tree / "build"
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={found}"] if (found := shutil.which("ccache")) else []
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DDRYFLY_TESTS=ON", *launcher]
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    for command in (
        ["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(build), *options],
        ["ninja", "-C", str(build), "-j2", "fabric-traffic"],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return build / "scenario/fabric-traffic"


def test_the_reference_pages_have_the_new_row_and_its_field(tree: Path) -> None:
    machine_page = (tree / "docs/reference/machine-file.md").read_text()
    assert "| `by_group` | by way of the one group that via_group names | `fabric.routing.via_group` |" in machine_page
    assert "| `fabric.routing.via_group`* | 0 to 510 | by_group: that group |" in machine_page
    assert "`fabric.routing.via_group`*" in (tree / "docs/reference/resolved-spec.md").read_text()


def test_a_machine_may_ask_for_the_new_algorithm_and_the_field_is_checked(tree: Path) -> None:
    load = "import sys; from dryfly.machine.load import load; load('testbed', sets=sys.argv[1:])"
    assert python(tree, "-c", load, "fabric.routing.algorithm=by_group", "fabric.routing.via_group=3").returncode == 0
    beyond = python(tree, "-c", load, "fabric.routing.via_group=511")
    assert "fabric.routing.via_group" in beyond.stderr
    assert "accepted is 0 to 510" in beyond.stderr
    unknown = python(tree, "-c", load, "fabric.routing.algorithm=by_groups")
    assert "minimal or valiant or adaptive or by_group" in unknown.stderr


def test_packets_go_by_the_group_that_the_new_algorithm_names(tree: Path, program: Path) -> None:
    """Each group is one switch here. A microsecond more on a link is seen by the messages that cross it, only."""

    machine = ["topology.group.compute.groups=9", "topology.group.compute.switches=1", "topology.group.compute.nodes=8"]
    machine += ["topology.global.compute-compute=1", "fabric.switch.latency_spread=0 s"]

    def latencies(*runs: list[str]) -> list[float]:
        done = python(tree, "-c", LATENCY, str(program), json.dumps([[*machine, *sets] for sets in runs]))
        assert done.returncode == 0, done.stderr
        return [float(line) for line in done.stdout.split()]

    minimal = ["fabric.routing.algorithm=minimal"]
    by_3 = ["fabric.routing.algorithm=by_group", "fabric.routing.via_group=3"]
    by_4 = ["fabric.routing.algorithm=by_group", "fabric.routing.via_group=4"]
    direct, to_3, onward = (f"fabric.extra_flight={link} 1 us" for link in ("s0>s1", "s0>s3", "s3>s1"))
    plain, detour, other = latencies(minimal, by_3, by_4)
    assert detour == other > plain
    assert latencies([*minimal, direct], [*minimal, to_3]) == [plain + 1000, plain]
    assert latencies([*by_3, direct], [*by_3, to_3], [*by_3, onward]) == [detour, detour + 1000, detour + 1000]
    assert latencies([*by_4, to_3], [*by_4, onward]) == [detour, detour]
