"""A job on topics that dies at chosen places: python kafka_victim.py FOLDER MASTER [WHO BATCH CELL POINT]...

FOLDER/job.sql is what it runs, up to where the topics end now. The places are those of victim.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import watersmeet as wm
import watersmeet.spark.stream as target
from tests.spark.victim import Dying
from watersmeet.model.query import Location
from watersmeet.spark.run import SparkJob
from watersmeet.spark.session import session


def main() -> None:
    folder, master, *death = sys.argv[1:]
    spark = session(
        master, "victim",
        **{
            "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse", "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        },
    )  # fmt: skip
    spark.sparkContext.setLogLevel("OFF")
    deaths = [tuple(death[i : i + 4]) for i in range(0, len(death), 4)]
    target.CellProcessor = lambda spec: Dying(spec, folder, deaths)  # type: ignore[assignment,misc]
    query = wm.parse(Path(folder, "job.sql").read_text())
    SparkJob(query, Location(f"{folder}/out", "parquet"), f"{folder}/checkpoint", "available-now").run(
        spark, lambda _: None
    )
    spark.stop()


if __name__ == "__main__":
    main()
