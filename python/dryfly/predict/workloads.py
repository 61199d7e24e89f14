"""The workloads, a row each: what they are, which models answer for them, and their parameters.

The skeleton of a workload is in core/motif under its name and is given the parameters in base units, by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dryfly.base.errors import UserError
from dryfly.base.units import RATIO
from dryfly.machine.field import Field, count, rate, size, time
from dryfly.predict import facts
from dryfly.predict.parameter import Parameter

SKELETON, CLOSED, DRAWN = "skeleton", "closed", "drawn"


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    about: str
    models: tuple[str, ...]  # the first one is the default
    parameters: tuple[Parameter, ...]
    ppn: str = "1"  # ranks of a node where none are given; "gpus", "tiles" (of GPUs) or "nics": one for each
    engine: str = ""  # its name there, if that is another
    one_size: bool = True  # all messages have about the size that a parameter says
    is_file: bool = False  # its name is that of a file or folder, which says what ranks do

    def of_model(self, model: str) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if not each.models or model in each.models)

    def values(self, given: Mapping[str, str], model: str) -> dict[str, str]:
        """All that are known, in base units. Raises UserError for one that is unknown, or not accepted."""
        known = {each.name: each for each in self.of_model(model)}
        for name in given:
            if name not in known:
                raise UserError(self._unknown(name, model, list(known)))
        found = {}
        for name, parameter in known.items():
            text = given.get(name, parameter.default)
            if text is not None:
                found[name] = parameter.value(text)
        return found

    def _unknown(self, name: str, model: str, known: Sequence[str]) -> str:
        if any(each.name == name for each in self.parameters):
            return f"{self.name}: parameter {name} is none of --model {model}; there are {', '.join(known)}"
        return f"{self.name} has no parameter {name}; there are {', '.join(known)}"


def _choice(meaning: str, *words: str) -> Field:
    return Field(choices=words, meaning=meaning)


def _share(meaning: str) -> Field:
    return Field(dimension=RATIO, least=1, most=10**6, meaning=meaning)


def _part(meaning: str) -> Field:
    """A share that may be none."""
    return Field(dimension=RATIO, least=0, most=10**6, meaning=meaning)


# Of a question, by the names of the flags, and as what they are written: no workload has a parameter of such a name.
OPTIONS = {
    "nodes": int, "ppn": int, "seed": int, "machine": str, "level": str, "place": str, "faults": str, "noise": str,
    "software": str, "mpi": str, "model": str,
}  # fmt: skip

# The other long options of the command, by which a parameter of a file in Python could not be named either.
OTHER_OPTIONS = frozenset(
    ("set", "seeds", "jobs", "timeout", "program", "json", "out", "dask", "sweep", "fit", "parameters", "quiet", "help")
)


def _fact(workload: str, name: str, field: Field, argument: str = "") -> Parameter:
    """Whose value is a fact of the workload's file in data/predict."""
    return Parameter(name=name, field=field, default=facts.text(workload, name), argument=argument)


def _assumed(name: str, field: Field) -> Parameter:
    """Of HPL."""
    return _fact("hpl", name, field)


def _of_skeleton(name: str, field: Field, default: str | None = None) -> Parameter:
    return Parameter(name=name, field=field, default=default, models=(SKELETON,))


def _of_closed(name: str, field: Field, default: str) -> Parameter:
    return Parameter(name=name, field=field, default=default, models=(CLOSED,))


_RANK_GRID = Parameter(name="grid", field=_choice("ranks along each axis; without it as cubic as can be"), grid=3,
                       argument="x y z")  # fmt: skip
_LIBRARY = _of_skeleton("library", _choice("whose choice of algorithms it is", "mpich", "openmpi"), "mpich")
# How ranks of a node talk in skeletons.
_ON_NODE = _of_skeleton("on_node", _choice("what messages of a node go through", "memory", "nic"), "memory")
# The same where the library may be one for GPUs.
_ON_NODE_OR_GPU = _of_skeleton("on_node", _choice("what messages of a node go through; gpu: links between GPUs",
                                                  "memory", "nic", "gpu"), "memory")  # fmt: skip
_FULL = count("", "1: everything is run, none of it sampled", most=1)

# What the campaigns on Aurora chose, to be undone.
OF_CAMPAIGNS = (
    _of_closed("gpu_mpi", _choice("whether messages leave and reach GPUs' memory", "off", "on"), "off"),
    _of_closed("queues", _choice("of a GPU: with one, copies and products wait for one another", "several", "one"),
               "several"),
    _of_closed("pinning", _choice("socket whose processors and NICs a process uses", "own", "other"), "own"),
    _of_closed("nic_map", _choice("NICs that a node's processes use: each its own, or all the first one", "spread",
                                  "first"), "spread"),
    _of_closed("registration", _choice("of buffers with NICs: kept, or anew for each message", "kept", "each"), "kept"),
)  # fmt: skip

# Names and words are those of dryfly-hpl.
_HPL = (
    Parameter(name="n", field=count("", "order of the matrix; without it as --fit chooses", least=1)),
    Parameter(name="nb", field=count("", "size of a block", least=1, most=2**16), default="384"),
    Parameter(name="grid", field=_choice("processes, P rows x Q columns; without it as --fit chooses"), grid=2,
              argument="p q"),
    Parameter(name="pmap", field=_choice("which way ranks are numbered in the grid", "column", "row"),
              default="column"),
    Parameter(name="bcast", field=_choice("of a panel", "1ring", "1ringM", "2ring", "2ringM", "long", "longM"),
              default="1ringM"),
    Parameter(name="swap", field=_choice("exchange of rows", "binary", "spread", "mix"), default="spread"),
    Parameter(name="swap_threshold", field=count("", "columns up to which mix is binary"), default="64"),
    Parameter(name="depth", field=count("", "panels that are factored ahead", most=1), default="1"),
    Parameter(name="pfact", field=_choice("what factors panels", "cpu", "gpu"), default="cpu"),
    Parameter(name="matrix", field=_choice("where it lies; without it in the memory of GPUs, if there are any",
                                           "gpu", "host"), models=(CLOSED,)),
    Parameter(name="swap_nics", field=count("", "NICs of a socket for the exchange of rows alone; 0: all phases share "
                                            "all; without it 1 where a socket has two or more", most=64)),
    *OF_CAMPAIGNS,
    Parameter(name="panel_cores", field=_choice("that factor panels: a rank's own, or those of ranks that wait too",
                                                "own", "node"), default="own"),
    _of_closed("staging", _choice("memory of the processors for panels; hbm: the faster one, where there are two",
                                  "hbm", "ddr"), "hbm"),
    _of_skeleton("gpu", _choice("whether a rank goes on with messages while its GPU multiplies", "beside", "blocking"),
                 "beside"),
    _of_skeleton("equil", count("", "1: pieces of rows of one size", most=1)),
    _of_skeleton("split", count("", "parts of an update", least=1, most=64)),
    _of_skeleton("rfact", _choice("of panels", "left", "crout", "right")),
    _of_skeleton("nbmin", count("", "columns of a leaf of the recursion", least=1, most=2**16)),
    _of_skeleton("ndiv", count("", "pieces of each recursion", least=2, most=2**16)),
    _of_skeleton("pivot", _choice("how pivots are found", "p2p", "collective", "hybrid-panel", "hybrid-column")),
    _of_skeleton("full", _FULL, "0"),
    _of_skeleton("stretches", count("", "of panels, in a sample", least=3, most=1000)),
    _of_skeleton("stretch", count("", "panels that count of each", least=1, most=10**5)),
    _of_skeleton("warm", count("", "panels before those", most=10**5)),
    _of_skeleton("bound", _share("of the time, that a sample may err by, or takes more panels"), "5 %"),
    _of_skeleton("rounds", count("", "in a sample, what the rounds of a ring are lumped to; 0: none", most=2**20)),
    _of_skeleton("part", size("", "into which long messages are divided; without it 64 KiB, of a long panel a 16th",
                              least=4096, most=2**30)),
    _ON_NODE,
    _assumed("gemm_exposed", _part("of the matrix' traffic, that products do not hide")),
    _assumed("gemm_tile", count("", "edge of the tiles of products", least=1, most=2**14)),
    _assumed("gemm_tiles", count("", "tiles at a time", least=1, most=2**20)),
    _assumed("triangle_share", _share("of the products' rate, in the triangular solve")),
    _assumed("panel_share", _share("of the cores' peak, while they factor a panel")),
    _assumed("panel_share_gpu", _share("of the products' rate, where a GPU factors it")),
    _assumed("panel_base", count("", "columns below which the recursion stays in caches", least=1, most=2**16)),
    _assumed("memory_share", _share("of the memory, that --fit may fill")),
)  # fmt: skip

_SAMPLE = count("", "turns that are run of each exchange of a transform at its beginning, and as many later; 0: all of "
                "it is run", most=1000)  # fmt: skip
_PART = _of_skeleton("part", size("", "into which long messages are divided", least=4096, most=2**30))

_HPLMXP = (
    Parameter(name="n", field=count("", "order of the matrix; without it memory_share is filled", least=1)),
    _fact("hplmxp", "nb", count("", "size of a block", least=1, most=2**16)),
    Parameter(name="grid", field=_choice("processes, P rows x Q columns; without it as square as can be"), grid=2),
    _of_skeleton("pmap", _choice("which way ranks are numbered in the grid", "column", "row"), "row"),
    _of_closed("depth", count("", "panels that are factored ahead", most=1), "1"),
    _of_closed("precision", _choice("of products", "bf16", "fp16"), "bf16"),
    Parameter(name="storage", field=_choice("what an element is kept and sent in", "half", "single"), default="half"),
    _of_closed("triangle", _choice("what does the triangular solves", "gpu", "cpu"), "gpu"),
    _of_closed("amx", _choice("whether processors multiply in 16 bits", "off", "on"), "off"),
    *OF_CAMPAIGNS,
    _fact("hplmxp", "corrections", count("", "steps of refinement", most=1000)),
    _of_closed("gemm_exposed", _part("of the matrix' traffic, that products do not hide"),
               facts.text("hplmxp", "gemm_exposed")),
    _of_closed("gemm_tile", count("", "edge of the tiles of products", least=1, most=2**14),
               facts.text("hplmxp", "gemm_tile")),
    _of_closed("gemm_tiles", count("", "tiles at a time, of a GPU", least=1, most=2**20),
               facts.text("hplmxp", "gemm_tiles")),
    _of_closed("triangle_share", _share("of the GPUs' rate in FP32, in triangular solves"),
               facts.text("hplmxp", "triangle_share")),
    _of_closed("panel_share", _share("of the cores' peak in FP32, while they factor a diagonal block"),
               facts.text("hplmxp", "panel_share")),
    _of_closed("fp16_share", _share("of the rate in BF16, with precision=fp16"), facts.text("hplmxp", "fp16_share")),
    _of_closed("memory_share", _share("of the GPUs' memory, that the matrix fills without n"),
               facts.text("hplmxp", "memory_share")),
    _ON_NODE,
)  # fmt: skip

_LONG = 10**19  # ps, 115 days
_CAMPAIGN = (
    _fact("campaign", "work", time("", "that the job takes where nothing fails", least=10**12, most=_LONG)),
    _fact("campaign", "failure", time("", "between failures of one node that end a job, on the mean", least=10**12,
                                      most=10**22)),
    _fact("campaign", "intermittent", _part("of failures, after which a node fails again until it is repaired")),
    _fact("campaign", "permanent", _part("of failures, after which a node is out at once")),
    _fact("campaign", "recurs", time("", "until an intermittent node fails again, on the mean", least=10**12,
                                     most=10**22)),
    Parameter(name="burst", field=time("", "between correlated failures, on the mean; 0: there are none", most=10**22),
              default="0 s"),
    _fact("campaign", "burst_nodes", count("", "that each takes away", most=10**7)),
    _fact("campaign", "burst_for", time("", "for which it does", most=_LONG)),
    _fact("campaign", "checkpoint", time("", "that one takes", most=_LONG)),
    _fact("campaign", "restart", time("", "from a failure until work goes on", most=_LONG)),
    Parameter(name="interval", field=time("", "of work between checkpoints; 0: none is kept; without it Daly's best",
                                          most=_LONG)),
    Parameter(name="policy", field=Field(meaning="of repair; without it that of data/predict/campaign.toml",
                                         such_as="a FILE in TOML")),
    Parameter(name="histories", field=count("", "that are drawn", least=10, most=10**6), default="2000"),
)  # fmt: skip

_STARTUP = (
    Parameter(name="launcher", field=_choice("what starts the ranks", "pals", "hydra", "prterun", "dryfly"),
              default="pals"),
    Parameter(name="pmi", field=_choice("what ranks and their daemons speak; without it the launcher's own", "pmi1",
                                        "pmi2", "pmix")),
    Parameter(name="exchange", field=_choice("whose addresses go by PMI, of MPICH: those of one rank a node, and "
                                             "the others over the fabric, or all", "roots", "all"), default="roots"),
    Parameter(name="fence", field=_choice("of PMIx: it brings all addresses, or a rank asks for each", "collect",
                                          "direct"), default="collect"),
    Parameter(name="arp", field=_choice("whether the tables of NICs are complete before the job", "static", "dynamic"),
              default="static"),
    Parameter(name="contacts", field=count("", "other nodes that a NIC, or with fence=direct a rank, meets first; "
                                           "without it as many as in a barrier", most=10**6)),
    Parameter(name="radix", field=count("", "children of a daemon, in the launcher's tree; without it its own", least=2,
                                        most=10**6)),
    Parameter(name="card", field=count("", "characters of an address; without it as of dryfly's provider", least=1,
                                       most=1024)),
    _fact("startup", "environment", size("", "of the user's variables, that Hydra and PALS hand on", most=2**24)),
    _fact("startup", "topology", size("", "of a node's description, that PMIx hands to each rank", most=2**28)),
    _fact("startup", "latency", time("", "of a message between daemons", most=10**12)),
    _fact("startup", "rate", rate("", "of their network")),
    _fact("startup", "serve", time("", "of a daemon, for each message", most=10**12)),
    _fact("startup", "local", time("", "of a message between a rank and its daemon", most=10**12)),
    _fact("startup", "spawn", time("", "to start a daemon on another node; PALS' run already", most=10**14)),
    _fact("startup", "at_once", count("", "daemons that one starts at a time", least=1, most=10**6)),
    _fact("startup", "fork", time("", "to start a rank, one after another on a node", most=10**14)),
    _fact("startup", "init", time("", "of MPI_Init by itself", most=10**14)),
    _fact("startup", "arp_time", time("", "of a request to all and its answer", most=10**12)),
)  # fmt: skip

# Names are those of programs/proxy/graph500.c, where it has them.
_GRAPH500 = (
    _of_skeleton("scale", count("", "vertices are 2^scale; without it 2^26 for each rank", least=6, most=63)),
    _of_skeleton("roots", count("", "searches", least=1, most=64), "1"),
    _fact("graph500", "edgefactor", count("", "edges for each vertex", least=1, most=1024)),
    _fact("graph500", "alpha", count("", "a level goes bottom up above 1 / alpha of the edges left", least=1,
                                     most=10**6)),
    _fact("graph500", "beta", count("", "and top down again below 1 / beta of the vertices", least=1, most=10**6)),
    _fact("graph500", "compute", _choice("whose memory is looked up", "none", "cpu", "gpu")),
    _fact("graph500", "line", size("", "that an access to memory takes", least=1, most=4096)),
    _of_skeleton("part", size("", "how long messages are divided, in the network", least=4096, most=2**30), "1 MiB"),
    _ON_NODE,
)  # fmt: skip

# Names are those of programs/proxy/fmm.c.
_FMM = (
    _of_skeleton("what", _choice("operation", "get", "put"), "get"),
    _fact("fmm", "boxes", count("", "along a side of a group's cube", least=2, most=1024)),
    _fact("fmm", "bytes", size("", "of a box's expansion", least=1, most=2**32 - 1)),
    _fact("fmm", "ops", count("", "operations of a group between two fences", least=1, most=2**32 - 1)),
    _fact("fmm", "list", _choice("an operation of each rank in turn, or all of a rank together", "turns", "ranks")),
    _of_skeleton("groups", count("", "sub-communicators, of ranks with numbers in a row", least=1, most=2**32 - 1),
                 "1"),
    _of_skeleton("library", _choice("whose fence", "mpich", "openmpi"), "mpich"),
    _ON_NODE,
)  # fmt: skip

# Names are those of Megatron-LM's options, in short. The model has 22 thousand million parameters.
_TRANSFORMER = (
    _of_skeleton("layers", count("", "of the model", least=1, most=2**20), "48"),
    _of_skeleton("hidden", count("", "numbers of a token between layers", least=1, most=2**20), "6144"),
    _of_skeleton("heads", count("", "of the attention", least=1, most=2**20), "64"),
    _of_skeleton("sequence", count("", "tokens of a sequence", least=1, most=2**24), "2048"),
    _of_skeleton("vocabulary", count("", "words", least=1, most=2**24), "51200"),
    _of_skeleton("micro_batch", count("", "sequences of a pass", least=1, most=2**20), "1"),
    _of_skeleton("global_batch", count("", "sequences of a step; without it 16 passes", least=1, most=2**24)),
    _of_skeleton("tp", count("", "ranks that share each layer; without it all of a node, as far as heads can be "
                             "divided among them", least=1, most=2**20)),
    _of_skeleton("pp", count("", "stages of layers, one behind another", least=1, most=2**20), "1"),
    _of_skeleton("interleave", count("", "chunks of layers of a stage, which other stages' lie between", least=1,
                                     most=2**20), "1"),
    _of_skeleton("dp", count("", "replicas; without it as many as there are ranks for", least=1, most=2**20)),
    _of_skeleton("sequence_parallel", count("", "1: ranks of tp divide sequences too, between layers", most=1), "0"),
    _of_skeleton("recompute", _choice("of the activations, on the way back", "none", "full"), "none"),
    _of_skeleton("attention", _choice("kernel", "flash", "unfused"), "flash"),
    _of_skeleton("zero", count("", "1: the optimizer is divided among replicas (ZeRO-1)", most=1), "1"),
    _fact("transformer", "gradient", count("", "bytes of a gradient, where replicas add them: 2 or 4", least=2,
                                           most=4)),
    _of_skeleton("buckets", count("", "parts of a stage's gradients", least=1, most=256), "1"),
    _of_skeleton("overlap", count("", "1: a part is reduced while the last pass goes on", most=1), "0"),
    _of_skeleton("tensor", _choice("collectives of a group on one node take what they take alone, once its ranks have "
                                   "met; or each is run", "alone", "each"), "alone"),
    _fact("transformer", "matmul_share", _share("of the machine's rate, in products")),
    _of_skeleton("library", _choice("whose collectives", "rccl", "oneccl"), "rccl"),
    _fact("transformer", "gpu_step", time("", "of a step between GPUs of a node", most=10**12), "gpu_step_ps"),
    _fact("transformer", "gpu_post", time("", "of a processor, to have a GPU's message sent", most=10**12),
          "gpu_post_ps"),
    _fact("transformer", "part", size("", "how long messages are divided, in the network", least=4096, most=2**30)),
    _of_skeleton("on_node", _choice("what messages of a node go through", "gpu", "nic"), "gpu"),
)  # fmt: skip

_BYTES = size("", "of a message", most=2**32)

# Of a collective. Names of algorithms are the engine's (docs/model/collectives.md).
_CHOSEN = (
    _of_skeleton("algorithm", _choice("of it; without it as the library chooses")),
    _of_skeleton(
        "library",
        _choice(
            "whose choice it is; without it MPICH's; RCCL and oneCCL have allreduce, allgather and "
            "reduce_scatter_block",
            "mpich",
            "openmpi",
            "rccl",
            "oneccl",
        ),
    ),
    _of_skeleton(
        "selection",
        Field(
            meaning="the library's tuning file, asked before it chooses by itself",
            such_as="a FILE: MPICH's in JSON, or Open MPI's rules",
        ),
    ),
)
_ROOT = _of_skeleton("root", count("", "rank that it goes from, or to", most=2**32 - 1))


def _collective(name: str, about: str, *more: Parameter, sized: bool = True) -> Workload:
    bytes_of = (Parameter(name="bytes", field=_BYTES, default="8 B"),) if sized else ()
    often = Parameter(name="count", field=count("", "how often", least=1, most=10**6), default="1")
    return Workload(
        name=name, about=about, models=(SKELETON,), parameters=(*bytes_of, often, *more, *_CHOSEN, _ON_NODE_OR_GPU)
    )


ROWS = (
    Workload(name="hpl", about="High-Performance Linpack: LU with partial pivoting over P x Q", ppn="gpus",
             models=(CLOSED, SKELETON), parameters=_HPL, one_size=False),
    Workload(name="alltoall", about="every rank sends so much to every other: without the last three by pairwise "
             "exchange, all its steps or a sample", models=(SKELETON,),
             parameters=(
                 Parameter(name="bytes", field=_BYTES, default="64 KiB"),
                 _of_skeleton("full", _FULL),
                 Parameter(name="stretches", field=count("", "of steps, in a sample", least=2, most=1000)),
                 Parameter(name="stretch", field=count("", "steps that count of each", least=1, most=10**6)),
                 _ON_NODE,
                 *_CHOSEN,
             )),
    _collective("allreduce", "a sum over all ranks, known to all, in a loop"),
    _collective("barrier", "all ranks wait for all, in a loop", sized=False),
    _collective("bcast", "one rank's bytes to all others, in a loop", _ROOT),
    _collective("reduce", "a sum over all ranks, known to one, in a loop", _ROOT),
    _collective("gather", "so much of every rank to one, in a loop", _ROOT),
    _collective("scatter", "so much for every rank from one, in a loop", _ROOT),
    _collective("allgather", "so much of every rank to all others, in a loop"),
    _collective("allgatherv", "the same with sizes of its own for each rank, which are equal here, in a loop"),
    _collective("reduce_scatter", "a sum over all ranks, of which each gets a part, all of one size here, in a loop"),
    _collective("reduce_scatter_block", "a sum over all ranks, of which each gets its part, in a loop"),
    Workload(name="hplmxp", about="HPL-MxP: LU without pivoting in 16 bits on GPUs, refined in FP64", ppn="2",
             models=(CLOSED, SKELETON), parameters=_HPLMXP, one_size=False),
    Workload(name="campaign", about="a long job on nodes that fail: histories of it are drawn", models=(DRAWN,),
             parameters=_CAMPAIGN, one_size=False),
    Workload(name="startup", about="from the launcher to the end of MPI_Init: daemons, PMI, addresses, ARP",
             models=(CLOSED,), parameters=_STARTUP, ppn="nics", one_size=False),
    Workload(name="graph500", about="breadth-first search of Graph500, in both directions, on R x C ranks",
             models=(SKELETON,), parameters=_GRAPH500, ppn="nics", one_size=False),
    Workload(name="halo", about="ranks of a closed 3-D grid exchange with their neighbours, in a loop",
             models=(SKELETON,),
             parameters=(
                 _RANK_GRID,
                 Parameter(name="bytes", field=size("", "to each of 6 faces", most=2**40), default="8 B"),
                 Parameter(name="edge", field=size("", "to each of 12 edges; without it as to a face", most=2**40)),
                 Parameter(name="corner", field=size("", "to each of 8 corners; without it as to a face", most=2**40)),
                 Parameter(name="neighbours", field=_choice("faces alone, or edges and corners too", "6", "26"),
                           default="26"),
                 Parameter(name="steps", field=count("", "how often", least=1, most=10**6), default="10"),
                 Parameter(name="work", field=time("", "of computing in a step", most=10**15), default="0 s",
                           argument="work_ps"),
                 _ON_NODE,
             )),
    Workload(name="mbw_mr", about="osu_mbw_mr: windows of messages from ranks of the first half to those of the second",
             ppn="nics", models=(SKELETON,),
             parameters=(
                 Parameter(name="bytes", field=size("", "of a message", most=2**40), default="1 MiB"),
                 Parameter(name="window", field=count("", "messages of one", least=1, most=10**6), default="64"),
                 Parameter(name="iterations", field=count("", "windows", least=1, most=10**6), default="2"),
                 _PART,
                 _ON_NODE,
             )),
    Workload(name="hpcg", about="HPCG: conjugate gradients with multigrid; its virtual time is an iteration's",
             ppn="gpus", models=(SKELETON,), one_size=False,
             parameters=(
                 _RANK_GRID,
                 Parameter(name="local", field=_choice("points of a rank"), grid=3,
                           default="104x104x104"),
                 Parameter(name="levels", field=count("", "of the multigrid", least=1, most=12), default="4"),
                 _fact("hpcg", "colours", count("", "of points that a sweep does at once, each a call of its own",
                                                least=1, most=4096)),
                 Parameter(name="iterations", field=count("", "how many", least=1, most=10**6), default="3"),
                 _LIBRARY,
                 _ON_NODE,
             )),
    Workload(name="nekbone", about="Nekbone: conjugate gradients on spectral elements; its virtual time is an "
             "iteration's", ppn="gpus", models=(SKELETON,), one_size=False,
             parameters=(
                 _RANK_GRID,
                 Parameter(name="local", field=_choice("elements of a rank"), grid=3,
                           default="8x8x8"),
                 Parameter(name="nx1", field=count("", "points of an element along an edge", least=2, most=64),
                           default="10"),
                 Parameter(name="iterations", field=count("", "how many", least=1, most=10**6), default="5"),
                 _LIBRARY,
                 _ON_NODE,
             )),
    Workload(name="gpcnet", about="GPCNeT's tests, random rings and allreduces, alone and beside its congestors",
             models=(SKELETON,), one_size=False,
             parameters=(
                 Parameter(name="congestors", field=Field(dimension=RATIO, least=0, most=900_000,
                                                          meaning="share of the nodes; 0: all run the tests"),
                           default="0 %"),
                 _of_skeleton("load", _choice("both: alone, then beside the congestors", "both", "isolated"), "both"),
                 _of_skeleton("test", _choice("which", "all", "latency", "bandwidth", "allreduce"), "all"),
                 _of_skeleton("rings", count("", "random rings of a test", least=1, most=1000), "1"),
                 _of_skeleton("warmup", count("", "exchanges of 8 B before those that count", most=10**5), "200"),
                 _of_skeleton("latency_iterations", count("", "in a ring", least=1, most=10**5), "200"),
                 _of_skeleton("bandwidth_iterations", count("", "in a ring", least=1, most=10**5), "8"),
                 _of_skeleton("allreduces", count("", "in a loop", least=1, most=10**5), "200"),
                 _of_skeleton("pass", count("", "iterations of a congestor of 32 ranks between two looks whether the "
                                            "tests are over; of more ranks fewer", least=1, most=10**6), "64"),
                 _of_skeleton("draws", count("", "seed of nodes and rings", most=2**32 - 1), "8675309"),
                 _of_skeleton("library", _choice("whose collectives", "mpich", "openmpi"), "mpich"),
                 _ON_NODE,
             )),
    Workload(name="hacc", about="steps of HACC: SWFFT's transforms, layers of the force for overloaded particles",
             models=(SKELETON,), one_size=False,
             parameters=(
                 _RANK_GRID,
                 Parameter(name="local", field=_choice("points of a rank, and particles"), grid=3,
                           default=facts.text("hacc", "local")),
                 _fact("hacc", "overload", count("", "points that ranks overlap", most=1024)),
                 _fact("hacc", "particle_work", time("", "of a particle and step", most=10**9), "particle_work_ps"),
                 Parameter(name="steps", field=count("", "how many", least=1, most=10**6), default="1"),
                 _of_skeleton("sample", count("", "turns of each transform that are run, 6 or more, and five of 26 "
                                              "layers; 0: all of it is run", most=1000), "0"),
                 _LIBRARY,
                 _PART,
                 _ON_NODE,
             )),
    Workload(name="amrwind", about="time steps of AMR-Wind's atmospheric boundary layer: halos, and four solves by "
             "AMReX's multigrid", ppn="gpus", models=(SKELETON,), one_size=False,
             parameters=(
                 _RANK_GRID,
                 Parameter(name="local", field=_choice("cells of a rank"), grid=3,
                           default=facts.text("amrwind", "local")),
                 *(_fact("amrwind", name, count("", f"V-cycles of {what}", least=1, most=1000))
                   for name, what in (("mac", "the projection on faces"), ("temperature", "its diffusion"),
                                      ("velocity", "its diffusion"), ("nodal", "the projection on nodes"))),
                 *(Parameter(name=f"{name}_bottom", field=count("", "half iterations of BiCGStab in each of these; "
                                                                "without it as the coarsest level's width asks for",
                                                                least=1, most=10**4)) for name in ("mac", "nodal")),
                 _fact("amrwind", "gather", count("", "cells along a side of the boxes of coarse levels", least=2,
                                                  most=1024)),
                 _fact("amrwind", "sweeps", count("", "of a smoothing on nodes", least=1, most=100)),
                 _fact("amrwind", "advection_words", count("", "of eight bytes, that Godunov's method moves for a cell",
                                                           least=1, most=10**5)),
                 Parameter(name="steps", field=count("", "how many", least=1, most=10**6), default="1"),
                 _of_skeleton("sample", count("", "times that each exchange and sum is run, which stand for all; 0: "
                                              "all of it is run", most=1000), "0"),
                 _LIBRARY,
                 _PART,
                 _ON_NODE,
             )),
    Workload(name="fmm", about="one-sided exchange of a fast multipole method: gets or puts of boxes, and fences",
             models=(SKELETON,), parameters=_FMM, one_size=False),
    Workload(name="transformer", about="a training step of a transformer: tensor, pipeline and data parallelism, over "
             "collectives of GPUs", ppn="tiles", models=(SKELETON,), parameters=_TRANSFORMER, one_size=False),
    Workload(name="lammps", about="steps of LAMMPS' benchmark of rhodopsin: ghosts, PPPM, shake and npt",
             models=(SKELETON,), one_size=False,
             parameters=(
                 _RANK_GRID,
                 Parameter(name="bins", field=_choice("ranks of a node in that grid; without it as they are numbered"),
                           grid=3),
                 _fact("lammps", "atoms", count("", "of a rank", least=1, most=10**9)),
                 Parameter(name="box", field=_choice("of all ranks, in pm; without it each has a cube"), grid=3),
                 _fact("lammps", "density", count("", "atoms in a cube of 10 nm", least=1, most=10**8)),
                 _fact("lammps", "cutoff", count("", "of pairs, in pm", least=1, most=10**9)),
                 _fact("lammps", "skin", count("", "of neighbour lists, in pm", most=10**9)),
                 _fact("lammps", "spacing", count("", "of the mesh, in pm", least=1, most=10**9)),
                 Parameter(name="mesh", field=_choice("points; without it by their spacing"), grid=3),
                 _fact("lammps", "order", count("", "of the mesh's stencil", least=1, most=7)),
                 _fact("lammps", "differentiate", _choice("three transforms back from the mesh, or one", "ik", "ad")),
                 Parameter(name="steps", field=count("", "how many", least=1, most=10**6), default="10"),
                 _fact("lammps", "rebuild", count("", "steps from a neighbour list to the next", least=1, most=10**6)),
                 _fact("lammps", "atom_work", time("", "of an atom and step", most=10**9), "atom_work_ps"),
                 _of_skeleton("sample", _SAMPLE, "0"),
                 _PART,
                 _ON_NODE,
             )),
)  # fmt: skip


# Those of a file, whose name is the workload's.
GOAL = Workload(name="GOAL file", about="the schedule of a file as LogGOPSim and ATLAHS read it, on the first ranks",
                engine="goal", models=(SKELETON,), one_size=False, is_file=True,
                parameters=(Parameter(name="calc", field=time("", "of a calc of 1", least=1, most=10**12),
                                      default="1 ns"), _ON_NODE))  # fmt: skip
PYTHON = Workload(name="skeleton in Python", about="program(me, ...) of a Python file, on all ranks", engine="schedule",
                  models=(SKELETON,), one_size=False, is_file=True,
                  parameters=(
                      _ON_NODE,
                      _of_skeleton("library", _choice("whose choice of algorithms; without it a collective has one",
                                                      "mpich", "openmpi")),
                      _of_skeleton("ranks", count("", "that there are, the first ones; without it all of the nodes'",
                                                  least=1, most=2**24)),
                  ))  # fmt: skip
RECORDING = Workload(name="recording", about="a run that dryfly run --record has recorded, replayed on the first ranks",
                     engine="schedule", models=(SKELETON,), one_size=False, is_file=True,
                     parameters=(_ON_NODE,))  # fmt: skip
