"""Plans that the tests of the core share."""

from longtake.workflow.plan import Plan, Retry, Step, group, ref

FAST = Retry(max_attempts=3, first_delay_ms=1000, factor=2, delay_ms_max=60_000)


def film(scenes: int = 3, *, price: int = 5, max_parallel: int = 32, **fields: object) -> Plan:
    """Scenes in a fan-out, a voice beside them, a render that refers to both, and a free check at the end."""
    return (
        Plan(scopes=("render",), max_parallel=max_parallel, **fields)
        .fan_out(
            "scenes",
            range(scenes),
            lambda _, i: Step(
                f"scene:{i}",
                activity="scene@1",
                phase="scenes",
                label=f"Generating scene {i} of {scenes}",
                input={"number": i},
                price=price,
                artifacts=["clip"],
                retry=FAST,
                timeout_seconds=60,
            ),
        )
        .step(
            "voice",
            activity="voice@1",
            phase="voice",
            label="Recording the voice",
            price=1,
            artifacts=["voice"],
        )
        .step(
            "render",
            activity="render@1",
            phase="render",
            label="Rendering",
            input={
                "clips": ref(group("scenes"), "/artifacts/clip/object_key"),
                "voice": ref("voice", "/artifacts/voice"),
            },
        )
        .step(
            "verify",
            activity="verify@1",
            phase="delivery",
            label="Checking",
            input={"of": ref("render", "/result/url")},
        )
    )


def one(**fields: object) -> Plan:
    """A plan of one paid step."""
    return Plan().step("a", activity="a@1", **{"price": 5, "retry": FAST, "label": "Making a", **fields})


def free(**fields: object) -> Plan:
    """A plan of one step that costs nobody anything."""
    return one(price=0, **fields)
