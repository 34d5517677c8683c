"""The application object: every workflow and activity of videoads under its versioned name."""

from longtake import App
from videoads.activities.assets import AssetProbe
from videoads.activities.batches import BatchReport
from videoads.activities.clips import ClipGenerate, StillGenerate
from videoads.activities.delivery import DeliveryVerify
from videoads.activities.film import RenderPrepare, RenderSubmit
from videoads.activities.scene_plan import ScenesPlan
from videoads.activities.sounds import MusicGenerate, NarrationGenerate
from videoads.activities.takes import TakeSelect, TakesShortlist
from videoads.activities.words import ScriptRevise, ScriptWrite
from videoads.outsiders import Outsiders
from videoads.workflows.asset_probe import POLICY as PROBE_POLICY
from videoads.workflows.asset_probe import build as build_probe
from videoads.workflows.editor_autopilot import AUTOPILOT_POLICY, scenes_of
from videoads.workflows.editor_autopilot import build as build_autopilot
from videoads.workflows.editor_batch import BATCH_POLICY
from videoads.workflows.editor_batch import build as build_batch
from videoads.workflows.editor_render import RENDER_POLICY
from videoads.workflows.editor_render import build as build_render
from videoads.workflows.editor_scenes import (
    SCENE_POLICY,
    VARIANTS_POLICY,
    build_generate,
    build_regenerate,
    build_variants,
)
from videoads.workflows.editor_sounds import MUSIC_POLICY, VOICE_POLICY, build_music, build_voice
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
app.workflow("editor.scene.generate", version=1, policy=SCENE_POLICY)(build_generate)
app.workflow("editor.scene.regenerate", version=1, policy=SCENE_POLICY)(build_regenerate)
app.workflow("editor.scene.variants", version=1, policy=VARIANTS_POLICY)(build_variants)
app.workflow("editor.voice.generate", version=1, policy=VOICE_POLICY)(build_voice)
app.workflow("editor.music.generate", version=1, policy=MUSIC_POLICY)(build_music)
app.workflow("editor.render", version=1, policy=RENDER_POLICY)(build_render)
app.workflow("editor.autopilot", version=1, policy=AUTOPILOT_POLICY)(build_autopilot)
app.workflow("editor.batch", version=1, policy=BATCH_POLICY)(build_batch)
app.expander("scenes.plan@1")(scenes_of)
app.add(
    BatchReport(),
    ScenesPlan(),
    TakesShortlist(),
    TakeSelect(),
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
