#!/usr/bin/env python3
"""usage: findings_are.py right|wrong PROGRAM [argument...]

Runs a program that prints findings (support/findings.hpp), as a test. `right` passes if the program checks something,
ends well and all checks are right; `wrong` passes if a check is wrong, as it must be after something was broken on
purpose.
"""
import subprocess
import sys

import stages

wanted, *command = sys.argv[1:]
said = subprocess.run(command, stdout=subprocess.PIPE, text=True)
findings = [finding for finding in map(stages.finding_of, said.stdout.splitlines()) if finding]
checks = [finding for finding in findings if "check" in finding]
wrong = [finding for finding in checks if finding["wrong"]]
faults = [finding["fault"] for finding in findings if "fault" in finding]
for finding in wrong[:20]:
    print(f"{finding['check']}: {finding['wrong']} of {finding['cases']} wrong; {finding['note']}")
print(f"status {said.returncode}, {len(checks)} checks, {len(wrong)} wrong{', fault: ' + faults[0] if faults else ''}")
is_right = said.returncode == 0 and bool(checks) and not wrong and not faults
sys.exit(not (is_right if wanted == "right" else bool(wrong) and not faults))
