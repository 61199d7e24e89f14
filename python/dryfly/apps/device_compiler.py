"""What stands in for nvcc and hipcc: device code compiled for the host by the C++ compiler, so that dryfly's GPU
runtime runs it (gpu/kernels.hpp)."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dryfly.apps.device_code import rewritten
from dryfly.base.errors import UserError
from dryfly.base.paths import GPU_CORE, GPU_CUDA, GPU_CUDART, GPU_HIP, include_folder, native


@dataclass(frozen=True, kw_only=True)
class Kind:
    command: str
    language: str  # of -x
    suffixes: tuple[str, ...]  # of files with device code
    header: str
    macros: tuple[str, ...]
    toolkit: tuple[str, ...]  # the libraries that programs are linked with
    libraries: tuple[str, ...]  # whose place these take
    version: str


NVCC = Kind(
    command="nvcc",
    language="cu",
    suffixes=(".cu",),
    header="cuda_runtime.h",
    macros=(),
    libraries=("cudart", "cudart_static", "cudadevrt", "cuda"),
    toolkit=(GPU_CUDART, GPU_CUDA),
    version="dryfly nvcc compiles kernels for this computer, with the calls of CUDA:\nrelease 12.4, V12.4.0",
)
HIPCC = Kind(
    command="hipcc",
    language="hip",
    suffixes=(".hip", ".cu", ".cpp", ".cc", ".cxx", ".C"),
    header="hip/hip_runtime.h",
    macros=("-DDRYFLY_HIP=1", "-D__HIP_PLATFORM_AMD__=1"),
    libraries=("amdhip64",),
    toolkit=(GPU_HIP,),
    version="dryfly hipcc compiles kernels for this computer, with the calls of\nHIP version: 6.0.0",
)
_LINKED = (".o", ".a", ".so", ".lo", ".obj")
_HOST_SUFFIXES = (".c", ".cpp", ".cc", ".cxx", ".C", ".c++")

# Options that concern a device's code only: those whose value is a word of its own where it is not behind "=".
_VALUED = """
-arch --gpu-architecture -gencode --generate-code -code --gpu-code -Xptxas --ptxas-options -Xnvlink --nvlink-options
-Xfatbin --fatbin-options -maxrregcount --maxrregcount -rdc --relocatable-device-code -cudart --cudart -diag-suppress
--diag-suppress -diag-error --diag-error -t --threads -split-compile --split-compile -Werror --Werror -ftz --ftz
-prec-div --prec-div -prec-sqrt --prec-sqrt -fmad --fmad -cudadevrt --cudadevrt
"""
_VALUED_OF_HIP = "--offload-arch --amdgpu-target --rocm-path --rocm-device-lib-path -mllvm"
_PLAIN = """
--expt-relaxed-constexpr -expt-relaxed-constexpr --expt-extended-lambda -expt-extended-lambda --extended-lambda
-extended-lambda -use_fast_math --use_fast_math -lineinfo --generate-line-info -G --device-debug -restrict --restrict
-res-usage --resource-usage -forward-unknown-to-host-compiler --forward-unknown-to-host-compiler
-allow-unsupported-compiler --allow-unsupported-compiler -Wno-deprecated-gpu-targets -fgpu-rdc -fno-gpu-rdc --hip-link
-munsafe-fp-atomics -src-in-ptx --source-in-ptx -keep --keep -dlto -lto
"""
_DEVICE_WITH_VALUE = {"nvcc": frozenset(_VALUED.split()), "hipcc": frozenset(_VALUED_OF_HIP.split())}
_DEVICE = frozenset(_PLAIN.split())
_DEVICE_BEGINNINGS = {
    command: tuple(f"{name}=" for name in sorted(names)) for command, names in _DEVICE_WITH_VALUE.items()
}
_NAMES = {
    "--compile": "-c", "-dc": "-c", "--device-c": "-c", "-dw": "-c", "--device-w": "-c", "--output-file": "-o",
    "--include-path": "-I", "--define-macro": "-D", "--undefine-macro": "-U", "--library": "-l",
    "--library-path": "-L", "--preprocess": "-E", "--shared": "-shared", "--debug": "-g", "--verbose": "-v",
    "--dependency-output": "-MF", "--system-include": "-isystem", "--pre-include": "-include",
    "--generate-dependencies": "-M", "--generate-nonsystem-dependencies": "-MM", "--optimize": "-O", "--std": "-std",
}  # fmt: skip
_REFUSED = {
    **dict.fromkeys(("-ptx", "--ptx", "-cubin", "--cubin", "-fatbin", "--fatbin"), "it makes code of a device"),
    **dict.fromkeys(("-lib", "--lib"), "put the objects together by ar"),
    **dict.fromkeys(("-run", "--run"), "start the program by dryfly run"),
}
# Options of the C++ compiler whose value is a word of its own.
_PAIRS = """
-I -D -U -isystem -iquote -idirafter -include -imacros -MF -MT -MQ -L -l -u -T -z -Xpreprocessor -Xassembler --param
"""
_OF_COMPILER_WITH_VALUE = frozenset(_PAIRS.split())
_OF_LINKING = ("-L", "-l", "-Wl,", "-shared", "-static", "-rdynamic", "-u", "-T", "-z")


@dataclass
class Asked:
    """What a command line asks for, in words of the C++ compiler."""

    compiler: tuple[str, ...]
    stage: str = ""  # -c, -E, -M or -MM; empty: all, to a program
    device_link: bool = False
    target: str | None = None
    language: str | None = None
    shows: bool = False
    dry: bool = False
    options: list[str] = field(default_factory=list)
    # Sources, objects and options of the linker, in their order; with a source stands its language, where it was given.
    parts: list[tuple[str, str | None]] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)  # of `parts`


def run(kind: Kind, arguments: Sequence[str]) -> int:
    """The exit status. Raises UserError where the command line or the code has what is not there."""
    if any(word in ("--version", "-V") for word in arguments):
        print(kind.version)
        return 0
    asked = read(kind, arguments)
    if not asked.parts:
        raise UserError(f"{kind.command}: no file is named: accepted are sources, objects and libraries")
    with tempfile.TemporaryDirectory(prefix=f"dryfly-{kind.command}-") as folder:
        return _Build(kind, asked, Path(folder)).run()


def read(kind: Kind, arguments: Sequence[str]) -> Asked:
    words = _words(arguments)
    asked = Asked(compiler=_default_compiler())
    for word in words:
        _take(kind, asked, word, words)
    if Path(asked.compiler[0]).name in ("nvcc", "hipcc"):
        raise UserError(f"{kind.command}: -ccbin {asked.compiler[0]}: accepted is a C++ compiler for this computer")
    return asked


def _default_compiler() -> tuple[str, ...]:
    """What CXX names, unless that is a stand-in, as where a build system was given one as its C++ compiler."""
    named = tuple(shlex.split(os.environ.get("CXX", "")))
    return ("g++",) if not named or any(Path(word).name in ("nvcc", "hipcc") for word in named) else named


def _words(arguments: Sequence[str]) -> Iterator[str]:
    """With the names that the C++ compiler has, and each long option's value as a word of its own."""
    for word in arguments:
        name, equals, value = word.partition("=")
        if word.startswith("--") and equals and name in _NAMES and name != "--std":
            yield _NAMES[name]
            yield value
        elif name == "--std" and equals:
            yield f"-std={value}"
        else:
            yield _NAMES.get(word, word)


def _value(kind: Kind, word: str, words: Iterator[str]) -> str:
    found = next(words, None)
    if found is None:
        raise UserError(f"{kind.command}: {word} is not followed by its value")
    return found


def _take(kind: Kind, asked: Asked, word: str, words: Iterator[str]) -> None:
    if word in _REFUSED:
        raise UserError(f"{kind.command}: {word} is not there: {_REFUSED[word]}")
    name, _, value = word.partition("=")
    if word in _DEVICE or word.startswith(_DEVICE_BEGINNINGS[kind.command]):
        return
    if word in _DEVICE_WITH_VALUE[kind.command]:
        _value(kind, word, words)
    elif name in ("-default-stream", "--default-stream"):
        if (value or _value(kind, word, words)) != "legacy":
            raise UserError(f"{kind.command}: {word}: accepted is legacy, which is the default")
    elif name in ("-ccbin", "--compiler-bindir"):
        asked.compiler = tuple(shlex.split(value or _value(kind, word, words))) or asked.compiler
    elif name in ("-Xcompiler", "--compiler-options"):
        for each in (word.partition("=")[2] or _value(kind, word, words)).split(","):
            asked.options += shlex.split(each)
    elif name in ("-Xlinker", "--linker-options"):
        given = word.partition("=")[2] or _value(kind, word, words)
        asked.parts.append((f"-Wl,{given}", None))
    elif word in ("-dlink", "--device-link"):
        asked.device_link = True
    elif word in ("-c", "-E", "-M", "-MM"):
        asked.stage = word
    elif word in ("-dryrun", "--dryrun"):
        asked.dry = asked.shows = True
    elif word == "-v":
        asked.shows = True
    elif word in ("-o", "-x"):
        given = _value(kind, word, words)
        asked.target, asked.language = (given, asked.language) if word == "-o" else (asked.target, given)
    elif word == "-std":
        asked.options.append(f"-std={_value(kind, word, words)}")
    elif word == "-O":
        asked.options.append(f"-O{_value(kind, word, words)}")
    elif word in _OF_COMPILER_WITH_VALUE:
        pair = [word, _value(kind, word, words)]
        if word.startswith(_OF_LINKING):
            parts = ["".join(pair)] if word in ("-l", "-L") else pair
            asked.parts += [(_library(kind, each), None) for each in parts]
        else:
            asked.options += pair
    elif word.startswith("-") and word != "-":
        if word.startswith(_OF_LINKING):
            asked.parts.append((_library(kind, word), None))
        else:
            asked.options.append(word)
    else:
        suffix = Path(word).suffix
        if suffix in (*kind.suffixes, *_HOST_SUFFIXES) or (asked.language is not None and suffix not in _LINKED):
            asked.sources.append(len(asked.parts))
        asked.parts.append((word, asked.language))


def _library(kind: Kind, word: str) -> str:
    """Empty for the runtime's own libraries and the driver's, which are linked anyway."""
    return "" if word.removeprefix("-l") in kind.libraries else word


class _Build:
    def __init__(self, kind: Kind, asked: Asked, folder: Path) -> None:
        self._kind = kind
        self._asked = asked
        self._folder = folder
        self._include = include_folder()
        optimized = any(option.startswith("-O") for option in asked.options)
        self._options = [*(() if optimized else ("-O2",)), *asked.options]
        self._foreign: dict[Path, bool] = {}

    def run(self) -> int:
        asked = self._asked
        if asked.device_link:
            return self._device_link()
        if asked.stage and asked.target is not None and len(asked.sources) > 1:
            raise UserError(
                f"{self._kind.command}: -o {asked.target} is one file and {asked.stage} makes "
                f"{len(asked.sources)}: accepted is one source"
            )
        parts = [word for word, _ in asked.parts]
        for index in asked.sources:
            word, language = asked.parts[index]
            if not Path(word).is_file():
                raise UserError(f"{self._kind.command}: source {word} does not exist")
            target = self._object_of(Path(word), index)
            status = self._compiled(Path(word), language, target)
            if status != 0:
                return status
            parts[index] = str(target)
        if asked.stage:
            return 0
        return self._call(
            [*asked.compiler, *self._without_dependencies(), *filter(None, parts), *self._runtime(), "-o",
             asked.target or "a.out"]
        )  # fmt: skip

    def _object_of(self, source: Path, index: int) -> Path:
        if self._asked.stage == "-c":
            return Path(self._asked.target or f"{source.stem}.o")
        return self._folder / f"{index}-{source.stem}.o"

    def _runtime(self) -> list[str]:
        """By their paths, for some have no name beside the release's; and C++'s, for the compiler may be gcc."""
        folder = native(GPU_CORE).parent
        named = [str(native(library)) for library in (*self._kind.toolkit, GPU_CORE)]
        states = ("-Wl,--push-state,--as-needed", "-Wl,--pop-state")
        return [states[0], *named, states[1], f"-Wl,-rpath-link,{folder}", "-lstdc++", "-lm"]

    def _device_link(self) -> int:
        """Device code is linked with the rest, so that there is nothing in the object that is asked for."""
        empty = self._folder / "empty.cpp"
        empty.write_text("", encoding="utf-8")
        return self._call([*self._asked.compiler, "-c", str(empty), "-o", self._asked.target or "a_dlink.o"])

    def _has_device_code(self, source: Path, language: str | None) -> bool:
        if language is not None:
            return language == self._kind.language
        return source.suffix in self._kind.suffixes

    def _compiled(self, source: Path, language: str | None, target: Path) -> int:
        asked = self._asked
        own = ["-idirafter", str(self._include / "dryfly" / ("hip" if self._kind is HIPCC else "cuda")), "-idirafter",
               str(self._include), *self._kind.macros]  # fmt: skip
        if not self._has_device_code(source, language):
            other = ["-x", language] if language is not None else []
            to = [] if asked.stage in ("-E", "-M", "-MM") and asked.target is None else ["-o", str(target)]
            if asked.stage in ("-E", "-M", "-MM") and asked.target is not None:
                to = ["-o", asked.target]
            return self._call([*asked.compiler, *self._options, *own, asked.stage or "-c", *other, str(source), *to])
        # Before the folders that the command names, for there the vendors' headers of that may be.
        left_out = f"-I{self._include / 'dryfly' / 'left_out'}"
        words = ["-include", str(self._include / "dryfly" / "device.h"), *self._dependencies(target), "-x", "c++"]
        reading = [*asked.compiler, left_out, *self._options, *own, *words]
        if asked.stage in ("-E", "-M", "-MM"):
            to = ["-o", asked.target] if asked.target is not None else []
            return self._call([*reading, asked.stage, str(source), *to])
        text = self._folder / f"{target.name}.read.ii"
        status = self._call([*reading, "-E", str(source), "-o", str(text)])
        if status != 0 or asked.dry:
            return status
        made = self._folder / f"{target.name}.ii"
        read_text = text.read_text(encoding="utf-8", errors="surrogateescape")
        made.write_text(
            rewritten(read_text, name=str(source), command=self._kind.command, is_foreign=self._is_foreign),
            encoding="utf-8",
            errors="surrogateescape",
        )
        return self._call(
            [*asked.compiler, *self._without_dependencies(), "-x", "c++-cpp-output", "-c", str(made), "-o", str(target)]
        )

    def _is_foreign(self, name: str) -> bool:
        folder = Path(name).parent
        if folder not in self._foreign:
            self._foreign[folder] = self._include in folder.parents or any(
                (at / self._kind.header).is_file() for at in (folder, *folder.parents)[:3]
            )
        return self._foreign[folder]

    def _dependencies(self, target: Path) -> list[str]:
        """As the compiler would name them itself if it read and compiled in one call."""
        options = self._asked.options
        if not {"-MD", "-MMD"} & set(options):
            return []
        named = [] if any(option.startswith("-MF") for option in options) else ["-MF", str(target.with_suffix(".d"))]
        return named + ([] if any(option.startswith(("-MT", "-MQ")) for option in options) else ["-MT", str(target)])

    def _without_dependencies(self) -> list[str]:
        """What is left to say of text that is preprocessed."""
        kept: list[str] = []
        options = iter(self._options)
        for option in options:
            if option in ("-MF", "-MT", "-MQ", "-include", "-imacros", "-I", "-D", "-U", "-isystem", "-iquote",
                          "-idirafter", "-Xpreprocessor"):  # fmt: skip
                next(options, None)
            elif not option.startswith(("-M", "-I", "-D", "-U")) or option.startswith("-Ufast"):
                kept.append(option)
        return kept

    def _call(self, command: Sequence[str]) -> int:
        if self._asked.shows:
            print(shlex.join(command), file=sys.stderr)
        if self._asked.dry:
            return 0
        try:
            return subprocess.run(command, check=False).returncode
        except OSError as error:
            raise UserError(
                f"{self._kind.command}: the C++ compiler {command[0]} cannot be started ({error.strerror}): "
                "name one by -ccbin or CXX"
            ) from None


def make_toolkit(kind: Kind, folder: Path) -> None:
    """A folder as build systems know the runtime's: the compiler in bin, headers in include, libraries in lib64."""
    headers = include_folder() / "dryfly"
    try:
        for part in ("bin", "include", "lib64"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        script = folder / "bin" / kind.command
        script.write_text(
            f'#!/bin/sh\nexec {shlex.join([sys.executable, "-m", "dryfly", kind.command])} "$@"\n', encoding="utf-8"
        )
        script.chmod(0o755)
        _link(folder / "lib", Path("lib64"))
        _link(folder / "include" / "dryfly", headers)
        if kind is HIPCC:
            _link(folder / "include" / "hip", headers / "hip" / "hip")
        else:
            for header in (headers / "cuda").iterdir():
                _link(folder / "include" / header.name, header)
        for library in map(native, (GPU_CORE, *kind.toolkit)):
            _link(folder / "lib64" / library.name, library)
            _link(folder / "lib64" / f"{library.name.partition('.so')[0]}.so", library)
    except OSError as error:
        raise UserError(f"--toolkit {folder}: {error.filename}: {error.strerror}") from None


def _link(at: Path, to: Path) -> None:
    at.unlink(missing_ok=True)
    at.symlink_to(to)
