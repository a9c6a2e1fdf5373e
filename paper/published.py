"""The figures that the paper prints: Tao, Tanaka and Zhao (2023), tables 1 and 2.

Means and standard deviations as printed; None where the paper says NA. The values behind its two
figures, on rank estimation and scalability, are not published.
"""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """A mean and its standard deviation as text, with the paper's digits."""

    mean: str
    deviation: str

    @property
    def value(self) -> float:
        """The mean as a number."""
        return float(self.mean)

    @property
    def digits(self) -> int:
        """Number of printed decimals."""
        return len(self.mean.split(".")[1])

    def __str__(self) -> str:
        return f"{self.mean} ± {self.deviation}"


def _row(text: str) -> tuple[Printed | None, ...]:
    """Six entries of a row, for three data sets with two scores each."""
    return tuple(None if each == "NA" else Printed(*each.split("±")) for each in text.split())


COLUMNS = {
    "continuous": (
        ("USHCN", "RMSE"),
        ("USHCN", "MAE"),
        ("Indian Pines", "PSNR"),
        ("Indian Pines", "SSIM"),
        ("Alog", "RMSE"),
        ("Alog", "MAE"),
    ),
    "binary": (
        ("Kinship", "AUC"),
        ("Kinship", "accuracy"),
        ("Enron", "AUC"),
        ("Enron", "accuracy"),
        ("DBLP", "AUC"),
        ("DBLP", "accuracy"),
    ),
}
ROWS = {
    "continuous": {
        "BayesCP": "0.590±0.006 0.430±0.005 9.88±0.00 0.01±0.00 1.02±0.06 0.52±0.02",
        "TTWOPT": "0.761±0.001 0.570±0.001 27.13±0.07 0.81±0.00 2.84±1.38 0.80±0.06",
        "BayesTR-VI": "0.614±0.030 0.451±0.025 27.13±0.77 0.79±0.02 1.00±0.04 0.52±0.03",
        "SBTR-Gibbs": "0.587±0.007 0.430±0.003 29.71±0.12 0.84±0.00 0.98±0.05 0.51±0.02",
        "SBTR-Online": "0.560±0.004 0.405±0.004 28.07±0.04 0.83±0.00 0.92±0.03 0.47±0.01",
    },
    "binary": {
        "BayesCP": "0.973±0.003 0.925±0.012 0.500±0.000 0.500±0.000 NA NA",
        "TTWOPT": "0.943±0.008 0.774±0.156 0.819±0.049 0.787±0.017 0.912±0.004 0.809±0.051",
        "BayesTR-VI": "0.968±0.010 0.896±0.024 0.500±0.000 0.500±0.000 NA NA",
        "SBTR-Gibbs": "0.962±0.002 0.921±0.002 0.834±0.018 0.758±0.019 0.925±0.003 0.869±0.002",
        "SBTR-Online": "0.973±0.003 0.940±0.005 0.911±0.039 0.811±0.042 0.957±0.001 0.889±0.003",
    },
}
FIGURES: dict[tuple[str, str, str], Printed | None] = {
    (data, score, method): printed
    for table, rows in ROWS.items()
    for method, text in rows.items()
    for (data, score), printed in zip(COLUMNS[table], _row(text), strict=True)
}
"""Keyed by data set, score and the paper's name of the method."""
LOWER_IS_BETTER = frozenset({"RMSE", "MAE"})


def best(data: str, score: str) -> Printed:
    """The paper's best figure for a data set."""
    printed = [
        figure
        for (name, what, _), figure in FIGURES.items()
        if (name, what) == (data, score) and figure is not None
    ]
    pick = min if score in LOWER_IS_BETTER else max
    return pick(printed, key=lambda figure: figure.value)
