"""Reports what a Python program finds on a card, as lines of JSON in the format of support/findings.hpp."""
import json
import time


def say(**finding):
    print(json.dumps(finding), flush=True)


def answer(name, value, note=""):
    say(answer=name, value=str(value), note=note)


checks = 0  # number of checks reported


def check(name, cases, wrong, note=""):
    global checks
    checks += 1
    say(check=name, cases=int(cases), wrong=int(wrong), note=note)


def shortened(error):
    text = f"{type(error).__name__}: {error}".replace("\0", "").strip()
    return text if len(text) <= 600 else text[:300] + " ... " + text[-300:]


class CardLost(Exception):
    """Is raised for an error after which the card serves this process no more."""


def attempt(name, work, *arguments):
    """Reports whether `work(*arguments)` succeeds; returns its result, or None."""
    begin = time.perf_counter()
    try:
        result = work(*arguments)
    except CardLost:
        raise
    except Exception as error:  # The answer is any error that a version of a package raises.
        answer(name, "no", shortened(error))
        return None
    answer(name, "yes", f"{time.perf_counter() - begin:.2f} s")
    return result
