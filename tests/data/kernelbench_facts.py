"""Remakes kernelbench.json from the fact tables of KernelBench: `python tests/data/kernelbench_facts.py TABLES`.

TABLES is a folder with tasks.json (version 0.2) and tasks_v0_shapes.json (version 0).
"""

import json
import pathlib
import sys
from collections.abc import Collection

NOTICE = {
    "source": "https://github.com/ScalingIntelligence/KernelBench",
    "commit": "423217d9fda91e0c2d67e4a43bf62f96f6d104f1",
    "licence": "MIT",
    "copyright": "Copyright 2023 Anne Ouyang, Simon Guo, Azalia Mirhoseini",
    "content": "facts about tasks (names, shapes, dtypes, distributions); no source text",
}
KEPT = ("inputs", "params", "outputs")
CLASSES = ("EXACT", "NUMERIC", "BELOW-TOL", "INSENSITIVE")


def kept(task: dict, unused: Collection[str]) -> dict:
    """What is kept of a task, without the parameters that its forward never reads."""
    read = [given for given in task["params"] if given["name"] not in unused]
    return {**{key: task[key] for key in KEPT}, "params": read}


def findings(task: dict) -> dict:
    """What was found out about the outputs at the present version: one of CLASSES, and ILL-CONDITIONED where a relative
    change of the inputs by 1e-6 moved an output by more than 1e-4; nothing of most tasks."""
    found = [name for name in CLASSES if (task["trivial"] or "").startswith(name)]
    if (task.get("probe") or {}).get("perturb_1e-6_pass_1e-4") is False:
        found.append("ILL-CONDITIONED")
    return {"findings": found} if found else {}


def main(tables: pathlib.Path) -> None:
    present = {task["id"]: task for task in json.loads((tables / "tasks.json").read_text())}
    version0 = {task["id"]: task for task in json.loads((tables / "tasks_v0_shapes.json").read_text())}
    facts = {
        task_id: {
            "name": present[task_id]["name"],
            **findings(present[task_id]),
            "kb": kept(present[task_id], unused=present[task_id].get("unused_params") or ()),
            "kb_v0": kept(version0[task_id], unused=present[task_id].get("unused_params") or ()),
        }
        for task_id in present
    }
    lines = [f'"{task_id}": {json.dumps(fact)}' for task_id, fact in facts.items()]
    text = '{"notice": ' + json.dumps(NOTICE) + ',\n"tasks": {\n' + ",\n".join(lines) + "\n}}\n"
    pathlib.Path(__file__).with_name("kernelbench.json").write_text(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
