// Returns what is wrong with the page for someone who does not see it, or does not use a mouse.
(() => {
  const wrong = [];
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const name = (e) => (e.getAttribute("aria-label") || (document.getElementById(e.getAttribute("aria-labelledby")) || e).textContent || "").trim();
  const at = (e) => e.outerHTML.slice(0, 120);
  const want = (ok, what, e) => { if (!ok) wrong.push(what + (e ? ": " + at(e) : "")); };

  want(document.documentElement.lang === "en", "the page has no language");
  want(document.title.trim() !== "", "the page has no title");
  for (const one of ["main", "h1"]) want(all(one).length === 1, "there are " + all(one).length + " of " + one);
  for (const e of document.body.children) want(["HEADER", "MAIN", "SCRIPT"].includes(e.tagName) || e.id === "pins", "outside of the landmarks", e);
  for (const e of all("a, button, input, select, [role=button], [role=region], [tabindex]")) want(name(e) !== "", "it has no name", e);
  for (const e of all("[role=region]")) want(e.hasAttribute("aria-label"), "a region without a name", e);
  for (const e of all("svg:not([aria-hidden])")) want(name(e) !== "" && ["img", "group"].includes(e.getAttribute("role")), "a picture without a name or a role", e);
  for (const e of all("[role=img]")) want(!e.querySelector("[tabindex]"), "what is focused in a picture is not told", e);
  for (const e of all("[aria-labelledby]")) want(document.getElementById(e.getAttribute("aria-labelledby")), "its name is not there", e);
  const regions = all("[role=region], section[aria-labelledby], section[aria-label]").map(name);
  for (const one of regions) want(regions.indexOf(one) === regions.lastIndexOf(one), "two regions have the name " + one);
  const ids = all("[id]").map((e) => e.id);
  want(new Set(ids).size === ids.length, "an id stands twice");
  for (const e of all("table")) {
    for (const th of e.querySelectorAll("th")) want(["col", "row"].includes(th.scope), "a head without a scope", th);
    for (const row of e.querySelectorAll("tbody tr")) want(row.cells.length === e.tHead.rows[0].cells.length, "a row has other cells than the head", row);
  }
  let level = 0;
  for (const e of all("h1, h2, h3, h4")) {
    want(Number(e.tagName[1]) <= level + 1, "a heading skips a level", e);
    level = Number(e.tagName[1]);
  }
  for (const e of all("ul")) for (const child of e.children) want(child.tagName === "LI", "a list has what is no item", child);
  for (const e of all("*")) if (e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(e).overflowX)) want(e.tabIndex === 0, "it scrolls, and not by keyboard", e);

  // Contrast as WCAG 2.2 computes it: 4.5 of text, 3 of large text.
  const channels = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = channels(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE", "TITLE", "title"].includes(e.tagName) || !shown(e)) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const ink = channels(e.closest("svg") ? style.fill : style.color).slice(0, 3), paper = behind(e);
    const key = ink + "/" + paper + "/" + size;
    if (seen.has(key)) continue;
    seen.add(key);
    const [a, b] = [luminance(ink), luminance(paper)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    want(ratio >= (large ? 3 : 4.5), "contrast " + ratio.toFixed(2), e);
  }
  // Targets of a finger: 24 px, unless in a line of text or with room around (WCAG 2.2, 2.5.8).
  for (const e of all("button:not(.sorts), select, input")) if (shown(e)) want(e.getBoundingClientRect().height >= 24, "too small for a finger", e);
  return wrong;
})()
