"""Do the last ten requests tell which reads the Cheetah 4LP served from its buffer?

Boosted trees are trained on the first half of the trace and judged on the second. The files in the
working directory are `log.csv`, a request log of `traxtent sim`, and `map.csv`, a track map. See
buffers.md. With the name of another request log, the buffer to be learned is that of its model.
Needs pandas and scikit-learn.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

REQUESTS = 10
HALF = 5000

log, tracks = pd.read_csv("log.csv"), pd.read_csv("map.csv")
read, end = log.op == "read", log.lbn + log.sectors
# The indexes of the tracks of the first and the last sector.
first = pd.Series(np.searchsorted(tracks.first_lbn, log.lbn, "right") - 1)
last = pd.Series(np.searchsorted(tracks.first_lbn, end - 1, "right") - 1)
cylinder = [tracks.cylinder.values[track] for track in (first, last)]
head = pd.Series(tracks["head"].values[last])
late = log.measured_ms - 0.073 - 0.106 * log.sectors
drive, model = read & (late < 0.5), log.served == "buffer"
if len(sys.argv) > 1:
    drive = read & (pd.read_csv(sys.argv[1]).served == "buffer")
pause = log.issued_ms - log.completed_ms.shift()

features = {
    "model": model,
    "sectors": log.sectors,
    "head": head,
    "offset": log.lbn - tracks.first_lbn.values[first],
}
age = 0
for k in range(1, REQUESTS + 1):
    age = age + pause.shift(k - 1)
    features |= {
        f"read{k}": read.shift(k),
        f"hit{k}": drive.shift(k),
        f"late{k}": late.where(read).shift(k),
        f"sectors{k}": log.sectors.shift(k),
        f"age{k}": age,
        f"ahead{k}": (log.lbn - end.shift(k)).clip(-700, 700),
        f"end_ahead{k}": (end - end.shift(k)).clip(-700, 700),
        f"seek{k}": cylinder[0] - pd.Series(cylinder[1]).shift(k),
        f"tracks{k}": (first - last.shift(k)).clip(-5, 5),
        f"head{k}": head.shift(k),
    }
    age = age + log.measured_ms.shift(k)
features = pd.DataFrame(features).astype(float).fillna(-1)
train, test = read & (log.index < HALF), read & (log.index >= HALF)
print(f"{(model != drive)[test].sum()} of {test.sum()} reads wrong: model")
trees = HistGradientBoostingClassifier(
    max_iter=200, learning_rate=0.05, max_leaf_nodes=15, min_samples_leaf=10, early_stopping=False
)
for name, used in [
    ("boosted trees", list(features)),
    ("boosted trees that do not know the model's result", list(features)[1:]),
]:
    trees.fit(features[used][train], drive[train])
    wrong = (trees.predict(features[used][test]) != drive[test]).sum()
    print(f"{wrong} of {test.sum()} reads wrong: {name}")
