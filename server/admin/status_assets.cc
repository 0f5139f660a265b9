// What the status page loads, all of it from here.
#include "server/admin/status_page.h"

namespace kvd {

std::string_view StatusStyle() {
  return R"(:root {
  color-scheme: light dark;
  --text: #1b1f24; --faint: #646c76; --line: #d8dde3; --page: #f6f7f9; --card: #fff;
  --index: #3b76c4; --items: #d9822b; --room: #f0c48f; --free: #e4e8ed; --fixed: #555c66; --time: #3b76c4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #dde2e8; --faint: #939ca7; --line: #333a43; --page: #14171b; --card: #1c2026;
    --index: #5a94e0; --items: #e3954a; --room: #7a5a36; --free: #2b3138; --fixed: #8b939e; --time: #5a94e0;
  }
}
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0; }
main { max-width: 74em; margin: 0 auto; padding: 1em; }
h1 { font-size: 1.5em; margin: .2em 0 0; }
h2, summary { font-size: 1.05em; font-weight: 600; margin: 1.7em 0 .5em; }
summary { cursor: pointer; }
p, ul { margin: .4em 0; color: var(--faint); }
a { color: inherit; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15em, 45%), 1fr)); gap: .6em; margin: 1em 0; }
dl > div { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .5em .8em; }
dt, small { color: var(--faint); font-size: .87em; }
dd { margin: 0; font-size: 1.35em; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.bar { display: block; width: 100%; height: 2.2em; border-radius: 4px; }
.index { fill: var(--index); }
.heap_used { fill: var(--items); }
.heap_free { fill: var(--room); }
.free { fill: var(--free); }
.fixed { fill: var(--fixed); }
.time { fill: var(--time); }
ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2em 1.4em; }
b { color: var(--text); font-weight: 600; }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .92em; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; }
thead th { color: var(--faint); white-space: nowrap; }
th, td { padding: .28em .8em; border-top: 1px solid var(--line); }
tr:first-child > * { border-top: 0; }
tbody tr:first-child > * { border-top: 1px solid var(--line); }
table > tbody:first-child > tr:first-child > * { border-top: 0; }
.n { text-align: right; white-space: nowrap; }
th.chart, td.chart { width: 40%; min-width: 12em; }
.times { display: block; width: 100%; height: 2.4em; background: linear-gradient(var(--line), var(--line)) bottom / 100% 1px no-repeat; }
.part { display: block; width: 100%; height: .8em; border-radius: 3px; }
#silent { margin: 0; padding: .6em 1em; background: #b3261e; color: #fff; position: sticky; top: 0; }
)";
}

// Takes the page anew every two seconds and puts it in the place of what is shown, without moving
// what the reader looks at, scrolled aside or has the focus on; says so while kvd does not answer.
std::string_view StatusScript() {
  return R"("use strict";
let answered = Date.now(), times = 0;
// What makes a link, a summary or a table the same on the next page: the numbers in its heading do not.
function about(part) {
  const heading = part.closest("details") || part.previousElementSibling;
  return part.getAttribute("href") || (heading && (heading.id || heading.textContent.replace(/[0-9,]+/g, "")));
}
async function refresh() {
  if (!document.hidden) {
    const silent = document.getElementById("silent");
    try {
      const reply = await fetch("/", {cache: "no-store", signal: AbortSignal.timeout(4000)});
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const now = page.querySelector("main"), shown = document.querySelector("main");
      for (const part of shown.querySelectorAll("details")) {
        const same = now.querySelector("#" + CSS.escape(part.id));
        if (same) same.open = part.open;
      }
      const scrolled = new Map(), focused = shown.contains(document.activeElement) && about(document.activeElement);
      for (const part of shown.querySelectorAll(".wide")) scrolled.set(about(part), part.scrollLeft);
      document.title = page.title;
      shown.replaceWith(now);
      for (const part of now.querySelectorAll(".wide")) part.scrollLeft = scrolled.get(about(part)) || 0;
      for (const part of now.querySelectorAll("a, summary")) {
        if (focused === about(part)) part.focus({preventScroll: true});
      }
      answered = Date.now();
      silent.hidden = true;
      document.documentElement.dataset.refreshed = ++times;
    } catch (error) {
      silent.hidden = false;
      silent.textContent = "kvd has not answered for " + Math.round((Date.now() - answered) / 1000) +
          " s: what follows is as it was then";
    }
  }
  setTimeout(refresh, 2000);
}
setTimeout(refresh, 2000);
)";
}

}  // namespace kvd
