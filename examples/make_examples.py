"""Write the example tables: an invented fleet of pumps, each measured a few times.

    python3 examples/make_examples.py

Nothing here was measured. A pump lifts `flow` litres a minute against `pressure` bar and draws

    y = base + flow * pressure / (600 * efficiency) + noise   kilowatts,
    efficiency = best * (1 - 0.45 * ((flow - optimum) / optimum)^2),

with a base load, a best efficiency and an optimal flow of its own. That is what the tasks have in common, and what five
readings of a new pump do not show by themselves. `tasks.csv` has 24 pumps with 6 to 15 readings each, in the order in
which somebody might have walked past them; `support.csv` five readings of a pump that is not among them; `query.csv`
settings at which its power is wanted. Standard library only; the seed is fixed, so the files can be made again.
"""

import csv
import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOISE = 0.05


class Pump:
    def __init__(self, generator):
        self.base = generator.gauss(0.9, 0.15)
        self.best = generator.uniform(0.6, 0.8)
        self.optimum = generator.gauss(210, 15)

    def power(self, flow, pressure):
        efficiency = self.best * (1 - 0.45 * ((flow - self.optimum) / self.optimum) ** 2)
        return self.base + flow * pressure / (600 * efficiency)


def reading(generator, pump):
    flow, pressure = round(generator.uniform(80, 340), 1), round(generator.uniform(2, 9), 2)
    return flow, pressure, round(pump.power(flow, pressure) + generator.gauss(0, NOISE), 3)


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main():
    generator = random.Random(20)
    rows = []
    for number in range(1, 25):
        pump = Pump(generator)
        rows += [(f"pump-{number:02}", *reading(generator, pump)) for _ in range(generator.randint(6, 15))]
    generator.shuffle(rows)
    write("tasks.csv", ("task", "flow", "pressure", "y"), rows)

    pump = Pump(generator)
    write("support.csv", ("flow", "pressure", "y"), [reading(generator, pump) for _ in range(5)])
    grid = [(flow, pressure) for pressure in (3, 6) for flow in (100, 160, 220, 280, 330)]
    write("query.csv", ("setting", "flow", "pressure"), [(f"s{i}", *row) for i, row in enumerate(grid, 1)])
    # For whoever wants to check the predictions: what the invented pump really draws, without noise.
    print("power at the queries:", [round(pump.power(*row), 3) for row in grid])


if __name__ == "__main__":
    main()
