"""The application object: every workflow and activity of videoads under its versioned name."""

from longtake import App
from videoads.activities.clips import ClipGenerate, StillGenerate
from videoads.activities.delivery import DeliveryVerify
from videoads.activities.film import RenderPrepare, RenderSubmit
from videoads.activities.sounds import MusicGenerate, NarrationGenerate
from videoads.activities.words import ScriptWrite
from videoads.outsiders import Outsiders
from videoads.workflows.film_takes import POLICY as TAKES_POLICY
from videoads.workflows.film_takes import build as build_takes
from videoads.workflows.short_generation import POLICY as SHORT_POLICY
from videoads.workflows.short_generation import build as build_short

PRICE_LIST = "2026-11"

outsiders = Outsiders()
app = App("videoads", price_list=PRICE_LIST)
app.workflow("short.generation", version=1, policy=SHORT_POLICY)(build_short)
app.workflow("film.takes", version=1, policy=TAKES_POLICY)(build_takes)
app.add(
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
