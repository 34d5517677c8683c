"""The application object: every workflow and activity of videoads under its versioned name."""

from longtake import App
from videoads.activities.assets import AssetProbe
from videoads.activities.clips import ClipGenerate, StillGenerate
from videoads.activities.delivery import DeliveryVerify
from videoads.activities.film import RenderPrepare, RenderSubmit
from videoads.activities.sounds import MusicGenerate, NarrationGenerate
from videoads.activities.words import ScriptRevise, ScriptWrite
from videoads.outsiders import Outsiders
from videoads.workflows.asset_probe import POLICY as PROBE_POLICY
from videoads.workflows.asset_probe import build as build_probe
from videoads.workflows.film_export import (
    EXPORT_POLICY,
    RERENDER_POLICY,
    build_export,
    build_rerender,
)
from videoads.workflows.film_takes import POLICY as TAKES_POLICY
from videoads.workflows.film_takes import build as build_takes
from videoads.workflows.script_revise import POLICY as REVISE_POLICY
from videoads.workflows.script_revise import build as build_revise
from videoads.workflows.short_generation import POLICY as SHORT_POLICY
from videoads.workflows.short_generation import build as build_short

PRICE_LIST = "2026-11"

outsiders = Outsiders()
app = App("videoads", price_list=PRICE_LIST)
app.workflow("short.generation", version=1, policy=SHORT_POLICY)(build_short)
app.workflow("film.takes", version=1, policy=TAKES_POLICY)(build_takes)
app.workflow("film.export", version=1, policy=EXPORT_POLICY, starts=("export", "follow_up"))(build_export)
app.workflow("short.rerender", version=1, policy=RERENDER_POLICY)(build_rerender)
app.workflow("script.revise", version=1, policy=REVISE_POLICY, starts=("new_turn", "follow_up"))(build_revise)
app.workflow("asset.probe", version=1, policy=PROBE_POLICY, starts=("utility",))(build_probe)
app.add(
    ScriptRevise(),
    AssetProbe(),
    ScriptWrite(),
    ClipGenerate(outsiders),
    StillGenerate(outsiders),
    NarrationGenerate(outsiders),
    MusicGenerate(outsiders),
    RenderPrepare(),
    RenderSubmit(outsiders),
    DeliveryVerify(),
)
app.callback("render")(outsiders.verify_render)
