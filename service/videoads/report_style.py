"""How the report looks, in light and in dark: one style sheet, no face or picture from elsewhere."""

STYLE = """
:root { --page:#f6f3ee; --card:#fffdf9; --ink:#221c17; --quiet:#6c6158; --line:#e4ddd3; --accent:#a4481f;
  --good:#2f7d4f; --bad:#b3261e; --warn:#9a6700; --busy:#3b6ea8;
  --good-soft:#dff0e4; --bad-soft:#f9dedc; --warn-soft:#fbeccb; --busy-soft:#dde8f5; }
@media (prefers-color-scheme: dark) { :root { --page:#141110; --card:#1d1917; --ink:#f2ece4; --quiet:#a89c90;
  --line:#342d28; --accent:#f0925f; --good:#7bd39b; --bad:#ff8a80; --warn:#f2c063; --busy:#8fbaf0;
  --good-soft:#1d3527; --bad-soft:#43201d; --warn-soft:#3c2f13; --busy-soft:#1d2c40; } }
* { box-sizing:border-box }
body { margin:0; background:var(--page); color:var(--ink);
  font:16px/1.55 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;
  -webkit-font-smoothing:antialiased }
main { max-width:1040px; margin:0 auto; padding:56px 24px 72px }
header { margin-bottom:36px; position:relative }
.eyebrow { margin:0 0 6px; color:var(--accent); font-size:13px; letter-spacing:.08em; text-transform:uppercase }
h1 { margin:0 140px 0 0; font:600 clamp(28px,5vw,46px)/1.1 ui-serif,Georgia,"Times New Roman",serif;
  letter-spacing:-.015em; text-wrap:balance }
h2 { margin:0 0 4px; font:600 21px/1.25 ui-serif,Georgia,"Times New Roman",serif; letter-spacing:-.005em }
.quiet { color:var(--quiet) } p.quiet { margin:0 0 16px; font-size:14.5px }
.pill { display:inline-block; padding:4px 12px; border-radius:99px; font-size:13px; font-weight:600 }
header .pill { position:absolute; right:0; top:26px }
.pill.small { padding:1px 9px; font-size:12px }
.pill.good { background:var(--good-soft); color:var(--good) } .pill.bad { background:var(--bad-soft); color:var(--bad) }
.pill.warn { background:var(--warn-soft); color:var(--warn) } .pill.busy { background:var(--busy-soft); color:var(--busy) }
.trouble { color:var(--bad) }
.facts { display:grid; grid-template-columns:repeat(auto-fit,minmax(120px,1fr)); gap:1px; margin:28px 0 0;
  background:var(--line); border:1px solid var(--line); border-radius:14px; overflow:hidden }
.facts div { background:var(--card); padding:14px 18px }
dt { color:var(--quiet); font-size:13px } dd { margin:2px 0 0; font-size:20px; font-weight:600;
  font-variant-numeric:tabular-nums; letter-spacing:-.01em }
section { background:var(--card); border:1px solid var(--line); border-radius:18px; padding:26px 28px; margin:0 0 22px }
.stage { display:grid; grid-template-columns:minmax(0,360px) minmax(0,1fr); gap:36px; align-items:center }
figure { margin:0 } video { display:block; width:100%; max-height:78vh; border-radius:14px; background:#000;
  box-shadow:0 18px 50px -18px rgba(0,0,0,.45) }
.highlights { list-style:none; margin:0; padding:0 }
.highlights li { display:flex; justify-content:space-between; gap:18px; padding:10px 0; border-top:1px solid var(--line) }
.highlights span { color:var(--quiet); white-space:nowrap; text-transform:capitalize }
.highlights b { font-weight:550; text-align:right; font-variant-numeric:tabular-nums; overflow-wrap:anywhere }
.wide { overflow-x:auto; margin:0 -6px; padding:0 6px }
table { width:100%; border-collapse:collapse; font-size:14.5px }
th { text-align:left; font-weight:500; color:var(--quiet); font-size:13px; padding:6px 14px 8px 0 }
td { padding:9px 14px 9px 0; border-top:1px solid var(--line); vertical-align:top }
td.number { font-variant-numeric:tabular-nums } td.measure { overflow-wrap:anywhere; max-width:420px }
.remedy { display:block; color:var(--bad) }
.mark { display:inline-grid; place-items:center; width:20px; height:20px; border-radius:50%; font-size:12px }
.mark.good { background:var(--good-soft); color:var(--good) } .mark.bad { background:var(--bad-soft); color:var(--bad) }
code, pre { font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; font-size:.86em; overflow-wrap:anywhere }
.timeline { width:100%; min-width:680px; height:auto; display:block; font-size:12px }
.timeline .grid { stroke:var(--line) } .timeline .lane { stroke:var(--line); opacity:.6 }
.timeline text { fill:var(--quiet) } .timeline .name { fill:var(--ink) }
.timeline .bar.good { fill:var(--good) } .timeline .bar.bad { fill:var(--bad) }
.timeline .bar.warn { fill:var(--warn) } .timeline .bar.busy { fill:var(--busy) }
.timeline .waiting { fill:var(--quiet); opacity:.5 }
details { border-top:1px solid var(--line) } details:first-child { border-top:0 }
summary { display:flex; gap:14px; align-items:baseline; padding:9px 0; cursor:pointer; list-style:none }
summary::-webkit-details-marker { display:none } summary b { font-weight:550; flex:1; overflow-wrap:anywhere }
summary:hover b { color:var(--accent) } summary:focus-visible { outline:2px solid var(--accent); outline-offset:2px }
.seq { width:32px; color:var(--quiet); font-variant-numeric:tabular-nums; text-align:right }
.hash { color:var(--quiet) }
pre { background:var(--page); border-radius:10px; padding:14px 16px; overflow-x:auto; margin:0 0 14px; white-space:pre-wrap }
footer { color:var(--quiet); font-size:13.5px; padding:10px 4px }
@media (max-width:720px) { main { padding:32px 16px 48px } .stage { grid-template-columns:1fr }
  h1 { margin-right:0 } header .pill { position:static; margin-top:12px } section { padding:20px 18px } .hash { display:none } }
@media print { body { background:#fff } section { break-inside:avoid } }
"""
