"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const made = (name, properties = {}, ...children) => {
    const e = Object.assign(document.createElement(name), properties);
    e.append(...children);
    return e;
  };
  const fileName = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "holdfast";
  const save = (blob, name) => {
    const a = made("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(a);
    a.click();
    a.remove();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  };
  const heads = (table) => all("thead th", table).map((th) => th.dataset.head || th.textContent);

  // Tables: sorted by a column, chosen by a word, saved as CSV.
  const units = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, k: 1e3, M: 1e6, G: 1e9, B: 1, KiB: 1024, MiB: 1 << 20, GiB: 1 << 30, x: 1, "%": 0.01 };
  const quantity = (text) => {
    const m = /^<?\s*(-?[0-9][0-9.,]*)\s*([a-zµ%]*)/i.exec(text.trim());
    return m ? parseFloat(m[1].replace(/,/g, "")) * (units[m[2]] || 1) : NaN;
  };
  const compared = (a, b) => {
    const x = quantity(a), y = quantity(b);
    if (!isNaN(x) && !isNaN(y)) return x - y;
    return isNaN(x) - isNaN(y) || a.localeCompare(b, "en", { numeric: true });
  };
  const sortBy = (table, column) => {
    const th = table.tHead.rows[0].cells[column];
    const up = th.getAttribute("aria-sort") !== "ascending";
    all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = Array.from(table.tBodies[0].rows).map((row) => [row, row.cells[column] ? row.cells[column].textContent : ""]);
    const empty = (text) => text === "-" || text === "";
    rows.sort((a, b) => empty(a[1]) - empty(b[1]) || (up ? compared(a[1], b[1]) : compared(b[1], a[1])));
    table.tBodies[0].append(...rows.map((row) => row[0]));
  };
  const quoted = (text) => {
    if (/^[=+@\t]|^-[^0-9]/.test(text)) text = "'" + text; // no formula for a spreadsheet
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  const csv = (table) => {
    const rows = Array.from(table.tBodies[0].rows).filter((row) => !row.hidden).map((row) => Array.from(row.cells, (c) => c.textContent));
    return [heads(table), ...rows].map((row) => row.map(quoted).join(",") + "\r\n").join("");
  };
  const chooser = (table) => {
    const column = Number(table.dataset.filter), rows = Array.from(table.tBodies[0].rows);
    const of = (row) => row.cells[column] ? row.cells[column].textContent : "";
    const words = Array.from(new Set(rows.map(of))).sort();
    const select = made("select", {}, made("option", { value: "", textContent: "all" }), ...words.map((w) => made("option", { value: w, textContent: w })));
    select.setAttribute("aria-label", heads(table)[column]);
    const search = made("input", { type: "search", placeholder: "search" });
    search.setAttribute("aria-label", "search " + table.dataset.name);
    const count = made("output");
    const choose = () => {
      let shown = 0;
      for (const row of rows) {
        row.hidden = select.value !== "" && of(row) !== select.value || !row.textContent.toLowerCase().includes(search.value.toLowerCase());
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = shown + " of " + rows.length;
    };
    select.addEventListener("change", choose);
    search.addEventListener("input", choose);
    choose();
    return [select, search, count];
  };
  for (const table of all("table[data-name]")) {
    if (!table.tHead || !table.tBodies[0]) continue;
    for (const th of all("thead th", table)) {
      th.dataset.head = th.textContent;
      const button = made("button", { type: "button", className: "sorts" });
      button.append(...th.childNodes);
      if (th.dataset.head === "") button.setAttribute("aria-label", "sort by the word");
      th.append(button);
    }
    const tools = made("div", { className: "tools" });
    const button = made("button", { type: "button", textContent: "CSV" });
    button.dataset.save = "csv";
    button.setAttribute("aria-label", "save the table " + table.dataset.name + " as CSV");
    tools.append(...(table.dataset.filter ? chooser(table) : []), button);
    table.parentNode.before(tools);
    button.table = table;
  }

  // Pictures, saved as they look now.
  const painted = ["paint-order", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin", "font-family", "font-size", "font-weight", "text-anchor", "opacity", "color"];
  // A picture that shares its legend with others takes it along. Returns how tall it is.
  const legend = (svg, copy, box) => {
    const of = svg.closest("figure").dataset.keys;
    const keys = of ? all("ul.keys li:not(.soft)", svg.closest("section")).filter((key) => key.parentNode.dataset.keys === of) : [];
    const tall = 18;
    keys.forEach((key, i) => {
      const y = box.y + box.height + tall * i, text = document.createElementNS(svg.namespaceURI, "text");
      const sign = key.querySelector("svg"), mark = sign.cloneNode(true), from = all("*", sign);
      all("*", mark).forEach((e, n) => painted.forEach((name) => e.setAttribute(name, getComputedStyle(from[n]).getPropertyValue(name))));
      Object.entries({ x: box.x + 10, y: y, width: 22, height: 12 }).forEach(([name, value]) => mark.setAttribute(name, value));
      text.textContent = key.textContent.trim();
      const style = getComputedStyle(key);
      Object.entries({ x: box.x + 38, y: y + 10, "font-family": style.fontFamily, "font-size": 12, fill: style.color }).forEach(([name, value]) => text.setAttribute(name, value));
      copy.append(mark, text);
    });
    return tall * keys.length;
  };
  const standalone = (svg) => {
    const copy = svg.cloneNode(true), box = svg.viewBox.baseVal;
    const from = [svg, ...all("*", svg)], to = [copy, ...all("*", copy)];
    from.forEach((e, i) => {
      const style = getComputedStyle(e);
      if (e !== svg) painted.forEach((name) => to[i].setAttribute(name, style.getPropertyValue(name)));
      ["class", "tabindex", "role", "aria-pressed"].forEach((name) => to[i].removeAttribute(name));
    });
    const height = box.height + legend(svg, copy, box);
    copy.setAttribute("viewBox", [box.x, box.y, box.width, height].join(" "));
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", height);
    const paper = document.createElementNS(svg.namespaceURI, "rect");
    paper.setAttribute("width", "100%");
    paper.setAttribute("height", "100%");
    paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
    copy.prepend(paper);
    return new XMLSerializer().serializeToString(copy);
  };
  const savePicture = (svg, kind) => {
    const name = fileName(svg.getAttribute("aria-label")) + "." + kind, text = standalone(svg);
    if (kind === "svg") return save(new Blob([text], { type: "image/svg+xml" }), name);
    const image = new Image(), box = svg.viewBox.baseVal;
    image.onload = () => {
      const canvas = made("canvas", { width: 2 * box.width, height: 2 * box.width * image.naturalHeight / image.naturalWidth });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, name), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  };
  for (const figure of all("figure")) {
    const svg = figure.querySelector("svg");
    if (!svg) continue;
    const tools = made("div", { className: "tools" });
    for (const kind of ["svg", "png"]) {
      const button = made("button", { type: "button", textContent: kind.toUpperCase() });
      button.dataset.save = kind;
      button.setAttribute("aria-label", "save the picture as " + kind.toUpperCase() + ": " + svg.getAttribute("aria-label"));
      button.svg = svg;
      tools.append(button);
    }
    svg.after(tools);
  }

  // What is marked in a picture is a row of a table; its figures are read there.
  let rowsByKey;
  const rowsOf = (key) => {
    if (!rowsByKey) {
      rowsByKey = new Map();
      for (const row of all("tr[data-key]")) {
        if (!rowsByKey.has(row.dataset.key)) rowsByKey.set(row.dataset.key, []);
        rowsByKey.get(row.dataset.key).push(row);
      }
    }
    return rowsByKey.get(key) || [];
  };
  const facts = (key) => {
    const list = new Map();
    for (const row of rowsOf(key)) {
      const names = heads(row.closest("table"));
      Array.from(row.cells).forEach((cell, i) => {
        const text = cell.textContent;
        if (i > 0 && text !== "-" && text !== "" && !list.has(names[i])) list.set(names[i] || "verdict", text);
      });
    }
    return list;
  };
  const nameOf = (key) => {
    const row = rowsOf(key)[0];
    return row ? row.cells[0].textContent : key;
  };
  const where = (key) => {
    const row = rowsOf(key)[0], section = row && row.closest("section");
    return section ? section.querySelector("h2, h3").textContent : "";
  };

  const tip = made("div", { id: "tip", hidden: true });
  const shownFacts = 8;
  const showTip = (mark) => {
    const key = mark.dataset.key, title = mark.querySelector("title");
    tip.replaceChildren(made("b", { textContent: nameOf(key) }), made("span", { textContent: where(key) }));
    if (mark.dataset.says || title) tip.append(made("span", { textContent: mark.dataset.says || title.textContent }));
    for (const [name, text] of Array.from(facts(key)).slice(0, shownFacts)) tip.append(made("span", { textContent: name + ": " + text }));
    tip.hidden = false;
    const at = mark.getBoundingClientRect(), box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(at.right + 12, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(8, at.bottom + 8 + box.height > innerHeight ? at.top - box.height - 8 : at.bottom + 8) + "px";
    rowsOf(key).forEach((row) => row.classList.add("hot"));
  };
  const hideTip = () => {
    tip.hidden = true;
    all("tr.hot").forEach((row) => row.classList.remove("hot"));
  };

  const pins = [];
  const panel = made("section", { id: "pins", hidden: true });
  panel.setAttribute("aria-label", "cells to compare");
  const mark = (key, on) => {
    const selector = '[data-key="' + CSS.escape(key) + '"]';
    all("tr" + selector).forEach((row) => row.classList.toggle("pinned", on));
    all("svg " + selector).forEach((e) => {
      e.classList.toggle("pinned", on);
      e.setAttribute("aria-pressed", on);
    });
  };
  const showPins = () => {
    panel.hidden = pins.length === 0;
    if (panel.hidden) {
      document.body.style.paddingBottom = "";
      return;
    }
    const of = pins.map(facts), names = new Set(of.flatMap((list) => Array.from(list.keys())));
    const head = made("tr", {}, made("th", { scope: "col", textContent: "figure" }), ...pins.map((key) => {
      const button = made("button", { type: "button", textContent: "remove" });
      button.setAttribute("aria-label", "remove " + nameOf(key) + ", " + where(key));
      button.addEventListener("click", () => pin(key));
      return made("th", { scope: "col" }, nameOf(key), made("br"), made("span", { className: "soft", textContent: where(key) }), made("br"), button);
    }));
    const body = made("tbody", {}, ...Array.from(names, (name) => made("tr", {}, made("th", { scope: "row", textContent: name }), ...of.map((list) => made("td", { textContent: list.get(name) || "-" })))));
    const clear = made("button", { type: "button", textContent: "Close" });
    clear.addEventListener("click", () => pins.slice().forEach(pin));
    const wide = made("div", { className: "wide", tabIndex: 0 }, made("table", {}, made("thead", {}, head), body));
    wide.setAttribute("role", "region");
    wide.setAttribute("aria-label", "table of the cells to compare");
    panel.replaceChildren(made("div", { className: "head" }, made("h2", { textContent: pins.length === 1 ? "Compare: pin another" : "Compare" }), clear), wide);
    document.body.style.paddingBottom = panel.getBoundingClientRect().height + 16 + "px";
  };
  const pin = (key) => {
    const at = pins.indexOf(key), most = 6;
    if (at >= 0) pins.splice(at, 1);
    else pins.push(key);
    while (pins.length > most) mark(pins.shift(), false);
    mark(key, at < 0);
    showPins();
  };

  // In a picture the tab key reaches one mark; the arrows go from mark to mark.
  for (const svg of all("svg.chart, svg.plot")) {
    const marks = all("[data-key]", svg);
    if (marks.length === 0) continue;
    svg.setAttribute("role", "group");
    marks.forEach((m, i) => {
      const title = m.querySelector("title");
      const key = m.dataset.key;
      m.setAttribute("role", "button");
      m.setAttribute("aria-pressed", "false");
      m.setAttribute("tabindex", i === 0 ? "0" : "-1");
      m.setAttribute("aria-label", (m.dataset.label || key) + ": " + (title ? title.textContent : ""));
      if (title) {
        m.dataset.says = title.textContent;
        title.remove(); // the browser would show it over ours
      }
    });
    svg.addEventListener("keydown", (event) => {
      const at = marks.indexOf(event.target), step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (at >= 0 && step) {
        const to = marks[(at + step + marks.length) % marks.length];
        event.target.setAttribute("tabindex", "-1");
        to.setAttribute("tabindex", "0");
        to.focus();
        event.preventDefault();
      }
    });
  }
  document.querySelector("main").append(tip);
  document.body.append(panel);

  const marked = (event) => event.target.closest ? event.target.closest("svg [data-key]") : null;
  document.addEventListener("pointerover", (event) => { const m = marked(event); if (m) showTip(m); });
  document.addEventListener("pointerout", (event) => { if (marked(event)) hideTip(); });
  document.addEventListener("focusin", (event) => { const m = marked(event); if (m && m.matches(":focus-visible")) showTip(m); });
  document.addEventListener("focusout", (event) => { if (marked(event)) hideTip(); });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button"), m = marked(event), row = event.target.closest("tbody tr[data-key] > th");
    if (button && button.className === "sorts") {
      const th = button.parentNode;
      sortBy(th.closest("table"), th.cellIndex);
    } else if (button && button.dataset.save === "csv") {
      save(new Blob([csv(button.table)], { type: "text/csv" }), fileName(button.table.dataset.name) + ".csv");
    } else if (button && button.dataset.save) {
      savePicture(button.svg, button.dataset.save);
    } else if (m) {
      pin(m.dataset.key);
    } else if (row) {
      pin(row.parentNode.dataset.key);
    }
  });
  document.addEventListener("keydown", (event) => {
    const m = marked(event);
    if (m && (event.key === "Enter" || event.key === " ")) {
      pin(m.dataset.key);
      event.preventDefault();
    } else if (event.key === "Escape") {
      hideTip();
    }
  });
})();
