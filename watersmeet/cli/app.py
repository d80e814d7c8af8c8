"""The verbs and their options. Bodies import what they need when they run, so that the command line starts at once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from watersmeet.errors import WatersmeetError


class _Group(typer.core.TyperGroup):
    """All verbs end the same way when the user's query or data is wrong, or when the user stops them."""

    def invoke(self, ctx: Any) -> Any:
        warnings.showwarning = _tell
        try:
            return super().invoke(ctx)
        except WatersmeetError as e:
            _complain(str(e))
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            _complain("interrupted; nothing is half-written")
            raise typer.Exit(130) from None


def _tell(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None
) -> None:  # fmt: skip
    """A warning in our words, without the place in the code that Python would show."""
    from watersmeet.cli.show import caution

    caution(str(message))


def _complain(message: str) -> None:
    from watersmeet.cli.show import complain

    complain(message)


app = typer.Typer(
    cls=_Group,
    help="Continuous multi-way window joins within a CPU and a memory budget.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from watersmeet import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="say which version this is")
    ] = False,
) -> None:
    """Continuous multi-way window joins within a CPU and a memory budget."""


Job = Annotated[Path, typer.Argument(metavar="JOB.sql", help="a job file: CREATE STREAM ...; SELECT ...;")]
Jobs = Annotated[list[Path], typer.Argument(metavar="JOB.sql...", help="one or more job files")]

Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="Spark: a setting of the session, spark....")
]


@app.command()
def run(
    job: Job,
    into: Annotated[
        str | None, typer.Option(help="write here instead of INTO (a file, a folder, or - for stdout)")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an output that is there already")] = False,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=PATH", help="read a stream or table from here instead")
    ] = None,
    plan: Annotated[str, typer.Option(help="auto, mjoin, xjoin, or a plan such as '((o p) s)'")] = "auto",
    rows: Annotated[int, typer.Option(min=0, help="how many of the first results to show")] = 10,
    master: Annotated[
        str | None, typer.Option(help="run on Spark: local[2], spark://host:7077, sc://host (Spark Connect), ...")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Spark: where to keep state (INTO's path + .checkpoint)")
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(help="Spark: '10 seconds' (a batch each, for ever), or available-now (no flush at the end)"),
    ] = None,
    cells: Annotated[int | None, typer.Option(min=1, help="Spark: into how many parts the join is split")] = None,
    stats: Annotated[Path | None, typer.Option(help="Spark: statistics to plan with (watersmeet learn)")] = None,
    conf: Conf = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="say nothing but errors and warnings")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="say what happened as one JSON object on stdout")] = False,
) -> None:
    """Run a job file in this process, show the first results, and write all of them where INTO says; or on Spark (--master)."""
    from watersmeet.cli.show import hushed

    if as_json and into == "-":
        raise typer.BadParameter("both --json and --into - write to stdout", param_hint="--json")
    with hushed(quiet or as_json):
        if master is not None:
            from watersmeet.cli.run_spark import run_on_spark

            run_on_spark(
                job, master=master, into=into, inputs=inputs or [], plan=plan, checkpoint=checkpoint, trigger=trigger,
                cells=cells, stats=stats, conf=conf or [], overwrite=overwrite, rows=rows, as_json=as_json,
            )  # fmt: skip
            return
        for name, given in (
            ("checkpoint", checkpoint),
            ("trigger", trigger),
            ("cells", cells),
            ("stats", stats),
            ("conf", conf),
        ):
            if given is not None:
                raise typer.BadParameter(
                    "it is for Spark: give --master, too (such as 'local[2]')", param_hint=f"--{name}"
                )
        from watersmeet.cli.run import run_job

        run_job(job, into=into, overwrite=overwrite, inputs=inputs or [], plan=plan, rows=rows, as_json=as_json)


@app.command()
def explain(
    jobs: Jobs,
    stats: Annotated[
        Path | None, typer.Option(help="statistics to plan with: a file that Statistics.save wrote")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="take statistics from the first rows of the job's data")
    ] = False,
    steps: Annotated[bool, typer.Option("--steps", help="also what each step of the optimizer did")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="draw the plan and the CPU/memory plane: .png, .svg or .pdf")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="of the plans that fit: least_cpu, least_memory, non_dominated or any")
    ] = "least_cpu",
    search: Annotated[str, typer.Option(help="auto, pareto, jtree_finder or two_layer")] = "auto",
    head_room: Annotated[float, typer.Option(help="part of the CPU to leave free, 0 to below 1")] = 0.0,
    cpu_share: Annotated[float, typer.Option(help="part of each processor that the join gets, above 0")] = 1.0,
    cells: Annotated[int, typer.Option(min=1, help="into how many cells the join is split on Spark")] = 1,
) -> None:
    """Say how each query is understood: its streams and windows, its join graph, and the plan with what it costs."""
    from watersmeet.cli.explain import explain_jobs

    asked = {"policy": policy, "search": search, "head_room": head_room, "cpu_share": cpu_share, "cells": cells}
    explain_jobs(jobs, stats, sample, steps, plot, asked)


@app.command()
def learn(
    job: Job,
    out: Annotated[Path, typer.Option(help="file for the statistics")] = Path("statistics.json"),
    master: Annotated[str, typer.Option(help="the Spark to use")] = "local[*]",
    conf: Conf = None,
) -> None:
    """Measure rates, selectivities, distinct and heavy keys of a job's data with Spark; explain and run take the file."""
    from watersmeet.cli.learn import learn_job

    learn_job(job, out, master, conf or [])


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="folder for the demo's data, job file and results")] = Path("demo-out"),
    orders: Annotated[int, typer.Option(min=1, help="how many orders to make")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="the same seed makes the same data")] = 1,
) -> None:
    """Make three streams, join them, and show what came of it."""
    from watersmeet.cli.demo import run_demo

    run_demo(out, orders, seed)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    ctx: typer.Context, name: Annotated[str | None, typer.Argument(help="a folder of bench/, such as engine")] = None
) -> None:
    """Run a benchmark of this checkout; what follows its name goes to it."""
    from watersmeet.cli.bench import run_bench

    raise typer.Exit(run_bench(name, ctx.args))


@app.command()
def calibrate(
    rows: Annotated[int, typer.Option(min=2000, help="rows of each stream in each run")] = 40_000,
    repeats: Annotated[int, typer.Option(min=1, help="how often each run is made; the least time counts")] = 5,
) -> None:
    """Measure what a probe, a match, an insert and a delete cost on this machine, and keep it for explain and run."""
    from watersmeet.cli.calibrate import run_calibrate

    run_calibrate(rows, repeats)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def experiment(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="list|run|check", help="what to do")] = "list",
    name: Annotated[str | None, typer.Argument(help="a folder of experiments/, such as qualified_plans")] = None,
) -> None:
    """Run a paper's experiments in this checkout, or check its claims one by one; what follows the name goes to it."""
    from watersmeet.cli.experiment import run_experiment

    raise typer.Exit(run_experiment(action, name, ctx.args))


@app.command()
def version() -> None:
    """Say which version this is."""
    from watersmeet import __version__

    typer.echo(__version__)
