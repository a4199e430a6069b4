"""The rules and definitions of the T-Rex paper, on streams small enough to work the answers out by hand.

Times are in minutes, and a reading is an area and a value: `Temp@3(a,50)`.
"""

from __future__ import annotations

import re

import pytest

import weft

EVENT = re.compile(r"(\w+)@([\d.]+)\((\w+)(?:,(-?\d+))?\)")
MINUTE = 60_000

FIRE = "define Fire(area: string, measuredTemp: double)\n"
D1 = "Smoke(area=$a) and {} Temp(area=$a and value>45) within 5 min from Smoke\n"
READ = "where area=Smoke.area and measuredTemp=Temp.value\n"

R1 = f"Rule R1 {FIRE} from {D1.format('each')} {READ}"
R2 = f"Rule R2 {FIRE} from {D1.format('last')} {READ}"
R3 = f"Rule R3 {FIRE} from {D1.format('each')} {READ} consuming Temp"
R4 = f"""Rule R4 {FIRE} from Temp(area=$a and value>45) and not Rain(area=$a) within 5 min from Temp
where area=Temp.area and measuredTemp=Temp.value"""
D2 = R4.replace("5 min", "1 hour")  # the definition says an hour, the rule five minutes
R5 = f"""Rule R5 {FIRE} from Smoke(area=$a) and 45 < $t=Avg(Temp(area=$a).value within 5 min from Smoke)
where area=Smoke.area and measuredTemp=$t"""
R6 = f"""Rule R6a define NotIncrTemp(area: string)
from Temp(area=$a and value=$t) as T1 and last Temp(area=$a and value>=$t) as T2 within 5 min from T1
 and not Temp(area=$a) between T2 and T1
where area=T1.area
Rule R6b {FIRE}
from Smoke(area=$a) and not NotIncrTemp(area=$a) within 5 min from Smoke
 and Count(Temp(area=$a) within 5 min from Smoke) >= 10
where area=Smoke.area and measuredTemp=Avg(Temp(area=$a).value within 5 min from Smoke)
Rule R6c {FIRE}
from Smoke(area=$a) and last NotIncrTemp(area=$a) as N within 5 min from Smoke
 and Count(Temp(area=$a) between Smoke and N) >= 10
where area=Smoke.area and measuredTemp=Avg(Temp(area=$a).value between Smoke and N)"""
R7 = f"""Rule R7 {FIRE}
from Smoke(area=$a) and each Temp(area=$a and value>45) within 5 min from Smoke
 and each Wind(area=$a and value>20) within 5 min from Smoke and not Rain(area=$a) between Smoke and Wind
{READ}"""
R8 = f"Rule R8 {FIRE} from {D1.format('last')} {READ} consuming Temp"
R9 = f"Rule R9 {FIRE} from {D1.format('first')} {READ}"

# Three high readings of one area and two smokes; a low reading, one of another area, one too early.
READINGS = "Temp@0(a,90) Temp@2(a,50) Temp@3(a,60) Temp@3.5(b,80) Temp@4(a,45) Temp@5(a,70) Smoke@6(a) Smoke@7.5(a)"
FIRST_SMOKE = ["1,6=50", "2,6=60", "5,6=70"]
RISING = " ".join(f"Temp@{1 + minute / 10}(a,{10 + minute})" for minute in range(10))


def stream(text: str) -> list[dict[str, object]]:
    """Events from their notation."""
    events: list[dict[str, object]] = []
    for type_, minute, area, value in EVENT.findall(text):
        event: dict[str, object] = {"type": type_, "ts": round(float(minute) * MINUTE), "area": area}
        events.append(event | ({"value": int(value)} if value else {}))
    return events


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize(
    ("rules", "events", "fires"),
    [
        pytest.param(
            R1, READINGS, [*FIRST_SMOKE, "2,7=60", "5,7=70"], id="R1, D1: each reading of the last five minutes"
        ),
        pytest.param(R2, READINGS, ["5,6=70", "5,7=70"], id="R2, D1: the last reading"),
        pytest.param(R3, READINGS, FIRST_SMOKE, id="R3: a reading is used once"),
        pytest.param(R8, READINGS, ["5,6=70", "2,7=60"], id="R8: the last one that was not used"),
        pytest.param(R9, READINGS, ["1,6=50", "2,7=60"], id="R9: the first reading, which grows too old"),
        pytest.param(
            R4, "Temp@1(a,50) Rain@2(a) Rain@2(b) Temp@7(a,60) Temp@7.1(a,45) Temp@7.2(a,70)", ["0=50", "5=70"], id="R4"
        ),
        pytest.param(
            D2, "Temp@1(a,50) Rain@2(a) Temp@7.1(a,60) Temp@62(a,70) Temp@62.1(a,80)", ["0=50", "4=80"], id="D2"
        ),
        pytest.param(
            R5,
            "Smoke@1(a) Temp@2(a,40) Temp@3(b,99) Temp@4(a,50) Smoke@5(a) Temp@6(a,60) Smoke@7(a) Smoke@7.5(a)",
            ["6=50", "7=55"],
            id="R5, D3: averages of 45, 50 and 55",
        ),
        pytest.param(R6, f"{RISING} Smoke@3(a) Smoke@6.5(a)", ["10=14.5"], id="R6b, D4: ten readings that rise"),
        pytest.param(
            R6,
            f"Temp@0(a,80) {RISING} Temp@2(a,20) Smoke@3(a) Temp@3.5(a,5) Smoke@4(a)",
            ["0,1,12=15.5"],
            id="R6c, D4: they rise since a reading that was lower",
        ),
        pytest.param(R6, f"Temp@0(a,80) {RISING} Smoke@3(a)", [], id="R6, D4: only nine after it"),
        pytest.param(
            R7,
            "Temp@1(a,50) Wind@2(a,30) Wind@2.5(b,90) Rain@3(a) Temp@4(a,60) Wind@4.5(a,25) Wind@4.6(a,20) Smoke@5(a)",
            ["0,5,7=50", "4,5,7=60"],
            id="R7: no rain since the wind",
        ),
    ],
)
def test_rule(rules: str, events: str, fires: list[str], engine: str) -> None:
    program = weft.compile(rules, language="tesla")
    found = [match for match in weft.detect(stream(events), program, engine=engine) if match.query == "Fire"]
    assert sorted(f"{','.join(map(str, m.positions))}={m.event['measuredTemp']:g}" for m in found) == sorted(fires)


@pytest.mark.parametrize("engine", ["meaning", "local"])
def test_readings_that_do_not_rise(engine: str) -> None:
    events = "Temp@1(a,50) Temp@2(b,40) Temp@3(a,50) Temp@4(a,60) Temp@5(a,55) Temp@6(b,39) Temp@12(b,38)"
    found = weft.detect(stream(events), weft.compile(R6, language="tesla"), engine=engine)
    assert [(match.query, match.positions, match.event) for match in found] == [
        ("NotIncrTemp", (0, 2), {"area": "a"}),
        ("NotIncrTemp", (3, 4), {"area": "a"}),
        ("NotIncrTemp", (1, 5), {"area": "b"}),
    ]
