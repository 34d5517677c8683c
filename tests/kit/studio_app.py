"""The application whose runs of the first light are kept in tests/histories: as it was, and with one change each."""

from longtake import Activity, App, Cancelled, Outcome, Plan, Retry, Step, group, ref


def studio(*, take_price: int = 6, shop_price: int = 5, voice: bool = True, fails: bool = False) -> App:
    """Its workflows, built as they were when the runs were accepted, unless a change is asked for."""
    app = App("studio", price_list="2026-11")

    @app.activity("sell@1")
    async def sell(call):  # type: ignore[no-untyped-def]
        """Nothing is made."""

    # Plans know activities by name and facts alone.
    for name, paid in (("clip@1", True), ("voice@1", True), ("check@1", False)):
        app.add(_named(name, paid=paid))

    @app.workflow("take", version=1, policy={"model": "v2"})
    def take(input, policy):  # type: ignore[no-untyped-def]
        if fails:
            raise KeyError("prompt_text")
        return Plan(scopes=("take",)).step(
            "clip.generate",
            activity="clip@1",
            phase="scenes",
            label="Generating the take",
            price=take_price,
            artifacts=["clip"],
            input={"prompt": input.get("prompt", "rain"), "model": policy["model"]},
            retry=Retry(max_attempts=2),
            on_exhausted=input.get("on_exhausted"),
        )

    @app.workflow("film", version=1)
    def film(input, policy):  # type: ignore[no-untyped-def]
        plan = Plan(scopes=("voice", "render"), max_parallel=4).fan_out(
            "scenes",
            range(input.get("scenes", 3)),
            lambda _, i: Step(
                f"clip.generate:{i}",
                activity="clip@1",
                phase="scenes",
                label=f"Generating scene {i + 1}",
                input={"number": i},
                price=4,
                artifacts=["clip"],
            ),
        )
        wanted = {"clips": ref(group("scenes"), "/artifacts/clip/object_key")}
        if voice:
            plan = plan.step(
                "voice.generate",
                activity="voice@1",
                phase="voice",
                label="Speaking",
                price=2,
                artifacts=["voice"],
            )
            wanted["voice"] = ref("voice.generate", "/artifacts/voice")
        return plan.step(
            "delivery.verify", activity="check@1", phase="delivery", label="Checking", input=wanted
        )

    @app.workflow("shop", version=1)
    def shop(input, policy):  # type: ignore[no-untyped-def]
        return Plan().step("sell", activity="sell@1", price=shop_price)

    return app


def _named(name_: str, *, paid: bool) -> Activity:
    paid_ = paid

    class Named(Activity):
        name = name_
        paid = paid_
        calls_out = True

        async def execute(self, call) -> Outcome:  # type: ignore[no-untyped-def]
            raise AssertionError("plans are built here, and nothing is made")

        async def cancel(self, call) -> Outcome:  # type: ignore[no-untyped-def]
            return Cancelled(answer="stopped")

    return Named()


app = studio()
dearer = studio(take_price=7)
mute = studio(voice=False)
failing = studio(fails=True)
