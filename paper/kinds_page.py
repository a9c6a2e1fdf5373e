"""The page of every kind of value, docs/kinds-of-values.md; `paper.kind_figures` measures."""

from __future__ import annotations

HEAD = """# Every kind of value, measured

Made by `make kinds`; the numbers behind it are in `paper/results/kinds.json`. What the likelihoods
are is in [your own data](your-own-data.md#kinds-of-values), how they are sampled in
[the model](model.md).

Fits have nothing set but the likelihood; data sets give the positions of their modes. Seconds are
of one CPU. A log score is the mean logarithm of the probability that a model gave to a
hidden value. Under normal noise, a whole number has what lies within one half of it, and zero all
that lies below as well, which is kinder to it than its density. "Behind by" is how much worse a
log score is than that of the first row, with its standard error over cells. "Randomised" is the
share of hidden counts whose randomised rank lies in the central 90 %: 90 % if all probabilities are
right, whereas an interval whose ends are counts has to hold more.
"""
SAID = {
    "NYC's first week": """\
Trips per hour between 30 zones of New York in the first week of nine, with the published mask that
hides 40 % of the cells. As in the published tables, zeros are cells without a value: neither
trained on nor scored, so probabilities are given that a count is positive. (Without that condition,
in shorter fits to the first two days, the negative binomial was .014 behind normal noise on
log(1 + y), with an error of .004, since it gives zeros a probability that is never scored.)""",
    "NYC's first week, zeros too": """\
The same cells, with zeros as the counts that they are.""",
    "NYC": """\
All nine weeks, zeros left out as above.""",
    "NYC, zeros too": """\
The same cells, with zeros as the counts that they are.""",
    "Alog": """\
Accesses to files, fold 0 of five, published as log(1 + count). Errors are those of
log(1 + count), whatever was modelled.""",
    "outliers": """\
A ring of rank 2, 25 x 20 x 20 cells, 3,000 of them known with normal noise of a third of its
deviation; of these, 5 % are off by ten times the noise. RMSE is that of the noise-free signal.
Means over three tables.""",
    "ratings": """\
Ratings 1 to 5, where such a signal, with noise of 0.6, lies between cut points. Normal noise is
fitted to the ratings as numbers. The calibration error is that of the probabilities of all five
ratings together, in ten bins. Means over three tables.""",
    "Kinship": """\
All ones and as many zeros; means over five folds, with nothing set. The calibration error is the
mean gap between predicted probability and share of ones, in ten bins of equal size. "As sampled" is
the same fit before held-out training values had their say.""",
    "DBLP": """\
The same for fold 1 of DBLP, 310,371 observations.""",
}
"""What each table is about, in the order of the page."""
DIGITS = {"RMSE": 3, "90 % intervals hold": 3, "randomised": 3, "lowest end": 1, "seconds": 1}


def page(known: dict[str, dict[str, dict[str, float]]]) -> str:
    """All tables that are known, one row per model."""
    parts = [HEAD]
    for name, said in SAID.items():
        if name not in known:
            continue
        rows = known[name]
        columns = list(dict.fromkeys(key for row in rows.values() for key in row))
        lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for who, row in rows.items():
            cells = [f"{row[key]:.{DIGITS.get(key, 4)}f}" if key in row else "" for key in columns]
            lines.append(f"| {who} | {' | '.join(cells)} |")
        parts.append(f"## {name[0].upper()}{name[1:]}\n\n{said}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)
