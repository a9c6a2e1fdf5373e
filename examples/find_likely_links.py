"""Find likely links.

The Alyawarra of Central Australia have 26 kinship terms. For 104 people we know who calls whom by
which term: 281,216 yes-or-no answers, 4 % of them yes. We pretend to have asked one in ten of these
questions and let the model answer the rest.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from bayesring import TensorRing, metrics
from bayesring.datasets import load_kinship

settings = {"random_state": 0, "progress": False}
if os.environ.get("BAYESRING_QUICK"):  # a short run, to check that everything works
    settings |= {"rank": 2, "warmup": 10, "draws": 10, "chains": 1}

# %% ## The table
# One row per question. The keys could be real names; here they are made up.

answers = load_kinship().tensor
speaker, listener, term = np.indices(answers.shape).reshape(3, -1)
questions = pl.DataFrame(
    {
        "speaker": [f"person {number:03}" for number in speaker],
        "listener": [f"person {number:03}" for number in listener],
        "term": [f"term {number:02}" for number in term],
        "says": answers.ravel(),
    }
)
asked = np.random.default_rng(0).random(len(questions)) < 0.1
known, hidden = questions.filter(asked), questions.filter(~asked)
print(known.head())

# %% ## Fit and predict
# With `likelihood="bernoulli"` the mean is the probability of a yes, and the interval is for that
# probability. Predictions come back as a table of the same type.

ring = TensorRing(likelihood="bernoulli", **settings)
ring.fit(known, modes=["speaker", "listener", "term"], value="says")
predicted = ring.predict_table(hidden)
print(predicted.head())

# %% We know the hidden answers, so we can check: does a yes get a higher probability than a no, and
# do cells with a probability of, say, 70 % contain a yes 70 % of the time?

truth = hidden["says"].to_numpy()
probability = predicted["mean"].to_numpy()
print(f"rank found               {ring.rank_}")
print(f"area under the curve     {metrics.auc(truth, probability):.3f}")

edges = np.linspace(0, 1, 11)
bins = np.digitize(probability, edges[1:-1])
counts = np.bincount(bins, minlength=10)
share = np.bincount(bins, truth, minlength=10) / np.maximum(counts, 1)
figure, axis = plt.subplots(figsize=(5, 4.2), layout="constrained")
figure.suptitle("How often a probability comes true")
axis.plot([0, 1], [0, 1], color="0.7", lw=1)
axis.plot((edges[1:] + edges[:-1]) / 2, share, "o-", color="#0072B2")
axis.set(xlabel="probability predicted", ylabel="share of yes among the hidden answers")

# %% ## The most likely links
# The unasked questions most likely to be answered yes, and how many of them are.

links = predicted.with_columns(says=hidden["says"]).sort("mean", descending=True)
print(links.head(8))
for n in (100, 1000, 5000):
    print(f"of the first {n:>5}, {links['says'].head(n).mean():.0%} are right")

# %% ## One term
# Who calls whom by one of the terms: what was asked, what the model predicts, and the truth.

chosen = int(np.argmax(answers.sum(axis=(0, 1))))
whole = ring.predict_table(questions.filter(pl.col("term") == f"term {chosen:02}"))
panels = {
    "asked": np.where(asked.reshape(answers.shape), answers, np.nan)[:, :, chosen],
    "probability": whole["mean"].to_numpy().reshape(answers.shape[:2]),
    "truth": answers[:, :, chosen],
}
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), layout="constrained")
figure.suptitle(f"Term {chosen}: who says it (rows) to whom (columns)")
for axis, (title, picture) in zip(axes, panels.items(), strict=True):
    shown = axis.imshow(picture, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
    axis.set(title=title, xticks=[], yticks=[])
figure.colorbar(shown, ax=axes, shrink=0.8)

# %% ## What to ask next
# The most informative questions are the ones the model is least sure about:

print(ring.suggest(5))
