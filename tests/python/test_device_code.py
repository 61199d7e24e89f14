"""What the stand-ins of nvcc and hipcc make of device code, and of command lines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dryfly.apps import device_compiler
from dryfly.apps.device_code import rewritten
from dryfly.apps.device_compiler import HIPCC, NVCC
from dryfly.base.errors import UserError


def _made(source: str) -> str:
    return " ".join(rewritten(source, name="here.cu", command="nvcc").split())


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("f<<<1, 2>>>(x);", "::dryfly_device::Launch(1, 2).of(f)(x);"),
        ("return ::a::f<<<g, b, 3, s>>>(x);", "return ::dryfly_device::Launch(g, b, 3, s).of(::a::f)(x);"),
        ("if (n > 1) a::f<<<dim3(n<m>(1), 2), 2>>>();",
         "if (n > 1) ::dryfly_device::Launch(dim3(n<m>(1), 2), 2).of(a::f)();"),
        ("else table[i].f<<<1, 2>>>(x)", "else ::dryfly_device::Launch(1, 2).of(table[i].f)(x)"),
        ("(*f)<<<1, 2>>>(x)", "::dryfly_device::Launch(1, 2).of((*f))(x)"),
        ("v<std::vector<int>><<<1, 2>>>(x)", "::dryfly_device::Launch(1, 2).of(v<std::vector<int>>)(x)"),
        ('a = "f<<<1, 2>>>(x)"; // g<<<1, 2>>>(x)\n', 'a = "f<<<1, 2>>>(x)"; // g<<<1, 2>>>(x)'),
        ("a = R\"(f<<<1, 2>>>(x))\"; c = '<';", "a = R\"(f<<<1, 2>>>(x))\"; c = '<';"),
        ("n = 1'000'000; f<<<1'024, 2>>>();", "n = 1'000'000; ::dryfly_device::Launch(1'024, 2).of(f)();"),
        ("void f() { extern __shared__ float s[]; }",
         "void f() { float* const s = static_cast<float*>(::dryfly_device::shared_memory()); }"),
        ("void f() { extern __attribute__((aligned(16))) __shared__ unsigned char s[]; }",
         "void f() { unsigned char* const s = static_cast<unsigned char*>(::dryfly_device::shared_memory()); }"),
        ("void f() { __shared__ float s[8]; static __shared__ int t; }",
         "void f() { static __thread float s[8]; static __thread int t; }"),
        ("#pragma unroll 4\nfor (;;) {}", "for (;;) {}"),
        ("__noinline__ int f(); __attribute__((__noinline__)) int g();",
         "__attribute__((noinline)) int f(); __attribute__((__noinline__)) int g();"),
    ],
)  # fmt: skip
def test_device_code_becomes_code_for_the_host(source: str, made: str) -> None:
    assert _made(source) == made


def test_a_kernel_is_made_known_behind_its_definition() -> None:
    made = _made("namespace a { __global__ void f(int n = 3, float* x = g<1, 2>(0), void (*h)(int)); }")
    assert "Registered" not in made
    made = _made("namespace a { static __global__ void f(int n = 3, float* x = g<1, 2>(0)) { { } } }")
    assert made == (
        "namespace a { static void f(int n = 3, float* x = g<1, 2>(0)) { { } } static const "
        "::dryfly_device::Registered __attribute__((unused)) dryfly_kernel_0"
        "(static_cast<void (*)(int n , float * x)>(f)); }"
    )


def test_a_template_is_known_by_its_launches() -> None:
    kernel = "template <class T, int N = (3 > 2)> __global__ void f(T* x) {} "
    made = _made(kernel + "void g() { a::f<<<1, 2>>>(x); f<int, 1><<<1, 2>>>(x); }")
    assert "Registered" not in made
    assert "Launch(1, 2).with([](auto... dryfly_values) { a::f(dryfly_values...); })(x);" in made
    assert "Launch(1, 2).with([](auto... dryfly_values) { f<int, 1>(dryfly_values...); })(x);" in made


def test_what_headers_of_the_system_and_the_runtime_have_stays_as_it_is() -> None:
    source = '# 1 "a.cu"\nf<<<1, 2>>>();\n# 5 "/usr/include/x.h" 1 3 4\n__shfl_sync <<<\n# 2 "a.cu" 2\nf<<<1, 2>>>();\n'
    assert _made(source).count("Launch") == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('# 1 "a.cu"\n\nx = __shfl_down_sync(m, x, 1);',
         "a.cu:2: __shfl_down_sync cannot be compiled for this computer: threads of a warp"),
        ("cooperative_groups::thread_block b;",
         "here.cu:1: cooperative_groups cannot be compiled for this computer: cooperative groups"),
        ("\n\ntex2D<float>(t, x, y);", "here.cu:3: tex2D cannot be compiled for this computer: textures"),
        ("__half x;", "here.cu:1: __half cannot be compiled for this computer: numbers of 16 bits"),
        ("__managed__ int x;",
         "here.cu:1: __managed__ cannot be compiled for this computer: take the memory by cudaMallocManaged"),
        ("extern __shared__ int s[];", "here.cu:1: extern __shared__ outside of a kernel cannot be compiled"),
        ("void f() { extern __shared__ int s[4]; }", "accepted is TYPE NAME[]"),
        ("f<<<1, 2;", "<<< is not followed by >>> and the kernel's arguments"),
        ("= <<<1, 2>>>(x);", "<<< is not behind the name of a kernel"),
        ("__global__ int x;", "__global__ is not followed by a function"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_one_sentence_with_its_place(source: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        _made(source)
    assert str(caught.value).startswith("nvcc: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_of_the_device_do_nothing_and_others_go_to_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "ccache g++")
    words = (
        "-arch=sm_80 -gencode arch=compute_80,code=sm_80 -Xptxas -v --expt-relaxed-constexpr -rdc=true -cudart shared "
        "-lineinfo --threads 4 -Xcompiler -fPIC,-Wall -Xlinker -rpath,/x -I a -DB=1 --std=c++17 -O3 -dc a.cu -lm "
        "-lcudart -o a.o --compiler-options=-g"
    )
    asked = device_compiler.read(NVCC, words.split())
    assert asked.options == ["-fPIC", "-Wall", "-I", "a", "-DB=1", "-std=c++17", "-O3", "-g"]
    assert [word for word, _ in asked.parts] == ["-Wl,-rpath,/x", "a.cu", "-lm", ""]
    assert (asked.stage, asked.target, asked.sources, asked.compiler) == ("-c", "a.o", [1], ("ccache", "g++"))
    assert device_compiler.read(NVCC, ["-ccbin", "clang++", "a.cu"]).compiler == ("clang++",)
    assert device_compiler.read(HIPCC, ["--offload-arch=gfx90a", "-fgpu-rdc", "a.cpp"]).options == []


def test_a_stand_in_does_not_call_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/opt/rocm/bin/hipcc -x hip")
    assert device_compiler.read(HIPCC, ["a.cpp"]).compiler == ("g++",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-ccbin nvcc a.cu", "nvcc: -ccbin nvcc: accepted is a C++ compiler for this computer"),
        ("-ptx a.cu", "nvcc: -ptx is not there: it makes code of a device"),
        ("a.cu -o", "nvcc: -o is not followed by its value"),
        ("--default-stream per-thread a.cu", "accepted is legacy"),
        ("-c missing.cu", "nvcc: source missing.cu does not exist"),
        ("-c a.cu b.cu -o c.o", "nvcc: -o c.o is one file and -c makes 2: accepted is one source"),
        ("-O3", "nvcc: no file is named"),
    ],
)
def test_a_command_line_that_cannot_be_done_is_refused(words: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        device_compiler.run(NVCC, words.split())
    assert message in str(caught.value)


def test_a_header_of_what_is_not_there_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.cu"
    source.write_text("#include <cooperative_groups.h>\n")
    assert device_compiler.run(NVCC, ["-c", str(source), "-o", str(tmp_path / "a.o")]) == 1
    said = "cooperative_groups.h cannot be compiled for this computer: cooperative groups are not simulated"
    assert said in capfd.readouterr().err


def test_a_toolkit_compiles_for_a_build_system(tmp_path: Path) -> None:
    device_compiler.make_toolkit(NVCC, tmp_path / "cuda")
    source = tmp_path / "two files.cu"
    source.write_text(
        '#include "here.cuh"\n#include <vector>\n'
        "int main() { std::vector<int> v(1); twice<<<1, 1>>>(v.data());\n"
        "  return cudaGetLastError() == cudaErrorNoDevice ? 0 : 1; }\n"
    )
    (tmp_path / "here.cuh").write_text(
        "#include <cuda_runtime.h>\n__global__ void twice(int* x) { *x = 2 * max(*x, 1l); }\n"
    )
    nvcc = str(tmp_path / "cuda" / "bin" / "nvcc")
    environment = {name: value for name, value in os.environ.items() if name != "DRYFLY_GPU"}
    environment["LD_LIBRARY_PATH"] = str(tmp_path / "cuda" / "lib64")
    for command in (
        [nvcc, "-dc", "-MD", str(source), "-o", "a.o"],
        [nvcc, "-dlink", "a.o", "-o", "b.o"],
        [nvcc, "a.o", "b.o", "-lcudart", "-o", "program"],
        ["./program"],
    ):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    listed = (tmp_path / "a.d").read_text()
    assert listed.startswith("a.o:")
    assert "here.cuh" in listed
