"""A page in which policies are valued under any reward, with one dot product: `python -m experiments.live`.

Trains a handful of policies of SFR and SF on object collection, and of CSFR and SF on the racer, in about a
minute, and writes a page that works from a file, without a server or a network. Move the sliders of a reward
and watch what generalised policy improvement over the stored policies does, next to SF with the closest
linear reward.

    python -m experiments.live --output live.html
    python -m experiments.live --output part.html --fragment      a <section> for a page of yours
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from experiments.live import export, page, training
from sfr_theory import cli


@dataclass(frozen=True)
class Options:
    output: str = "live.html"
    """Where the page goes."""
    fragment: bool = False
    """Write a section to include in another page, not a whole page."""


def main(options: Options) -> int:
    cli.require_writable(options.output)
    worlds = (training.rooms(), training.racer())
    text = build(worlds, as_fragment=options.fragment)
    cli.write_atomic(Path(options.output), text.encode())
    Console(highlight=False).print(
        f"wrote {options.output}, {len(text.encode()) / 1000:.0f} kB", soft_wrap=True
    )
    return 0


def build(worlds: tuple[training.LiveWorld, ...], *, as_fragment: bool) -> str:
    """Train all agents and put them into a page or a fragment."""
    data, picture = {}, ""
    with cli.progress(sum(2 * len(world.tasks) for world in worlds), "policies") as advance:
        for world in worlds:
            agents = {which: training.train(world, which, advance) for which in world.agents}
            for agent in agents.values():
                export.quantise(agent)
            data[world.name] = export.describe(world, agents)
            if world.name == "rooms":
                picture = page.still_picture(agents["sfr"])
    return page.fragment(data, picture) if as_fragment else page.page(data, picture)


if __name__ == "__main__":
    cli.run(main, Options, "experiments.live", __doc__ or "")
