"""What a Python program finds out on a card: lines of JSON, as support/findings.hpp says."""
import json
import time


def say(**finding):
    print(json.dumps(finding), flush=True)


def answer(name, value, note=""):
    say(answer=name, value=str(value), note=note)


checks = 0  # how many have been said


def check(name, cases, wrong, note=""):
    global checks
    checks += 1
    say(check=name, cases=int(cases), wrong=int(wrong), note=note)


def shortened(error):
    text = f"{type(error).__name__}: {error}".replace("\0", "").strip()
    return text if len(text) <= 600 else text[:300] + " ... " + text[-300:]


class CardLost(Exception):
    """An error after which a process gets nothing more from its card."""


def attempt(name, work, *arguments):
    """Reports whether `work(*arguments)` can be done; returns what it returns, or None."""
    begin = time.perf_counter()
    try:
        result = work(*arguments)
    except CardLost:
        raise
    except Exception as error:  # Whatever a version of a package throws is the answer.
        answer(name, "no", shortened(error))
        return None
    answer(name, "yes", f"{time.perf_counter() - begin:.2f} s")
    return result
