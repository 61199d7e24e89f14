"""Writes Si.upf, which no package of Debian has."""

import math
from pathlib import Path


def pseudopotential() -> str:
    """Silicon as a local potential with the 4 outer electrons, in the form of Appelbaum and Hamann (Physical Review B
    8, 1777, 1973): a screened charge and a short-ranged part. Written in Quantum ESPRESSO's format, UPF 2."""
    count, step = 400, 0.0255
    radii = [math.exp(-7 + step * place) for place in range(count)]
    width, constant, slope, charge, cloud = 0.6102, 3.042, -1.372, 4.0, 0.8
    potential = [
        2 * ((constant + slope * r * r) * math.exp(-width * r * r) - charge / r * math.erf(math.sqrt(width) * r))
        for r in radii
    ]
    norm = 4 * math.pi * charge / (math.pi / cloud) ** 1.5
    density = [norm * r * r * math.exp(-cloud * r * r) for r in radii]

    def table(name: str, values: list[float]) -> str:
        numbers = "\n".join(f"{value:.12E}" for value in values)
        return f'<{name} type="real" size="{count}" columns="1">\n{numbers}\n</{name}>\n'

    header = {
        "element": "Si", "pseudo_type": "NC", "relativistic": "no", "is_ultrasoft": "F", "is_paw": "F",
        "is_coulomb": "F", "has_so": "F", "has_wfc": "F", "has_gipaw": "F", "core_correction": "F",
        "functional": "SLA PZ NOGX NOGC", "z_valence": "4.0", "total_psenergy": "0.0", "wfc_cutoff": "0.0",
        "rho_cutoff": "0.0", "l_max": "0", "l_local": "0", "mesh_size": str(count), "number_of_wfc": "0",
        "number_of_proj": "0", "generated": "", "author": "", "date": "", "comment": "",
    }  # fmt: skip
    facts = "\n".join(f'{name}="{value}"' for name, value in header.items())
    return (
        f'<UPF version="2.0.1">\n<PP_HEADER {facts}/>\n<PP_MESH mesh="{count}">\n'
        + table("PP_R", radii)
        + table("PP_RAB", [step * r for r in radii])
        + "</PP_MESH>\n"
        + table("PP_LOCAL", potential)
        + "<PP_NONLOCAL>\n</PP_NONLOCAL>\n<PP_PSWFC>\n</PP_PSWFC>\n"
        + table("PP_RHOATOM", density)
        + "</UPF>\n"
    )


if __name__ == "__main__":
    Path("Si.upf").write_text(pseudopotential(), encoding="utf-8")
