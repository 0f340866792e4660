"""Read policies of mirrors: simulate an array, run a real mirror in user space, explain what a policy will do."""

from __future__ import annotations

from iodelta.part import Command, Document, Kind, Part

_HERE = "iodelta.parts.mirrors"

PART = Part(
    name="mirrors",
    commands=(
        Command(
            "policy",
            "Explain the read policies of mirrors, simulate them, and run them on real members.",
            "cause",
            f"{_HERE}.command:command",
        ),
    ),
    kinds=(
        Kind(
            f"{_HERE}.calibrate:Calibration",
            f"{_HERE}.story:of_calibration",
            "members",
        ),
        Kind(
            f"{_HERE}.answers:ExplainAnswer",
            f"{_HERE}.story:of_explanations",
            "policies.explanations",
        ),
        Kind(
            f"{_HERE}.answers:MirrorAnswer",
            f"{_HERE}.story:of_mirror",
            "runs",
        ),
        Kind(
            f"{_HERE}.answers:PolicyListAnswer",
            f"{_HERE}.story:of_policies",
            "policies policies.parameters",
        ),
        Kind(
            f"{_HERE}.answers:SimulationAnswer",
            f"{_HERE}.story:of_simulation",
            "predictions",
        ),
    ),
    documents=(
        Document(
            "iodelta.policy-list/1",
            f"{_HERE}.answers:PolicyListAnswer",
            "iodelta policy list",
        ),
        Document(
            "iodelta.policy-explanation/1",
            f"{_HERE}.answers:ExplainAnswer",
            "iodelta policy explain",
        ),
        Document(
            "iodelta.policy-simulation/1",
            f"{_HERE}.answers:SimulationAnswer",
            "iodelta policy simulate",
        ),
        Document(
            "iodelta.policy-mirror/1",
            f"{_HERE}.answers:MirrorAnswer",
            "iodelta policy mirror",
        ),
        Document(
            "iodelta.policy-calibration/1",
            f"{_HERE}.calibrate:Calibration",
            "iodelta policy calibrate",
        ),
        Document(
            "iodelta.policy-defrag/1",
            f"{_HERE}.answers:DefragAnswer",
            "iodelta policy defrag",
        ),
    ),
)
