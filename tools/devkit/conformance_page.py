"""The tables of a conformance run, and docs/conformance.md, which is made of them."""

import collections
import dataclasses
import re

import onnx

from .venv import ROOT

STATUSES = ("passed", "unsupported", "failed", "crashed", "hung")


@dataclasses.dataclass
class Row:
    name: str
    operator: str
    opset: str
    status: str
    reason: str


def modelFacts(folder):
    """(operator types of the graph in order, "domain version" of its first opset import)."""
    model = onnx.load(folder / "model.onnx")
    first = next(iter(model.opset_import))
    return [node.op_type for node in model.graph.node], f"{first.domain or 'ai.onnx'} {first.version}"


def describe(folders, outcomes):
    """One Row per case. A case is about the only node of its graph; one expanded to a function body is about the
    operator it came from; a graph of several nodes that has no such sibling is about its first."""
    facts = {folder.name: modelFacts(folder) for folder in folders}
    rows = []
    for name, (operators, opset) in facts.items():
        sibling = re.sub(r"_expanded(_ver\d+)?$", "", name)
        about = facts.get(sibling, (operators, opset))[0]
        rows.append(Row(name, about[0] if about else "(no node)", opset, *outcomes[name]))
    return rows


def table(title, groups):
    lines = [f"| {title} | cases | " + " | ".join(STATUSES) + " |", "| --- |" + " --: |" * (len(STATUSES) + 1)]
    for key, rows in groups:
        counts = collections.Counter(row.status for row in rows)
        lines.append(f"| {key} | {len(rows)} | " + " | ".join(str(counts[s] or "") for s in STATUSES) + " |")
    return "\n".join(lines) + "\n"


def grouped(rows, key):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def byOpset(rows):
    order = lambda item: (item[0].split()[0], int(item[0].split()[1]))
    return table("opset", sorted(grouped(rows, lambda row: row.opset).items(), key=order))


def byOperator(rows):
    return table("operator", sorted(grouped(rows, lambda row: row.operator).items()))


def reasons(rows):
    groups = grouped([row for row in rows if row.status != "passed"], lambda row: generalised(row.reason))
    lines = ["| cases | reason | for example |", "| --: | --- | --- |"]
    for reason, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        lines.append(f"| {len(members)} | {reason.replace('|', '&#124;')} | {members[0].name} |")
    return "\n".join(lines) + "\n"


def generalised(reason):
    """A reason without what differs from case to case: the file's path, and the node's name in quotes."""
    reason = re.sub(r"\S*model\.onnx:?\s*", "", reason)
    return re.sub(r"^\s*(dspark-\w+:|error:)\s*", "", reason)


PEER_STATUSES = ("passed", "refused", "failed", "crashed", "unasked")


def besidePeer(rows, theirs):
    """One line per operator on which the two differ anywhere, then the cases that only one of them passes."""
    lines = ["| operator | cases | we pass | onnxruntime passes | refuses | fails | crashes | not asked |", "| --- |" + " --: |" * 7]
    for operator, members in sorted(grouped(rows, lambda row: row.operator).items()):
        ours = sum(row.status == "passed" for row in members)
        counts = collections.Counter(theirs[row.name][0] for row in members)
        if ours != len(members) or counts["passed"] != len(members):
            lines.append(f"| {operator} | {len(members)} | {ours} | " + " | ".join(str(counts[s] or "") for s in PEER_STATUSES) + " |")
    behind = [row.name for row in rows if row.status != "passed" and theirs[row.name][0] == "passed"]
    lines += ["", f"Cases that onnxruntime passes and we do not: {', '.join(behind) or 'none'}.", "",
              "| case | we | onnxruntime | its reason |", "| --- | --- | --- | --- |"]
    for row in rows:
        status, reason = theirs[row.name]
        if (row.status, status) != ("passed", "passed"):
            lines.append(f"| {row.name} | {row.status} | {status} | {shortened(reason)} |")
    return "\n".join(lines) + "\n"


def shortened(reason):
    """The end of what onnxruntime says: before it come codes, paths and places in its sources."""
    reason = re.sub(r".*(?:\[ONNXRuntimeError\] : \d+ : \w+ : |::\w+\([^)]*\) |model\.onnx failed:|Fatal error: |&\) )", "", reason)
    return reason.replace("|", "&#124;")


def writePeer(rows, theirs, version):
    counts, ours = collections.Counter(status for status, _ in theirs.values()), sum(row.status == "passed" for row in rows)
    text = f"""# ONNX conformance beside onnxruntime

Written by `make conformance-all` (`tools/onnx-conformance --all --write-docs --peer`); do not edit. The same cases, and the same tolerances, in
onnxruntime {version} on the CPU (`tools/devkit/peer.py`). Of {len(rows)} cases we pass {ours}; onnxruntime passes {counts["passed"]}, refuses to load
{counts["refused"]}, fails {counts["failed"]} and crashes on {counts["crashed"]}; {counts["unasked"]} were not asked, since their operands have types (bf16, 8, 4 and 2 bits) that its
Python does not take. A model of a file version (IR 14, opset 28) above its own counts as refused. Operators on which both pass every case
are left out.

{besidePeer(rows, theirs)}"""
    (ROOT / "docs" / "conformance-peer.md").write_text(text)


def write(rows, counts, often):
    """`often` says in a sentence in how many ways the cases ran."""
    total = sum(counts.values())
    text = f"""# ONNX conformance

Written by `make conformance-all` (`tools/onnx-conformance --all --write-docs`); do not edit. The cases are those of the `onnx`
{onnx.__version__} package: each is compiled, run and compared with the expected outputs at the tolerances of ONNX's own tests (rtol
1e-3, atol 1e-7; rtol 2^-6 for bf16 and 2^-9 for f16; shapes and types only where outputs are random by design). Of {total} cases {counts["passed"]} passed and
{counts["unsupported"]} were refused with a reason. {often}

## By opset

{byOpset(rows)}
## By operator

{byOperator(rows)}
## Why cases do not pass

{reasons(rows)}"""
    (ROOT / "docs" / "conformance.md").write_text(text)
