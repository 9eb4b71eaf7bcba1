"""How the page looks, by day and by night."""

from __future__ import annotations

from numalign.cli.report.machine_svg import OWNER_COLOURS

_OWNERS = (
    "#8ecae6", "#ffb703", "#a3d977", "#f4a6c0", "#c3a6ff", "#ffd6a5",
    "#80d8c3", "#f28482", "#b8c0ff", "#d4e157", "#e0a96d", "#90caf9",
)  # fmt: skip

if len(_OWNERS) != OWNER_COLOURS:
    raise RuntimeError("there is a colour for each class of owners")

STYLE = (
    """
:root { color-scheme: light dark; --text: #1c2330; --dim: #5b6472; --page: #ffffff;
  --box: #f5f7fa; --line: #cfd6e0; --free: #ffffff; --shared: #dfe5ec; --reserved: #8b94a3;
  --given: #3d7dca; --warn: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaf0; --dim: #9aa4b2; --page: #14181f;
  --box: #1c222c; --line: #3a4453; --free: #14181f; --shared: #384252; --reserved: #6b7484;
  --given: #4a8fe0; --warn: #ff8a80; } }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 24px; }
h1 { font-size: 26px; margin: 0 0 12px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 32px 0 10px; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 10px;
  margin: 0; }
.facts dt { color: var(--dim); font-size: 12px; } .facts dd { margin: 0; overflow-wrap: anywhere; }
.problems { color: var(--warn); } .dim { color: var(--dim); }
.map { overflow-x: auto; } .map svg { width: 100%; min-width: 920px; height: auto; display: block; }
svg text { fill: var(--text); font: 12px system-ui, "DejaVu Sans", sans-serif; }
svg .title { font-size: 14px; font-weight: 600; } svg .label { fill: var(--dim); }
svg .cell { text-anchor: middle; font-size: 11px; } svg .mark { text-anchor: middle;
  font-size: 10px; font-weight: 700; }
.node { fill: var(--box); stroke: var(--line); } .core { fill: none; stroke: var(--line); }
.free { fill: var(--free); background: var(--free); stroke: var(--line); }
.shared { fill: var(--shared); background: var(--shared); }
.reserved { fill: var(--reserved); background: var(--reserved); }
.given { fill: var(--given); } .unknown { fill: var(--box); stroke: var(--line); }
.unhealthy { stroke: var(--warn); stroke-width: 2; stroke-dasharray: 4 2; }
svg .owner ~ text { fill: #1c2330; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 6px 18px; }
.legend li { overflow-wrap: anywhere; }
.swatch { display: inline-block; min-width: 20px; padding: 0 4px; margin-right: 7px;
  text-align: center; border: 1px solid var(--line); border-radius: 4px; font-size: 12px;
  font-weight: 700; } .swatch.owner { color: #1c2330; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } td { white-space: pre-line; } th { color: var(--dim); font-weight: 500;
  white-space: nowrap; }
details { border-bottom: 1px solid var(--line); padding: 8px 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
@media (max-width: 600px) { main { padding: 16px; }
  .facts { grid-template-columns: 1fr 1fr; } .legend { flex-direction: column; } }
"""
    + "\n".join(
        f".o{i} {{ fill: {colour}; background: {colour}; }}" for i, colour in enumerate(_OWNERS)
    )
    + "\n"
)
