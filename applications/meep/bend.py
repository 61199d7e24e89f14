"""Light around a corner: a pulse in a dielectric waveguide with a right angle, and the flux that leaves it."""

import meep

corner = [
    meep.Block(meep.Vector3(11, 1, meep.inf), center=meep.Vector3(-1.5, -3), material=meep.Medium(epsilon=12)),
    meep.Block(meep.Vector3(1, 11, meep.inf), center=meep.Vector3(3.5, 2), material=meep.Medium(epsilon=12)),
]
pulse = meep.Source(
    meep.GaussianSource(0.15, fwidth=0.1), component=meep.Ez, center=meep.Vector3(-5, -3), size=meep.Vector3(0, 1)
)
simulation = meep.Simulation(
    cell_size=meep.Vector3(14, 14),
    geometry=corner,
    sources=[pulse],
    boundary_layers=[meep.PML(1.0)],
    resolution=16,
)
into = meep.FluxRegion(center=meep.Vector3(-4, -3), size=meep.Vector3(0, 2))
out = meep.FluxRegion(center=meep.Vector3(3.5, 5.5), size=meep.Vector3(2, 0))
fluxes = [simulation.add_flux(0.15, 0.1, 11, region) for region in (into, out)]
simulation.run(until=60)
before, behind = (meep.get_fluxes(flux) for flux in fluxes)
if meep.am_master():
    for frequency, passed, given in zip(meep.get_flux_freqs(fluxes[0]), behind, before, strict=True):
        print(f"at {frequency:.3f} {passed:.9e} of {given:.9e}")
    print(f"flux behind the corner {sum(behind):.12e}")
