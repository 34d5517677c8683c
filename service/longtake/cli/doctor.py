"""`longtake doctor`: the machine as longtake sees it, a line a finding; `doctor restore` is in restore.py."""

import os

from cyclopts import App

from longtake.cli.output import STATUS_STYLES, Json, console, print_json
from longtake.cli.place import DataDir, settings_of
from longtake.cli.restore import restore
from longtake.embedded.doctor import run_checks

app = App(name="doctor", help="Explain what on this machine may stand in the way; go through a restore.")
app.command(restore)


@app.default
def doctor(*, data_dir: DataDir = None, json: Json = False) -> int:
    """Explain what may stand in the way here. Ends with 1 when `longtake up` cannot work."""
    findings = run_checks(settings_of(data_dir=data_dir).data_dir, os.environ)
    if json:
        print_json(findings)
    else:
        out = console()
        for finding in findings:
            remedy = f"  -> {finding.remedy}" if finding.remedy else ""
            style = STATUS_STYLES[finding.state]
            out.print(f"[{style}]{finding.state:<4}[/] ", end="")
            out.print(f"{finding.name:<10} {finding.what}{remedy}", markup=False)
    return 1 if any(finding.state == "fail" for finding in findings) else 0
