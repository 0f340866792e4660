"""What the core brings through its own door (``iodelta.part``)."""

from __future__ import annotations

from iodelta.part import Command, Document, Folder, Kind, Part

CORE = Part(
    name="core",
    commands=(
        Command(
            "run",
            "Run an experiment, or continue one.",
            "measure",
            "iodelta.cli.run:command",
        ),
        Command(
            "prepare",
            "Bring a disk to a known state: purge, fill, rounds until it is steady.",
            "measure",
            "iodelta.cli.prepare:command",
        ),
        Command(
            "report",
            "Show what an experiment found.",
            "measure",
            "iodelta.cli.report:command",
        ),
        Command(
            "show",
            "List what fio results, tables or archives contain.",
            "numbers",
            "iodelta.cli.numbers:show",
        ),
        Command(
            "compare",
            "Compare results from any source, as far as the data allow.",
            "measure",
            "iodelta.cli.numbers:compare",
        ),
        Command(
            "audit",
            "Find impossible or inconsistent numbers in results.",
            "numbers",
            "iodelta.cli.numbers:audit",
        ),
        Command(
            "bisect",
            "Find the commits, versions or settings that made it slower.",
            "cause",
            "iodelta.cli.bisect:command",
        ),
        Command(
            "attribute",
            "Measure how much each of several patches costs, alone and together.",
            "cause",
            "iodelta.cli.attribute:command",
        ),
        Command(
            "calibrate",
            "Measure this machine's noise, false alarms and smallest detectable change.",
            "measure",
            "iodelta.cli.calibrate:command",
        ),
        Command(
            "kernel",
            "List, fetch and build kernels for virtual machines, and follow an I/O through them.",
            "cause",
            "iodelta.cli.kernel:command",
        ),
        Command(
            "knobs",
            "List what can be set on this machine, and why other settings cannot.",
            "machine",
            "iodelta.cli.host:knobs",
        ),
        Command(
            "restore",
            "Restore the settings that a crashed run left changed.",
            "machine",
            "iodelta.cli.host:restore",
        ),
        Command(
            "doctor",
            "List what this machine lacks, which features need it, and what installs it.",
            "machine",
            "iodelta.cli.host:doctor",
        ),
        Command(
            "env",
            "Show this machine's hardware, kernel and settings.",
            "machine",
            "iodelta.cli.host:env",
        ),
        Command(
            "pack",
            "Pack an experiment folder into one file, without names that identify your machine.",
            "numbers",
            "iodelta.cli.pack:command",
        ),
        Command(
            "reproduce",
            "Measure someone's bundle here: do its changes appear on this machine too?",
            "numbers",
            "iodelta.cli.reproduce:command",
        ),
        Command(
            "fio",
            "Build a static fio and t/io_uring from the distribution's source.",
            "machine",
            "iodelta.cli.host:fio",
        ),
        Command(
            "history",
            "Follow results over many nights, and find the steps between them.",
            "nights",
            "iodelta.cli.history_night:command",
        ),
        Command(
            "fleet",
            "Measure one experiment on many hosts, and say whether they agree.",
            "nights",
            "iodelta.cli.fleet:command",
        ),
        Command(
            "serve",
            "Show results in a browser, and as JSON at the same addresses.",
            "nights",
            "iodelta.cli.serve:command",
        ),
        Command(
            "rebuild",
            "Recreate the derived files of a folder from its raw data.",
            "measure",
            "iodelta.cli.host:rebuild",
        ),
    ),
    kinds=(
        Kind(
            "iodelta.study.experiment:Account",
            "iodelta.report.stories.experiment:of_account",
            (
                "account.judgement.verdicts | account.plan.experiment.question "
                "account.plan.rules.margin account.plan.rules.looks "
                "account.plan.seed account.again.run"
            ),
            screen="iodelta.report.formats.console:screen",
            checks="iodelta.report.stories.checks:of_account",
            values="iodelta.report.formats.builds:of_account",
            document="iodelta.report.verdict_json:document",
        ),
        Kind(
            "iodelta.study.audited:Audited",
            "iodelta.report.stories.audit:of_audit",
            "hits findings claims refusals",
        ),
        Kind(
            "iodelta.study.attribution:AttributionAccount",
            "iodelta.report.stories.attribution:of_attribution",
            "whole alone on_top shares parts combinations | question.metric patches",
            checks="iodelta.report.stories.checks:of_attribution",
        ),
        Kind(
            "iodelta.report.stories.calibration:CalibrationAnswer",
            "iodelta.report.stories.calibration:of_calibrated",
            "calibration.metrics",
        ),
        Kind(
            "iodelta.study.comparison:Comparison",
            "iodelta.report.stories.comparison:of_comparison",
            "compared | paths",
            pictures="iodelta.report.formats.pictures:bars_of",
            checks="iodelta.report.stories.checks:of_comparison",
            values="iodelta.report.formats.builds:of_comparison",
        ),
        Kind(
            "iodelta.study.planned:DiskPlanAnswer",
            "iodelta.report.stories.plan:of_disk_plan",
            "survey.cost | survey.target.path",
        ),
        Kind(
            "iodelta.study.fleet:FleetAccount",
            "iodelta.report.stories.fleet:of_fleet",
            "rows.hosts rows hosts | again",
            checks="iodelta.report.stories.checks:of_fleet",
        ),
        Kind(
            "iodelta.study.fleet_reproduction:FleetReproduced",
            "iodelta.report.stories.fleet:of_fleet_reproduction",
            "hosts.matched fleet.rows hosts | again",
        ),
        Kind(
            "iodelta.path.judge:PathAccount",
            "iodelta.report.stories.path:of_path",
            (
                "shifts tallies bills.charges footprints.measures trees.roots "
                "sharing.cells sharing.cells.lines sharing.shifts"
            ),
            checks="iodelta.report.stories.checks:of_path",
            values="iodelta.report.formats.builds:of_path",
        ),
        Kind(
            "iodelta.path.plan:PathPlanAnswer",
            "iodelta.report.stories.plan:of_path_plan",
            "plan.boots",
        ),
        Kind(
            "iodelta.study.planned:PlanAnswer",
            "iodelta.report.stories.plan:of_plan",
            (
                "plan.schedule.rounds | plan.experiment.baseline plan.rules.margin "
                "plan.seed"
            ),
        ),
        Kind(
            "iodelta.study.preparation:PrepareAnswer",
            "iodelta.report.stories.preparation:of_preparation",
            "disk.rounds",
        ),
        Kind(
            "iodelta.study.reproduction:Reproduced",
            "iodelta.report.stories.reproduction:of_reproduction",
            "matched | there.baseline again",
        ),
        Kind(
            "iodelta.study.audited:RulesAnswer",
            "iodelta.report.stories.audit:of_rules",
            "rules",
        ),
        Kind(
            "iodelta.study.search:SearchAccount",
            "iodelta.report.stories.search:of_search",
            (
                "levels answers skipped culprits | question.metric question.unit "
                "question.rules.margin"
            ),
            checks="iodelta.report.stories.checks:of_search",
            mail="iodelta.report.stories.search:mail",
        ),
        Kind(
            "iodelta.study.search:SearchPlanAnswer",
            "iodelta.report.stories.plan:of_search_plan",
            "items",
        ),
        Kind(
            "iodelta.study.rows:Shown",
            "iodelta.report.stories.shown:of_shown",
            "rows",
            pictures="iodelta.report.formats.pictures:sparks_of",
        ),
    ),
    documents=(
        Document(
            "iodelta.verdict/1",
            "iodelta.report.verdict_json:Document",
            "iodelta report, iodelta run, verdict.json",
        ),
        Document(
            "iodelta.compare/1",
            "iodelta.study.comparison:Comparison",
            "iodelta compare",
        ),
        Document("iodelta.show/1", "iodelta.study.rows:Shown", "iodelta show"),
        Document("iodelta.audit/1", "iodelta.study.audited:Audited", "iodelta audit"),
        Document(
            "iodelta.audit-rules/1",
            "iodelta.study.audited:RulesAnswer",
            "iodelta audit --rules",
        ),
        Document(
            "iodelta.plan/1",
            "iodelta.study.planned:PlanAnswer",
            "iodelta run --dry-run, iodelta reproduce --dry-run",
        ),
        Document(
            "iodelta.prepare/1",
            "iodelta.study.preparation:PrepareAnswer",
            "iodelta prepare, iodelta report",
        ),
        Document(
            "iodelta.prepare-plan/1",
            "iodelta.study.planned:DiskPlanAnswer",
            "iodelta prepare --dry-run",
        ),
        Document(
            "iodelta.path-plan/1",
            "iodelta.path.plan:PathPlanAnswer",
            "iodelta run --dry-run with the instruction clock",
        ),
        Document(
            "iodelta.search-plan/1",
            "iodelta.study.search:SearchPlanAnswer",
            "iodelta bisect --dry-run",
        ),
        Document(
            "iodelta.calibration/1",
            "iodelta.report.stories.calibration:CalibrationAnswer",
            "iodelta calibrate",
        ),
        Document("iodelta.env/1", "iodelta.report.answers:EnvAnswer", "iodelta env"),
        Document(
            "iodelta.env-diff/1",
            "iodelta.report.answers:EnvDiffAnswer",
            "iodelta env --diff",
        ),
        Document(
            "iodelta.knobs/1", "iodelta.report.answers:KnobsAnswer", "iodelta knobs"
        ),
        Document(
            "iodelta.restore/1",
            "iodelta.report.answers:RestoreAnswer",
            "iodelta restore",
        ),
        Document(
            "iodelta.reproduction/1",
            "iodelta.study.reproduction:Reproduced",
            "iodelta reproduce",
        ),
        Document(
            "iodelta.fleet/1",
            "iodelta.study.fleet:FleetAccount",
            "iodelta fleet report",
        ),
        Document(
            "iodelta.fleet-reproduction/1",
            "iodelta.study.fleet_reproduction:FleetReproduced",
            "iodelta reproduce --hosts",
        ),
        Document("iodelta.pack/1", "iodelta.report.answers:PackAnswer", "iodelta pack"),
        Document(
            "iodelta.path/1",
            "iodelta.path.judge:PathAccount",
            "iodelta run, iodelta report with the instruction clock",
        ),
        Document(
            "iodelta.doctor/1", "iodelta.api.doctor:DoctorAnswer", "iodelta doctor"
        ),
        Document(
            "iodelta.kernels/1",
            "iodelta.report.answers:KernelsAnswer",
            "iodelta kernel list, fetch and build",
        ),
        Document(
            "iodelta.rebuild/1",
            "iodelta.report.answers:RebuildAnswer",
            "iodelta rebuild",
        ),
        Document(
            "iodelta.serve/1",
            "iodelta.report.answers:ServeAnswer",
            "iodelta serve --format json",
        ),
        Document(
            "iodelta.fio-build/1",
            "iodelta.report.answers:FioBuildAnswer",
            "iodelta fio build",
        ),
        Document(
            "iodelta.bisect/2", "iodelta.study.search:SearchAccount", "iodelta bisect"
        ),
        Document(
            "iodelta.attribution/2",
            "iodelta.study.attribution:AttributionAccount",
            "iodelta attribute",
        ),
        Document(
            "iodelta.history-add/1",
            "iodelta.history.answers:HistoryAddAnswer",
            "iodelta history add",
        ),
        Document(
            "iodelta.history-show/1",
            "iodelta.history.answers:HistoryShowAnswer",
            "iodelta history show",
        ),
        Document(
            "iodelta.history-scan/1",
            "iodelta.history.answers:HistoryScanAnswer",
            "iodelta history scan",
        ),
        Document(
            "iodelta.history-alert/1",
            "iodelta.history.answers:Alert",
            "iodelta history alert, decide and confirm",
        ),
        Document(
            "iodelta.history-compare/1",
            "iodelta.history.answers:HistoryCompareAnswer",
            "iodelta history compare",
        ),
        Document(
            "iodelta.history-night/1",
            "iodelta.history.answers:HistoryNightAnswer",
            "iodelta history night",
        ),
        Document(
            "iodelta.history-note/1",
            "iodelta.history.answers:HistoryNoteAnswer",
            "iodelta history annotate",
        ),
        Document(
            "iodelta.history-check/1",
            "iodelta.history.answers:HistoryCheckAnswer",
            "iodelta history check",
        ),
        Document(
            "iodelta.history-rebuild/1",
            "iodelta.history.answers:HistoryRebuildAnswer",
            "iodelta history rebuild",
        ),
        Document(
            "iodelta.history-prune/1",
            "iodelta.history.answers:HistoryPruneAnswer",
            "iodelta history prune",
        ),
        Document(
            "iodelta.history-export/1",
            "iodelta.history.exchange:HistoryExportAnswer",
            "iodelta history export --to json",
        ),
        Document(
            "iodelta.fleet-check/1",
            "iodelta.fleet.answers:FleetCheckAnswer",
            "iodelta fleet check",
        ),
        Document(
            "iodelta.fleet-status/1",
            "iodelta.fleet.answers:FleetStatusAnswer",
            "iodelta fleet run and status",
        ),
        Document(
            "iodelta.fleet-cancel/1",
            "iodelta.fleet.answers:FleetCancelAnswer",
            "iodelta fleet cancel",
        ),
        Document(
            "iodelta.fleet-fetch/1",
            "iodelta.fleet.answers:FleetFetchAnswer",
            "iodelta fleet fetch",
        ),
    ),
    folders=(
        Folder(
            "experiment",
            "iodelta.lab.folder:holds_trials",
            "iodelta.cli.report:of_experiment",
        ),
        Folder(
            "counted path",
            "iodelta.lab.folder:holds_counts",
            "iodelta.cli.report:of_counted_path",
        ),
        Folder(
            "preparation",
            "iodelta.lab.folder:holds_preparation",
            "iodelta.cli.report:of_preparation",
        ),
        Folder(
            "bundle",
            "iodelta.bundle.packed:is_bundle",
            "iodelta.cli.report:of_experiment",
        ),
        Folder(
            "search", "iodelta.bisect.log:is_search", "iodelta.cli.report:of_search"
        ),
    ),
)
