"""Rules that find impossible, inconsistent or unsafe numbers in results from anywhere, and mend them where exact."""

from iodelta.audit.engine import RULES, audit, rules
from iodelta.audit.model import Audit, Hit, Repair, Rule
from iodelta.audit.trials import Facts, audit_trials

__all__ = [
    "RULES",
    "Audit",
    "Facts",
    "Hit",
    "Repair",
    "Rule",
    "audit",
    "audit_trials",
    "rules",
]
